//! What is said of a run: text for people, JSON for scripts.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::load::{Load, Made, Purpose, Survey};
use crate::bench::measure::Times;
use crate::cli::ClusterLoad;

const PERCENTS: [usize; 5] = [50, 90, 95, 99, 100];

/// A run in numbers.
pub struct Outcome<'a> {
    args: &'a ClusterLoad,
    seconds: f64,
    classes: [Class; 2],
    open: usize,
    /// Asked more than once.
    asked_again: usize,
    findings: Vec<String>,
    survey: Option<Survey>,
}

/// Calls that stay in a region, or those that do not.
struct Class {
    name: &'static str,
    times: Times,
    refused: usize,
}

impl<'a> Outcome<'a> {
    /// What a load was like.
    pub fn new(args: &'a ClusterLoad, load: &Load, findings: Vec<String>) -> Self {
        let (from, until) = load.measured().unwrap_or_default();
        let of_load = load.made().iter();
        let of_load = of_load.filter(|made| made.purpose == Purpose::Load);
        let measured: Vec<&Made> = of_load
            .filter(|made| (from..until).contains(&made.asked))
            .collect();
        let class = |name, is_local| Class::new(name, is_local, &measured);
        let attempts = measured.iter().filter_map(|made| made.answered.as_ref());
        Self {
            args,
            seconds: until.saturating_sub(from).as_millis_f64() / 1e3,
            classes: [class("local", true), class("cross-region", false)],
            open: load.open(),
            asked_again: attempts.filter(|(_, answer)| answer.attempts > 1).count(),
            findings,
            survey: load.survey(),
        }
    }

    /// Every call ended and nothing was found wrong.
    pub fn is_good(&self) -> bool {
        self.open == 0 && self.findings.is_empty()
    }

    /// For people.
    pub fn text(&self) -> String {
        let all: usize = self.classes.iter().map(|class| class.times.count()).sum();
        let mut text = format!(
            "{all} calls of {} clients in {:.1} s: {:.1} a second\n\n{:14} {:>8} {:>8} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} ms\n",
            self.args.clients,
            self.seconds,
            self.rate(all),
            "",
            "calls",
            "refused",
            "a second",
            "p50",
            "p90",
            "p95",
            "p99",
            "max"
        );
        for class in &self.classes {
            let count = class.times.count();
            let _ = write!(
                text,
                "{:14} {count:>8} {:>8} {:>9.1}",
                class.name,
                class.refused,
                self.rate(count)
            );
            for micros in class.times.percentiles(PERCENTS) {
                let _ = write!(text, " {:>8.2}", f64::from(micros) / 1e3);
            }
            text.push('\n');
        }
        if self.asked_again > 0 {
            let _ = writeln!(text, "{} calls were asked more than once", self.asked_again);
        }
        if self.open > 0 {
            let _ = writeln!(text, "WRONG: {} calls were not answered", self.open);
        }
        for finding in &self.findings {
            let _ = writeln!(text, "WRONG: {finding}");
        }
        if self.args.check && self.is_good() {
            text.push_str("checked: every call ended, replicas are equal");
            text.push_str(match self.survey {
                Some(Survey::Lists(_)) => ", nothing was lost, the history is serializable",
                Some(Survey::Totals) => ", each table has an increment for each call",
                None => "",
            });
        }
        text.trim_end().to_owned()
    }

    /// For scripts; times in microseconds.
    pub fn json(&self) -> String {
        let classes = self.classes.iter().map(|class| {
            let [p50, p90, p95, p99, max] = class.times.percentiles(PERCENTS);
            let count = class.times.count();
            let value = json!({
                "calls": count, "refused": class.refused, "per_second": self.rate(count),
                "p50": p50, "p90": p90, "p95": p95, "p99": p99, "max": max,
            });
            (class.name.to_owned(), value)
        });
        let all = json!({
            "clients": self.args.clients,
            "seed": self.args.seed,
            "seconds": self.seconds,
            "classes": Value::Object(classes.collect()),
            "open": self.open,
            "asked_again": self.asked_again,
            "checked": self.args.check,
            "findings": self.findings,
        });
        format!("{all}\n")
    }

    #[allow(clippy::cast_precision_loss)] // far below 2^53
    fn rate(&self, count: usize) -> f64 {
        count as f64 / self.seconds.max(1e-9)
    }
}

impl Class {
    fn new(name: &'static str, is_local: bool, measured: &[&Made]) -> Self {
        let mut times = Times::default();
        let mut refused = 0;
        for made in measured.iter().filter(|made| made.is_local == is_local) {
            let Some((at, answer)) = &made.answered else {
                continue;
            };
            match answer.given {
                Ok(_) => times.add(Duration::from_nanos(at.saturating_sub(made.asked).0)),
                Err(_) => refused += 1,
            }
        }
        Self {
            name,
            times,
            refused,
        }
    }
}
