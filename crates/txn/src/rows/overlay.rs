//! What one replica changed, over what was there from the start.

use manxdb_core::check::{deep, ensure};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::{self, Debug, Formatter};
use std::ops::Bound;
use std::sync::Arc;

use manxdb_storage::{Direction, KeyRange};

use super::Base;
use super::key::RowKey;
use crate::model::Page;

/// A key's place in the overlay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// The base's row, or none.
    Unchanged,
    /// Written, or `None` deleted.
    To(Option<Vec<u8>>),
}

type ChangesInOrder<'a> = Box<dyn Iterator<Item = (&'a [u8], Option<&'a [u8]>)> + 'a>;

/// The rows of one replica.
#[derive(Clone)]
pub struct Rows {
    base: Arc<dyn Base>,
    /// `None` hides a row of the base.
    changed: BTreeMap<RowKey, Option<Vec<u8>>>,
    digest: u64,
}

impl Debug for Rows {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Rows");
        shown.field("changed", &self.changed.len());
        shown.field("digest", &self.digest);
        shown.finish_non_exhaustive()
    }
}

impl Rows {
    /// The rows of `base`.
    #[must_use]
    pub fn new(base: Arc<dyn Base>) -> Self {
        Self {
            base,
            changed: BTreeMap::new(),
            digest: 0,
        }
    }

    /// What holds between any two changes.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub fn check(&self) -> Result<(), String> {
        let digests = self.changes().map(|(key, value)| digest_of(key, value));
        let digest = digests.fold(0, u64::wrapping_add);
        ensure(digest == self.digest, || {
            format!(
                "the digest is {} of {} changes",
                self.digest,
                self.changed.len()
            )
        })?;
        let is_hidden = |key: &[u8]| self.base.get(key).is_some();
        let mut deleted = self.changes().filter(|(_, value)| value.is_none());
        // Else replicas with equal rows would have unequal digests.
        ensure(deleted.all(|(key, _)| is_hidden(key)), || {
            "a row that was never there is deleted".to_owned()
        })
    }

    /// Forgets all changes.
    pub fn clear(&mut self) {
        self.changed.clear();
        self.digest = 0;
    }

    /// The value of `key`.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        match self.changed.get(&RowKey::new(key)) {
            Some(value) => value.clone(),
            None => self.base.get(key),
        }
    }

    /// Up to `limit` rows of `range`.
    #[must_use]
    pub fn scan(&self, range: &KeyRange, direction: Direction, limit: usize) -> Page {
        let mut page = Page::new();
        if range.is_empty() {
            return page;
        }
        let changed = self.changed_in(range, direction);
        let mut changed = changed.peekable();
        let mut base = BasePages::new(&*self.base, range, direction, limit);
        while page.len() < limit {
            let take_changed = match (changed.peek(), base.peek()) {
                (None, None) => break,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (Some((new, _)), Some((old, _))) => {
                    if *new == old.as_slice() {
                        base.skip();
                        continue;
                    }
                    (direction == Direction::Forward) == (*new < old.as_slice())
                }
            };
            if !take_changed {
                page.extend(base.take());
            } else if let Some((key, Some(value))) = changed.next() {
                page.push((key.to_vec(), value.to_vec()));
            }
        }
        assert!(page.len() <= limit, "a page is no longer than it may be");
        if deep() {
            let is_in_order = |pair: &[(Vec<u8>, Vec<u8>)]| {
                pair[0].0 != pair[1].0
                    && (pair[0].0 < pair[1].0) == (direction == Direction::Forward)
            };
            assert!(
                page.windows(2).all(is_in_order),
                "rows come in order, each once"
            );
        }
        page
    }

    fn changed_in<'a>(&'a self, range: &KeyRange, direction: Direction) -> ChangesInOrder<'a> {
        let bound = |bound: &Bound<Vec<u8>>| bound.as_ref().map(|key| RowKey::new(key));
        let bounds = (bound(&range.start), bound(&range.end));
        let changed = self.changed.range(bounds);
        let changed = changed.map(|(key, value)| (key.as_slice(), value.as_deref()));
        match direction {
            Direction::Forward => Box::new(changed),
            Direction::Reverse => Box::new(changed.rev()),
        }
    }

    /// Writes (`Some`) or deletes (`None`) a row.
    pub fn write(&mut self, key: impl AsRef<[u8]>, value: Option<Vec<u8>>) {
        self.change(RowKey::new(key.as_ref()), value);
    }

    /// As [`Rows::write`]; what was changed at the key before.
    pub(super) fn change(&mut self, key: RowKey, value: Option<Vec<u8>>) -> Change {
        if value.is_none() && self.base.get(key.as_slice()).is_none() {
            return self.forget(&key);
        }
        let added = digest_of(key.as_slice(), value.as_deref());
        self.digest = self.digest.wrapping_add(added);
        match self.changed.entry(key) {
            Entry::Vacant(place) => {
                place.insert(value);
                Change::Unchanged
            }
            Entry::Occupied(mut place) => {
                let old = place.insert(value);
                let removed = digest_of(place.key().as_slice(), old.as_deref());
                self.digest = self.digest.wrapping_sub(removed);
                Change::To(old)
            }
        }
    }

    fn forget(&mut self, key: &RowKey) -> Change {
        let Some(old) = self.changed.remove(key) else {
            return Change::Unchanged;
        };
        let removed = digest_of(key.as_slice(), old.as_deref());
        self.digest = self.digest.wrapping_sub(removed);
        Change::To(old)
    }

    /// Takes back a change of `key`: `before` is what [`Rows::change`] said.
    pub(super) fn restore(&mut self, key: RowKey, before: Change) {
        self.forget(&key);
        if let Change::To(value) = before {
            let added = digest_of(key.as_slice(), value.as_deref());
            self.digest = self.digest.wrapping_add(added);
            self.changed.insert(key, value);
        }
    }

    /// All that differs from the base, in key order: with the base, the whole state, for handing
    /// it to another replica by [`Rows::write`].
    pub fn changes(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let changed = self.changed.iter();
        changed.map(|(key, value)| (key.as_slice(), value.as_deref()))
    }

    /// A number that is equal for replicas that hold the same changes over the same base,
    /// in whatever order they were written.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.digest
    }
}

/// The base's rows of a range, asked for in pages: rows that are hidden count for no limit.
struct BasePages<'a> {
    base: &'a dyn Base,
    range: KeyRange,
    direction: Direction,
    limit: usize,
    page: std::vec::IntoIter<(Vec<u8>, Vec<u8>)>,
    next: Option<(Vec<u8>, Vec<u8>)>,
    is_at_end: bool,
}

impl<'a> BasePages<'a> {
    fn new(base: &'a dyn Base, range: &KeyRange, direction: Direction, limit: usize) -> Self {
        Self {
            base,
            range: range.clone(),
            direction,
            limit: limit.clamp(1, 1_000),
            page: Page::new().into_iter(),
            next: None,
            is_at_end: false,
        }
    }

    fn peek(&mut self) -> Option<&(Vec<u8>, Vec<u8>)> {
        if self.next.is_none() {
            self.next = self.page.next();
        }
        if self.next.is_none() && !self.is_at_end {
            let page = self.base.scan(&self.range, self.direction, self.limit);
            assert!(
                page.len() <= self.limit,
                "the rows below give no more than they were asked for"
            );
            self.is_at_end = page.len() < self.limit;
            if let Some((last, _)) = page.last() {
                let beyond = Bound::Excluded(last.clone());
                match self.direction {
                    Direction::Forward => self.range.start = beyond,
                    Direction::Reverse => self.range.end = beyond,
                }
            }
            self.is_at_end |= self.range.is_empty();
            self.page = page.into_iter();
            self.next = self.page.next();
        }
        self.next.as_ref()
    }

    fn skip(&mut self) {
        self.next = None;
    }

    fn take(&mut self) -> Option<(Vec<u8>, Vec<u8>)> {
        self.next.take()
    }
}

/// A hash of one row, eight bytes at a time: it is taken twice at each write. Deleted and empty
/// differ.
fn digest_of(key: &[u8], value: Option<&[u8]>) -> u64 {
    let state = absorb(0x51_7C_C1_B7_27_22_0A_95, key);
    let state = match value {
        Some(value) => absorb(state ^ 1, value),
        None => state,
    };
    mix(state)
}

fn absorb(mut state: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        state = mix(state ^ u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    // The length tells "a" from "a\0", and the end of a key from the start of its value.
    state = mix(state ^ u64::from_le_bytes(last));
    mix(state ^ bytes.len() as u64)
}

fn mix(state: u64) -> u64 {
    let product = u128::from(state ^ 0x9E37_79B9_7F4A_7C15) * 0xD6E8_FEB8_6659_FD93;
    #[allow(clippy::cast_possible_truncation)] // both halves are wanted
    let halves = (product as u64, (product >> 64) as u64);
    halves.0 ^ halves.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Oracle: a base and an overlay that are plain maps.
    struct Map(BTreeMap<Vec<u8>, Vec<u8>>);

    impl Base for Map {
        fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
            self.0.get(key).cloned()
        }

        fn scan(&self, range: &KeyRange, direction: Direction, limit: usize) -> Page {
            let inside = self.0.iter().filter(|(key, _)| range.contains(key));
            let rows = inside.map(|(key, value)| (key.clone(), value.clone()));
            match direction {
                Direction::Forward => rows.take(limit).collect(),
                Direction::Reverse => rows.rev().take(limit).collect(),
            }
        }
    }

    #[test]
    fn a_digest_of_other_rows_and_a_delete_of_none_are_found_out() {
        let mut rows = Rows::new(Arc::new(Map(BTreeMap::from([(vec![1], vec![1])]))));
        rows.write([1], None);
        rows.write([2], Some(vec![2]));
        assert_eq!(rows.check(), Ok(()));
        rows.digest += 1;
        assert!(rows.check().unwrap_err().contains("of 2 changes"));
        rows.digest = digest_of(&[3], None);
        rows.changed = BTreeMap::from([(RowKey::new(&[3]), None)]);
        assert!(rows.check().unwrap_err().contains("never there"));
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(0_u8..4, 1..3)
    }

    fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
        prop_oneof![
            key().prop_map(Bound::Included),
            key().prop_map(Bound::Excluded),
            Just(Bound::Unbounded),
        ]
    }

    type Written = Vec<(Vec<u8>, Option<Vec<u8>>)>;

    fn rows_and_oracle(base: &[Vec<u8>], written: &Written) -> (Rows, Map) {
        let initial: BTreeMap<_, _> = base.iter().map(|key| (key.clone(), vec![9])).collect();
        let mut rows = Rows::new(Arc::new(Map(initial.clone())));
        let mut oracle = Map(initial);
        for (key, value) in written {
            rows.write(key, value.clone());
            match value {
                Some(value) => oracle.0.insert(key.clone(), value.clone()),
                None => oracle.0.remove(key),
            };
        }
        (rows, oracle)
    }

    proptest! {
        #[test]
        fn reads_are_those_of_a_map(
            base in prop::collection::vec(key(), 0..12),
            written in prop::collection::vec((key(), prop::option::of(key())), 0..12),
            probe in key(),
            (start, end) in (bound(), bound()),
            limit in 0_usize..6,
        ) {
            let (rows, oracle) = rows_and_oracle(&base, &written);
            prop_assert_eq!(rows.get(&probe), oracle.get(&probe));
            let range = KeyRange { start, end };
            for direction in [Direction::Forward, Direction::Reverse] {
                let expected = oracle.scan(&range, direction, limit);
                prop_assert_eq!(rows.scan(&range, direction, limit), expected);
            }
        }

        #[test]
        fn digests_depend_on_what_was_changed_and_not_on_the_order(
            base in prop::collection::vec(key(), 0..6),
            written in prop::collection::vec((key(), prop::option::of(key())), 0..12),
            other in (key(), prop::option::of(key())),
        ) {
            let (rows, _) = rows_and_oracle(&base, &written);
            let (mut copy, _) = rows_and_oracle(&base, &Written::new());
            for (key, value) in rows.changes().collect::<Vec<_>>().into_iter().rev() {
                copy.write(key, value.map(<[u8]>::to_vec));
            }
            prop_assert_eq!(copy.digest(), rows.digest());
            let key = RowKey::new(&other.0);
            let before = copy.change(key.clone(), other.1);
            let is_same = copy.changes().eq(rows.changes());
            prop_assert_eq!(copy.digest() == rows.digest(), is_same);
            copy.restore(key, before);
            prop_assert_eq!(copy.digest(), rows.digest());
            prop_assert!(copy.changes().eq(rows.changes()));
        }
    }
}
