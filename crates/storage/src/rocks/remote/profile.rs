//! The compaction profile of this store.

use std::sync::Arc;

use manxdb_compaction_edge::{CompactionProfile, Prepared};
use rocksdb::Cache;
use serde::{Deserialize, Serialize};

use super::notes;
use crate::collection::Scope;
use crate::model::Version;
use crate::rocks::filter::CollectorFactory;
use crate::rocks::options;
use crate::rocks::tombstones::Tombstones;

/// Memory for blocks that a worker reads, indexes and filters included; all its jobs share it.
/// Inputs are read once from front to back.
const CACHE_BYTES: usize = 32 << 20;

/// The profile of this store: workers drop versions that no reader needs.
pub struct Versions {
    cache: Cache,
}

impl Default for Versions {
    fn default() -> Self {
        Self {
            cache: Cache::new_lru_cache(CACHE_BYTES),
        }
    }
}

/// Parameters of one compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameters {
    /// The watermark at the time of the request: readers ask only for versions at or above it.
    pub watermark: u64,
    /// Every file of the store is an input.
    pub is_full: bool,
}

impl Parameters {
    /// As bytes.
    pub fn encode(self) -> Vec<u8> {
        // Two numbers into memory: nothing there can fail.
        let bytes = postcard::to_stdvec(&self).unwrap_or_default();
        assert_eq!(
            Self::decode(&bytes),
            Ok(self),
            "a worker reads the watermark that the database wrote"
        );
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self, String> {
        match postcard::take_from_bytes(bytes) {
            Ok((parameters, [])) => Ok(parameters),
            Ok(_) => Err("parameters of a compaction are followed by more".to_owned()),
            Err(error) => Err(format!(
                "parameters of a compaction cannot be read: {error}"
            )),
        }
    }
}

impl CompactionProfile for Versions {
    fn name(&self) -> &'static str {
        "manxdb.versions.1"
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

    #[test]
    fn parameters_are_read_as_they_were_written_and_nothing_else_is() {
        let parameters = Parameters {
            watermark: u64::MAX - 1,
            is_full: true,
        };
        let bytes = parameters.encode();
        assert_eq!(Parameters::decode(&bytes), Ok(parameters));
        for wrong in [&bytes[..bytes.len() - 1], &[1, 2], &[]] {
            assert!(Parameters::decode(wrong).is_err(), "{wrong:?}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(Parameters::decode(&longer).is_err());
    }
}
