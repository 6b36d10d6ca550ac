//! What a step cost. Cores count, the simulator turns counts into time on a node's CPU.

use std::ops::AddAssign;

/// Size class of a message, for the cost of sending, receiving and decoding it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// A clock report or another notice of fixed size.
    Report,
    /// A call that carries this many pieces of transactions.
    Call {
        /// Pieces carried, as published systems cut transactions.
        pieces: u32,
    },
}

/// Work done inside one step, beside receiving its event and sending its messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Pieces of procedures executed, as published systems cut transactions.
    pub pieces: u32,
    /// Keys locked, unlocked or compared with a version.
    pub keys: u32,
    /// Vertices merged into a dependency graph.
    pub vertices: u32,
    /// Edges of a dependency graph examined.
    pub edges: u32,
    /// Vertices visited looking for cycles.
    pub visits: u32,
    /// Records appended to a log in memory.
    pub appends: u32,
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        self.pieces += other.pieces;
        self.keys += other.keys;
        self.vertices += other.vertices;
        self.edges += other.edges;
        self.visits += other.visits;
        self.appends += other.appends;
    }
}
