//! A commit path that a test watches or interrupts.

use std::sync::Arc;

use manxdb_storage::{Direction, KeyRange, Version};
use manxdb_txn::procedure::{Call, Values};
use manxdb_txn::{
    CommitPath, Intent, LocalPath, LockTable, ReadSet, Reply, Snapshot, TxnError, Waiter,
};

/// Keys and values.
type Page = Vec<(Vec<u8>, Vec<u8>)>;

/// What a test does at the calls of a path; by default nothing.
pub trait Hooks: Send + Sync + 'static {
    /// Before a snapshot is taken.
    fn before_snapshot(&self) {}

    /// Before a key or, unless `one_key`, a range is read.
    fn before_read(&self, _one_key: bool) {}

    /// Instead of handing `intent` to `path`.
    fn submit(&self, path: &LocalPath, intent: Intent) -> Reply<Result<Version, TxnError>> {
        path.submit(intent)
    }
}

/// The path `local` with hooks.
pub struct Hooked<H> {
    pub path: Arc<LocalPath>,
    pub hooks: H,
}

impl<H: Hooks> CommitPath for Hooked<H> {
    fn snapshot(&self) -> Reply<Result<Snapshot, TxnError>> {
        self.hooks.before_snapshot();
        self.path.snapshot()
    }

    fn get(&self, at: Version, key: &[u8]) -> Reply<Result<Option<Vec<u8>>, TxnError>> {
        self.hooks.before_read(true);
        self.path.get(at, key)
    }

    fn scan(
        &self,
        at: Version,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Reply<Result<Page, TxnError>> {
        self.hooks.before_read(false);
        self.path.scan(at, range, direction, limit)
    }

    fn submit(&self, intent: Intent) -> Reply<Result<Version, TxnError>> {
        self.hooks.submit(&self.path, intent)
    }

    fn changed_since(&self, range: &KeyRange, since: Version) -> Reply<Result<bool, TxnError>> {
        self.path.changed_since(range, since)
    }

    fn key_changed_since(&self, key: &[u8], since: Version) -> Reply<Result<bool, TxnError>> {
        self.path.key_changed_since(key, since)
    }

    fn refresh(&self, reads: &ReadSet) -> Reply<Result<Snapshot, TxnError>> {
        self.path.refresh(reads)
    }

    fn call(
        self: Arc<Self>,
        call: Call,
        waiter: Arc<dyn Waiter>,
    ) -> Reply<Result<Values, TxnError>> {
        Arc::clone(&self.path).call(call, waiter)
    }

    fn locks(&self) -> Option<&LockTable> {
        self.path.locks()
    }
}
