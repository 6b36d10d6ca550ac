//! Election among several control planes: the messages between a contender and the store that all
//! of them share.
//!
//! ```text
//! contender                         store
//!    │ Campaign ▶                     │ no leader: the key is created, with a lease
//!    │◀ Elected: term, all records    │
//!    │ Write: term, records ▶         │ accepted only from the current term
//!    │◀ Written                       │
//!    │ Renew: term ▶                  │ the lease starts over
//!    │◀ Renewed                       │
//!    │                                │ not renewed: the key is gone, another may lead
//!    │ Write: term, records ▶         │
//!    │◀ Deposed                       │
//! ```
//!
//! Two mechanisms keep a deposed leader from doing harm. It stops serving by its own clock before
//! its lease can end ([`Lease`]), counted from the time of its request. If that clock stood still
//! (a frozen process), the store rejects writes of a term that is not the current one.

use std::sync::Arc;

use manxdb_core::Nanos;
use serde::{Deserialize, Serialize};

use crate::record::{Durable, Record};

/// The term of a leader. Later terms have higher numbers for as long as the store keeps its data.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Term(pub u64);

/// For how long a leader leads without a word from the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The lease that the store grants. The store counts from the arrival of the request, so the
    /// lease never ends earlier than this span after the request.
    pub span: Nanos,
    /// The leader stops this long before the end of its lease, for clocks of different speed.
    pub margin: Nanos,
    /// Interval of renewals, and of polls by contenders.
    pub every: Nanos,
}

impl Lease {
    /// A lease of `span`: the leader stops a fifth before its end, and renews it every fifth, or
    /// every second of a long one. With each renewal it sends again what the store has not
    /// accepted; until the store accepts a record, no message about it is sent.
    #[must_use]
    pub const fn of(span: Nanos) -> Self {
        const EVERY_MAX: Nanos = Nanos::from_secs(1);
        let fifth = Nanos(span.0 / 5);
        let every = if fifth.0 < EVERY_MAX.0 {
            fifth
        } else {
            EVERY_MAX
        };
        Self {
            span,
            margin: fifth,
            every,
        }
    }

    /// How long after asking for it a leader may serve.
    #[must_use]
    pub const fn serves(self) -> Nanos {
        Nanos(self.span.0.saturating_sub(self.margin.0))
    }
}

/// Why a leader does not lead any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The store did not renew its lease in time, or it stood still for too long.
    LeaseOver,
    /// The store says that its term is over.
    Deposed,
    /// It was elected when it did not wait for that any more.
    Late,
    /// It is told to end.
    Ends,
}

impl Why {
    /// For logs.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::LeaseOver => "the lease was not renewed in time",
            Self::Deposed => "the store says that its term is over",
            Self::Late => "the election took longer than the lease",
            Self::Ends => "it was told to end",
        }
    }
}

/// Requests of a control plane to the store. A lost request is sent again.
#[derive(Debug, Clone)]
pub enum ToStore {
    /// Makes this control plane the leader if there is none.
    Campaign {
        /// Counted, so that answers can be told apart.
        number: u64,
    },
    /// I still lead.
    Renew {
        /// Counted with campaigns.
        number: u64,
        /// Since which election.
        term: Term,
    },
    /// Keep these, in this order.
    Write {
        /// Of the leader of this term and no other.
        term: Term,
        /// Number of the first record, counted from 1 in each term: the store skips records that it
        /// has already stored.
        first: u64,
        /// What.
        records: Arc<[Record]>,
    },
    /// I do not lead any more.
    Resign {
        /// Since which election I did.
        term: Term,
        /// For logs.
        why: Why,
    },
}

/// Answers of the store.
#[derive(Debug, Clone)]
pub enum FromStore {
    /// You lead.
    Elected {
        /// Answer to this campaign.
        number: u64,
        /// Higher than that of all leaders before.
        term: Term,
        /// All that these have written.
        durable: Arc<Durable>,
    },
    /// Another control plane leads, or this one in its earlier life.
    Taken {
        /// Answer to this campaign.
        number: u64,
        /// The address that the leader advertises.
        leader: String,
    },
    /// Your lease begins anew.
    Renewed {
        /// Answer to this renewal.
        number: u64,
        /// Of which term.
        term: Term,
    },
    /// All records of this term up to this number are kept.
    Written {
        /// Which term.
        term: Term,
        /// Number of the last.
        through: u64,
    },
    /// This term is over.
    Deposed {
        /// Which.
        term: Term,
    },
}

/// The leader, as far as a control plane knows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standing {
    /// It does.
    pub leads: bool,
    /// Since which election, if it does. 0 where there is only one control plane.
    pub term: Term,
    /// The address that the leader advertises; empty when it is not known.
    pub leader: String,
}
