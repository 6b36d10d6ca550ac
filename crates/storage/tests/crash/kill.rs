//! A writer is killed at random moments; whatever it acknowledged must be there, whole.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use manxdb_storage::{Durability, Engine, Version};

use super::history;

/// Tells the test binary that it is the writer, and where the store is.
const DIRECTORY: &str = "MANXDB_CRASH_DIRECTORY";
const DURABILITY: &str = "MANXDB_CRASH_DURABILITY";
/// Number of kills; the default suits every test run.
const CYCLES: &str = "MANXDB_CRASH_CYCLES";
const CYCLES_DEFAULT: u64 = 60;
const SEED: &str = "MANXDB_CRASH_SEED";

/// Not a test of its own: the process that is killed.
#[test]
#[ignore = "run by the tests that kill it"]
fn writer_to_be_killed() {
    let Ok(directory) = std::env::var(DIRECTORY) else {
        return;
    };
    let durability = match std::env::var(DURABILITY).as_deref() {
        Ok("sync") => Durability::Sync,
        _ => Durability::Async,
    };
    let engine = history::open(Path::new(&directory)).unwrap();
    let mut version = engine.latest().unwrap().0;
    let mut out = std::io::stdout().lock();
    loop {
        version += 1;
        history::write(&engine, version, durability).unwrap();
        writeln!(out, "ack {version}").unwrap();
        out.flush().unwrap();
        engine.set_watermark(Version(version.saturating_sub(10)));
        if version.is_multiple_of(97) {
            engine.compact().unwrap();
        }
    }
}

fn start(directory: &Path, durability: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "kill::writer_to_be_killed",
            "--ignored",
            "--nocapture",
        ])
        .env(DIRECTORY, directory)
        .env(DURABILITY, durability)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Reads acknowledgements, kills after `patience` of them, and reads what was still in the pipe.
fn kill_after(mut child: Child, patience: u64) -> u64 {
    let mut acknowledged = 0;
    let mut heard = 0;
    let mut killed = patience == 0;
    if killed {
        child.kill().unwrap();
    }
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        // The last line may be cut short in the middle of a number.
        let Ok(line) = line else { break };
        let Some(number) = line.split("ack ").nth(1).and_then(|text| text.parse().ok()) else {
            continue;
        };
        if !killed || number == acknowledged + 1 {
            acknowledged = number;
        }
        heard += 1;
        if heard >= patience && !killed {
            child.kill().unwrap();
            killed = true;
        }
    }
    child.wait().unwrap();
    acknowledged
}

#[test]
fn every_acknowledged_batch_survives_kill_9_and_none_is_half_there() {
    let number = |name: &str, default| {
        let text = std::env::var(name).ok();
        text.and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let cycles: u64 = number(CYCLES, CYCLES_DEFAULT);
    let mut random: u64 = number(SEED, 0x5EED);
    let directory = tempfile::tempdir().unwrap();
    let mut checked = 0;
    for cycle in 0..cycles {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let (durability, patience) = match cycle % 5 {
            0 => ("sync", (random >> 33) % 8),
            _ => ("async", (random >> 33) % 400),
        };
        let child = start(directory.path(), durability);
        let acknowledged = kill_after(child, patience);
        let engine = history::open(directory.path()).unwrap();
        let latest = history::check_whole(&engine, checked);
        assert!(
            latest >= acknowledged && latest >= checked,
            "cycle {cycle}: acknowledged {acknowledged}, found {latest}, before {checked}"
        );
        checked = latest;
    }
    let engine = history::open(directory.path()).unwrap();
    history::check_whole(&engine, 0);
    assert!(checked > cycles, "the writer got somewhere: {checked}");
}
