//! Temporary tables of a session: the catalog it sees, their creation and their end.

use std::cell::RefCell;
use std::sync::Arc;

use sqlparser::ast::Statement;

use super::run::RETRIES_MAX;
use super::session::Session;
use crate::catalog::Catalog;
use crate::error::{SqlError, SqlResult};
use crate::expr::Warning;
use crate::parser::Parsed;
use crate::statement::StatementOutcome;

/// Whether `parsed` is CREATE TEMPORARY TABLE … SELECT.
pub(super) fn fills(parsed: &Parsed) -> bool {
    matches!(&parsed.statement, Statement::CreateTable(create)
        if parsed.special.is_none() && create.temporary && create.query.is_some())
}

impl Session {
    /// The catalog with the session's temporary tables over it.
    pub(super) fn catalog(&self) -> Arc<Catalog> {
        self.state.catalog()
    }

    /// CREATE TEMPORARY TABLE … SELECT: runs as DML does, in the open transaction or in one of
    /// its own that begins anew after a conflict.
    pub(super) fn fill_temporary(&mut self, parsed: &Parsed) -> SqlResult<StatementOutcome> {
        for attempt in 0.. {
            self.open_for_statement(false, true);
            let warnings = RefCell::default();
            let result = self.try_to_fill(parsed, &warnings);
            let error = match result {
                Ok(outcome) => {
                    self.take_warnings(warnings.into_inner());
                    return Ok(outcome);
                }
                Err(error) => error,
            };
            if !self.can_restart(&error) || attempt >= RETRIES_MAX {
                self.give_up(&error);
                return Err(error);
            }
            self.restart(attempt)?;
        }
        Err(SqlError::internal("attempts have an end"))
    }

    fn try_to_fill(
        &mut self,
        parsed: &Parsed,
        warnings: &RefCell<Vec<Warning>>,
    ) -> SqlResult<StatementOutcome> {
        let before = self.state.temporary.mark();
        let Some(open) = &self.transaction else {
            return Err(SqlError::internal("a statement without a transaction"));
        };
        open.txn.start_statement()?;
        let mark = open.txn.savepoint();
        let result = self.execute_ddl(parsed, warnings);
        let outcome = match result {
            Ok(outcome) => outcome,
            Err(error) => {
                open.txn.rollback_to(mark);
                return Err(error);
            }
        };
        if open.single {
            self.commit()
                .inspect_err(|_| self.state.temporary.back_to(&before))?;
        }
        Ok(outcome)
    }

    /// Gives up the rows of temporary tables that are gone, unless a transaction that may have
    /// written some is still open.
    pub(super) fn release_temporary(&self) {
        if self.transaction.is_none() {
            // What cannot be written now is found when the catalog is opened next.
            let _ = self
                .instance()
                .store
                .release_temporary(&self.state.temporary);
        }
    }

    /// All temporary tables end.
    pub(super) fn end_temporary(&self) {
        self.state.temporary.clear();
        self.release_temporary();
    }
}
