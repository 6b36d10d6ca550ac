//! What each write of a transaction replaced, so that it can be undone.
//!
//! The last entries stand one behind the other in one vector, for a large transaction the ones
//! before in packed parts, in which a key is held without what it shares with one of the last four:
//! a row and its index entries are written in turn.
//!
//! ```text
//! tail    key · replaced value · key length (4 bytes) · value length (4) · kind (1)
//! packed  (4 × shared + which) varint · rest length varint · rest · kind varint · value length varint · value
//! ```

use std::collections::VecDeque;

use crate::keys::{get_number, length_of, put_number, shared_bytes};

/// Bytes of the tail at which its older half is packed. What is undone and written again in turn
/// stays in the other half.
const TAIL_BYTES_MAX: usize = 128 << 10;

/// Keys before an entry of which it may share the longest beginning.
const BEFORE: usize = 4;

/// Bytes behind the key and value of an entry of the tail.
const TRAILER_BYTES: usize = 9;

/// Nothing was written there before.
const NOTHING: u8 = 0;
/// A deletion was.
const DELETED: u8 = 1;
/// A value was.
const VALUE: u8 = 2;

/// A buffered write; `None` deletes.
pub(super) type Write = Option<Box<[u8]>>;

/// A write that is looked at.
pub(super) type WriteRef<'a> = Option<&'a [u8]>;

/// A key, and what was written there before.
type Replaced = (Box<[u8]>, Option<Write>);

/// What each write replaced, oldest first.
#[derive(Default)]
pub(super) struct UndoLog {
    packed: Vec<Packed>,
    packed_entries: usize,
    tail: Vec<u8>,
    tail_entries: usize,
}

struct Packed {
    bytes: Box<[u8]>,
    entries: usize,
}

impl UndoLog {
    /// Entries so far: a place to undo to.
    pub(super) fn end(&self) -> usize {
        self.packed_entries + self.tail_entries
    }

    /// Bytes it takes, about.
    pub(super) fn size_bytes(&self) -> usize {
        let packed = self.packed.iter();
        let packed = packed.map(|part| size_of::<Packed>() + part.bytes.len());
        packed.sum::<usize>() + self.tail.capacity()
    }

    pub(super) fn push(&mut self, key: &[u8], replaced: Option<WriteRef<'_>>) {
        self.push_to_tail(key, replaced);
        if self.tail.len() >= TAIL_BYTES_MAX && self.tail_entries > 1 {
            self.pack();
        }
    }

    fn push_to_tail(&mut self, key: &[u8], replaced: Option<WriteRef<'_>>) {
        let (kind, value) = parts(replaced);
        self.tail.extend_from_slice(key);
        self.tail.extend_from_slice(value);
        for part in [key, value] {
            // A transaction may write less than that.
            let length = u32::try_from(part.len());
            assert!(length.is_ok(), "a key or value of 4 GiB");
            self.tail
                .extend_from_slice(&length.unwrap_or_default().to_le_bytes());
        }
        self.tail.push(kind);
        self.tail_entries += 1;
    }

    /// The last entry, taken out.
    pub(super) fn pop(&mut self) -> Replaced {
        if self.tail_entries == 0 {
            self.unpack();
        }
        self.pop_tail()
    }

    fn pop_tail(&mut self) -> Replaced {
        assert!(
            self.tail_entries > 0 && self.tail.len() >= TRAILER_BYTES,
            "an entry is taken out that was put in"
        );
        let trailer = self.tail.split_off(self.tail.len() - TRAILER_BYTES);
        let length = |at: usize| {
            let field = [
                trailer[at],
                trailer[at + 1],
                trailer[at + 2],
                trailer[at + 3],
            ];
            u32::from_le_bytes(field) as usize
        };
        let value = self.tail.split_off(self.tail.len() - length(4));
        let key = self.tail.split_off(self.tail.len() - length(0));
        self.tail_entries -= 1;
        (key.into_boxed_slice(), replaced(trailer[8], value))
    }

    /// Packs the older half of the tail.
    fn pack(&mut self) {
        let before = self.end();
        let mut entries = VecDeque::with_capacity(self.tail_entries);
        while self.tail_entries > 0 {
            entries.push_front(self.pop_tail());
        }
        let kept = entries.split_off(entries.len().div_ceil(2));
        let mut bytes = Vec::new();
        for (at, (key, replaced)) in entries.iter().enumerate() {
            let before = entries.range(at.saturating_sub(BEFORE)..at);
            let shares = before.rev().map(|(before, _)| shared_bytes(before, key));
            let best = shares.enumerate().max_by_key(|(_, shared)| *shared);
            let (which, shared) = best.unwrap_or((0, 0));
            put_number(&mut bytes, (BEFORE * shared + which) as u64);
            put_number(&mut bytes, (key.len() - shared) as u64);
            bytes.extend_from_slice(&key[shared..]);
            let (kind, value) = parts(replaced.as_ref().map(Option::as_deref));
            put_number(&mut bytes, u64::from(kind));
            put_number(&mut bytes, value.len() as u64);
            bytes.extend_from_slice(value);
        }
        self.packed_entries += entries.len();
        self.packed.push(Packed {
            bytes: bytes.into_boxed_slice(),
            entries: entries.len(),
        });
        for (key, replaced) in kept {
            self.push_to_tail(&key, replaced.as_ref().map(Option::as_deref));
        }
        assert_eq!(self.end(), before, "packing keeps each entry");
    }

    /// Makes the last packed part the tail.
    fn unpack(&mut self) {
        let Some(part) = self.packed.pop() else {
            return;
        };
        let (bytes, mut at) = (&part.bytes, 0);
        let mut before: VecDeque<Vec<u8>> = VecDeque::with_capacity(BEFORE + 1);
        while at < bytes.len() {
            let sharing = length_of(get_number(bytes, &mut at));
            let rest = length_of(get_number(bytes, &mut at));
            let shared = before.get(sharing % BEFORE).map_or(&[][..], |key| {
                let shared = sharing / BEFORE;
                assert!(
                    shared <= key.len(),
                    "a key shares no more than one before it has"
                );
                &key[..shared]
            });
            let key = [shared, &bytes[at..at + rest]].concat();
            at += rest;
            let kind = get_number(bytes, &mut at);
            let length = length_of(get_number(bytes, &mut at));
            let value = &bytes[at..at + length];
            at += length;
            let kind = u8::try_from(kind).unwrap_or(u8::MAX);
            let replaced = replaced(kind, value.to_vec());
            self.push_to_tail(&key, replaced.as_ref().map(Option::as_deref));
            before.push_front(key);
            before.truncate(BEFORE);
        }
        assert_eq!(
            self.tail_entries, part.entries,
            "each entry that was packed is there again"
        );
        self.packed_entries -= part.entries;
    }
}

/// Kind and value of what was replaced.
fn parts(replaced: Option<WriteRef<'_>>) -> (u8, &[u8]) {
    match replaced {
        None => (NOTHING, &[]),
        Some(None) => (DELETED, &[]),
        Some(Some(value)) => (VALUE, value),
    }
}

/// What [`parts`] took apart.
fn replaced(kind: u8, value: Vec<u8>) -> Option<Write> {
    assert!(kind <= VALUE, "an entry says what it replaced");
    match kind {
        NOTHING => None,
        DELETED => Some(None),
        _ => Some(Some(value.into_boxed_slice())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row's key: table, index, and a number.
    fn key(index: u8, row: u64) -> Vec<u8> {
        let table = [1, 0, 0, 0, 7, 0, 0, 0, index];
        [&table[..], &row.to_be_bytes()].concat()
    }

    #[test]
    fn entries_come_back_in_reverse_and_those_of_rows_take_few_bytes() {
        let mut log = UndoLog::default();
        let rows = 100_000_u64;
        for row in 0..rows {
            log.push(&key(0, row), None);
            let replaced = (row % 100 == 7).then_some(Some(&[3; 5][..]));
            log.push(&key(1, row.reverse_bits()), replaced);
            log.push(&key(2, row), (row % 100 == 8).then_some(None));
        }
        assert_eq!(log.end() as u64, 3 * rows);
        let bytes = log.size_bytes() as u64;
        assert!(bytes < 11 * 3 * rows, "{bytes} bytes");
        for row in (0..rows).rev() {
            let deleted = (row % 100 == 8).then_some(None);
            assert_eq!(log.pop(), (key(2, row).into(), deleted));
            let value = (row % 100 == 7).then(|| Some([3; 5].into()));
            assert_eq!(log.pop(), (key(1, row.reverse_bits()).into(), value));
            assert_eq!(log.pop(), (key(0, row).into(), None));
        }
        assert_eq!(log.end(), 0);
    }

    #[test]
    fn what_is_undone_and_written_in_turn_is_not_packed_each_time() {
        let mut log = UndoLog::default();
        let mut row = 0;
        while log.packed.is_empty() {
            log.push(&key(0, row), None);
            row += 1;
        }
        for _ in 0..1_000 {
            log.push(&key(0, row), None);
            log.pop();
        }
        assert_eq!(log.packed.len(), 1);
        assert!(log.tail_entries > 1_000);
    }
}
