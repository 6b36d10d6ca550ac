//! Histories of transactions that read lists and append to them.
//!
//! A list shows the order of its writes to everyone who reads it: if a read found `[3, 7]`, then 3
//! was appended before 7, and nothing was in between. As no element is appended twice, a read
//! also says whose appends it saw. So the dependencies between transactions follow from what
//! clients saw alone (the idea of Elle, Kingsbury and Alvaro, VLDB 2020), in Adya's terms:
//!
//! | edge | from → to | because |
//! |---|---|---|
//! | ww | T1 → T2 | T2 appended next after T1 to some list |
//! | wr | T1 → T2 | T2 read a list up to T1's append |
//! | rw | T1 → T2 | T1 read a list up to just before T2's append |
//! | session | T1 → T2 | one client ran T2 after T1 |
//! | time | T1 → T2 | T1 completed before T2 was invoked |
//!
//! A serial order exists if the edges ww, wr and rw have no cycle. [`Level`] says which other
//! edges it has to respect.
//!
//! [`check`] is the way in; [`observe`](self) has the reading of lists, `edges` and `cycles` what
//! is in the graph, `verdict` the words.

mod cycles;
mod edges;
mod observe;
mod verdict;

use std::collections::BTreeMap;

pub use self::verdict::{Anomaly, Verdict, Violation};

/// Names a list.
pub type Key = u64;

/// What is appended; at most once in a history.
pub type Element = u64;

/// One thing a transaction did, in the transaction's own order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Read a whole list.
    Read {
        /// Which.
        key: Key,
        /// What was in it, oldest first.
        list: Vec<Element>,
    },
    /// Appended to a list.
    Append {
        /// Which; `None` when that depends on what the transaction read, and nobody learned it.
        key: Option<Key>,
        /// What.
        element: Element,
    },
}

/// What a client knows of the end of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was told that the transaction took effect.
    Ok,
    /// It was told that the transaction did not and never will take effect.
    Failed,
    /// It was told nothing, or nothing certain: the transaction may take effect even later.
    Unknown,
}

/// A transaction as its client saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// For messages.
    pub name: u64,
    /// The client: runs one transaction after another.
    pub session: u64,
    /// When it was sent, on one clock for all.
    pub invoked: u64,
    /// When its client learned of its outcome; means nothing when that is [`Outcome::Unknown`].
    pub completed: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// What it did. Reads count only in transactions that are [`Outcome::Ok`].
    pub operations: Vec<Operation>,
}

/// What clients saw, and what there is at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// In any order.
    pub transactions: Vec<Transaction>,
    /// All lists after every transaction had ended, if someone looked: then an acknowledged
    /// append that is missing is a loss, whatever order explains the reads.
    pub end_state: Option<BTreeMap<Key, Vec<Element>>>,
}

/// What a history has to be equal to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Some serial order of the transactions.
    Serializable,
    /// One in which the transactions of each session keep their order.
    Session,
    /// One that agrees with real time: a transaction invoked after another had completed comes
    /// after it.
    Strict,
}

/// Judges a history.
#[must_use]
pub fn check(history: &History, level: Level) -> Verdict {
    let mut verdict = Verdict::new(level);
    let observed = observe::observe(history, &mut verdict);
    let graph = edges::build(history, &observed, level);
    cycles::find(history, &graph, level, &mut verdict);
    verdict
}
