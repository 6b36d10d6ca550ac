//! Runs a trial and checks it.

use manxdb_core::Nanos;
use manxdb_jobs::Options;
use manxdb_jobs::node::Node;
use manxdb_sim::{SimTime, World};

use super::drive::Load;
use super::measured::seconds;
use super::pool::{CONTROL, Pool, world};
use super::{CaasOutcome, Trial};
use crate::trial_error::{TrialError, check_cores};

/// Virtual time between two words to who waits.
const SLICE: Nanos = Nanos::from_secs(1);
/// How long compactions may go on when nothing is written any more.
const PATIENCE: Nanos = Nanos::from_secs(3_600);
/// Time for the last words about what was installed.
const LAST_WORDS: Nanos = Nanos::from_secs(3);

/// Runs a trial with settings of the pool changed; `progress` hears which share of it is done.
///
/// # Errors
/// The trial is unfit, or an invariant broke: of a core, or that every byte written is somewhere,
/// or that every job ends once.
pub fn run_with(
    trial: &Trial,
    change: impl Fn(&mut Options),
    progress: &mut dyn FnMut(f64),
) -> Result<CaasOutcome, TrialError> {
    trial.check()?;
    let mut options = Options {
        policy: trial.who.policy().unwrap_or_default(),
        ..Options::default()
    };
    change(&mut options);
    let mut world = World::new(Pool::new(trial, options), world(trial));
    let mut load = Load::new(trial);
    let until = SimTime::from_secs(u64::from(trial.minutes) * 60);
    #[allow(clippy::cast_precision_loss)] // a share, for people
    let mut tell = |now: SimTime| progress((now.0 as f64 / until.0 as f64).min(1.0) * 0.99);
    while world.now() < until {
        step(&mut world, &mut load, SLICE)?;
        tell(world.now());
    }
    load.note_written();
    let others_done = drain(&mut world, &mut load, trial, until)?;
    let databases = load.databases(world.now());
    let mut outcome = load.measured.outcome(trial, &databases);
    outcome.drain = others_done.map(|at| seconds(at.since(until)));
    outcome.events = world.counters().events;
    progress(1.0);
    Ok(outcome)
}

fn step(world: &mut World<Pool>, load: &mut Load, by: Nanos) -> Result<(), TrialError> {
    let next = world.now() + by;
    let ran = world.run_until(load, next);
    ran.map_err(|failure| TrialError::Broken(failure.to_string()))?;
    check_cores(world)?;
    load.check().map_err(TrialError::Broken)
}

/// Until nothing is left to compact; when the others were done, if they were.
fn drain(
    world: &mut World<Pool>,
    load: &mut Load,
    trial: &Trial,
    until: SimTime,
) -> Result<Option<SimTime>, TrialError> {
    let greedy = trial.greedy as usize;
    let mut others_done = None;
    while world.now() < until + PATIENCE {
        let now = world.now();
        if others_done.is_none() && load.are_done(greedy, now) {
            others_done = Some(now);
        }
        if load.are_done(0, now) {
            step(world, load, LAST_WORDS)?;
            nothing_is_left(world, load)?;
            break;
        }
        step(world, load, SLICE)?;
    }
    Ok(others_done)
}

fn nothing_is_left(world: &World<Pool>, load: &Load) -> Result<(), TrialError> {
    let jobs = match world.core(CONTROL) {
        Some(Node::Control(control)) => control.report().jobs.len(),
        _ => 0,
    };
    if jobs + load.open() == 0 {
        return Ok(());
    }
    let open = load.open();
    Err(TrialError::Broken(format!(
        "{open} jobs never ended, the control plane still has {jobs}"
    )))
}
