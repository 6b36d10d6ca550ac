//! Which of several control planes leads: what each says to the store that all of them reach, and
//! what it hears.
//!
//! ```text
//! contender                         store
//!    │ Campaign ▶                     │ nobody leads: the key is taken, with a lease
//!    │◀ Elected: term, all records    │
//!    │ Write: term, records ▶         │ taken only of the term that leads
//!    │◀ Written                       │
//!    │ Renew: term ▶                  │ the lease begins anew
//!    │◀ Renewed                       │
//!    │                                │ not renewed: the key is gone, another one may lead
//!    │ Write: term, records ▶         │
//!    │◀ Deposed                       │
//! ```
//!
//! Two things keep a leader of before from doing harm. It stops serving by its own clock before its
//! lease can end ([`Lease`]), counted from when it asked for it. And should that clock have stood
//! still (a frozen process), the store takes no write of a term that does not lead.

use std::sync::Arc;

use manxdb_core::Nanos;
use serde::{Deserialize, Serialize};

use crate::record::{Durable, Record};

/// One time that somebody leads. Later ones have higher numbers, as long as the store keeps what
/// it has.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Term(pub u64);

/// For how long a leader leads without a word from the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// What the store is asked for. It counts from when the store heard of it, so never ends
    /// earlier than this span after it was asked.
    pub span: Nanos,
    /// So long before its end the leader stops: for clocks that do not run equally fast.
    pub margin: Nanos,
    /// How often it is renewed, and how often the others ask whether nobody leads.
    pub every: Nanos,
}

impl Lease {
    /// A lease of this span: given up a fifth before its end, renewed each fifth of it, and each
    /// second of a long one. Whatever the store did not take is sent again then too, and meanwhile
    /// nobody is told anything.
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

/// What a control plane asks of the store. Whatever gets lost is asked again.
#[derive(Debug, Clone)]
pub enum ToStore {
    /// Let me lead, if nobody does.
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
        /// Number of the first, counted from 1 in each term: what was kept before is not kept
        /// twice.
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

/// What the store answers.
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
    /// Somebody else leads, or your former self.
    Taken {
        /// Answer to this campaign.
        number: u64,
        /// What the leader calls itself.
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

/// Who leads, as far as a control plane knows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standing {
    /// It does.
    pub leads: bool,
    /// Since which election, if it does. 0 where there is only one control plane.
    pub term: Term,
    /// What the one that leads calls itself; empty when that is not known.
    pub leader: String,
}
