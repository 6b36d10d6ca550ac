//! A run in numbers: by class of calls, how many, how long, and what the time went into.

use manxdb_core::Nanos;
use manxdb_lab::load::Made;
use manxdb_lab::why::Shares;
use manxdb_sim::{Latencies, SimTime};

/// Calls that stay in a region, or those that do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// They stay (intra-region transactions, IRT).
    Local,
    /// They do not (cross-region transactions, CRT).
    Cross,
}

impl Class {
    /// Both.
    pub const ALL: [Class; 2] = [Class::Local, Class::Cross];

    /// In tables and data.
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Cross => "cross-region",
        }
    }

    /// Of a call.
    pub fn of(made: &Made) -> Self {
        if made.job.crosses_regions {
            Self::Cross
        } else {
            Self::Local
        }
    }
}

/// The calls of a class.
#[derive(Debug, Clone, Default)]
pub struct Calls {
    /// Latencies of those that took effect, and of those that were given up.
    pub latencies: Latencies,
    /// How many of them were tried as often as may be, in vain.
    pub given_up: usize,
    /// How many were refused otherwise.
    pub refused: usize,
    /// Tries that did not commit.
    pub aborts: usize,
    /// What the latencies consist of.
    pub parts: Shares,
    /// What the calls waited for at a replica, whether or not it held up their answers.
    pub waits: Shares,
}

impl Calls {
    /// Those that took effect.
    pub fn count(&self) -> usize {
        self.latencies.len() - self.given_up
    }
}

/// All measured calls.
#[derive(Debug, Clone)]
pub struct Measure {
    /// Measured so long.
    pub span: Nanos,
    /// Of [`Class::ALL`].
    pub classes: [Calls; 2],
    /// Calls asked more than once.
    pub asked_again: usize,
}

impl Measure {
    /// Of the calls asked in `from..until`, as far as they are answered.
    pub fn new(made: &[Made], from: SimTime, until: SimTime) -> Self {
        let mut measure = Self {
            span: until.since(from),
            classes: Default::default(),
            asked_again: 0,
        };
        for made in measured(made, from, until) {
            measure.add(made);
        }
        measure
    }

    fn add(&mut self, made: &Made) {
        let Some((_, answer)) = &made.answered else {
            return;
        };
        self.asked_again += usize::from(answer.attempts > 1);
        let calls = &mut self.classes[Class::of(made) as usize];
        if answer.given.is_err() && !answer.gave_up() {
            calls.refused += 1;
            return;
        }
        let given_up = usize::from(answer.gave_up());
        calls.given_up += given_up;
        calls.aborts += answer.attempts as usize + given_up - 1;
        calls.latencies.add(made.latency().unwrap_or_default());
        calls.parts.add(&made.why.parts);
        calls.waits.add(&made.why.waits);
    }

    /// The calls of a class.
    pub fn of(&self, class: Class) -> &Calls {
        &self.classes[class as usize]
    }

    /// Calls that took effect.
    pub fn count(&self) -> usize {
        self.classes.iter().map(Calls::count).sum()
    }

    /// So many, a second.
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    pub fn rate(&self, count: usize) -> f64 {
        count as f64 * 1e9 / self.span.0.max(1) as f64
    }
}

/// The calls asked in `from..until`.
pub fn measured(made: &[Made], from: SimTime, until: SimTime) -> impl Iterator<Item = &Made> {
    made.iter()
        .filter(move |made| (from..until).contains(&made.asked))
}
