//! Sorted writes, packed: each key without the bytes that it shares with the one before.
//!
//! ```text
//! entry   shared varint · rest length varint · rest · kind varint · value
//! kind    0 nothing is written here, 1 a deletion, n + 2 a value of n bytes
//! block   BLOCK_ENTRIES entries, of which the first shares nothing: a search reads one block
//! chunk   blocks of CHUNK_BYTES together: what is merged is let go of chunk by chunk
//! ```

use std::cmp::Ordering;
use std::ops::{Bound, Range};

use manxdb_core::check::deep;
use manxdb_storage::{Direction, KeyRange, SortedWrites};

use super::run::{as_length, get_number, put_number, shared_bytes};

/// Entries of a block.
const BLOCK_ENTRIES: usize = 16;

/// Bytes after which a chunk gets no further entry.
const CHUNK_BYTES: usize = 64 << 10;

const NOTHING: u64 = 0;
const DELETED: u64 = 1;
/// Kind of a value without bytes.
const VALUE: u64 = 2;

/// What a run says of one of its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held<'a> {
    /// Whatever older runs say, nothing is written here: it was undone.
    Nothing,
    /// A value, or `None` a deletion.
    Write(Option<&'a [u8]>),
}

/// Keys in ascending order, each with what is written there.
#[derive(Debug, Default)]
pub(crate) struct WriteRun {
    chunks: Vec<Chunk>,
    len: usize,
}

#[derive(Debug)]
struct Chunk {
    bytes: Box<[u8]>,
    /// Where each block begins.
    blocks: Box<[usize]>,
    last: Box<[u8]>,
}

/// Packs writes that come by ascending key.
#[derive(Default)]
pub(crate) struct WriteRunBuilder {
    run: WriteRun,
    bytes: Vec<u8>,
    blocks: Vec<usize>,
    /// Entries of the chunk.
    entries: usize,
    last: Vec<u8>,
}

impl WriteRunBuilder {
    /// Adds a key behind all others.
    pub(crate) fn push(&mut self, key: &[u8], held: Held<'_>) {
        assert!(
            self.run.len == 0 || self.last.as_slice() < key,
            "the keys of a run ascend"
        );
        let shared = if self.entries.is_multiple_of(BLOCK_ENTRIES) {
            self.blocks.push(self.bytes.len());
            0
        } else {
            shared_bytes(&self.last, key)
        };
        put_number(&mut self.bytes, shared as u64);
        put_number(&mut self.bytes, (key.len() - shared) as u64);
        self.bytes.extend_from_slice(&key[shared..]);
        let (kind, value) = match held {
            Held::Nothing => (NOTHING, &[][..]),
            Held::Write(None) => (DELETED, &[][..]),
            Held::Write(Some(value)) => (VALUE + value.len() as u64, value),
        };
        put_number(&mut self.bytes, kind);
        self.bytes.extend_from_slice(value);
        self.last.truncate(shared);
        self.last.extend_from_slice(&key[shared..]);
        self.entries += 1;
        self.run.len += 1;
        if self.bytes.len() >= CHUNK_BYTES {
            self.end_chunk();
        }
    }

    fn end_chunk(&mut self) {
        if self.entries == 0 {
            return;
        }
        assert_eq!(
            self.blocks.len(),
            self.entries.div_ceil(BLOCK_ENTRIES),
            "each block but the last is full"
        );
        self.run.chunks.push(Chunk {
            bytes: std::mem::take(&mut self.bytes).into_boxed_slice(),
            blocks: std::mem::take(&mut self.blocks).into_boxed_slice(),
            last: self.last.as_slice().into(),
        });
        self.entries = 0;
    }

    pub(crate) fn finish(mut self) -> WriteRun {
        self.end_chunk();
        if deep() {
            let mut count = 0;
            self.run.each_held(&mut |_, _| count += 1);
            assert_eq!(count, self.run.len, "each write that is packed is read");
        }
        self.run
    }
}

impl WriteRun {
    /// Keys, those at which nothing is written counted too.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes it takes.
    pub(crate) fn size_bytes(&self) -> usize {
        let chunk_bytes = |chunk: &Chunk| {
            let blocks = chunk.blocks.len() * size_of::<usize>();
            size_of::<Chunk>() + chunk.bytes.len() + blocks + chunk.last.len()
        };
        self.chunks.iter().map(chunk_bytes).sum()
    }

    /// Whether all keys come before those of `other`.
    pub(crate) fn ends_before(&self, other: &Self) -> bool {
        match (self.chunks.last(), other.chunks.first()) {
            (Some(last), Some(first)) => *last.last < *first.first_key(0),
            _ => true,
        }
    }

    /// What stands at `key`; `None` when it is none of the keys.
    pub(crate) fn find(&self, key: &[u8]) -> Option<Held<'_>> {
        let chunk = self
            .chunks
            .get(self.chunks.partition_point(|chunk| *chunk.last < *key))?;
        let block = chunk.blocks_through(Bound::Included(key)).checked_sub(1)?;
        let mut place = Place::at(chunk, block);
        loop {
            match place.key.as_slice().cmp(key) {
                Ordering::Less if place.advance(chunk) => {}
                Ordering::Equal => return Some(place.held(chunk)),
                Ordering::Less | Ordering::Greater => return None,
            }
        }
    }

    /// The first key of `range` in `direction`, and what stands there.
    pub(crate) fn first_in(
        &self,
        range: &KeyRange,
        direction: Direction,
    ) -> Option<(Vec<u8>, Held<'_>)> {
        let (chunk, place) = match direction {
            Direction::Forward => self.first_behind(&range.start)?,
            Direction::Reverse => self.last_before(&range.end)?,
        };
        let held = place.held(chunk);
        range.contains(&place.key).then_some((place.key, held))
    }

    /// The first key that is not before `start`.
    fn first_behind(&self, start: &Bound<Vec<u8>>) -> Option<(&Chunk, Place)> {
        let is_before = |key: &[u8]| match start {
            Bound::Unbounded => false,
            Bound::Included(start) => key < start.as_slice(),
            Bound::Excluded(start) => key <= start.as_slice(),
        };
        let chunk = self
            .chunks
            .get(self.chunks.partition_point(|chunk| is_before(&chunk.last)))?;
        let blocks = chunk.blocks.len();
        let before = partition_point(blocks, |block| is_before(chunk.first_key(block)));
        let mut place = Place::at(chunk, before.saturating_sub(1));
        while is_before(&place.key) {
            let is_there = place.advance(chunk);
            assert!(is_there, "a chunk ends with its last key");
        }
        Some((chunk, place))
    }

    /// The last key that is not behind `end`.
    fn last_before(&self, end: &Bound<Vec<u8>>) -> Option<(&Chunk, Place)> {
        let end = end.as_ref().map(Vec::as_slice);
        let is_inside = |key: &[u8]| match end {
            Bound::Unbounded => true,
            Bound::Included(end) => key <= end,
            Bound::Excluded(end) => key < end,
        };
        let begun = self
            .chunks
            .partition_point(|chunk| is_inside(chunk.first_key(0)));
        let chunk = self.chunks.get(begun.checked_sub(1)?)?;
        let mut next = Place::at(chunk, chunk.blocks_through(end).checked_sub(1)?);
        let mut last = next.clone();
        while next.advance(chunk) && is_inside(&next.key) {
            last.clone_from(&next);
        }
        assert!(
            is_inside(&last.key),
            "a block that begins before an end has a key there"
        );
        Some((chunk, last))
    }

    /// Shows all keys and what stands there.
    pub(crate) fn each_held(&self, visit: &mut dyn FnMut(&[u8], Held<'_>)) {
        for chunk in &self.chunks {
            let mut place = Place::at(chunk, 0);
            loop {
                visit(&place.key, place.held(chunk));
                if !place.advance(chunk) {
                    break;
                }
            }
        }
    }

    /// The keys of both; of a key that both have, what `newer` says. Without `keeps_nothing` those
    /// where nothing is written go: there is no older run. What is merged is let go of on the way.
    pub(crate) fn merge(self, newer: Self, keeps_nothing: bool) -> Self {
        let (mut older, mut newer) = (Taken::new(self), Taken::new(newer));
        let mut merged = WriteRunBuilder::default();
        loop {
            let order = match (older.key(), newer.key()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(old), Some(new)) => old.cmp(new),
            };
            let from = if order == Ordering::Less {
                &older
            } else {
                &newer
            };
            if let Some((key, held)) = from.entry()
                && (keeps_nothing || held != Held::Nothing)
            {
                merged.push(key, held);
            }
            if order != Ordering::Greater {
                older.advance();
            }
            if order != Ordering::Less {
                newer.advance();
            }
        }
        merged.finish()
    }

    /// The keys of both, without looking at them: those of `behind` come behind all others.
    pub(crate) fn join(mut self, behind: Self) -> Self {
        assert!(self.ends_before(&behind), "the keys of a run ascend");
        self.len += behind.len;
        self.chunks.extend(behind.chunks);
        self
    }
}

impl SortedWrites for WriteRun {
    fn len(&self) -> usize {
        self.len
    }

    fn each(&self, visit: &mut dyn FnMut(&[u8], Option<&[u8]>)) {
        self.each_held(&mut |key, held| {
            assert!(held != Held::Nothing, "what is committed is written");
            if let Held::Write(write) = held {
                visit(key, write);
            }
        });
    }
}

impl Chunk {
    /// The key that a block begins with.
    fn first_key(&self, block: usize) -> &[u8] {
        let mut at = self.blocks[block];
        let shared = get_number(&self.bytes, &mut at);
        assert_eq!(shared, 0, "a block begins with a whole key");
        let length = as_length(get_number(&self.bytes, &mut at));
        &self.bytes[at..at + length]
    }

    /// Blocks that begin with a key not behind `end`.
    fn blocks_through(&self, end: Bound<&[u8]>) -> usize {
        partition_point(self.blocks.len(), |block| match end {
            Bound::Unbounded => true,
            Bound::Included(end) => self.first_key(block) <= end,
            Bound::Excluded(end) => self.first_key(block) < end,
        })
    }
}

/// How many of the first numbers below `count` are `inside`, as those before one that is are.
fn partition_point(count: usize, inside: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if inside(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// An entry of a chunk.
#[derive(Debug, Clone, Default)]
struct Place {
    key: Vec<u8>,
    /// `None`: nothing is written.
    value: Option<Range<usize>>,
    is_deletion: bool,
    /// Where the next entry begins.
    next: usize,
}

impl Place {
    fn at(chunk: &Chunk, block: usize) -> Self {
        let mut place = Self {
            next: chunk.blocks[block],
            ..Self::default()
        };
        let is_there = place.advance(chunk);
        assert!(is_there, "a block has an entry");
        place
    }

    /// Goes to the next entry; false behind the last.
    fn advance(&mut self, chunk: &Chunk) -> bool {
        let bytes = &*chunk.bytes;
        if self.next >= bytes.len() {
            return false;
        }
        let shared = as_length(get_number(bytes, &mut self.next));
        let rest = as_length(get_number(bytes, &mut self.next));
        assert!(
            shared <= self.key.len(),
            "a key shares no more than the one before it has"
        );
        self.key.truncate(shared);
        self.key
            .extend_from_slice(&bytes[self.next..self.next + rest]);
        self.next += rest;
        let kind = get_number(bytes, &mut self.next);
        let length = as_length(kind.saturating_sub(VALUE));
        self.is_deletion = kind == DELETED;
        self.value = (kind >= VALUE).then_some(self.next..self.next + length);
        self.next += length;
        assert!(self.next <= bytes.len(), "a value ends in its chunk");
        true
    }

    fn held<'a>(&self, chunk: &'a Chunk) -> Held<'a> {
        match &self.value {
            Some(value) => Held::Write(Some(&chunk.bytes[value.clone()])),
            None if self.is_deletion => Held::Write(None),
            None => Held::Nothing,
        }
    }
}

/// A run that is walked over once.
struct Taken {
    rest: std::vec::IntoIter<Chunk>,
    chunk: Option<Chunk>,
    place: Place,
}

impl Taken {
    fn new(run: WriteRun) -> Self {
        let mut taken = Self {
            rest: run.chunks.into_iter(),
            chunk: None,
            place: Place::default(),
        };
        taken.next_chunk();
        taken
    }

    fn next_chunk(&mut self) {
        self.chunk = self.rest.next();
        if let Some(chunk) = &self.chunk {
            self.place = Place::at(chunk, 0);
        }
    }

    fn key(&self) -> Option<&[u8]> {
        self.chunk.as_ref().map(|_| self.place.key.as_slice())
    }

    fn entry(&self) -> Option<(&[u8], Held<'_>)> {
        let chunk = self.chunk.as_ref()?;
        Some((&self.place.key, self.place.held(chunk)))
    }

    fn advance(&mut self) {
        if let Some(chunk) = &self.chunk
            && !self.place.advance(chunk)
        {
            self.next_chunk();
        }
    }
}

#[cfg(test)]
mod tests;
