//! A copy of another server's rows, written as it comes in.

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_curp::ids::LogId;
use manxdb_curp::rifl::Rifl;
use manxdb_curp::{ReceiveImage, StateError};
use manxdb_storage::{Durability, Engine as _, RocksEngine};

use super::reader::{FORMAT, HEADER, TRAILER};
use super::{FACTS, Facts, Home, StoredCell, StoredRows, Writes, cell_key, encode, tombstone_key};
use crate::commits::COMMIT_BYTES_MAX;
use crate::effects::Owner;

/// Bytes of rows that become a batch.
const BATCH_BYTES: usize = 1 << 20;
/// Bytes before a key: its length, and that of its cell.
const LENGTHS: usize = 2 * size_of::<u32>();
/// The longest key with its cell: one transaction wrote it, and a cell has a version beside the value.
const ROW_BYTES_MAX: usize = COMMIT_BYTES_MAX + (1 << 10);

/// Rows that come in, in a directory of their own, which goes when they do not come to their end.
pub(crate) struct Receiver<E> {
    home: Arc<Home>,
    /// The machine that has the rows once they are there.
    becomes: fn(StoredRows) -> E,
    number: u64,
    engine: Option<RocksEngine>,
    /// Bytes of which the rest has not come.
    rest: Vec<u8>,
    /// Of the header: how many keys the image has.
    announced: Option<u64>,
    /// Of what was taken.
    checksum: crc32fast::Hasher,
    /// The key that was taken last.
    last: Vec<u8>,
    facts: Facts,
    tombstones: BTreeMap<u64, Vec<Vec<u8>>>,
    writes: Writes,
    bytes: usize,
}

impl<E> Receiver<E> {
    pub(crate) fn new(home: &Arc<Home>, becomes: fn(StoredRows) -> E) -> Self {
        Self {
            home: Arc::clone(home),
            becomes,
            number: home.take_number(),
            engine: None,
            rest: Vec::new(),
            announced: None,
            checksum: crc32fast::Hasher::new(),
            last: Vec::new(),
            facts: Facts::default(),
            tombstones: BTreeMap::new(),
            writes: Writes::default(),
            bytes: 0,
        }
    }

    /// Takes the header; how many keys the image has, or nothing while the header is not whole.
    fn take_header(&mut self) -> Result<Option<u64>, StateError> {
        if self.announced.is_some() || self.rest.len() < HEADER {
            return Ok(self.announced);
        }
        let header: Vec<u8> = self.rest.drain(..HEADER).collect();
        if header[0] != FORMAT {
            return Err(StateError::Unreadable);
        }
        self.checksum.update(&header);
        let mut numbers = [0; 3];
        for (number, bytes) in numbers.iter_mut().zip(header[1..].chunks_exact(8)) {
            let mut eight = [0; 8];
            eight.copy_from_slice(bytes);
            *number = u64::from_le_bytes(eight);
        }
        let [owner, latest, keys] = numbers;
        self.facts.owner = Owner(owner);
        self.facts.latest = latest;
        self.announced = Some(keys);
        Ok(self.announced)
    }

    fn take_row(&mut self, key: &[u8], cell: &[u8]) -> Result<(), StateError> {
        let Some(StoredCell { version, value }) = StoredCell::decode(cell) else {
            return Err(StateError::Unreadable);
        };
        let follows = self.facts.keys == 0 || self.last.as_slice() < key;
        if version > self.facts.latest || !follows {
            return Err(StateError::Unreadable);
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        self.facts.keys += 1;
        if value.is_none() {
            let keys = self.tombstones.entry(version).or_default();
            keys.push(key.to_vec());
            let tombstone = tombstone_key(version, key);
            self.writes.0.insert(tombstone, Some(Vec::new()));
        }
        let again = self.writes.0.insert(cell_key(key), Some(cell.to_vec()));
        assert!(again.is_none(), "a key that follows all others is new");
        self.bytes += key.len() + cell.len();
        if self.bytes >= BATCH_BYTES {
            self.write(Durability::Async)?;
        }
        Ok(())
    }

    fn write(&mut self, durability: Durability) -> Result<(), StateError> {
        let engine = match self.engine.take() {
            Some(engine) => engine,
            None => self.home.open_engine(self.number)?,
        };
        let engine = self.engine.insert(engine);
        let writes = std::mem::take(&mut self.writes);
        self.bytes = 0;
        let written = writes.write(engine, durability);
        written.map_err(|error| self.home.failed(&error))?;
        let latest = engine.latest().map_err(|error| self.home.failed(&error))?;
        engine.set_watermark(latest);
        Ok(())
    }
}

/// A key and its cell.
type Row<'a> = (&'a [u8], &'a [u8]);

/// The key and the cell at the beginning of bytes; nothing while they have not come.
///
/// # Errors
/// [`StateError::Unreadable`] when they are longer than any transaction: nobody waits for their end.
fn row(bytes: &[u8]) -> Result<Option<Row<'_>>, StateError> {
    let Some((lengths, rest)) = bytes.split_first_chunk::<LENGTHS>() else {
        return Ok(None);
    };
    let number = |at: usize| {
        let four = [
            lengths[at],
            lengths[at + 1],
            lengths[at + 2],
            lengths[at + 3],
        ];
        usize::try_from(u32::from_le_bytes(four)).unwrap_or(usize::MAX)
    };
    let (key, cell) = (number(0), number(LENGTHS / 2));
    if key.saturating_add(cell) > ROW_BYTES_MAX {
        return Err(StateError::Unreadable);
    }
    let row = rest.get(..key + cell);
    Ok(row.map(|row| row.split_at(key)))
}

impl<E> ReceiveImage<E> for Receiver<E> {
    fn take(&mut self, bytes: &[u8]) -> Result<(), StateError> {
        self.rest.extend_from_slice(bytes);
        let Some(announced) = self.take_header()? else {
            return Ok(());
        };
        let mut rest = std::mem::take(&mut self.rest);
        let mut at = 0;
        while self.facts.keys < announced
            && let Some((key, cell)) = row(&rest[at..])?
        {
            self.take_row(key, cell)?;
            let end = at + LENGTHS + key.len() + cell.len();
            self.checksum.update(&rest[at..end]);
            at = end;
        }
        rest.drain(..at);
        if self.facts.keys == announced && rest.len() > TRAILER {
            return Err(StateError::Unreadable); // nothing follows the checksum
        }
        self.rest = rest;
        Ok(())
    }

    fn finish(mut self: Box<Self>, end: LogId, completed: &Rifl) -> Result<E, StateError> {
        let checksum = self.checksum.clone().finalize();
        if self.announced != Some(self.facts.keys) || self.rest != checksum.to_le_bytes() {
            return Err(StateError::Unreadable);
        }
        self.facts.end = end;
        self.facts.completed = completed.clone();
        let facts = encode(&self.facts);
        self.writes.0.insert(FACTS.to_vec(), Some(facts));
        self.write(Durability::Sync)?;
        let Some(engine) = self.engine.take() else {
            return Err(StateError::Unreadable);
        };
        Ok((self.becomes)(StoredRows {
            home: Arc::clone(&self.home),
            number: self.number,
            engine: Some(Arc::new(engine)),
            pins: Arc::default(),
            facts: std::mem::take(&mut self.facts),
            tombstones: std::mem::take(&mut self.tombstones),
        }))
    }
}

impl<E> Drop for Receiver<E> {
    fn drop(&mut self) {
        if let Some(engine) = self.engine.take() {
            drop(engine);
            let own = self.number;
            self.home.remove(|number| number == own);
        }
    }
}
