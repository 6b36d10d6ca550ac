//! A copy of another server's rows, written as it comes in.

use std::sync::Arc;

use manxdb_curp::ids::LogId;
use manxdb_curp::rifl::Rifl;
use manxdb_curp::{ReceiveImage, StateError};
use manxdb_storage::{Durability, Engine as _, RocksEngine};

use super::reader::{FORMAT, HEADER};
use super::{FACTS, Facts, Home, StoredCell, StoredRows, Writes, cell_key, encode, tombstone_key};
use crate::effects::Owner;
use crate::machine::{SqlMachine, size};

/// Bytes of rows that become a batch.
const BATCH_BYTES: usize = 1 << 20;
/// Bytes before a key: its length, and that of its cell.
const LENGTHS: usize = 2 * size_of::<u32>();

/// Rows that come in, in a directory of their own, which goes when they do not come to their end.
pub(crate) struct Receiver {
    home: Arc<Home>,
    number: u64,
    engine: Option<RocksEngine>,
    /// Bytes of which the rest has not come.
    rest: Vec<u8>,
    /// Of the header: how many keys are to come.
    announced: Option<u64>,
    facts: Facts,
    tombstones: std::collections::BTreeMap<u64, Vec<Vec<u8>>>,
    writes: Writes,
    bytes: usize,
}

impl Receiver {
    pub(crate) fn new(home: &Arc<Home>) -> Self {
        Self {
            home: Arc::clone(home),
            number: home.take_number(),
            engine: None,
            rest: Vec::new(),
            announced: None,
            facts: Facts::default(),
            tombstones: std::collections::BTreeMap::new(),
            writes: Writes::default(),
            bytes: 0,
        }
    }

    /// Takes the header; false while it is not whole.
    fn take_header(&mut self) -> Result<bool, StateError> {
        if self.announced.is_some() {
            return Ok(true);
        }
        if self.rest.len() < HEADER {
            return Ok(false);
        }
        let header: Vec<u8> = self.rest.drain(..HEADER).collect();
        if header[0] != FORMAT {
            return Err(StateError::Unreadable);
        }
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
        Ok(true)
    }

    fn take_row(&mut self, key: &[u8], cell: &[u8]) -> Result<(), StateError> {
        let Some(StoredCell { version, value }) = StoredCell::decode(cell) else {
            return Err(StateError::Unreadable);
        };
        if version > self.facts.latest {
            return Err(StateError::Unreadable);
        }
        self.facts.keys += 1;
        self.facts.bytes += size(key, value) as u64;
        if value.is_none() {
            let keys = self.tombstones.entry(version).or_default();
            keys.push(key.to_vec());
            let tombstone = tombstone_key(version, key);
            self.writes.0.insert(tombstone, Some(Vec::new()));
        }
        let again = self.writes.0.insert(cell_key(key), Some(cell.to_vec()));
        self.bytes += key.len() + cell.len();
        if again.is_some() {
            return Err(StateError::Unreadable); // keys come in their order
        }
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

/// The key and the cell at the beginning of bytes, and how many bytes they take.
fn row(bytes: &[u8]) -> Option<(&[u8], &[u8], usize)> {
    let (key, rest) = bytes.split_first_chunk::<4>()?;
    let (cell, rest) = rest.split_first_chunk::<4>()?;
    let length = |bytes: &[u8; 4]| usize::try_from(u32::from_le_bytes(*bytes)).ok();
    let (key, cell) = (length(key)?, length(cell)?);
    let (key, rest) = rest.split_at_checked(key)?;
    let cell = rest.get(..cell)?;
    Some((key, cell, LENGTHS + key.len() + cell.len()))
}

impl ReceiveImage<SqlMachine> for Receiver {
    fn take(&mut self, bytes: &[u8]) -> Result<(), StateError> {
        self.rest.extend_from_slice(bytes);
        if !self.take_header()? {
            return Ok(());
        }
        let rest = std::mem::take(&mut self.rest);
        let mut at = 0;
        while let Some((key, cell, length)) = row(&rest[at..]) {
            self.take_row(key, cell)?;
            at += length;
        }
        assert!(at <= rest.len(), "rows are of what has come");
        self.rest = rest[at..].to_vec();
        Ok(())
    }

    fn finish(mut self: Box<Self>, end: LogId, completed: &Rifl) -> Result<SqlMachine, StateError> {
        if self.announced != Some(self.facts.keys) || !self.rest.is_empty() {
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
        Ok(SqlMachine::of_stored(StoredRows {
            home: Arc::clone(&self.home),
            number: self.number,
            engine: Some(Arc::new(engine)),
            pins: Arc::default(),
            facts: std::mem::take(&mut self.facts),
            tombstones: std::mem::take(&mut self.tombstones),
        }))
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Some(engine) = self.engine.take() {
            drop(engine);
            let own = self.number;
            self.home.remove(|number| number == own);
        }
    }
}
