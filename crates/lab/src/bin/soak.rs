//! DAST under random faults, seed after seed, until stopped or until one fails:
//! `make soak`, or `cargo run --release -p manxdb-lab --bin soak [FIRST_SEED]`.
#![allow(clippy::print_stdout, clippy::print_stderr)] // it talks to people

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use manxdb_lab::soak::{Setting, of_case, plan};
use manxdb_sim::hunt::{Found, VARIABLE, hunt};

/// Seeds between two lines of output.
const SAY_EVERY: u64 = 100;

/// What all threads have done.
#[derive(Default)]
struct Done {
    seeds: AtomicU64,
    events: AtomicU64,
    calls: AtomicU64,
    virtual_micros: AtomicU64,
}

impl Done {
    /// The hunt of one seed, cut down if it fails.
    fn hunt(&self, seed: u64) -> Result<(), Box<Found>> {
        let draw = |seed| plan::draw(seed, &Setting::of_seed(seed));
        let mut ran = None;
        hunt(seed..seed + 1, draw, |case| {
            let one = of_case(case)?;
            ran = Some(one);
            Ok(one.digest)
        })?;
        if let Some(ran) = ran {
            self.events.fetch_add(ran.events, Ordering::Relaxed);
            self.calls.fetch_add(ran.calls, Ordering::Relaxed);
            let micros = ran.lasted.as_micros();
            self.virtual_micros.fetch_add(micros, Ordering::Relaxed);
        }
        let seeds = self.seeds.fetch_add(1, Ordering::Relaxed) + 1;
        if seeds.is_multiple_of(SAY_EVERY) {
            println!("{}", self.line(seed));
        }
        Ok(())
    }

    #[allow(clippy::cast_precision_loss)] // for people
    fn line(&self, seed: u64) -> String {
        let hours = self.virtual_micros.load(Ordering::Relaxed) as f64 / 3.6e9;
        format!(
            "{} seeds, the last {seed}: {hours:.2} simulated hours, {} calls, {:.1} million events",
            self.seeds.load(Ordering::Relaxed),
            self.calls.load(Ordering::Relaxed),
            self.events.load(Ordering::Relaxed) as f64 / 1e6,
        )
    }
}

/// Where to begin when nobody says: not where the last soak began.
#[allow(clippy::disallowed_methods)] // the one thing that is to differ from run to run
fn seconds_since_1970() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn main() -> ExitCode {
    let first = match std::env::args().nth(1).map(|text| text.parse()) {
        None => seconds_since_1970(),
        Some(Ok(first)) => first,
        Some(Err(error)) => {
            eprintln!("soak [FIRST_SEED]: {error}");
            return ExitCode::from(2);
        }
    };
    let done = Done::default();
    if std::env::var(VARIABLE).is_ok() {
        return end(done.hunt(first).err());
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    println!("DAST under random faults from seed {first} on, {threads} at a time, until stopped");
    let next = AtomicU64::new(first);
    let found = Mutex::new(None);
    let is_found = || found.lock().is_ok_and(|found| found.is_some());
    let work = || {
        while !is_found() {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if let Err(one) = done.hunt(seed)
                && let Ok(mut found) = found.lock()
            {
                found.get_or_insert(one);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    end(found.into_inner().unwrap_or(None))
}

fn end(found: Option<Box<Found>>) -> ExitCode {
    let Some(found) = found else {
        return ExitCode::SUCCESS;
    };
    println!("{found}\n{}", found.command("make soak"));
    ExitCode::FAILURE
}
