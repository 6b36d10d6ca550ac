//! How well a process does its work, in one line for people and one state for machines.

use std::fmt;

use serde_json::{Value, json};

/// How far a process does its work; in the order of how bad that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HealthState {
    /// It does all.
    Ok,
    /// It works, and something is lost that it can be without: fewer copies of rows, writes.
    Degraded,
    /// It cannot do what it is for.
    Unavailable,
}

impl HealthState {
    /// As `/healthz` says it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
            Self::Unavailable => "unavailable",
        }
    }
}

/// What a process, or a part of it, says of itself: what is lost, and what is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthReport {
    /// How far it works.
    pub state: HealthState,
    /// What is lost, in one line; empty when nothing is.
    pub what: String,
    /// What the operator is to do, in one line; empty when it comes back by itself.
    pub remedy: String,
}

impl HealthReport {
    /// Nothing is lost.
    #[must_use]
    pub fn ok() -> Self {
        Self::new(HealthState::Ok, "", "")
    }

    /// It works without `what`; `remedy` brings that back.
    pub fn degraded(what: impl AsRef<str>, remedy: impl AsRef<str>) -> Self {
        Self::new(HealthState::Degraded, what.as_ref(), remedy.as_ref())
    }

    /// It does not work because of `what`; `remedy` makes it work again.
    pub fn unavailable(what: impl AsRef<str>, remedy: impl AsRef<str>) -> Self {
        Self::new(HealthState::Unavailable, what.as_ref(), remedy.as_ref())
    }

    /// Lines of others, such as of a damaged file, become one.
    fn new(state: HealthState, what: &str, remedy: &str) -> Self {
        let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (what, remedy) = (one_line(what), one_line(remedy));
        assert!(
            what.is_empty() == (state == HealthState::Ok),
            "a state other than ok has a reason: {state:?} {what:?}"
        );
        Self {
            state,
            what,
            remedy,
        }
    }

    /// The worse one of two; of two as bad the first.
    #[must_use]
    pub fn or_worse(self, other: Self) -> Self {
        if other.state > self.state {
            other
        } else {
            self
        }
    }

    /// What is lost, and what is to be done.
    #[must_use]
    pub fn line(&self) -> String {
        match self.remedy.as_str() {
            "" => self.what.clone(),
            remedy => format!("{}: {remedy}", self.what),
        }
    }

    /// The same for machines.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({ "state": self.state.name(), "what": self.what, "remedy": self.remedy })
    }
}

/// `ok`, or the state and the line.
impl fmt::Display for HealthReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.state {
            HealthState::Ok => f.write_str(self.state.name()),
            state => write!(f, "{}: {}", state.name(), self.line()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worse_of_two_is_told_and_of_equal_ones_the_first() {
        let degraded = HealthReport::degraded("a copy is lost", "");
        let gone = HealthReport::unavailable("rows are lost", "start again");
        assert_eq!(degraded.clone().or_worse(gone.clone()), gone);
        assert_eq!(gone.clone().or_worse(degraded.clone()), gone);
        let other = HealthReport::degraded("another", "");
        assert_eq!(degraded.clone().or_worse(other), degraded);
        assert_eq!(HealthReport::ok().or_worse(degraded.clone()), degraded);
    }

    #[test]
    fn a_report_is_one_line_whatever_it_is_made_of() {
        let report = HealthReport::unavailable("file x\n is  damaged", "restore\nit");
        assert_eq!(
            report.to_string(),
            "unavailable: file x is damaged: restore it"
        );
        assert_eq!(HealthReport::ok().to_string(), "ok");
    }
}
