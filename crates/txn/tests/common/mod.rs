//! What the integration tests share.
#![allow(clippy::unwrap_used, clippy::panic)]
#![allow(dead_code)] // Each test binary uses a part of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use manxdb_storage::{
    Appended, Cursor, Direction, Durability, Engine, KeyRange, MemoryEngine, StorageError, Version,
    Versioned, WriteBatch,
};
use manxdb_txn::testing::PolledWaiter;
use manxdb_txn::{CommitPath, IsolationLevel, LocalOptions, LocalPath, Transaction, TxnId, Waiter};
use parking_lot::Mutex;

/// A path over memory, and transactions on it.
pub struct Fixture<P = LocalPath> {
    pub path: Arc<P>,
    next: AtomicU64,
}

impl Fixture {
    pub fn new() -> Self {
        Self::over(Arc::new(MemoryEngine::new()))
    }

    pub fn over(engine: Arc<dyn Engine>) -> Self {
        Self::with(engine, LocalOptions::default())
    }

    pub fn with(engine: Arc<dyn Engine>, options: LocalOptions) -> Self {
        Self::on(Arc::new(LocalPath::open(engine, options).unwrap()))
    }
}

impl<P: CommitPath> Fixture<P> {
    pub fn on(path: Arc<P>) -> Self {
        let next = AtomicU64::new(1);
        Self { path, next }
    }

    pub fn begin(&self, isolation: IsolationLevel) -> Transaction {
        self.begin_waiting(isolation, Arc::new(PolledWaiter))
    }

    pub fn begin_waiting(&self, isolation: IsolationLevel, waiter: Arc<dyn Waiter>) -> Transaction {
        let id = TxnId(self.next.fetch_add(1, Ordering::Relaxed));
        let path: Arc<dyn CommitPath> = self.path.clone();
        Transaction::begin(path, id, isolation, waiter)
    }

    pub fn locks_held(&self) -> usize {
        self.path.locks().map_or(0, manxdb_txn::LockTable::len)
    }

    /// Commits one write on its own.
    pub fn set(&self, key: &str, value: &str) {
        let txn = self.begin(IsolationLevel::Serializable);
        txn.put(key.into(), value.into()).unwrap();
        txn.commit(Durability::Sync).unwrap();
    }

    /// Commits one deletion on its own.
    pub fn unset(&self, key: &str) {
        let txn = self.begin(IsolationLevel::Serializable);
        txn.delete(key.into()).unwrap();
        txn.commit(Durability::Sync).unwrap();
    }
}

type Hook = Box<dyn FnMut() -> Result<(), StorageError> + Send>;

/// Calls a hook, once.
fn call(hook: &Mutex<Option<Hook>>) -> Result<(), StorageError> {
    let hook = hook.lock().take();
    hook.map_or(Ok(()), |mut hook| hook())
}

/// An engine that calls a hook before it writes or waits for the disk, to look at the world at
/// that moment or to fail.
pub struct HookedEngine {
    inner: Arc<dyn Engine>,
    before_write: Mutex<Option<Hook>>,
    before_sync: Mutex<Option<Hook>>,
    pub watermark: Mutex<Version>,
    pub batches: AtomicU64,
}

impl HookedEngine {
    pub fn new() -> Arc<Self> {
        Self::over(Arc::new(MemoryEngine::new()))
    }

    pub fn over(inner: Arc<dyn Engine>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            before_write: Mutex::new(None),
            before_sync: Mutex::new(None),
            watermark: Mutex::new(Version::ZERO),
            batches: AtomicU64::new(0),
        })
    }

    /// Calls `hook` before the next write, once.
    pub fn before_next_write(
        &self,
        hook: impl FnMut() -> Result<(), StorageError> + Send + 'static,
    ) {
        *self.before_write.lock() = Some(Box::new(hook));
    }

    /// Calls `hook` before the next wait for the disk, once.
    pub fn before_next_sync(
        &self,
        hook: impl FnMut() -> Result<(), StorageError> + Send + 'static,
    ) {
        *self.before_sync.lock() = Some(Box::new(hook));
    }
}

impl Engine for HookedEngine {
    fn get(&self, key: &[u8], at: Version) -> Result<Option<Versioned>, StorageError> {
        self.inner.get(key, at)
    }

    fn scan<'a>(
        &'a self,
        range: &KeyRange,
        at: Version,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + 'a>, StorageError> {
        self.inner.scan(range, at, direction)
    }

    fn append(&self, batch: &WriteBatch) -> Result<Appended, StorageError> {
        call(&self.before_write)?;
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.inner.append(batch)
    }

    fn sync(&self, appended: &Appended) -> Result<(), StorageError> {
        call(&self.before_sync)?;
        self.inner.sync(appended)
    }

    fn latest(&self) -> Result<Version, StorageError> {
        self.inner.latest()
    }

    fn set_watermark(&self, watermark: Version) {
        *self.watermark.lock() = watermark;
        self.inner.set_watermark(watermark);
    }

    fn checkpoint(&self, directory: &std::path::Path) -> Result<(), StorageError> {
        self.inner.checkpoint(directory)
    }
}
