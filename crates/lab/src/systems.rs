//! The systems that experiments compare: what each is called, and what it must bring along.
//!
//! A new system is one more line of [`SystemName`], one of its `run`, and an impl of
//! [`Candidate`] beside its own module.

use std::sync::Arc;

use manxdb_core::NodeId;
use manxdb_sim::system::{ReplyOf, RequestOf};
use manxdb_sim::{Link, System};
use manxdb_txn::procedure::{Registry, ShardId};
use manxdb_txn::rows::Rows;
use manxdb_workloads::{Request, Topology};
use serde::{Deserialize, Serialize};

use crate::dast::DastSystem;
use crate::figure::Look;
use crate::trial::{Trial, TrialError, TrialOutcome, measure};

/// A system under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SystemName {
    /// Local transactions never wait for cross-region ones.
    Dast,
}

impl SystemName {
    /// All of them, in the order of legends.
    pub const ALL: [SystemName; 1] = [SystemName::Dast];

    /// In figures and tables.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Dast => "DAST",
        }
    }

    /// In figures, the same in all of them.
    #[must_use]
    pub fn look(self) -> Look {
        Look::of(self as usize)
    }

    /// Runs a trial of it; `progress` hears which share of it is done.
    ///
    /// # Errors
    /// [`TrialError`].
    pub fn run(
        self,
        trial: &Trial,
        progress: &mut dyn FnMut(f64),
    ) -> Result<TrialOutcome, TrialError> {
        match self {
            Self::Dast => measure::<DastSystem>(trial, progress),
        }
    }
}

/// The rows of a shard at the start.
pub type FirstRows = Box<dyn Fn(ShardId) -> Rows>;

/// What every system is given.
pub struct Cluster {
    /// Where shards and keys are.
    pub topology: Topology,
    /// What can be asked.
    pub procedures: Arc<Registry>,
    /// The rows at the start.
    pub rows: FirstRows,
}

/// A system as experiments see it: nodes, of which the last are its clients.
pub trait Candidate: System + Sized {
    /// The system, set as for measurements.
    fn build(cluster: Cluster) -> Self;

    /// Where its nodes and clients are: so many clients in the region of each shard, numbered
    /// behind all servers. The clients, each with its home shard.
    fn place(
        &self,
        clients_per_shard: u32,
        lan: Link,
        wan: Link,
    ) -> (manxdb_sim::Topology, Vec<(NodeId, ShardId)>);

    /// What a server is, in a word.
    fn role(&self, server: NodeId) -> &'static str;

    /// A request as its clients take it.
    fn ask(request: Request, home: ShardId) -> RequestOf<Self>;

    /// Why a call failed, if it did.
    fn refusal(reply: &ReplyOf<Self>) -> Option<String>;
}
