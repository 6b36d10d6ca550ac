//! Who says that a commit is durable, when that is not the engine's disk.

use manxdb_storage::{Version, WriteBatch};

use crate::error::TxnError;

/// Replicates what a [`LocalPath`](crate::LocalPath) has ordered, and says when it may be shown.
///
/// Each version of a batch is a transaction of its own: its replicas have all of its writes, or none.
/// The path counts on no order between transactions that are not confirmed: it keeps their writes
/// and their row locks from all others until they are.
pub trait Confirm: Send + Sync + 'static {
    /// Whether a transaction of so many bytes can be replicated now. Asked before anything of it is
    /// written.
    ///
    /// # Errors
    /// Why not: [`TxnError::TooLarge`], or no room.
    fn admit(&self, bytes: usize) -> Result<(), TxnError>;

    /// Begins to replicate a batch, in the order of versions. All up to `shown` is confirmed and
    /// visible to every new snapshot. Does not wait.
    fn begin(&self, batch: &WriteBatch, shown: Version);

    /// Waits until every version up to `upto` that was begun is replicated.
    ///
    /// # Errors
    /// [`TxnError::Unknown`]: this server has lost the right to commit, and whether they survive is
    /// decided elsewhere. It stays so: everything that is asked later fails too.
    fn wait(&self, upto: Version) -> Result<(), TxnError>;

    /// Asked after a snapshot was taken: whether nobody else could have committed before that.
    ///
    /// # Errors
    /// [`TxnError::Unknown`], as [`Confirm::wait`].
    fn may_read(&self) -> Result<(), TxnError>;
}
