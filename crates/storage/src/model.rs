//! Versions, keys, ranges and writes: what every part of the store has in common.

use std::ops::Bound;

/// Commit order of a write: strictly increasing, assigned by the commit path. Of one key, a lower
/// version is never written after a higher one.
///
/// Version 0 is before every write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version(pub u64);

impl Version {
    /// Before every write.
    pub const ZERO: Version = Version(0);
    /// After every write.
    pub const MAX: Version = Version(u64::MAX);
}

/// A half-open or open range of keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyRange {
    /// Lower bound.
    pub start: Bound<Vec<u8>>,
    /// Upper bound.
    pub end: Bound<Vec<u8>>,
}

impl KeyRange {
    /// Every key.
    #[must_use]
    pub fn all() -> Self {
        Self {
            start: Bound::Unbounded,
            end: Bound::Unbounded,
        }
    }

    /// One key.
    #[must_use]
    pub fn point(key: &[u8]) -> Self {
        Self {
            start: Bound::Included(key.to_vec()),
            end: Bound::Included(key.to_vec()),
        }
    }

    /// All keys that start with `prefix`.
    #[must_use]
    pub fn prefix(prefix: &[u8]) -> Self {
        let mut end = prefix.to_vec();
        while let Some(last) = end.pop() {
            if last < 0xFF {
                end.push(last + 1);
                assert!(
                    end.as_slice() > prefix,
                    "a prefix lies in the range of its keys"
                );
                return Self {
                    start: Bound::Included(prefix.to_vec()),
                    end: Bound::Excluded(end),
                };
            }
        }
        Self {
            start: Bound::Included(prefix.to_vec()),
            end: Bound::Unbounded,
        }
    }

    /// Whether no key lies between the bounds; `BTreeMap::range` panics on some of these.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match (&self.start, &self.end) {
            (Bound::Included(start), Bound::Included(end)) => start > end,
            (
                Bound::Included(start) | Bound::Excluded(start),
                Bound::Excluded(end) | Bound::Included(end),
            ) => start >= end,
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        }
    }

    /// Whether `key` lies inside.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        let after_start = match &self.start {
            Bound::Included(s) => key >= s.as_slice(),
            Bound::Excluded(s) => key > s.as_slice(),
            Bound::Unbounded => true,
        };
        let before_end = match &self.end {
            Bound::Included(e) => key <= e.as_slice(),
            Bound::Excluded(e) => key < e.as_slice(),
            Bound::Unbounded => true,
        };
        after_start && before_end
    }

    /// Whether no key of `other` comes before the end of this range: one walk meets all keys of this
    /// range, then those of `other`.
    #[must_use]
    pub fn ends_before(&self, other: &Self) -> bool {
        !reaches(&other.start, &self.end)
    }

    /// Whether every key of `other` lies inside; errs towards `false` only for ranges with no key
    /// between their bounds.
    #[must_use]
    pub fn contains_range(&self, other: &Self) -> bool {
        starts_no_earlier(&other.start, &self.start) && ends_no_later(&other.end, &self.end)
    }

    /// Whether a key may lie in both; errs towards `true` only for bounds with no key between
    /// them.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        reaches(&self.start, &other.end) && reaches(&other.start, &self.end)
    }
}

/// Whether all keys from `inner` on are also from `outer` on.
fn starts_no_earlier(inner: &Bound<Vec<u8>>, outer: &Bound<Vec<u8>>) -> bool {
    match (inner, outer) {
        (_, Bound::Unbounded) => true,
        (Bound::Unbounded, _) => false,
        (Bound::Included(inner), Bound::Excluded(outer)) => inner > outer,
        (Bound::Included(inner) | Bound::Excluded(inner), Bound::Included(outer))
        | (Bound::Excluded(inner), Bound::Excluded(outer)) => inner >= outer,
    }
}

/// Whether all keys up to `inner` are also up to `outer`.
fn ends_no_later(inner: &Bound<Vec<u8>>, outer: &Bound<Vec<u8>>) -> bool {
    match (inner, outer) {
        (_, Bound::Unbounded) => true,
        (Bound::Unbounded, _) => false,
        (Bound::Included(inner), Bound::Excluded(outer)) => inner < outer,
        (Bound::Included(inner) | Bound::Excluded(inner), Bound::Included(outer))
        | (Bound::Excluded(inner), Bound::Excluded(outer)) => inner <= outer,
    }
}

/// Whether a range that starts at `start` can share a key with one that ends at `end`.
fn reaches(start: &Bound<Vec<u8>>, end: &Bound<Vec<u8>>) -> bool {
    match (start, end) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
        (Bound::Included(start), Bound::Included(end)) => start <= end,
        (
            Bound::Included(start) | Bound::Excluded(start),
            Bound::Included(end) | Bound::Excluded(end),
        ) => start < end,
    }
}

/// Which way a cursor walks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Reverse,
}

/// When a write counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Durability {
    /// On disk: survives power loss.
    #[default]
    Sync,
    /// In the operating system: survives a killed process, not power loss.
    Async,
}

/// A value with the version that wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned {
    /// Version that wrote the value.
    pub version: Version,
    /// The value.
    pub value: Vec<u8>,
}

/// Keys and values of a range.
pub type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// Writes that become visible together at one version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteBatch {
    /// `(version, key, value)`; `None` deletes the key. A group commit carries several versions,
    /// in ascending order and newer than all before.
    pub writes: Vec<(Version, Vec<u8>, Option<Vec<u8>>)>,
}

impl WriteBatch {
    /// Checks what every reader relies on: a newer layer hides all older ones, so a batch never
    /// writes behind `latest`, nor behind itself.
    ///
    /// # Panics
    /// When it does: a defect of the commit path, which must not reach the disk.
    pub(crate) fn assert_newer_than(&self, latest: Version) {
        let mut before = latest;
        for (place, (version, _, _)) in self.writes.iter().enumerate() {
            let is_ordered = if place == 0 {
                *version > before
            } else {
                *version >= before
            };
            assert!(
                is_ordered,
                "a batch is newer than all before it: {version:?} after {before:?}"
            );
            before = *version;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
        let key = || (0..6_u8).prop_map(|digit| vec![digit * 2]);
        prop_oneof![
            key().prop_map(Bound::Included),
            key().prop_map(Bound::Excluded),
            Just(Bound::Unbounded),
        ]
    }

    prop_compose! {
        fn range()(start in bound(), end in bound()) -> KeyRange {
            KeyRange { start, end }
        }
    }

    proptest! {
        #[test]
        fn ranges_that_share_a_key_overlap(one in range(), other in range()) {
            // Odd keys lie between all bounds, so no range that has keys is empty here.
            let shared = (0..12).any(|key| one.contains(&[key]) && other.contains(&[key]));
            prop_assert!(!shared || one.overlaps(&other));
            let has_keys = |range: &KeyRange| (0..12).any(|key| range.contains(&[key]));
            if has_keys(&one) && has_keys(&other) {
                prop_assert_eq!(one.overlaps(&other), shared);
            }
        }

        #[test]
        fn a_range_contains_the_ranges_all_of_whose_keys_it_contains(
            one in range(),
            other in range(),
        ) {
            let probes = || std::iter::once(vec![]).chain((0..12).map(|key| vec![key]));
            let all_inside = probes().all(|key| one.contains(&key) || !other.contains(&key));
            prop_assert!(all_inside || !one.contains_range(&other));
            if probes().any(|key| other.contains(&key)) {
                prop_assert_eq!(one.contains_range(&other), all_inside);
            }
        }
    }

    #[test]
    fn a_point_is_the_range_of_one_key() {
        assert!(KeyRange::point(b"b").contains(b"b"));
        assert!(!KeyRange::point(b"b").contains(b"b\0"));
        assert!(KeyRange::all().contains(b""));
        assert!(KeyRange::point(b"b").overlaps(&KeyRange::prefix(b"b")));
        assert!(!KeyRange::point(b"b").overlaps(&KeyRange::prefix(b"ba")));
    }
}
