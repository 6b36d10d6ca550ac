//! Which outcomes can be true, and how they are made false to test verdicts.

use manxdb_lab::experiment::{Falsification, demand, within};

use super::trial::{Cpu, Measure, Outcome, Spread, Trial, Ways};

/// A command goes through two sockets in no less, in microseconds.
const LATENCY_FLOOR_US: f64 = 2.0;
/// A command is read, executed and answered in no less CPU, in microseconds.
const CPU_FLOOR_US: f64 = 0.1;
/// Threads of one process that are busy at a time.
const THREADS: f64 = 8.0;
/// Commands that a 99th percentile takes, at the least.
const SAMPLES_MIN: u64 = 300;

/// Whether an outcome can be true.
pub(super) fn check(trial: &Trial, outcome: &Outcome) -> Result<(), String> {
    if let Some(why) = &outcome.lacking {
        return demand(outcome.measures.is_empty() && !why.is_empty(), || {
            "something was measured of what could not run".to_owned()
        });
    }
    if trial.system.is_redis() {
        let fdatasync = outcome.fdatasync_ms.unwrap_or_default();
        within("fdatasync (ms)", fdatasync, 1e-4, 1e5)?;
    }
    for load in &trial.loads {
        let measure = outcome.of(*load);
        let measure = measure.ok_or_else(|| format!("{} was not measured", load.title()))?;
        one(trial, measure).map_err(|why| format!("{}: {why}", load.title()))?;
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
fn one(trial: &Trial, measure: &Measure) -> Result<(), String> {
    let (commands, all) = (measure.commands, measure.all);
    demand(commands == all.count && commands > 0, || {
        format!("{commands} commands were answered, {} measured", all.count)
    })?;
    within("seconds", measure.seconds, 1e-6, 86_400.0)?;
    // There and back; without witnesses twice.
    let way = f64::from(trial.lan_us);
    let floor = (2.0 * way).max(LATENCY_FLOOR_US);
    ordered("a command", all, floor)?;
    within(
        "CPU of a command (µs)",
        measure.cluster_us(),
        CPU_FLOOR_US,
        1e6,
    )?;
    let most = (measure.seconds + 0.1) * THREADS * f64::from(trial.system.faults() + 1);
    within("CPU of all processes (s)", measure.cpu.cluster(), 0.0, most)?;
    // Each client waits for one command at a time.
    let waited = all.mean * commands as f64 / 1e6;
    let most = f64::from(trial.clients) * measure.seconds;
    within(
        "waits, of the time of all clients,",
        waited / most,
        0.2,
        1.1,
    )?;
    if trial.system.is_redis() {
        return Ok(());
    }
    let (asked, ways) = (u64::from(trial.commands), measure.ways);
    demand(commands == asked, || {
        format!("{commands} commands were answered, of {asked}")
    })?;
    demand(ways.all() == commands && ways.unknown == 0, || {
        format!("{ways:?} are not {commands} commands with a known outcome")
    })?;
    demand(measure.updates.count == ways.updates(), || {
        format!("{} updates, but {ways:?}", measure.updates.count)
    })?;
    let trips = if trial.system.records() || trial.system.faults() == 0 {
        2.0
    } else {
        4.0
    };
    ordered(
        "an update",
        measure.updates,
        (trips * way).max(LATENCY_FLOOR_US),
    )?;
    // A question and an answer, at least one of them counted where processes are asked.
    within(
        "messages of a command",
        measure.messages_each(),
        1.0,
        1_000.0,
    )?;
    within("bytes of a command", measure.bytes_each(), 100.0, 1e6)
}

fn ordered(what: &str, spread: Spread, floor: f64) -> Result<(), String> {
    let Spread {
        mean,
        p50,
        p99,
        p999,
        ..
    } = spread;
    within(&format!("the median of {what} (µs)"), p50, floor, 1e8)?;
    within(&format!("the mean of {what} (µs)"), mean, floor, 1e8)?;
    within(
        &format!("the 99th percentile of {what} (µs)"),
        p99,
        p50,
        1e8,
    )?;
    demand(p999 >= p99 || p999 == 0.0, || {
        format!("percentiles of {what} fall: {p99}, {p999}")
    })
}

/// Of the load with the fewest commands: how many, and how many it takes.
pub(super) fn samples(outcome: &Outcome) -> (u64, u64) {
    let fewest = outcome.measures.iter().map(|one| one.commands).min();
    (fewest.unwrap_or(SAMPLES_MIN), SAMPLES_MIN)
}

/// Makes an outcome wrong.
pub(super) fn falsify(outcome: &mut Outcome, how: Falsification) {
    for measure in &mut outcome.measures {
        let Some(by) = how.factor() else {
            measure.commands /= 2;
            continue;
        };
        let Spread {
            mean,
            p50,
            p99,
            p999,
            ..
        } = &mut measure.all;
        let all = [mean, p50, p99, p999];
        let Spread {
            mean,
            p50,
            p99,
            p999,
            ..
        } = &mut measure.updates;
        let updates = [mean, p50, p99, p999];
        let Cpu {
            master,
            backups,
            witnesses,
            client,
        } = &mut measure.cpu;
        let cpu = [master, backups, witnesses, client];
        for number in all.into_iter().chain(updates).chain(cpu) {
            *number *= by;
        }
        measure.seconds *= by;
        slow_down(&mut measure.ways, by);
        measure.messages = scaled(measure.messages, by);
        measure.bytes = scaled(measure.bytes, by);
        measure.recent = scaled(measure.recent, by).min(measure.commands);
    }
    if how == Falsification::Zeros {
        outcome.fdatasync_ms = outcome.fdatasync_ms.map(|_| 0.0);
    }
}

/// Fewer updates were completed by witnesses.
fn slow_down(ways: &mut Ways, by: f64) {
    if by > 1.0 {
        let fast = scaled(ways.fast, 1.0 / by);
        ways.synced += ways.fast - fast;
        ways.fast = fast;
    }
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)] // counts of a run are far below 2^53
fn scaled(count: u64, by: f64) -> u64 {
    (count as f64 * by) as u64
}
