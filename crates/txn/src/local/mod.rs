//! The commit path of one node: serializable by validated snapshots, group commit.
//!
//! A commit is validated against the versions of recent writes ([`recent`]), in the order of
//! the queue ([`group`]): every read of the intent must still be true. The group's writes
//! reach the engine in one batch; only when it is on disk do new snapshots ([`pins`]) see them and
//! the sessions hear of it. So the order of versions is a serial order of all validated
//! transactions, and it agrees with real time.
//!
//! While one group waits for the disk the next is validated and written. Its snapshots do not see
//! the first, whose writes validation knows: they can only refuse, as if it were there already.
//! Row locks are given back when the group is written, not when it is on disk, so that the next
//! owner of a row works while its predecessor waits (early lock release; DeWitt et al., 1984).
//! It looks at a snapshot of all that is ordered, and it is told an end only when that is on disk.
//! Batches are on disk in their order, so a group that is there publishes those before it too.

mod confirmed;
mod early_release;
mod group;
mod large;
mod pins;
mod recent;
mod rows;
mod staged;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use manxdb_storage::{
    Appended, Direction, Durability, Engine, FileSearch, Judge, KeyPrefixes, KeyRange,
    SortedWrites, StorageError, Version, WriteBatch,
};
use parking_lot::{Mutex, RwLock};

pub use self::confirmed::StagedGroup;
use self::group::GroupQueue;
pub use self::group::Verdict;
use self::large::Submission;
use self::pins::Pins;
use self::recent::{Recent, Undo};
pub use self::rows::{AppendedRows, Row};
use self::staged::{Order, Staged, left_untouched};
use crate::confirm::Confirm;
use crate::error::TxnError;
use crate::locks::LockTable;
use crate::model::{Intent, Page, ReadSet, Reply, Snapshot};
use crate::path::{CommitObserver, CommitPath, intent_of};
use crate::procedure::{Call, OneShard, Registry, Values};
use crate::run_procedure::run_attempts;
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
    /// Who says what is durable, instead of the engine.
    confirm: Option<Arc<dyn Confirm>>,
    pins: Pins,
    recent: RwLock<Recent>,
    queue: GroupQueue<Submission>,
    order: Mutex<Order>,
    locks: LockTable,
    counters: Counters,
    procedures: Registry,
    observer: OnceLock<Arc<dyn CommitObserver>>,
    #[cfg(feature = "mutants")]
    mutants: Mutex<crate::mutants::Mutants>,
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

impl LocalPath {
    /// The path over `engine`, going on behind its newest version.
    ///
    /// # Errors
    /// [`TxnError::Storage`] when the engine does not know its newest version.
    pub fn open(engine: Arc<dyn Engine>, options: LocalOptions) -> Result<Self, TxnError> {
        let latest = engine.latest()?;
        Ok(Self {
            engine,
            confirm: None,
            pins: Pins::new(latest),
            recent: RwLock::new(Recent::new(latest, options.recent_bytes_max)),
            queue: GroupQueue::default(),
            order: Mutex::new(Order {
                assigned: latest,
                last_appended: Appended::default(),
                broken: None,
            }),
            locks: LockTable::default(),
            counters: Counters::default(),
            procedures: Registry::default(),
            observer: OnceLock::new(),
            #[cfg(feature = "mutants")]
            mutants: Mutex::default(),
        })
    }

    /// Plants defects, to prove that the tests would find them.
    #[cfg(feature = "mutants")]
    pub fn plant(&self, mutants: crate::mutants::Mutants) {
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

    fn count(&self, staged: &Staged) {
        let committed = staged.verdicts.iter().filter(|verdict| verdict.is_ok());
        let committed = committed.count() as u64;
        let conflicts = staged.conflicts as u64;
        assert!(
            committed + conflicts <= staged.verdicts.len() as u64,
            "an intent is committed or refused, not both"
        );
        let add = |counter: &AtomicU64, more| counter.fetch_add(more, Ordering::Relaxed);
        add(&self.counters.conflicts, conflicts);
        if committed > 0 {
            add(&self.counters.groups, 1);
            add(&self.counters.commits, committed);
        }
    }

    /// Recent writes held for validation.
    #[must_use]
    pub fn recent_len(&self) -> usize {
        self.recent.read().len()
    }

    /// Validates a group and writes it; in the order of groups.
    fn stage_group(&self, intents: Vec<Intent>) -> Staged {
        let mut order = self.order.lock();
        let before = order.assigned;
        let members = intents.len();
        let mut staged = self.stage(&mut order, intents);
        assert_eq!(staged.verdicts.len(), members, "each intent is judged");
        assert!(
            order.assigned >= before,
            "versions are given in order and once"
        );
        assert_eq!(
            staged.last, order.assigned,
            "a group ends with the last version given"
        );
        if staged.batch.writes.is_empty() {
            return staged;
        }
        #[cfg(feature = "mutants")]
        if self.mutants.lock().publish_before_write {
            self.pins.order(staged.last);
            self.pins.publish(staged.last);
        }
        match self.append(&mut order, &staged.batch) {
            Ok(appended) => {
                staged.appended = Some(appended);
                if let Some(confirm) = &self.confirm {
                    confirm.begin(&staged.batch, self.pins.visible());
                }
                drop(order);
                // Only now: whoever gets a lock looks at an ordered snapshot. The rest is given back
                // by the transactions themselves, when they hear of their end.
                if self.releases_early() {
                    for (owner, keys) in staged.locks.drain(..) {
                        self.locks.release(owner, keys);
                    }
                }
            }
            Err(failure) => {
                let undo = std::mem::take(&mut staged.undo);
                self.recent.write().take_back(undo);
                staged.fail(&failure);
            }
        }
        staged
    }

    /// Waits for a group's durability and shows it to new snapshots; beside other groups.
    fn finish_group(&self, mut staged: Staged) -> Vec<Verdict> {
        if let Some(confirm) = &self.confirm {
            self.await_group(confirm.as_ref(), &mut staged);
            self.count(&staged);
            return staged.verdicts;
        }
        let synced = match &staged.appended {
            Some(appended) if staged.durability == Durability::Sync => self.engine.sync(appended),
            _ => Ok(()),
        };
        if let Err(failure) = synced {
            // What it wrote stays noted as changed: later groups were validated against it.
            self.order.lock().break_off(&failure);
            staged.fail(&failure);
        } else if staged.appended.is_some() {
            self.publish(staged.last);
            assert!(
                self.pins.visible() >= staged.last,
                "what is acknowledged is seen by every new snapshot"
            );
            self.collect();
        }
        let has_committed = staged.verdicts.iter().any(Result::is_ok);
        let has_written = staged.appended.is_some() || staged.batch.writes.is_empty();
        assert!(
            !has_committed || has_written,
            "what is acknowledged is in the log"
        );
        self.count(&staged);
        staged.verdicts
    }

    /// Brings all that is ordered to the disk, and shows it.
    fn sync_all(&self) -> Result<(), TxnError> {
        if let Some(confirm) = &self.confirm {
            return self.confirm_all(confirm.as_ref());
        }
        let (appended, version) = {
            let order = self.order.lock();
            if let Some(reason) = &order.broken {
                return Err(StorageError::ReadOnly(reason.clone()).into());
            }
            let ordered = self.pins.ordered_snapshot().version;
            (order.last_appended.clone(), ordered)
        };
        if let Err(failure) = self.engine.sync(&appended) {
            self.order.lock().break_off(&failure);
            return Err(TxnError::Unknown(failure.to_string()));
        }
        self.publish(version);
        Ok(())
    }

    /// A whole commit, for who needs no queue.
    #[cfg(test)]
    fn commit_group(&self, intents: Vec<Intent>) -> Vec<Verdict> {
        self.finish_group(self.stage_group(intents))
    }

    /// Shows a batch that the engine has to reads under row locks.
    fn order_written(&self, version: Version) {
        #[cfg(feature = "mutants")]
        if self.mutants.lock().publish_before_write {
            return;
        }
        self.pins.order(version);
    }

    fn publish(&self, version: Version) {
        #[cfg(feature = "mutants")]
        if self.mutants.lock().publish_before_write {
            return;
        }
        if let Some(observer) = self.active_observer() {
            observer.publishing(self, version, self.pins.oldest());
        }
        self.pins.publish(version);
    }

    fn active_observer(&self) -> Option<&dyn CommitObserver> {
        let observer = self.observer.get().map(Arc::as_ref);
        observer.filter(|observer| observer.is_active())
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
            appended: None,
            locks: Vec::new(),
            undo: Undo::default(),
            verdicts: Vec::with_capacity(intents.len()),
            conflicts: 0,
            last: order.assigned,
        };
        for intent in intents {
            if let Some(what) = self.first_change(&recent, &intent.reads) {
                staged.verdicts.push(Err(TxnError::Conflict { what }));
                staged.conflicts += 1;
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
            if let Some(why) = self.not_admitted(&intent) {
                staged.verdicts.push(Err(why));
                continue;
            }
            order.assigned = Version(order.assigned.0 + 1);
            staged.last = order.assigned;
            if intent.durability == Durability::Sync {
                staged.durability = Durability::Sync;
            }
            recent.stage_all(staged.last, &intent.writes, &mut staged.undo);
            staged.batch.writes.reserve(intent.writes.len());
            if !intent.locks.is_empty() {
                staged.locks.push((intent.txn, intent.locks));
            }
            for (key, value) in intent.writes {
                staged.batch.writes.push((staged.last, key, value));
            }
            staged.verdicts.push(Ok(staged.last));
        }
        staged
    }

    /// Writes what has been given the versions up to `order.assigned`.
    fn append(&self, order: &mut Order, batch: &WriteBatch) -> Result<Appended, StorageError> {
        let last = batch.writes.last().map(|(version, ..)| *version);
        assert!(
            last <= Some(order.assigned),
            "nothing is written under a version that was not given"
        );
        self.append_by(order, |engine| {
            let appended = engine.append(batch)?;
            if let Some(observer) = self.active_observer() {
                observer.ordered(&batch.writes);
            }
            Ok(appended)
        })
    }

    fn append_by(
        &self,
        order: &mut Order,
        append: impl FnOnce(&dyn Engine) -> Result<Appended, StorageError>,
    ) -> Result<Appended, StorageError> {
        if let Some(reason) = &order.broken {
            return Err(StorageError::ReadOnly(reason.clone()));
        }
        let appended = append(self.engine.as_ref());
        match &appended {
            Ok(appended) => {
                order.last_appended = appended.clone();
                self.order_written(order.assigned);
            }
            Err(failure) if !left_untouched(failure) => order.break_off(failure),
            Err(_) => {}
        }
        appended
    }

    /// Lets go of what no snapshot needs any more.
    fn collect(&self) {
        let oldest = self.pins.oldest();
        self.engine.set_watermark(oldest);
        let visible = self.pins.visible();
        assert!(oldest <= visible, "nobody reads behind what is visible");
        self.recent.write().trim(oldest, visible);
    }

    fn read_page(
        &self,
        at: Version,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Page, TxnError> {
        let mut page = Page::new();
        if limit == 0 || range.is_empty() {
            return Ok(page);
        }
        let mut cursor = self.engine.scan(range, at, direction)?;
        while page.len() < limit {
            match cursor.next()? {
                Some(entry) => page.push((entry.key.to_vec(), entry.value.to_vec())),
                None => break,
            }
        }
        assert!(page.len() <= limit, "a page is no longer than it may be");
        Ok(page)
    }
}

impl CommitPath for LocalPath {
    fn observe(&self, observer: Arc<dyn CommitObserver>) -> bool {
        self.observer.set(observer).is_ok()
    }

    fn assigned(&self) -> Option<Version> {
        Some(self.order.lock().assigned)
    }

    fn purge(&self) -> Result<bool, TxnError> {
        // Whoever confirms has the writes in logs of other machines.
        if self.confirm.is_some() {
            return Ok(false);
        }
        let mark = self.pins.visible();
        self.collect();
        if self.pins.oldest() < mark {
            return Ok(false);
        }
        Ok(self.engine.purge(mark)?)
    }

    fn search_files(
        &self,
        prefixes: &KeyPrefixes,
        judge: &mut Judge<'_>,
    ) -> Result<Option<FileSearch>, TxnError> {
        if self.confirm.is_some() {
            return Ok(None);
        }
        Ok(self.engine.search_files(prefixes, judge)?)
    }

    fn stop_purging(&self) {
        self.engine.stop_purging();
    }

    fn snapshot(&self) -> Reply<Result<Snapshot, TxnError>> {
        let snapshot = self.pins.snapshot();
        #[cfg(feature = "mutants")]
        if self.mutants.lock().stale_snapshots {
            return Reply::Ready(Ok(Snapshot {
                version: Version(snapshot.version.0.saturating_sub(1)),
                pin: snapshot.pin,
            }));
        }
        Reply::Ready(self.under_lease(snapshot))
    }

    fn ordered_snapshot(&self) -> Reply<Result<Snapshot, TxnError>> {
        #[cfg(feature = "mutants")]
        if self.mutants.lock().stale_snapshots {
            return self.snapshot();
        }
        Reply::Ready(self.under_lease(self.newest_for_owners()))
    }

    fn confirm(&self, version: Version) -> Reply<Result<(), TxnError>> {
        if self.pins.visible() >= version {
            return Reply::Ready(Ok(()));
        }
        Reply::Ready(self.sync_all())
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
            Ok(found) => {
                // Readers pair answers with keys by their order.
                assert_eq!(found.len(), keys.len(), "the engine answers for each key");
                Ok(found.into_iter().map(|v| v.map(|v| v.value)).collect())
            }
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
        if let Ok(pages) = &pages {
            assert_eq!(
                pages.len(),
                ranges.len(),
                "the engine answers for each range"
            );
            assert!(
                pages.iter().all(|page| page.len() <= limit),
                "a page is no longer than it may be"
            );
        }
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
        Reply::Ready(self.commit(Submission::Listed(intent)))
    }

    fn submit_sorted(&self, intent: Intent, writes: Box<dyn SortedWrites>) -> Reply<Verdict> {
        // Replicas are told of lists.
        if self.confirm.is_some() {
            return self.submit(intent_of(intent, writes.as_ref()));
        }
        Reply::Ready(self.commit(Submission::Sorted(intent, writes)))
    }

    fn changed_since(&self, range: &KeyRange, since: Version) -> Reply<Result<bool, TxnError>> {
        Reply::Ready(Ok(self.recent.read().range_changed(range, since)))
    }

    fn key_changed_since(&self, key: &[u8], since: Version) -> Reply<Result<bool, TxnError>> {
        Reply::Ready(Ok(self.recent.read().key_changed(key, since)))
    }

    fn refresh(&self, reads: &ReadSet) -> Reply<Result<Snapshot, TxnError>> {
        // The snapshot comes first: what commits after it is noted in `recent` before it is
        // ordered, so a change that the snapshot shows cannot be missed below.
        let snapshot = self.newest_for_owners();
        let changed = self.recent.read().first_change(reads);
        Reply::Ready(match (changed, &self.confirm) {
            (Some(what), None) => Err(TxnError::Conflict { what }),
            // Who tries again is to see what it lost to.
            (Some(what), Some(confirm)) => match self.confirm_all(confirm.as_ref()) {
                Ok(()) => Err(TxnError::Conflict { what }),
                Err(lost) => Err(lost),
            },
            (None, _) => self.under_lease(snapshot),
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

#[cfg(test)]
mod tests;
