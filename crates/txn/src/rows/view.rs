//! The rows one piece sees.

use manxdb_core::check::deep;
use manxdb_storage::{Direction, KeyRange};

use super::Rows;
use super::key::RowKey;
use super::overlay::Change;
use crate::error::TxnError;
use crate::model::{Page, ReadSet};
use crate::procedure::{
    Placement, Procedure, ProcedureError, ProcedurePiece, RowView, ShardId, Touch, Values,
    as_planned,
};

/// Runs a piece on the rows of its shard. A piece that fails leaves no trace.
///
/// A piece that reaches beyond its touches fails, in a release too: its touches decide in which order
/// pieces run, and what lies outside of them differs between the copies of a shard. It is an error and not a
/// panic, because each copy comes to the same one, and one that stops would come to it again when it starts.
///
/// # Errors
/// The procedure's own, [`TxnError::Procedure`] among them when it touches what it did not say;
/// [`ProcedureError::Plan`] when it gives other values than planned.
pub fn run_piece(
    procedure: &dyn Procedure,
    placement: &dyn Placement,
    args: &[u8],
    piece: &ProcedurePiece,
    inputs: &Values,
    rows: &mut Rows,
) -> Result<Values, ProcedureError> {
    let before = rows.digest();
    let touches = procedure.touches(piece, args);
    let mut view = PieceRows::new(rows, placement, piece.shard).keep_within(touches);
    let given = procedure.run(piece, args, inputs, &mut view);
    let given = given.and_then(|given| as_planned(piece, given));
    if given.is_err() {
        view.undo();
        assert_eq!(rows.digest(), before, "a piece that fails leaves no trace");
        if deep() {
            assert_eq!(rows.check(), Ok(()));
        }
    }
    given
}

/// [`Rows`] as far as they are one piece's, with its writes in them at once.
pub struct PieceRows<'a> {
    rows: &'a mut Rows,
    placement: &'a dyn Placement,
    shard: ShardId,
    touches: Option<Vec<Touch>>,
    /// Keys written, each with what was changed there before.
    undo: Vec<(RowKey, Change)>,
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
        let key = RowKey::new(&key);
        let before = self.rows.change(key.clone(), value);
        self.undo.push((key, before));
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::procedure::OneShard;
    use crate::rows::NoRows;

    /// Writes a key for each byte of its arguments, and gives up at a zero.
    struct Script {
        touches: Vec<Touch>,
        gives: Values,
    }

    impl Procedure for Script {
        fn name(&self) -> &'static str {
            "script"
        }

        fn plan(&self, _: &[u8], _: &dyn Placement) -> Result<Vec<ProcedurePiece>, ProcedureError> {
            Ok(Vec::new())
        }

        fn run(
            &self,
            _piece: &ProcedurePiece,
            args: &[u8],
            _inputs: &Values,
            rows: &mut dyn RowView,
        ) -> Result<Values, ProcedureError> {
            for byte in args {
                if *byte == 0 {
                    return Err(ProcedureError::Aborted("a zero".into()));
                }
                let count = rows.get(&[*byte])?.map_or(0, |value| value[0]);
                rows.write(vec![*byte], Some(vec![count + 1]))?;
            }
            let _ = rows.scan(&KeyRange::prefix(&[1]), Direction::Forward, 9)?;
            Ok(self.gives.clone())
        }

        fn touches(&self, _piece: &ProcedurePiece, _args: &[u8]) -> Vec<Touch> {
            self.touches.clone()
        }
    }

    fn run(script: &Script, args: &[u8], rows: &mut Rows) -> Result<Values, ProcedureError> {
        let piece = ProcedurePiece {
            part: 0,
            shard: ShardId(0),
            needs: Vec::new(),
            gives: Vec::new(),
            steps: 1,
        };
        run_piece(script, &OneShard, args, &piece, &Values::new(), rows)
    }

    fn anywhere() -> Script {
        Script {
            touches: vec![Touch::everything()],
            gives: Values::new(),
        }
    }

    #[test]
    fn a_piece_that_fails_leaves_no_trace() {
        let mut rows = Rows::new(Arc::new(NoRows));
        run(&anywhere(), &[1, 2, 2], &mut rows).unwrap();
        let before = (rows.digest(), rows.get(&[2]));
        assert_eq!(before.1, Some(vec![2]));
        let failed = run(&anywhere(), &[2, 3, 2, 0], &mut rows);
        assert!(matches!(failed, Err(ProcedureError::Aborted(_))));
        assert_eq!((rows.digest(), rows.get(&[2])), before);
        assert_eq!(rows.changes().count(), 2);
    }

    #[test]
    fn a_piece_that_gives_what_it_did_not_plan_fails() {
        let mut rows = Rows::new(Arc::new(NoRows));
        let mut script = anywhere();
        script.gives.insert(crate::procedure::Slot(1), vec![1]);
        let failed = run(&script, &[1], &mut rows);
        assert!(matches!(failed, Err(ProcedureError::Plan(_))));
        assert_eq!(rows.changes().count(), 0);
    }

    #[test]
    fn a_piece_that_leaves_its_touches_fails() {
        let mut rows = Rows::new(Arc::new(NoRows));
        let range = Touch {
            range: KeyRange::prefix(&[1]),
            writes: false,
        };
        let within = Script {
            touches: vec![Touch::write(&[1]), range.clone()],
            gives: Values::new(),
        };
        run(&within, &[1], &mut rows).unwrap();
        let only_read = Script {
            touches: vec![Touch::read(&[1]), range],
            ..anywhere()
        };
        let without_range = Script {
            touches: vec![Touch::write(&[1])],
            ..anywhere()
        };
        for (script, args) in [
            (&within, &[1, 2][..]),
            (&only_read, &[1]),
            (&without_range, &[1]),
        ] {
            let failed = run(script, args, &mut rows);
            assert!(
                failed
                    .unwrap_err()
                    .to_string()
                    .contains("outside of its touches")
            );
        }
    }
}
