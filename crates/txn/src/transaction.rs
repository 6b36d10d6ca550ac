//! A session's transaction: snapshot reads under buffered writes.

use std::sync::Arc;

use manxdb_storage::{Direction, Durability, KeyRange, Version};

use crate::path::{CommitPath, IsolationLevel, Page, TxnError, TxnId};

/// How a session waits, so that no room below a door owns a clock or a thread.
pub trait Waiter: Send + Sync {
    /// Blocks until `ready` is set by another session or the wait must end.
    ///
    /// # Errors
    /// [`TxnError::LockTimeout`], [`TxnError::Interrupted`] or [`TxnError::StatementTimeout`].
    fn wait(&self, ready: &dyn Fn() -> bool) -> Result<(), TxnError>;

    /// Cheap check between rows: was the session killed, did the statement's time run out?
    ///
    /// # Errors
    /// [`TxnError::Interrupted`] or [`TxnError::StatementTimeout`].
    fn check(&self) -> Result<(), TxnError>;
}

/// Why a key is read, which decides what is recorded and locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReadMode {
    /// Plain SELECT: recorded for validation only at SERIALIZABLE.
    Plain,
    /// LOCK IN SHARE MODE: validated at every level, not locked.
    Share,
    /// FOR UPDATE, UPDATE, DELETE, uniqueness and foreign-key checks: locked, newest state below
    /// SERIALIZABLE, validated at every level.
    Update,
    /// Catalog and internal look-ups: always validated, never locked.
    Validate,
}

/// One transaction of one session. Single-threaded by design: `&self` with cells inside, so
/// that operators of one plan can share it.
pub struct Transaction {
    _path: Arc<dyn CommitPath>,
}

impl Transaction {
    /// Starts a transaction; the snapshot is taken at the first read.
    #[must_use]
    pub fn begin(
        _path: Arc<dyn CommitPath>,
        _id: TxnId,
        _isolation: IsolationLevel,
        _waiter: Arc<dyn Waiter>,
    ) -> Self {
        Self { _path }
    }

    /// Tells that a statement begins: under READ COMMITTED it takes a new snapshot.
    ///
    /// # Errors
    /// [`TxnError`] when the path cannot give a snapshot.
    pub fn start_statement(&self) -> Result<(), TxnError> {
        Ok(())
    }

    /// The value of `key`, own writes included.
    ///
    /// # Errors
    /// [`TxnError`]; a conflict or a deadlock ends the transaction.
    pub fn get(&self, _key: &[u8], _mode: ReadMode) -> Result<Option<Vec<u8>>, TxnError> {
        Ok(None)
    }

    /// Up to `limit` entries of `range` in `direction`, own writes included. Call again with the
    /// range cut behind the last key for more.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn scan(
        &self,
        _range: &KeyRange,
        _direction: Direction,
        _limit: usize,
        _mode: ReadMode,
    ) -> Result<Page, TxnError> {
        Ok(Vec::new())
    }

    /// Buffers a write.
    ///
    /// # Errors
    /// [`TxnError::TooLarge`].
    pub fn put(&self, _key: Vec<u8>, _value: Vec<u8>) -> Result<(), TxnError> {
        Ok(())
    }

    /// Buffers a deletion.
    ///
    /// # Errors
    /// [`TxnError::TooLarge`].
    pub fn delete(&self, _key: Vec<u8>) -> Result<(), TxnError> {
        Ok(())
    }

    /// Marks the buffered writes, so that a failed statement or ROLLBACK TO can undo to here.
    #[must_use]
    pub fn savepoint(&self) -> usize {
        0
    }

    /// Undoes writes made since `savepoint`; reads and locks stay.
    pub fn rollback_to(&self, _savepoint: usize) {}

    /// Whether anything was written.
    #[must_use]
    pub fn has_writes(&self) -> bool {
        false
    }

    /// Commits; locks are released whatever the outcome.
    ///
    /// # Errors
    /// [`TxnError::Conflict`] when a validated read is no longer true.
    pub fn commit(self, _durability: Durability) -> Result<Version, TxnError> {
        Ok(Version::ZERO)
    }

    /// Drops the writes and releases the locks.
    pub fn rollback(self) {}
}
