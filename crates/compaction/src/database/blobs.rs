//! Whether a database stores large values outside its sorted files (RocksDB's blob files).
//!
//! A worker's answer cannot describe blob files: RocksDB would install outputs without knowing
//! which blobs they need, and later remove these blobs. So a database that has blob files, or is
//! about to write some, compacts everything itself.

use std::fs;
use std::path::Path;

use crate::rocksdb_files::settings::Settings;

/// Why compactions of a column family must stay local, or `None`.
///
/// # Errors
/// The options file lacks the option that decides it.
pub(super) fn found(
    database: &Path,
    settings: &Settings<'_>,
    family: &str,
) -> Result<Option<String>, String> {
    if writes_blobs(settings, family)? {
        return Ok(Some(format!(
            "column family '{family}' keeps values in blob files (enable_blob_files)"
        )));
    }
    let entries =
        fs::read_dir(database).map_err(|error| format!("{}: {error}", database.display()))?;
    for entry in entries {
        let name = entry.map_err(|error| error.to_string())?.file_name();
        if Path::new(&name)
            .extension()
            .is_some_and(|end| end == "blob")
        {
            let name = name.to_string_lossy();
            return Ok(Some(format!("the database has blob files, such as {name}")));
        }
    }
    Ok(None)
}

/// Whether the options of a column family enable blob files.
fn writes_blobs(settings: &Settings<'_>, family: &str) -> Result<bool, String> {
    let section = settings.section(&format!("CFOptions \"{family}\""))?;
    match section.get("enable_blob_files") {
        Some("false") => Ok(false),
        Some("true") => Ok(true),
        _ => Err(format!(
            "the options of column family '{family}' do not say whether it has blob files"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[Version]\n  rocksdb_version=11.8.1\n\n[CFOptions \"default\"]\n  \
        enable_blob_files=false\n  \n[CFOptions \"big\"]\n  ttl=1\n  enable_blob_files=true\n  \
        \n[CFOptions \"odd\"]\n  ttl=1\n\n[TableOptions/BlockBasedTable \"odd\"]\n  \
        enable_blob_files=false\n";

    #[test]
    fn each_family_is_asked_by_its_own_name() {
        let settings = Settings::of(TEXT);
        assert_eq!(writes_blobs(&settings, "default"), Ok(false));
        assert_eq!(writes_blobs(&settings, "big"), Ok(true));
        assert!(writes_blobs(&settings, "odd").is_err());
        assert!(writes_blobs(&settings, "other").is_err());
    }
}
