//! Runs calls of procedures, one try at a time.

use std::thread;

use manxdb_fabric::{Fabric, Misuse};
use manxdb_rsi::rows::{Client, Failure, Transaction};
use manxdb_rsi::{Isolation, Span};
use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::procedure::{
    Placement, Procedure, ProcedureError, ProcedurePiece, RowView, Values, as_planned,
    in_running_order,
};
use manxdb_txn::{ReadSet, TxnError};

use super::bounds;
use super::plan::RowsPlan;
use crate::drive::{Driver, now};

/// Rows that are read at once when all are.
const PAGE: usize = 1_000;
/// Tries of a transaction that loads rows: nobody is in its way but those who load others.
const LOAD_TRIES: u32 = 1_000;

/// What came of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome {
    /// It is committed.
    Committed,
    /// Somebody else was there: to be tried again.
    Aborted,
}

/// Why calls cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CallError(pub String);

type Rows<'c, F> = Transaction<'c, Driver<F>>;
/// Rows with their keys.
type Page = Vec<(Vec<u8>, Vec<u8>)>;

/// A thread that makes calls.
pub struct Caller<F> {
    client: Client<Driver<F>>,
    isolation: Isolation,
}

impl<F: Fabric> Caller<F> {
    /// A thread of a plan by its number, which nobody else has or has had: a client, or a loader.
    ///
    /// # Errors
    /// [`CallError`]: the plan has no such thread.
    pub fn new(
        fabric: F,
        plan: RowsPlan,
        thread: u16,
        isolation: Isolation,
    ) -> Result<Self, CallError> {
        let client = plan.client(thread, Driver::new(fabric))?;
        Ok(Self { client, isolation })
    }

    /// Tries to run a call to its commit.
    ///
    /// # Errors
    /// [`CallError`]: the procedure refuses, or the memory does.
    pub fn call(
        &mut self,
        procedure: &dyn Procedure,
        args: &[u8],
        placement: &dyn Placement,
    ) -> Result<CallOutcome, CallError> {
        let failed = |error: ProcedureError| CallError(format!("{}: {error}", procedure.name()));
        let pieces = procedure.plan(args, placement).map_err(failed)?;
        let pieces = in_running_order(pieces).map_err(failed)?;
        let mut rows = match now(self.client.begin(self.isolation)) {
            Ok(rows) => rows,
            Err(failure) => return judge(failure),
        };
        let mut values = Values::new();
        for piece in pieces {
            let mut view = View {
                rows: &mut rows,
                placement,
                piece: &piece,
            };
            let inputs = piece.inputs(&values);
            let given = procedure.run(&piece, args, &inputs, &mut view);
            match given.and_then(|given| as_planned(&piece, given)) {
                Ok(given) => values.extend(given),
                Err(ProcedureError::Rows(TxnError::Conflict { .. })) => {
                    return Ok(CallOutcome::Aborted);
                }
                Err(error) => return Err(failed(error)),
            }
        }
        match now(rows.commit()) {
            Ok(_) => Ok(CallOutcome::Committed),
            Err(failure) => judge(failure),
        }
    }

    /// Writes rows, in one transaction.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn load(&mut self, page: &[(Vec<u8>, Vec<u8>)]) -> Result<(), CallError> {
        let failed = |failure: Failure<Misuse>| CallError(failure.to_string());
        for _ in 0..LOAD_TRIES {
            let mut rows = now(self.client.begin(Isolation::Snapshot)).map_err(failed)?;
            for (key, value) in page {
                rows.write(key.clone(), Some(value.clone()));
            }
            match now(rows.commit()) {
                Ok(_) => return Ok(()),
                Err(failure) if failure.is_conflict() => thread::yield_now(),
                Err(failure) => return Err(failed(failure)),
            }
        }
        Err(CallError(
            "rows cannot be loaded: others are in the way".into(),
        ))
    }

    /// All rows between two keys, as they are now.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn read_all(&mut self, range: &KeyRange) -> Result<Page, CallError> {
        let failed = |failure: Failure<Misuse>| CallError(failure.to_string());
        let mut rows = now(self.client.begin(Isolation::Snapshot)).map_err(failed)?;
        let mut span = span(range, Direction::Forward, PAGE);
        let mut all = Page::new();
        loop {
            let page = now(rows.scan(span.clone())).map_err(failed)?;
            let order = all.last().zip(page.first());
            assert!(
                order.is_none_or(|((last, _), (first, _))| last < first),
                "each row is read once, in the order of keys"
            );
            let is_last = page.len() < PAGE;
            if let Some((key, _)) = page.last() {
                span.begin_behind(key);
            }
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }
}

fn judge(failure: Failure<Misuse>) -> Result<CallOutcome, CallError> {
    if failure.is_conflict() {
        return Ok(CallOutcome::Aborted);
    }
    Err(CallError(failure.to_string()))
}

/// The rows of a piece: those of its shard.
struct View<'v, 'c, F> {
    rows: &'v mut Rows<'c, F>,
    placement: &'v dyn Placement,
    piece: &'v ProcedurePiece,
}

fn of_rows<T>(result: Result<T, Failure<Misuse>>) -> Result<T, TxnError> {
    result.map_err(|failure| {
        let what = failure.to_string();
        if failure.is_conflict() {
            TxnError::Conflict { what }
        } else {
            TxnError::Unknown(what)
        }
    })
}

impl<F: Fabric> RowView for View<'_, '_, F> {
    fn holds(&self, key: &[u8]) -> bool {
        self.placement.shard_of(key) == self.piece.shard
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, TxnError> {
        of_rows(now(self.rows.get(key)))
    }

    fn get_for_update(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, TxnError> {
        self.get(key)
    }

    fn scan(
        &mut self,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Page, TxnError> {
        of_rows(now(self.rows.scan(span(range, direction, limit))))
    }

    fn write(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) -> Result<(), TxnError> {
        self.rows.write(key, value);
        Ok(())
    }

    fn still_true(&mut self, _reads: &ReadSet) -> Result<bool, TxnError> {
        Err(TxnError::Procedure {
            name: format!("part {}", self.piece.part),
            what: "reads made elsewhere have no versions here".into(),
        })
    }
}

fn span(range: &KeyRange, direction: Direction, limit: usize) -> Span {
    let (low, high) = bounds::of(range);
    Span {
        low,
        high,
        descending: direction == Direction::Reverse,
        limit,
    }
}
