//! What a machine of keys has to be able to do so that its keys can move.

use crate::execute::Execute;
use crate::ids::Stamp;

use super::operation::{Piece, PieceLimits};
use super::slot::{Slot, SlotRange};

/// The keys of a command, whether it is recorded at witnesses or not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// Keys that it names.
    pub keys: Vec<Vec<u8>>,
    /// Whether it looks at all keys.
    pub is_all: bool,
    /// Whether it reads keys that only its execution names, which may be in any slot.
    pub is_scattered: bool,
}

/// What a group has of a run of slots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Survey {
    /// Keys.
    pub keys: u64,
    /// Bytes of the largest of them.
    pub largest_bytes: u64,
}

/// What a removal leaves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removal {
    /// What changes, for [`Execute::apply`].
    pub effects: Vec<u8>,
    /// The key up to which all are gone; nothing when all there are are gone.
    pub next: Option<Vec<u8>>,
}

/// A machine whose keys can move to another group. None of its commands, answers, effects and snapshots begins
/// with eleven bytes 0xFF.
///
/// As with [`Execute::execute`], what changes something has not happened before [`Execute::apply`] is given
/// the effects. Keys that touched sets name and keys here are the same bytes, and in one order.
pub trait Movable: Execute {
    /// Bytes of the largest key that can be written in one piece.
    const KEY_BYTES_MAX: u64;

    /// The keys of a command.
    fn named(command: &[u8]) -> Named;

    /// The slot of a key.
    fn slot(key: &[u8]) -> Slot;

    /// What there is in a run of slots. Looks at all keys.
    fn survey(&self, slots: SlotRange) -> Survey;

    /// Keys of these slots behind one, as they are.
    fn read_piece(&mut self, slots: SlotRange, after: Option<&[u8]>, limits: PieceLimits) -> Piece;

    /// The effects of writing a piece's keys; nothing when its bytes are none, or have a key of another
    /// slot.
    fn put_piece(&mut self, slots: SlotRange, piece: &[u8], stamp: Stamp) -> Option<Vec<u8>>;

    /// The effects of removing keys of these slots behind one.
    fn remove_piece(
        &mut self,
        slots: SlotRange,
        after: Option<&[u8]>,
        limits: PieceLimits,
        stamp: Stamp,
    ) -> Removal;

    /// Whether there is memory for more keys. Only asked by a master that takes a step, not in a replay.
    fn has_room(&self) -> bool {
        true
    }

    /// The defect that is planted in the machine around it.
    #[cfg(feature = "mutants")]
    fn planted(&self) -> Option<crate::mutants::SlotMutant> {
        None
    }
}
