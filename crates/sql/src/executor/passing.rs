//! Locking reads that leave the rows alone which their conditions refuse.
//!
//! The conditions are asked of a row before it is locked, and once more when it is given out; so
//! they must answer the same both times and do nothing else.

use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::TxnError;
use manxdb_txn::transaction::{Look, Reach, View};

use super::operator::Run;
use super::prepared::Entries;
use super::scan::assemble;
use crate::encoding;
use crate::error::{SqlError, SqlResult};
use crate::plan::physical::{Access, Scan};
use crate::plan::{CompareOp, Expr, ExprKind, walk};
use crate::types::Value;

/// Whether the rows that `scan` reads are looked at before they are locked: there must be more
/// conditions than those that say where to look, or one that leaves out the end of a range, which is
/// read with it.
pub(super) fn passes_by(run: &Run<'_>, scan: &Scan) -> bool {
    run.txn().passes_rows_by(run.mode)
        && (scan.predicates.len() > scan.access.parts.len()
            || scan.predicates.iter().any(is_strict))
        && !scan
            .predicates
            .iter()
            .any(|predicate| walk::is_volatile(predicate) || walk::has_subquery(predicate))
}

/// Whether a condition is `<` or `>`.
fn is_strict(predicate: &Expr) -> bool {
    matches!(
        predicate.kind,
        ExprKind::Compare(CompareOp::Lt | CompareOp::Gt, ..)
    )
}

/// The next wanted entries of a range, and what is left of it.
pub(super) fn page(
    run: &Run<'_>,
    (scan, access): (&Scan, &Access),
    base: &[Value],
    (range, direction): (&KeyRange, Direction),
    reach: Reach,
) -> SqlResult<(Entries, Option<KeyRange>)> {
    let mut asking = Asking::new(run, scan, access.index.is_some(), base);
    let mut look = |view: &View<'_>, key: &[u8], value: &[u8]| asking.look(view, key, value);
    let txn = run.txn();
    let page = txn.scan_wanted(range, direction, reach, run.mode, &mut look);
    let page = asking.answer(page)?;
    Ok((page.entries, page.rest))
}

/// The value of a complete key, if it leads to a row that is wanted.
pub(super) fn get(
    run: &Run<'_>,
    (scan, access): (&Scan, &Access),
    base: &[Value],
    key: &[u8],
) -> SqlResult<Option<Vec<u8>>> {
    let mut asking = Asking::new(run, scan, access.index.is_some(), base);
    let mut look = |view: &View<'_>, key: &[u8], value: &[u8]| asking.look(view, key, value);
    let value = run.txn().get_wanted(key, run.mode, &mut look);
    asking.answer(value)
}

/// Asks the conditions of a scan.
struct Asking<'a> {
    run: &'a Run<'a>,
    scan: &'a Scan,
    by_index: bool,
    base: &'a [Value],
    /// Why it could not be told whether a row is wanted.
    failure: Option<SqlError>,
}

impl<'a> Asking<'a> {
    fn new(run: &'a Run<'a>, scan: &'a Scan, by_index: bool, base: &'a [Value]) -> Self {
        Self {
            run,
            scan,
            by_index,
            base,
            failure: None,
        }
    }

    fn look(&mut self, view: &View<'_>, key: &[u8], value: &[u8]) -> Result<Look, TxnError> {
        self.verdict(view, key, value).map_err(|failure| {
            self.failure = Some(failure);
            TxnError::Interrupted
        })
    }

    fn verdict(&self, view: &View<'_>, key: &[u8], value: &[u8]) -> SqlResult<Look> {
        self.run.tick()?;
        let warnings = &self.run.context.eval.warnings;
        let before = warnings.borrow().len();
        let (row_key, record) = if self.by_index {
            let row_key = encoding::row_key(&self.scan.table, value);
            let Some(record) = view.get(&row_key)? else {
                return Ok(Look::Passed);
            };
            (Some(row_key), record)
        } else {
            (None, value.to_vec())
        };
        let suffix = row_key.as_deref().unwrap_or(key);
        let suffix = suffix.get(encoding::KEY_HEAD..).unwrap_or_default();
        let row = assemble(self.run, self.scan, self.base, &record, suffix.to_vec())?;
        if !self.run.holds(&self.scan.predicates, &row)? {
            return Ok(Look::Passed);
        }
        // They are asked once more, and warn then.
        warnings.borrow_mut().truncate(before);
        Ok(Look::Wanted(row_key))
    }

    fn answer<T>(self, answer: Result<T, TxnError>) -> SqlResult<T> {
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok(answer?),
        }
    }
}
