//! Sorted keys, packed: each without the bytes that it shares with the one before.
//!
//! ```text
//! entry   shared varint · rest length varint · rest · (version - oldest) varint
//! block   BLOCK_ENTRIES entries, of which the first shares nothing: a search reads one block
//! ```

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use manxdb_core::check::deep;
use manxdb_storage::{KeyRange, Version};

/// Entries of a block: few enough that finding a key is quick, many enough that whole keys and
/// places of blocks do not count.
const BLOCK_ENTRIES: usize = 32;

/// Keys in ascending order, each with a version. Immutable; clones share the bytes.
#[derive(Debug, Clone)]
pub struct KeyRun {
    packed: Arc<Packed>,
    /// Stands for the version of every entry.
    moved_to: Option<Version>,
}

#[derive(Debug, Default)]
struct Packed {
    bytes: Vec<u8>,
    /// Where each block begins.
    blocks: Vec<usize>,
    len: usize,
    oldest: Version,
    newest: Version,
}

/// Packs keys that come in ascending order.
pub(crate) struct RunBuilder {
    packed: Packed,
    last: Vec<u8>,
}

impl RunBuilder {
    /// An empty run whose versions are at or above `oldest`.
    pub(crate) fn new(oldest: Version) -> Self {
        let packed = Packed {
            oldest,
            newest: oldest,
            ..Packed::default()
        };
        Self {
            packed,
            last: Vec::new(),
        }
    }

    /// Adds a key behind all others.
    pub(crate) fn push(&mut self, key: &[u8], version: Version) {
        let packed = &mut self.packed;
        assert!(
            packed.len == 0 || self.last.as_slice() < key,
            "the keys of a run ascend"
        );
        assert!(version >= packed.oldest, "a version older than its run");
        let shared = if packed.len.is_multiple_of(BLOCK_ENTRIES) {
            packed.blocks.push(packed.bytes.len());
            0
        } else {
            shared_bytes(&self.last, key)
        };
        put_number(&mut packed.bytes, shared as u64);
        put_number(&mut packed.bytes, (key.len() - shared) as u64);
        packed.bytes.extend_from_slice(&key[shared..]);
        put_number(&mut packed.bytes, version.0 - packed.oldest.0);
        packed.len += 1;
        packed.newest = packed.newest.max(version);
        self.last.truncate(shared);
        self.last.extend_from_slice(&key[shared..]);
    }

    pub(crate) fn finish(mut self) -> KeyRun {
        self.packed.bytes.shrink_to_fit();
        self.packed.blocks.shrink_to_fit();
        assert_eq!(
            self.packed.blocks.len(),
            self.packed.len.div_ceil(BLOCK_ENTRIES),
            "each block but the last is full"
        );
        assert!(
            self.packed.oldest <= self.packed.newest,
            "a run has its versions between two"
        );
        let run = KeyRun {
            packed: Arc::new(self.packed),
            moved_to: None,
        };
        assert!(
            !deep() || run.count() == run.len(),
            "each key that is packed is read"
        );
        run
    }
}

impl KeyRun {
    /// Packs `keys`, which ascend.
    pub(crate) fn pack<'a>(
        oldest: Version,
        keys: impl IntoIterator<Item = (&'a [u8], Version)>,
    ) -> Self {
        let mut run = RunBuilder::new(oldest);
        for (key, version) in keys {
            run.push(key, version);
        }
        run.finish()
    }

    /// The keys of both; of a key that both have, the version that `choose` says.
    pub(crate) fn merge(&self, other: &Self, choose: fn(Version, Version) -> Version) -> Self {
        let mut merged = RunBuilder::new(self.oldest().min(other.oldest()));
        let (mut one, mut two) = (self.cursor(), other.cursor());
        loop {
            let order = match (one.entry(), two.entry()) {
                (None, None) => {
                    let merged = merged.finish();
                    assert!(
                        merged.len() >= self.len().max(other.len())
                            && merged.len() <= self.len() + other.len(),
                        "a merged run has each key of both once"
                    );
                    return merged;
                }
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((key, _)), Some((other, _))) => key.cmp(other),
            };
            let from = if order == Ordering::Greater {
                &two
            } else {
                &one
            };
            if let Some((key, version)) = from.entry() {
                let version = match (order, two.entry()) {
                    (Ordering::Equal, Some((_, other))) => choose(version, other),
                    _ => version,
                };
                merged.push(key, version);
            }
            if order != Ordering::Greater {
                one.advance();
            }
            if order != Ordering::Less {
                two.advance();
            }
        }
    }

    /// The same keys, all at `version`.
    #[must_use]
    pub(crate) fn moved_to(&self, version: Version) -> Self {
        Self {
            packed: Arc::clone(&self.packed),
            moved_to: Some(version),
        }
    }

    /// Keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packed.len
    }

    /// Keys, told by reading them.
    fn count(&self) -> usize {
        let mut cursor = self.cursor();
        let mut count = 0;
        while cursor.entry().is_some() {
            count += 1;
            cursor.advance();
        }
        count
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packed.len == 0
    }

    /// Bytes it takes, shared with its clones.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.packed.bytes.len() + self.packed.blocks.len() * size_of::<usize>()
    }

    /// No entry has a version below it.
    #[must_use]
    pub fn oldest(&self) -> Version {
        self.moved_to.unwrap_or(self.packed.oldest)
    }

    /// No entry has a version above it.
    #[must_use]
    pub fn newest(&self) -> Version {
        self.moved_to.unwrap_or(self.packed.newest)
    }

    /// The version of `key`, if it is one of the keys.
    #[must_use]
    pub fn find(&self, key: &[u8]) -> Option<Version> {
        let cursor = self.seek(key);
        let (found, version) = cursor.entry()?;
        (found == key).then_some(version)
    }

    /// Whether a key of `range` has a version above `since`.
    #[must_use]
    pub fn any_newer(&self, range: &KeyRange, since: Version) -> bool {
        if self.newest() <= since {
            return false;
        }
        let mut cursor = match &range.start {
            Bound::Unbounded => self.cursor(),
            Bound::Included(start) | Bound::Excluded(start) => self.seek(start),
        };
        while let Some((key, version)) = cursor.entry() {
            let is_past = match &range.end {
                Bound::Unbounded => false,
                Bound::Included(end) => key > end.as_slice(),
                Bound::Excluded(end) => key >= end.as_slice(),
            };
            if is_past {
                return false;
            }
            if version > since && range.contains(key) {
                return true;
            }
            cursor.advance();
        }
        false
    }

    /// A key of both whose version in `other` is above the one here.
    pub(crate) fn first_newer_in(&self, other: &Self) -> Option<Vec<u8>> {
        if other.newest() <= self.oldest() {
            return None;
        }
        // Looking up costs as much as walking over a block.
        let (few, many) = if self.len() <= other.len() {
            (self, other)
        } else {
            (other, self)
        };
        let by_walking = few.len() * BLOCK_ENTRIES > many.len();
        let (mut outer, mut inner) = (few.cursor(), many.cursor());
        while let Some((key, version)) = outer.entry() {
            if by_walking {
                inner.walk_to(key);
            } else {
                inner = many.seek(key);
            }
            if let Some((found, theirs)) = inner.entry()
                && found == key
            {
                let (here, there) = if self.len() <= other.len() {
                    (version, theirs)
                } else {
                    (theirs, version)
                };
                if there > here {
                    return Some(key.to_vec());
                }
            }
            outer.advance();
        }
        None
    }

    /// A cursor at the first key.
    pub(crate) fn cursor(&self) -> RunCursor<'_> {
        self.cursor_at(0)
    }

    /// A cursor at the first key that is not before `key`.
    pub(crate) fn seek(&self, key: &[u8]) -> RunCursor<'_> {
        let blocks = &self.packed.blocks;
        let behind = blocks.partition_point(|begin| first_key(&self.packed.bytes, *begin) <= key);
        let mut cursor = self.cursor_at(behind.saturating_sub(1));
        cursor.walk_to(key);
        cursor
    }

    fn cursor_at(&self, block: usize) -> RunCursor<'_> {
        let begin = self.packed.blocks.get(block).copied();
        assert!(
            begin.is_some() || self.is_empty(),
            "a cursor begins at a block: {block} of {}",
            self.packed.blocks.len()
        );
        let mut cursor = RunCursor {
            run: self,
            next: begin.unwrap_or(self.packed.bytes.len()),
            key: Vec::new(),
            version: Version::ZERO,
            is_at_end: false,
        };
        cursor.advance();
        cursor
    }
}

/// A place in a run.
pub(crate) struct RunCursor<'a> {
    run: &'a KeyRun,
    next: usize,
    key: Vec<u8>,
    version: Version,
    is_at_end: bool,
}

impl RunCursor<'_> {
    /// The entry at the cursor; none behind the last.
    pub(crate) fn entry(&self) -> Option<(&[u8], Version)> {
        (!self.is_at_end).then_some((self.key.as_slice(), self.version))
    }

    /// Goes to the next entry.
    pub(crate) fn advance(&mut self) {
        let packed = &*self.run.packed;
        if self.next >= packed.bytes.len() {
            self.is_at_end = true;
            return;
        }
        let shared = get_number(&packed.bytes, &mut self.next);
        let rest = get_number(&packed.bytes, &mut self.next);
        let (shared, rest) = (as_length(shared), as_length(rest));
        assert!(
            shared <= self.key.len(),
            "a key shares no more than the one before it has"
        );
        self.key.truncate(shared);
        self.key
            .extend_from_slice(&packed.bytes[self.next..self.next + rest]);
        self.next += rest;
        assert!(
            self.next < packed.bytes.len(),
            "a version stands behind each key"
        );
        let above = get_number(&packed.bytes, &mut self.next);
        self.version = match self.run.moved_to {
            Some(version) => version,
            None => Version(packed.oldest.0 + above),
        };
    }

    /// Goes on to the first entry that is not before `key`.
    fn walk_to(&mut self, key: &[u8]) {
        while self.entry().is_some_and(|(here, _)| here < key) {
            self.advance();
        }
    }
}

/// The key of the first entry of the block that begins at `begin`.
fn first_key(bytes: &[u8], begin: usize) -> &[u8] {
    let mut at = begin;
    let shared = get_number(bytes, &mut at);
    assert_eq!(shared, 0, "a block begins with a whole key");
    let length = as_length(get_number(bytes, &mut at));
    &bytes[at..at + length]
}

/// Bytes that both begin with.
pub(crate) fn shared_bytes(one: &[u8], two: &[u8]) -> usize {
    one.iter().zip(two).take_while(|(a, b)| a == b).count()
}

#[allow(clippy::cast_possible_truncation)] // seven bits
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The number that [`put_number`] wrote at `at`, which moves behind it.
pub(crate) fn get_number(bytes: &[u8], at: &mut usize) -> u64 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = bytes[*at];
        *at += 1;
        number |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return number;
        }
        shift += 7;
    }
}

#[allow(clippy::cast_possible_truncation)] // it was a length in this process
pub(crate) fn as_length(number: u64) -> usize {
    number as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Map = BTreeMap<Vec<u8>, Version>;

    fn packed(map: &Map) -> KeyRun {
        let oldest = map.values().min().copied().unwrap_or(Version(1));
        KeyRun::pack(oldest, map.iter().map(|(key, at)| (key.as_slice(), *at)))
    }

    fn unpacked(run: &KeyRun) -> Map {
        let mut map = Map::new();
        let mut cursor = run.cursor();
        while let Some((key, version)) = cursor.entry() {
            map.insert(key.to_vec(), version);
            cursor.advance();
        }
        map
    }

    fn map() -> impl Strategy<Value = Map> {
        let key = prop::collection::vec(0..4_u8, 0..5);
        let version = (1..400_u64).prop_map(Version);
        prop::collection::btree_map(key, version, 0..200)
    }

    fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
        let key = prop::collection::vec(0..4_u8, 0..5);
        prop_oneof![
            key.clone().prop_map(Bound::Included),
            key.prop_map(Bound::Excluded),
            Just(Bound::Unbounded),
        ]
    }

    proptest! {
        #[test]
        fn a_run_answers_as_the_map_it_was_packed_from(
            map in map(),
            key in prop::collection::vec(0..4_u8, 0..5),
            start in bound(),
            end in bound(),
            since in (0..400_u64).prop_map(Version),
        ) {
            let run = packed(&map);
            prop_assert_eq!(unpacked(&run), map.clone());
            prop_assert_eq!(run.len(), map.len());
            prop_assert_eq!(run.find(&key), map.get(&key).copied());
            let next = run.seek(&key).entry().map(|(key, _)| key.to_vec());
            prop_assert_eq!(next, map.range(key..).next().map(|(key, _)| key.clone()));
            let range = KeyRange { start, end };
            let newer = map.iter().any(|(key, at)| range.contains(key) && *at > since);
            prop_assert_eq!(run.any_newer(&range, since), newer);
        }

        #[test]
        fn runs_merge_and_meet_as_maps_do(one in map(), two in map()) {
            let (first, second) = (packed(&one), packed(&two));
            let mut merged = one.clone();
            for (key, version) in &two {
                let at = merged.entry(key.clone()).or_insert(*version);
                *at = (*at).min(*version);
            }
            prop_assert_eq!(unpacked(&first.merge(&second, Version::min)), merged);
            let newer = one.iter().any(|(key, at)| two.get(key).is_some_and(|there| there > at));
            prop_assert_eq!(first.first_newer_in(&second).is_some(), newer);
        }
    }

    #[test]
    fn keys_of_rows_take_few_bytes() {
        let key = |row: u64| [&b"\x01\0\0\0\x07\0\0\0\0\x01"[..], &row.to_be_bytes()].concat();
        let mut run = RunBuilder::new(Version(9));
        for row in 0..100_000 {
            run.push(&key(row), Version(9));
        }
        let run = run.finish();
        assert!(run.size_bytes() < 7 * 100_000, "{} bytes", run.size_bytes());
        assert_eq!(run.find(&key(77_777)), Some(Version(9)));
        assert_eq!(run.moved_to(Version(12)).find(&key(0)), Some(Version(12)));
        assert_eq!(run.find(&key(100_000)), None);
    }

    #[test]
    #[should_panic(expected = "the keys of a run ascend")]
    fn keys_out_of_order_are_refused() {
        KeyRun::pack(Version(1), [(&b"b"[..], Version(1)), (b"a", Version(1))]);
    }
}
