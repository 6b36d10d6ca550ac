//! Rows in a storage engine of their own: more of them than memory.
//!
//! What is settled is written in one batch with its place in the log and the completion records, so that
//! a process that starts again knows what it has. What was applied and is not settled is in the log alone:
//! the engine needs not undo anything.
//!
//! | key | value |
//! |---|---|
//! | `f` | [`Facts`]: postcard |
//! | `c` ‖ key of a row | version (8, big-endian) ‖ 1 ‖ value, or version ‖ 0 where it was deleted |
//! | `t` ‖ version (8, big-endian) ‖ key of a row | nothing: the row was deleted, and older writes may come |
//!
//! The engine's own versions number batches. An image is a version that is pinned: what it shows stays in the
//! engine while somebody reads it, and costs nothing to make.
//!
//! | file | |
//! |---|---|
//! | `home` | where states lie |
//! | `reader` | rows and images of one moment |
//! | `receiver` | a copy that comes in |

mod home;
mod reader;
mod receiver;

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_curp::ids::LogId;
use manxdb_curp::rifl::Rifl;
use manxdb_curp::{Settled, StateError};
use manxdb_storage::{
    Direction, Durability, Engine as _, KeyRange, RocksEngine, StorageError, Version, WriteBatch,
};
use serde::{Deserialize, Serialize};

pub use self::home::{FOLDER, Home, RESERVE_BYTES};
use self::reader::Pins;
pub(crate) use self::reader::StoredImage;
pub use self::reader::StoredView;
pub(crate) use self::receiver::Receiver;
use crate::effects::{Effects, Owner, SqlCommand};

const FACTS: &[u8] = b"f";
const CELL: u8 = b'c';
const TOMBSTONE: u8 = b't';
/// Bytes of a version at the beginning of a cell and in the key of a tombstone.
const VERSION_BYTES: usize = size_of::<u64>();

/// What is known of all rows together, written with each batch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    /// The last entry of the log that the rows have.
    pub(crate) end: LogId,
    /// Who may write, there.
    pub(crate) owner: Owner,
    /// The newest version of any key.
    pub(crate) latest: u64,
    /// Keys, deleted ones that are remembered included.
    pub(crate) keys: u64,
    /// The completion records there.
    pub(crate) completed: Rifl,
}

/// A key's newest version, and its value unless it is deleted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StoredCell<'a> {
    pub(crate) version: u64,
    pub(crate) value: Option<&'a [u8]>,
}

impl<'a> StoredCell<'a> {
    pub(crate) fn encode(version: u64, value: Option<&[u8]>) -> Vec<u8> {
        let mut bytes = version.to_be_bytes().to_vec();
        bytes.push(u8::from(value.is_some()));
        bytes.extend_from_slice(value.unwrap_or_default());
        bytes
    }

    pub(crate) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (version, rest) = bytes.split_first_chunk::<VERSION_BYTES>()?;
        let version = u64::from_be_bytes(*version);
        let value = match rest.split_first()? {
            (0, []) => None,
            (1, value) => Some(value),
            _ => return None,
        };
        Some(Self { version, value })
    }
}

fn cell_key(key: &[u8]) -> Vec<u8> {
    [&[CELL][..], key].concat()
}

fn tombstone_key(version: u64, key: &[u8]) -> Vec<u8> {
    [&[TOMBSTONE][..], &version.to_be_bytes()[..], key].concat()
}

fn corrupt(what: &str) -> StorageError {
    StorageError::Corrupt(format!(
        "{what} of the replicated rows has bytes that are none"
    ))
}

/// Writes that become one batch: of each key the last one.
#[derive(Debug, Default)]
struct Writes(BTreeMap<Vec<u8>, Option<Vec<u8>>>);

impl Writes {
    /// Writes all of them behind everything that the engine has.
    fn write(self, engine: &RocksEngine, durability: Durability) -> Result<(), StorageError> {
        let version = Version(engine.latest()?.0 + 1);
        let writes = self.0.into_iter();
        let batch = WriteBatch {
            writes: writes.map(|(key, value)| (version, key, value)).collect(),
        };
        assert!(
            !batch.writes.is_empty(),
            "a batch says at least where it ends"
        );
        engine.write(&batch, durability)
    }
}

/// The rows of one state. A clone shares them: one of both goes on, and the other one is given up.
#[derive(Clone)]
pub struct StoredRows {
    home: Arc<Home>,
    number: u64,
    /// Opened with the first thing that is in it.
    engine: Option<Arc<RocksEngine>>,
    pins: Arc<Pins>,
    facts: Facts,
    /// Deleted keys, by the version that deleted them.
    tombstones: BTreeMap<u64, Vec<Vec<u8>>>,
}

impl std::fmt::Debug for StoredRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredRows")
            .field("number", &self.number)
            .field("end", &self.facts.end)
            .finish_non_exhaustive()
    }
}

impl StoredRows {
    /// No rows, at a number of their own.
    pub(crate) fn empty(home: &Arc<Home>) -> Self {
        Self {
            home: Arc::clone(home),
            number: home.take_number(),
            engine: None,
            pins: Arc::default(),
            facts: Facts::default(),
            tombstones: BTreeMap::new(),
        }
    }

    /// The rows of a number, as they were left; no rows, where nothing was ever written. Directories of
    /// larger numbers are of copies that never came to their end.
    pub(crate) fn reopen(home: &Arc<Home>, number: u64) -> Result<Self, StateError> {
        home.remove(|other| other > number);
        home.knows(number);
        let mut rows = Self::empty(home);
        assert!(
            rows.number > number,
            "the next state has a number of its own"
        );
        rows.number = number;
        if home.path(number).exists() {
            let engine = Arc::new(home.open_engine(number)?);
            rows.load(&engine).map_err(|error| home.failed(&error))?;
            rows.engine = Some(engine);
        }
        Ok(rows)
    }

    fn load(&mut self, engine: &RocksEngine) -> Result<(), StorageError> {
        let Some(facts) = engine.get(FACTS, Version::MAX)? else {
            return if engine.latest()? == Version::ZERO {
                Ok(()) // its first batch was not written
            } else {
                Err(corrupt("the record"))
            };
        };
        self.facts = postcard::from_bytes(&facts.value).map_err(|_| corrupt("the record"))?;
        let range = KeyRange::prefix(&[TOMBSTONE]);
        let mut cursor = engine.scan(&range, Version::MAX, Direction::Forward)?;
        while let Some(entry) = cursor.next()? {
            let key = entry.key.get(1..).unwrap_or_default();
            let (version, key) = key
                .split_first_chunk::<VERSION_BYTES>()
                .ok_or_else(|| corrupt("a deleted key"))?;
            let keys = self.tombstones.entry(u64::from_be_bytes(*version));
            keys.or_default().push(key.to_vec());
        }
        Ok(())
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn home(&self) -> &Arc<Home> {
        &self.home
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The rows of this moment, for whoever reads them while the machine goes on.
    #[must_use]
    pub fn view(&self) -> StoredView {
        StoredView::new(self)
    }

    /// Writes what is settled, and where that ends.
    pub(crate) fn settle(&mut self, settled: &Settled<'_>) -> Result<(), StateError> {
        let engine = match &self.engine {
            Some(engine) => Arc::clone(engine),
            None => Arc::new(self.home.open_engine(self.number)?),
        };
        self.engine = Some(Arc::clone(&engine));
        let written = self.write(&engine, settled);
        written.map_err(|error| self.home.failed(&error))
    }

    fn write(&mut self, engine: &RocksEngine, settled: &Settled<'_>) -> Result<(), StorageError> {
        assert!(
            settled.end.at > self.facts.end.at,
            "what is settled follows what was"
        );
        let mut writes = Writes::default();
        for effects in &settled.effects {
            match SqlCommand::decode(effects) {
                Some(SqlCommand::Commit(effects)) => self.commit(engine, &mut writes, effects)?,
                Some(SqlCommand::Claim(owner)) => {
                    assert!(owner > self.facts.owner, "owners only grow");
                    self.facts.owner = owner;
                    // Nothing that an earlier owner has ordered will come.
                    self.forget_tombstones(engine, &mut writes, self.facts.latest)?;
                    assert!(
                        self.tombstones.is_empty(),
                        "a new owner begins with rows alone"
                    );
                }
                Some(SqlCommand::Show) | None => {}
            }
        }
        self.facts.end = settled.end;
        self.facts.completed = settled.completed.clone();
        writes.0.insert(FACTS.to_vec(), Some(encode(&self.facts)));
        writes.write(engine, Durability::Async)?;
        self.pins.let_go(engine)
    }

    fn commit(
        &mut self,
        engine: &RocksEngine,
        writes: &mut Writes,
        effects: Effects,
    ) -> Result<(), StorageError> {
        let version = effects.version;
        assert!(version > effects.shown, "decoded effects are sound");
        assert_eq!(effects.owner, self.facts.owner, "the owner alone writes");
        for (key, value) in effects.writes {
            let old = current(engine, writes, &key)?;
            let old = old
                .as_deref()
                .map(|old| StoredCell::decode(old).ok_or_else(|| corrupt("a row")));
            let old = old.transpose()?;
            if old.as_ref().is_some_and(|old| old.version >= version) {
                continue;
            }
            if old.is_none() {
                self.facts.keys += 1;
            }
            assert!(self.facts.keys > 0, "a row was counted when it was written");
            let cell = StoredCell::encode(version, value.as_deref());
            writes.0.insert(cell_key(&key), Some(cell));
            if value.is_none() {
                writes
                    .0
                    .insert(tombstone_key(version, &key), Some(Vec::new()));
                self.tombstones.entry(version).or_default().push(key);
            }
        }
        self.facts.latest = self.facts.latest.max(version);
        assert!(
            self.facts.latest > effects.shown,
            "what was shown was written"
        );
        self.forget_tombstones(engine, writes, effects.shown)
    }

    /// Forgets deleted keys of which no older write can come.
    fn forget_tombstones(
        &mut self,
        engine: &RocksEngine,
        writes: &mut Writes,
        upto: u64,
    ) -> Result<(), StorageError> {
        let newer = self.tombstones.split_off(&upto.saturating_add(1));
        let old = std::mem::replace(&mut self.tombstones, newer);
        for (version, keys) in old {
            assert!(version <= upto, "an older write may come of newer ones");
            for key in keys {
                writes.0.insert(tombstone_key(version, &key), None);
                let cell = current(engine, writes, &key)?;
                if cell.as_deref() == Some(StoredCell::encode(version, None).as_slice()) {
                    writes.0.insert(cell_key(&key), None);
                    assert!(self.facts.keys > 0, "a deleted key is counted too");
                    self.facts.keys -= 1;
                }
            }
        }
        Ok(())
    }

    /// Has everything on disk that was settled.
    pub(crate) fn sync(&mut self) -> Result<(), StateError> {
        let Some(engine) = &self.engine else {
            return Ok(());
        };
        let mut writes = Writes::default();
        writes.0.insert(FACTS.to_vec(), Some(encode(&self.facts)));
        let synced = writes.write(engine, Durability::Sync);
        synced.map_err(|error| self.home.failed(&error))
    }

    /// Removes the states before this one.
    pub(crate) fn forget_earlier(&self) {
        self.home.remove(|other| other < self.number);
    }
}

fn encode(facts: &Facts) -> Vec<u8> {
    let bytes = postcard::to_stdvec(facts);
    assert!(bytes.is_ok(), "a record can be written down");
    bytes.unwrap_or_default()
}

/// A row's cell, as it is after some writes.
fn current(
    engine: &RocksEngine,
    writes: &Writes,
    key: &[u8],
) -> Result<Option<Vec<u8>>, StorageError> {
    let key = cell_key(key);
    if let Some(written) = writes.0.get(&key) {
        return Ok(written.clone());
    }
    let found = engine.get(&key, Version::MAX)?;
    Ok(found.map(|found| found.value))
}
