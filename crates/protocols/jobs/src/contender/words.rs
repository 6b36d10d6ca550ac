//! What a control plane hears and says, and what its timers are for.

use manxdb_core::Weight;

use crate::control::Report;
use crate::election::{FromStore, Standing, Term, ToStore};
use crate::message::Message;

/// Messages that a control plane sends and receives.
#[derive(Debug, Clone)]
pub enum Word {
    /// To and from databases and workers.
    Pool(Message),
    /// To its store.
    ToStore(ToStore),
    /// From there.
    FromStore(FromStore),
}

impl manxdb_core::Message for Word {
    fn weight(&self) -> Weight {
        match self {
            Self::Pool(message) => message.weight(),
            Self::ToStore(_) | Self::FromStore(_) => Weight::Call { pieces: 1 },
        }
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Pool(message) => message.label(),
            Self::ToStore(ToStore::Campaign { .. }) => "campaign",
            Self::ToStore(ToStore::Renew { .. }) => "renew",
            Self::ToStore(ToStore::Write { .. }) => "write",
            Self::ToStore(ToStore::Resign { .. }) => "resign",
            Self::FromStore(FromStore::Elected { .. }) => "elected",
            Self::FromStore(FromStore::Taken { .. }) => "taken",
            Self::FromStore(FromStore::Renewed { .. }) => "renewed",
            Self::FromStore(FromStore::Written { .. }) => "written",
            Self::FromStore(FromStore::Deposed { .. }) => "deposed",
        }
    }
}

/// Requests of operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaneAsk {
    /// The state of the pool?
    Report,
    /// Which control plane leads?
    Standing,
    /// Shut down: give the leadership back. Answered with a [`Standing`].
    End,
}

/// Answers to operators.
#[derive(Debug, Clone)]
pub enum PlaneAnswer {
    /// The state of the pool.
    Report(Box<Report>),
    /// Which control plane leads.
    Standing(Standing),
}

/// What its timers are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// To ask the store again.
    Again,
    /// Of the control plane of this term.
    Ticks(Term),
}
