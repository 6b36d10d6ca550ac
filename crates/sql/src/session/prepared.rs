//! Prepared statements, binary and by name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::compiled::Compiled;
use super::session::Session;
use super::{Prepared, ResultSink};
use crate::error::{SqlError, SqlResult};
use crate::expr::SessionInfo;
use crate::types::{ColumnMeta, DataType, Value};

/// A prepared statement: its text is planned again when the catalog has changed, and runs where
/// it was prepared, whatever USE came after.
#[derive(Debug, Clone)]
struct Statement {
    text: Arc<str>,
    database: Option<Arc<str>>,
    compiled: Arc<Compiled>,
    /// Held for its drop.
    _place: Arc<Place>,
}

/// A place among the prepared statements of the server, given up on drop.
#[derive(Debug)]
struct Place {
    taken: Arc<AtomicU64>,
}

impl Place {
    /// `None` when `most` are taken.
    fn take(taken: &Arc<AtomicU64>, most: u64) -> Option<Arc<Self>> {
        let one_more = |now: u64| (now < most).then_some(now + 1);
        taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
            .ok()?;
        Some(Arc::new(Self {
            taken: Arc::clone(taken),
        }))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The prepared statements of a session.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    by_id: BTreeMap<u32, Statement>,
    by_name: BTreeMap<String, Statement>,
    last_id: u32,
}

impl Statements {
    /// Parameters of a binary statement.
    pub(crate) fn param_count(&self, id: u32) -> Option<usize> {
        self.by_id.get(&id).map(|s| s.compiled.parsed.param_count)
    }

    /// Forgets a binary statement.
    pub(crate) fn close(&mut self, id: u32) {
        self.by_id.remove(&id);
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.by_id.clear();
        self.by_name.clear();
    }
}

impl Session {
    fn prepare_text(&mut self, text: &str) -> SqlResult<Statement> {
        let instance = self.instance();
        let most = instance.globals.read().integer("max_prepared_stmt_count");
        let most = u64::try_from(most).unwrap_or(0);
        let place = Place::take(&instance.prepared, most).ok_or_else(|| {
            let message = format!(
                "Can't create more than max_prepared_stmt_count statements (current value: {most})"
            );
            SqlError::new(1461, "42000", message)
        })?;
        let compiled = self.compile_one(text)?;
        compiled.check_preparable()?;
        self.check_needs(&compiled)?;
        Ok(Statement {
            text: text.into(),
            database: self.database().map(Into::into),
            compiled,
            _place: place,
        })
    }

    pub(super) fn prepare_binary(&mut self, text: &str) -> SqlResult<Prepared> {
        let statement = self
            .prepare_text(text)
            .inspect_err(|error| self.note_failure(error))?;
        let id = self.statements.last_id.wrapping_add(1).max(1);
        self.statements.last_id = id;
        let types = statement.compiled.param_types();
        let params = (0..statement.compiled.parsed.param_count)
            .map(|at| param_meta(types.get(at)))
            .collect();
        let columns = statement.compiled.columns().to_vec();
        self.statements.by_id.insert(id, statement);
        Ok(Prepared {
            id,
            params,
            columns,
        })
    }

    pub(super) fn execute_binary(
        &mut self,
        id: u32,
        params: &[Value],
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let statement = self.statements.by_id.get(&id).cloned().ok_or_else(|| {
            SqlError::new(
                1243,
                "HY000",
                format!("Unknown prepared statement handler ({id}) given to mysqld_stmt_execute"),
            )
        })?;
        self.in_its_database(&statement, |session| {
            let compiled = session.current(&statement)?;
            if !Arc::ptr_eq(&compiled, &statement.compiled) {
                let renewed = Statement {
                    compiled: Arc::clone(&compiled),
                    ..statement.clone()
                };
                session.statements.by_id.insert(id, renewed);
            }
            check_count(&compiled, params.len())?;
            let compiled = session.retyped(&statement.text, compiled, params);
            session.run("Execute", &statement.text, &compiled, params, sink, false)
        })
    }

    /// Runs `work` with the statement's database as the current one.
    fn in_its_database<T>(
        &mut self,
        statement: &Statement,
        work: impl FnOnce(&mut Self) -> SqlResult<T>,
    ) -> SqlResult<T> {
        if self.database() == statement.database.as_deref() {
            return work(self);
        }
        let own = statement.database.as_deref().map(ToString::to_string);
        *self.state.database.borrow_mut() = own;
        let result = work(self);
        // Not what it was before: the statement may have dropped it.
        let current = self.database().map(ToString::to_string);
        *self.state.database.borrow_mut() = current;
        result
    }

    /// The statement's plan under the catalog as it is now.
    fn current(&mut self, statement: &Statement) -> SqlResult<Arc<Compiled>> {
        let version = self.catalog().version;
        if statement.compiled.catalog_version == version {
            return Ok(Arc::clone(&statement.compiled));
        }
        self.compile_one(&statement.text)
    }

    /// PREPARE name FROM text.
    pub(super) fn prepare_named(&mut self, name: &str, text: &str) -> SqlResult<()> {
        let name = name.to_lowercase();
        self.statements.by_name.remove(&name);
        let statement = self.prepare_text(text)?;
        self.statements.by_name.insert(name, statement);
        Ok(())
    }

    /// EXECUTE name USING @a, @b.
    pub(super) fn execute_named(
        &mut self,
        name: &str,
        variables: &[String],
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        let statement = self
            .statements
            .by_name
            .get(&name.to_lowercase())
            .cloned()
            .ok_or_else(|| unknown_handler(name, "EXECUTE"))?;
        let params: Vec<Value> = variables
            .iter()
            .map(|variable| self.state.user_variable(variable))
            .collect();
        self.in_its_database(&statement, |session| {
            let compiled = session.current(&statement)?;
            check_count(&compiled, params.len())?;
            session.run_inner(&compiled, &params, sink, more)
        })
    }

    /// DEALLOCATE PREPARE name.
    pub(super) fn deallocate(&mut self, name: &str) -> SqlResult<()> {
        match self.statements.by_name.remove(&name.to_lowercase()) {
            Some(_) => Ok(()),
            None => Err(unknown_handler(name, "DEALLOCATE PREPARE")),
        }
    }
}

fn unknown_handler(name: &str, command: &str) -> SqlError {
    SqlError::new(
        1243,
        "HY000",
        format!("Unknown prepared statement handler ({name}) given to {command}"),
    )
}

fn check_count(compiled: &Compiled, given: usize) -> SqlResult<()> {
    if compiled.parsed.param_count == given {
        return Ok(());
    }
    Err(SqlError::new(
        1210,
        "HY000",
        "Incorrect arguments to EXECUTE",
    ))
}

fn param_meta(ty: Option<&DataType>) -> ColumnMeta {
    ColumnMeta {
        schema: String::new(),
        table: String::new(),
        org_table: String::new(),
        name: "?".to_string(),
        org_name: String::new(),
        ty: ty.cloned().unwrap_or(DataType::Null),
        not_null: false,
        primary_key: false,
        unique_key: false,
        multiple_key: false,
        auto_increment: false,
    }
}
