//! What a transaction has read and must find unchanged at commit.

use std::collections::BTreeMap;
use std::ops::Bound;

use manxdb_storage::{Direction, KeyRange, Version};

use crate::path::{ReadSet, Snapshot};

/// Points or ranges kept one by one. Past it they are merged into one range that covers them
/// all: still sound, conflicts more often, and memory stays bounded.
const PARTS_MAX: usize = 100_000;

#[derive(Default)]
pub(super) struct Recorded {
    points: BTreeMap<Vec<u8>, Version>,
    ranges: Vec<(KeyRange, Version)>,
    /// Snapshot of the first recorded read: keeps everything needed to validate it and later ones.
    pin: Option<Snapshot>,
}

impl Recorded {
    /// Notes that `key` was read at `at`. Of several reads the oldest counts: true since then
    /// means true since any later one.
    pub(super) fn point(&mut self, key: &[u8], at: &Snapshot) {
        self.pin(at);
        if self.points.contains_key(key) {
            return;
        }
        if self.points.len() >= PARTS_MAX {
            self.merge_points();
        }
        self.points.insert(key.to_vec(), at.version);
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
        if self.ranges.len() >= PARTS_MAX {
            self.merge_ranges();
        }
        self.ranges.push((range, at.version));
    }

    fn pin(&mut self, at: &Snapshot) {
        self.pin.get_or_insert_with(|| at.clone());
    }

    fn merge_points(&mut self) {
        let first = self.points.first_key_value();
        let last = self.points.last_key_value();
        let oldest = self.points.values().min();
        if let (Some((first, _)), Some((last, _)), Some(oldest)) = (first, last, oldest) {
            let cover = KeyRange {
                start: Bound::Included(first.clone()),
                end: Bound::Included(last.clone()),
            };
            self.ranges.push((cover, *oldest));
        }
        self.points.clear();
    }

    fn merge_ranges(&mut self) {
        let Some(oldest) = self.ranges.iter().map(|(_, version)| *version).min() else {
            return;
        };
        let mut ranges = self.ranges.drain(..).map(|(range, _)| range);
        let Some(mut cover) = ranges.next() else {
            return;
        };
        for range in ranges {
            cover.start = lower(cover.start, range.start);
            cover.end = upper(cover.end, range.end);
        }
        self.ranges = vec![(cover, oldest)];
    }

    /// As the intent carries it, and the pin of the first read.
    pub(super) fn into_read_set(self) -> (ReadSet, Option<Snapshot>) {
        let reads = ReadSet {
            points: self.points.into_iter().collect(),
            ranges: self.ranges,
        };
        (reads, self.pin)
    }

    /// A copy, to ask whether all of it still holds.
    pub(super) fn to_read_set(&self) -> ReadSet {
        let points = self.points.iter();
        ReadSet {
            points: points.map(|(key, at)| (key.clone(), *at)).collect(),
            ranges: self.ranges.clone(),
        }
    }

    /// Adds reads made by others that were still true at `at`.
    pub(super) fn include(&mut self, reads: &ReadSet, at: &Snapshot) {
        self.pin(at);
        for (key, version) in &reads.points {
            let oldest = self.points.entry(key.clone()).or_insert(*version);
            *oldest = (*oldest).min(*version);
        }
        self.ranges.extend(reads.ranges.iter().cloned());
    }

    /// After a refresh: everything read is true at `at` as well.
    pub(super) fn move_to(&mut self, at: &Snapshot) {
        for version in self.points.values_mut() {
            *version = at.version;
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

fn lower(one: Bound<Vec<u8>>, other: Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    use Bound::{Excluded, Included, Unbounded};
    match (one, other) {
        (Unbounded, _) | (_, Unbounded) => Unbounded,
        (Included(a) | Excluded(a), Included(b) | Excluded(b)) => Included(a.min(b)),
    }
}

fn upper(one: Bound<Vec<u8>>, other: Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    use Bound::{Excluded, Included, Unbounded};
    match (one, other) {
        (Unbounded, _) | (_, Unbounded) => Unbounded,
        (Included(a) | Excluded(a), Included(b) | Excluded(b)) => Included(a.max(b)),
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
        assert_eq!(reads.points, vec![(b"k".to_vec(), Version(3))]);
    }

    #[test]
    fn too_many_points_become_a_range_that_covers_them() {
        let mut recorded = Recorded::default();
        for number in 0..=PARTS_MAX as u64 {
            recorded.point(&number.to_be_bytes(), &at(9));
        }
        let reads = recorded.to_read_set();
        assert_eq!((reads.points.len(), reads.ranges.len()), (1, 1));
        assert!(reads.ranges[0].0.contains(&77_u64.to_be_bytes()));
    }
}
