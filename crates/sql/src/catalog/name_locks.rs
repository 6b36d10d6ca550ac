//! Locks on the names that DDL statements change: a statement waits for those that change the same
//! databases, tables or views, and for no other.
//!
//! A statement takes all of its locks at once, in the order in which statements ask: a request is
//! granted when it conflicts with none that was made before it and has not been given back. So no
//! cycle of waiting statements can arise, and no statement is overtaken for ever. A relation's lock
//! comes with a shared one of its database, so that CREATE, ALTER and DROP DATABASE, which take that
//! exclusively, meet nothing half done in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_txn::{TxnError, Waiter};
use parking_lot::Mutex;

/// What can be locked, by lower-case names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Lockable {
    Database(String),
    Relation(String, String),
}

/// Names that a statement wants to change or rely on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LockedNames {
    /// Whether exclusively.
    wanted: BTreeMap<Lockable, bool>,
}

impl LockedNames {
    /// A database as a whole.
    pub(crate) fn database(name: &str) -> Self {
        let wanted = [(Lockable::Database(name.to_lowercase()), true)];
        Self {
            wanted: wanted.into(),
        }
    }

    /// Adds a table or view that is to be changed.
    pub(crate) fn change(&mut self, database: &str, name: &str) {
        self.add(database, name, true);
    }

    /// Adds a table or view that must stay as it is.
    pub(crate) fn rely_on(&mut self, database: &str, name: &str) {
        self.add(database, name, false);
    }

    fn add(&mut self, database: &str, name: &str, is_exclusive: bool) {
        let database = database.to_lowercase();
        let relation = Lockable::Relation(database.clone(), name.to_lowercase());
        *self.wanted.entry(relation).or_default() |= is_exclusive;
        self.wanted.entry(Lockable::Database(database)).or_default();
    }

    /// Whether who holds these locks may do what `other` is for.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        other.wanted.iter().all(|(name, is_exclusive)| {
            let held = self.wanted.get(name);
            held.is_some_and(|held| *held || !*is_exclusive)
        })
    }

    /// Adds all of `other`.
    pub(crate) fn extend(&mut self, other: Self) {
        for (name, is_exclusive) in other.wanted {
            *self.wanted.entry(name).or_default() |= is_exclusive;
        }
    }

    fn conflicts(&self, other: &Self) -> bool {
        self.wanted.iter().any(|(name, is_exclusive)| {
            let theirs = other.wanted.get(name);
            theirs.is_some_and(|theirs| *theirs || *is_exclusive)
        })
    }
}

struct Request {
    id: u64,
    names: LockedNames,
    waiter: Arc<dyn Waiter>,
}

#[derive(Default)]
struct Line {
    next: u64,
    /// Held and waiting, in the order in which they were made.
    requests: Vec<Request>,
}

/// All name locks of an instance.
#[derive(Default)]
pub(crate) struct NameLocks {
    line: Mutex<Line>,
}

/// Locks held; given back on drop.
pub(crate) struct NameGuard<'a> {
    locks: &'a NameLocks,
    id: u64,
}

impl NameLocks {
    /// Takes all of `names`, however long others change them: a change of a large table is no
    /// reason to fail.
    ///
    /// # Errors
    /// [`TxnError::Interrupted`] and [`TxnError::StatementTimeout`].
    pub(crate) fn acquire(
        &self,
        names: &LockedNames,
        waiter: &Arc<dyn Waiter>,
    ) -> Result<NameGuard<'_>, TxnError> {
        let guard = NameGuard {
            locks: self,
            id: self.line_up(names, waiter),
        };
        while !self.is_granted(guard.id) {
            match waiter.wait(&|| self.is_granted(guard.id)) {
                Ok(()) => {}
                // That limit is one on row locks.
                Err(TxnError::LockTimeout) => waiter.check()?,
                Err(error) => return Err(error),
            }
        }
        Ok(guard)
    }

    fn line_up(&self, names: &LockedNames, waiter: &Arc<dyn Waiter>) -> u64 {
        let mut line = self.line.lock();
        let id = line.next;
        line.next += 1;
        line.requests.push(Request {
            id,
            names: names.clone(),
            waiter: Arc::clone(waiter),
        });
        id
    }

    fn is_granted(&self, id: u64) -> bool {
        let line = self.line.lock();
        let Some(own) = line.requests.iter().find(|request| request.id == id) else {
            return false;
        };
        let mut before = line.requests.iter().take_while(|other| other.id != id);
        !before.any(|other| other.names.conflicts(&own.names))
    }
}

impl Drop for NameGuard<'_> {
    fn drop(&mut self) {
        let mut line = self.locks.line.lock();
        line.requests.retain(|request| request.id != self.id);
        let waiters: Vec<_> = line
            .requests
            .iter()
            .map(|r| Arc::clone(&r.waiter))
            .collect();
        drop(line);
        for waiter in waiters {
            waiter.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Never waits: what is not granted at once is interrupted.
    struct Impatient;

    impl Waiter for Impatient {
        fn wait(&self, ready: &dyn Fn() -> bool) -> Result<(), TxnError> {
            if ready() {
                return Ok(());
            }
            Err(TxnError::Interrupted)
        }

        fn wake(&self) {}

        fn check(&self) -> Result<(), TxnError> {
            Ok(())
        }
    }

    fn table(name: &str) -> LockedNames {
        let mut names = LockedNames::default();
        names.change("d", name);
        names
    }

    fn is_free(locks: &NameLocks, names: &LockedNames) -> bool {
        let waiter: Arc<dyn Waiter> = Arc::new(Impatient);
        locks.acquire(names, &waiter).is_ok()
    }

    #[test]
    fn other_tables_are_free_and_their_database_is_not() {
        let locks = NameLocks::default();
        let waiter: Arc<dyn Waiter> = Arc::new(Impatient);
        let held = locks.acquire(&table("T"), &waiter).unwrap();
        assert!(is_free(&locks, &table("u")));
        assert!(!is_free(&locks, &table("t")), "names are those of any case");
        assert!(!is_free(&locks, &LockedNames::database("D")));
        assert!(is_free(&locks, &LockedNames::database("other")));
        drop(held);
        assert!(is_free(&locks, &LockedNames::database("d")));
        assert!(locks.line.lock().requests.is_empty(), "failures leave none");
    }

    #[test]
    fn what_is_relied_on_is_shared() {
        let locks = NameLocks::default();
        let waiter: Arc<dyn Waiter> = Arc::new(Impatient);
        let mut shared = LockedNames::default();
        shared.rely_on("d", "t");
        let _held = locks.acquire(&shared, &waiter).unwrap();
        assert!(is_free(&locks, &shared));
        assert!(!is_free(&locks, &table("t")));
        assert!(table("t").covers(&shared) && !shared.covers(&table("t")));
    }

    #[test]
    fn a_request_is_not_overtaken_by_a_later_one() {
        let locks = NameLocks::default();
        let waiter: Arc<dyn Waiter> = Arc::new(Impatient);
        let _held = locks.acquire(&table("t"), &waiter).unwrap();
        let waiting = locks.line_up(&LockedNames::database("d"), &waiter);
        assert!(
            !is_free(&locks, &table("u")),
            "DROP DATABASE waits before it"
        );
        drop(NameGuard {
            locks: &locks,
            id: waiting,
        });
        assert!(is_free(&locks, &table("u")));
    }
}
