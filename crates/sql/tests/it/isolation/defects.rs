//! The local path with a defect, as if the layers above had forgotten to ask for something.

use std::sync::Arc;

use manxdb_storage::{Direction, KeyRange, Version};
use manxdb_txn::procedure::{Call, Values};
use manxdb_txn::{CommitPath, Intent, LocalPath, LockTable, ReadSet, Reply, Snapshot, TxnError};
use manxdb_txn::{Page, Waiter};
use parking_lot::Mutex;

/// What is wrong with a path.
#[derive(Debug, Clone, Default)]
pub struct Defect {
    /// Reads of keys that start so are never validated, as if nobody had recorded them.
    pub unrecorded: Vec<Vec<u8>>,
    /// Rows are not locked.
    pub unlocked: bool,
    /// What runs after a refused commit sees the state that the refused one saw, unvalidated.
    pub stale_retry: bool,
}

/// Keys of one index of a table, by the order in which tables and indexes were made; index 0 is
/// the rows.
pub fn index(table: u32, index: u32) -> Vec<u8> {
    [&[0x01][..], &table.to_be_bytes(), &index.to_be_bytes()].concat()
}

pub struct DefectivePath {
    inner: Arc<LocalPath>,
    defect: Defect,
    /// The snapshot of the commit refused last.
    stale: Mutex<Option<Snapshot>>,
    last_snapshot: Mutex<Option<Snapshot>>,
}

impl DefectivePath {
    pub fn new(inner: Arc<LocalPath>, defect: Defect) -> Self {
        Self {
            inner,
            defect,
            stale: Mutex::default(),
            last_snapshot: Mutex::default(),
        }
    }

    fn is_unrecorded(&self, key: &[u8]) -> bool {
        let mut prefixes = self.defect.unrecorded.iter();
        prefixes.any(|prefix| key.starts_with(prefix))
    }

    fn is_unrecorded_range(&self, range: &KeyRange) -> bool {
        match &range.start {
            std::ops::Bound::Included(start) | std::ops::Bound::Excluded(start) => {
                self.is_unrecorded(start)
            }
            std::ops::Bound::Unbounded => false,
        }
    }

    fn recorded(&self, mut reads: ReadSet) -> ReadSet {
        reads.points.retain(|key, _| !self.is_unrecorded(key));
        reads
            .ranges
            .retain(|(range, _)| !self.is_unrecorded_range(range));
        reads
    }
}

impl CommitPath for DefectivePath {
    fn snapshot(&self) -> Reply<Result<Snapshot, TxnError>> {
        if let Some(stale) = self.stale.lock().clone() {
            return Reply::Ready(Ok(stale));
        }
        let reply = self.inner.snapshot();
        if let Reply::Ready(Ok(snapshot)) = &reply {
            *self.last_snapshot.lock() = Some(snapshot.clone());
        }
        reply
    }

    fn ordered_snapshot(&self) -> Reply<Result<Snapshot, TxnError>> {
        if let Some(stale) = self.stale.lock().clone() {
            return Reply::Ready(Ok(stale));
        }
        let reply = self.inner.ordered_snapshot();
        if let Reply::Ready(Ok(snapshot)) = &reply {
            *self.last_snapshot.lock() = Some(snapshot.clone());
        }
        reply
    }

    fn confirm(&self, version: Version) -> Reply<Result<(), TxnError>> {
        self.inner.confirm(version)
    }

    fn get(&self, at: Version, key: &[u8]) -> Reply<Result<Option<Vec<u8>>, TxnError>> {
        self.inner.get(at, key)
    }

    fn scan(
        &self,
        at: Version,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Reply<Result<Page, TxnError>> {
        self.inner.scan(at, range, direction, limit)
    }

    fn submit(&self, mut intent: Intent) -> Reply<Result<Version, TxnError>> {
        intent.reads = self.recorded(intent.reads);
        let retried = self.stale.lock().take().is_some();
        if retried {
            intent.reads = ReadSet::default();
        }
        let reply = self.inner.submit(intent);
        if self.defect.stale_retry && matches!(reply, Reply::Ready(Err(TxnError::Conflict { .. })))
        {
            let last = self.last_snapshot.lock().clone();
            *self.stale.lock() = last;
        }
        reply
    }

    fn changed_since(&self, range: &KeyRange, since: Version) -> Reply<Result<bool, TxnError>> {
        if self.is_unrecorded_range(range) {
            return Reply::Ready(Ok(false));
        }
        self.inner.changed_since(range, since)
    }

    fn key_changed_since(&self, key: &[u8], since: Version) -> Reply<Result<bool, TxnError>> {
        if self.is_unrecorded(key) {
            return Reply::Ready(Ok(false));
        }
        self.inner.key_changed_since(key, since)
    }

    fn refresh(&self, reads: &ReadSet) -> Reply<Result<Snapshot, TxnError>> {
        self.inner.refresh(&self.recorded(reads.clone()))
    }

    fn call(
        self: Arc<Self>,
        call: Call,
        waiter: Arc<dyn Waiter>,
    ) -> Reply<Result<Values, TxnError>> {
        Arc::clone(&self.inner).call(call, waiter)
    }

    fn observe(&self, observer: Arc<dyn manxdb_txn::CommitObserver>) -> bool {
        self.inner.observe(Arc::new(Undisturbed(observer)))
    }

    fn assigned(&self) -> Option<Version> {
        self.inner.assigned()
    }

    fn locks(&self) -> Option<&LockTable> {
        if self.defect.unlocked {
            return None;
        }
        self.inner.locks()
    }
}

/// Nobody else gets a turn while an observer hears of commits: it holds locks that others need.
struct Undisturbed(Arc<dyn manxdb_txn::CommitObserver>);

impl manxdb_txn::CommitObserver for Undisturbed {
    fn is_active(&self) -> bool {
        self.0.is_active()
    }

    fn ordered(&self, writes: &[manxdb_txn::OrderedWrite]) {
        self.0.ordered(writes);
    }

    fn publishing(&self, path: &dyn CommitPath, version: Version, oldest: Version) {
        crate::isolation::stage::undisturbed(|| self.0.publishing(path, version, oldest));
    }
}
