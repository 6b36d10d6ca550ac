//! One call after another on all shards: what every ordering path has to be equal to.

use super::{Rows, run_piece};
use crate::procedure::{Placement, Procedure, ProcedureError, ProcedurePiece, ShardId, Values};

/// Runs all pieces of a call, each on the rows of its shard; the values of all of them.
///
/// `rows` are those of shard 0, 1 and so on. Run over the calls of a history in its order, this is
/// the oracle for the state of every replica.
///
/// # Errors
/// The procedure's own; [`ProcedureError::Plan`] when a piece is of no shard in `rows`, or pieces
/// wait for each other. The rows are as before the failed piece, no earlier.
pub fn run_serially(
    procedure: &dyn Procedure,
    placement: &dyn Placement,
    args: &[u8],
    rows: &mut [Rows],
) -> Result<Values, ProcedureError> {
    let mut waiting = procedure.plan(args, placement)?;
    let mut values = Values::new();
    while !waiting.is_empty() {
        let has_inputs =
            |piece: &ProcedurePiece| piece.needs.iter().all(|slot| values.contains_key(slot));
        let Some(next) = waiting.iter().position(has_inputs) else {
            let what = "pieces wait for each other or for a value nobody gives";
            return Err(ProcedureError::Plan(what.into()));
        };
        let piece = waiting.remove(next);
        let inputs = piece.inputs(&values);
        let rows = rows_of(piece.shard, rows)?;
        let given = run_piece(procedure, placement, args, &piece, &inputs, rows)?;
        values.extend(given);
    }
    Ok(values)
}

fn rows_of(shard: ShardId, rows: &mut [Rows]) -> Result<&mut Rows, ProcedureError> {
    let index = usize::try_from(shard.0).unwrap_or(usize::MAX);
    let unknown = || ProcedureError::Plan(format!("there is no shard {}", shard.0));
    rows.get_mut(index).ok_or_else(unknown)
}
