//! A transaction that reads every row and adds up each table: what a client can ask where no
//! checker sees the rows.

use manxdb_storage::Direction;
use manxdb_txn::procedure::{
    Placement, Procedure, ProcedureError, ProcedurePiece, RowView, ShardId, Slot, Touch, Values,
};

use super::procedure::{Table, key_range, number};
use crate::Partition;
use crate::codec::{Cursor, arguments, malformed, strange_row};

/// Name of the procedure.
pub const TOTALS: &str = "tpca.totals";

/// Adds up each table. Its arguments: how many shards there are; one partition lives on each.
#[derive(Debug, Default, Clone, Copy)]
pub struct Totals;

/// The arguments of a call in a cluster of so many shards.
#[must_use]
pub fn encode_totals(shards: u32) -> Vec<u8> {
    shards.to_le_bytes().to_vec()
}

/// The sum of each table, from what the pieces of a call gave; none if they are not this
/// procedure's.
#[must_use]
pub fn read_totals(given: &[(u32, Vec<u8>)]) -> Option<[u64; 3]> {
    let mut totals = [0_u64; 3];
    for (_, value) in given {
        let mut sums = Cursor::new(value);
        for total in &mut totals {
            *total = total.wrapping_add(sums.u64()?);
        }
        if !sums.is_at_end() {
            return None;
        }
    }
    Some(totals)
}

fn partitions(args: &[u8]) -> Result<u32, ProcedureError> {
    arguments(TOTALS, args, |input| input.take().map(u32::from_le_bytes))
}

impl Procedure for Totals {
    fn name(&self) -> &'static str {
        TOTALS
    }

    fn plan(
        &self,
        args: &[u8],
        placement: &dyn Placement,
    ) -> Result<Vec<ProcedurePiece>, ProcedureError> {
        let piece = |part| ProcedurePiece {
            part,
            shard: placement.shard_of(&Partition(part).prefix()),
            needs: Vec::new(),
            gives: vec![Slot(part)],
            steps: 1,
        };
        let mut pieces = Vec::new();
        let mut seen: Vec<ShardId> = Vec::new();
        for part in 0..partitions(args)? {
            let piece = piece(part);
            // More partitions than shards are none of this workload's.
            if seen.contains(&piece.shard) {
                return Err(malformed(TOTALS));
            }
            seen.push(piece.shard);
            pieces.push(piece);
        }
        Ok(pieces)
    }

    fn run(
        &self,
        piece: &ProcedurePiece,
        _args: &[u8],
        _inputs: &Values,
        rows: &mut dyn RowView,
    ) -> Result<Values, ProcedureError> {
        let mut totals = [0_u64; 3];
        let range = key_range(Partition(piece.part));
        for (key, value) in rows.scan(&range, Direction::Forward, usize::MAX)? {
            let row = Table::of_key(&key).zip(number(&value));
            let ((table, _), count) = row.ok_or_else(|| strange_row(&key))?;
            totals[table as usize] += count;
        }
        let bytes = totals.iter().flat_map(|total| total.to_le_bytes());
        Ok(Values::from([(Slot(piece.part), bytes.collect())]))
    }

    fn touches(&self, piece: &ProcedurePiece, _args: &[u8]) -> Vec<Touch> {
        vec![Touch {
            range: key_range(Partition(piece.part)),
            writes: false,
        }]
    }
}
