//! Plans of transactions that stay at home.

use manxdb_txn::procedure::{Placement, ProcedurePiece, Slot};

use crate::Partition;

/// One piece at warehouse `w` that gives one value.
pub(super) fn one_piece(
    w: Partition,
    placement: &dyn Placement,
    slot: Slot,
    steps: u32,
) -> Vec<ProcedurePiece> {
    vec![ProcedurePiece {
        part: 0,
        shard: placement.shard_of(&w.prefix()),
        needs: Vec::new(),
        gives: vec![slot],
        steps,
    }]
}
