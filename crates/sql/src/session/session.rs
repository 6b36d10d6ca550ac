//! One client's session: the methods a frontend calls.

use std::sync::Arc;

use manxdb_txn::{IsolationLevel, Waiter};

use super::accounts::access;
use super::host::ClientInfo;
use super::instance::Instance;
use super::metrics::TimeSplit;
use super::prepared::Statements;
use super::processes::Process;
use super::state::SessionState;
use super::transaction::OpenTransaction;
use super::variables::FrontendTimeouts;
use super::waiter::SessionControl;
use super::{Prepared, ResultSink, Status};
use crate::error::{SqlError, SqlResult};
use crate::types::Value;

/// One client's session. Used by one thread at a time.
pub struct Session {
    pub(super) state: SessionState,
    pub(super) transaction: Option<OpenTransaction>,
    /// SET TRANSACTION without a scope: level and access mode of the next transaction only.
    pub(super) next_isolation: Option<IsolationLevel>,
    pub(super) next_read_only: Option<bool>,
    pub(super) statements: Statements,
    /// Time spent on the next statement before it runs: parsing and planning.
    pub(super) preparation: TimeSplit,
    /// LOCK TABLES is in force.
    pub(super) holds_table_locks: bool,
    /// Copy of the one in the state, to lend to the frontend.
    current_database: Option<String>,
    /// The current database changed by the running statement.
    pub(super) schema_changed: bool,
    /// FORGET is deleting rows: what refers to them it has seen to itself.
    pub(super) is_forgetting: bool,
    /// It does again what a request of a newer store has done.
    pub(super) is_replaying: bool,
    /// What the open transaction of a request is recorded as when it commits.
    pub(super) audit_event: Option<manxdb_ownership::proof::AuditEvent>,
    /// `foreign_key_checks` were turned on: rows that wait for their owners are to be looked at.
    pub(super) places_rows: bool,
    /// COMMIT RELEASE or a kill of itself: the frontend closes.
    pub(super) closing: bool,
}

impl Session {
    pub(super) fn new(
        instance: Arc<Instance>,
        process: Arc<Process>,
        identity: &str,
        user: &str,
        client: ClientInfo,
    ) -> Self {
        Self {
            state: SessionState::new(instance, process, identity, user, client),
            transaction: None,
            next_isolation: None,
            next_read_only: None,
            statements: Statements::default(),
            preparation: TimeSplit::default(),
            holds_table_locks: false,
            current_database: None,
            schema_changed: false,
            is_forgetting: false,
            is_replaying: false,
            audit_event: None,
            places_rows: false,
            closing: false,
        }
    }

    pub(super) fn instance(&self) -> &Arc<Instance> {
        &self.state.instance
    }

    /// Runs the text of a `COM_QUERY`: one statement, or several when the client may.
    /// Results of statements before a failing one have reached the sink already.
    ///
    /// # Errors
    /// The failing statement's error; the session stays usable.
    pub fn query(&mut self, text: &str, sink: &mut dyn ResultSink) -> SqlResult<()> {
        self.hear()?;
        self.run_text(text, sink)
    }

    /// PREPARE over the binary protocol.
    ///
    /// # Errors
    /// 1064, 1295, 1461 and binding errors.
    pub fn prepare(&mut self, text: &str) -> SqlResult<Prepared> {
        self.hear()?;
        self.prepare_binary(text)
    }

    /// EXECUTE over the binary protocol.
    ///
    /// # Errors
    /// 1243 unknown statement; 1210 wrong parameter count; the statement's own.
    pub fn execute(
        &mut self,
        statement: u32,
        params: &[Value],
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        self.hear()?;
        self.execute_binary(statement, params, sink)
    }

    /// Number of parameters of a prepared statement.
    #[must_use]
    pub fn param_count(&self, statement: u32) -> Option<usize> {
        self.statements.param_count(statement)
    }

    /// `COM_STMT_CLOSE`.
    pub fn close_statement(&mut self, statement: u32) {
        self.statements.close(statement);
    }

    /// `COM_INIT_DB` and USE.
    ///
    /// # Errors
    /// 1049, 1044.
    pub fn use_database(&mut self, name: &str) -> SqlResult<()> {
        self.hear()?;
        let stored = self.visible_database(name)?;
        self.set_current_database(Some(stored));
        Ok(())
    }

    /// Every command begins with what other servers have changed, if there are any.
    fn hear(&mut self) -> SqlResult<()> {
        let heard = self.instance().hear();
        heard.inspect_err(|error| {
            self.start_diagnostics();
            self.note_failure(error);
        })
    }

    /// The one place that changes the current database.
    pub(super) fn set_current_database(&mut self, name: Option<String>) {
        self.state.process.set_database(name.as_deref());
        self.state.database.borrow_mut().clone_from(&name);
        self.current_database = name;
        self.set_database_collation();
        self.schema_changed = true;
    }

    /// `COM_SET_OPTION`: whether `query` takes several statements at once from now on.
    pub fn set_multi_statements(&mut self, allowed: bool) {
        self.state.client.multi_statements = allowed;
    }

    /// The name of a database as created, when this account may see it.
    pub(super) fn visible_database(&self, name: &str) -> SqlResult<String> {
        let account = self.state.account();
        let unknown = || SqlError::new(1049, "42000", format!("Unknown database '{name}'"));
        if let Some(known) = super::schema::virtual_database(name) {
            return Ok(known.to_string());
        }
        let catalog = self.instance().store.current();
        let found = catalog.database(name);
        if !account.sees_database(name) {
            return Err(access::denied_database(
                &account,
                name,
                &self.state.client.host,
            ));
        }
        found
            .map(|database| database.name.clone())
            .map_err(|_| unknown())
    }

    fn set_database_collation(&self) {
        let catalog = self.instance().store.current();
        let database = self.state.database.borrow();
        let collation = database
            .as_deref()
            .and_then(|name| catalog.database(name).ok())
            .map_or_else(Default::default, |found| found.collation);
        let mut values = self.state.values.borrow_mut();
        let text = |name: &str| Value::Text(name.to_string());
        values.set_named("collation_database", text(collation.name()));
        values.set_named("character_set_database", text(collation.charset()));
    }

    /// `COM_RESET_CONNECTION`, and the first half of `COM_CHANGE_USER`: rolls back, drops temporary
    /// tables, prepared statements, user variables, named locks and session settings. The current database stays.
    pub fn reset(&mut self) {
        self.transaction = None;
        self.state.process.tables.clear();
        self.end_temporary();
        // Nothing is open, so giving the locks back cannot fail.
        let _ = self.unlock_tables();
        self.next_isolation = None;
        self.next_read_only = None;
        self.statements.clear();
        if self
            .instance()
            .named_locks
            .release_all(self.state.process.id)
            > 0
        {
            self.instance().wake_all();
        }
        self.state.reset();
        self.set_database_collation();
    }

    /// Second half of `COM_CHANGE_USER`, after the frontend authenticated the new user.
    ///
    /// # Errors
    /// 1231 for the collation; 1049, 1044.
    pub fn change_user(
        &mut self,
        identity: &str,
        user: &str,
        database: Option<&str>,
        collation: u16,
    ) -> SqlResult<()> {
        self.reset();
        self.set_client_collation(collation)?;
        self.state.set_user(user, identity);
        self.set_current_database(None);
        match database {
            Some(name) if !name.is_empty() => self.use_database(name),
            _ => Ok(()),
        }
    }

    /// State for OK packets.
    #[must_use]
    pub fn status(&self) -> Status {
        let settings = self.state.settings.borrow();
        let warnings = self.state.warning_total.get();
        Status {
            in_transaction: self.transaction.as_ref().is_some_and(|open| !open.single),
            read_only_transaction: self.transaction.as_ref().is_some_and(|open| open.read_only),
            autocommit: settings.autocommit,
            no_backslash_escapes: settings.sql_mode.no_backslash_escapes,
            warnings: u16::try_from(warnings).unwrap_or(u16::MAX),
            schema_changed: self.schema_changed,
        }
    }

    /// Current database.
    #[must_use]
    pub fn database(&self) -> Option<&str> {
        self.current_database.as_deref()
    }

    /// Handle for KILL.
    #[must_use]
    pub fn control(&self) -> Arc<SessionControl> {
        Arc::clone(&self.state.process.control)
    }

    /// Whether the session asked the frontend to close the connection.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// `max_allowed_packet` of this session, bytes: the global value when it began.
    #[must_use]
    pub fn max_allowed_packet(&self) -> usize {
        let bytes = self.state.values.borrow().integer("max_allowed_packet");
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// How long the frontend waits for this session's client.
    #[must_use]
    pub fn frontend_timeouts(&self) -> FrontendTimeouts {
        self.state.settings.borrow().timeouts
    }

    /// `COM_STATISTICS`.
    #[must_use]
    pub fn statistics(&self) -> String {
        super::schema::status::statistics(self.instance())
    }

    /// The waiter that statements of this session use.
    #[must_use]
    pub fn waiter(&self) -> Option<Arc<dyn Waiter>> {
        let waiter: Arc<dyn Waiter> = Arc::clone(&self.state.waiter) as Arc<dyn Waiter>;
        Some(waiter)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.transaction = None;
        self.state.process.tables.clear();
        self.end_temporary();
        let _ = self.unlock_tables();
        let id = self.state.process.id;
        if self.instance().named_locks.release_all(id) > 0 {
            self.instance().wake_all();
        }
        self.instance().processes.remove(id);
    }
}
