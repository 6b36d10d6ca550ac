//! Statements the session answers itself.

use std::sync::Arc;

use sqlparser::ast::{self, Statement};

use super::ResultSink;
use super::accounts::{Privileges, access};
use super::compiled::Compiled;
use super::session::Session;
use crate::error::{SqlError, SqlResult};
use crate::expr::SessionInfo;
use crate::parser::{SetItem, Special, parse};
use crate::statement::StatementOutcome;
use crate::types::Value;

impl Session {
    /// Runs a statement in our own tree that is not DDL.
    pub(super) fn run_special(
        &mut self,
        special: &Special,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        match special {
            Special::Show(show) => return self.show(show, sink, more),
            Special::Describe { table, column } => {
                return self.describe(table, column.as_deref(), sink, more);
            }
            Special::Execute { name, using } => {
                return self.execute_named(name, using, sink, more);
            }
            Special::GdprGet { kind, id, format } => {
                return self.gdpr_get(kind, id, *format, sink, more);
            }
            Special::GdprForget(forget) => return self.gdpr_forget(forget, sink, more),
            Special::GdprVerify { kind, id } => return self.gdpr_verify(kind, id, sink, more),
            Special::GdprCertificate(request) => {
                return self.gdpr_certificate(*request, sink, more);
            }
            Special::Compliance(table) => return self.compliance(table.as_ref(), sink, more),
            Special::Maintain { verb, tables } => {
                return self.maintain(verb, tables, sink, more);
            }
            _ => {}
        }
        let outcome = self.run_silent(special)?;
        self.report(&outcome, sink, more)
    }

    /// Those without a result set.
    fn run_silent(&mut self, special: &Special) -> SqlResult<StatementOutcome> {
        match special {
            Special::Nothing => {}
            Special::Set(items) => self.set(items)?,
            Special::StartTransaction {
                read_only,
                consistent_snapshot,
            } => {
                self.begin(*read_only, *consistent_snapshot)?;
            }
            Special::EndTransaction {
                commit,
                chain,
                release,
            } => {
                self.end(*commit, *chain, *release)?;
            }
            Special::Prepare { name, source } => {
                let text = self.prepare_source(source)?;
                self.prepare_named(name, &text)?;
            }
            Special::Deallocate(name) => self.deallocate(name)?,
            Special::Do(exprs) => {
                for expr in exprs {
                    self.evaluate(expr)?;
                }
            }
            Special::RotateMasterKey => return self.rotate_master_key(),
            Special::GdprUndo(undo) => return self.gdpr_undo(undo),
            Special::GdprHold {
                kind,
                id,
                table,
                reason,
            } => return self.gdpr_hold((kind, id.as_slice()), table.as_ref(), reason),
            Special::GdprRelease { kind, id, table } => {
                return self.gdpr_release(kind, id, table.as_ref());
            }
            Special::Kill { query_only, id } => self.kill(*query_only, id)?,
            Special::LockTables(locks) => self.lock_tables(locks)?,
            Special::UnlockTables => self.unlock_tables()?,
            Special::Flush(words) => self.flush(words)?,
            Special::Shutdown => {
                let account = self.state.account();
                access::require_global(&account, Privileges::SHUTDOWN, "SHUTDOWN")?;
                self.instance().request_shutdown();
            }
            other => return self.run_account_statement(other),
        }
        Ok(StatementOutcome::default())
    }

    /// Statements in `sqlparser`'s tree that are neither queries nor DML.
    pub(super) fn run_other(
        &mut self,
        compiled: &Arc<Compiled>,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        let parsed = &compiled.parsed;
        let outcome = match &parsed.statement {
            Statement::Use(name) => {
                let name = used_name(name)?;
                self.use_database(&name)?;
                StatementOutcome::default()
            }
            Statement::Savepoint { name } => {
                self.savepoint(&name.value);
                StatementOutcome::default()
            }
            Statement::ReleaseSavepoint { name } => {
                self.release_savepoint(&name.value)?;
                StatementOutcome::default()
            }
            Statement::Rollback {
                savepoint: Some(name),
                ..
            } => {
                self.rollback_to(&name.value)?;
                StatementOutcome::default()
            }
            Statement::Explain { .. } => return self.explain(parsed, sink, more),
            _ => self.run_ddl(parsed)?,
        };
        self.report(&outcome, sink, more)
    }

    /// The value of an expression outside any table; run as a query, so that subqueries in it
    /// need the privileges they always need.
    ///
    /// # Errors
    /// Binding and evaluation.
    pub(super) fn evaluate(&mut self, expr: &ast::Expr) -> SqlResult<Value> {
        if let Some(value) = literal(expr) {
            return Ok(value);
        }
        let mut parsed = parse("SELECT 1", self.state.settings().sql_mode)?
            .pop()
            .ok_or_else(|| SqlError::internal("an expression without a query"))?;
        if let Statement::Query(query) = &mut parsed.statement
            && let ast::SetExpr::Select(select) = query.body.as_mut()
        {
            let alias = ast::Ident::new("value");
            let expr = expr.clone();
            select.projection = vec![ast::SelectItem::ExprWithAlias { expr, alias }];
        }
        let compiled = Arc::new(self.compile(parsed)?);
        let found_rows = self.state.found_rows.get();
        let rows = self.collect(&compiled, &[])?;
        self.state.found_rows.set(found_rows);
        let value = rows
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().next());
        Ok(value.unwrap_or(Value::Null))
    }

    fn prepare_source(&mut self, source: &ast::Expr) -> SqlResult<String> {
        let value = match source {
            ast::Expr::Identifier(name) if name.value.starts_with('@') => {
                self.state.user_variable(name.value.trim_start_matches('@'))
            }
            other => self.evaluate(other)?,
        };
        match value {
            Value::Text(text) => Ok(text),
            Value::Bytes(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            _ => Err(SqlError::syntax(
                "PREPARE needs a statement text near 'NULL'",
            )),
        }
    }

    fn kill(&mut self, query_only: bool, id: &ast::Expr) -> SqlResult<()> {
        let id = match self.evaluate(id)? {
            Value::Int(id) => u64::try_from(id).unwrap_or(0),
            Value::UInt(id) => id,
            Value::Text(text) => text.parse().unwrap_or(0),
            _ => 0,
        };
        let unknown = || SqlError::new(1094, "HY000", format!("Unknown thread id: {id}"));
        let process = self.instance().processes.get(id).ok_or_else(unknown)?;
        let account = self.state.account();
        let own = process.activity().user == *self.state.user.borrow();
        if !own && !account.global.has_any(Privileges::SUPER) {
            return Err(SqlError::new(
                1095,
                "HY000",
                format!("You are not owner of thread {id}"),
            ));
        }
        process.kill(query_only);
        self.instance().host.wake(id);
        if id == self.state.process.id {
            return Err(manxdb_txn::TxnError::Interrupted.into());
        }
        Ok(())
    }

    fn flush(&mut self, words: &[String]) -> SqlResult<()> {
        let account = self.state.account();
        access::require_global(&account, Privileges::RELOAD, "RELOAD")?;
        let locks = words.iter().any(|word| word == "LOCK" || word == "EXPORT");
        if locks && words.iter().any(|word| word == "TABLES") {
            return Err(SqlError::not_supported("FLUSH TABLES WITH READ LOCK"));
        }
        self.commit()
    }

    /// SET: every assignment is checked in order; those before a failing one hold, as in MySQL.
    fn set(&mut self, items: &[SetItem]) -> SqlResult<()> {
        let before = self.state.settings().foreign_key_checks;
        let done = items.iter().try_for_each(|item| self.set_item(item));
        if !before && self.state.settings().foreign_key_checks {
            self.places_rows = true;
            if self.transaction.is_none() {
                self.place_waiting_rows();
            }
        }
        done
    }
}

fn used_name(name: &ast::Use) -> SqlResult<String> {
    let (ast::Use::Object(object) | ast::Use::Database(object) | ast::Use::Schema(object)) = name
    else {
        return Err(SqlError::syntax("USE needs a database"));
    };
    object
        .0
        .last()
        .and_then(ast::ObjectNamePart::as_ident)
        .map(|ident| ident.value.clone())
        .ok_or_else(|| SqlError::syntax("USE needs a database"))
}

/// Values that need no binding: most of what SET is given.
pub(super) fn literal(expr: &ast::Expr) -> Option<Value> {
    match expr {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Number(digits, _) => digits.parse().ok().map(Value::Int),
            ast::Value::SingleQuotedString(text) | ast::Value::DoubleQuotedString(text) => {
                Some(Value::Text(text.clone()))
            }
            ast::Value::Boolean(flag) => Some(Value::Int(i64::from(*flag))),
            ast::Value::Null => Some(Value::Null),
            _ => None,
        },
        ast::Expr::UnaryOp {
            op: ast::UnaryOperator::Minus,
            expr,
        } => match literal(expr)? {
            Value::Int(number) => Some(Value::Int(-number)),
            _ => None,
        },
        ast::Expr::Nested(inner) => literal(inner),
        _ => None,
    }
}
