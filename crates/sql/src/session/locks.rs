//! LOCK TABLES and UNLOCK TABLES.
//!
//! A WRITE lock keeps other sessions' statements off the table, a READ lock keeps their writing
//! ones off; they wait as for a row lock. LOCK TABLES first claims the tables, so that no new
//! statement comes in, then waits for the transactions that have used them to end. Of a view the
//! tables it reads are locked. Commits are
//! validated as ever: the lock is a courtesy between sessions and not what consistency rests on.
//! As in MySQL, LOCK TABLES commits what is open, replaces earlier locks, and the session may then
//! use only what it locked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::accounts::{Need, Privileges, access};
use super::compiled::Compiled;
use super::session::Session;
use crate::error::{SqlError, SqlResult};
use crate::parser::quote_name;
use crate::parser::{TableLock, parse};
use crate::statement::StatementPlan;
use crate::statement::ddl::TableGate;
use crate::types::SqlMode;

/// Lower-case database and table.
type Place = (String, String);

/// A table that a transaction has used.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Use {
    place: Place,
    write: bool,
}

impl Use {
    fn of(need: &Need) -> Option<Self> {
        let table = need.table.as_ref()?;
        Some(Self {
            place: (need.database.to_lowercase(), table.to_lowercase()),
            write: !need.any_of.has(Privileges::SELECT),
        })
    }

    /// Whether it is what `need` says, told without making strings: false may be wrong.
    fn is_plainly(&self, need: &Need) -> bool {
        let table = need.table.as_deref().unwrap_or_default();
        self.write != need.any_of.has(Privileges::SELECT)
            && self.place.1.eq_ignore_ascii_case(table)
            && self.place.0.eq_ignore_ascii_case(&need.database)
    }

    /// Whether a lock on the table, for writing or reading, has to wait for it.
    fn conflicts(&self, lock_write: bool) -> bool {
        lock_write || self.write
    }
}

/// The tables a session uses: what its statements at hand name, and what its open transaction
/// has used before.
#[derive(Debug, Default)]
pub(super) struct TablesInUse(Mutex<InUse>);

#[derive(Debug, Default)]
struct InUse {
    /// A statement may run another inside it, as EXECUTE does.
    running: Vec<Arc<Compiled>>,
    kept: Vec<Use>,
}

impl InUse {
    fn keep(&mut self, need: &Need) {
        if self.kept.iter().any(|used| used.is_plainly(need)) {
            return;
        }
        if let Some(used) = Use::of(need).filter(|used| !self.kept.contains(used)) {
            self.kept.push(used);
        }
    }
}

impl TablesInUse {
    fn enter(&self, compiled: &Arc<Compiled>) {
        self.0.lock().running.push(Arc::clone(compiled));
    }

    /// The statement that entered last does not run after all.
    fn withdraw(&self) {
        self.0.lock().running.pop();
    }

    /// The statement that entered last is done; `keep`: its transaction goes on. True when
    /// tables came free.
    fn leave(&self, keep: bool) -> bool {
        let mut tables = self.0.lock();
        let Some(compiled) = tables.running.pop() else {
            return false;
        };
        if keep {
            for need in &compiled.needs {
                tables.keep(need);
            }
            return false;
        }
        let freed = !compiled.needs.is_empty() || !tables.kept.is_empty();
        if tables.running.is_empty() {
            tables.kept.clear();
        }
        freed
    }

    /// The session's transaction is gone without a statement.
    pub(super) fn clear(&self) {
        self.0.lock().kept.clear();
    }

    fn kept(&self) -> Vec<Use> {
        self.0.lock().kept.clone()
    }

    /// Whether a statement or transaction at work has written a table. DDL has not: it changes rows
    /// under locks of its own, for which it may be waiting.
    fn writes(&self, place: &Place) -> bool {
        let tables = self.0.lock();
        let writes = |used: &Use| used.write && used.place == *place;
        tables.kept.iter().any(writes)
            || tables.running.iter().any(|compiled| {
                let mut uses = compiled.needs.iter().filter_map(Use::of);
                !super::ddl::is_ddl(&compiled.parsed) && uses.any(|used| writes(&used))
            })
    }

    fn blocks(&self, wanted: &[(Place, bool)]) -> bool {
        let tables = self.0.lock();
        let blocks = |used: &Use| {
            let mut same = wanted.iter().filter(|(place, _)| *place == used.place);
            same.any(|(_, write)| used.conflicts(*write))
        };
        tables.kept.iter().any(blocks)
            || tables.running.iter().any(|compiled| {
                let mut uses = compiled.needs.iter().filter_map(Use::of);
                uses.any(|used| blocks(&used))
            })
    }
}

/// Locked tables of the instance: who holds them, and for writing (true) or reading.
#[derive(Debug, Default)]
pub(super) struct TableLocks {
    /// Sessions that hold any; 0 makes every check one load.
    holders: AtomicUsize,
    held: Mutex<BTreeMap<Place, BTreeMap<u64, bool>>>,
}

impl TableLocks {
    fn try_take(&self, wanted: &[(Place, bool)], session: u64) -> bool {
        let mut held = self.held.lock();
        let free = wanted.iter().all(|(place, write)| {
            held.get(place).is_none_or(|owners| {
                owners
                    .iter()
                    .all(|(owner, held_write)| *owner == session || !*write && !*held_write)
            })
        });
        if free {
            for (place, write) in wanted {
                let owners = held.entry(place.clone()).or_default();
                let stronger = owners.get(&session).copied().unwrap_or(false) || *write;
                owners.insert(session, stronger);
            }
            self.holders.fetch_add(1, Ordering::SeqCst);
        }
        free
    }

    /// Gives back all of a session's; it must hold some.
    fn release(&self, session: u64) {
        let mut held = self.held.lock();
        held.retain(|_, owners| {
            owners.remove(&session);
            !owners.is_empty()
        });
        self.holders.fetch_sub(1, Ordering::SeqCst);
    }

    /// Gives back all of a session's; whether it held some.
    fn release_if_held(&self, session: u64) -> bool {
        let held = self.held.lock();
        let holds = held.values().any(|owners| owners.contains_key(&session));
        drop(held);
        if holds {
            self.release(session);
        }
        holds
    }

    /// Whether another session's lock keeps `session`, whose transaction has used `used`, from
    /// `place`. A lock that still waits for this very transaction does not: it would wait for
    /// ever.
    fn bars(&self, place: &Place, write: bool, session: u64, used: &[Use]) -> bool {
        let held = self.held.lock();
        let Some(owners) = held.get(place) else {
            return false;
        };
        owners.iter().any(|(owner, held_write)| {
            let waits_for_us = || {
                used.iter().any(|used| {
                    let theirs = held.get(&used.place).and_then(|owners| owners.get(owner));
                    theirs.is_some_and(|lock_write| used.conflicts(*lock_write))
                })
            };
            *owner != session && (write || *held_write) && !waits_for_us()
        })
    }

    fn mode_of(&self, place: &Place, session: u64) -> Option<bool> {
        self.held.lock().get(place)?.get(&session).copied()
    }
}

/// How long a change of a table waits for transactions that have written it, microseconds. Those
/// that take longer fail when they commit.
const GATE_WAIT_MICROS: i64 = 2_000_000;

impl TableGate for Session {
    fn close(&self, database: &str, name: &str) -> SqlResult<()> {
        if self.holds_table_locks {
            // LOCK TABLES, which ALTER TABLE needs for writing, keeps others off already.
            return Ok(());
        }
        let place = (database.to_lowercase(), name.to_lowercase());
        let session = self.state.process.id;
        let locks = &self.instance().table_locks;
        let wanted = [(place.clone(), false)];
        let waiter = &self.state.waiter;
        let limit = Some(GATE_WAIT_MICROS);
        if !waiter.pause(limit, &|| locks.try_take(&wanted, session))? {
            return Ok(());
        }
        let processes = self.instance().processes.list();
        let unused = || {
            let mut others = processes.iter().filter(|process| process.id != session);
            !others.any(|process| process.tables.writes(&place))
        };
        match waiter.pause(limit, &unused) {
            Ok(_) => Ok(()),
            Err(error) => {
                self.open();
                Err(error.into())
            }
        }
    }

    fn open(&self) {
        if self.holds_table_locks {
            return;
        }
        if self
            .instance()
            .table_locks
            .release_if_held(self.state.process.id)
        {
            self.instance().wake_all();
        }
    }
}

impl Session {
    pub(super) fn lock_tables(&mut self, locks: &[TableLock]) -> SqlResult<()> {
        self.commit()?;
        self.state.process.tables.clear();
        self.unlock_tables()?;
        let mut wanted = Vec::new();
        for lock in locks {
            let (database, table) = self.object_name(&lock.table, None)?;
            let (database, table) = self.require_relation(&database, &table)?;
            for (database, table) in self.tables_under(&database, &table)? {
                wanted.push(((database.to_lowercase(), table.to_lowercase()), lock.write));
            }
            wanted.push(((database.to_lowercase(), table.to_lowercase()), lock.write));
        }
        let session = self.state.process.id;
        let table_locks = &self.instance().table_locks;
        self.wait_for_tables(&|| table_locks.try_take(&wanted, session))?;
        self.holds_table_locks = true;
        let processes = self.instance().processes.list();
        let unused = || {
            let mut others = processes.iter().filter(|process| process.id != session);
            !others.any(|process| process.tables.blocks(&wanted))
        };
        self.wait_for_tables(&unused).inspect_err(|_| {
            // Nothing is open, so giving the locks back cannot fail.
            let _ = self.unlock_tables();
        })
    }

    /// The tables a view reads, which are locked as the view is; none for a table. Who locks them
    /// needs for each what locking it by its own name would need.
    fn tables_under(&self, database: &str, view: &str) -> SqlResult<Vec<(String, String)>> {
        let catalog = self.catalog();
        if catalog.view(database, view).is_none() {
            return Ok(Vec::new());
        }
        let text = format!(
            "SELECT 1 FROM {}.{}",
            quote_name(database),
            quote_name(view)
        );
        let mut parsed = parse(&text, SqlMode::default())?;
        let Some(parsed) = parsed.pop() else {
            return Err(SqlError::internal("the query of a lock is no statement"));
        };
        let Some(StatementPlan::Query(plan)) = self.plan(&parsed, &catalog, Some(database))? else {
            return Err(SqlError::internal("the query of a lock has no plan"));
        };
        let account = self.state.account();
        let host = &self.state.client.host;
        for (_, database, table) in &plan.tables {
            let lock = Need::database(Privileges::LOCK_TABLES, "LOCK TABLES", database);
            access::check(&account, &lock, host)?;
            let read = Need::table(Privileges::SELECT, "SELECT", database, table);
            access::check(&account, &read, host)?;
        }
        let tables = plan.tables.into_iter();
        Ok(tables
            .map(|(_, database, table)| (database, table))
            .collect())
    }

    fn wait_for_tables(&self, ready: &dyn Fn() -> bool) -> SqlResult<()> {
        let limit = self.state.settings().lock_wait_micros;
        if self.state.waiter.pause(Some(limit), ready)? {
            return Ok(());
        }
        Err(manxdb_txn::TxnError::LockTimeout.into())
    }

    pub(super) fn unlock_tables(&mut self) -> SqlResult<()> {
        if !std::mem::take(&mut self.holds_table_locks) {
            return Ok(());
        }
        let committed = self.commit();
        self.instance().table_locks.release(self.state.process.id);
        self.instance().wake_all();
        committed
    }

    /// Waits while other sessions' table locks keep this statement out, and notes that it uses
    /// its tables until [`Session::leave_tables`].
    ///
    /// # Errors
    /// 1205; 1100 and 1099 for what this session's own locks do not cover.
    pub(super) fn enter_tables(&self, compiled: &Arc<Compiled>) -> SqlResult<()> {
        let locks = &self.instance().table_locks;
        let tables = &self.state.process.tables;
        loop {
            // Noted first: of a lock being taken and us, at least one sees the other.
            tables.enter(compiled);
            if locks.holders.load(Ordering::SeqCst) == 0 {
                return Ok(());
            }
            let passed = self.pass_table_locks(&compiled.needs);
            if matches!(passed, Ok(true)) {
                return Ok(());
            }
            tables.withdraw();
            self.instance().wake_all();
            passed?;
            self.wait_for_tables(&|| matches!(self.pass_table_locks(&compiled.needs), Ok(true)))?;
        }
    }

    /// The statement is done with its tables, unless its transaction goes on.
    pub(super) fn leave_tables(&self) {
        let freed = self.state.process.tables.leave(self.transaction.is_some());
        if freed && self.instance().table_locks.holders.load(Ordering::SeqCst) > 0 {
            self.instance().wake_all();
        }
    }

    /// Whether no other session's lock keeps this statement out.
    fn pass_table_locks(&self, needs: &[Need]) -> SqlResult<bool> {
        let session = self.state.process.id;
        let used = self.state.process.tables.kept();
        for need in needs {
            let (Some(table), Some(wanted)) = (&need.table, Use::of(need)) else {
                continue;
            };
            if self.holds_table_locks {
                self.check_own_lock(&wanted.place, table, wanted.write)?;
                continue;
            }
            let locks = &self.instance().table_locks;
            if locks.bars(&wanted.place, wanted.write, session, &used) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn check_own_lock(&self, place: &Place, table: &str, write: bool) -> SqlResult<()> {
        let (code, text) = match self
            .instance()
            .table_locks
            .mode_of(place, self.state.process.id)
        {
            None => (
                1100,
                format!("Table '{table}' was not locked with LOCK TABLES"),
            ),
            Some(false) if write => (
                1099,
                format!("Table '{table}' was locked with a READ lock and can't be updated"),
            ),
            Some(_) => return Ok(()),
        };
        Err(SqlError::new(code, "HY000", text))
    }
}
