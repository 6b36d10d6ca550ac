//! From bound query to a plan that can be run any number of times.

use sqlparser::ast;

use crate::binder::{BindContext, Scope};
use crate::catalog::TableId;
use crate::error::{SqlError, SqlResult};
use crate::types::{ColumnMeta, DataType};

/// A query, ready to run. Immutable and shared between sessions through the plan cache.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Result columns.
    pub columns: Vec<ColumnMeta>,
    /// Types the `?` parameters were inferred to have, by position; `Null` when unknown.
    pub param_types: Vec<DataType>,
    /// Reads a row of an enclosing query.
    pub correlated: bool,
    /// Base tables read, for privileges and cache invalidation: (id, database, name).
    pub tables: Vec<(TableId, String, String)>,
    /// FOR UPDATE / FOR SHARE.
    pub locking: Locking,
}

/// Lock clause of a SELECT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Locking {
    /// Plain.
    #[default]
    None,
    /// FOR SHARE, LOCK IN SHARE MODE.
    Share,
    /// FOR UPDATE.
    Update,
}

/// Plans a whole query expression (SELECT, UNION, VALUES, WITH where supported).
///
/// # Errors
/// Binding errors; 1235 for what is not supported.
pub fn plan_query(_context: &BindContext<'_>, _query: &ast::Query) -> SqlResult<Plan> {
    Err(SqlError::not_supported("SELECT"))
}

/// A scan for UPDATE and DELETE: each row is the concatenation of the joined tables' columns
/// in FROM order, each table's block followed by one hidden column holding its row key suffix
/// as bytes (NULL for the missing side of an outer join).
#[derive(Debug, Clone)]
pub struct ModifyPlan {
    /// Rows to look at; read with [`manxdb_txn::ReadMode::Update`].
    pub plan: Plan,
    /// Names for SET expressions and the targets of a multi-table DELETE (hidden columns included,
    /// under names no client can write).
    pub scope: Scope,
    /// One entry a base table in FROM order: database, table, alias, first column in the row.
    pub tables: Vec<ModifyTable>,
}

/// A base table of a [`ModifyPlan`].
#[derive(Debug, Clone)]
pub struct ModifyTable {
    /// Database.
    pub database: String,
    /// Table.
    pub table: String,
    /// Alias.
    pub alias: String,
    /// Where its columns start in the row; the row key suffix follows the last of them.
    pub offset: usize,
}

/// Plans the scan of an UPDATE or DELETE.
///
/// # Errors
/// As [`plan_query`].
pub fn plan_modify(
    _context: &BindContext<'_>,
    _from: &[ast::TableWithJoins],
    _selection: Option<&ast::Expr>,
    _order_by: &[ast::OrderByExpr],
    _limit: Option<&ast::Expr>,
) -> SqlResult<ModifyPlan> {
    Err(SqlError::not_supported("UPDATE and DELETE"))
}
