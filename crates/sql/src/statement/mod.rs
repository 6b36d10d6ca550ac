//! Statements that change something: DML as cacheable plans, DDL as direct actions.

pub mod ddl;

use sqlparser::ast;

use crate::binder::BindContext;
use crate::error::{SqlError, SqlResult};
use crate::executor::ExecContext;
use crate::planner::Plan;
use crate::types::DataType;

/// What a statement did, for the OK packet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Rows changed, MySQL's counting (an upsert that updates counts 2, an unchanged row 0).
    pub affected_rows: u64,
    /// Rows matched, for clients that asked for CLIENT_FOUND_ROWS.
    pub matched_rows: u64,
    /// First generated AUTO_INCREMENT value, 0 when none.
    pub last_insert_id: u64,
    /// `Rows matched: 1  Changed: 1  Warnings: 0` and the like.
    pub info: String,
}

/// A DML statement or query, ready to run any number of times.
#[derive(Debug, Clone)]
pub enum StatementPlan {
    /// SELECT and its kin.
    Query(Plan),
    /// INSERT, REPLACE, UPDATE, DELETE.
    Modify(Box<ModifyStatement>),
}

/// A planned INSERT, REPLACE, UPDATE or DELETE.
#[derive(Debug, Clone)]
pub struct ModifyStatement {
    /// Types inferred for `?`.
    pub param_types: Vec<DataType>,
}

/// Plans a query or DML statement; `None` for statements of another kind.
///
/// # Errors
/// Binding errors; 1235.
pub fn plan(
    _context: &BindContext<'_>,
    _statement: &ast::Statement,
) -> SqlResult<Option<StatementPlan>> {
    Err(SqlError::not_supported("statements"))
}

/// Runs a planned modification inside the context's transaction. A failure leaves the
/// transaction as before the statement.
///
/// # Errors
/// Constraint violations with MySQL's numbers; evaluation, storage, interruption.
pub fn run_modify(_context: &ExecContext<'_>, _plan: &ModifyStatement) -> SqlResult<Outcome> {
    Err(SqlError::not_supported("INSERT"))
}
