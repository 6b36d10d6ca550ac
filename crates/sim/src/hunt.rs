//! Runs many seeds, and makes what fails small enough to read.

use std::fmt::{self, Display};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;

use manxdb_core::{Digest, Nanos};

use crate::fault::{Plan, TextError};

/// The environment variable that makes [`hunt`] run one case alone.
pub const VARIABLE: &str = "MANXDB_SIM_CASE";

/// One of so many seeds is run twice, and must end the same.
const TWICE_EVERY: u64 = 20;

/// Runs that cutting a plan down may take.
const ATTEMPTS_MAX: usize = 400;

/// All that decides a run: its seed and its faults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The seed of everything but the faults.
    pub seed: u64,
    /// The faults.
    pub plan: Plan,
}

impl Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "seed={} plan={}", self.seed, self.plan)
    }
}

impl FromStr for Case {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let error = || TextError::new("case such as seed=7 plan=1s+20ms crash n3", text);
        let rest = text.trim().strip_prefix("seed=").ok_or_else(error)?;
        let (seed, plan) = rest.split_once(" plan=").ok_or_else(error)?;
        Ok(Self {
            seed: seed.parse().map_err(|_| error())?,
            plan: plan.parse()?,
        })
    }
}

/// A case that fails, cut down.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}\nto see it again: {VARIABLE}='{case}'\n({cut} of the {drawn} faults drawn had no part in it)",
    cut = drawn - case.plan.faults.len())]
pub struct Found {
    /// What is left of it.
    pub case: Case,
    /// What went wrong then.
    pub why: String,
    /// How many faults its plan had.
    pub drawn: usize,
}

impl Found {
    /// The command that runs the case again, given the one that hunts.
    pub fn command(&self, hunt: &str) -> String {
        format!("{VARIABLE}='{}' {hunt}", self.case)
    }
}

/// Runs a case for each seed, with the faults that `draw` gives; the digest of all runs.
///
/// `run` gives a digest of its history, or says what went wrong; a panic counts as that too.
/// When the environment names a case, only that one is run.
///
/// # Errors
/// The first case that failed, with as few faults as it needs.
pub fn hunt(
    seeds: Range<u64>,
    draw: impl Fn(u64) -> Plan,
    mut run: impl FnMut(&Case) -> Result<u64, String>,
) -> Result<u64, Box<Found>> {
    let mut digest = Digest::default();
    if let Ok(text) = std::env::var(VARIABLE) {
        return named_case(&text, &mut run);
    }
    for seed in seeds {
        let plan = draw(seed);
        let case = Case { seed, plan };
        let mut test = |case: &Case| {
            let first = once(case, &mut run)?;
            if case.seed.is_multiple_of(TWICE_EVERY) && once(case, &mut run)? != first {
                return Err("two runs of one seed differ".to_string());
            }
            Ok(first)
        };
        match test(&case) {
            Ok(one) => digest.number(one),
            Err(why) => return Err(Box::new(smaller(case, why, test))),
        };
    }
    Ok(digest.value())
}

fn named_case(
    text: &str,
    run: &mut impl FnMut(&Case) -> Result<u64, String>,
) -> Result<u64, Box<Found>> {
    let parsed: Result<Case, _> = text.parse();
    let case = parsed.clone().unwrap_or_else(|_| Case {
        seed: 0,
        plan: Plan::default(),
    });
    let result = parsed.map_err(|error| format!("{VARIABLE}: {error}"));
    let drawn = case.plan.faults.len();
    let result = result.and_then(|case| once(&case, run));
    result.map_err(|why| Box::new(Found { case, why, drawn }))
}

fn once(case: &Case, run: &mut impl FnMut(&Case) -> Result<u64, String>) -> Result<u64, String> {
    let caught = catch_unwind(AssertUnwindSafe(|| run(case)));
    caught.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        Err(format!("panic: {}", text.unwrap_or_default()))
    })
}

fn smaller(case: Case, why: String, mut test: impl FnMut(&Case) -> Result<u64, String>) -> Found {
    let (seed, drawn) = (case.seed, case.plan.faults.len());
    let mut last = why;
    let plan = cut_down(case.plan, |plan| {
        let plan = plan.clone();
        let failed = test(&Case { seed, plan }).err();
        let fails = failed.is_some();
        last = failed.unwrap_or_else(|| std::mem::take(&mut last));
        fails
    });
    Found {
        case: Case { seed, plan },
        why: last,
        drawn,
    }
}

/// Leaves of a plan that fails what it needs to fail: first halves of it are dropped, then
/// quarters and so on down to single faults; then those left are made shorter, which can make
/// others needless.
pub fn cut_down(plan: Plan, mut fails: impl FnMut(&Plan) -> bool) -> Plan {
    let mut attempts = 0;
    let mut try_out = |plan: &Plan| {
        attempts += 1;
        attempts <= ATTEMPTS_MAX && fails(plan)
    };
    let mut plan = drop_faults(plan, &mut try_out);
    for index in 0..plan.faults.len() {
        loop {
            let mut shorter = plan.clone();
            let lasts = shorter.faults[index].lasts;
            if lasts < Nanos::from_micros(2) {
                break;
            }
            // Whole microseconds, as they were drawn.
            shorter.faults[index].lasts = Nanos(lasts.0 / 2_000 * 1_000);
            if !try_out(&shorter) {
                break;
            }
            plan = shorter;
        }
    }
    drop_faults(plan, &mut try_out)
}

fn drop_faults(mut plan: Plan, fails: &mut impl FnMut(&Plan) -> bool) -> Plan {
    let mut size = plan.faults.len();
    while size > 0 {
        let mut start = 0;
        let mut dropped = false;
        while start < plan.faults.len() {
            let end = (start + size).min(plan.faults.len());
            let mut without = plan.clone();
            without.faults.drain(start..end);
            if fails(&without) {
                plan = without;
                dropped = true;
            } else {
                start = end;
            }
        }
        // What was needed beside a dropped fault may not be any longer.
        size = if dropped && size == 1 { 1 } else { size / 2 };
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Plan {
        text.parse().unwrap()
    }

    const DRAWN: &str = "1s+80ms crash n0; 2s+1s slow n1 x2; 3s+64us pause n2; 4s+1s freeze n3; \
                         5s+1s crash n1; 6s+1s disk-full n0; 7s+900us part r0 r1";

    /// Fails when n2 pauses and the regions part for at least 100 µs.
    fn planted(plan: &Plan) -> bool {
        let pause = plan.faults.iter().any(|fault| fault.kind.name() == "pause");
        let long = |fault: &crate::fault::Fault| fault.lasts >= Nanos::from_micros(100);
        let part = plan
            .faults
            .iter()
            .filter(|fault| fault.kind.name() == "part");
        pause && part.clone().any(long)
    }

    #[test]
    fn a_plan_is_cut_down_to_what_it_needs() {
        let small = cut_down(plan(DRAWN), planted);
        assert_eq!(small, plan("3s+1us pause n2; 7s+112us part r0 r1"));
    }

    #[test]
    fn a_hunt_ends_with_one_line_that_fails_again() {
        let draw = |seed| {
            if seed < 30 {
                Plan::default()
            } else {
                plan(DRAWN)
            }
        };
        let run = |case: &Case| {
            let broken = planted(&case.plan).then(|| format!("broken at {}", case.seed));
            broken.map_or(Ok(case.seed), Err)
        };
        let found = hunt(0..100, draw, run).unwrap_err();
        assert_eq!(
            found.to_string(),
            "broken at 30\n\
             to see it again: MANXDB_SIM_CASE='seed=30 plan=3s+1us pause n2; 7s+112us part r0 r1'\n\
             (5 of the 7 faults drawn had no part in it)"
        );
        assert_eq!(
            found.command("cargo test rings"),
            "MANXDB_SIM_CASE='seed=30 plan=3s+1us pause n2; 7s+112us part r0 r1' cargo test rings"
        );
        assert_eq!(found.case.to_string().parse::<Case>().unwrap(), found.case);
        assert!(hunt(0..30, draw, run).is_ok());
    }

    #[test]
    fn a_run_that_is_not_the_same_twice_is_found() {
        let mut runs = 0;
        let run = |_: &Case| {
            runs += 1;
            Ok(runs)
        };
        let found = hunt(0..100, |_| Plan::default(), run).unwrap_err();
        assert_eq!(found.why, "two runs of one seed differ");
    }

    #[test]
    fn a_panic_is_a_failure_like_any_other() {
        let run = |case: &Case| {
            assert!(case.seed < 3, "too many");
            Ok(0)
        };
        let found = hunt(0..5, |_| plan(DRAWN), run).unwrap_err();
        assert_eq!(found.why, "panic: too many");
        assert_eq!(found.case.plan, Plan::default());
    }
}
