//! Runs a trial: a cluster in namespaces of its own and a client beside it, or redis-server.

use std::net::{Ipv4Addr, TcpListener};

use manxdb_core::channel::Life;
use manxdb_curp_client::client::unlisted;
use manxdb_curp_redis::RedisMachine;
use manxdb_net::{Place, RegionId};

use super::cluster::{Processes, Used, fdatasync_ms};
use super::load::{Loops, Source};
use super::namespace;
use super::trial::{Carrier, Cpu, Load, Measure, Outcome, Spread, System, Trial, Ways};
use crate::lab::redis::{SyncedSets, cpu_of, synced_sets};

/// What a trial is called when it runs in namespaces.
pub const KIND: &str = "curp";
/// fdatasync calls that are measured.
const SYNCS: u32 = 200;
/// Of commands that are measured, so many more warm up.
const WARM_UP_SHARE: u32 = 10;
/// SETs of a redis-server's run at laptop scale.
const FULL_COMMANDS: u32 = 2_000;

/// Runs a trial, wherever this machine lets it.
///
/// # Errors
/// What failed, but for what this machine lacks: that is an outcome.
pub fn run(trial: &Trial) -> Result<Outcome, String> {
    if trial.system.is_redis() {
        return redis(trial);
    }
    let in_kernel = match trial.system {
        System::Curp { carrier, .. } => carrier != Carrier::User,
        _ => false,
    };
    match namespace::may() {
        Ok(()) => namespace::within(KIND, trial),
        Err(why) if in_kernel => Ok(lacking(why)),
        Err(_) => here(trial),
    }
}

/// The log that a message names is gone with the trial.
fn lacking(why: String) -> Outcome {
    let why = why.split(" (log: ").next().unwrap_or_default().to_owned();
    Outcome {
        lacking: Some(why),
        ..Outcome::default()
    }
}

fn redis(trial: &Trial) -> Result<Outcome, String> {
    let directory = tempfile::tempdir();
    let directory = directory.map_err(|error| format!("no directory for a run: {error}"))?;
    let share = (FULL_COMMANDS / trial.commands.max(1)).max(1);
    let fdatasync_ms = fdatasync_ms(directory.path(), SYNCS / share.min(10))?;
    let sets = synced_sets(
        directory.path(),
        (trial.clients, trial.keys),
        share,
        trial.seed,
    );
    let sets = match sets {
        Ok(sets) => sets,
        Err(why) if why.contains("cannot start") => return Ok(lacking(why)),
        Err(why) => return Err(why),
    };
    Ok(Outcome {
        lacking: None,
        fdatasync_ms: Some(fdatasync_ms),
        measures: vec![of_redis(trial, &sets)],
    })
}

#[allow(clippy::cast_precision_loss)] // far below 2^53
fn of_redis(trial: &Trial, sets: &SyncedSets) -> Measure {
    let all = Spread {
        count: sets.commands,
        // Each client waits for one command at a time.
        mean: f64::from(trial.clients) * sets.seconds * 1e6 / sets.commands.max(1) as f64,
        p50: sets.p50_ms * 1e3,
        p99: sets.p99_ms * 1e3,
        p999: 0.0,
    };
    Measure {
        load: Load::Set,
        commands: sets.commands,
        seconds: sets.seconds,
        all,
        updates: all,
        ways: Ways::default(),
        cpu: Cpu {
            master: sets.cpu,
            ..Cpu::default()
        },
        messages: 0,
        bytes: 0,
        recent: 0,
    }
}

/// Runs a cluster's trial in the namespaces of this process.
///
/// # Errors
/// What failed, but for what this machine lacks.
pub fn here(trial: &Trial) -> Result<Outcome, String> {
    let directory = tempfile::tempdir();
    let directory = directory.map_err(|error| format!("no directory for a run: {error}"))?;
    let processes = match Processes::start(trial, directory.path()) {
        Ok(processes) => processes,
        Err(why) => {
            return match trial.system {
                System::Curp { carrier, .. } if carrier != Carrier::User => Ok(lacking(why)),
                _ => Err(why),
            };
        }
    };
    let loads = trial.loads.iter();
    let measures = loads.map(|load| measure(&processes, trial, *load));
    Ok(Outcome {
        lacking: None,
        fdatasync_ms: None,
        measures: measures.collect::<Result<_, _>>()?,
    })
}

fn measure(processes: &Processes, trial: &Trial, load: Load) -> Result<Measure, String> {
    let mut cluster = processes.cluster();
    cluster.options.records = trial.system.records();
    let node = unlisted().map_err(|error| error.to_string())?;
    let place = Place {
        node,
        region: RegionId(0),
    };
    let own = || cpu_of(std::process::id());
    let look = || -> Result<(Used, f64), String> { Ok((processes.used()?, own()?)) };
    let warm_up = trial.commands / WARM_UP_SHARE + trial.clients;
    let source = Source::new(trial, load);
    let commands = (warm_up, trial.commands);
    let loops = Loops::new(node, source, trial.clients, commands, Box::new(look));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let listener = listener.map_err(|error| format!("cannot listen for answers: {error}"))?;
    let hosted = cluster.host::<RedisMachine, _>(place, Life(1), listener, loops, |_| Vec::new());
    let mut runtime = hosted.map_err(|error| error.to_string())?;
    runtime.run(None).map_err(|error| error.to_string())?;
    let sent = runtime.counters().named();
    let (after, own_after) = look()?;
    let loops = runtime.into_driver();
    if loops.is_stuck() {
        return Err(format!("the cluster answers {} no more", load.title()));
    }
    let seen = loops.seen();
    let Some(before) = loops.into_looked() else {
        return Err("a load never warmed up".to_owned());
    };
    let (before, own_before) = before?;
    if seen.errors > 0 {
        return Err(format!(
            "{} of {}'s commands failed",
            seen.errors,
            load.title()
        ));
    }
    // The client's own messages: it sent some to warm up, too.
    let share = f64::from(trial.commands) / f64::from(trial.commands + warm_up);
    let of_client = |is: &dyn Fn(&str) -> bool| share_of(&sent, is, share);
    Ok(Measure {
        load,
        commands: seen.all.count,
        seconds: seen.seconds,
        all: seen.all,
        updates: seen.updates,
        ways: seen.ways,
        cpu: Cpu {
            master: after.cpu.master - before.cpu.master,
            backups: after.cpu.backups - before.cpu.backups,
            witnesses: after.cpu.witnesses - before.cpu.witnesses,
            client: own_after - own_before,
        },
        messages: after.messages - before.messages + of_client(&|name| name.starts_with("sent ")),
        bytes: after.bytes - before.bytes + of_client(&|name| name == "bytes sent"),
        recent: seen.recent,
    })
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)] // counts of a run are far below 2^53
fn share_of(counts: &[(String, u64)], is: &dyn Fn(&str) -> bool, share: f64) -> u64 {
    let counted = counts.iter().filter(|(name, _)| is(name));
    let all: u64 = counted.map(|(_, count)| count).sum();
    (all as f64 * share) as u64
}
