//! A session's transaction: snapshot reads under buffered writes.
//!
//! | | plain reads see | locking reads and writes see | validated at commit |
//! |---|---|---|---|
//! | READ COMMITTED | the state at the statement's start | the newest state | locked and `Validate` points |
//! | REPEATABLE READ | the state at the first plain read | the newest state | the same, and locked ranges |
//! | SERIALIZABLE | one snapshot | that snapshot, moved forward while all read so far still holds | everything read |

mod buffer;
mod locking;
mod many;
mod page;
mod passing;
mod reads;
mod undo;
mod used;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use manxdb_core::check::deep;
use manxdb_storage::{Direction, Durability, KeyRange, SortedWrites as _, Version};

pub use self::locking::rest_behind;
pub use self::passing::{Look, Reach, View, WantedPage};
pub use self::used::UsedPart;

use self::buffer::WriteBuffer;
use self::locking::HeldLocks;
use self::page::covered;
use self::reads::Recorded;
use self::used::{COMMIT_TRIES, KEPT_BYTES_MAX};
use crate::error::TxnError;
use crate::locks::{Strength, Ticket};
use crate::model::{Intent, IsolationLevel, Page, ReadSet, Snapshot, TxnId};
use crate::path::CommitPath;
use crate::waiter::{Waiter, resolve};

/// Bytes of keys and values one transaction may write unless told otherwise.
pub const SIZE_LIMIT_BYTES: usize = 256 << 20;

/// Why a key is read, which decides what is recorded and locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReadMode {
    /// Plain SELECT: recorded for validation only at SERIALIZABLE.
    Plain,
    /// LOCK IN SHARE MODE, FOR SHARE, and the parent row of a foreign key: shared lock, newest
    /// state below SERIALIZABLE, validated at every level.
    Share,
    /// FOR SHARE NOWAIT: a row locked by another is [`TxnError::LockNotAvailable`].
    ShareNoWait,
    /// FOR SHARE SKIP LOCKED: a row locked by another is as if absent.
    ShareSkipLocked,
    /// FOR UPDATE, UPDATE, DELETE, uniqueness and child rows of foreign keys: exclusive lock,
    /// newest state below SERIALIZABLE, validated at every level.
    Update,
    /// FOR UPDATE NOWAIT: a row locked by another is [`TxnError::LockNotAvailable`].
    UpdateNoWait,
    /// FOR UPDATE SKIP LOCKED: a row locked by another is as if absent.
    UpdateSkipLocked,
    /// Catalog and internal look-ups: always validated, never locked.
    Validate,
}

/// What to do about a row that another has locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    Wait,
    NoWait,
    Skip,
}

impl ReadMode {
    fn lock(self) -> Option<(Strength, Patience)> {
        Some(match self {
            ReadMode::Plain | ReadMode::Validate => return None,
            ReadMode::Share => (Strength::Shared, Patience::Wait),
            ReadMode::ShareNoWait => (Strength::Shared, Patience::NoWait),
            ReadMode::ShareSkipLocked => (Strength::Shared, Patience::Skip),
            ReadMode::Update => (Strength::Exclusive, Patience::Wait),
            ReadMode::UpdateNoWait => (Strength::Exclusive, Patience::NoWait),
            ReadMode::UpdateSkipLocked => (Strength::Exclusive, Patience::Skip),
        })
    }

    /// Whether rows read this way are locked.
    #[must_use]
    pub fn locks(self) -> bool {
        self.lock().is_some()
    }
}

/// One transaction of one session. Single-threaded by design: `&self` with cells inside, so
/// that operators of one plan can share it.
///
/// # Retrying
/// [`TxnError::Conflict`] and [`TxnError::Deadlock`] end the transaction: every later call
/// answers a conflict until [`Transaction::restart`] or the end. A session may restart and run
/// the statement again when nothing of the transaction reached the client before it, that is
/// for an autocommitted statement, or while [`Transaction::is_first_statement`]. After a lock
/// time-out or an interruption the transaction goes on; undo the statement with
/// [`Transaction::rollback_to`].
pub struct Transaction {
    path: Arc<dyn CommitPath>,
    id: TxnId,
    isolation: IsolationLevel,
    waiter: Arc<dyn Waiter>,
    size_limit_bytes: Cell<usize>,
    inner: RefCell<Inner>,
    #[cfg(feature = "mutants")]
    mutants: Cell<crate::mutants::Mutants>,
}

#[derive(Default)]
struct Inner {
    /// What plain reads see, once taken.
    snapshot: Option<Snapshot>,
    recorded: Recorded,
    writes: WriteBuffer,
    held: HeldLocks,
    /// Newest state that was looked at which may not be acknowledged yet.
    newest_ordered: Version,
    /// Rows that were looked at and not locked, of ranges that are validated around them.
    passed: usize,
    /// A lock a polled call still waits for.
    pending: Option<Arc<Ticket>>,
    read_only: bool,
    statements: u64,
    doomed: bool,
    #[cfg(feature = "mutants")]
    no_writes: WriteBuffer,
    #[cfg(feature = "mutants")]
    hide_own_writes: bool,
}

impl Inner {
    /// Own writes as reads see them.
    fn visible_writes(&self) -> &WriteBuffer {
        #[cfg(feature = "mutants")]
        if self.hide_own_writes {
            return &self.no_writes;
        }
        &self.writes
    }
}

impl Transaction {
    /// Starts a transaction; the snapshot is taken at the first read.
    #[must_use]
    pub fn begin(
        path: Arc<dyn CommitPath>,
        id: TxnId,
        isolation: IsolationLevel,
        waiter: Arc<dyn Waiter>,
    ) -> Self {
        Self {
            path,
            id,
            isolation,
            waiter,
            size_limit_bytes: Cell::new(SIZE_LIMIT_BYTES),
            inner: RefCell::default(),
            #[cfg(feature = "mutants")]
            mutants: Cell::default(),
        }
    }

    /// Reads the state at `version`, which the caller knows to be kept, and writes nothing.
    #[must_use]
    pub fn at(path: Arc<dyn CommitPath>, version: Version, waiter: Arc<dyn Waiter>) -> Self {
        let reader = Self::begin(
            path,
            TxnId(u64::MAX),
            IsolationLevel::RepeatableRead,
            waiter,
        );
        {
            let mut inner = reader.inner.borrow_mut();
            inner.read_only = true;
            inner.snapshot = Some(Snapshot { version, pin: None });
        }
        reader
    }

    /// Plants a defect, to prove that the tests would find it.
    #[cfg(feature = "mutants")]
    pub fn plant(&self, mutants: crate::mutants::Mutants) {
        self.mutants.set(mutants);
        self.inner.borrow_mut().hide_own_writes = mutants.hide_own_writes;
    }

    /// Who this transaction is to the lock table.
    #[must_use]
    pub fn id(&self) -> TxnId {
        self.id
    }

    /// The level it runs at.
    #[must_use]
    pub fn isolation(&self) -> IsolationLevel {
        self.isolation
    }

    /// Changes how many bytes it may write.
    pub fn set_size_limit(&self, bytes: usize) {
        self.size_limit_bytes.set(bytes);
    }

    /// Promises that nothing will be written, before the first read: reads need not be recorded,
    /// since they are all of one snapshot. A write then answers [`TxnError::ReadOnly`].
    pub fn declare_read_only(&self) {
        self.inner.borrow_mut().read_only = true;
    }

    /// Takes the snapshot now (START TRANSACTION WITH CONSISTENT SNAPSHOT).
    ///
    /// # Errors
    /// [`TxnError`] when the path cannot give a snapshot.
    pub fn take_snapshot(&self) -> Result<(), TxnError> {
        self.view().map(drop)
    }

    /// Tells that a statement begins: under READ COMMITTED it takes a new snapshot.
    ///
    /// # Errors
    /// [`TxnError::Conflict`] when the transaction has been lost already.
    pub fn start_statement(&self) -> Result<(), TxnError> {
        self.check_usable()?;
        let mut inner = self.inner.borrow_mut();
        inner.statements += 1;
        if self.isolation == IsolationLevel::ReadCommitted {
            inner.snapshot = None;
        }
        Ok(())
    }

    /// Whether at most one statement has begun, so that a lost transaction can be restarted
    /// with that statement (unless it has sent rows to the client already).
    #[must_use]
    pub fn is_first_statement(&self) -> bool {
        self.inner.borrow().statements <= 1
    }

    /// Begins anew under the same identity: no writes, no reads, no locks, no snapshot.
    pub fn restart(&self) {
        self.release_locks();
        let mut inner = self.inner.borrow_mut();
        *inner = Inner {
            read_only: inner.read_only,
            ..Inner::default()
        };
        #[cfg(feature = "mutants")]
        {
            inner.hide_own_writes = self.mutants.get().hide_own_writes;
        }
    }

    /// The value of `key`, own writes included.
    ///
    /// # Errors
    /// [`TxnError`]; a conflict or a deadlock ends the transaction.
    pub fn get(&self, key: &[u8], mode: ReadMode) -> Result<Option<Vec<u8>>, TxnError> {
        self.check_usable()?;
        if let Some(own) = self.inner.borrow().visible_writes().get(key) {
            return Ok(own.map(<[u8]>::to_vec));
        }
        if let Some((strength, patience)) = mode.lock() {
            return self.get_locked(key, strength, patience);
        }
        let at = self.unlocked_view(mode)?;
        let value = resolve(self.path.get(at.version, key), &self.waiter)?;
        if self.records(mode) {
            self.inner.borrow_mut().recorded.point(key, &at);
        }
        Ok(value)
    }

    /// Up to `limit` entries of `range` in `direction`, own writes included; fewer only at the
    /// end. Call again with the range cut behind the last key for more ([`rest_behind`]).
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn scan(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        mode: ReadMode,
    ) -> Result<Page, TxnError> {
        self.check_usable()?;
        if limit == 0 {
            return Ok(Page::new());
        }
        if let Some((strength, patience)) = mode.lock() {
            return self.scan_locked(range, direction, limit, strength, patience);
        }
        let at = self.unlocked_view(mode)?;
        let page = self.merged_page(&at, range, direction, limit, &mut |_| Ok(true))?;
        if self.records(mode) {
            let seen = covered(range, direction, limit, &page);
            let mut inner = self.inner.borrow_mut();
            inner.recorded.range(seen, direction, &at);
        }
        Ok(page)
    }

    /// Buffers a write, and locks its key.
    ///
    /// # Errors
    /// [`TxnError::TooLarge`], and those of waiting for a lock; nothing is buffered then.
    pub fn put(&self, key: Vec<u8>, value: Vec<u8>) -> Result<(), TxnError> {
        self.write(key, Some(value))
    }

    /// Buffers a deletion, and locks its key.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn delete(&self, key: Vec<u8>) -> Result<(), TxnError> {
        self.write(key, None)
    }

    fn write(&self, key: Vec<u8>, write: Option<Vec<u8>>) -> Result<(), TxnError> {
        self.check_usable()?;
        let (size_bytes, is_own) = {
            let inner = self.inner.borrow();
            if inner.read_only {
                return Err(TxnError::ReadOnly);
            }
            let written = key.len() + write.as_ref().map_or(0, Vec::len);
            let own = inner.writes.get(&key);
            (inner.writes.bytes() + written, own.is_some())
        };
        let limit_bytes = self.size_limit_bytes.get();
        if size_bytes > limit_bytes {
            return Err(TxnError::TooLarge {
                size_bytes,
                limit_bytes,
            });
        }
        if !is_own {
            self.lock(&key, Strength::Exclusive, Patience::Wait)?;
        }
        let mut inner = self.inner.borrow_mut();
        inner.writes.put(key, write);
        assert!(
            inner.writes.bytes() <= size_bytes,
            "a write takes no more than was admitted"
        );
        Ok(())
    }

    /// Whether reads made elsewhere still hold; if so the commit depends on them. Their reader
    /// keeps its snapshot meanwhile, or they may count as changed.
    pub(crate) fn rely_on(&self, reads: &ReadSet) -> Result<bool, TxnError> {
        self.check_usable()?;
        match resolve(self.path.refresh(reads), &self.waiter) {
            Ok(at) => {
                self.looked_at(&at);
                self.inner.borrow_mut().recorded.include(reads, &at);
                Ok(true)
            }
            Err(TxnError::Conflict { .. }) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Bytes of its writes that are packed, and of what undoes them: all but the last some thousand.
    #[must_use]
    pub fn packed_bytes(&self) -> usize {
        self.inner.borrow().writes.packed_bytes()
    }

    /// Marks the buffered writes, so that a failed statement or ROLLBACK TO can undo to here.
    #[must_use]
    pub fn savepoint(&self) -> usize {
        self.inner.borrow().writes.savepoint()
    }

    /// Undoes writes made since `savepoint`; reads and locks stay.
    pub fn rollback_to(&self, savepoint: usize) {
        self.inner.borrow_mut().writes.rollback_to(savepoint);
    }

    /// Whether plain reads see an older state of `key` than locking reads and writes do: at
    /// REPEATABLE READ, when others have committed to it since the snapshot was taken. A write of
    /// the key then stands among reads of that older state.
    ///
    /// # Errors
    /// Those of asking the path.
    pub fn plain_reads_lag(&self, key: &[u8]) -> Result<bool, TxnError> {
        if self.isolation != IsolationLevel::RepeatableRead {
            return Ok(false);
        }
        let Some(snapshot) = self.inner.borrow().snapshot.clone() else {
            return Ok(false);
        };
        resolve(
            self.path.key_changed_since(key, snapshot.version),
            &self.waiter,
        )
    }

    /// Whether `key` was written, or deleted, by this transaction.
    #[must_use]
    pub fn has_written(&self, key: &[u8]) -> bool {
        self.inner.borrow().writes.get(key).is_some()
    }

    /// The version that plain reads see, where all that they read of `ranges` is what was committed
    /// up to it and need not be validated: nothing of them is written, and the level promises no more.
    ///
    /// # Errors
    /// Those of asking the path; [`TxnError::Conflict`] when the transaction has been lost.
    pub fn unwritten_version(&self, ranges: &[KeyRange]) -> Result<Option<Version>, TxnError> {
        self.check_usable()?;
        if self.records(ReadMode::Plain) {
            return Ok(None);
        }
        let is_written = {
            let inner = self.inner.borrow();
            let writes = inner.visible_writes();
            let mut ranges = ranges.iter();
            ranges.any(|range| writes.first(range, Direction::Forward).is_some())
        };
        if is_written {
            return Ok(None);
        }
        Ok(Some(self.view()?.version))
    }

    /// Whether anything was written.
    #[must_use]
    pub fn has_writes(&self) -> bool {
        !self.inner.borrow().writes.is_empty()
    }

    /// Commits; locks are released whatever the outcome. Without writes there is nothing to
    /// order: all that was read is true at one snapshot (SERIALIZABLE), or nothing more was
    /// promised.
    ///
    /// # Errors
    /// [`TxnError::Conflict`] when a validated read is no longer true.
    pub fn commit(self, durability: Durability) -> Result<Version, TxnError> {
        self.check_usable()?;
        if !self.has_writes() {
            let snapshot = self.inner.borrow_mut().snapshot.take();
            self.confirm_reads()?;
            return Ok(snapshot.map_or(Version::ZERO, |snapshot| snapshot.version));
        }
        for _ in 0..COMMIT_TRIES {
            let Some(intent) = self.kept_intent(durability) else {
                break;
            };
            match resolve(self.path.submit(intent), &self.waiter) {
                Err(TxnError::Conflict { .. }) => self.advance()?,
                verdict => return verdict,
            }
        }
        // The first recorded read stays pinned until the verdict.
        let (reads, writes, _pin) = {
            let mut inner = self.inner.borrow_mut();
            let (reads, pin) = std::mem::take(&mut inner.recorded).into_read_set();
            (reads, std::mem::take(&mut inner.writes), pin)
        };
        // Snapshots and locks go when `self` does, after the verdict.
        if writes.is_packed() {
            let intent = self.intent(reads, Vec::new(), durability);
            let sorted = Box::new(writes.into_sorted());
            assert!(!sorted.is_empty(), "what is submitted writes");
            return resolve(self.path.submit_sorted(intent, sorted), &self.waiter);
        }
        let intent = self.intent(reads, writes.into_writes(), durability);
        assert!(!intent.writes.is_empty(), "what is submitted writes");
        resolve(self.path.submit(intent), &self.waiter)
    }

    /// The intent of a commit that may be tried again, since it can look at what it used.
    fn kept_intent(&self, durability: Durability) -> Option<Intent> {
        let (reads, writes) = {
            let inner = self.inner.borrow();
            let is_large = inner.writes.is_packed() || inner.writes.bytes() > KEPT_BYTES_MAX;
            if is_large || !inner.recorded.has_partly_used() {
                return None;
            }
            (inner.recorded.to_read_set(), inner.writes.to_writes())
        };
        Some(self.intent(reads, writes, durability))
    }

    fn intent(
        &self,
        reads: ReadSet,
        writes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
        durability: Durability,
    ) -> Intent {
        assert!(
            writes.is_sorted_by(|(one, _), (next, _)| one < next),
            "an intent writes each key once, in order"
        );
        let is_locked = |(key, _): &(Vec<u8>, _)| self.is_locked(key, Strength::Exclusive);
        assert!(
            !deep() || writes.iter().all(is_locked),
            "a row is locked until its write has its place in the commit order"
        );
        Intent {
            txn: self.id,
            isolation: self.isolation,
            reads,
            writes,
            durability,
            locks: self.locks_to_give_back(),
        }
    }

    /// Drops the writes and releases the locks.
    pub fn rollback(self) {
        // Whoever was shown a state sees it in its next transaction. A failure is told there.
        let _ = self.confirm_reads();
    }

    /// Waits until all that was read is acknowledged. Locks are given back before.
    fn confirm_reads(&self) -> Result<(), TxnError> {
        self.release_locks();
        let newest = self.inner.borrow().newest_ordered;
        #[cfg(feature = "mutants")]
        if self.mutants.get().skip_confirmation {
            return Ok(());
        }
        resolve(self.path.confirm(newest), &self.waiter)
    }

    fn check_usable(&self) -> Result<(), TxnError> {
        if self.inner.borrow().doomed {
            return Err(TxnError::Conflict {
                what: "the transaction was lost earlier".into(),
            });
        }
        Ok(())
    }

    /// Remembers that the transaction is lost when `failure` means so.
    fn doom(&self, failure: TxnError) -> TxnError {
        if matches!(failure, TxnError::Conflict { .. } | TxnError::Deadlock) {
            self.inner.borrow_mut().doomed = true;
        }
        failure
    }

    /// Whether a read in `mode` without lock is validated at commit: then reading more than is
    /// needed makes conflicts more likely.
    #[must_use]
    pub fn records(&self, mode: ReadMode) -> bool {
        if self.inner.borrow().read_only {
            return false;
        }
        mode == ReadMode::Validate || self.isolation == IsolationLevel::Serializable
    }

    /// What a read without lock sees. A look-up into the catalog does not fix the snapshot of
    /// REPEATABLE READ: MySQL takes it at the first SELECT, not at an UPDATE before it.
    fn unlocked_view(&self, mode: ReadMode) -> Result<Snapshot, TxnError> {
        let has_snapshot = self.inner.borrow().snapshot.is_some();
        if mode == ReadMode::Validate
            && self.isolation == IsolationLevel::RepeatableRead
            && !has_snapshot
        {
            return self.newest();
        }
        self.view()
    }

    /// The snapshot of plain reads, taken at the first of them.
    fn view(&self) -> Result<Snapshot, TxnError> {
        if let Some(snapshot) = &self.inner.borrow().snapshot {
            return Ok(snapshot.clone());
        }
        let snapshot = self.newest()?;
        self.inner.borrow_mut().snapshot = Some(snapshot.clone());
        Ok(snapshot)
    }

    /// The newest acknowledged state; once rows are locked, the newest that has its place in the
    /// commit order. A lock may have been given back by a commit that is not acknowledged, and
    /// whoever waited for the lock counts on seeing all of that commit.
    fn newest(&self) -> Result<Snapshot, TxnError> {
        if self.inner.borrow().held.is_empty() {
            return resolve(self.path.snapshot(), &self.waiter);
        }
        self.newest_ordered()
    }

    fn newest_ordered(&self) -> Result<Snapshot, TxnError> {
        #[cfg(feature = "mutants")]
        if self.mutants.get().old_reads_under_locks {
            return resolve(self.path.snapshot(), &self.waiter);
        }
        let snapshot = resolve(self.path.ordered_snapshot(), &self.waiter)?;
        self.looked_at(&snapshot);
        Ok(snapshot)
    }

    /// Notes that a state was looked at that may not be acknowledged yet.
    fn looked_at(&self, ordered: &Snapshot) {
        let mut inner = self.inner.borrow_mut();
        inner.newest_ordered = inner.newest_ordered.max(ordered.version);
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.release_locks();
    }
}
