//! `manxdb sim`: one cluster in virtual time, measured and explained.
//!
//! | file | |
//! |---|---|
//! | [`arguments`], [`reach`] | from flags to a scenario, and what is wrong with them |
//! | [`measure`] | a run in numbers |
//! | [`table`], [`data`] | as text, as JSON and CSV |
//! | [`pick`] | which call to draw |

mod arguments;
mod data;
mod measure;
mod pick;
mod reach;
mod table;

pub use arguments::theta;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use manxdb_core::Nanos;
use manxdb_lab::scenario::Scenario;
use manxdb_lab::simulate::{Look, SimulationOutcome, Story, simulate, story};
use manxdb_sim::Failure;
use manxdb_sim::explain::Part;
use manxdb_sim::timeline::timeline;

use self::measure::Measure;
use self::pick::{Wanted, find, name_of, txn_of};
use crate::cli::SimRun;
use crate::fault::Fault;

/// The table is drawn again after this, or when drawing takes long, after ten times that.
const REDRAW: Duration = Duration::from_millis(250);

/// `manxdb sim`.
///
/// # Errors
/// Arguments that make no sense, files that cannot be written, an invariant that broke.
pub fn run(args: &SimRun) -> Result<ExitCode, Fault> {
    let wanted: Option<Wanted> = match &args.timeline {
        Some(text) => Some(text.parse().map_err(wrong_timeline)?),
        None => None,
    };
    let scenario = arguments::scenario(args)?;
    say(&table::head(args, &scenario))?;
    let mut live = Live::new();
    let outcome = simulate(&scenario, &mut |look| live.show(&scenario, &look)).map_err(broken)?;
    live.clear();
    let (from, until) = scenario.span();
    let measure = Measure::new(&outcome.made, from, until);
    say(&table::table(&measure))?;
    say(&table::end(&scenario, &measure, &outcome))?;
    write(args.json.as_deref(), || {
        data::json(args, &scenario, &measure, &outcome)
    })?;
    write(args.calls.as_deref(), || data::csv(&scenario, &outcome))?;
    if let Some(wanted) = wanted {
        say(&format!("\n{}", draw(&scenario, &outcome, wanted)?))?;
    }
    Ok(if outcome.findings.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Prints; whoever has read enough (`| head`) is no reason to fail.
fn say(text: &str) -> Result<(), Fault> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Fault::io("cannot print", error))
        }
        _ => Ok(()),
    }
}

fn wrong_timeline(what: String) -> Fault {
    Fault::Other(format!("--timeline: {what}"))
}

fn broken(failure: Box<Failure>) -> Fault {
    Fault::Other(format!("an invariant of the protocol broke: {failure}"))
}

fn write(path: Option<&Path>, text: impl FnOnce() -> String) -> Result<(), Fault> {
    let Some(path) = path else {
        return Ok(());
    };
    let written = std::fs::write(path, text());
    written.map_err(|error| Fault::io(format!("cannot write {}", path.display()), error))
}

/// Runs the scenario again as far as the call that is wanted, and draws it.
fn draw(scenario: &Scenario, outcome: &SimulationOutcome, wanted: Wanted) -> Result<String, Fault> {
    let made = find(&outcome.made, scenario.span(), wanted).map_err(wrong_timeline)?;
    let Some((txn, answered)) = txn_of(made).zip(made.answered.as_ref()) else {
        return Err(wrong_timeline("the call was not answered".to_owned()));
    };
    // Replicas that are not waited for have run it a little later.
    let until = answered.0 + Nanos::from_millis(1);
    let Story { rows, parts } = story(scenario, txn, until).map_err(broken)?;
    let mut text = timeline(&rows, txn, &name_of(made));
    let latency = made.latency().unwrap_or_default();
    let _ = writeln!(text, "\n{:.3} ms went into:", latency.as_millis_f64());
    for part in &parts {
        let _ = writeln!(text, "{}", line(part));
    }
    Ok(text)
}

/// A part of a latency.
fn line(part: &Part) -> String {
    let mut text = format!("{:>9.3}  {}", part.span().as_millis_f64(), part.reason);
    if let Some(label) = part.label {
        let _ = write!(text, ": {label}");
    }
    if let Some(on) = part.on {
        let _ = write!(text, " {}.{}", on >> 32, on & 0xFFFF_FFFF);
    }
    let preposition = if part.label.is_some() { "to" } else { "at" };
    let _ = write!(text, ", {preposition} n{}", part.node.0);
    text
}

/// A table on a terminal that is drawn over itself while the run goes on.
struct Live {
    is_shown: bool,
    lines: usize,
    next: Instant,
}

impl Live {
    fn new() -> Self {
        Self {
            is_shown: std::io::stdout().is_terminal(),
            lines: 0,
            next: Instant::now() + REDRAW,
        }
    }

    fn show(&mut self, scenario: &Scenario, look: &Look<'_>) {
        let began = Instant::now();
        if !self.is_shown || began < self.next {
            return;
        }
        let (from, until) = scenario.span();
        let now = look.now.min(until);
        let measure = Measure::new(look.made, from.min(now), now);
        let mut text = table::table(&measure);
        let passed = look.now.since(manxdb_sim::SimTime::ZERO).as_millis_f64() / 1e3;
        let all = until.since(manxdb_sim::SimTime::ZERO).as_millis_f64() / 1e3;
        let _ = writeln!(text, "\n{passed:.1} of {all:.1} virtual seconds");
        self.clear();
        print!("{text}");
        let _ = std::io::stdout().flush();
        self.lines = text.lines().count();
        self.next = Instant::now() + REDRAW.max(began.elapsed() * 10);
    }

    /// Takes the last drawing back.
    fn clear(&mut self) {
        if self.lines > 0 {
            print!("\x1b[{}A\x1b[J", self.lines);
            self.lines = 0;
        }
    }
}
