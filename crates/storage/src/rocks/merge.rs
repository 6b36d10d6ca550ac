//! A walk over all layers at once: memtables in front of the sorted files.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::atomic;

use manxdb_core::check::deep;
use rocksdb::DB;

use super::cursor::RocksCursor;
use super::empty_ranges::{DELETES_MIN, EmptyRanges, Look};
use super::store::Layers;
use crate::engine::{Cursor, CursorEntry};
use crate::error::StorageError;
use crate::memtable::MemtableCursor;
use crate::model::{Direction, KeyRange, Version};
use crate::physical;

/// Where a layer's cursor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Head {
    /// On a key that was dealt with.
    Spent,
    /// On the next key of its layer.
    Ready,
    /// Behind the last key.
    End,
}

/// The sorted files or a memtable.
enum Layer<'a> {
    Memtable(MemtableCursor),
    Files(RocksCursor<'a>),
}

impl Layer<'_> {
    fn advance(&mut self) -> Result<bool, StorageError> {
        match self {
            Self::Memtable(cursor) => Ok(cursor.advance()),
            Self::Files(cursor) => cursor.advance_to_any(),
        }
    }

    fn key(&self) -> &[u8] {
        match self {
            Self::Memtable(cursor) => cursor.key(),
            Self::Files(cursor) => cursor.key(),
        }
    }

    fn version(&self) -> Version {
        match self {
            Self::Memtable(cursor) => cursor.version(),
            Self::Files(cursor) => cursor.version(),
        }
    }

    /// `None` for a delete.
    fn value(&self) -> Option<&[u8]> {
        match self {
            Self::Memtable(cursor) => cursor.value(),
            Self::Files(cursor) => (!cursor.is_delete()).then(|| cursor.value()),
        }
    }

    /// The first key since [`Layer::go_to`] that has a version newer than the one read at, or one
    /// before it.
    fn first_newer(&self) -> Option<&[u8]> {
        match self {
            Self::Memtable(cursor) => cursor.first_newer(),
            Self::Files(cursor) => cursor.first_newer(),
        }
    }

    fn go_to(&mut self, range: &KeyRange) {
        match self {
            Self::Memtable(cursor) => cursor.go_to(range),
            Self::Files(cursor) => {
                let (lower, upper) = physical::bounds(range);
                cursor.go_to(&lower, upper);
            }
        }
    }
}

/// What a cursor knows of the deletes it steps over.
struct Deletes<'a> {
    ranges: &'a EmptyRanges,
    at: Version,
    /// Where the cursor's range ends.
    end: Bound<Vec<u8>>,
    /// Memtables begun when the layers were listed.
    memtables: u64,
    look: Option<Look<'a>>,
    /// Deletes in a row, and those of them since the look began.
    count: usize,
    looked_at: usize,
    /// The first key since then that has a version newer than the one read at.
    newer: Option<Vec<u8>>,
}

impl Deletes<'_> {
    /// One more, `key`; where the cursor is to go on, if not at the next key.
    fn step(&mut self, key: &[u8], is_forward: bool) -> Option<Vec<u8>> {
        self.count += 1;
        self.looked_at += 1;
        if !is_forward || !self.count.is_multiple_of(DELETES_MIN) {
            return None;
        }
        if self.look.is_some() {
            return self.ranges.end_of(key, self.at);
        }
        let look = self.ranges.look(key, self.at, self.memtables)?;
        let from = look.from().to_vec();
        assert!(key < from.as_slice(), "a jump goes ahead");
        self.look = Some(look);
        self.looked_at = 0;
        self.newer = None;
        Some(from)
    }

    /// Minds that `newer` has a version newer than the one read at.
    fn mind(&mut self, newer: &[u8]) {
        if self.newer.as_deref().is_none_or(|known| newer < known) {
            self.newer = Some(newer.to_vec());
        }
    }

    /// The next live key is `key`, or the range has none.
    fn end(&mut self, key: Option<&[u8]>) {
        let passed = &self.ranges.deletes_passed;
        let count = std::mem::take(&mut self.count) as u64;
        passed.fetch_add(count, atomic::Ordering::Relaxed);
        let newer = self.newer.take();
        let Some(look) = self.look.take().filter(|_| self.looked_at >= DELETES_MIN) else {
            return;
        };
        assert!(
            self.looked_at as u64 <= count,
            "deletes since a look are some of those in a row: {} of {count}",
            self.looked_at
        );
        let behind;
        let end: &[u8] = match (key, &self.end) {
            (Some(key), _) => key,
            (None, Bound::Excluded(end)) => end,
            (None, Bound::Included(end)) => {
                behind = [end.as_slice(), &[0]].concat();
                &behind
            }
            (None, Bound::Unbounded) => return,
        };
        let end = newer.as_deref().map_or(end, |newer| newer.min(end));
        look.found(end, self.at);
    }
}

/// A [`Cursor`] over every layer; of a key in several the newest layer decides.
pub struct MergedCursor<'a> {
    /// Newest first.
    layers: Vec<(Head, Layer<'a>)>,
    direction: Direction,
    /// Where ranges without live keys are noted, if they are.
    deletes: Option<Deletes<'a>>,
    /// The last key that was met, where the order of keys is checked.
    last: Option<Vec<u8>>,
}

impl<'a> MergedCursor<'a> {
    /// A cursor at the start of `range`, or at its end when it walks in reverse. `layers` were
    /// listed before this call.
    pub fn new(
        db: &'a DB,
        layers: &Layers,
        range: &KeyRange,
        at: Version,
        direction: Direction,
    ) -> Self {
        let mut cursor = Self {
            layers: Vec::new(),
            direction,
            deletes: None,
            last: None,
        };
        if range.is_empty() {
            return cursor;
        }
        for memtable in layers.memtables() {
            if memtable.has_any(range) {
                let keys = MemtableCursor::new(memtable, range, at, direction);
                cursor.layers.push((Head::Spent, Layer::Memtable(keys)));
            }
        }
        if layers.has_files
            && let Some(rows) = RocksCursor::new(db, range, at, direction)
        {
            cursor.layers.push((Head::Spent, Layer::Files(rows)));
        }
        cursor
    }

    /// Jumps over ranges noted in `ranges`, and notes others; `range`, `at` and the layers are the
    /// cursor's own, and `memtables` were begun before the layers were listed.
    pub fn noting(
        mut self,
        ranges: &'a EmptyRanges,
        memtables: u64,
        range: &KeyRange,
        at: Version,
    ) -> Self {
        self.deletes = Some(Deletes {
            ranges,
            at,
            end: range.end.clone(),
            memtables,
            look: None,
            count: 0,
            looked_at: 0,
            newer: None,
        });
        self
    }

    /// Goes on with `range`, which lies in the cursor's own behind everything read so far.
    /// Ascending only.
    pub fn go_to(&mut self, range: &KeyRange) {
        assert_eq!(
            self.direction,
            Direction::Forward,
            "a walk back goes through one range"
        );
        let is_empty = range.is_empty();
        for (head, layer) in &mut self.layers {
            if is_empty {
                *head = Head::End;
            } else {
                layer.go_to(range);
                *head = Head::Spent;
            }
        }
    }

    /// Steps over the delete that the layer `first` stands on.
    fn step_over(&mut self, first: usize) {
        let is_forward = self.direction == Direction::Forward;
        let Some(deletes) = &mut self.deletes else {
            return;
        };
        let was_looking = deletes.look.is_some();
        let Some(from) = deletes.step(self.layers[first].1.key(), is_forward) else {
            return;
        };
        let end = deletes.end.clone();
        if was_looking {
            self.mind_newer();
        }
        self.jump(&KeyRange {
            start: Bound::Included(from),
            end,
        });
    }

    /// Keeps what the layers say of newer versions, which they forget when they are asked anew.
    fn mind_newer(&mut self) {
        let Some(deletes) = self.deletes.as_mut().filter(|it| it.look.is_some()) else {
            return;
        };
        for newer in self.layers.iter().filter_map(|(_, it)| it.first_newer()) {
            deletes.mind(newer);
        }
    }

    /// Asks all layers anew for what is left of the cursor's range. What the files have read ahead
    /// stays: they do not change.
    fn jump(&mut self, rest: &KeyRange) {
        let is_empty = rest.is_empty();
        for (head, layer) in &mut self.layers {
            let is_ahead = match layer {
                Layer::Memtable(_) => false,
                Layer::Files(_) if *head == Head::End => true,
                Layer::Files(rows) => *head == Head::Ready && rest.contains(rows.key()),
            };
            if is_empty {
                *head = Head::End;
            } else if !is_ahead {
                layer.go_to(rest);
                *head = Head::Spent;
            }
        }
    }

    /// Each key comes once, in order, however often a walk has jumped.
    fn assert_ahead(&mut self, found: usize) {
        let key = self.layers[found].1.key();
        let order = self.last.as_deref().map(|last| last.cmp(key));
        let ahead = match self.direction {
            Direction::Forward => Ordering::Less,
            Direction::Reverse => Ordering::Greater,
        };
        assert!(
            order.is_none_or(|order| order == ahead),
            "a scan meets each key once, in order"
        );
        self.last = Some(key.to_vec());
    }

    /// The next live key is that of the layer `found`; none is left without one.
    fn end_of_deletes(&mut self, found: Option<usize>) {
        if self.deletes.as_ref().is_none_or(|it| it.count == 0) {
            return;
        }
        self.mind_newer();
        let key = found.map(|found| self.layers[found].1.key());
        if let Some(deletes) = &mut self.deletes {
            deletes.end(key);
        }
    }

    /// Moves every layer to its next key, and finds the layer whose key comes first: of several on
    /// the same key the newest, and the others are done with it.
    fn first(&mut self) -> Result<Option<usize>, StorageError> {
        let mut first: Option<usize> = None;
        for place in 0..self.layers.len() {
            let (before, rest) = self.layers.split_at_mut(place);
            let Some((head, layer)) = rest.first_mut() else {
                break;
            };
            loop {
                if *head == Head::Spent {
                    *head = if layer.advance()? {
                        Head::Ready
                    } else {
                        Head::End
                    };
                }
                if *head == Head::End {
                    break;
                }
                let best = first.and_then(|first| before.get(first));
                let order = best.map(|(_, best)| layer.key().cmp(best.key()));
                let order = match self.direction {
                    Direction::Forward => order,
                    Direction::Reverse => order.map(Ordering::reverse),
                };
                match order {
                    // Hidden by a newer layer.
                    Some(Ordering::Equal) => *head = Head::Spent,
                    Some(Ordering::Greater) => break,
                    None | Some(Ordering::Less) => {
                        first = Some(place);
                        break;
                    }
                }
            }
        }
        Ok(first)
    }
}

impl Cursor for MergedCursor<'_> {
    fn next(&mut self) -> Result<Option<CursorEntry<'_>>, StorageError> {
        let found = loop {
            let Some(first) = self.first()? else {
                self.end_of_deletes(None);
                return Ok(None);
            };
            let head = std::mem::replace(&mut self.layers[first].0, Head::Spent);
            assert_eq!(head, Head::Ready, "a layer comes first with a key");
            if self.layers[first].1.value().is_some() {
                break first;
            }
            self.step_over(first);
        };
        self.end_of_deletes(Some(found));
        if deep() {
            self.assert_ahead(found);
        }
        let (_, layer) = &self.layers[found];
        Ok(layer.value().map(|value| CursorEntry {
            key: layer.key(),
            version: layer.version(),
            value,
        }))
    }
}
