//! The way of a batch: into the memtables of RocksDB, then into our log, in one order.
//!
//! The memtables come first because only they may say no (a flush found the disk full) while
//! nothing has happened yet; what they hold is seen by nobody before the commit path publishes its
//! version, which it does after the log has it. Room in the log is reserved before both.
//!
//! Each batch also writes [`LATEST_KEY`]: the highest version, and where the log ends with this
//! batch. A flush writes all of a memtable or nothing, so the record found in the sorted files
//! says what they hold: the log is replayed from there, and files before it are reused.

use std::time::Duration;

use rocksdb::{DB, ReadOptions, ReadTier, WriteOptions};

use super::error;
use crate::engine::{StorageError, Version, WriteBatch};
use crate::log::{CommitLog, Place, Unsynced};
use crate::physical::{self, LATEST_KEY, Record};

/// How far a store got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Highest version written.
    pub latest: Version,
    /// Where the log ends with it; `None` for what was written before there was a log.
    pub applied: Option<Place>,
}

impl Progress {
    fn payload(&self) -> Vec<u8> {
        let mut payload = self.latest.0.to_be_bytes().to_vec();
        if let Some(place) = self.applied {
            payload.extend_from_slice(&place.segment.to_be_bytes());
            payload.extend_from_slice(&place.offset.to_be_bytes());
        }
        payload
    }

    fn parse(payload: &[u8]) -> Result<Self, StorageError> {
        let number = |at: usize| {
            let bytes = payload.get(at..at + 8)?.try_into().ok()?;
            Some(u64::from_be_bytes(bytes))
        };
        match (payload.len(), number(0), number(8), number(16)) {
            (8, Some(latest), ..) => Ok(Self {
                latest: Version(latest),
                applied: None,
            }),
            (24, Some(latest), Some(segment), Some(offset)) => Ok(Self {
                latest: Version(latest),
                applied: Some(Place { segment, offset }),
            }),
            _ => Err(StorageError::Corrupt(
                "the record of the latest version is neither 8 nor 24 bytes long".to_owned(),
            )),
        }
    }

    /// A batch that says only this.
    pub fn stored(&self) -> rocksdb::WriteBatch {
        let mut out = rocksdb::WriteBatch::new();
        self.put_into(&mut out);
        out
    }

    fn put_into(&self, out: &mut rocksdb::WriteBatch) {
        let mut stored = Vec::new();
        physical::encode_value(LATEST_KEY, Record::Put(&self.payload()), &mut stored);
        out.put(LATEST_KEY, &stored);
    }

    /// What the store says, or with [`ReadTier::Persisted`] its sorted files alone.
    pub fn read(db: &DB, tier: ReadTier) -> Result<Self, StorageError> {
        let mut options = ReadOptions::default();
        options.set_read_tier(tier);
        let stored = db
            .get_opt(LATEST_KEY, &options)
            .map_err(|error| error::map("cannot read the latest version", &error))?;
        match stored {
            None => Ok(Self::default()),
            Some(stored) => match physical::decode_value(LATEST_KEY, &stored)? {
                Record::Put(payload) => Self::parse(payload),
                Record::Delete => Err(StorageError::Corrupt(
                    "the latest version is deleted".to_owned(),
                )),
            },
        }
    }
}

/// Options of every write: the log is ours.
pub fn options() -> WriteOptions {
    let mut options = WriteOptions::default();
    options.disable_wal(true);
    options
}

/// `batch` as RocksDB stores it, with how far the store is then.
pub fn stored_batch(
    batch: &WriteBatch,
    before: Version,
    applied: Place,
) -> (rocksdb::WriteBatch, Version) {
    let mut latest = before;
    let mut out = rocksdb::WriteBatch::new();
    let (mut key, mut stored) = (Vec::new(), Vec::new());
    for (version, user_key, value) in &batch.writes {
        key.clear();
        physical::push_prefix(user_key, &mut key);
        physical::push_version(*version, &mut key);
        let record = value.as_deref().map_or(Record::Delete, Record::Put);
        physical::encode_value(&key, record, &mut stored);
        out.put(&key, &stored);
        latest = latest.max(*version);
    }
    let progress = Progress {
        latest,
        applied: Some(applied),
    };
    progress.put_into(&mut out);
    (out, latest)
}

/// Pause between tries while writes are stopped.
const PAUSE: Duration = Duration::from_millis(5);

/// Tries before a write gives up: a minute of pauses. Flushes and compactions that are only
/// behind catch up within seconds.
const TRIES: u32 = 12_000;

/// Puts what `make` returns into the memtables, waiting while flushes or compactions are behind;
/// the number of bytes.
///
/// Asked to wait, RocksDB would wait without end when writes are stopped because a flush found the
/// disk full. Asked not to, it reports the stop, and a new try meets the error of the flush as soon
/// as there is one. It slows no write down before it stops them ([`super::options`]).
///
/// # Errors
/// What the flush met; [`StorageError::Behind`] when writes stay stopped. Nothing is written then.
pub fn put(db: &DB, mut make: impl FnMut() -> rocksdb::WriteBatch) -> Result<usize, StorageError> {
    let mut options = options();
    options.set_no_slowdown(true);
    until_taken(
        || {
            let batch = make();
            let bytes = batch.size_in_bytes();
            match db.write_opt(batch, &options) {
                Ok(()) => Ok(Ok(bytes)),
                Err(stop) if stop.kind() == rocksdb::ErrorKind::Incomplete => {
                    Ok(Err(stop.into_string()))
                }
                Err(error) => Err(error::map("cannot write", &error)),
            }
        },
        || std::thread::park_timeout(PAUSE),
    )
}

/// Tries until there is a result other than a stop, which says why.
fn until_taken<T>(
    mut attempt: impl FnMut() -> Result<Result<T, String>, StorageError>,
    mut pause: impl FnMut(),
) -> Result<T, StorageError> {
    let mut why = String::new();
    for _ in 0..TRIES {
        match attempt()? {
            Ok(taken) => return Ok(taken),
            Err(stop) => why = stop,
        }
        pause();
    }
    Err(StorageError::Behind(format!(
        "flushes and compactions did not catch up within a minute, nothing was written: {why}"
    )))
}

/// What only the writer of a batch touches.
pub struct Writer {
    log: CommitLog,
    /// The segment at whose start the sorted files were last asked what they hold.
    asked_at: u64,
}

impl Writer {
    /// Over a log that was just opened.
    pub fn new(log: CommitLog) -> Self {
        Self { log, asked_at: 0 }
    }

    /// Reserves room in the log for `batch`; where it will end.
    ///
    /// # Errors
    /// As [`CommitLog::prepare`].
    pub fn prepare(&mut self, batch: &WriteBatch) -> Result<Place, StorageError> {
        self.log.prepare(batch)
    }

    /// Logs the prepared batch, which the memtables have.
    ///
    /// # Errors
    /// [`StorageError::Io`]: whether the batch will be there after a restart is not known, and no
    /// write is taken until then.
    pub fn append(&mut self) -> Result<Unsynced, StorageError> {
        self.log.append()
    }

    /// Takes nothing more, because a wait for a batch failed.
    pub fn stop(&mut self, why: &StorageError) {
        self.log.stop(why);
    }

    /// Lets the log reuse what the sorted files hold, once a segment.
    pub fn retire(&mut self, db: &DB, end: Place) -> Result<(), StorageError> {
        if self.asked_at == end.segment || !self.log.has_sealed() {
            return Ok(());
        }
        self.asked_at = end.segment;
        if let Some(applied) = Progress::read(db, ReadTier::Persisted)?.applied {
            self.log.retire(applied);
        }
        Ok(())
    }

    /// Where the log ends.
    pub fn end(&self) -> Option<Place> {
        self.log.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Durability, Engine as _};
    use crate::rocks::{Options, RocksEngine};

    #[test]
    fn progress_is_read_back_and_nothing_else_is() {
        for applied in [
            None,
            Some(Place {
                segment: 3,
                offset: 99,
            }),
        ] {
            let progress = Progress {
                latest: Version(7),
                applied,
            };
            assert_eq!(Progress::parse(&progress.payload()).unwrap(), progress);
        }
        for length in (0..40).filter(|length| ![8, 24].contains(length)) {
            assert!(Progress::parse(&vec![1; length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_write_waits_while_writes_are_stopped_but_not_for_ever() {
        let stopped = || Ok(Err::<u32, _>("Write stall".to_owned()));
        let mut pauses = 0;
        let error = until_taken(stopped, || pauses += 1).unwrap_err();
        assert!(matches!(error, StorageError::Behind(_)), "{error:?}");
        assert_eq!(pauses, TRIES);

        let mut stops = 7;
        let attempt = || {
            stops -= 1;
            Ok((stops == 0).then_some(3).ok_or_else(String::new))
        };
        assert_eq!(until_taken(attempt, || ()).unwrap(), 3);

        let mut stops = 3;
        let attempt = || {
            stops -= 1;
            match stops {
                0 => Err(StorageError::Full("no space".to_owned())),
                _ => Ok(Err::<(), _>(String::new())),
            }
        };
        let error = until_taken(attempt, || ()).unwrap_err();
        assert!(matches!(error, StorageError::Full(_)), "{error:?}");
    }

    /// Format 1: batches in RocksDB's own log, and no place in the record of the latest version.
    #[test]
    fn a_store_of_format_1_is_taken_over_with_what_waits_in_its_old_log() {
        let directory = tempfile::tempdir().unwrap();
        let open = || RocksEngine::open(directory.path(), &Options::default()).unwrap();
        drop(open());
        std::fs::remove_dir_all(directory.path().join(crate::log::FOLDER)).unwrap();
        let old = crate::format::read(directory.path()).unwrap().unwrap();
        let old = crate::format::Format { version: 1, ..old };
        crate::format::write(directory.path(), &old).unwrap();
        {
            let settings = rocksdb::Options::default();
            let db = DB::open(&settings, directory.path().join("rocksdb")).unwrap();
            let (mut key, mut stored) = (Vec::new(), Vec::new());
            physical::push_prefix(b"k", &mut key);
            physical::push_version(Version(5), &mut key);
            physical::encode_value(&key, Record::Put(b"old"), &mut stored);
            db.put(&key, &stored).unwrap();
            let latest = Progress {
                latest: Version(5),
                applied: None,
            };
            physical::encode_value(LATEST_KEY, Record::Put(&latest.payload()), &mut stored);
            db.put(LATEST_KEY, &stored).unwrap();
        }
        for expected in [5, 6] {
            let engine = open();
            assert_eq!(engine.latest().unwrap(), Version(expected));
            let found = engine.get(b"k", Version::MAX).unwrap().unwrap();
            assert_eq!((found.version, found.value), (Version(5), b"old".to_vec()));
            let writes = vec![(Version(6), b"n".to_vec(), Some(b"new".to_vec()))];
            let batch = WriteBatch { writes };
            engine.write(&batch, Durability::Sync).unwrap();
        }
        let now = crate::format::read(directory.path()).unwrap().unwrap();
        assert_eq!(now.version, crate::format::CURRENT);
    }
}
