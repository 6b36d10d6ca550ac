//! What nodes of SLOG send each other.

use std::sync::Arc;

use manxdb_common::pieces::Passed;
use manxdb_common::{Call, CallId, Given, Planned, RegionId};
use manxdb_core::{Message, Weight};
use manxdb_vr::GroupMessage;

use super::log::{Batch, LogState};
use crate::janus::Parents;

/// An entry of a region's log, as replicas are sent it.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The transaction.
    pub planned: Arc<Planned>,
    /// Under Detock: the nearest cross-region ones that it comes behind in the region.
    pub behind: Parents,
}

/// Under Detock: whom a cross-region transaction comes behind in one of its regions.
#[derive(Debug, Clone)]
pub struct Edge {
    /// The transaction.
    pub id: CallId,
    /// The shards it touches, ascending.
    pub shards: Arc<[u32]>,
    /// The region that tells.
    pub region: RegionId,
    /// The nearest cross-region transactions before it there.
    pub behind: Parents,
}

/// A message.
#[derive(Debug, Clone)]
pub enum SlogMessage {
    /// A client asks a coordinator.
    Submit {
        /// The call.
        call: Box<Call>,
    },
    /// The coordinator answers.
    Outcome {
        /// The call.
        id: CallId,
        /// What its pieces gave.
        given: Given,
    },
    /// To be ordered by the log of a region or, if it touches several, by the global one.
    Order {
        /// The transaction.
        planned: Arc<Planned>,
    },
    /// The next transaction of the global log that touches a region.
    Ordered {
        /// Its number among those that touch the region, from 1.
        number: u64,
        /// The transaction.
        planned: Arc<Planned>,
    },
    /// Members of a region's log.
    Region(GroupMessage<LogState, Batch>),
    /// Members of the global log.
    Global(GroupMessage<LogState, Batch>),
    /// What the region's log has for a shard, behind what was sent before.
    Entries {
        /// Entries of the shard before these.
        before: u64,
        /// The entries.
        entries: Arc<[Entry]>,
    },
    /// Under Detock: what a batch of a region's log says of the order of cross-region transactions, to
    /// all replicas of all regions.
    Edges {
        /// In the order of the log.
        edges: Arc<[Edge]>,
    },
    /// Under Detock: a transaction has run everywhere.
    Over {
        /// The transaction.
        id: CallId,
    },
    /// Values for another shard.
    Pass {
        /// The transaction.
        id: CallId,
        /// The values.
        passed: Passed,
    },
    /// What a shard's pieces gave, for the coordinator.
    Output {
        /// The transaction.
        id: CallId,
        /// The replica's shard.
        shard: u32,
        /// The values.
        given: Given,
    },
}

fn steps(batch: &Batch) -> u32 {
    let steps = batch.iter().map(|planned| planned.steps());
    steps.fold(0, u32::saturating_add)
}

impl Message for SlogMessage {
    fn weight(&self) -> Weight {
        let pieces = match self {
            Self::Submit { .. } => 1,
            Self::Order { planned } | Self::Ordered { planned, .. } => planned.steps(),
            Self::Entries { entries, .. } => {
                let steps = entries.iter().map(|entry| entry.planned.steps());
                steps.fold(0, u32::saturating_add)
            }
            Self::Region(GroupMessage::Prepare { entry, .. })
            | Self::Global(GroupMessage::Prepare { entry, .. }) => steps(entry),
            Self::Region(_) | Self::Global(_) | Self::Edges { .. } | Self::Over { .. } => {
                return Weight::Report;
            }
            Self::Outcome { .. } | Self::Pass { .. } | Self::Output { .. } => 0,
        };
        Weight::Call { pieces }
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Submit { .. } => "Submit",
            Self::Outcome { .. } => "Outcome",
            Self::Order { .. } => "Order",
            Self::Ordered { .. } => "Ordered",
            Self::Region(_) => "Region log",
            Self::Global(_) => "Global log",
            Self::Entries { .. } => "Entries",
            Self::Edges { .. } => "Edges",
            Self::Over { .. } => "Over",
            Self::Pass { .. } => "Pass",
            Self::Output { .. } => "Output",
        }
    }

    fn txn(&self) -> Option<u64> {
        let id = match self {
            Self::Submit { call } => call.id,
            Self::Order { planned } | Self::Ordered { planned, .. } => planned.id(),
            Self::Outcome { id, .. } | Self::Pass { id, .. } | Self::Output { id, .. } => *id,
            // Of several it is about none in particular.
            Self::Entries { entries, .. } if entries.len() == 1 => entries.first()?.planned.id(),
            Self::Edges { edges } if edges.len() == 1 => edges.first()?.id,
            Self::Over { id } => *id,
            Self::Region(_) | Self::Global(_) | Self::Entries { .. } | Self::Edges { .. } => {
                return None;
            }
        };
        Some(id.for_traces())
    }
}
