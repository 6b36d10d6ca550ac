//! A transaction's own writes, in key order, with a way back to any earlier point.

use std::collections::BTreeMap;

use manxdb_storage::{Direction, KeyRange};

use crate::ranges::as_slice;

/// A buffered write; `None` deletes. Boxed, because a large transaction holds a million of them.
pub(super) type Write = Option<Box<[u8]>>;

#[derive(Default)]
pub(super) struct WriteBuffer {
    writes: BTreeMap<Box<[u8]>, Write>,
    undo: UndoLog,
    bytes: usize,
}

fn write_bytes(key: &[u8], write: &Write) -> usize {
    key.len() + write.as_ref().map_or(0, |value| value.len())
}

impl WriteBuffer {
    pub(super) fn get(&self, key: &[u8]) -> Option<&Write> {
        self.writes.get(key)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Bytes of keys and values, as the limit counts them.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The next own write of `range` in `direction`.
    pub(super) fn first(&self, range: &KeyRange, direction: Direction) -> Option<(&[u8], &Write)> {
        if self.writes.is_empty() || range.is_empty() {
            return None;
        }
        let bounds = (as_slice(&range.start), as_slice(&range.end));
        let mut inside = self.writes.range::<[u8], _>(bounds);
        let found = match direction {
            Direction::Forward => inside.next(),
            Direction::Reverse => inside.next_back(),
        };
        found.map(|(key, write)| (&**key, write))
    }

    pub(super) fn put(&mut self, key: Vec<u8>, write: Option<Vec<u8>>) {
        let write = write.map(Vec::into_boxed_slice);
        self.bytes += write_bytes(&key, &write);
        if let Some(place) = self.writes.get_mut(key.as_slice()) {
            let previous = std::mem::replace(place, write);
            self.bytes -= write_bytes(&key, &previous);
            self.undo.push(&key, Some(&previous));
            return;
        }
        self.undo.push(&key, None);
        self.writes.insert(key.into_boxed_slice(), write);
    }

    pub(super) fn savepoint(&self) -> usize {
        self.undo.end()
    }

    pub(super) fn rollback_to(&mut self, savepoint: usize) {
        let before = self.undo.end();
        while self.undo.end() > savepoint {
            let (key, previous) = self.undo.pop();
            assert!(
                self.writes.contains_key(&*key),
                "what is undone was written"
            );
            if let Some(undone) = self.writes.get(&*key) {
                self.bytes -= write_bytes(&key, undone);
            }
            match previous {
                Some(write) => {
                    self.bytes += write_bytes(&key, &write);
                    self.writes.insert(key, write);
                }
                None => {
                    self.writes.remove(&*key);
                }
            }
        }
        assert_eq!(
            self.undo.end(),
            savepoint.min(before),
            "a savepoint lies between two writes"
        );
        assert!(
            !self.writes.is_empty() || self.bytes == 0,
            "bytes are counted of what is buffered"
        );
    }

    /// A copy of all writes in key order.
    pub(super) fn to_writes(&self) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let writes = self.writes.iter();
        writes
            .map(|(key, write)| (key.to_vec(), write.as_deref().map(<[u8]>::to_vec)))
            .collect()
    }

    /// All writes in key order.
    pub(super) fn into_writes(self) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        drop(self.undo);
        let writes = self.writes.into_iter();
        let owned =
            |(key, write): (Box<[u8]>, Write)| (key.into_vec(), write.map(<[u8]>::into_vec));
        writes.map(owned).collect()
    }
}

/// What each write replaced, oldest first, one behind the other in one vector:
///
/// ```text
/// key · replaced value · key length (4 bytes) · value length (4) · kind (1)
/// ```
#[derive(Default)]
struct UndoLog {
    bytes: Vec<u8>,
}

/// Bytes behind the key and value of an entry.
const TRAILER_BYTES: usize = 9;

/// Nothing was written there before.
const NOTHING: u8 = 0;
/// A deletion was.
const DELETED: u8 = 1;
/// A value was.
const VALUE: u8 = 2;

impl UndoLog {
    /// Where the next entry begins.
    fn end(&self) -> usize {
        self.bytes.len()
    }

    fn push(&mut self, key: &[u8], replaced: Option<&Write>) {
        let (kind, value) = match replaced {
            None => (NOTHING, &[][..]),
            Some(None) => (DELETED, &[][..]),
            Some(Some(value)) => (VALUE, &**value),
        };
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        for part in [key, value] {
            // A transaction may write less than that.
            let length = u32::try_from(part.len());
            assert!(length.is_ok(), "a key or value of 4 GiB");
            self.bytes
                .extend_from_slice(&length.unwrap_or_default().to_le_bytes());
        }
        self.bytes.push(kind);
    }

    /// The last entry, taken out.
    fn pop(&mut self) -> (Box<[u8]>, Option<Write>) {
        assert!(
            self.bytes.len() >= TRAILER_BYTES,
            "an entry is taken out that was put in"
        );
        let trailer = self.bytes.split_off(self.bytes.len() - TRAILER_BYTES);
        let length = |at: usize| {
            let field = [
                trailer[at],
                trailer[at + 1],
                trailer[at + 2],
                trailer[at + 3],
            ];
            u32::from_le_bytes(field) as usize
        };
        let value = self.bytes.split_off(self.bytes.len() - length(4));
        let key = self.bytes.split_off(self.bytes.len() - length(0));
        assert!(trailer[8] <= VALUE, "an entry says what it replaced");
        let replaced = match trailer[8] {
            NOTHING => None,
            DELETED => Some(None),
            _ => Some(Some(value.into_boxed_slice())),
        };
        (key.into_boxed_slice(), replaced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rolling_back_restores_writes_and_their_size() {
        let mut buffer = WriteBuffer::default();
        buffer.put(b"a".to_vec(), Some(b"one".to_vec()));
        let (savepoint, bytes) = (buffer.savepoint(), buffer.bytes());
        buffer.put(b"a".to_vec(), None);
        buffer.put(b"b".to_vec(), Some(b"two".to_vec()));
        buffer.put(b"a".to_vec(), Some(b"three".to_vec()));
        assert!(buffer.bytes() > bytes);
        buffer.rollback_to(savepoint);
        assert_eq!(buffer.bytes(), bytes);
        assert_eq!(
            buffer.into_writes(),
            vec![(b"a".to_vec(), Some(b"one".to_vec()))]
        );
    }
}
