//! DDL from a session: every call by which a session changes the catalog.

use std::cell::RefCell;

use super::instance::Instance;
use super::schema::SessionTables;
use super::session::Session;
use super::variables::charset;
use crate::catalog::{SequenceKind, Table};
use crate::error::{SqlError, SqlResult};
use crate::parser::{Parsed, Special};
use crate::statement::StatementOutcome;
use crate::statement::ddl::{self, DdlContext};
use crate::types::Collation;

/// The next `AUTO_INCREMENT` value a table would give; `None` for tables without.
pub(super) fn next_auto_increment(instance: &Instance, table: &Table) -> Option<u64> {
    if !table.columns.iter().any(|column| column.auto_increment) {
        return None;
    }
    let sequences = instance.store.sequences();
    sequences.peek(table.id, SequenceKind::AutoIncrement).ok()
}

/// Whether a statement changes the catalog.
pub(super) fn is_ddl(parsed: &Parsed) -> bool {
    ddl::is_ddl(parsed) || matches!(parsed.special, Some(Special::Ownership(_)))
}

impl Session {
    /// Runs DDL: commits what is open unless it says TEMPORARY, changes the catalog, which publishes itself.
    pub(super) fn run_ddl(&mut self, parsed: &Parsed) -> SqlResult<StatementOutcome> {
        if !ddl::is_ddl(parsed) {
            return Err(SqlError::not_supported(first_words(&parsed.text)));
        }
        if super::temporary::fills(parsed) {
            return self.fill_temporary(parsed);
        }
        if !ddl::keeps_transaction(parsed) {
            self.commit()?;
            if self.state.settings().read_only {
                return Err(manxdb_txn::TxnError::ReadOnly.into());
            }
        }
        if is_materialized_view(parsed) {
            self.require_view_upkeep()?;
        }
        self.open_for_statement(true, false);
        let warnings = RefCell::default();
        let result = self.execute_ddl(parsed, &warnings);
        if self.transaction.as_ref().is_some_and(|open| open.single) {
            self.transaction = None;
        }
        self.take_warnings(warnings.into_inner());
        let outcome = result?;
        self.forget_dropped_views(parsed);
        self.forget_dropped_database();
        Ok(outcome)
    }

    pub(super) fn execute_ddl(
        &self,
        parsed: &Parsed,
        warnings: &RefCell<Vec<crate::expr::Warning>>,
    ) -> SqlResult<StatementOutcome> {
        let Some(open) = &self.transaction else {
            return Err(SqlError::internal("DDL without a context"));
        };
        let instance = self.instance();
        let settings = self.state.settings();
        let database = self.state.database.borrow().clone();
        let definer = self.state.identity.borrow().clone();
        let catalog = instance.store.current();
        let tables = SessionTables::new(&self.state, &catalog);
        let server = self
            .state
            .values
            .borrow()
            .text("collation_server")
            .to_string();
        let waiter: std::sync::Arc<dyn manxdb_txn::Waiter> = self.state.waiter.clone();
        self.with_context(&open.txn, &[], warnings, true, |context| {
            let ddl_context = DdlContext {
                store: &instance.store,
                temporary: &self.state.temporary,
                txn: &open.txn,
                database: database.as_deref(),
                eval: context.eval,
                virtual_tables: &tables,
                gate: self,
                waiter: &waiter,
                collation: settings.collation,
                default_collation: charset::collation(&server)
                    .map_or(Collation::default(), |found| found.collation),
                definer: &definer,
                durability: instance.options.durability,
                foreign_key_checks: settings.foreign_key_checks,
                memory_limit: context.memory_limit,
            };
            ddl::execute(&ddl_context, parsed)
        })
    }

    /// After DROP MATERIALIZED VIEW and DROP DATABASE: what is gone holds nothing.
    fn forget_dropped_views(&self, parsed: &Parsed) {
        if matches!(parsed.statement, sqlparser::ast::Statement::Drop { .. }) {
            let instance = self.instance();
            instance.views.forget_dropped(&instance.store.current());
        }
    }

    /// After DROP DATABASE of the current one there is none.
    fn forget_dropped_database(&mut self) {
        let gone = self.database().is_some_and(|name| {
            super::schema::virtual_database(name).is_none()
                && self.instance().store.current().database(name).is_err()
        });
        if gone {
            self.set_current_database(None);
        }
    }
}

/// CREATE MATERIALIZED VIEW.
fn is_materialized_view(parsed: &Parsed) -> bool {
    match &parsed.statement {
        sqlparser::ast::Statement::CreateView(create) => {
            parsed.special.is_none() && create.materialized
        }
        _ => false,
    }
}

fn first_words(text: &str) -> String {
    text.split_whitespace()
        .take(3)
        .collect::<Vec<_>>()
        .join(" ")
        .to_uppercase()
}
