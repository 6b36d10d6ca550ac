//! Rows of one moment, read while the engine goes on.
//!
//! | bytes of an image | what |
//! |---|---|
//! | 1 | [`FORMAT`] |
//! | 8, 8, 8 | owner, newest version, number of keys: little-endian |
//! | then each key, in ascending order: 4, 4 | length of the key and of its cell, little-endian |
//! | … | key, cell |
//! | 4 | CRC-32 of all before, little-endian |

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use manxdb_curp::{ReadImage, StateError};
use manxdb_storage::{Direction, Engine as _, KeyRange, RocksEngine, StorageError, Version};
use parking_lot::Mutex;

use super::{CELL, Facts, Home, StoredCell, StoredRows, corrupt};

/// The layout of an image.
pub(super) const FORMAT: u8 = 1;
/// Bytes of its end.
pub(super) const TRAILER: usize = size_of::<u32>();
/// Bytes of its beginning.
pub(super) const HEADER: usize = 1 + 3 * size_of::<u64>();
/// Bytes of rows that are read at once, but for the last one.
const CHUNK_BYTES: usize = 1 << 20;

/// Versions of the engine that somebody reads at, with how many do.
#[derive(Debug, Default)]
pub(super) struct Pins(Mutex<BTreeMap<Version, usize>>);

impl Pins {
    /// Lets the engine forget what nobody reads.
    pub(super) fn let_go(&self, engine: &RocksEngine) -> Result<(), StorageError> {
        let pinned = self.0.lock();
        let latest = engine.latest()?;
        let oldest = pinned.keys().next().copied().unwrap_or(latest);
        assert!(oldest <= latest, "nobody reads what is to come");
        engine.set_watermark(oldest);
        Ok(())
    }
}

/// One of those, until it is dropped.
#[derive(Debug)]
struct Pin {
    pins: Arc<Pins>,
    at: Version,
}

impl Pin {
    fn new(pins: &Arc<Pins>, at: Version) -> Self {
        *pins.0.lock().entry(at).or_default() += 1;
        let pins = Arc::clone(pins);
        Self { pins, at }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut pinned = self.pins.0.lock();
        if let Some(count) = pinned.get_mut(&self.at) {
            *count -= 1;
            if *count == 0 {
                pinned.remove(&self.at);
            }
        }
    }
}

/// All rows as they were at one moment.
#[derive(Clone)]
pub struct StoredView {
    home: Arc<Home>,
    /// Nothing where no row was ever written.
    rows: Option<(Arc<RocksEngine>, Arc<Pin>)>,
    facts: Arc<Facts>,
}

impl std::fmt::Debug for StoredView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredView")
            .field("end", &self.facts.end)
            .finish_non_exhaustive()
    }
}

impl StoredView {
    pub(super) fn new(stored: &StoredRows) -> Self {
        let pinned = stored.engine.as_ref().map(|engine| {
            // It cannot fail: the number is in memory.
            let at = engine.latest().unwrap_or(Version::MAX);
            (Arc::clone(engine), Arc::new(Pin::new(&stored.pins, at)))
        });
        Self {
            home: Arc::clone(&stored.home),
            rows: pinned,
            facts: Arc::new(stored.facts.clone()),
        }
    }

    /// The newest version of any key, deleted ones too.
    #[must_use]
    pub fn latest(&self) -> Version {
        Version(self.facts.latest)
    }

    /// How many keys there are, deleted ones that are remembered included.
    #[must_use]
    pub fn keys(&self) -> u64 {
        self.facts.keys
    }

    /// Where they lie.
    #[must_use]
    pub fn home(&self) -> &Arc<Home> {
        &self.home
    }

    /// Keys behind `after` with their cells, until `enough` says so; whether there may be more.
    fn read(
        &self,
        after: Option<&[u8]>,
        mut each: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<bool, StorageError> {
        let Some((engine, pin)) = &self.rows else {
            return Ok(false);
        };
        let mut range = KeyRange::prefix(&[CELL]);
        if let Some(after) = after {
            range.start = Bound::Excluded([&[CELL][..], after].concat());
        }
        let mut cursor = engine.scan(&range, pin.at, Direction::Forward)?;
        while let Some(entry) = cursor.next()? {
            let key = entry.key.get(1..).ok_or_else(|| corrupt("a key"))?;
            if !each(key, entry.value) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Shows live keys in order, with the versions that wrote them.
    ///
    /// # Errors
    /// The engine's, and that of `each`, which ends it.
    pub fn each_live<E: From<StorageError>>(
        &self,
        mut each: impl FnMut(&[u8], Version, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut ended = Ok(());
        self.read(None, |key, cell| {
            ended = match StoredCell::decode(cell) {
                None => Err(corrupt("a row").into()),
                Some(StoredCell {
                    version,
                    value: Some(value),
                }) => each(key, Version(version), value),
                Some(_) => Ok(()),
            };
            ended.is_ok()
        })?;
        ended
    }
}

/// How far an image is read.
#[derive(Debug)]
enum Place {
    /// The header comes next.
    Beginning,
    /// The keys behind this one come next.
    Behind(Option<Vec<u8>>),
    /// The checksum comes next.
    Trailer,
    /// All of it is read.
    End,
}

/// Reads an image.
#[derive(Debug)]
pub(crate) struct StoredImage {
    view: StoredView,
    place: Place,
    checksum: crc32fast::Hasher,
    /// Keys that were read.
    keys: u64,
}

impl StoredImage {
    pub(crate) fn new(view: StoredView) -> Self {
        Self {
            view,
            place: Place::Beginning,
            checksum: crc32fast::Hasher::new(),
            keys: 0,
        }
    }

    fn header(&self) -> Vec<u8> {
        let facts = &self.view.facts;
        let mut bytes = vec![FORMAT];
        for number in [facts.owner.0, facts.latest, facts.keys] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        assert_eq!(bytes.len(), HEADER, "an image begins with its header");
        bytes
    }

    /// Some keys behind `after` with their cells, and where the image goes on.
    fn rows(&self, after: Option<&[u8]>) -> Result<(Vec<u8>, u64, Place), StorageError> {
        let (mut bytes, mut count) = (Vec::new(), 0);
        // Where the last key lies in the bytes.
        let mut last = 0..0;
        let goes_on = self.view.read(after, |key, cell| {
            if bytes.len() >= CHUNK_BYTES {
                return false; // it begins the next chunk
            }
            for length in [key.len(), cell.len()] {
                let length = u32::try_from(length);
                assert!(length.is_ok(), "a transaction has less");
                bytes.extend_from_slice(&length.unwrap_or(0).to_le_bytes());
            }
            last = bytes.len()..bytes.len() + key.len();
            bytes.extend_from_slice(key);
            bytes.extend_from_slice(cell);
            count += 1;
            true
        })?;
        let place = if goes_on {
            Place::Behind(Some(bytes[last].to_vec()))
        } else {
            Place::Trailer
        };
        Ok((bytes, count, place))
    }
}

impl ReadImage for StoredImage {
    fn read(&mut self) -> Result<Option<Vec<u8>>, StateError> {
        let (bytes, next) = match &self.place {
            Place::Beginning => (self.header(), Place::Behind(None)),
            Place::Behind(after) => {
                let read = self.rows(after.as_deref());
                let (bytes, keys, next) = read.map_err(|error| self.view.home.failed(&error))?;
                self.keys += keys;
                (bytes, next)
            }
            Place::Trailer => {
                let announced = self.view.facts.keys;
                assert_eq!(
                    self.keys, announced,
                    "an image has the keys that were counted"
                );
                let checksum = self.checksum.clone().finalize();
                self.place = Place::End;
                return Ok(Some(checksum.to_le_bytes().to_vec()));
            }
            Place::End => return Ok(None),
        };
        self.checksum.update(&bytes);
        self.place = next;
        Ok(Some(bytes))
    }

    fn again(&self) -> Box<dyn ReadImage> {
        Box::new(Self::new(self.view.clone()))
    }
}
