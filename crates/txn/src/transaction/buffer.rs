//! A transaction's own writes, in key order, with a way back to any earlier point.

use std::collections::BTreeMap;

use manxdb_storage::{Direction, KeyRange};

use crate::ranges::{as_slice, is_empty};

/// A buffered write; `None` deletes.
pub(super) type Write = Option<Vec<u8>>;

#[derive(Default)]
pub(super) struct WriteBuffer {
    writes: BTreeMap<Vec<u8>, Write>,
    /// What each write replaced, oldest first.
    undo: Vec<(Vec<u8>, Option<Write>)>,
    bytes: usize,
}

fn write_bytes(key: &[u8], write: &Write) -> usize {
    key.len() + write.as_ref().map_or(0, Vec::len)
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
        if self.writes.is_empty() || is_empty(range) {
            return None;
        }
        let bounds = (as_slice(&range.start), as_slice(&range.end));
        let mut inside = self.writes.range::<[u8], _>(bounds);
        let found = match direction {
            Direction::Forward => inside.next(),
            Direction::Reverse => inside.next_back(),
        };
        found.map(|(key, write)| (key.as_slice(), write))
    }

    pub(super) fn put(&mut self, key: Vec<u8>, write: Write) {
        self.bytes += write_bytes(&key, &write);
        let previous = self.writes.insert(key.clone(), write);
        if let Some(previous) = &previous {
            self.bytes -= write_bytes(&key, previous);
        }
        self.undo.push((key, previous));
    }

    pub(super) fn savepoint(&self) -> usize {
        self.undo.len()
    }

    pub(super) fn rollback_to(&mut self, savepoint: usize) {
        while self.undo.len() > savepoint {
            let Some((key, previous)) = self.undo.pop() else {
                return;
            };
            if let Some(undone) = self.writes.get(&key) {
                self.bytes -= write_bytes(&key, undone);
            }
            match previous {
                Some(write) => {
                    self.bytes += write_bytes(&key, &write);
                    self.writes.insert(key, write);
                }
                None => {
                    self.writes.remove(&key);
                }
            }
        }
    }

    /// All writes in key order.
    pub(super) fn into_writes(self) -> Vec<(Vec<u8>, Write)> {
        self.writes.into_iter().collect()
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
        buffer.rollback_to(savepoint);
        assert_eq!(buffer.bytes(), bytes);
        assert_eq!(
            buffer.into_writes(),
            vec![(b"a".to_vec(), Some(b"one".to_vec()))]
        );
    }
}
