//! Faults as data: what goes wrong, when, and for how long.

mod plan;
mod text;

use manxdb_core::{Nanos, NodeId};

use crate::time::SimTime;
use crate::topology::{Ppm, RegionId};

pub use plan::{Choice, DownTogether, Plan, Profile};
pub use text::TextError;

/// Nodes meant together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Group {
    /// All of them; as one side of a partition, all that are not on the other side.
    All,
    /// All of a region.
    Region(RegionId),
    /// These.
    Nodes(Vec<NodeId>),
}

/// Links from one region to another; without a region, from or to every one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Between {
    /// Where messages come from.
    pub from: Option<RegionId>,
    /// Where they go.
    pub to: Option<RegionId>,
}

impl Between {
    /// Every link.
    pub const EVERYWHERE: Between = Between {
        from: None,
        to: None,
    };

    /// Whether links from one region to another are meant.
    pub fn covers(&self, from: RegionId, to: RegionId) -> bool {
        self.from.is_none_or(|region| region == from) && self.to.is_none_or(|region| region == to)
    }
}

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// The node's process ends, and starts again when the fault is over.
    Crash {
        /// Which.
        node: NodeId,
        /// Whether it starts with an empty disk.
        disk_lost: bool,
    },
    /// The node does nothing, and then goes on as if nothing had been.
    Pause {
        /// Which.
        node: NodeId,
    },
    /// The node's CPU is slow.
    Slow {
        /// Which.
        node: NodeId,
        /// So many times.
        times: u32,
    },
    /// The node's clock is set. It stays so: this is over at once.
    ClockStep {
        /// Which.
        node: NodeId,
        /// Nanoseconds forward; negative for back.
        by: i64,
    },
    /// The node's clock gains or loses.
    ClockDrift {
        /// Which.
        node: NodeId,
        /// Nanoseconds in a million.
        ppm: i64,
    },
    /// The node's clock stands still.
    ClockFreeze {
        /// Which.
        node: NodeId,
    },
    /// The node's syncs take longer.
    DiskSlow {
        /// Which.
        node: NodeId,
        /// So many times.
        times: u32,
    },
    /// Nothing more can be written on the node's disk.
    DiskFull {
        /// Which.
        node: NodeId,
    },
    /// The next sync of the node fails, which ends its process; it starts again when the fault
    /// is over, with what the disk has.
    DiskFails {
        /// Which.
        node: NodeId,
    },
    /// No message gets from one group to the other; the way back is open.
    Cut {
        /// From here.
        from: Group,
        /// To there.
        to: Group,
    },
    /// No message gets from one group to the other, or back.
    Part {
        /// One side.
        one: Group,
        /// The other.
        other: Group,
    },
    /// Packets are lost.
    Loss {
        /// On these links.
        between: Between,
        /// So many.
        share: Ppm,
    },
    /// Datagrams arrive twice.
    Duplicate {
        /// On these links.
        between: Between,
        /// So many.
        share: Ppm,
    },
    /// Messages are held up while others pass.
    Reorder {
        /// On these links.
        between: Between,
        /// So many.
        share: Ppm,
        /// By at most this much.
        by: Nanos,
    },
    /// One bit of datagrams flips.
    Flip {
        /// On these links.
        between: Between,
        /// Of so many.
        share: Ppm,
    },
    /// All messages take longer.
    Delay {
        /// On these links.
        between: Between,
        /// By this much.
        extra: Nanos,
    },
}

impl FaultKind {
    /// Its name in texts, tables and counters.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Crash {
                disk_lost: false, ..
            } => "crash",
            Self::Crash {
                disk_lost: true, ..
            } => "wipe",
            Self::Pause { .. } => "pause",
            Self::Slow { .. } => "slow",
            Self::ClockStep { .. } => "step",
            Self::ClockDrift { .. } => "drift",
            Self::ClockFreeze { .. } => "freeze",
            Self::DiskSlow { .. } => "disk-slow",
            Self::DiskFull { .. } => "disk-full",
            Self::DiskFails { .. } => "disk-fails",
            Self::Cut { .. } => "cut",
            Self::Part { .. } => "part",
            Self::Loss { .. } => "loss",
            Self::Duplicate { .. } => "duplicate",
            Self::Reorder { .. } => "reorder",
            Self::Flip { .. } => "flip",
            Self::Delay { .. } => "delay",
        }
    }

    /// The node that it happens to, if it is one.
    pub fn node(&self) -> Option<NodeId> {
        match self {
            Self::Crash { node, .. }
            | Self::Pause { node }
            | Self::Slow { node, .. }
            | Self::ClockStep { node, .. }
            | Self::ClockDrift { node, .. }
            | Self::ClockFreeze { node }
            | Self::DiskSlow { node, .. }
            | Self::DiskFull { node }
            | Self::DiskFails { node } => Some(*node),
            _ => None,
        }
    }

    /// Whether the node is away while it lasts: others cannot tell it from a crash.
    pub fn takes_node_down(&self) -> bool {
        matches!(
            self,
            Self::Crash { .. }
                | Self::Pause { .. }
                | Self::DiskFull { .. }
                | Self::DiskFails { .. }
        )
    }
}

/// Something that goes wrong, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// When it begins.
    pub at: SimTime,
    /// How long it lasts; then all is well again.
    pub lasts: Nanos,
    /// What it is.
    pub kind: FaultKind,
}

impl Fault {
    /// When it is over.
    pub fn ends(&self) -> SimTime {
        self.at + self.lasts
    }
}
