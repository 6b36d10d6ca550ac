//! The order of a call's pieces.

use std::collections::BTreeSet;

use super::{ProcedureError, ProcedurePiece};

/// The order in which a call's pieces run, one after another: always the first that has its
/// inputs. Paths that run pieces side by side keep this order where the pieces meet.
///
/// # Errors
/// [`ProcedureError::Plan`] when pieces wait for each other or for a value nobody gives.
pub fn in_running_order(
    mut waiting: Vec<ProcedurePiece>,
) -> Result<Vec<ProcedurePiece>, ProcedureError> {
    let mut given = BTreeSet::new();
    let count = waiting.len();
    let mut ordered = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let has_inputs =
            |piece: &ProcedurePiece| piece.needs.iter().all(|slot| given.contains(slot));
        let Some(next) = waiting.iter().position(has_inputs) else {
            let what = "pieces wait for each other or for a value nobody gives";
            return Err(ProcedureError::Plan(what.into()));
        };
        let piece = waiting.remove(next);
        given.extend(piece.gives.iter().copied());
        ordered.push(piece);
    }
    assert_eq!(ordered.len(), count, "each piece runs once");
    Ok(ordered)
}
