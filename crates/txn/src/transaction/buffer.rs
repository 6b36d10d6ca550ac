//! A transaction's own writes, in key order, with a way back to any earlier point.
//!
//! The last writes are in a map, those before in packed runs, each of which has several times the
//! keys of the next: a write in the map takes some 140 bytes beside its value, a packed one some
//! eight. A newer run hides what older ones say of its keys.

use std::borrow::Cow;
use std::collections::BTreeMap;

use manxdb_core::check::{deep, ensure};
use manxdb_storage::{Direction, KeyRange, SortedWrites};

use super::page::cut_behind;
use super::undo::{UndoLog, Write, WriteRef};
use crate::keys::{Held, WriteRun, WriteRunBuilder};
use crate::ranges::as_slice;

/// Writes kept in the map; as many are packed into a run when they are there.
const LOOSE_MAX: usize = 16_384;

/// A run has more than so many times the keys of the next.
const RUN_FACTOR: usize = 4;

/// Keys and what is written there, in order.
pub(super) type WriteList = Vec<(Vec<u8>, Option<Vec<u8>>)>;

#[derive(Default)]
pub(super) struct WriteBuffer {
    /// The last writes; `None` where one was undone that a run has.
    loose: BTreeMap<Box<[u8]>, Option<Write>>,
    /// The writes before, oldest first.
    runs: Vec<WriteRun>,
    undo: UndoLog,
    /// Keys that are written.
    keys: usize,
    bytes: usize,
}

fn write_bytes(key: &[u8], write: Option<&[u8]>) -> usize {
    key.len() + write.map_or(0, <[u8]>::len)
}

/// What `runs`, oldest first, say of `key`.
fn find_packed<'a>(runs: &'a [WriteRun], key: &[u8]) -> Option<WriteRef<'a>> {
    match runs.iter().rev().find_map(|run| run.find(key)) {
        Some(Held::Write(write)) => Some(write),
        Some(Held::Nothing) | None => None,
    }
}

impl WriteBuffer {
    pub(super) fn get(&self, key: &[u8]) -> Option<WriteRef<'_>> {
        match self.loose.get(key) {
            Some(write) => write.as_ref().map(Option::as_deref),
            None => find_packed(&self.runs, key),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys == 0
    }

    /// Whether there are so many that they are committed packed.
    pub(super) fn is_packed(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Bytes of keys and values, as the limit counts them.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of the packed forms, which hold all but the last writes.
    pub(super) fn packed_bytes(&self) -> usize {
        let runs = self.runs.iter().map(WriteRun::size_bytes);
        runs.sum::<usize>() + self.undo.size_bytes()
    }

    /// The next own write of `range` in `direction`.
    pub(super) fn first(
        &self,
        range: &KeyRange,
        direction: Direction,
    ) -> Option<(Cow<'_, [u8]>, WriteRef<'_>)> {
        if self.is_empty() || range.is_empty() {
            return None;
        }
        if self.runs.is_empty() {
            let (key, write) = self.first_loose(range, direction)?;
            return Some((Cow::Borrowed(key), write.as_ref()?.as_deref()));
        }
        let mut rest = range.clone();
        while !rest.is_empty() {
            let loose = self.first_loose(&rest, direction);
            let mut first = loose.map(|(key, _)| key.to_vec());
            for run in &self.runs {
                let packed = run.first_in(&rest, direction).map(|(key, _)| key);
                first = match (first, packed) {
                    (Some(one), Some(other)) if direction == Direction::Forward => {
                        Some(one.min(other))
                    }
                    (Some(one), Some(other)) => Some(one.max(other)),
                    (one, other) => one.or(other),
                };
            }
            let key = first?;
            if let Some(write) = self.get(&key) {
                return Some((Cow::Owned(key), write));
            }
            cut_behind(&mut rest, &key, direction);
        }
        None
    }

    fn first_loose(
        &self,
        range: &KeyRange,
        direction: Direction,
    ) -> Option<(&[u8], &Option<Write>)> {
        let bounds = (as_slice(&range.start), as_slice(&range.end));
        let mut inside = self.loose.range::<[u8], _>(bounds);
        let found = match direction {
            Direction::Forward => inside.next(),
            Direction::Reverse => inside.next_back(),
        };
        found.map(|(key, write)| (&**key, write))
    }

    pub(super) fn put(&mut self, key: Vec<u8>, write: Option<Vec<u8>>) {
        let write = write.map(Vec::into_boxed_slice);
        self.bytes += write_bytes(&key, write.as_deref());
        if let Some(place) = self.loose.get_mut(key.as_slice()) {
            let replaced = place.as_ref().map(Option::as_deref);
            self.undo.push(&key, replaced);
            match replaced {
                Some(replaced) => self.bytes -= write_bytes(&key, replaced),
                None => self.keys += 1,
            }
            *place = Some(write);
            return;
        }
        let replaced = find_packed(&self.runs, &key);
        self.undo.push(&key, replaced);
        match replaced {
            Some(replaced) => self.bytes -= write_bytes(&key, replaced),
            None => self.keys += 1,
        }
        self.loose.insert(key.into_boxed_slice(), Some(write));
        if self.loose.len() >= LOOSE_MAX {
            self.pack();
        }
    }

    /// Makes a run of the map, and one of runs that are as large.
    fn pack(&mut self) {
        let mut run = WriteRunBuilder::default();
        for (key, write) in std::mem::take(&mut self.loose) {
            match &write {
                Some(write) => run.push(&key, Held::Write(write.as_deref())),
                None if !self.runs.is_empty() => run.push(&key, Held::Nothing),
                None => {}
            }
        }
        let mut run = run.finish();
        while let Some(before) = self.runs.pop() {
            let is_larger = before.len() > RUN_FACTOR * run.len();
            run = if before.ends_before(&run) {
                before.join(run)
            } else if is_larger {
                self.runs.push(before);
                break;
            } else {
                before.merge(run, !self.runs.is_empty())
            };
        }
        self.runs.push(run);
        if deep() {
            assert_eq!(self.check(), Ok(()));
        }
    }

    /// What holds between any two calls.
    ///
    /// # Errors
    /// The invariant that is broken.
    fn check(&self) -> Result<(), String> {
        ensure(self.loose.len() <= LOOSE_MAX, || {
            format!("{} writes are not packed", self.loose.len())
        })?;
        let is_larger = |one: &WriteRun, next: &WriteRun| one.len() > next.len();
        ensure(self.runs.is_sorted_by(is_larger), || {
            let keys: Vec<usize> = self.runs.iter().map(WriteRun::len).collect();
            format!("each run has more keys than the next: {keys:?}")
        })?;
        ensure(self.keys > 0 || self.bytes == 0, || {
            format!("{} bytes are counted of nothing", self.bytes)
        })
    }

    pub(super) fn savepoint(&self) -> usize {
        self.undo.end()
    }

    pub(super) fn rollback_to(&mut self, savepoint: usize) {
        if savepoint == 0 {
            *self = Self::default();
            return;
        }
        let before = self.undo.end();
        while self.undo.end() > savepoint {
            let (key, replaced) = self.undo.pop();
            let undone = self.get(&key).map(|undone| write_bytes(&key, undone));
            assert!(undone.is_some(), "what is undone was written");
            self.bytes -= undone.unwrap_or_default();
            match &replaced {
                Some(write) => self.bytes += write_bytes(&key, write.as_deref()),
                None => self.keys -= 1,
            }
            if replaced.is_some() || find_packed(&self.runs, &key).is_some() {
                self.loose.insert(key, replaced);
            } else {
                self.loose.remove(&*key);
            }
            if self.loose.len() >= LOOSE_MAX {
                self.pack();
            }
        }
        assert_eq!(
            self.undo.end(),
            savepoint.min(before),
            "a savepoint lies between two writes"
        );
        assert_eq!(self.check(), Ok(()));
    }

    /// A copy of all writes in key order, which are not packed.
    pub(super) fn to_writes(&self) -> WriteList {
        assert!(!self.is_packed(), "packed writes are not copied");
        let writes = self.loose.iter().filter_map(|(key, write)| {
            let write = write.as_ref()?;
            Some((key.to_vec(), write.as_deref().map(<[u8]>::to_vec)))
        });
        writes.collect()
    }

    /// All writes in key order, which are not packed.
    pub(super) fn into_writes(self) -> WriteList {
        assert!(!self.is_packed(), "packed writes are not listed");
        drop(self.undo);
        let writes = self.loose.into_iter().filter_map(|(key, write)| {
            let write = write?;
            Some((key.into_vec(), write.map(<[u8]>::into_vec)))
        });
        writes.collect()
    }

    /// All writes in key order, packed.
    pub(super) fn into_sorted(mut self) -> impl SortedWrites + 'static {
        self.undo = UndoLog::default();
        self.pack();
        let mut runs = std::mem::take(&mut self.runs).into_iter().rev();
        let mut all = runs.next().unwrap_or_default();
        let mut older = runs.peekable();
        while let Some(run) = older.next() {
            let is_oldest = older.peek().is_none();
            all = run.merge(all, !is_oldest);
        }
        assert_eq!(
            all.len(),
            self.keys,
            "each key that is written is committed"
        );
        all
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

    fn key(row: u64) -> Vec<u8> {
        let table = [1, 0, 0, 0, 7, 0, 0, 0, 0];
        [&table[..], &row.to_be_bytes()].concat()
    }

    fn listed(buffer: WriteBuffer) -> WriteList {
        let mut list = WriteList::new();
        buffer.into_sorted().each(&mut |key, value| {
            list.push((key.to_vec(), value.map(<[u8]>::to_vec)));
        });
        list
    }

    /// Writes and their undoing in an order that meets all layers, beside a plain map.
    #[test]
    fn many_writes_are_read_walked_and_undone_as_in_a_map() {
        let mut buffer = WriteBuffer::default();
        let mut map: BTreeMap<Vec<u8>, Option<Vec<u8>>> = BTreeMap::new();
        let mut saved = Vec::new();
        let rows = 3 * LOOSE_MAX as u64;
        for step in 0..5 * LOOSE_MAX as u64 {
            let row = step.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
            let value = (step % 7 > 0).then(|| step.to_be_bytes().to_vec());
            buffer.put(key(row % rows), value.clone());
            map.insert(key(row % rows), value);
            match step % 20_000 {
                9_000 => saved.push((buffer.savepoint(), map.clone())),
                19_000 if step % 40_000 < 20_000 => {
                    let (savepoint, before) = saved.pop().unwrap();
                    buffer.rollback_to(savepoint);
                    map = before;
                }
                _ => {}
            }
        }
        assert!(buffer.is_packed());
        let bytes: usize = map
            .iter()
            .map(|(key, value)| write_bytes(key, value.as_deref()))
            .sum();
        assert_eq!(buffer.bytes(), bytes);
        for row in (0..rows).step_by(5) {
            let own = buffer.get(&key(row)).map(|own| own.map(<[u8]>::to_vec));
            assert_eq!(own, map.get(&key(row)).cloned(), "{row}");
        }
        for direction in [Direction::Forward, Direction::Reverse] {
            let mut rest = KeyRange::all();
            for _ in 0..2_000 {
                let (first, _) = buffer.first(&rest, direction).unwrap();
                let first = first.into_owned();
                let bounds = (as_slice(&rest.start), as_slice(&rest.end));
                let mut wanted = map.range::<[u8], _>(bounds).map(|(key, _)| key);
                let wanted = match direction {
                    Direction::Forward => wanted.next(),
                    Direction::Reverse => wanted.next_back(),
                };
                assert_eq!(Some(&first), wanted);
                cut_behind(&mut rest, &first, direction);
            }
        }
        assert_eq!(listed(buffer), map.into_iter().collect::<WriteList>());
    }

    #[test]
    fn many_writes_take_few_bytes_beside_their_values() {
        for step in [1, 0x9E37_79B9_7F4A_7C15] {
            let mut buffer = WriteBuffer::default();
            for row in 0..200_000_u64 {
                let row = row.wrapping_mul(step) >> if step == 1 { 0 } else { 40 };
                buffer.put(key(row), Some(vec![7; 24]));
            }
            let values = 24 * 200_000;
            let bytes = buffer.packed_bytes() - values;
            assert!(bytes < 24 * 200_000, "{bytes} bytes");
            assert!(buffer.runs.len() <= 5, "{} runs", buffer.runs.len());
        }
    }

    #[test]
    fn all_is_forgotten_at_once() {
        let mut buffer = WriteBuffer::default();
        for row in 0..2 * LOOSE_MAX as u64 {
            buffer.put(key(row), None);
        }
        buffer.rollback_to(0);
        assert!(buffer.is_empty() && !buffer.is_packed());
        assert_eq!((buffer.bytes(), buffer.savepoint()), (0, 0));
    }
}
