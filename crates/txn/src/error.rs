//! Why a transaction fails.

use manxdb_storage::StorageError;

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
