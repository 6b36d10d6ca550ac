//! Runs plans: pull operators over one transaction.

use manxdb_txn::{ReadMode, Transaction, Waiter};

use crate::binder::VirtualTables;
use crate::catalog::Catalog;
use crate::error::SqlResult;
use crate::expr::{EvalContext, Subqueries};
use crate::planner::Plan;
use crate::types::{Row, Value};

/// What running depends on; one per statement execution.
pub struct ExecContext<'a> {
    /// The transaction, with its snapshot.
    pub txn: &'a Transaction,
    /// The catalog snapshot the plan was made under.
    pub catalog: &'a Catalog,
    /// Computed tables.
    pub virtual_tables: &'a dyn VirtualTables,
    /// Kill and time-out checks, made every few rows.
    pub waiter: &'a dyn Waiter,
    /// Parameters, time, variables, warnings. Its `subqueries` is a
    /// [`SubqueryRunner`].
    pub eval: &'a EvalContext<'a>,
    /// Bytes one statement may hold in sorts, hash tables and materialised results.
    pub memory_limit: usize,
    /// AUTO_INCREMENT counters and hidden row ids.
    pub sequences: &'a crate::catalog::Sequences,
    /// `foreign_key_checks`.
    pub foreign_key_checks: bool,
    /// `unique_checks`; unique keys are checked in any case.
    pub unique_checks: bool,
}

/// Runs the subqueries of one statement execution: what [`EvalContext::subqueries`] points to.
/// Made before the [`EvalContext`], which it is handed back on every call.
pub struct SubqueryRunner<'a> {
    _txn: &'a Transaction,
}

impl<'a> SubqueryRunner<'a> {
    /// One per statement execution: it remembers the rows of uncorrelated subqueries.
    #[must_use]
    pub fn new(
        txn: &'a Transaction,
        _catalog: &'a Catalog,
        _virtual_tables: &'a dyn VirtualTables,
        _waiter: &'a dyn Waiter,
        _memory_limit: usize,
    ) -> Self {
        Self { _txn: txn }
    }
}

impl Subqueries for SubqueryRunner<'_> {
    fn run(
        &self,
        _eval: &EvalContext<'_>,
        _plan: &Plan,
        _outer: &[&[Value]],
        _each: &mut dyn FnMut(Row) -> SqlResult<bool>,
    ) -> SqlResult<()> {
        Err(crate::error::SqlError::not_supported("subqueries"))
    }
}

/// Runs `plan`; `outer` are rows of enclosing queries, innermost first. Stops early when `each`
/// returns false. `mode` overrides the read mode of the plan's base tables for UPDATE and DELETE.
///
/// # Errors
/// Evaluation, storage, interruption; 1038 past the memory limit.
pub fn run(
    _context: &ExecContext<'_>,
    _plan: &Plan,
    _outer: &[&[Value]],
    _mode: Option<ReadMode>,
    _each: &mut dyn FnMut(Row) -> SqlResult<bool>,
) -> SqlResult<()> {
    Err(crate::error::SqlError::not_supported("SELECT"))
}
