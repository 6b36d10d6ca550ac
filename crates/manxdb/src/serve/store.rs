//! Where a server's rows are: in its data directory, in memory servers, or on all servers of a cluster.

use std::path::Path;
use std::sync::Arc;

use manxdb_compaction::edge::Pool;
use manxdb_gateway::admin::{Gauge, HealthReport, count};
use manxdb_storage::{DamagedFile, Engine as _, Options, RocksEngine, backup, closing};
use manxdb_txn::{CommitPath, LocalOptions, LocalPath};
use serde_json::Value;

use super::compaction;
use super::health::StoreHealth;
use super::memory::MemoryRows;
use crate::config::{Rows, Settings};
use crate::fault::Fault;

/// What a server keeps rows in.
pub enum Store {
    /// Its own.
    Local(Arc<RocksEngine>, Arc<LocalPath>),
    /// Others' memory.
    Memory(MemoryRows),
    /// A copy of what a cluster has, for as long as this server is its primary.
    Replicated(Arc<RocksEngine>),
}

impl Store {
    /// Opens it, and the commit path on it.
    ///
    /// # Errors
    /// What is in the way.
    pub fn open(settings: &Settings) -> Result<(Self, Arc<dyn CommitPath>), Fault> {
        match &settings.rows {
            Rows::Local => {
                let engine = open_engine(settings, &settings.data)?;
                closing::check(&settings.data, engine.latest()?)?;
                let path = LocalPath::open(engine.clone(), LocalOptions::default())
                    .map_err(manxdb_sql::error::SqlError::from)?;
                let path = Arc::new(path);
                Ok((Self::Local(engine, Arc::clone(&path)), path))
            }
            Rows::Memory(at, used) => {
                let rows = MemoryRows::open(&settings.data, at, *used)?;
                let path = rows.path();
                Ok((Self::Memory(rows), path))
            }
            Rows::Curp(_) => Err(Fault::Other(
                "replicated rows come from the cluster, not from a store".to_owned(),
            )),
        }
    }

    /// Where it is, for people.
    pub fn place(&self, settings: &Settings) -> String {
        match self {
            Self::Local(..) => settings.data.display().to_string(),
            Self::Memory(rows) => rows.to_string(),
            Self::Replicated(_) => match &settings.rows {
                Rows::Curp(at) => format!(
                    "the rows of {}, as the master, node {}; durability as that file says",
                    at.cluster.display(),
                    at.node
                ),
                _ => settings.data.display().to_string(),
            },
        }
    }

    /// How it is, by what was found out about reads and writes.
    pub fn health(&self, known: &StoreHealth) -> HealthReport {
        match self {
            Self::Local(engine, _) | Self::Replicated(engine) => {
                known.report().or_worse(damage(&engine.damaged_files()))
            }
            Self::Memory(rows) => rows.health(known),
        }
    }

    /// Numbers for metrics.
    pub fn gauges(&self) -> Vec<Gauge> {
        let gauge = |name: String, value: f64| Gauge { name, value };
        match self {
            Self::Local(engine, _) | Self::Replicated(engine) => {
                let stats = engine.stats().into_iter();
                let stats = stats.map(|(name, value)| gauge(format!("manxdb_{name}"), value));
                let compactions = engine.compaction_numbers().into_iter();
                let compactions = compactions.map(|(name, value)| gauge(name, count(value)));
                stats.chain(compactions).collect()
            }
            Self::Memory(rows) => {
                let numbers = rows.numbers().into_iter();
                let gauges = numbers.map(|(name, value)| gauge(name.to_owned(), count(value)));
                gauges.collect()
            }
        }
    }

    /// Writes a backup and describes it.
    ///
    /// # Errors
    /// Why there is none.
    pub fn back_up(&self, directory: &Path, label: &str) -> Result<Value, String> {
        let engine = match self {
            Self::Local(engine, _) => engine,
            Self::Memory(_) => {
                return Err(
                    "rows in memory servers cannot be backed up: use mariadb-dump".to_owned(),
                );
            }
            Self::Replicated(_) => {
                return Err("replicated rows cannot be backed up: use mariadb-dump".to_owned());
            }
        };
        let made = backup::create(engine.as_ref(), directory, label);
        let manifest = made.map_err(|error| error.to_string())?;
        serde_json::to_value(manifest).map_err(|error| error.to_string())
    }

    /// Ends in order.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn close(&self) -> Result<(), Fault> {
        let engine = match self {
            Self::Local(engine, _) => engine,
            Self::Memory(rows) => {
                rows.close();
                return Ok(());
            }
            // The next start begins with what the cluster has.
            Self::Replicated(_) => return Ok(()),
        };
        // What is noted is in sorted files: nothing that a crash may still take. A disk that cannot
        // be written now is no reason to end in disorder.
        let latest = engine.latest()?;
        let noted = engine
            .flush()
            .and_then(|()| closing::note(engine.directory(), latest));
        if let Err(error) = noted {
            tracing::warn!("the end is not noted: {error}");
        }
        Ok(())
    }
}

/// What damaged sorted files mean for clients.
fn damage(files: &[DamagedFile]) -> HealthReport {
    let Some(first) = files.first() else {
        return HealthReport::ok();
    };
    let what = format!(
        "reads of some rows fail: {} damaged file(s) of sorted rows, the first is {} ({})",
        files.len(),
        first.name,
        first.why
    );
    HealthReport::degraded(what, "restore a backup, and check the disk")
}

/// The engine in a directory, with the memory that a server gives it.
///
/// # Errors
/// It cannot be opened.
pub fn open_engine(settings: &Settings, directory: &Path) -> Result<Arc<RocksEngine>, Fault> {
    let mut options = Options {
        block_cache_bytes: settings.block_cache_bytes,
        write_buffer_bytes: settings.write_buffer_bytes,
        ..Options::default()
    };
    let pool = settings.compaction.as_ref();
    if let Some(pool) = pool {
        options.level0_files = pool.level0_files;
    }
    let pool = pool.map(|pool| compaction::pool(pool, directory));
    let pool = pool.transpose()?;
    if pool.is_some() {
        options.background_jobs = compaction::JOBS;
    }
    let pool = pool.as_ref().map(|pool| pool as &dyn Pool);
    Ok(Arc::new(RocksEngine::open_with(directory, &options, pool)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_is_named_with_what_to_do() {
        assert_eq!(damage(&[]), HealthReport::ok());
        let file = DamagedFile {
            name: "000009.sst".to_owned(),
            why: "block checksum mismatch".to_owned(),
        };
        let line = damage(&[file]).line();
        assert!(
            line.contains("000009.sst (block checksum mismatch)"),
            "{line}"
        );
        assert!(
            line.ends_with("restore a backup, and check the disk"),
            "{line}"
        );
    }
}
