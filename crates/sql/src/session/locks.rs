//! LOCK TABLES and UNLOCK TABLES.
//!
//! A WRITE lock keeps other sessions' statements off the table, a READ lock keeps their writing
//! ones off; they wait as for a row lock. Statements that run when the lock is taken are not
//! waited for: their commits are validated against the locker's reads as ever, so the lock is a
//! courtesy between sessions and not what consistency rests on. As in MySQL, LOCK TABLES commits
//! what is open, replaces earlier locks, and the session may then use only what it locked.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::accounts::{Need, Privileges};
use super::session::Session;
use crate::error::{SqlError, SqlResult};
use crate::parser::TableLock;

/// Lower-case database and table.
type Place = (String, String);

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

    /// Whether another session's lock keeps `session` from `place`.
    fn bars(&self, place: &Place, write: bool, session: u64) -> bool {
        self.held.lock().get(place).is_some_and(|owners| {
            owners
                .iter()
                .any(|(owner, held_write)| *owner != session && (write || *held_write))
        })
    }

    fn mode_of(&self, place: &Place, session: u64) -> Option<bool> {
        self.held.lock().get(place)?.get(&session).copied()
    }
}

impl Session {
    pub(super) fn lock_tables(&mut self, locks: &[TableLock]) -> SqlResult<()> {
        self.commit()?;
        self.unlock_tables()?;
        let mut wanted = Vec::new();
        for lock in locks {
            let (database, table) = self.object_name(&lock.table, None)?;
            let (database, table) = self.require_relation(&database, &table)?;
            wanted.push(((database.to_lowercase(), table.to_lowercase()), lock.write));
        }
        let session = self.facts.process.id;
        let limit = self.facts.settings().lock_wait_micros;
        let table_locks = &self.instance().table_locks;
        let take = || table_locks.try_take(&wanted, session);
        if !self.facts.waiter.pause(Some(limit), &take)? {
            return Err(manxdb_txn::TxnError::LockTimeout.into());
        }
        self.holds_table_locks = true;
        Ok(())
    }

    pub(super) fn unlock_tables(&mut self) -> SqlResult<()> {
        if std::mem::take(&mut self.holds_table_locks) {
            self.commit()?;
            self.instance().table_locks.release(self.facts.process.id);
            self.instance().wake_all();
        }
        Ok(())
    }

    /// Waits while other sessions' table locks keep this statement out.
    ///
    /// # Errors
    /// 1205; 1100 and 1099 for what this session's own locks do not cover.
    pub(super) fn pass_table_locks(&self, needs: &[Need]) -> SqlResult<()> {
        let locks = &self.instance().table_locks;
        if locks.holders.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        for need in needs {
            let Some(table) = &need.table else {
                continue;
            };
            let place = (need.database.to_lowercase(), table.to_lowercase());
            let write = !need.any_of.has(Privileges::SELECT);
            if self.holds_table_locks {
                self.check_own_lock(&place, table, write)?;
                continue;
            }
            let session = self.facts.process.id;
            let limit = self.facts.settings().lock_wait_micros;
            let free = || !locks.bars(&place, write, session);
            if !self.facts.waiter.pause(Some(limit), &free)? {
                return Err(manxdb_txn::TxnError::LockTimeout.into());
            }
        }
        Ok(())
    }

    fn check_own_lock(&self, place: &Place, table: &str, write: bool) -> SqlResult<()> {
        let (code, text) = match self
            .instance()
            .table_locks
            .mode_of(place, self.facts.process.id)
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
