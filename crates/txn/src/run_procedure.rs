//! Running all pieces of a call in one transaction.

use std::sync::Arc;

use manxdb_storage::{Direction, KeyRange};

use crate::error::TxnError;
use crate::model::{IsolationLevel, Page, ReadSet};
use crate::path::CommitPath;
use crate::procedure::{
    Call, Placement, Procedure, ProcedureError, ProcedurePiece, RowView, Values, as_planned,
    in_running_order,
};
use crate::transaction::{ReadMode, Transaction};
use crate::waiter::Waiter;

/// Times a call is run before its conflict is given to the caller.
const ATTEMPTS_MAX: usize = 16;

/// Runs a call to its commit on `path`, again after conflicts where that makes sense.
///
/// # Errors
/// [`TxnError::Procedure`], and the path's own.
pub fn run_attempts(
    path: &Arc<dyn CommitPath>,
    procedure: &dyn Procedure,
    placement: &dyn Placement,
    call: &Call,
    waiter: &Arc<dyn Waiter>,
) -> Result<Values, TxnError> {
    let mut attempts_left = if procedure.may_retry() {
        ATTEMPTS_MAX
    } else {
        1
    };
    loop {
        attempts_left -= 1;
        let (path, level) = (Arc::clone(path), IsolationLevel::Serializable);
        let txn = Transaction::begin(path, call.txn, level, Arc::clone(waiter));
        let answer = run_whole(procedure, placement, &call.args, &txn)
            .and_then(|values| txn.commit(call.durability).map(|_| values));
        match answer {
            Err(TxnError::Conflict { .. } | TxnError::Deadlock) if attempts_left > 0 => {
                waiter.check()?;
            }
            other => return other,
        }
    }
}

/// Runs all pieces inside `txn`, each once its inputs are there; the values of all of them.
/// Nothing is committed.
///
/// # Errors
/// [`TxnError::Procedure`] when the procedure refuses or its pieces wait for each other; the
/// transaction's own.
pub fn run_whole(
    procedure: &dyn Procedure,
    placement: &dyn Placement,
    args: &[u8],
    txn: &Transaction,
) -> Result<Values, TxnError> {
    let named = |failure: ProcedureError| failure.of(procedure.name());
    let pieces = procedure.plan(args, placement).map_err(named)?;
    let pieces = in_running_order(pieces).map_err(named)?;
    let mut values = Values::new();
    for piece in pieces {
        let given = run_piece(procedure, placement, args, &piece, &values, txn).map_err(named)?;
        values.extend(given);
    }
    Ok(values)
}

fn run_piece(
    procedure: &dyn Procedure,
    placement: &dyn Placement,
    args: &[u8],
    piece: &ProcedurePiece,
    values: &Values,
    txn: &Transaction,
) -> Result<Values, ProcedureError> {
    let inputs = piece.inputs(values);
    let mut rows = ShardRows {
        txn,
        placement,
        piece,
    };
    let given = procedure.run(piece, args, &inputs, &mut rows)?;
    as_planned(piece, given)
}

/// The transaction's rows as far as they are the piece's. A piece that reaches beyond its shard
/// fails here too, although this node has the row: elsewhere it would not.
struct ShardRows<'a> {
    txn: &'a Transaction,
    placement: &'a dyn Placement,
    piece: &'a ProcedurePiece,
}

impl ShardRows<'_> {
    fn check_key(&self, key: &[u8]) -> Result<(), TxnError> {
        let shard = self.placement.shard_of(key);
        if shard == self.piece.shard {
            return Ok(());
        }
        Err(TxnError::Procedure {
            name: format!("part {}", self.piece.part),
            what: format!(
                "runs on shard {} and touched key {} of shard {}",
                self.piece.shard.0,
                key.escape_ascii(),
                shard.0
            ),
        })
    }
}

impl RowView for ShardRows<'_> {
    fn holds(&self, key: &[u8]) -> bool {
        self.placement.shard_of(key) == self.piece.shard
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, TxnError> {
        self.check_key(key)?;
        self.txn.get(key, ReadMode::Plain)
    }

    fn get_for_update(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, TxnError> {
        self.check_key(key)?;
        self.txn.get(key, ReadMode::Update)
    }

    fn scan(
        &mut self,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Page, TxnError> {
        let page = self.txn.scan(range, direction, limit, ReadMode::Plain)?;
        for (key, _) in &page {
            self.check_key(key)?;
        }
        Ok(page)
    }

    fn write(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) -> Result<(), TxnError> {
        self.check_key(&key)?;
        match value {
            Some(value) => self.txn.put(key, value),
            None => self.txn.delete(key),
        }
    }

    fn still_true(&mut self, reads: &ReadSet) -> Result<bool, TxnError> {
        self.txn.rely_on(reads)
    }
}
