//! Checks what transactions saw against Adya's definitions of isolation.
//!
//! A history is a list of transactions with what each read and wrote. Every write carries an
//! element that no other write carries, so a read tells whose write it saw. From that follow
//! three kinds of dependency between committed transactions: one overwrote the other
//! (`ww`), one read the other's write (`wr`), one read what the other then overwrote (`rw`). A
//! cycle of dependencies means that no serial order explains the history; which kinds
//! the cycle is made of names the anomaly. Nothing here knows how the database works.
#![allow(dead_code, unused_imports)]

pub mod graph;
mod observe;
mod random;

use std::collections::BTreeMap;

pub use observe::check;
pub use random::Random;

/// A row.
pub type Key = u8;

/// Names one write.
pub type Element = u32;

/// What a row held: the elements of a list, or none or one for a register.
pub type Value = Vec<Element>;

/// How rows are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// A write appends its element to what it read: the order of writes is in the data.
    List,
    /// A write replaces; the order of writes is the order of commit versions.
    Register,
}

/// One thing a transaction did, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Read rows; with `predicate`, all rows of a range, absent ones included.
    Read {
        rows: Vec<(Key, Value)>,
        predicate: bool,
    },
    /// Wrote (or appended) `element`; a register's deletion has one too, but `deletes`.
    Write {
        key: Key,
        element: Element,
        deletes: bool,
    },
    /// Took back everything after the first `steps` steps that was a write.
    Undo { steps: usize },
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Committed at this place in the commit order.
    Committed(u64),
    /// Rolled back, or refused.
    Aborted,
}

/// One transaction as its client saw it.
#[derive(Debug, Clone)]
pub struct Observed {
    pub steps: Vec<Step>,
    pub end: End,
    /// It wrote nothing and locked nothing.
    pub only_plain_reads: bool,
    /// Its level promises that what it read stays true up to its commit; else what others
    /// overwrite of it is no dependency.
    pub guards_reads: bool,
    /// Moment of the schedule at which it began.
    pub began: u64,
    /// Moment at which its client learned of its end.
    pub ended: u64,
}

impl Observed {
    pub fn is_committed(&self) -> bool {
        matches!(self.end, End::Committed(_))
    }
}

/// What can be wrong with a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Anomaly {
    /// A transaction did not read its own writes, or read them in a strange way.
    Internal,
    /// A committed write is not in the end state.
    LostWrite,
    /// Two reads of a list disagree on the order of its elements.
    IncompatibleOrder,
    /// G0: writes of two transactions interleave.
    DirtyWrite,
    /// G1a: read a write of an aborted transaction, or one taken back.
    AbortedRead,
    /// G1b: read a write that its transaction overwrote.
    IntermediateRead,
    /// G1c: a cycle of reads-from and overwrites.
    CircularInformation,
    /// G-single through a transaction of plain reads only: it saw parts of two states.
    InconsistentRead,
    /// G-single otherwise; with lost updates among it.
    SingleAntiDependency,
    /// G2-item: a cycle with several anti-dependencies, as write skew.
    ItemAntiDependency,
    /// G2: a cycle that needs an anti-dependency by a range, as a phantom.
    PredicateAntiDependency,
    /// Serializable, but not in an order that agrees with real time.
    StaleRead,
}

/// Anomalies found, each with one example in words.
pub type Anomalies = BTreeMap<Anomaly, String>;
