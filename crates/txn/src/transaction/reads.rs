//! What a transaction has read and must find unchanged at commit.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use manxdb_core::check::{deep, ensure};
use manxdb_storage::{Direction, KeyRange, Version};

use super::used::{USED_MAX, Used, UsedPart};
use crate::keys::neighbours;
use crate::keys::{KeyRun, ReadPoints};
use crate::model::{ReadSet, Snapshot};

/// Points kept in a map; as many are packed into a run when they are there.
const LOOSE_MAX: usize = 4_096;

/// Bytes that packed points may take: some three million keys of rows. Past it they become ranges
/// over neighbours, which is still sound: it can only conflict more often.
const PACKED_BYTES_MAX: usize = 32 << 20;

/// Ranges that packed points become, about.
const COVERS: usize = 8_192;

/// Ranges kept one by one; past it the closest neighbours are joined until half are left.
const RANGES_MAX: usize = 65_536;

/// A key that was read.
struct Point {
    at: Version,
    /// What its readers use of the value; `None`: all of it.
    used: Option<Used>,
}

#[derive(Default)]
pub(super) struct Recorded {
    /// The last points read.
    points: BTreeMap<Vec<u8>, Point>,
    /// The points before, in runs of which each has at least twice the keys of the next.
    runs: Vec<KeyRun>,
    ranges: Vec<(KeyRange, Version)>,
    /// Ranges at which neighbours are joined; more than [`RANGES_MAX`] when joining them left more.
    ranges_max: usize,
    /// Snapshot of the first recorded read: keeps everything needed to validate it and later ones.
    pin: Option<Snapshot>,
}

impl Recorded {
    /// Notes that `key` was read at `at`. Of several reads the oldest counts: true since then
    /// means true since any later one.
    pub(super) fn point(&mut self, key: &[u8], at: &Snapshot) {
        self.pin(at);
        self.add_point(key, at.version, None);
    }

    /// As [`Recorded::point`] by a reader that uses a part of the value.
    pub(super) fn used_point(&mut self, key: &[u8], at: &Snapshot, used: &Arc<dyn UsedPart>) {
        self.pin(at);
        self.add_point(key, at.version, Some(used));
    }

    fn add_point(&mut self, key: &[u8], at: Version, used: Option<&Arc<dyn UsedPart>>) {
        if let Some(point) = self.points.get_mut(key) {
            // What was used then was looked at then: with another snapshot it is all or nothing.
            let is_new = at != point.at;
            point.at = at.min(point.at);
            match (&mut point.used, used) {
                (Some(readers), Some(used)) if !is_new && readers.len() < USED_MAX => {
                    readers.push(Arc::clone(used));
                }
                _ => point.used = None,
            }
            return;
        }
        if self.points.len() >= LOOSE_MAX {
            self.pack();
        }
        let used = used.map(|used| vec![Arc::clone(used)]);
        self.points.insert(key.to_vec(), Point { at, used });
    }

    /// Notes that all of `range` was read at `at`; pages of one scan grow into one range.
    pub(super) fn range(&mut self, range: KeyRange, direction: Direction, at: &Snapshot) {
        self.pin(at);
        if let Some((last, version)) = self.ranges.last_mut()
            && *version == at.version
            && extend(last, &range, direction)
        {
            return;
        }
        self.add_range(range, at.version);
    }

    fn add_range(&mut self, range: KeyRange, at: Version) {
        if self.ranges.len() >= self.ranges_max.max(RANGES_MAX) {
            let ranges = std::mem::take(&mut self.ranges);
            self.ranges = neighbours::join(ranges, RANGES_MAX / 2);
            // So that every so many more are looked at once, however many tables there are.
            self.ranges_max = self.ranges.len() + RANGES_MAX / 2;
        }
        self.ranges.push((range, at));
    }

    /// What holds between any two reads.
    ///
    /// # Errors
    /// The invariant that is broken.
    fn check(&self) -> Result<(), String> {
        ensure(self.points.len() <= LOOSE_MAX, || {
            format!("{} points are not packed", self.points.len())
        })?;
        let is_larger = |one: &KeyRun, next: &KeyRun| one.len() > 2 * next.len();
        ensure(self.runs.is_sorted_by(is_larger), || {
            let keys: Vec<usize> = self.runs.iter().map(KeyRun::len).collect();
            format!("each run has twice the keys of the next: {keys:?}")
        })?;
        let ranges_max = self.ranges_max.max(RANGES_MAX);
        ensure(self.ranges.len() <= ranges_max, || {
            format!("{} ranges are kept, of {ranges_max}", self.ranges.len())
        })?;
        let has_read = [self.points.len(), self.runs.len(), self.ranges.len()];
        ensure(self.pin.is_some() || has_read == [0; 3], || {
            format!("what was read may be forgotten before it is validated: {has_read:?}")
        })?;
        for (key, point) in &self.points {
            let readers = point.used.as_ref().map_or(1, Vec::len);
            ensure((1..=USED_MAX).contains(&readers), || {
                format!("{readers} readers use parts of {}", key.escape_ascii())
            })?;
        }
        Ok(())
    }

    fn pin(&mut self, at: &Snapshot) {
        self.pin.get_or_insert_with(|| at.clone());
    }

    /// Makes a run of the last points, and one of runs that are as large.
    fn pack(&mut self) {
        let points = std::mem::take(&mut self.points);
        let Some(oldest) = points.values().map(|point| point.at).min() else {
            return;
        };
        let keys = points.iter().map(|(key, point)| (key.as_slice(), point.at));
        let mut run = KeyRun::pack(oldest, keys);
        while let Some(before) = self.runs.pop() {
            if before.len() > 2 * run.len() {
                self.runs.push(before);
                break;
            }
            run = before.merge(&run, Version::min);
        }
        self.runs.push(run);
        if self.runs.iter().map(KeyRun::size_bytes).sum::<usize>() > PACKED_BYTES_MAX {
            self.cover();
        }
    }

    /// Makes ranges of the packed points.
    fn cover(&mut self) {
        let runs = std::mem::take(&mut self.runs).into_iter();
        let Some(run) = runs.rev().reduce(|all, run| all.merge(&run, Version::min)) else {
            return;
        };
        for (range, at) in neighbours::cover(&run, COVERS) {
            self.add_range(range, at);
        }
    }

    /// As the intent carries it, and the pin of the first read.
    pub(super) fn into_read_set(self) -> (ReadSet, Option<Snapshot>) {
        if deep() {
            assert_eq!(self.check(), Ok(()));
        }
        let points = self.points.into_iter().map(|(key, point)| (key, point.at));
        let reads = ReadSet {
            points: ReadPoints::new(points.collect(), self.runs),
            ranges: self.ranges,
        };
        (reads, self.pin)
    }

    /// A copy, to ask whether all of it still holds.
    pub(super) fn to_read_set(&self) -> ReadSet {
        self.read_set_of(|_| true)
    }

    /// As [`Recorded::to_read_set`], without the points of which [`Recorded::partly_used`] tells.
    pub(super) fn wholly_used(&self) -> ReadSet {
        self.read_set_of(|point| point.used.is_none())
    }

    fn read_set_of(&self, wanted: impl Fn(&Point) -> bool) -> ReadSet {
        let points = self.points.iter().filter(|(_, point)| wanted(point));
        let points = points.map(|(key, point)| (key.clone(), point.at));
        ReadSet {
            points: ReadPoints::new(points.collect(), self.runs.clone()),
            ranges: self.ranges.clone(),
        }
    }

    /// Whether of some point a part of the value was used.
    pub(super) fn has_partly_used(&self) -> bool {
        self.points.values().any(|point| point.used.is_some())
    }

    /// Points of which a part of the value was used.
    pub(super) fn partly_used(&self) -> Vec<(Vec<u8>, Version, Used)> {
        let points = self.points.iter();
        let partly = points.filter_map(|(key, point)| {
            let used = point.used.clone()?;
            Some((key.clone(), point.at, used))
        });
        partly.collect()
    }

    /// Adds reads made by others that were still true at `at`.
    pub(super) fn include(&mut self, reads: &ReadSet, at: &Snapshot) {
        self.pin(at);
        for (key, version) in reads.points.iter() {
            self.add_point(&key, version, None);
        }
        for (range, version) in &reads.ranges {
            self.add_range(range.clone(), *version);
        }
    }

    /// After a refresh: everything read is true at `at` as well.
    pub(super) fn move_to(&mut self, at: &Snapshot) {
        for point in self.points.values_mut() {
            point.at = at.version;
        }
        for run in &mut self.runs {
            *run = run.moved_to(at.version);
        }
        for (_, version) in &mut self.ranges {
            *version = at.version;
        }
        self.pin = Some(at.clone());
    }
}

/// Joins `next` to `range` when it goes on exactly where `range` ended.
fn extend(range: &mut KeyRange, next: &KeyRange, direction: Direction) -> bool {
    match direction {
        Direction::Forward => match (&range.end, &next.start) {
            (Bound::Included(end), Bound::Excluded(start)) if end == start => {
                range.end.clone_from(&next.end);
                true
            }
            _ => false,
        },
        Direction::Reverse => match (&range.start, &next.end) {
            (Bound::Included(start), Bound::Excluded(end)) if start == end => {
                range.start.clone_from(&next.start);
                true
            }
            _ => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(version: u64) -> Snapshot {
        Snapshot {
            version: Version(version),
            pin: None,
        }
    }

    #[test]
    fn reads_that_are_kept_wrongly_are_found_out() {
        type Fault = fn(&mut Recorded);
        let point = |used: Option<Used>| Point {
            at: Version(4),
            used,
        };
        let run = |keys: u8| {
            let keys: Vec<[u8; 1]> = (0..keys).map(|key| [key]).collect();
            KeyRun::pack(Version(4), keys.iter().map(|key| (&key[..], Version(4))))
        };
        let faults: [(Fault, &str); 2] = [
            (|it| it.pin = None, "may be forgotten"),
            (
                |it| it.ranges = vec![(KeyRange::all(), Version(4)); RANGES_MAX + 1],
                "ranges are kept",
            ),
        ];
        let mut recorded = Recorded::default();
        assert_eq!(recorded.check(), Ok(()));
        recorded.point(b"a", &at(4));
        assert_eq!(recorded.check(), Ok(()));
        recorded.runs = vec![run(5), run(2)];
        assert_eq!(recorded.check(), Ok(()));
        recorded.runs.swap(0, 1);
        assert!(recorded.check().unwrap_err().contains("twice the keys"));
        recorded.runs.clear();
        recorded
            .points
            .insert(b"b".to_vec(), point(Some(Vec::new())));
        assert!(recorded.check().unwrap_err().contains("0 readers"));
        recorded.points.remove(&b"b"[..]);
        for (fault, name) in faults {
            fault(&mut recorded);
            let found = recorded.check().unwrap_err();
            assert!(found.contains(name), "{found}");
            recorded.pin = Some(at(4));
        }
    }

    #[test]
    fn pages_of_a_scan_become_one_range() {
        let mut recorded = Recorded::default();
        let mut range = KeyRange::prefix(b"t");
        range.end = Bound::Included(b"tc".to_vec());
        recorded.range(range, Direction::Forward, &at(4));
        let rest = KeyRange {
            start: Bound::Excluded(b"tc".to_vec()),
            end: Bound::Excluded(b"u".to_vec()),
        };
        recorded.range(rest, Direction::Forward, &at(4));
        let reads = recorded.to_read_set();
        assert_eq!(reads.ranges, vec![(KeyRange::prefix(b"t"), Version(4))]);
    }

    #[test]
    fn the_oldest_read_of_a_key_counts() {
        let mut recorded = Recorded::default();
        recorded.point(b"k", &at(3));
        recorded.point(b"k", &at(8));
        let reads = recorded.to_read_set();
        assert_eq!(reads.points, vec![(b"k".to_vec(), Version(3))].into());
    }

    /// A row's key: table, index, and a number.
    fn key(table: u8, row: u64) -> Vec<u8> {
        let table = [1, 0, 0, 0, table, 0, 0, 0, 0];
        [&table[..], &row.to_be_bytes()].concat()
    }

    #[test]
    fn a_million_points_stay_points_and_take_few_bytes() {
        let mut recorded = Recorded::default();
        let rows = 1_000_000;
        for row in 0..rows {
            // Both halves of the table at once, as two indexes would.
            let row = row / 2 + if row % 2 == 0 { 0 } else { 1 << 40 };
            recorded.point(&key(7, row), &at(9));
        }
        recorded.point(&key(7, 3), &at(4));
        let bytes: usize = recorded.runs.iter().map(KeyRun::size_bytes).sum();
        assert!(bytes < 10 << 20, "{bytes} bytes");
        assert!(recorded.runs.len() < 12, "{} runs", recorded.runs.len());
        recorded.move_to(&at(11));
        let (reads, _) = recorded.into_read_set();
        assert_eq!(reads.ranges, Vec::new());
        assert!(reads.points.len() as u64 >= rows);
        assert!(reads.points.iter().all(|(_, at)| at == Version(11)));
    }

    #[test]
    fn past_their_bytes_points_become_ranges_over_neighbours_of_one_table() {
        let mut recorded = Recorded::default();
        // Keys that share little, so that it takes fewer of them.
        let long = |table, row: u64| {
            [
                key(table, row.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
                vec![7; 600],
            ]
            .concat()
        };
        for row in 0..30_000 {
            recorded.point(&long(7, row), &at(9));
            recorded.point(&long(9, row), &at(8));
        }
        let (reads, _) = recorded.into_read_set();
        assert!(!reads.ranges.is_empty() && reads.ranges.len() < 60_000);
        let is_read = |key: &[u8]| {
            let points = reads.points.iter().any(|(point, _)| *point == *key);
            points || reads.ranges.iter().any(|(range, _)| range.contains(key))
        };
        assert!(
            (0..30_000)
                .step_by(777)
                .all(|row| is_read(&long(7, row)) && is_read(&long(9, row)))
        );
        assert!(!is_read(&key(8, 0)), "a table between them is not read");
        assert!(!is_read(&key(9, u64::MAX)) && !is_read(&key(7, 0)));
        let is_of_seven =
            |range: &KeyRange| KeyRange::prefix(&key(7, 0)[..9]).contains_range(range);
        let oldest = |range| if is_of_seven(range) { 9 } else { 8 };
        assert!(reads.ranges.iter().all(|(range, at)| at.0 == oldest(range)));
    }

    #[test]
    fn too_many_ranges_join_their_neighbours() {
        let mut recorded = Recorded::default();
        for row in 0..RANGES_MAX as u64 * 2 {
            let range = KeyRange::point(&key(7, row * 4));
            recorded.range(range, Direction::Forward, &at(9));
        }
        let (reads, _) = recorded.into_read_set();
        assert!(reads.ranges.len() <= RANGES_MAX, "{}", reads.ranges.len());
        let covers = |key: &[u8]| reads.ranges.iter().any(|(range, _)| range.contains(key));
        assert!(
            (0..RANGES_MAX as u64 * 2)
                .step_by(999)
                .all(|row| covers(&key(7, row * 4)))
        );
        assert!(!covers(&key(7, u64::MAX)) && !covers(&key(8, 0)));
    }
}
