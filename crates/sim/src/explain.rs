//! Why a transaction took as long as it did: the chain of steps that led to its answer.
//!
//! Kept of each transaction are the steps of nodes that a message about it triggered, or that
//! said something about it. The answer left in one of them; that one was triggered by a message,
//! which left in an earlier one; and so on back to the request. Between them lie the network, the
//! line at a CPU and its work. A step that something else triggered (a timer, a message about no
//! transaction) ended a wait that the core has told of ([`manxdb_core::Action::Wait`]): the chain
//! goes on where the wait began. So the parts follow each other without gaps and add up to the
//! latency, to the nanosecond.

use std::collections::BTreeMap;

use manxdb_core::{Nanos, NodeId, Wait};

use crate::time::SimTime;
use crate::topology::LinkClass;

/// On its way between the workload and a node.
pub const CLIENT: &str = "client";
/// On its way to the same node.
pub const OWN: &str = "own message";
/// On its way within a region.
pub const LAN: &str = "network in the region";
/// On its way between regions.
pub const WAN: &str = "network between regions";
/// In line at a busy CPU.
pub const QUEUE: &str = "CPU queue";
/// On a CPU.
pub const WORK: &str = "CPU work";
/// Nobody said why: after faults, mostly until something lost was asked for again.
pub const OTHER: &str = "unexplained";

/// What made a node take a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// A message about the transaction.
    Message {
        /// The number of the step that sent it.
        sent_in: u64,
        /// Its name.
        label: &'static str,
        /// How far it came.
        class: LinkClass,
    },
    /// A request.
    Request,
    /// Something that is not about the transaction.
    Other,
}

/// A step of a node about a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Steps are numbered in the order in which they are taken.
    pub number: u64,
    /// Where.
    pub node: NodeId,
    /// What made the node take it.
    pub trigger: Trigger,
    /// When that arrived.
    pub arrived: SimTime,
    /// When its turn came.
    pub turn: SimTime,
    /// When the CPU was done with it; all that it sent left then.
    pub done: SimTime,
    /// Whether the transaction waits from then on, and for what, if the core said so.
    pub said: Option<Option<Wait>>,
    /// Whether it answered the request.
    pub answers: bool,
}

/// A part of a latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// What the time went into: a constant of this module, or a reason of the protocol.
    pub reason: &'static str,
    /// Of a message, its name.
    pub label: Option<&'static str>,
    /// The transaction that was waited for, if it was one.
    pub on: Option<u64>,
    /// Where; of a message, where it went.
    pub node: NodeId,
    /// From when.
    pub from: SimTime,
    /// Until when.
    pub until: SimTime,
}

impl Part {
    /// How long it took.
    #[must_use]
    pub fn span(&self) -> Nanos {
        self.until.since(self.from)
    }
}

/// Splits the time from `asked` to `answered` by what it went into. The parts are in order, none
/// is empty, each begins where the one before ends, and together they are the whole time.
#[must_use]
pub fn explain(asked: SimTime, answered: SimTime, steps: &[Step]) -> Vec<Part> {
    let mut chain = Chain {
        asked,
        until: answered,
        parts: Vec::new(),
    };
    let mut at = steps.iter().rposition(|step| step.answers);
    if let Some(step) = at.and_then(|place| steps.get(place)) {
        chain.add(step.done, CLIENT, step.node);
    }
    while let Some(place) = at {
        at = chain.follow(&steps[..=place]);
    }
    let node = steps.first().map_or(NodeId(0), |first| first.node);
    chain.add(asked, OTHER, node);
    chain.parts.reverse();
    chain.parts
}

/// Parts found so far, the last first.
struct Chain {
    asked: SimTime,
    /// What lies behind this is explained.
    until: SimTime,
    parts: Vec<Part>,
}

impl Chain {
    fn add(&mut self, from: SimTime, reason: &'static str, node: NodeId) {
        let part = Part {
            reason,
            label: None,
            on: None,
            node,
            from,
            until: self.until,
        };
        self.add_part(part);
    }

    fn add_part(&mut self, mut part: Part) {
        part.until = self.until;
        // With two servers a step may begin before an earlier one is done.
        part.from = part.from.clamp(self.asked, self.until.max(self.asked));
        if part.from < part.until {
            self.until = part.from;
            self.parts.push(part);
        }
    }

    /// Explains the last of the steps; the place of the one that led to it, if there is one.
    fn follow(&mut self, steps: &[Step]) -> Option<usize> {
        let (step, before) = steps.split_last()?;
        self.add(step.turn, WORK, step.node);
        self.add(step.arrived, QUEUE, step.node);
        match step.trigger {
            Trigger::Request => {
                self.add(self.asked, CLIENT, step.node);
                None
            }
            Trigger::Message {
                sent_in,
                label,
                class,
            } => {
                let place = before.iter().rposition(|step| step.number == sent_in)?;
                self.add_part(Part {
                    reason: match class {
                        LinkClass::Own => OWN,
                        LinkClass::Lan => LAN,
                        LinkClass::Wan => WAN,
                    },
                    label: Some(label),
                    on: None,
                    node: step.node,
                    from: before[place].done,
                    until: self.until,
                });
                Some(place)
            }
            Trigger::Other => self.follow_wait(step.node, before),
        }
    }

    /// Explains how the transaction came to wait at a node.
    fn follow_wait(&mut self, node: NodeId, before: &[Step]) -> Option<usize> {
        let here = |step: &Step| step.node == node;
        let said = before
            .iter()
            .rposition(|step| here(step) && step.said.is_some());
        if let Some(place) = said
            && let Some(Some(wait)) = before[place].said
        {
            self.add_part(Part {
                reason: wait.reason,
                label: None,
                on: wait.on,
                node,
                from: before[place].done,
                until: self.until,
            });
            return Some(place);
        }
        let place = before.iter().rposition(here)?;
        self.add(before[place].done, OTHER, node);
        Some(place)
    }
}

/// A time during which a transaction waited at a node, as the core has told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waited {
    /// Where.
    pub node: NodeId,
    /// What for.
    pub wait: Wait,
    /// From when.
    pub from: SimTime,
    /// Until when; none: it still does.
    pub until: Option<SimTime>,
}

/// All waits of a transaction at all nodes, also those that did not hold up its answer.
#[must_use]
pub fn waits(steps: &[Step]) -> Vec<Waited> {
    let mut open: BTreeMap<NodeId, usize> = BTreeMap::new();
    let mut waits: Vec<Waited> = Vec::new();
    for step in steps {
        let Some(said) = step.said else {
            continue;
        };
        if let Some(place) = open.remove(&step.node) {
            waits[place].until = Some(step.done);
        }
        if let Some(wait) = said {
            open.insert(step.node, waits.len());
            waits.push(Waited {
                node: step.node,
                wait,
                from: step.done,
                until: None,
            });
        }
    }
    waits
}

/// Steps by transaction.
#[derive(Debug, Default)]
pub struct Steps {
    wanted: bool,
    /// Of those that were taken, nothing more is kept.
    by_txn: BTreeMap<u64, Option<Vec<Step>>>,
}

impl Steps {
    pub(crate) fn new(wanted: bool) -> Self {
        Self {
            wanted,
            by_txn: BTreeMap::new(),
        }
    }

    /// Whether steps are kept at all.
    pub(crate) fn are_wanted(&self) -> bool {
        self.wanted
    }

    /// The entry of a step about a transaction, made when it is not there; none if the steps of
    /// the transaction were taken.
    pub(crate) fn note(&mut self, txn: u64, step: Step) -> Option<&mut Step> {
        let of_txn = self.by_txn.entry(txn);
        let steps = of_txn.or_insert_with(|| Some(Vec::new())).as_mut()?;
        if steps.last().is_none_or(|last| last.number != step.number) {
            steps.push(step);
        }
        steps.last_mut()
    }

    pub(crate) fn take(&mut self, txn: u64) -> Vec<Step> {
        if !self.wanted {
            return Vec::new();
        }
        let taken = self.by_txn.insert(txn, None);
        taken.flatten().unwrap_or_default()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, &[Step])> {
        let all = self.by_txn.iter();
        all.filter_map(|(txn, steps)| Some((*txn, steps.as_deref()?)))
    }
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
