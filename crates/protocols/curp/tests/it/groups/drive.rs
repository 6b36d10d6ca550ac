//! A driver that moves slots, or one that cancels a move.

use manxdb_curp::slots::{Canceller, Mover, Side, SlotAnswer, SlotOperation, SlotRefusal};

/// What a driver does with a move.
pub enum Drive {
    Move(Mover),
    /// Whether it asks the target too.
    Cancel(Canceller, bool),
}

impl Drive {
    pub fn question(&self) -> Option<(Side, SlotOperation)> {
        match self {
            Self::Move(mover) => mover.question(),
            Self::Cancel(canceller, _) => canceller.question(),
        }
    }

    pub fn answered(&mut self, answer: SlotAnswer) {
        match self {
            Self::Move(mover) => mover.answered(answer),
            Self::Cancel(canceller, _) => canceller.answered(answer),
        }
    }

    pub fn again(&mut self) {
        match self {
            Self::Move(mover) => mover.again(),
            Self::Cancel(canceller, _) => canceller.again(),
        }
    }

    pub fn outcome(&self) -> Option<&Result<(), SlotRefusal>> {
        match self {
            Self::Move(mover) => mover.outcome(),
            Self::Cancel(canceller, _) => canceller.outcome(),
        }
    }
}
