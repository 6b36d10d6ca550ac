//! What a transaction is to a commit path: its reads, its intent, its snapshots, and replies.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use manxdb_storage::{Durability, KeyRange, Version};

use crate::error::TxnError;
use crate::keys::ReadPoints;

/// Identity of a running transaction, unique in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxnId(pub u64);

/// A key whose row is locked.
pub type LockKey = Arc<[u8]>;

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
    /// Row locks of `txn` that a path may give back as soon as the intent has its place in the
    /// commit order: who gets them reads at [`CommitPath::ordered_snapshot`]. Not part of what is
    /// sent to other nodes.
    ///
    /// [`CommitPath::ordered_snapshot`]: crate::CommitPath::ordered_snapshot
    pub locks: Vec<LockKey>,
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
            let asked = replies.len();
            let mut answers = Vec::with_capacity(asked);
            for reply in replies {
                answers.push(match reply {
                    Reply::Ready(answer) => answer?,
                    Reply::Pending(future) => future.await?,
                });
            }
            assert_eq!(answers.len(), asked, "each that was asked has answered");
            Ok(answers)
        }))
    }
}

/// Rows of one page of a scan.
pub type Page = Vec<(Vec<u8>, Vec<u8>)>;
