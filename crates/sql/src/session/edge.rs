//! The edge to the rooms that change the catalog: everything the session asks of them.

use sqlparser::ast::Statement;

use super::instance::Instance;
use super::session::Session;
use crate::catalog::Table;
use crate::error::{SqlError, SqlResult};
use crate::expr::{EvalContext, Expr};
use crate::parser::{Parsed, Special};
use crate::statement::Outcome;
use crate::types::Value;

/// The next AUTO_INCREMENT value a table would give; `None` for tables without.
pub(super) fn next_auto_increment(_instance: &Instance, _table: &Table) -> Option<u64> {
    None
}

/// The value of a bound expression that reads no row.
pub(super) fn evaluate(expr: &Expr, context: &EvalContext<'_>) -> SqlResult<Value> {
    expr.eval(context, &[], &[])
}

/// Whether a statement in our own tree changes the catalog.
pub(super) fn is_ddl(special: &Special) -> bool {
    matches!(
        special,
        Special::CreateDatabase { .. }
            | Special::AlterDatabase { .. }
            | Special::AlterTable { .. }
            | Special::Ownership(_)
    )
}

/// Whether a statement in `sqlparser`'s tree changes the catalog.
pub(super) fn is_ddl_statement(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::CreateTable(_)
            | Statement::CreateView { .. }
            | Statement::CreateIndex(_)
            | Statement::Drop { .. }
            | Statement::Truncate { .. }
            | Statement::RenameTable(_)
            | Statement::AlterTable { .. }
    )
}

impl Session {
    /// Runs DDL: commits what is open, changes the catalog, makes the change visible.
    pub(super) fn run_ddl(&mut self, _parsed: &Parsed) -> SqlResult<Outcome> {
        Err(SqlError::not_supported("DDL"))
    }
}
