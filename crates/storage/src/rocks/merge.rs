//! A walk over all layers at once: memtables in front of the sorted files.

use rocksdb::DB;

use super::cursor::RocksCursor;
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
            Self::Files(cursor) => cursor.advance(),
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
            Self::Files(cursor) => Some(cursor.value()),
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

/// A [`Cursor`] over every layer; of a key in several the newest layer decides.
pub struct MergedCursor<'a> {
    /// Newest first.
    layers: Vec<(Head, Layer<'a>)>,
    direction: Direction,
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
                    Direction::Reverse => order.map(std::cmp::Ordering::reverse),
                };
                match order {
                    // Hidden by a newer layer.
                    Some(std::cmp::Ordering::Equal) => *head = Head::Spent,
                    Some(std::cmp::Ordering::Greater) => break,
                    None | Some(std::cmp::Ordering::Less) => {
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
                return Ok(None);
            };
            let head = std::mem::replace(&mut self.layers[first].0, Head::Spent);
            assert_eq!(head, Head::Ready, "a layer comes first with a key");
            if self.layers[first].1.value().is_some() {
                break first;
            }
        };
        let (_, layer) = &self.layers[found];
        Ok(layer.value().map(|value| CursorEntry {
            key: layer.key(),
            version: layer.version(),
            value,
        }))
    }
}
