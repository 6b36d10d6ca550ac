//! The thread that waits for the disk.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use manxdb_storage::Version;
use manxdb_txn::AppendedRows;
use parking_lot::{Condvar, Mutex};

use super::{RedisStore, Shared};

/// How long rows may be in the operating system only when replies do not wait for the disk.
const ASYNC_PAUSE: Duration = Duration::from_millis(200);
/// How often the thread looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);

/// Rows of a round on their way to the disk.
struct OnItsWay {
    round: u64,
    rows: AppendedRows,
    /// As [`Durable::expired_until`].
    expired_until: Option<u64>,
}

/// What is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Durable {
    /// All rows up to this version.
    pub version: Version,
    /// Rows of keys that expired up to this time were removed at or below that version.
    pub expired_until: Option<u64>,
}

/// What the loop and the thread tell each other.
pub struct Syncs {
    newest: Mutex<Option<OnItsWay>>,
    bell: Condvar,
    /// The last round that is on disk.
    synced: AtomicU64,
    durable: Mutex<Durable>,
    has_failed: AtomicBool,
    failure: Mutex<Option<String>>,
}

impl Syncs {
    /// Rows of `round` are in the log; keys that expired up to a time are removed in it and before.
    pub fn appended(&self, round: u64, rows: AppendedRows, expired_until: Option<u64>) {
        *self.newest.lock() = Some(OnItsWay {
            round,
            rows,
            expired_until,
        });
        self.bell.notify_one();
    }

    /// What is on disk since this process began to write.
    pub fn durable(&self) -> Durable {
        *self.durable.lock()
    }

    /// The last round that is on disk.
    pub fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    /// Why the disk failed, if it did: held replies never leave.
    pub fn failure(&self) -> Option<String> {
        let has_failed = self.has_failed.load(Ordering::Acquire);
        has_failed.then(|| self.failure.lock().clone().unwrap_or_default())
    }
}

/// Starts the thread.
pub fn start(
    shared: &Arc<Shared>,
    store: &RedisStore,
    is_synced: bool,
) -> io::Result<(Arc<Syncs>, JoinHandle<()>)> {
    let syncs = Arc::new(Syncs {
        newest: Mutex::new(None),
        bell: Condvar::new(),
        synced: AtomicU64::new(0),
        durable: Mutex::default(),
        has_failed: AtomicBool::new(false),
        failure: Mutex::new(None),
    });
    let (for_thread, shared, store) = (Arc::clone(&syncs), Arc::clone(shared), store.clone());
    let thread = thread::Builder::new().name("redis-sync".to_owned());
    let thread = thread.spawn(move || run(&for_thread, &shared, &store, is_synced))?;
    Ok((syncs, thread))
}

fn run(syncs: &Syncs, shared: &Shared, store: &RedisStore, is_synced: bool) {
    loop {
        let taken = {
            let mut newest = syncs.newest.lock();
            if newest.is_none() {
                syncs.bell.wait_for(&mut newest, LOOK);
            }
            newest.take()
        };
        let Some(taken) = taken else {
            if shared.is_stopping.load(Ordering::SeqCst) {
                return;
            }
            continue;
        };
        match store.path.sync_rows(&taken.rows) {
            Ok(()) => {
                let (version, expired_until) = (taken.rows.version(), taken.expired_until);
                let durable = Durable {
                    version,
                    expired_until,
                };
                let before = std::mem::replace(&mut *syncs.durable.lock(), durable);
                assert!(before.version < version, "rounds reach the disk in order");
                syncs.synced.store(taken.round, Ordering::Release);
            }
            Err(error) => {
                tracing::error!(%error, "Redis writes are not on disk");
                *syncs.failure.lock() = Some(error.to_string());
                syncs.has_failed.store(true, Ordering::Release);
            }
        }
        if is_synced {
            shared.wake();
        } else if !shared.is_stopping.load(Ordering::SeqCst) {
            thread::sleep(ASYNC_PAUSE);
        }
    }
}
