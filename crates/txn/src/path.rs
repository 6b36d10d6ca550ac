//! The commit path: how an intent becomes durable and visible.

use std::sync::Arc;

use manxdb_storage::{Direction, FileSearch, Judge, KeyPrefixes, KeyRange, SortedWrites, Version};

use crate::error::TxnError;
use crate::locks::LockTable;
use crate::model::{Intent, Page, ReadSet, Reply, Snapshot};
use crate::procedure::{Call, Values};
use crate::waiter::Waiter;

/// Where transactions are ordered and made durable. Paths: `local`, `rsi`; later `curp`, `dast`.
pub trait CommitPath: Send + Sync + 'static {
    /// A snapshot of everything acknowledged so far.
    fn snapshot(&self) -> Reply<Result<Snapshot, TxnError>>;

    /// A snapshot of everything that has its place in the commit order, also of commits that still
    /// wait for the disk: for reads under row locks, which a path may give back before a commit is
    /// acknowledged. Whoever has read there is told an end only after [`CommitPath::confirm`], or
    /// after a commit of its own, which stands behind all of them.
    fn ordered_snapshot(&self) -> Reply<Result<Snapshot, TxnError>> {
        self.snapshot()
    }

    /// Waits until all commits up to `version` are acknowledged, and shown by
    /// [`CommitPath::snapshot`].
    fn confirm(&self, version: Version) -> Reply<Result<(), TxnError>> {
        let _ = version;
        Reply::Ready(Ok(()))
    }

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
        // Read one by one, any order would do: not so where one walk reads all of them.
        assert!(
            keys.is_sorted_by(|one, next| one < next),
            "keys are given in order, once"
        );
        Reply::all(keys.iter().map(|key| self.get(at, key)).collect())
    }

    /// As [`CommitPath::scan`] for each of `ranges`, which ascend and do not overlap.
    fn scan_many(
        &self,
        at: Version,
        ranges: &[KeyRange],
        limit: usize,
    ) -> Reply<Result<Vec<Page>, TxnError>> {
        assert!(
            ranges.is_sorted_by(KeyRange::ends_before),
            "ranges are given in order, and share no key"
        );
        let forward = |range| self.scan(at, range, Direction::Forward, limit);
        Reply::all(ranges.iter().map(forward).collect())
    }

    /// Validates and applies an intent; the version is its place in the commit order.
    fn submit(&self, intent: Intent) -> Reply<Result<Version, TxnError>>;

    /// As [`CommitPath::submit`] of an intent whose writes are `writes` instead, so many that nobody
    /// lists them unless the path must.
    fn submit_sorted(
        &self,
        intent: Intent,
        writes: Box<dyn SortedWrites>,
    ) -> Reply<Result<Version, TxnError>> {
        self.submit(intent_of(intent, writes.as_ref()))
    }

    /// Whether a commit after `since` wrote a key of `range`. May err towards `true`.
    fn changed_since(&self, range: &KeyRange, since: Version) -> Reply<Result<bool, TxnError>>;

    /// As [`CommitPath::changed_since`] for one key.
    fn key_changed_since(&self, key: &[u8], since: Version) -> Reply<Result<bool, TxnError>>;

    /// A new snapshot, as [`CommitPath::ordered_snapshot`] gives it, at which all of `reads` are
    /// still true, so that a transaction may move to it; [`TxnError::Conflict`] when one of them
    /// changed.
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

    /// Tells `observer` of every commit from now on; false: this path cannot, because others commit
    /// on the same rows.
    fn observe(&self, observer: Arc<dyn CommitObserver>) -> bool {
        let _ = observer;
        false
    }

    /// The last version given so far: commits that an observer which is active now does not hear of
    /// are at or below it.
    fn assigned(&self) -> Option<Version> {
        None
    }

    /// Has what was deleted or replaced before this call go from the files of this process; whether it
    /// is gone. Snapshots from before, and what holds files, keep it: a later call may succeed. False
    /// where a path cannot know, because others keep the rows too.
    ///
    /// # Errors
    /// Those of storage.
    fn purge(&self) -> Result<bool, TxnError> {
        Ok(false)
    }

    /// As [`manxdb_storage::Engine::search_files`] of the files of this process; `None` where a path does
    /// not look, because others keep the rows too.
    ///
    /// # Errors
    /// Those of storage.
    fn search_files(
        &self,
        prefixes: &KeyPrefixes,
        judge: &mut Judge<'_>,
    ) -> Result<Option<FileSearch>, TxnError> {
        let _ = (prefixes, judge);
        Ok(None)
    }

    /// Ends [`CommitPath::purge`] soon, for good.
    fn stop_purging(&self) {}

    /// Who else works on the same rows. `None`: nobody can.
    fn others(&self) -> Option<&dyn Others> {
        None
    }
}

/// `intent` with its writes in a list.
pub(crate) fn intent_of(mut intent: Intent, writes: &dyn SortedWrites) -> Intent {
    assert!(intent.writes.is_empty(), "an intent has its writes once");
    let mut list = Vec::with_capacity(writes.len());
    writes.each(&mut |key, value| list.push((key.to_vec(), value.map(<[u8]>::to_vec))));
    assert_eq!(list.len(), writes.len(), "each write is shown once");
    intent.writes = list;
    intent
}

/// A write with its place in the commit order; `None` deletes.
pub type OrderedWrite = (Version, Vec<u8>, Option<Vec<u8>>);

/// Hears of commits in their order, before any snapshot shows them: change data capture inside the
/// process.
pub trait CommitObserver: Send + Sync {
    /// Whether it wants to hear of anything now; asked for each group of commits.
    fn is_active(&self) -> bool;

    /// Writes that have their places in the commit order, by ascending version. The order is held
    /// meanwhile: this takes what it needs and returns.
    fn ordered(&self, writes: &[OrderedWrite]);

    /// All commits up to `version` are about to be shown to new snapshots; `path` reads any version
    /// from the newest shown one on. No reader is older than `oldest`.
    fn publishing(&self, path: &dyn CommitPath, version: Version, oldest: Version);
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
