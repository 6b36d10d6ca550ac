//! Histories of transactions that say which versions they read and wrote.
//!
//! A store that shows its versions needs no lists to be judged by: each read names the version it
//! got, and each write the one it was put upon. So the order of every key's versions is a chain,
//! from the last one back to the first, and the dependencies between transactions follow (Adya's
//! ww, wr and rw, as in [`crate::append`]). Snapshots are vectors: a version is named by its
//! writer and an ordinal, and a snapshot says how many of each writer's it has.
//!
//! | promise | broken by |
//! |---|---|
//! | what is acknowledged is in the chain, on what was read (the first committer wins) | [`Anomaly::LostWrite`], [`Anomaly::BlindWrite`] |
//! | a transaction is there as a whole or not at all | [`Anomaly::HalfCommit`] |
//! | versions are read that were committed, and what is in them (G1a, G1b) | [`Anomaly::AbortedRead`], [`Anomaly::ForeignValue`] |
//! | each read gets the newest version that its snapshot has | [`Anomaly::NotOfSnapshot`] |
//! | a snapshot that has a version has all that its writer had seen | [`Anomaly::BrokenCut`] |
//! | a session sees no less than before, and its own writes | [`Anomaly::SessionOrder`] |
//! | no cycle of ww (G0), of ww and wr (G1c), with one rw (G-single) | [`Anomaly::DirtyWrite`], [`Anomaly::CircularInformation`], [`Anomaly::SingleAntiDependency`] |
//! | at [`Level::Serializable`]: no cycle at all (G2) | [`Anomaly::AntiDependency`] |
//!
//! [`check`] is the way in; `order` has the chains, `judge` what is wrong without a cycle, `cycles`
//! the graph.

mod cycles;
mod judge;
mod order;
mod verdict;

use std::collections::BTreeMap;

pub use self::verdict::{Anomaly, Verdict, Violation};
pub use crate::append::Outcome;

/// Names a record.
pub type Key = u64;

/// A version's name: its writer, and its ordinal among that writer's versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Who.
    pub writer: u64,
    /// Counted from 1; 0 of any writer is in every snapshot.
    pub number: u64,
}

/// How many versions of each writer a transaction sees; of one who is not in it, none.
pub type Snapshot = BTreeMap<u64, u64>;

/// A read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// Of which record,
    pub key: Key,
    /// which version,
    pub version: Version,
    /// and what was in it.
    pub value: u64,
}

/// A write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write {
    /// Of which record,
    pub key: Key,
    /// upon which version,
    pub over: Version,
    /// and what it said.
    pub value: u64,
}

/// A transaction as its client saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// For messages.
    pub name: u64,
    /// The client: runs one transaction after another, in the order of the history.
    pub session: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// What all its writes are called; none: it writes nothing. A transaction that failed may
    /// leave its number to the next one.
    pub version: Option<Version>,
    /// What it was to see.
    pub snapshot: Snapshot,
    /// Each record once.
    pub reads: Vec<Read>,
    /// Each record once.
    pub writes: Vec<Write>,
}

/// What clients saw, and what there is at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// Those of each session in its order.
    pub transactions: Vec<Transaction>,
    /// The version and the value of every record before all of them.
    pub first: BTreeMap<Key, (Version, u64)>,
    /// The version of every record after all of them.
    pub last: BTreeMap<Key, Version>,
}

/// What a history has to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Write skew is allowed, and counted.
    Snapshot,
    /// There is a serial order.
    Serializable,
}

/// Judges a history.
#[must_use]
pub fn check(history: &History, level: Level) -> Verdict {
    let mut verdict = Verdict::new(level);
    let order = order::find(history, &mut verdict);
    judge::judge(history, &order, &mut verdict);
    cycles::find(history, &order, level, &mut verdict);
    verdict
}

/// Whether a snapshot has a version.
fn admits(snapshot: &Snapshot, version: Version) -> bool {
    version.number <= snapshot.get(&version.writer).copied().unwrap_or(0)
}

/// Whether a snapshot has all that another one has.
fn includes(snapshot: &Snapshot, other: &Snapshot) -> bool {
    let mut numbers = other.iter();
    numbers.all(|(writer, number)| {
        let writer = *writer;
        let number = *number;
        admits(snapshot, Version { writer, number })
    })
}
