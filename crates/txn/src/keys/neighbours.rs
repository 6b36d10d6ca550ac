//! Fewer and wider ranges in place of many keys or ranges: neighbours are joined, the closest
//! first, where closeness is how many bytes two keys share.
//!
//! What is between two joined keys counts as read too, which is still sound: a commit may fail
//! that need not have. So only keys of the same table and index are joined, and no more of them
//! than is needed.

use std::ops::Bound;

use manxdb_storage::{KeyRange, Version};

use super::run::{KeyRun, shared_bytes};

/// Bytes that keys share at least to be joined: those that name a table and its index.
pub const NEIGHBOURS_SHARE_BYTES: usize = 9;

/// Longest part of keys that is looked at.
const CLOSENESS_MAX: usize = 255;
const _: () = assert!(
    NEIGHBOURS_SHARE_BYTES <= CLOSENESS_MAX,
    "keys of one table are told from those of others"
);

/// How many neighbours share how many bytes.
struct Closeness {
    counts: [usize; CLOSENESS_MAX + 1],
}

impl Closeness {
    fn of(shared: impl Iterator<Item = usize>) -> Self {
        let mut counts = [0; CLOSENESS_MAX + 1];
        for bytes in shared {
            counts[bytes.min(CLOSENESS_MAX)] += 1;
        }
        Self { counts }
    }

    /// The most bytes that neighbours must share to be joined, so that no more than `parts_max`
    /// parts are left, if that is possible without joining tables.
    fn threshold(&self, parts_max: usize) -> usize {
        let mut threshold = NEIGHBOURS_SHARE_BYTES;
        let mut parts = 1 + self.counts[..threshold].iter().sum::<usize>();
        while threshold < CLOSENESS_MAX && parts + self.counts[threshold] <= parts_max {
            parts += self.counts[threshold];
            threshold += 1;
        }
        assert!(
            (NEIGHBOURS_SHARE_BYTES..=CLOSENESS_MAX).contains(&threshold),
            "tables are not joined: keys that share {threshold} bytes are"
        );
        threshold
    }
}

/// About `parts_max` ranges, or as many as there are tables and indexes, that cover the keys of
/// `run`, each with the oldest version of its keys.
pub(crate) fn cover(run: &KeyRun, parts_max: usize) -> Vec<(KeyRange, Version)> {
    let mut shared = Vec::new();
    let mut last: Option<Vec<u8>> = None;
    each(run, |key, _| {
        if let Some(last) = &mut last {
            shared.push(shared_bytes(last, key));
            last.clear();
            last.extend_from_slice(key);
        } else {
            last = Some(key.to_vec());
        }
    });
    let threshold = Closeness::of(shared.into_iter()).threshold(parts_max);
    let mut parts: Vec<(Vec<u8>, Vec<u8>, Version)> = Vec::new();
    each(run, |key, at| match parts.last_mut() {
        Some((_, high, oldest)) if shared_bytes(high, key) >= threshold => {
            high.clear();
            high.extend_from_slice(key);
            *oldest = at.min(*oldest);
        }
        _ => parts.push((key.to_vec(), key.to_vec(), at)),
    });
    assert_eq!(parts.is_empty(), run.is_empty(), "each key is covered");
    assert!(
        parts
            .iter()
            .all(|(low, high, at)| low <= high && *at >= run.oldest()),
        "a range covers keys of the run, at their versions"
    );
    let ranges = parts.into_iter().map(|(low, high, at)| {
        let range = KeyRange {
            start: Bound::Included(low),
            end: Bound::Included(high),
        };
        (range, at)
    });
    ranges.collect()
}

fn each(run: &KeyRun, mut visit: impl FnMut(&[u8], Version)) {
    let mut cursor = run.cursor();
    while let Some((key, at)) = cursor.entry() {
        visit(key, at);
        cursor.advance();
    }
}

/// Joins `ranges` until about `parts_max` are left, or as many as there are tables and indexes.
pub(crate) fn join(
    mut ranges: Vec<(KeyRange, Version)>,
    parts_max: usize,
) -> Vec<(KeyRange, Version)> {
    ranges.sort_by(|(one, _), (two, _)| bytes_of(&one.start).cmp(&bytes_of(&two.start)));
    let shared = ranges.windows(2).map(|pair| match pair {
        [(one, _), (two, _)] => closeness(one, two),
        _ => 0,
    });
    let threshold = Closeness::of(shared).threshold(parts_max);
    let (before, mut joined) = (ranges.len(), Vec::<(KeyRange, Version)>::new());
    for (range, at) in ranges {
        match joined.last_mut() {
            Some((last, oldest)) if closeness(last, &range) >= threshold => {
                last.start = lower(
                    std::mem::replace(&mut last.start, Bound::Unbounded),
                    range.start,
                );
                last.end = upper(
                    std::mem::replace(&mut last.end, Bound::Unbounded),
                    range.end,
                );
                *oldest = at.min(*oldest);
            }
            _ => joined.push((range, at)),
        }
    }
    assert!(
        joined.len() <= before && joined.is_empty() == (before == 0),
        "ranges that are joined cover what they covered"
    );
    joined
}

/// Bytes shared by the end of `one` and the start of `two`, which does not begin before it; those
/// that overlap are as close as can be.
fn closeness(one: &KeyRange, two: &KeyRange) -> usize {
    match (bytes_of(&one.end), bytes_of(&two.start)) {
        (Some(end), Some(start)) if end < start => shared_bytes(end, start),
        _ => CLOSENESS_MAX,
    }
}

fn bytes_of(bound: &Bound<Vec<u8>>) -> Option<&[u8]> {
    match bound {
        Bound::Unbounded => None,
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
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

    /// A row's key: table, index, and a number.
    fn key(table: u32, row: u64) -> Vec<u8> {
        let table = [&[1][..], &table.to_be_bytes(), &[0; 4]].concat();
        [table, row.to_be_bytes().to_vec()].concat()
    }

    fn run(keys: &[Vec<u8>]) -> KeyRun {
        KeyRun::pack(
            Version(3),
            keys.iter().map(|key| (key.as_slice(), Version(3))),
        )
    }

    #[test]
    fn the_closest_keys_are_joined_and_never_those_of_two_tables() {
        let rows = (0..1_000).chain(1 << 40..(1 << 40) + 1_000);
        let mut keys: Vec<_> = rows.map(|row| key(7, row)).collect();
        keys.push(key(8, 5));
        let ranges = cover(&run(&keys), 20);
        assert!(ranges.len() <= 20, "{} ranges", ranges.len());
        let covers = |key: &[u8]| ranges.iter().any(|(range, _)| range.contains(key));
        assert!(keys.iter().all(|key| covers(key)));
        assert!(
            !covers(&key(7, 1 << 20)),
            "the gap between the rows is free"
        );
        assert!(!covers(&key(7, u64::MAX)) && !covers(&key(8, 4)));
        // Fewer than tables there cannot be.
        assert_eq!(cover(&run(&keys), 1).len(), 2);
    }

    #[test]
    fn joined_ranges_cover_what_they_were_made_of() {
        let range = |table, low, high| KeyRange {
            start: Bound::Excluded(key(table, low)),
            end: Bound::Included(key(table, high)),
        };
        let mut ranges = Vec::new();
        for low in (0..10_000_u64).rev().step_by(10) {
            ranges.push((range(7, low, low + 3), Version(low + 1)));
        }
        ranges.push((range(9, 0, 1), Version(4)));
        let all = ranges.clone();
        let joined = join(ranges, 50);
        assert!(joined.len() <= 50, "{} ranges", joined.len());
        for (range, at) in &all {
            let holder = joined.iter().find(|(one, _)| one.contains_range(range));
            assert!(holder.is_some_and(|(_, oldest)| oldest <= at), "{range:?}");
        }
        assert!(!joined.iter().any(|(one, _)| one.contains(&key(8, 0))));
    }

    #[test]
    fn a_range_without_an_end_takes_in_what_follows() {
        let from = |start: &[u8]| KeyRange {
            start: Bound::Included(start.to_vec()),
            end: Bound::Unbounded,
        };
        let joined = join(vec![(from(b"b"), Version(2)), (from(b"a"), Version(5))], 1);
        assert_eq!(joined, vec![(from(b"a"), Version(2))]);
    }
}
