//! Compaction profiles: what a database and a worker must have in common.

#[cfg(feature = "rocksdb")]
use rocksdb::Options;

#[cfg(feature = "rocksdb")]
use crate::shape::Shape;

/// A kind of database, by the options that no options file can hold: comparator, merge operator,
/// compaction filter, prefix extractor, table format. Both sides must mean the same by it.
pub trait CompactionProfile: Send + Sync {
    /// Its name, which changes whenever its meaning does.
    fn name(&self) -> &'static str;

    /// What outputs depend on: names and versions of the parts. A worker that lacks one of them
    /// is never asked.
    fn parts(&self) -> &'static [&'static str];

    /// The options of one job.
    ///
    /// # Errors
    /// `parameters` are not in the format of this release.
    #[cfg(feature = "rocksdb")]
    fn prepare(&self, parameters: &[u8]) -> Result<Prepared, String>;
}

/// The options that a worker runs one job with.
#[cfg(feature = "rocksdb")]
pub struct Prepared {
    /// The options.
    pub options: Options,
    /// Called once after the compaction: notes for the database. They are not part of the outputs:
    /// they may be lost, and they may be wrong.
    pub notes: Box<dyn FnOnce() -> Vec<u8>>,
}

/// RocksDB with nothing of one's own.
#[derive(Debug, Clone, Copy, Default)]
pub struct Plain;

impl CompactionProfile for Plain {
    fn name(&self) -> &'static str {
        "plain.1"
    }

    fn parts(&self) -> &'static [&'static str] {
        &[]
    }

    #[cfg(feature = "rocksdb")]
    fn prepare(&self, _: &[u8]) -> Result<Prepared, String> {
        Ok(Prepared {
            options: Options::default(),
            notes: Box::new(Vec::new),
        })
    }
}

/// RocksDB with no code of one's own, but with tables and prefixes of one's own shape: the
/// parameters of a job are a [`Shape`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Shaped;

impl CompactionProfile for Shaped {
    fn name(&self) -> &'static str {
        "shaped.1"
    }

    fn parts(&self) -> &'static [&'static str] {
        &[
            "comparator: bytes",
            "merge operator, filter, partitioner, collectors: none",
            "tables and prefix: as RocksDB reads the job's text",
        ]
    }

    #[cfg(feature = "rocksdb")]
    fn prepare(&self, parameters: &[u8]) -> Result<Prepared, String> {
        let text = Shape::decode(parameters)?.text();
        let options = Options::default().get_options_from_string(&text);
        Ok(Prepared {
            options: options.map_err(|error| format!("{error}: {text}"))?,
            notes: Box::new(Vec::new),
        })
    }
}
