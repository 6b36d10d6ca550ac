//! Where the time of calls went: the split of each latency, and of many together.

use std::collections::BTreeMap;

use manxdb_core::Nanos;
use manxdb_dast::waits::ATTEMPT;
use manxdb_sim::explain::{Step, explain, waits};
use manxdb_sim::{Latencies, SimTime};

/// Time by what it went into.
pub type Spans = Vec<(&'static str, Nanos)>;

/// Why one call took as long as it did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Why {
    /// Its latency along the steps that led to its answer: adds up to it exactly.
    pub parts: Spans,
    /// What it waited for at the node that waited longest for that, whether or not this held up
    /// the answer.
    pub waits: Spans,
}

impl Why {
    /// Of a call by the steps about it.
    #[must_use]
    pub fn of(asked: SimTime, answered: SimTime, steps: &[Step]) -> Self {
        let mut parts = BTreeMap::new();
        for part in explain(asked, answered, steps) {
            *parts.entry(part.reason).or_default() += part.span();
        }
        let mut at_nodes: BTreeMap<_, Nanos> = BTreeMap::new();
        // That a client waits for its answer goes without saying.
        let at_servers = waits(steps).into_iter();
        for waited in at_servers.filter(|waited| waited.wait.reason != ATTEMPT) {
            let until = waited.until.unwrap_or(answered);
            let entry = at_nodes.entry((waited.wait.reason, waited.node));
            *entry.or_default() += until.since(waited.from);
        }
        let mut waits: BTreeMap<&'static str, Nanos> = BTreeMap::new();
        for ((reason, _), span) in at_nodes {
            let longest = waits.entry(reason).or_default();
            *longest = span.max(*longest);
        }
        waits.retain(|_, span| *span > Nanos::ZERO);
        Self {
            parts: parts.into_iter().collect(),
            waits: waits.into_iter().collect(),
        }
    }
}

/// What one reason did to many calls.
#[derive(Debug, Clone, Default)]
pub struct Share {
    /// Of the calls that it took time of, how much.
    pub spans: Latencies,
    /// Of all together.
    pub sum: Nanos,
}

/// Time of many calls by what it went into.
#[derive(Debug, Clone, Default)]
pub struct Shares {
    by_reason: BTreeMap<&'static str, Share>,
}

impl Shares {
    /// Takes in one call's.
    pub fn add(&mut self, spans: &Spans) {
        for (reason, span) in spans {
            let share = self.by_reason.entry(reason).or_default();
            share.spans.add(*span);
            share.sum += *span;
        }
    }

    /// By reason, the largest sum first.
    #[must_use]
    pub fn largest_first(&self) -> Vec<(&'static str, Share)> {
        let all = self.by_reason.iter();
        let mut all: Vec<_> = all
            .map(|(reason, share)| (*reason, share.clone()))
            .collect();
        all.sort_by_key(|(reason, share)| (std::cmp::Reverse(share.sum), *reason));
        all
    }

    /// Of all reasons.
    #[must_use]
    pub fn sum(&self) -> Nanos {
        let all = self.by_reason.values();
        all.fold(Nanos::ZERO, |sum, share| sum + share.sum)
    }
}
