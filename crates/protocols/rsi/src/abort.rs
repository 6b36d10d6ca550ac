//! Why a transaction does not commit.

use manxdb_fabric::{Address, Fault};

use crate::version::{Stamp, ThreadId};

/// Why a transaction does not commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Abort {
    /// Somebody else has written the record, or is writing it. To be tried again.
    #[error("the record at {0} was written by another transaction")]
    WriteConflict(Address),
    /// Somebody else has written a record that was read, or is writing it. To be tried again.
    #[error("the record at {0}, which was read, was written by another transaction")]
    ReadConflict(Address),
    /// No version is left that the snapshot sees. To be tried again with a new one.
    #[error("the versions of the record at {0} are all newer than the snapshot")]
    SnapshotTooOld(Address),
    /// A transaction has been writing the record for as long as we have tried to read it, and its
    /// thread may be dead. To be tried again: whoever is dead is recovered.
    #[error("transaction {1} has the record at {0} and does not finish it")]
    Held(Address, Stamp),
    /// What is there is no record, however often it is read.
    #[error("what is at {0} is no record: its sums do not fit")]
    Damaged(Address),
    /// A record was looked for where another one is: the hint was wrong. To be found anew.
    #[error("the record at {0} is another one's")]
    Elsewhere(Address),
    /// Somebody has added a record under a key that was looked for and not there. To be tried
    /// again.
    #[error("a record came to be under a key whose bucket is at {0}")]
    Appeared(Address),
    /// A key is longer than its table allows.
    #[error("keys have at most {0} bytes, not {1}")]
    KeyTooLong(usize, usize),
    /// A record is changed twice: changes to one record are to be made one.
    #[error("the record at {0} is changed twice by one transaction")]
    Twice(Address),
    /// A value is longer than its layout allows.
    #[error("the record at {0} holds {1} bytes, not {2}")]
    TooLong(Address, usize, usize),
    /// A transaction does not fit into the log.
    #[error("the changes take {0} bytes of a log that has room for {1}")]
    TooLarge(u64, u64),
    /// The thread's log has no room until the log archiver has written what is in it to disk, which it has
    /// not for as long as we have waited. To be tried again.
    #[error("the log archiver does not write to disk what thread {0} has logged")]
    Unwritten(ThreadId),
    /// A thread has no numbers left.
    #[error("thread {0} has committed all that it can")]
    Exhausted(ThreadId),
    /// A server did not answer. Whether the transaction is committed, nobody knows.
    #[error("{0}")]
    Fault(#[from] Fault),
    /// The session does not know the end of its last commit. Another thread's place is to be taken.
    #[error("the session of thread {0} is over: what became of its last commit is not known")]
    Over(ThreadId),
}

impl Abort {
    /// Whether nothing is wrong but that somebody else was there, or is slow: to be tried again.
    #[must_use]
    pub const fn is_conflict(self) -> bool {
        matches!(
            self,
            Self::WriteConflict(_)
                | Self::ReadConflict(_)
                | Self::SnapshotTooOld(_)
                | Self::Appeared(_)
                | Self::Held(..)
                | Self::Unwritten(_)
        )
    }
}
