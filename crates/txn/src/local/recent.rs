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
mod tests {
    use super::*;

    fn recent_with(writes: &[(u64, &str)]) -> Recent {
        let mut recent = Recent::new(Version(1), 1 << 20);
        for (version, key) in writes {
            recent.stage(Version(*version), key.as_bytes(), &mut Undo::default());
        }
        recent
    }

    #[test]
    fn an_index_that_misses_a_write_is_found_out() {
        type Fault = fn(&mut Recent);
        let faults: [(Fault, &str); 6] = [
            (|it| drop(it.last.pop_first()), "1 keys are noted of 2"),
            (|it| drop(it.log.pop_back()), "2 keys are noted of 1"),
            (|it| it.log.swap(0, 1), "in the order of their versions"),
            (|it| it.floor = Version(2), "forgotten"),
            (|it| it.bytes += 1, "bytes are counted"),
            (|it| it.runs.swap(0, 1), "runs are in order"),
        ];
        for (fault, name) in faults {
            let mut recent = recent_with(&[(2, "a"), (5, "b")]);
            for version in [6, 7] {
                let run = KeyRun::pack(Version(version), [(&b"c"[..], Version(version))]);
                recent.bytes += run.size_bytes();
                recent.runs.push_back(run);
            }
            assert_eq!(recent.check(), Ok(()));
            fault(&mut recent);
            let found = recent.check().unwrap_err();
            assert!(found.contains(name), "{found}");
        }
    }

    #[test]
    fn a_read_before_the_last_write_has_changed() {
        let recent = recent_with(&[(2, "a"), (5, "a")]);
        assert!(recent.key_changed(b"a", Version(4)));
        assert!(!recent.key_changed(b"a", Version(5)));
        assert!(!recent.key_changed(b"b", Version(1)));
    }

    #[test]
    fn a_range_changes_with_any_key_inside_and_none_outside() {
        let recent = recent_with(&[(2, "b"), (5, "d")]);
        let range = |start: &str, end: &str| KeyRange {
            start: Bound::Included(start.into()),
            end: Bound::Excluded(end.into()),
        };
        assert!(recent.range_changed(&range("a", "c"), Version(1)));
        assert!(!recent.range_changed(&range("a", "c"), Version(2)));
        assert!(!recent.range_changed(&range("c", "d"), Version(1)));
        assert!(!recent.range_changed(&range("d", "d"), Version(1)));
        assert!(!recent.range_changed(&range("z", "a"), Version(1)));
        assert!(recent.range_changed(&KeyRange::prefix(b"d"), Version(4)));
    }

    #[test]
    fn taking_back_restores_the_state_before() {
        let mut recent = recent_with(&[(2, "a")]);
        let mut undo = Undo::default();
        recent.stage(Version(3), b"a", &mut undo);
        recent.stage(Version(3), b"b", &mut undo);
        recent.stage(Version(4), b"a", &mut undo);
        recent.take_back(undo);
        assert!(!recent.key_changed(b"a", Version(2)));
        assert!(recent.key_changed(b"a", Version(1)));
        assert!(!recent.key_changed(b"b", Version(1)));
        assert_eq!(recent.len(), 1);
        assert_eq!(recent.bytes, 1 + ENTRY_OVERHEAD_BYTES);
    }

    #[test]
    fn trimming_forgets_only_what_no_snapshot_needs() {
        let mut recent = recent_with(&[(2, "a"), (3, "b"), (4, "a"), (6, "c")]);
        recent.trim(Version(4), Version(6));
        assert_eq!(recent.len(), 1);
        assert!(!recent.key_changed(b"a", Version(4)));
        assert!(recent.key_changed(b"a", Version(3)));
        assert!(recent.key_changed(b"c", Version(5)));
    }

    #[test]
    fn past_the_byte_limit_old_snapshots_count_as_changed() {
        let mut recent = Recent::new(Version(0), 4 * (ENTRY_OVERHEAD_BYTES + 2));
        for version in 1..=10 {
            recent.stage(Version(version), &[0, 7], &mut Undo::default());
        }
        recent.trim(Version(0), Version(10));
        assert_eq!(recent.len(), 4);
        assert!(recent.key_changed(b"never written", Version(5)));
        assert!(!recent.key_changed(b"never written", Version(6)));
    }

    type Writes = Vec<(Vec<u8>, Option<Vec<u8>>)>;

    fn rows(numbers: impl IntoIterator<Item = u64>) -> Writes {
        let row = |number: u64| (number.to_be_bytes().to_vec(), None);
        numbers.into_iter().map(row).collect()
    }

    fn read(points: impl IntoIterator<Item = u64>, since: u64) -> ReadSet {
        let keys: Vec<_> = points.into_iter().map(u64::to_be_bytes).collect();
        let keys = keys.iter().map(|key| (key.as_slice(), Version(since)));
        ReadSet {
            points: crate::keys::ReadPoints::new(
                Vec::new(),
                vec![KeyRun::pack(Version(since), keys)],
            ),
            ranges: Vec::new(),
        }
    }

    #[test]
    fn a_large_commit_is_packed_and_validates_like_single_writes() {
        let mut recent = Recent::new(Version(1), 1 << 20);
        let large = PACKED_WRITES_MIN as u64;
        recent.stage(Version(2), &4_u64.to_be_bytes(), &mut Undo::default());
        recent.stage_all(
            Version(3),
            &rows((0..large).map(|row| row * 2)),
            &mut Undo::default(),
        );
        assert!(recent.key_changed(&6_u64.to_be_bytes(), Version(2)));
        assert!(!recent.key_changed(&6_u64.to_be_bytes(), Version(3)));
        assert!(!recent.key_changed(&7_u64.to_be_bytes(), Version(1)));
        let range = |low: u64, high: u64| KeyRange {
            start: Bound::Excluded(low.to_be_bytes().to_vec()),
            end: Bound::Excluded(high.to_be_bytes().to_vec()),
        };
        assert!(recent.range_changed(&range(6, 9), Version(2)));
        assert!(!recent.range_changed(&range(6, 8), Version(1)));
        assert!(recent.first_change(&read([5, 8], 2)).is_some());
        assert!(recent.first_change(&read([5, 7], 1)).is_none());
        assert!(recent.first_change(&read([4, 5], 3)).is_none());
        let mut undo = Undo::default();
        recent.stage_all(Version(4), &rows(0..large), &mut undo);
        assert!(recent.key_changed(&7_u64.to_be_bytes(), Version(3)));
        recent.take_back(undo);
        assert!(!recent.key_changed(&7_u64.to_be_bytes(), Version(1)));
        recent.trim(Version(3), Version(3));
        assert_eq!((recent.len(), recent.bytes), (0, 0));
    }

    #[test]
    fn many_reads_are_checked_against_few_writes_and_few_reads_against_many() {
        let mut recent = Recent::new(Version(1), 1 << 20);
        for row in 0..100_u64 {
            recent.stage(
                Version(row + 2),
                &(row * 3).to_be_bytes(),
                &mut Undo::default(),
            );
        }
        for (reads, since, changed) in [
            (0..1_000, 50, true),
            (0..1_000, 101, false),
            (3..4, 2, true),
            (3..4, 3, false),
            (4..6, 1, false),
        ] {
            let change = recent.first_change(&read(reads.clone(), since));
            assert_eq!(change.is_some(), changed, "{reads:?} since {since}");
        }
    }

    #[test]
    fn what_takes_too_much_is_packed_before_it_is_forgotten() {
        let mut recent = Recent::new(Version(0), 2 << 20);
        let rows = 60_000_u64;
        for row in 1..=rows {
            recent.stage(Version(row), &row.to_be_bytes(), &mut Undo::default());
            if row % 100 == 0 {
                // One old snapshot, and the last hundred writes not published yet.
                recent.trim(Version(0), Version(row - 100));
            }
        }
        assert!(recent.bytes < 3 << 19, "{} bytes", recent.bytes);
        assert!(recent.runs.len() <= RUNS_MAX + 1);
        assert_eq!(
            recent.floor,
            Version(0),
            "the old snapshot can still be validated"
        );
        for row in (1..=rows).step_by(97) {
            assert!(
                recent.key_changed(&row.to_be_bytes(), Version(row - 1)),
                "{row}"
            );
            assert!(
                !recent.key_changed(&row.to_be_bytes(), Version(row)),
                "{row}"
            );
        }
        assert!(!recent.key_changed(&(rows + 1).to_be_bytes(), Version(0)));
        assert!(recent.first_change(&read([7, rows + 9], 6)).is_some());
        assert!(recent.first_change(&read([7, rows + 9], 7)).is_none());
        recent.trim(Version(rows), Version(rows));
        assert_eq!((recent.len(), recent.bytes), (0, 0));
    }
}
