//! How far the sorted files got, told by themselves.
//!
//! Each file made of a memtable also holds [`LATEST_KEY`]: the highest version in it, and where the
//! log ended with its last batch. Files are taken in whole or not at all and in order, so the
//! record found says what all of them hold: the log is replayed from there, and files before it are
//! reused.

use rocksdb::{DB, ReadOptions, ReadTier};

use super::error;
use crate::error::StorageError;
use crate::log::LogPosition;
use crate::model::Version;
use crate::physical::{self, LATEST_KEY, Record};

/// How far a store, or a part of it, got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Highest version written.
    pub latest: Version,
    /// Where the log ends with it; `None` for what was written before there was a log.
    pub applied: Option<LogPosition>,
}

impl Progress {
    /// Whether `later` has all of this: neither versions nor the log go back.
    pub fn is_at_most(self, later: Self) -> bool {
        self.latest <= later.latest && self.applied <= later.applied
    }

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
                applied: Some(LogPosition { segment, offset }),
            }),
            _ => Err(StorageError::Corrupt(
                "the record of the latest version is neither 8 nor 24 bytes long".to_owned(),
            )),
        }
    }

    /// The value it is stored as, under [`LATEST_KEY`].
    pub fn stored(&self) -> Vec<u8> {
        let (mut stored, payload) = (Vec::new(), self.payload());
        assert_eq!(
            Self::parse(&payload).ok(),
            Some(*self),
            "progress is read as it was written"
        );
        physical::encode_value(LATEST_KEY, Record::Put(&payload), &mut stored);
        stored
    }

    /// What RocksDB says, or with [`ReadTier::Persisted`] its sorted files alone.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine as _;
    use crate::model::{Durability, WriteBatch};
    use crate::rocks::{Options, RocksEngine};

    #[test]
    fn progress_is_read_back_and_nothing_else_is() {
        for applied in [
            None,
            Some(LogPosition {
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
            let next = Version(expected + 1);
            let writes = vec![(next, b"n".to_vec(), Some(b"new".to_vec()))];
            let batch = WriteBatch { writes };
            engine.write(&batch, Durability::Sync).unwrap();
        }
        let now = crate::format::read(directory.path()).unwrap().unwrap();
        assert_eq!(now.version, crate::format::CURRENT);
    }
}
