//! What one-sided commits are compared with: snapshot isolation with two-phase commit, where a
//! server's processor has its part in every message.
//!
//! Products are partitioned over resource managers. A client reads at its snapshot from them, and
//! sends what it wants to write to the transaction manager, which takes a commit number, has all
//! resource managers concerned check and lock, and tells them to install or to let go (Binnig et
//! al., §4.1 and Figure 5a). The timestamp service lives in the transaction manager, as in the
//! paper's measurement. What the paper's optimised variant overlaps is overlapped here: the number
//! is taken while nobody waits for it, and the client hears of a commit as soon as it is decided.
//! A snapshot comes with the answer before, so that beginning costs no message.
//!
//! Messages go through a [`Line`]: TCP for `trad-si`, [`crate::mailbox`] for `two-sided`.

mod client;
mod line;
mod manager;
mod resource;

use serde::{Deserialize, Serialize};

pub use client::TwoPhase;
pub use line::{Line, TcpLine};
pub use manager::Manager;
pub use resource::Resource;

use crate::shop::CheckoutOutcome;

/// A number that commits are ordered by; 0 is what was there at the beginning.
pub type CommitNumber = u64;

/// A record as it is read: the number of its version, and the version.
pub type Version = (CommitNumber, Vec<u8>);

/// A product to be written, with the version that was read of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// Which product.
    pub product: u64,
    /// The version that was read.
    pub read: CommitNumber,
    /// What it becomes.
    pub value: Vec<u8>,
}

/// What is asked of a resource manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToResource {
    /// Products of its own, as of a snapshot.
    Read(CommitNumber, Vec<u64>),
    /// Whether these could be written and inserted; if so, they are locked.
    Prepare(CommitNumber, Vec<Write>, Vec<Vec<u8>>),
    /// What it has locked for this number: to be installed, or to be let go.
    Decide(CommitNumber, bool),
    /// What it has.
    Audit,
}

/// What a resource manager says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromResource {
    /// In the order of the question; none: its versions are all newer.
    Records(Vec<Option<Version>>),
    /// It is locked, or cannot be.
    Vote(bool),
    /// It is installed, or let go.
    Decided,
    /// Products sold, and records of orders.
    Books(u64, u64),
}

/// What is asked of the transaction manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToManager {
    /// A snapshot.
    Begin,
    /// The same, once nothing is being committed.
    Rest,
    /// To write these, and to insert those records of an order.
    Commit(Vec<Write>, Vec<Vec<u8>>),
}

/// What the transaction manager says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FromManager {
    /// Whether it is committed; none if nothing was to be.
    pub is_committed: Option<bool>,
    /// A snapshot: everything up to it is installed.
    pub snapshot: CommitNumber,
}

impl FromManager {
    fn verdict(&self) -> CheckoutOutcome {
        match self.is_committed {
            Some(true) => CheckoutOutcome::Committed,
            _ => CheckoutOutcome::Aborted,
        }
    }
}

/// The resource manager that has a product, of so many.
fn home(product: u64, resources: usize) -> usize {
    let count = resources.max(1) as u64;
    usize::try_from(product % count).unwrap_or(0)
}
