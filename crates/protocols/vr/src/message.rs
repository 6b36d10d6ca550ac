//! What members of a group send each other.

use serde::{Deserialize, Serialize};

/// All that a member knows: the state up to `committed`, and what follows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Copy<S, E> {
    /// The state with the first `committed` entries applied.
    pub state: S,
    /// Entries applied in `state`.
    pub committed: u64,
    /// Entries behind them.
    pub log: Vec<E>,
}

impl<S, E> Copy<S, E> {
    /// Number of the last entry known.
    pub fn last(&self) -> u64 {
        self.committed + self.log.len() as u64
    }
}

/// Names and numbers as in "Viewstamped Replication Revisited", §4.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum GroupMessage<S, E> {
    /// The leader of `view` wants `entry` at place `number`; `committed` entries are.
    Prepare {
        /// The leader's view.
        view: u64,
        /// The place of the entry, counted from 1.
        number: u64,
        /// The entry.
        entry: E,
        /// Entries committed so far.
        committed: u64,
    },
    /// The sender holds everything up to `number`.
    PrepareOk {
        /// The view it follows.
        view: u64,
        /// The last entry it holds.
        number: u64,
    },
    /// A sign of life, and how much is committed.
    Commit {
        /// The leader's view.
        view: u64,
        /// Entries committed so far.
        committed: u64,
    },
    /// The sender has given up the leader of an earlier view.
    StartViewChange {
        /// The view it wants.
        view: u64,
    },
    /// To the leader of the new view: all that the sender knows.
    DoViewChange {
        /// The new view.
        view: u64,
        /// The last view in which the sender was normal.
        last_normal: u64,
        /// What it knows.
        copy: Copy<S, E>,
    },
    /// The new leader begins its view with this.
    StartView {
        /// The new view.
        view: u64,
        /// What holds.
        copy: Copy<S, E>,
    },
    /// A member that lost its memory asks what holds.
    Recovery {
        /// Answers to earlier attempts do not count.
        nonce: u64,
    },
    /// An answer to it.
    RecoveryResponse {
        /// The view of the sender.
        view: u64,
        /// Of the question.
        nonce: u64,
        /// What holds, if the sender is the leader of `view`.
        copy: Option<Copy<S, E>>,
    },
    /// A member that follows `view` misses entries.
    GetState {
        /// The view it follows.
        view: u64,
    },
}
