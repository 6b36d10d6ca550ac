//! The commit path of one node: serializable by validated snapshots, group commit.
//!
//! A commit is validated against the versions of recent writes ([`recent`]), in the order of
//! the queue ([`group`]): every read of the intent must still be true. The group's writes
//! reach the engine in one synced batch; only then do new snapshots ([`pins`]) see them and
//! the sessions hear of it. So the order of versions is a serial order of all validated
//! transactions, and it agrees with real time.

mod group;
mod pins;
mod recent;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use manxdb_storage::{Direction, Durability, Engine, KeyRange, StorageError, Version, WriteBatch};
use parking_lot::{Mutex, RwLock};

use self::group::{GroupQueue, Verdict};
use self::pins::Pins;
use self::recent::{Recent, Undo};
use crate::locks::LockTable;
use crate::path::{CommitPath, Intent, Page, ReadSet, Reply, Snapshot, TxnError};
use crate::procedure::{Call, OneShard, Registry, Values, run_attempts};
use crate::ranges::is_empty;
use crate::waiter::Waiter;

/// How a call of a procedure ended.
type Called = Result<Values, TxnError>;

/// Limits of the local path.
#[derive(Debug, Clone, Copy)]
pub struct LocalOptions {
    /// Bytes the index of recent writes may take. Past it the oldest snapshots can no longer
    /// commit what they read; they go on reading.
    pub recent_bytes_max: usize,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self {
            recent_bytes_max: 256 << 20,
        }
    }
}

/// Commits on one node over one engine.
pub struct LocalPath {
    engine: Arc<dyn Engine>,
    pins: Pins,
    recent: RwLock<Recent>,
    queue: GroupQueue,
    order: Mutex<Order>,
    locks: LockTable,
    counters: Counters,
    procedures: Registry,
    #[cfg(feature = "mutants")]
    mutants: Mutex<crate::testing::Mutants>,
}

#[derive(Default)]
struct Counters {
    groups: AtomicU64,
    commits: AtomicU64,
    conflicts: AtomicU64,
}

/// What a path has done since it was opened, and what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalStatistics {
    /// Batches written: `commits / groups` is how many sessions shared a sync.
    pub groups: u64,
    /// Intents with writes that became visible.
    pub commits: u64,
    /// Intents refused by validation.
    pub conflicts: u64,
    /// Recent writes held for validation.
    pub recent: usize,
    /// Newest version that new snapshots see.
    pub visible: Version,
    /// Oldest version a snapshot still looks at; far behind `visible`: an old transaction.
    pub oldest: Version,
    /// Keys locked or waited for.
    pub locks: usize,
}

/// What only the leader of a group touches.
struct Order {
    /// Last version given to an intent, also to one whose write failed: numbers are not reused.
    assigned: Version,
    /// Why nothing can be written any more: the state of the log is unknown until a restart.
    broken: Option<String>,
    watermark: Version,
}

/// The part of a group that passed validation.
struct Staged {
    batch: WriteBatch,
    durability: Durability,
    undo: Undo,
    /// Per intent of the group: its version, or why it may not commit.
    verdicts: Vec<Verdict>,
    last: Version,
}

impl LocalPath {
    /// The path over `engine`, going on behind its newest version.
    ///
    /// # Errors
    /// [`TxnError::Storage`] when the engine does not know its newest version.
    pub fn open(engine: Arc<dyn Engine>, options: LocalOptions) -> Result<Self, TxnError> {
        let latest = engine.latest()?;
        Ok(Self {
            engine,
            pins: Pins::new(latest),
            recent: RwLock::new(Recent::new(latest, options.recent_bytes_max)),
            queue: GroupQueue::default(),
            order: Mutex::new(Order {
                assigned: latest,
                broken: None,
                watermark: Version::ZERO,
            }),
            locks: LockTable::default(),
            counters: Counters::default(),
            procedures: Registry::default(),
            #[cfg(feature = "mutants")]
            mutants: Mutex::default(),
        })
    }

    /// Plants defects, to prove that the tests would find them.
    #[cfg(feature = "mutants")]
    pub fn plant(&self, mutants: crate::testing::Mutants) {
        *self.mutants.lock() = mutants;
    }

    /// The procedures that [`CommitPath::call`] finds.
    #[must_use]
    pub fn procedures(&self) -> &Registry {
        &self.procedures
    }

    /// The newest version that new snapshots see.
    #[must_use]
    pub fn visible(&self) -> Version {
        self.pins.visible()
    }

    /// For metrics.
    #[must_use]
    pub fn statistics(&self) -> LocalStatistics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LocalStatistics {
            groups: read(&self.counters.groups),
            commits: read(&self.counters.commits),
            conflicts: read(&self.counters.conflicts),
            recent: self.recent_len(),
            visible: self.pins.visible(),
            oldest: self.pins.oldest(),
            locks: self.locks.len(),
        }
    }

    fn count(&self, verdicts: &[Verdict], written: bool) {
        let committed = verdicts.iter().filter(|verdict| verdict.is_ok()).count() as u64;
        let refused = verdicts.len() as u64 - committed;
        self.counters
            .conflicts
            .fetch_add(refused, Ordering::Relaxed);
        if written {
            self.counters.groups.fetch_add(1, Ordering::Relaxed);
            self.counters
                .commits
                .fetch_add(committed, Ordering::Relaxed);
        }
    }

    /// Recent writes held for validation.
    #[must_use]
    pub fn recent_len(&self) -> usize {
        self.recent.read().len()
    }

    fn commit_group(&self, intents: Vec<Intent>) -> Vec<Verdict> {
        let mut order = self.order.lock();
        let staged = self.stage(&mut order, intents);
        if staged.batch.writes.is_empty() {
            self.count(&staged.verdicts, false);
            return staged.verdicts;
        }
        #[cfg(feature = "mutants")]
        if self.mutants.lock().publish_before_write {
            self.pins.publish(staged.last);
        }
        match self.write(&mut order, &staged) {
            Ok(()) => {
                self.count(&staged.verdicts, true);
                self.publish(staged.last);
                self.collect(&mut order);
                staged.verdicts
            }
            Err(failure) => {
                self.recent.write().take_back(staged.undo);
                let fail = |verdict: Verdict| verdict.and_then(|_| Err(again(&failure)));
                staged.verdicts.into_iter().map(fail).collect()
            }
        }
    }

    fn publish(&self, version: Version) {
        #[cfg(feature = "mutants")]
        if self.mutants.lock().publish_before_write {
            return;
        }
        self.pins.publish(version);
    }

    #[cfg_attr(not(feature = "mutants"), allow(clippy::unused_self))]
    fn first_change(&self, recent: &Recent, reads: &ReadSet) -> Option<String> {
        #[cfg(feature = "mutants")]
        {
            let mutants = *self.mutants.lock();
            if mutants.skip_point_validation || mutants.skip_range_validation {
                let mut reads = reads.clone();
                if mutants.skip_point_validation {
                    reads.points.clear();
                }
                if mutants.skip_range_validation {
                    reads.ranges.clear();
                }
                return recent.first_change(&reads);
            }
        }
        recent.first_change(reads)
    }

    /// Validates intents in order, each also against those before it, and notes their writes.
    fn stage(&self, order: &mut Order, intents: Vec<Intent>) -> Staged {
        let mut recent = self.recent.write();
        let mut staged = Staged {
            batch: WriteBatch::default(),
            durability: Durability::Async,
            undo: Undo::new(),
            verdicts: Vec::with_capacity(intents.len()),
            last: order.assigned,
        };
        for intent in intents {
            if let Some(what) = self.first_change(&recent, &intent.reads) {
                staged.verdicts.push(Err(TxnError::Conflict { what }));
                #[cfg(feature = "mutants")]
                if self.mutants.lock().write_before_validation {
                    order.assigned = Version(order.assigned.0 + 1);
                    staged.last = order.assigned;
                    let dirty = intent.writes.into_iter();
                    let writes = dirty.map(|(key, value)| (staged.last, key, value));
                    staged.batch.writes.extend(writes);
                }
                continue;
            }
            order.assigned = Version(order.assigned.0 + 1);
            staged.last = order.assigned;
            if intent.durability == Durability::Sync {
                staged.durability = Durability::Sync;
            }
            for (key, value) in intent.writes {
                recent.stage(staged.last, &key, &mut staged.undo);
                staged.batch.writes.push((staged.last, key, value));
            }
            staged.verdicts.push(Ok(staged.last));
        }
        staged
    }

    fn write(&self, order: &mut Order, staged: &Staged) -> Result<(), StorageError> {
        if let Some(reason) = &order.broken {
            return Err(StorageError::ReadOnly(reason.clone()));
        }
        let written = self.engine.write(&staged.batch, staged.durability);
        if let Err(failure) = &written
            && !left_untouched(failure)
        {
            tracing::error!(%failure, "commit failed half way; writes stop until a restart");
            order.broken = Some(format!("an earlier write failed: {failure}"));
        }
        written
    }

    /// Lets go of what no snapshot needs any more.
    fn collect(&self, order: &mut Order) {
        let oldest = self.pins.oldest();
        if oldest > order.watermark {
            order.watermark = oldest;
            self.engine.set_watermark(oldest);
        }
        self.recent.write().trim(oldest);
    }

    fn read_page(
        &self,
        at: Version,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Page, TxnError> {
        let mut page = Page::new();
        if limit == 0 || is_empty(range) {
            return Ok(page);
        }
        let mut cursor = self.engine.scan(range, at, direction)?;
        while page.len() < limit {
            match cursor.next()? {
                Some(entry) => page.push((entry.key.to_vec(), entry.value.to_vec())),
                None => break,
            }
        }
        Ok(page)
    }
}

impl CommitPath for LocalPath {
    fn snapshot(&self) -> Reply<Result<Snapshot, TxnError>> {
        let snapshot = self.pins.snapshot();
        #[cfg(feature = "mutants")]
        if self.mutants.lock().stale_snapshots {
            return Reply::Ready(Ok(Snapshot {
                version: Version(snapshot.version.0.saturating_sub(1)),
                pin: snapshot.pin,
            }));
        }
        Reply::Ready(Ok(snapshot))
    }

    fn get(&self, at: Version, key: &[u8]) -> Reply<Result<Option<Vec<u8>>, TxnError>> {
        let found = self.engine.get(key, at);
        Reply::Ready(match found {
            Ok(found) => Ok(found.map(|versioned| versioned.value)),
            Err(failure) => Err(failure.into()),
        })
    }

    fn scan(
        &self,
        at: Version,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Reply<Result<Page, TxnError>> {
        Reply::Ready(self.read_page(at, range, direction, limit))
    }

    fn get_many(
        &self,
        at: Version,
        keys: &[&[u8]],
    ) -> Reply<Result<Vec<Option<Vec<u8>>>, TxnError>> {
        Reply::Ready(match self.engine.get_many(keys, at) {
            Ok(found) => Ok(found.into_iter().map(|v| v.map(|v| v.value)).collect()),
            Err(failure) => Err(failure.into()),
        })
    }

    fn scan_many(
        &self,
        at: Version,
        ranges: &[KeyRange],
        limit: usize,
    ) -> Reply<Result<Vec<Page>, TxnError>> {
        let pages = self.engine.scan_many(ranges, at, limit);
        Reply::Ready(pages.map_err(TxnError::from))
    }

    fn submit(&self, intent: Intent) -> Reply<Verdict> {
        if intent.writes.is_empty() {
            // Nothing to order: it stands behind everything published, if its reads still hold.
            let recent = self.recent.read();
            return Reply::Ready(match recent.first_change(&intent.reads) {
                Some(what) => Err(TxnError::Conflict { what }),
                None => Ok(self.pins.visible()),
            });
        }
        let commit = |intents| self.commit_group(intents);
        Reply::Ready(self.queue.submit(intent, commit))
    }

    fn changed_since(&self, range: &KeyRange, since: Version) -> Reply<Result<bool, TxnError>> {
        Reply::Ready(Ok(self.recent.read().range_changed(range, since)))
    }

    fn key_changed_since(&self, key: &[u8], since: Version) -> Reply<Result<bool, TxnError>> {
        Reply::Ready(Ok(self.recent.read().key_changed(key, since)))
    }

    fn refresh(&self, reads: &ReadSet) -> Reply<Result<Snapshot, TxnError>> {
        // The snapshot comes first: what commits after it is noted in `recent` before it is
        // published, so a change that the snapshot shows cannot be missed below.
        let snapshot = self.pins.snapshot();
        Reply::Ready(match self.recent.read().first_change(reads) {
            Some(what) => Err(TxnError::Conflict { what }),
            None => Ok(snapshot),
        })
    }

    fn call(self: Arc<Self>, call: Call, waiter: Arc<dyn Waiter>) -> Reply<Called> {
        let procedure = match self.procedures.find(&call.procedure) {
            Ok(procedure) => procedure,
            Err(unknown) => return Reply::Ready(Err(unknown)),
        };
        let path: Arc<dyn CommitPath> = self;
        let answer = run_attempts(&path, procedure.as_ref(), &OneShard, &call, &waiter);
        Reply::Ready(answer)
    }

    fn locks(&self) -> Option<&LockTable> {
        Some(&self.locks)
    }
}

/// Whether the engine promises that nothing of the batch was applied.
fn left_untouched(failure: &StorageError) -> bool {
    matches!(
        failure,
        StorageError::Full(_) | StorageError::ReadOnly(_) | StorageError::Behind(_)
    )
}

/// The failure of a group, told to each of its members.
fn again(failure: &StorageError) -> TxnError {
    match failure {
        StorageError::Full(what) => StorageError::Full(what.clone()).into(),
        StorageError::ReadOnly(what) => StorageError::ReadOnly(what.clone()).into(),
        StorageError::Behind(what) => StorageError::Behind(what.clone()).into(),
        other => TxnError::Unknown(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{IsolationLevel, TxnId};
    use manxdb_storage::MemoryEngine;

    fn increment(txn: u64, key: &str, read_at: Version) -> Intent {
        Intent {
            txn: TxnId(txn),
            isolation: IsolationLevel::Serializable,
            reads: ReadSet {
                points: vec![(key.into(), read_at)],
                ranges: Vec::new(),
            },
            writes: vec![(key.into(), Some(txn.to_string().into_bytes()))],
            durability: Durability::Sync,
        }
    }

    #[test]
    fn intents_of_one_group_are_validated_against_each_other() {
        let engine = Arc::new(MemoryEngine::new());
        let path = LocalPath::open(engine.clone(), LocalOptions::default()).unwrap();
        let at = path.visible();
        let group = vec![
            increment(1, "x", at),
            increment(2, "x", at),
            increment(3, "y", at),
        ];
        let verdicts = path.commit_group(group);
        assert!(matches!(verdicts[0], Ok(Version(1))));
        assert!(matches!(verdicts[1], Err(TxnError::Conflict { .. })));
        assert!(matches!(verdicts[2], Ok(Version(2))));
        let found = engine.get(b"x", Version(2)).unwrap().unwrap();
        assert_eq!((found.version, found.value), (Version(1), b"1".to_vec()));
        assert_eq!(path.visible(), Version(2));
    }
}
