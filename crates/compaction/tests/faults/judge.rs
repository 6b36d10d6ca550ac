//! Whether a database that was closed is as it should be.

use std::collections::BTreeSet;
use std::path::Path;

use librocksdb_sys as ffi;
use manxdb_compaction::order::STAGING;
use rocksdb::{AsRawPtr as _, DB};

use crate::database::{batches_in, hash_in, options};
use crate::load::{Load, hash_of};

/// Opens a database without the service and looks at all of it; how many batches it holds.
pub fn judge(path: &Path, ledger: &Path, load: Load) -> u64 {
    let left = names_in(&path.join(STAGING));
    assert_eq!(left, [""; 0], "attempts left something");
    // Before it is opened, which removes what does not belong there.
    let mut there = names_in(path);
    there.retain(|name| Path::new(name).extension().is_some_and(|end| end == "sst"));
    let mut options = options();
    options.set_disable_auto_compactions(true);
    let db = DB::open(&options, path).unwrap();
    let batches = batches_in(&db);
    let acknowledged = std::fs::read(ledger).unwrap();
    let acknowledged = acknowledged.try_into().map_or(0, u64::from_le_bytes);
    // The last one may have been under way when the process died.
    assert!(
        batches == acknowledged || batches == acknowledged + 1,
        "{acknowledged} batches were acknowledged, {batches} are there"
    );
    assert_eq!(
        hash_in(&db),
        hash_of(&load.after(batches)),
        "{}",
        path.display()
    );
    verify_checksums(&db);
    let errors = db.property_int_value("rocksdb.background-errors").unwrap();
    assert_eq!(errors, Some(0));
    let live: BTreeSet<String> = db
        .live_files()
        .unwrap()
        .into_iter()
        .map(|file| file.name.trim_start_matches('/').to_owned())
        .collect();
    there.retain(|name| !live.contains(name));
    assert_eq!(there, [""; 0], "files that belong to nothing");
    batches
}

/// Reads every block of every file.
#[allow(unsafe_code)]
fn verify_checksums(db: &DB) {
    let mut error = std::ptr::null_mut();
    // SAFETY: the database is open, and `error` is read before anything else is done with it.
    let error = unsafe {
        ffi::rocksdb_verify_checksum(db.as_raw_ptr(), &raw mut error);
        (!error.is_null()).then(|| std::ffi::CStr::from_ptr(error).to_owned())
    };
    assert_eq!(error, None);
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}
