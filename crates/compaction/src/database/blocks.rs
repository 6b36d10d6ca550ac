//! Verifies that RocksDB can read a worker's outputs: every block against its checksum, before the
//! outputs are files of a database.
//!
//! RocksDB reads only files of a database, so a manifest that names the outputs and nothing else
//! makes a database of the attempt's directory. It is opened read-only and removed again. No other
//! process uses the directory, and the sweep of the staging directory removes what a crash leaves.

use std::fs;
use std::io;
use std::path::Path;

use crate::edge::TableFunctions;
use crate::rocksdb_files::manifest::catalogue::{CatalogueEntry, manifest_of};

const CURRENT: &str = "CURRENT";
const MANIFEST: &str = "MANIFEST-000001";

/// Why outputs are not believed.
#[derive(Debug)]
pub(super) enum Unread {
    /// RocksDB's message: the files are not what RocksDB writes.
    Damaged(String),
    /// It could not be found out.
    Away(String),
}

/// Has RocksDB read all blocks of the files that `entries` name in `directory`.
///
/// # Errors
/// [`Unread`].
pub(super) fn read_through(
    directory: &Path,
    entries: &[CatalogueEntry],
    tables: &TableFunctions,
) -> Result<(), Unread> {
    if entries.is_empty() {
        return Ok(());
    }
    let away = |error: io::Error| Unread::Away(format!("{}: {error}", directory.display()));
    fs::write(directory.join(MANIFEST), manifest_of(entries)).map_err(away)?;
    fs::write(directory.join(CURRENT), format!("{MANIFEST}\n")).map_err(away)?;
    let read = tables.verify_blocks(directory);
    for name in [CURRENT, MANIFEST] {
        if let Err(error) = fs::remove_file(directory.join(name)) {
            tracing::debug!(%error, name, "a file of the check is left with the attempt's");
        }
    }
    read.map_err(|why| {
        if why.starts_with("IO error") {
            Unread::Away(why)
        } else {
            Unread::Damaged(why)
        }
    })
}
