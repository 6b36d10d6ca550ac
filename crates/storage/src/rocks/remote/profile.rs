//! The compaction profile of this store.

use std::sync::Arc;

use manxdb_compaction_edge::{CompactionProfile, Prepared};
use rocksdb::Cache;
use serde::{Deserialize, Serialize};

use super::notes;
use crate::collection::Scope;
use crate::dead_rows::{DeadRows, DroppedPrefix, ExpiredRows, ExpiryOf};
use crate::model::Version;
use crate::rocks::filter::CollectorFactory;
use crate::rocks::options;
use crate::rocks::tombstones::Tombstones;

/// Memory for blocks that a worker reads, indexes and filters included; all its jobs share it.
/// Inputs are read once from front to back.
const CACHE_BYTES: usize = 32 << 20;

/// Bytes of dropped prefixes that travel with one job at most: they pass through the control plane.
/// What does not fit is dropped by a later compaction.
const DROPPED_BYTES_MAX: usize = 64 << 10;

/// The profile of this store: workers drop versions that no reader needs, and dead rows.
pub struct Versions {
    cache: Cache,
    expiry_of: Option<ExpiryOf>,
}

impl Default for Versions {
    fn default() -> Self {
        Self {
            cache: Cache::new_lru_cache(CACHE_BYTES),
            expiry_of: None,
        }
    }
}

impl Versions {
    /// With `expiry_of` for the rows whose owner has them expire
    /// ([`ExpiredRows`]); without it they stay.
    #[must_use]
    pub fn with_expiry(expiry_of: ExpiryOf) -> Self {
        Self {
            expiry_of: Some(expiry_of),
            ..Self::default()
        }
    }
}

/// Parameters of one compaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameters {
    /// The watermark at the time of the request: readers ask only for versions at or above it.
    watermark: u64,
    /// Every file of the store is an input.
    is_full: bool,
    /// Prefixes that were dropped, and the versions at which they were.
    dropped: Vec<(Vec<u8>, u64)>,
    /// Of rows that have expired the prefix, the last time that is over, and the version.
    expired: Option<(Vec<u8>, u64, u64)>,
}

impl Parameters {
    /// Those of a compaction that begins now: of `dead` what it may drop.
    pub fn new(watermark: Version, is_full: bool, dead: &DeadRows) -> Self {
        let mut bytes = 0;
        let fitting = dead.dropped_by(watermark).take_while(|one| {
            bytes += one.prefix.len();
            bytes <= DROPPED_BYTES_MAX
        });
        let dropped = fitting.map(|one| (one.prefix.clone(), one.version.0));
        let dropped: Vec<_> = dropped.collect();
        assert!(
            dropped.iter().all(|(_, version)| *version <= watermark.0),
            "a worker drops nothing that a reader may ask for"
        );
        let expired = dead.expired_by(watermark);
        Self {
            watermark: watermark.0,
            is_full,
            dropped,
            expired: expired.map(|one| (one.prefix.clone(), one.until, one.version.0)),
        }
    }

    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        // Numbers and bytes into memory: nothing there can fail.
        let bytes = postcard::to_stdvec(self).unwrap_or_default();
        assert_eq!(
            Self::decode(&bytes).as_ref(),
            Ok(self),
            "a worker reads what the database wrote"
        );
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self, String> {
        let parameters: Self = match postcard::take_from_bytes(bytes) {
            Ok((parameters, [])) => parameters,
            Ok(_) => return Err("parameters of a compaction are followed by more".to_owned()),
            Err(error) => {
                return Err(format!(
                    "parameters of a compaction cannot be read: {error}"
                ));
            }
        };
        if parameters
            .dropped
            .iter()
            .any(|(prefix, _)| prefix.is_empty())
        {
            return Err("parameters of a compaction drop every key".to_owned());
        }
        Ok(parameters)
    }

    fn dead(&self, expiry_of: Option<ExpiryOf>) -> DeadRows {
        let dropped = self.dropped.iter().map(|(prefix, version)| DroppedPrefix {
            prefix: prefix.clone(),
            version: Version(*version),
        });
        let expired = self.expired.as_ref().zip(expiry_of);
        DeadRows {
            dropped: dropped.collect(),
            expired: expired.map(|((prefix, until, version), expiry_of)| ExpiredRows {
                prefix: prefix.clone(),
                until: *until,
                version: Version(*version),
                expiry_of,
            }),
        }
    }
}

impl CompactionProfile for Versions {
    fn name(&self) -> &'static str {
        "manxdb.versions.2"
    }

    fn parts(&self) -> &'static [&'static str] {
        &options::UNSAVED
    }

    fn prepare(&self, parameters: &[u8]) -> Result<Prepared, String> {
        let parameters = Parameters::decode(parameters)?;
        let kept = Arc::new(Tombstones::default());
        let collector = CollectorFactory::remote(
            Version(parameters.watermark),
            Scope::of(parameters.is_full),
            Arc::clone(&kept),
            parameters.dead(self.expiry_of),
        );
        let mut settings = rocksdb::Options::default();
        options::unsaved(&mut settings, &self.cache, collector);
        Ok(Prepared {
            options: settings,
            notes: Box::new(move || notes::encode(&kept.take())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dropped(prefix: Vec<u8>, version: u64) -> DroppedPrefix {
        let version = Version(version);
        DroppedPrefix { prefix, version }
    }

    #[test]
    fn parameters_are_read_as_they_were_written_and_nothing_else_is() {
        let dead = DeadRows {
            dropped: vec![dropped(b"Re".to_vec(), 7), dropped(b"Rm".to_vec(), 9)],
            expired: Some(ExpiredRows {
                prefix: b"Rm".to_vec(),
                until: 3,
                version: Version(8),
                expiry_of: |_| Some(1),
            }),
        };
        let parameters = Parameters::new(Version(8), true, &dead);
        assert_eq!(parameters.dropped, [(b"Re".to_vec(), 7)]);
        assert_eq!(parameters.expired, Some((b"Rm".to_vec(), 3, 8)));
        let bytes = parameters.encode();
        assert_eq!(Parameters::decode(&bytes), Ok(parameters.clone()));
        assert_eq!(parameters.dead(Some(|_| None)).dropped, dead.dropped[..1]);
        // A worker that cannot tell times keeps what has expired.
        assert!(parameters.dead(None).expired.is_none());
        for wrong in [&bytes[..bytes.len() - 1], &[1, 2], &[], &[8, 1, 1, 0, 1, 0]] {
            assert!(Parameters::decode(wrong).is_err(), "{wrong:?}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(Parameters::decode(&longer).is_err());
    }

    #[test]
    fn prefixes_that_do_not_fit_wait_for_another_compaction() {
        let dead = DeadRows {
            dropped: (0..100).map(|_| dropped(vec![b'R'; 1 << 10], 1)).collect(),
            expired: None,
        };
        let parameters = Parameters::new(Version(1), false, &dead);
        assert_eq!(parameters.dropped.len(), DROPPED_BYTES_MAX >> 10);
        assert_eq!(parameters.expired, None);
    }
}
