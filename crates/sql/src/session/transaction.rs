//! A session's transaction: BEGIN to COMMIT, savepoints, implicit commits.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use manxdb_storage::Durability;
use manxdb_txn::{IsolationLevel, Transaction, TxnError, Waiter};

use super::metrics::count;
use super::session::Session;
use super::variables::Values;
use crate::error::{SqlError, SqlResult};
use crate::parser::SetScope;
use crate::statement::owners::{OwnerNotes, erasure};
use crate::types::Value;

/// A transaction that is open.
pub(crate) struct OpenTransaction {
    pub txn: Transaction,
    /// READ ONLY.
    pub read_only: bool,
    /// Opened for one autocommitted statement.
    pub single: bool,
    /// WITH CONSISTENT SNAPSHOT: its snapshot is what the client asked for.
    pub pinned: bool,
    savepoints: Vec<(String, usize)>,
    /// What it has done to the owners of rows.
    pub(super) owners: OwnerNotes,
}

impl OpenTransaction {
    /// Whether it can be begun anew unseen by the client.
    pub(super) fn is_restartable(&self) -> bool {
        self.single || !self.pinned && self.txn.is_first_statement()
    }
}

impl Session {
    pub(super) fn open(&mut self, isolation: IsolationLevel, read_only: bool, single: bool) {
        let instance = self.instance();
        let waiter: Arc<dyn Waiter> = Arc::clone(&self.state.waiter) as Arc<dyn Waiter>;
        let txn = Transaction::begin(
            Arc::clone(&instance.path),
            instance.next_transaction_id(),
            isolation,
            waiter,
        );
        if read_only {
            txn.declare_read_only();
        }
        self.transaction = Some(OpenTransaction {
            txn,
            read_only,
            single,
            pinned: false,
            savepoints: Vec::new(),
            owners: OwnerNotes::default(),
        });
    }

    /// Opens the transaction a statement runs in, unless one is open. `reads_only`: the
    /// statement itself writes nothing; `touches_tables`: it would begin a transaction when
    /// autocommit is off.
    pub(super) fn open_for_statement(&mut self, reads_only: bool, touches_tables: bool) {
        if self.transaction.is_some() {
            return;
        }
        let settings = self.state.settings();
        let single = settings.autocommit || !touches_tables;
        let isolation = self.next_isolation.unwrap_or(settings.isolation);
        let declared = self.next_read_only.unwrap_or(settings.read_only);
        if touches_tables {
            self.next_isolation = None;
            self.next_read_only = None;
        }
        self.open(isolation, declared || single && reads_only, single);
        if let Some(open) = &mut self.transaction
            && single
            && !declared
        {
            open.read_only = false;
        }
    }

    /// Runs queries that all see one state: the one of the open transaction, or the newest.
    ///
    /// # Errors
    /// 51007 in a transaction each of whose statements sees another state; those of `work`.
    pub(super) fn at_one_snapshot<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> SqlResult<T>,
    ) -> SqlResult<T> {
        if let Some(open) = &self.transaction {
            if open.txn.isolation() == IsolationLevel::ReadCommitted {
                let text = "GDPR shows one state of all tables, and this transaction is READ \
                            COMMITTED: end it, or use REPEATABLE READ";
                return Err(SqlError::new(51007, "HY000", text));
            }
            return work(self);
        }
        self.open(IsolationLevel::RepeatableRead, true, false);
        let taken = self
            .transaction
            .as_ref()
            .map(|open| open.txn.take_snapshot());
        let result = match taken {
            Some(Err(error)) => Err(error.into()),
            _ => work(self),
        };
        if let Some(open) = self.transaction.take() {
            open.txn.rollback();
        }
        result
    }

    /// BEGIN, START TRANSACTION.
    pub(super) fn begin(
        &mut self,
        read_only: Option<bool>,
        consistent_snapshot: bool,
    ) -> SqlResult<()> {
        self.unlock_tables()?;
        self.commit()?;
        self.state.process.tables.clear();
        let settings = self.state.settings();
        let isolation = self.next_isolation.take().unwrap_or(settings.isolation);
        let declared = self.next_read_only.take();
        let read_only = read_only.or(declared).unwrap_or(settings.read_only);
        self.open(isolation, read_only, false);
        match &mut self.transaction {
            Some(open) if consistent_snapshot => {
                open.pinned = true;
                Ok(open.txn.take_snapshot()?)
            }
            _ => Ok(()),
        }
    }

    /// COMMIT, and what commits implicitly. The transaction is over whatever the outcome.
    ///
    /// # Errors
    /// 51001 when a row would be left without owner; conflicts; storage.
    pub(super) fn commit(&mut self) -> SqlResult<()> {
        if let Err(error) = self.check_owners() {
            self.rollback();
            return Err(error);
        }
        let Some(open) = self.transaction.take() else {
            return Ok(());
        };
        let erased = open.owners.take_erased(&open.txn)?;
        let event = self.audit_event.take();
        let request = event.as_ref().and_then(|event| event.request);
        let orders = erasure::order(&open.txn, &erased, request)?;
        let is_audited = event.is_some();
        if let Some(event) = event {
            self.instance().audit_in(&open.txn, event, &erased)?;
        }
        let writes = open.txn.has_writes();
        let instance = self.instance();
        // Keys are erased for what is on disk only: a commit that a crash undoes leaves its rows.
        let durability = if orders.is_empty() && !is_audited {
            instance.options.durability
        } else {
            Durability::Sync
        };
        match open.txn.commit(durability) {
            Ok(_) => {
                if writes {
                    count(&instance.metrics.commits);
                }
                if is_audited {
                    instance.mirror_audit()?;
                }
                instance.carry_out(&orders)?;
                self.place_waiting_rows();
                Ok(())
            }
            Err(error) => {
                if matches!(error, TxnError::Conflict { .. }) {
                    count(&instance.metrics.conflicts);
                }
                count(&instance.metrics.rollbacks);
                Err(error.into())
            }
        }
    }

    /// ROLLBACK.
    pub(super) fn rollback(&mut self) {
        if let Some(open) = self.transaction.take() {
            self.instance()
                .metrics
                .rollbacks
                .fetch_add(1, Ordering::Relaxed);
            open.txn.rollback();
        }
    }

    /// COMMIT or ROLLBACK with AND CHAIN and RELEASE.
    pub(super) fn end(&mut self, commit: bool, chain: bool, release: bool) -> SqlResult<()> {
        let before = self
            .transaction
            .as_ref()
            .map(|open| (open.txn.isolation(), open.read_only));
        if commit {
            self.commit()?;
        } else {
            self.rollback();
        }
        if chain {
            self.state.process.tables.clear();
            let settings = self.state.settings();
            let (isolation, read_only) = before.unwrap_or((settings.isolation, settings.read_only));
            self.open(isolation, read_only, false);
        }
        if release {
            self.closing = true;
            self.state
                .process
                .control
                .kill_connection
                .store(true, Ordering::SeqCst);
        }
        Ok(())
    }

    /// SAVEPOINT. Without a transaction it marks nothing, as in MySQL with autocommit.
    pub(super) fn savepoint(&mut self, name: &str) {
        if self.transaction.is_none() && !self.state.settings().autocommit {
            self.open_for_statement(false, true);
        }
        if let Some(open) = &mut self.transaction {
            let name = name.to_lowercase();
            open.savepoints.retain(|(other, _)| *other != name);
            let mark = open.txn.savepoint();
            open.savepoints.push((name, mark));
        }
    }

    /// ROLLBACK TO SAVEPOINT: later savepoints go.
    pub(super) fn rollback_to(&mut self, name: &str) -> SqlResult<()> {
        let (open, at) = self.find_savepoint(name)?;
        open.savepoints.truncate(at + 1);
        if let Some((_, mark)) = open.savepoints.last() {
            open.txn.rollback_to(*mark);
        }
        Ok(())
    }

    /// RELEASE SAVEPOINT: it and later ones go.
    pub(super) fn release_savepoint(&mut self, name: &str) -> SqlResult<()> {
        let (open, at) = self.find_savepoint(name)?;
        open.savepoints.truncate(at);
        Ok(())
    }

    fn find_savepoint(&mut self, name: &str) -> SqlResult<(&mut OpenTransaction, usize)> {
        let lower = name.to_lowercase();
        let missing = || SqlError::new(1305, "42000", format!("SAVEPOINT {name} does not exist"));
        let open = self.transaction.as_mut().ok_or_else(missing)?;
        let at = open
            .savepoints
            .iter()
            .position(|(other, _)| *other == lower)
            .ok_or_else(missing)?;
        Ok((open, at))
    }

    /// SET [SESSION | GLOBAL] TRANSACTION.
    pub(super) fn set_characteristics(
        &mut self,
        scope: SetScope,
        isolation: Option<&str>,
        read_only: Option<bool>,
    ) -> SqlResult<()> {
        let level = isolation.map(level_name);
        match scope {
            SetScope::Next => {
                if self.transaction.is_some() {
                    return Err(in_progress());
                }
                if let Some(level) = level {
                    self.next_isolation = Some(super::variables::isolation(&level));
                }
                self.next_read_only = read_only.or(self.next_read_only);
            }
            SetScope::Session => {
                write_characteristics(&mut self.state.values.borrow_mut(), level, read_only);
                self.state.apply_values();
            }
            SetScope::Global => {
                self.require_variable_admin()?;
                let mut globals = self.instance().globals.write();
                write_characteristics(&mut globals, level, read_only);
            }
            SetScope::Persist | SetScope::PersistOnly => {
                return Err(SqlError::not_supported("SET PERSIST"));
            }
        }
        Ok(())
    }
}

/// 1568.
pub(super) fn in_progress() -> SqlError {
    SqlError::new(
        1568,
        "25001",
        "Transaction characteristics can't be changed while a transaction is in progress",
    )
}

/// `READ COMMITTED` to the variable's `READ-COMMITTED`.
fn level_name(words: &str) -> String {
    words.to_ascii_uppercase().replace(' ', "-")
}

fn write_characteristics(values: &mut Values, level: Option<String>, read_only: Option<bool>) {
    if let Some(level) = level {
        values.set_named("transaction_isolation", Value::Text(level));
    }
    if let Some(read_only) = read_only {
        values.set_named("transaction_read_only", Value::Int(i64::from(read_only)));
    }
}
