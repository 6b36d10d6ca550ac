//! The rows one piece sees.

use manxdb_storage::{Direction, KeyRange};

use super::Rows;
use super::overlay::Change;
use crate::path::{Page, ReadSet, TxnError};
use crate::procedure::{
    Piece, Placement, Procedure, ProcedureError, RowView, ShardId, Touch, Values,
};

/// Runs a piece on the rows of its shard. A piece that fails leaves no trace.
///
/// In debug builds a piece that reaches beyond its touches fails.
///
/// # Errors
/// The procedure's own; [`ProcedureError::Plan`] when it gives other values than planned.
pub fn run_piece(
    procedure: &dyn Procedure,
    placement: &dyn Placement,
    args: &[u8],
    piece: &Piece,
    inputs: &Values,
    rows: &mut Rows,
) -> Result<Values, ProcedureError> {
    let mut view = PieceRows::new(rows, placement, piece.shard);
    if cfg!(debug_assertions) {
        view = view.keep_within(procedure.touches(piece, args));
    }
    let given = procedure.run(piece, args, inputs, &mut view);
    let given = given.and_then(|given| as_planned(piece, given));
    if given.is_err() {
        view.undo();
    }
    given
}

fn as_planned(piece: &Piece, given: Values) -> Result<Values, ProcedureError> {
    let is_there = |slot| given.contains_key(slot);
    if given.len() == piece.gives.len() && piece.gives.iter().all(is_there) {
        return Ok(given);
    }
    let what = format!("part {} gave other values than it planned", piece.part);
    Err(ProcedureError::Plan(what))
}

/// [`Rows`] as far as they are one piece's, with its writes in them at once.
pub struct PieceRows<'a> {
    rows: &'a mut Rows,
    placement: &'a dyn Placement,
    shard: ShardId,
    touches: Option<Vec<Touch>>,
    /// Keys written, each with what was changed there before.
    undo: Vec<(Vec<u8>, Change)>,
}

impl<'a> PieceRows<'a> {
    /// The rows of `shard`.
    pub fn new(rows: &'a mut Rows, placement: &'a dyn Placement, shard: ShardId) -> Self {
        Self {
            rows,
            placement,
            shard,
            touches: None,
            undo: Vec::new(),
        }
    }

    /// Refuses whatever lies outside of `touches`.
    #[must_use]
    pub fn keep_within(mut self, touches: Vec<Touch>) -> Self {
        self.touches = Some(touches);
        self
    }

    /// Takes back all writes.
    pub fn undo(&mut self) {
        for (key, before) in self.undo.drain(..).rev() {
            self.rows.restore(key, before);
        }
    }

    fn check(&self, key: &[u8], writes: bool) -> Result<(), TxnError> {
        if self.placement.shard_of(key) != self.shard {
            return Err(self.outside("another shard's key", key));
        }
        let Some(touches) = &self.touches else {
            return Ok(());
        };
        let covers = |touch: &Touch| (touch.writes || !writes) && touch.range.contains(key);
        if touches.iter().any(covers) {
            return Ok(());
        }
        Err(self.outside("a key outside of its touches", key))
    }

    fn check_range(&self, range: &KeyRange) -> Result<(), TxnError> {
        let Some(touches) = &self.touches else {
            return Ok(());
        };
        let covers = |touch: &Touch| touch.range.contains_range(range);
        if touches.iter().any(covers) {
            return Ok(());
        }
        let what = format!("{range:?}");
        Err(self.outside("a range outside of its touches", what.as_bytes()))
    }

    fn outside(&self, what: &str, key: &[u8]) -> TxnError {
        TxnError::Procedure {
            name: format!("piece on shard {}", self.shard.0),
            what: format!("touched {what}: {}", key.escape_ascii()),
        }
    }
}

impl RowView for PieceRows<'_> {
    fn holds(&self, key: &[u8]) -> bool {
        self.placement.shard_of(key) == self.shard
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, TxnError> {
        self.check(key, false)?;
        Ok(self.rows.get(key))
    }

    fn get_for_update(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, TxnError> {
        self.check(key, true)?;
        Ok(self.rows.get(key))
    }

    fn scan(
        &mut self,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Page, TxnError> {
        self.check_range(range)?;
        let page = self.rows.scan(range, direction, limit);
        for (key, _) in &page {
            self.check(key, false)?;
        }
        Ok(page)
    }

    fn write(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) -> Result<(), TxnError> {
        self.check(&key, true)?;
        self.undo.push((key.clone(), self.rows.change(&key)));
        self.rows.write(key, value);
        Ok(())
    }

    /// These rows have no versions: intents of sessions need a path that keeps them.
    fn still_true(&mut self, reads: &ReadSet) -> Result<bool, TxnError> {
        let is_empty = reads.points.is_empty() && reads.ranges.is_empty();
        if is_empty {
            return Ok(true);
        }
        Err(TxnError::Procedure {
            name: format!("piece on shard {}", self.shard.0),
            what: "rows without versions cannot tell whether reads are still true".into(),
        })
    }
}
