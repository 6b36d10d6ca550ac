//! Bytes of intents: numbers little-endian, byte strings behind their length.

use std::ops::Bound;

use manxdb_storage::{KeyRange, Version};

use crate::model::ReadSet;

type Writes = Vec<(Vec<u8>, Option<Vec<u8>>)>;

#[derive(Default)]
pub(super) struct Writer {
    out: Vec<u8>,
}

impl Writer {
    pub(super) fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    pub(super) fn number(&mut self, number: u64) {
        self.out.extend_from_slice(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.out.extend_from_slice(bytes);
    }

    fn bound(&mut self, bound: &Bound<Vec<u8>>) {
        match bound {
            Bound::Unbounded => self.byte(0),
            Bound::Included(key) => {
                self.byte(1);
                self.bytes(key);
            }
            Bound::Excluded(key) => {
                self.byte(2);
                self.bytes(key);
            }
        }
    }

    pub(super) fn reads(&mut self, reads: &ReadSet) {
        self.number(reads.points.len() as u64);
        let mut written = 0;
        for (key, at) in reads.points.iter() {
            self.bytes(&key);
            self.number(at.0);
            written += 1;
        }
        assert_eq!(
            written,
            reads.points.len(),
            "as many keys follow as a reader takes"
        );
        self.number(reads.ranges.len() as u64);
        for (range, at) in &reads.ranges {
            self.bound(&range.start);
            self.bound(&range.end);
            self.number(at.0);
        }
    }

    pub(super) fn writes(&mut self, writes: &Writes) {
        self.number(writes.len() as u64);
        for (key, value) in writes {
            self.bytes(key);
            self.byte(u8::from(value.is_some()));
            self.bytes(value.as_deref().unwrap_or_default());
        }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.out
    }
}

/// Every method answers `None` when the bytes end early or make no sense.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.rest.split_first_chunk::<8>()?;
        self.rest = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes.to_vec())
    }

    fn bound(&mut self) -> Option<Bound<Vec<u8>>> {
        Some(match self.byte()? {
            0 => Bound::Unbounded,
            1 => Bound::Included(self.bytes()?),
            2 => Bound::Excluded(self.bytes()?),
            _ => return None,
        })
    }

    /// A list grows as it is read: its stated length allocates nothing.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length = self.number()?;
        let mut list = Vec::new();
        for _ in 0..length {
            list.push(item(self)?);
        }
        Some(list)
    }

    pub(super) fn reads(&mut self) -> Option<ReadSet> {
        let points = self.list(|input| Some((input.bytes()?, Version(input.number()?))))?;
        let ranges = self.list(|input| {
            let (start, end) = (input.bound()?, input.bound()?);
            Some((KeyRange { start, end }, Version(input.number()?)))
        })?;
        Some(ReadSet {
            points: points.into(),
            ranges,
        })
    }

    pub(super) fn writes(&mut self) -> Option<Writes> {
        self.list(|input| {
            let key = input.bytes()?;
            let is_put = match input.byte()? {
                0 => false,
                1 => true,
                _ => return None,
            };
            let value = input.bytes()?;
            Some((key, is_put.then_some(value)))
        })
    }
}
