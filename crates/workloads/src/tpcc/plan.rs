//! Plans of transactions that stay at home.

use manxdb_txn::procedure::{Piece, Placement, Slot};

use crate::Partition;

/// One piece at warehouse `w` that gives one value.
pub(super) fn one_piece(
    w: Partition,
    placement: &dyn Placement,
    slot: Slot,
    steps: u32,
) -> Vec<Piece> {
    vec![Piece {
        part: 0,
        shard: placement.shard_of(&w.prefix()),
        needs: Vec::new(),
        gives: vec![slot],
        steps,
    }]
}
