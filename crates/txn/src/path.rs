//! The commit path: how an intent becomes durable and visible.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use manxdb_storage::{Direction, Durability, KeyRange, StorageError, Version};

use crate::keys::ReadPoints;
use crate::locks::LockTable;
use crate::procedure::{Call, Values};
use crate::waiter::Waiter;

/// Identity of a running transaction, unique in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxnId(pub u64);

/// How much a transaction may see of others (SQL-92 names, MySQL's meaning).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum IsolationLevel {
    /// Every statement reads the newest committed state.
    ReadCommitted,
    /// Plain reads see the state at the first read; locking reads and writes see the newest.
    RepeatableRead,
    /// All reads are validated at commit: equal to some serial order.
    #[default]
    Serializable,
}

/// A stable view of committed state. While it lives, what it can see is kept from collection.
#[derive(Clone)]
pub struct Snapshot {
    /// Newest version the view contains.
    pub version: Version,
    /// Dropped with the last clone of the snapshot, which unpins the version.
    pub pin: Option<Arc<dyn Send + Sync>>,
}

/// What a transaction read and bets has not changed since.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadSet {
    /// Keys read, absent ones included, each with the snapshot it was read at.
    pub points: ReadPoints,
    /// Ranges read, each with the snapshot it was read at.
    pub ranges: Vec<(KeyRange, Version)>,
}

/// What a session asks to commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// Who asks; its own locks do not conflict with it.
    pub txn: TxnId,
    /// Level promised to the session.
    pub isolation: IsolationLevel,
    /// Reads to validate. The session records only what its level promises.
    pub reads: ReadSet,
    /// Writes in key order; `None` deletes.
    pub writes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// When the commit counts as done.
    pub durability: Durability,
}

/// An answer that is there already, or will be. Bound to no runtime; the ready case costs nothing.
pub enum Reply<T> {
    /// The answer.
    Ready(T),
    /// A remote shard is being asked.
    Pending(Pin<Box<dyn Future<Output = T> + Send>>),
}

impl<T: Send + 'static> Reply<Result<T, TxnError>> {
    /// All answers, in order, or the first failure.
    pub fn all(replies: Vec<Self>) -> Reply<Result<Vec<T>, TxnError>> {
        if replies.iter().all(|reply| matches!(reply, Reply::Ready(_))) {
            let ready = replies.into_iter().filter_map(|reply| match reply {
                Reply::Ready(answer) => Some(answer),
                Reply::Pending(_) => None,
            });
            return Reply::Ready(ready.collect());
        }
        Reply::Pending(Box::pin(async move {
            let mut answers = Vec::with_capacity(replies.len());
            for reply in replies {
                answers.push(match reply {
                    Reply::Ready(answer) => answer?,
                    Reply::Pending(future) => future.await?,
                });
            }
            Ok(answers)
        }))
    }
}

/// Rows of one page of a scan.
pub type Page = Vec<(Vec<u8>, Vec<u8>)>;

/// Where transactions are ordered and made durable. Paths: `local`, `rsi`; later `curp`, `dast`.
pub trait CommitPath: Send + Sync + 'static {
    /// A snapshot of everything acknowledged so far.
    fn snapshot(&self) -> Reply<Result<Snapshot, TxnError>>;

    /// The value of `key` at `at`.
    fn get(&self, at: Version, key: &[u8]) -> Reply<Result<Option<Vec<u8>>, TxnError>>;

    /// Up to `limit` live entries of `range` at `at`.
    fn scan(
        &self,
        at: Version,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Reply<Result<Page, TxnError>>;

    /// As [`CommitPath::get`] for each of `keys`, which ascend.
    fn get_many(
        &self,
        at: Version,
        keys: &[&[u8]],
    ) -> Reply<Result<Vec<Option<Vec<u8>>>, TxnError>> {
        Reply::all(keys.iter().map(|key| self.get(at, key)).collect())
    }

    /// As [`CommitPath::scan`] for each of `ranges`, which ascend and do not overlap.
    fn scan_many(
        &self,
        at: Version,
        ranges: &[KeyRange],
        limit: usize,
    ) -> Reply<Result<Vec<Page>, TxnError>> {
        let forward = |range| self.scan(at, range, Direction::Forward, limit);
        Reply::all(ranges.iter().map(forward).collect())
    }

    /// Validates and applies an intent; the version is its place in the commit order.
    fn submit(&self, intent: Intent) -> Reply<Result<Version, TxnError>>;

    /// Whether a commit after `since` wrote a key of `range`. May err towards `true`.
    fn changed_since(&self, range: &KeyRange, since: Version) -> Reply<Result<bool, TxnError>>;

    /// As [`CommitPath::changed_since`] for one key.
    fn key_changed_since(&self, key: &[u8], since: Version) -> Reply<Result<bool, TxnError>>;

    /// A new snapshot at which all of `reads` are still true, so that a transaction may move to
    /// it; [`TxnError::Conflict`] when one of them changed.
    fn refresh(&self, reads: &ReadSet) -> Reply<Result<Snapshot, TxnError>>;

    /// Runs a procedure to its commit; the values that its pieces gave.
    ///
    /// `self: Arc` because a path may hand itself to the pieces or to a future. The waiter is
    /// for paths that lock.
    fn call(
        self: Arc<Self>,
        call: Call,
        waiter: Arc<dyn Waiter>,
    ) -> Reply<Result<Values, TxnError>>;

    /// Row locks of the sessions of this node, which order them before they meet in
    /// [`CommitPath::submit`]. `None`: sessions meet only there.
    fn locks(&self) -> Option<&LockTable> {
        None
    }

    /// Who else works on the same rows. `None`: nobody can.
    fn others(&self) -> Option<&dyn Others> {
        None
    }
}

/// Other processes that work on the same rows, each with a path of its own.
pub trait Others: Send + Sync {
    /// A number of this process, which no other has, nor this one when it is started again.
    ///
    /// # Errors
    /// Rows cannot be reached.
    fn me(&self) -> Result<u64, TxnError>;

    /// Whether the process with a number works, or what it has left may still change.
    ///
    /// # Errors
    /// Rows cannot be reached.
    fn may_live(&self, who: u64) -> Result<bool, TxnError>;

    /// Whether this process is the only one that works, and nothing of another may still change.
    ///
    /// # Errors
    /// Rows cannot be reached.
    fn is_alone(&self) -> Result<bool, TxnError>;
}

/// Why a read or a commit did not happen.
#[derive(Debug, thiserror::Error)]
pub enum TxnError {
    /// A read is no longer true: retry the transaction (MySQL 1213, SQLSTATE 40001).
    #[error("transaction conflicts with a concurrent one: {what}")]
    Conflict {
        /// The key or range that changed, for the log.
        what: String,
    },
    /// Waiting for a row lock would close a cycle (MySQL 1213).
    #[error("deadlock found when trying to get lock")]
    Deadlock,
    /// A row lock was not granted in time (MySQL 1205).
    #[error("lock wait timeout exceeded")]
    LockTimeout,
    /// NOWAIT met a locked row (MySQL 3572).
    #[error("statement aborted because a lock could not be acquired immediately")]
    LockNotAvailable,
    /// The lock is not granted yet and the waiter does not block: repeat the very same call.
    /// Only waiters that are polled (simulations) answer it.
    #[error("lock not granted yet")]
    WouldWait,
    /// A write in a transaction declared read-only (MySQL 1792).
    #[error("cannot execute statement in a read-only transaction")]
    ReadOnly,
    /// A procedure is unknown to the path, or refused its arguments or inputs.
    #[error("procedure {name}: {what}")]
    Procedure {
        /// The procedure asked for.
        name: String,
        /// Why it did not run.
        what: String,
    },
    /// The session was told to stop (MySQL 1317).
    #[error("query execution was interrupted")]
    Interrupted,
    /// A statement time-out passed (MySQL 3024).
    #[error("maximum statement execution time exceeded")]
    StatementTimeout,
    /// The transaction is larger than the configured limit.
    #[error("transaction of {size_bytes} bytes exceeds the limit of {limit_bytes} bytes")]
    TooLarge {
        /// Bytes of keys and values written.
        size_bytes: usize,
        /// The limit.
        limit_bytes: usize,
    },
    /// The transaction has locked more rows than one may (MySQL 1206).
    #[error("the total number of locks exceeds the limit of {limit} a transaction")]
    TooManyLocks {
        /// The limit.
        limit: usize,
    },
    /// The commit's fate could not be learned.
    #[error("outcome of the commit is unknown: {0}")]
    Unknown(String),
    /// Below.
    #[error(transparent)]
    Storage(#[from] StorageError),
}
