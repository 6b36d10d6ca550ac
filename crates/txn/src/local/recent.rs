//! The index of recent writes that commits are validated against.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use manxdb_core::check::{deep, ensure};
use manxdb_storage::{KeyRange, SortedWrites, Version};

use crate::keys::{KeyRun, RunBuilder};
use crate::model::ReadSet;
use crate::ranges::as_slice;

type Key = Arc<[u8]>;

/// What an entry costs beside its key's bytes, roughly: two map slots and the shared key's head.
const ENTRY_OVERHEAD_BYTES: usize = 96;

/// Writes of one commit from which on they are packed: noting them one by one would take longer
/// than others should wait.
const PACKED_WRITES_MIN: usize = 2_048;

/// Writes packed at a time when the index takes too much.
const FOLDED_WRITES: usize = 8_192;

/// Share of the byte limit from which on single writes are packed.
const FOLD_SHARE: usize = 8;
const _: () = assert!(
    FOLDED_WRITES > 0 && RUNS_MAX > 1,
    "folding makes progress, and of runs two can be merged"
);

/// Packed runs kept apart; past it the two smallest neighbours become one.
const RUNS_MAX: usize = 16;

/// Last version of every key written after `floor`; writes at or below it are forgotten.
///
/// A read at or above `floor` can be checked exactly, an older one counts as changed. Writes of
/// large commits, and old ones when there are many, are held packed: a tenth of the bytes.
pub(super) struct Recent {
    last: BTreeMap<Key, Version>,
    /// Every write above `floor` that is not packed, oldest first, for forgetting.
    log: VecDeque<(Version, Key)>,
    /// Packed writes, ascending by their newest version.
    runs: VecDeque<KeyRun>,
    floor: Version,
    bytes: usize,
    bytes_max: usize,
}

/// How to take back staged writes.
#[derive(Default)]
pub(super) struct Undo {
    /// Single writes: the key and its version before.
    keys: Vec<(Key, Option<Version>)>,
    /// Packed commits.
    runs: usize,
}

impl Recent {
    pub(super) fn new(floor: Version, bytes_max: usize) -> Self {
        Self {
            last: BTreeMap::new(),
            log: VecDeque::new(),
            runs: VecDeque::new(),
            floor,
            bytes: 0,
            bytes_max,
        }
    }

    /// What holds between any two calls.
    ///
    /// # Errors
    /// The invariant that is broken.
    fn check(&self) -> Result<(), String> {
        let versions = self.log.iter().map(|(version, _)| *version);
        ensure(versions.is_sorted(), || {
            "writes are noted in the order of their versions".to_owned()
        })?;
        let oldest = self.log.front().map(|(oldest, _)| *oldest);
        ensure(oldest.is_none_or(|oldest| oldest > self.floor), || {
            format!(
                "{oldest:?} is noted, and all up to {:?} forgotten",
                self.floor
            )
        })?;
        // Later entries replace earlier ones of their keys.
        let last: BTreeMap<&Key, Version> = self.log.iter().map(|(at, key)| (key, *at)).collect();
        let keys = last.len();
        ensure(
            last.into_iter()
                .eq(self.last.iter().map(|(key, at)| (key, *at))),
            || format!("{} keys are noted of {keys}", self.last.len()),
        )?;
        let newest = self.runs.iter().map(KeyRun::newest);
        ensure(newest.clone().is_sorted(), || {
            format!("runs are in order: {:?}", newest.collect::<Vec<_>>())
        })?;
        let single: usize = self.log.iter().map(|(_, key)| entry_bytes(key)).sum();
        let packed: usize = self.runs.iter().map(KeyRun::size_bytes).sum();
        ensure(single + packed == self.bytes, || {
            format!("{} bytes are counted of {single} and {packed}", self.bytes)
        })
    }

    /// Whether `key` was written after `since`, as far as can be told.
    pub(super) fn key_changed(&self, key: &[u8], since: Version) -> bool {
        since < self.floor
            || self.last.get(key).is_some_and(|last| *last > since)
            || self
                .runs_after(since)
                .any(|run| run.find(key).is_some_and(|last| last > since))
    }

    /// Whether a key of `range` was written after `since`, as far as can be told.
    pub(super) fn range_changed(&self, range: &KeyRange, since: Version) -> bool {
        if since < self.floor {
            return true;
        }
        if range.is_empty() {
            return false;
        }
        let bounds = (as_slice(&range.start), as_slice(&range.end));
        let mut single = self.last.range::<[u8], _>(bounds);
        single.any(|(_, last)| *last > since)
            || self
                .runs_after(since)
                .any(|run| run.any_newer(range, since))
    }

    /// Packed writes of which some are newer than `since`.
    fn runs_after(&self, since: Version) -> impl Iterator<Item = &KeyRun> {
        let newest_first = self.runs.iter().rev();
        newest_first.take_while(move |run| run.newest() > since)
    }

    /// What of `reads` changed, described for the log; `None` when all still hold.
    pub(super) fn first_change(&self, reads: &ReadSet) -> Option<String> {
        for (key, since) in reads.points.loose() {
            if self.key_changed(key, *since) {
                return Some(self.describe("key", key, *since));
            }
        }
        for run in reads.points.runs() {
            if run.oldest() < self.floor && !run.is_empty() {
                return Some(self.describe("many keys", &[], run.oldest()));
            }
            if let Some(key) = self.changed_of(run) {
                return Some(self.describe("key", &key, run.oldest()));
            }
        }
        for (range, since) in &reads.ranges {
            if self.range_changed(range, *since) {
                let (Bound::Included(start) | Bound::Excluded(start)) = &range.start else {
                    return Some(self.describe("range from", &[], *since));
                };
                return Some(self.describe("range from", start, *since));
            }
        }
        None
    }

    /// A key of `reads` that was written after it was read. Looks at the writes since then, or at
    /// the reads, whichever are fewer.
    fn changed_of(&self, reads: &KeyRun) -> Option<Vec<u8>> {
        let since = reads.oldest();
        if let Some(key) = self
            .runs_after(since)
            .find_map(|run| reads.first_newer_in(run))
        {
            return Some(key);
        }
        let known = self.log.partition_point(|(version, _)| *version <= since);
        if self.log.len() - known <= reads.len() {
            let mut written = self.log.range(known..);
            let changed =
                written.find(|(version, key)| reads.find(key).is_some_and(|read| *version > read));
            return changed.map(|(_, key)| key.to_vec());
        }
        let mut cursor = reads.cursor();
        while let Some((key, read)) = cursor.entry() {
            if self.last.get(key).is_some_and(|last| *last > read) {
                return Some(key.to_vec());
            }
            cursor.advance();
        }
        None
    }

    fn describe(&self, kind: &str, key: &[u8], since: Version) -> String {
        let why = if since < self.floor {
            "snapshot too old"
        } else {
            "changed"
        };
        format!("{kind} {} {why}", key.escape_ascii())
    }

    /// Notes the writes of one commit; versions never go back.
    pub(super) fn stage_all(
        &mut self,
        version: Version,
        writes: &[(Vec<u8>, Option<Vec<u8>>)],
        undo: &mut Undo,
    ) {
        let is_packed = writes.len() >= PACKED_WRITES_MIN
            && writes.is_sorted_by(|(one, _), (two, _)| one < two);
        if !is_packed {
            for (key, _) in writes {
                self.stage(version, key, undo);
            }
            return;
        }
        let keys = writes.iter().map(|(key, _)| (key.as_slice(), version));
        self.stage_run(KeyRun::pack(version, keys), undo);
    }

    /// As [`Recent::stage_all`] of `writes` that are not listed.
    pub(super) fn stage_sorted(
        &mut self,
        version: Version,
        writes: &dyn SortedWrites,
        undo: &mut Undo,
    ) {
        let mut run = RunBuilder::new(version);
        writes.each(&mut |key, _| run.push(key, version));
        self.stage_run(run.finish(), undo);
    }

    /// Notes the writes of one commit, packed.
    fn stage_run(&mut self, run: KeyRun, undo: &mut Undo) {
        assert!(
            run.oldest() > self.floor,
            "what is noted is newer than what is forgotten"
        );
        self.bytes += run.size_bytes();
        let newest = self.runs.back().map_or(Version::ZERO, KeyRun::newest);
        assert!(
            newest <= run.newest(),
            "runs are in the order of their newest versions"
        );
        self.runs.push_back(run);
        undo.runs += 1;
    }

    /// Notes a write; versions never go back.
    pub(super) fn stage(&mut self, version: Version, key: &[u8], undo: &mut Undo) {
        let newest = self.log.back().map_or(Version::ZERO, |(newest, _)| *newest);
        assert!(
            newest <= version,
            "writes are noted in the order of their versions"
        );
        assert!(
            version > self.floor,
            "what is noted is newer than what is forgotten"
        );
        let key: Key = key.into();
        let previous = self.last.insert(Arc::clone(&key), version);
        assert!(
            previous.is_none_or(|previous| previous <= version),
            "the last version of a key does not go back"
        );
        self.bytes += entry_bytes(&key);
        self.log.push_back((version, Arc::clone(&key)));
        undo.keys.push((key, previous));
    }

    /// Takes back the newest staged writes, all that `undo` lists.
    pub(super) fn take_back(&mut self, undo: Undo) {
        for _ in 0..undo.runs {
            let run = self.runs.pop_back();
            assert!(run.is_some(), "what is taken back was noted");
            if let Some(run) = run {
                assert!(run.size_bytes() <= self.bytes, "what is held is counted");
                self.bytes -= run.size_bytes();
            }
        }
        for (key, previous) in undo.keys.into_iter().rev() {
            let last = self.log.pop_back();
            assert!(
                last.is_some_and(|(_, last)| last == key),
                "the last write goes first"
            );
            self.bytes -= entry_bytes(&key);
            match previous {
                Some(version) => self.last.insert(key, version),
                None => self.last.remove(&key),
            };
        }
        if deep() {
            assert_eq!(self.check(), Ok(()));
        }
    }

    /// Forgets what no snapshot at or above `oldest` needs. What takes too much is packed, and
    /// past the byte limit the oldest is forgotten too: reads at snapshots older than that then
    /// count as changed. Writes above `visible` may still be taken back: they stay as they are.
    pub(super) fn trim(&mut self, oldest: Version, visible: Version) {
        assert!(oldest <= visible, "nobody reads behind what is visible");
        self.forget_through(oldest);
        while self.bytes > self.bytes_max / FOLD_SHARE && self.fold(visible) {}
        while self.bytes > self.bytes_max {
            let single = self.log.front().map(|(version, _)| *version);
            let packed = self.runs.front().map(KeyRun::newest);
            let Some(first) = single.into_iter().chain(packed).min() else {
                return;
            };
            if first > visible {
                return;
            }
            self.forget_through(first);
        }
    }

    fn forget_through(&mut self, through: Version) {
        let mut newest = Version::ZERO;
        while let Some((version, key)) = self.log.front() {
            let version = *version;
            if version > through {
                break;
            }
            self.bytes -= entry_bytes(key);
            if self.last.get(key) == Some(&version) {
                self.last.remove(key);
            }
            self.log.pop_front();
            newest = newest.max(version);
        }
        while let Some(run) = self.runs.front() {
            if run.newest() > through {
                break;
            }
            self.bytes -= run.size_bytes();
            newest = newest.max(run.newest());
            self.runs.pop_front();
        }
        assert!(
            newest <= through,
            "nothing is forgotten that is still validated against"
        );
        self.floor = self.floor.max(newest);
        assert!(
            self.bytes > 0 || self.log.is_empty() && self.runs.is_empty(),
            "what is held is counted"
        );
    }

    /// Packs the oldest single writes, none of them above `visible`; whether there were enough.
    fn fold(&mut self, visible: Version) -> bool {
        let settled = self.log.partition_point(|(version, _)| *version <= visible);
        if settled < FOLDED_WRITES {
            return false;
        }
        let mut newest: BTreeMap<Key, Version> = BTreeMap::new();
        for (version, key) in self.log.drain(..FOLDED_WRITES) {
            self.bytes -= entry_bytes(&key);
            if self.last.get(&key) == Some(&version) {
                self.last.remove(&key);
            }
            assert!(version <= visible, "what may be taken back is not folded");
            newest.insert(key, version);
        }
        let Some(oldest) = newest.values().min() else {
            return false;
        };
        let keys = newest.iter().map(|(key, version)| (&**key, *version));
        let run = KeyRun::pack(*oldest, keys);
        self.bytes += run.size_bytes();
        let place = self
            .runs
            .partition_point(|other| other.newest() <= run.newest());
        self.runs.insert(place, run);
        self.merge_smallest(visible);
        if deep() {
            assert_eq!(self.check(), Ok(()));
        }
        true
    }

    /// Keeps the number of runs low: makes one of the two neighbours that have the fewest keys.
    fn merge_smallest(&mut self, visible: Version) {
        let settled = self.runs.partition_point(|run| run.newest() <= visible);
        if settled <= RUNS_MAX {
            return;
        }
        let keys = |at: &usize| self.runs[*at].len() + self.runs[*at + 1].len();
        let Some(at) = (0..settled - 1).min_by_key(keys) else {
            return;
        };
        let both = self.runs[at].merge(&self.runs[at + 1], Version::max);
        assert!(
            both.len() <= keys(&at) && both.oldest() <= self.runs[at].oldest(),
            "a merged run has the keys of both"
        );
        assert!(
            both.newest() <= visible,
            "what may be taken back is not merged"
        );
        assert_eq!(
            both.newest(),
            self.runs[at + 1].newest(),
            "a merged run stays in its place"
        );
        self.bytes += both.size_bytes();
        self.bytes -= self.runs[at].size_bytes() + self.runs[at + 1].size_bytes();
        self.runs[at] = both;
        self.runs.remove(at + 1);
    }

    /// Writes held, for the metrics and tests.
    pub(super) fn len(&self) -> usize {
        self.log.len() + self.runs.iter().map(KeyRun::len).sum::<usize>()
    }
}

fn entry_bytes(key: &Key) -> usize {
    key.len() + ENTRY_OVERHEAD_BYTES
}

#[cfg(test)]
mod tests;
