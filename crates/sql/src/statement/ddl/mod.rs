//! DDL: each statement changes the catalog in transactions of its own, then publishes.

use manxdb_storage::Durability;
use manxdb_txn::Waiter;
use sqlparser::ast::{ObjectType, Statement};

use super::Outcome;
use crate::binder::VirtualTables;
use crate::catalog::CatalogStore;
use crate::error::{SqlError, SqlResult};
use crate::expr::EvalContext;
use crate::parser::{Parsed, Special};
use crate::types::Collation;

/// What DDL depends on. The session has committed its own transaction before.
pub struct DdlContext<'a> {
    /// The catalog.
    pub store: &'a CatalogStore,
    /// Current database.
    pub database: Option<&'a str>,
    /// For defaults, back-fill and CREATE TABLE … SELECT.
    pub eval: &'a EvalContext<'a>,
    /// Computed tables.
    pub virtual_tables: &'a dyn VirtualTables,
    /// Kill checks of long back-fills.
    pub waiter: &'a dyn Waiter,
    /// `collation_connection`.
    pub collation: Collation,
    /// `collation_server`, for new databases.
    pub default_collation: Collation,
    /// `user@host`, for views.
    pub definer: &'a str,
    /// When a change counts as done.
    pub durability: Durability,
    /// `foreign_key_checks`.
    pub foreign_key_checks: bool,
    /// As [`crate::executor::ExecContext::memory_limit`].
    pub memory_limit: usize,
}

/// Whether [`execute`] is the one to run `parsed`.
#[must_use]
pub fn is_ddl(parsed: &Parsed) -> bool {
    if let Some(special) = &parsed.special {
        return matches!(
            special,
            Special::CreateDatabase { .. }
                | Special::AlterDatabase { .. }
                | Special::AlterTable { .. }
        );
    }
    match &parsed.statement {
        Statement::CreateTable(_)
        | Statement::CreateIndex(_)
        | Statement::CreateView(_)
        | Statement::AlterView { .. }
        | Statement::Truncate(_)
        | Statement::RenameTable(_) => true,
        Statement::Drop { object_type, .. } => matches!(
            object_type,
            ObjectType::Table
                | ObjectType::View
                | ObjectType::Index
                | ObjectType::Database
                | ObjectType::Schema
        ),
        _ => false,
    }
}

/// Runs a DDL statement.
///
/// # Errors
/// MySQL's numbers for what exists, does not exist or contradicts itself; 1235.
pub fn execute(_context: &DdlContext<'_>, _parsed: &Parsed) -> SqlResult<Outcome> {
    Err(SqlError::not_supported("DDL"))
}
