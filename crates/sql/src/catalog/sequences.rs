//! AUTO_INCREMENT counters and hidden row ids.
//!
//! Numbers are handed out from memory; what is stored is a bound no number at or above which has
//! been handed out. The bound is moved in blocks by small transactions of their own, so a crash
//! may leave a gap but never hands a number out twice. Those transactions need not be synced: a
//! row that survives a crash was logged after the bound it depends on.
//!
//! Several servers on the same rows take blocks of the same bound, so that no two of them hand out
//! the same number. Numbers that a statement gives by itself are not heard of by the others.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use manxdb_storage::Durability;
use manxdb_txn::{CommitPath, IsolationLevel, ReadMode, Transaction, TxnId, Waiter};
use parking_lot::Mutex;

use super::TableId;
use super::record::sequence_key;
use crate::error::{SqlError, SqlResult};

/// Numbers reserved at a time.
const BLOCK: u64 = 1_000;
/// Conflicts on one reservation after which something else is wrong.
const RETRIES_MAX: usize = 100;

/// Which counter of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SequenceKind {
    /// AUTO_INCREMENT: from 1.
    AutoIncrement = 1,
    /// Keys of rows without a primary key.
    RowId = 2,
}

/// One counter: the next number and the stored bound.
#[derive(Debug, Default)]
struct Counter {
    loaded: bool,
    next: u64,
    bound: u64,
}

type Key = (TableId, SequenceKind);

/// All counters of an instance.
pub struct Sequences {
    path: Arc<dyn CommitPath>,
    waiter: Arc<dyn Waiter>,
    ids: AtomicU64,
    counters: Mutex<HashMap<Key, Arc<Mutex<Counter>>>>,
}

impl Sequences {
    /// Counters stored in `path`.
    #[must_use]
    pub fn new(path: Arc<dyn CommitPath>, waiter: Arc<dyn Waiter>) -> Self {
        Self {
            path,
            waiter,
            ids: AtomicU64::new(u64::MAX / 2),
            counters: Mutex::default(),
        }
    }

    /// The next number.
    ///
    /// # Errors
    /// Storage; 1467 when the counter is exhausted.
    pub fn next(&self, table: TableId, kind: SequenceKind) -> SqlResult<u64> {
        self.next_up_to(table, kind, u64::MAX)
    }

    /// As [`Sequences::next`] for a column that holds at most `most`. Behind the last number it
    /// is given again and again, as in MySQL: the row that gets it meets the one that has it. A
    /// counter that was set further behind gives what does not fit.
    ///
    /// # Errors
    /// As [`Sequences::next`].
    pub fn next_up_to(&self, table: TableId, kind: SequenceKind, most: u64) -> SqlResult<u64> {
        let counter = self.counter(table, kind);
        let mut counter = counter.lock();
        self.load(&mut counter, table, kind)?;
        if counter.next == u64::MAX {
            return Err(exhausted());
        }
        if counter.next == most.saturating_add(1) {
            return Ok(most);
        }
        if counter.next >= counter.bound {
            self.reserve(&mut counter, table, kind)?;
        }
        let number = counter.next;
        counter.next += 1;
        Ok(number)
    }

    /// The number [`Sequences::next`] would give; nothing is taken.
    ///
    /// # Errors
    /// Storage.
    pub fn peek(&self, table: TableId, kind: SequenceKind) -> SqlResult<u64> {
        let counter = self.counter(table, kind);
        let mut counter = counter.lock();
        if self.path.others().is_some() {
            let mut stored = Counter::default(); // others may have gone on
            self.load(&mut stored, table, kind)?;
            return Ok(stored.next);
        }
        self.load(&mut counter, table, kind)?;
        Ok(counter.next)
    }

    /// A row got `used` by an explicit value: the counter goes on behind it.
    ///
    /// # Errors
    /// Storage.
    pub fn raise(&self, table: TableId, kind: SequenceKind, used: u64) -> SqlResult<()> {
        let counter = self.counter(table, kind);
        let mut counter = counter.lock();
        self.load(&mut counter, table, kind)?;
        let next = used.saturating_add(1);
        if next <= counter.next {
            return Ok(());
        }
        counter.next = next;
        if next > counter.bound {
            self.reserve(&mut counter, table, kind)?;
        }
        Ok(())
    }

    /// `AUTO_INCREMENT = next`: the counter is exactly there.
    ///
    /// # Errors
    /// Storage.
    pub fn set(&self, table: TableId, kind: SequenceKind, next: u64) -> SqlResult<()> {
        let counter = self.counter(table, kind);
        let mut counter = counter.lock();
        self.write(table, kind, &|_| next)?;
        *counter = Counter {
            loaded: true,
            next,
            bound: next,
        };
        Ok(())
    }

    /// Forgets a dropped table.
    pub fn forget(&self, table: TableId) {
        self.counters.lock().retain(|(id, _), _| *id != table);
    }

    /// Stores every counter exactly, so that an orderly restart leaves no gap.
    ///
    /// # Errors
    /// Storage.
    pub fn flush(&self) -> SqlResult<()> {
        let all: Vec<(Key, Arc<Mutex<Counter>>)> = self
            .counters
            .lock()
            .iter()
            .map(|(key, counter)| (*key, Arc::clone(counter)))
            .collect();
        for ((table, kind), counter) in all {
            let mut counter = counter.lock();
            if counter.loaded && counter.bound != counter.next {
                let (bound, next) = (counter.bound, counter.next);
                // Unless somebody has gone on from the bound since.
                self.write(table, kind, &|stored| {
                    if stored == bound { next } else { stored }
                })?;
                counter.bound = counter.next;
            }
        }
        Ok(())
    }

    fn counter(&self, table: TableId, kind: SequenceKind) -> Arc<Mutex<Counter>> {
        let mut counters = self.counters.lock();
        Arc::clone(counters.entry((table, kind)).or_default())
    }

    fn begin(&self) -> Transaction {
        let id = TxnId(self.ids.fetch_add(1, Ordering::Relaxed));
        Transaction::begin(
            Arc::clone(&self.path),
            id,
            IsolationLevel::Serializable,
            Arc::clone(&self.waiter),
        )
    }

    fn load(&self, counter: &mut Counter, table: TableId, kind: SequenceKind) -> SqlResult<()> {
        if counter.loaded {
            return Ok(());
        }
        let txn = self.begin();
        counter.next = stored(&txn, table, kind, ReadMode::Plain)?;
        txn.rollback();
        counter.bound = counter.next;
        counter.loaded = true;
        Ok(())
    }

    /// Takes the next numbers that are nobody's, from the counter's on.
    fn reserve(&self, counter: &mut Counter, table: TableId, kind: SequenceKind) -> SqlResult<()> {
        let wanted = counter.next;
        let end = |stored: u64| stored.max(wanted).saturating_add(BLOCK);
        let before = self.write(table, kind, &end)?;
        counter.next = before.max(wanted);
        counter.bound = end(before);
        Ok(())
    }

    /// Stores what is made of what is stored; what that was.
    fn write(
        &self,
        table: TableId,
        kind: SequenceKind,
        make: &dyn Fn(u64) -> u64,
    ) -> SqlResult<u64> {
        for _ in 0..RETRIES_MAX {
            let txn = self.begin();
            let before = stored(&txn, table, kind, ReadMode::Validate)?;
            let bytes = make(before).to_be_bytes().to_vec();
            txn.put(sequence_key(table, kind as u8), bytes)?;
            match txn.commit(Durability::Async) {
                Ok(_) => return Ok(before),
                Err(manxdb_txn::TxnError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(SqlError::internal("a sequence could not be reserved"))
    }
}

/// The bound that is stored.
fn stored(txn: &Transaction, table: TableId, kind: SequenceKind, mode: ReadMode) -> SqlResult<u64> {
    let stored = txn.get(&sequence_key(table, kind as u8), mode)?;
    match stored.as_deref().map(TryInto::<[u8; 8]>::try_into) {
        None => Ok(1),
        Some(Ok(bytes)) => Ok(u64::from_be_bytes(bytes)),
        Some(Err(_)) => Err(SqlError::new(1712, "HY000", "a sequence is damaged")),
    }
}

/// 1467: no number left.
pub(crate) fn exhausted() -> SqlError {
    SqlError::new(
        1467,
        "HY000",
        "Failed to read auto-increment value from storage engine",
    )
}
