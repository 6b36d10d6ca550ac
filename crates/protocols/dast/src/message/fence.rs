//! What regions say to each other to agree on who is fenced.

use serde::{Deserialize, Serialize};

use crate::fence::{Ballot, Change, News, Placed, Want};
use crate::timestamp::Timestamp;

/// What goes with a promise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise {
    /// What its region has accepted of the change.
    pub accepted: Option<(Ballot, Change)>,
    /// If a region is to be fenced: the mark up to which its stream is followed.
    pub mark: Timestamp,
    /// Its orders below that; if a region is to be taken in, those below the end of its stream that
    /// it may not have heard of.
    pub orders: Vec<Placed>,
    /// If a region is to be taken in: behind all marks and places of the sender.
    pub last: Timestamp,
    /// The places of the sender's transactions that were set aside.
    pub set_aside: Vec<Timestamp>,
}

/// From the leader of one region to the managers of another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FenceMessage {
    /// Promise to accept nothing under a smaller ballot.
    Prepare {
        /// Which change.
        number: u64,
        /// The ballot.
        ballot: Ballot,
        /// What for.
        want: Want,
    },
    /// The sender does.
    Promised {
        /// Which change.
        number: u64,
        /// The ballot.
        ballot: Ballot,
        /// What it knows.
        promise: Promise,
    },
    /// The sender has promised a larger ballot.
    Refused {
        /// Which change.
        number: u64,
        /// That one.
        promised: Ballot,
    },
    /// Accept this change.
    Accept {
        /// Which change.
        number: u64,
        /// The ballot.
        ballot: Ballot,
        /// What changes.
        change: Change,
    },
    /// The sender has accepted it.
    Accepted {
        /// Which change.
        number: u64,
        /// The ballot.
        ballot: Ballot,
    },
    /// More than half of the regions have accepted the changes up to an epoch. A receiver that has
    /// missed one before is told that first.
    Decided(News),
}
