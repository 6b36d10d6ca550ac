//! Functions of the linked RocksDB: the hook of this process's own databases, and the entry point
//! of workers.
#![allow(unsafe_code)] // each block says why it is sound

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use librocksdb_sys as ffi;
use rocksdb::{AsRawPtr, LiveFile, Options};

use crate::hook::{Hooks, Service, bytes, raw_service};
use crate::inputs::Inputs;
use crate::tables::TableFunctions;

/// The functions that are linked.
fn linked() -> Hooks {
    Hooks {
        create: ffi::rocksdb_compactionservice_create,
        respond: ffi::rocksdb_compactionservice_scheduleresponse_create,
        respond_status: ffi::rocksdb_compactionservice_scheduleresponse_create_with_status,
        db_name: ffi::rocksdb_compactionservice_jobinfo_t_get_db_name,
        db_id: ffi::rocksdb_compactionservice_jobinfo_t_get_db_id,
        db_session_id: ffi::rocksdb_compactionservice_jobinfo_t_get_db_session_id,
        cf_name: ffi::rocksdb_compactionservice_jobinfo_t_get_cf_name,
        job_id: ffi::rocksdb_compactionservice_jobinfo_t_get_job_id,
        base_input_level: ffi::rocksdb_compactionservice_jobinfo_t_get_base_input_level,
        output_level: ffi::rocksdb_compactionservice_jobinfo_t_get_output_level,
        is_full_compaction: ffi::rocksdb_compactionservice_jobinfo_t_is_full_compaction,
        is_manual_compaction: ffi::rocksdb_compactionservice_jobinfo_t_is_manual_compaction,
        free: ffi::rocksdb_free,
    }
}

/// The functions that are linked and read tables.
#[must_use]
pub fn linked_tables() -> TableFunctions {
    TableFunctions {
        options_create: ffi::rocksdb_options_create,
        options_destroy: ffi::rocksdb_options_destroy,
        set_log_level: ffi::rocksdb_options_set_info_log_level,
        open: ffi::rocksdb_open_for_read_only,
        verify: ffi::rocksdb_verify_checksum,
        close: ffi::rocksdb_close,
        free: ffi::rocksdb_free,
    }
}

/// Gives a database that is opened with `options` a service.
pub fn set_service(options: &mut Options, service: Arc<dyn Service>) {
    // SAFETY: RocksDB is part of this program; `options` lives through the call, and keeps a shared
    // pointer of its own.
    unsafe {
        let service = raw_service(linked(), service);
        ffi::rocksdb_options_set_compaction_service(options.as_raw_ptr(), service);
    }
}

/// What a database of one column family knows about the files `names`, taken from all its `live`
/// files. Empty if a file is no longer live: then the list is newer than the job.
#[must_use]
pub fn inputs_among(live: Vec<LiveFile>, names: &[String]) -> Inputs {
    let wanted: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let is_wanted = |file: &LiveFile| wanted.contains(file.name.trim_start_matches('/'));
    let files: Vec<LiveFile> = live.into_iter().filter(is_wanted).collect();
    if files.len() != wanted.len() {
        return Inputs::default();
    }
    Inputs {
        keys: keys_of(&files),
        entries: entries_of(&files),
    }
}

/// Smallest and largest key of files.
fn keys_of(files: &[LiveFile]) -> Option<(Vec<u8>, Vec<u8>)> {
    let smallest = files.iter().map(|file| file.start_key.as_ref()).min()??;
    let largest = files.iter().map(|file| file.end_key.as_ref()).max()??;
    Some((smallest.clone(), largest.clone()))
}

/// Entries of files. RocksDB counts them when it first needs to: until then it says none.
fn entries_of(files: &[LiveFile]) -> Option<u64> {
    let entries = files.iter().map(|file| file.num_entries);
    let counted = entries.map(|entries| (entries > 0).then_some(entries));
    counted.sum()
}

/// Stops a compaction that another thread runs.
pub struct Cancel(*mut u8);

// SAFETY: an atomic of RocksDB's, which may be set and read by any thread.
unsafe impl Send for Cancel {}
// SAFETY: as above.
unsafe impl Sync for Cancel {}

impl Default for Cancel {
    fn default() -> Self {
        // SAFETY: freed once, in `drop`.
        Self(unsafe { ffi::rocksdb_open_and_compact_canceled_create() })
    }
}

impl Cancel {
    /// Asks for the end; the compaction ends with an error soon after.
    pub fn cancel(&self) {
        // SAFETY: alive until `drop`.
        unsafe { ffi::rocksdb_open_and_compact_canceled_set(self.0, 1) }
    }
}

impl Drop for Cancel {
    fn drop(&mut self) {
        // SAFETY: made in `default`, and freed nowhere else.
        unsafe { ffi::rocksdb_open_and_compact_canceled_destroy(self.0) }
    }
}

/// Runs one job of a database that another process has open: reads the database's files, writes the
/// outputs to `output`, an empty directory, and returns RocksDB's description of the result.
///
/// `options` carry what the database's own options file cannot: comparator, merge operator,
/// compaction filter, prefix extractor and table format. They must be equivalent to the database's.
///
/// RocksDB computes the checksum of each output from the bytes that it hands to the file (CRC-32C,
/// `file_checksum` in the result), so the checksum detects damage by the disk or the network.
///
/// # Errors
/// RocksDB's message: a file is missing or damaged, the disk is full, or the compaction was
/// cancelled.
pub fn open_and_compact(
    database: &Path,
    output: &Path,
    input: &[u8],
    options: &Options,
    cancel: &Cancel,
) -> Result<Vec<u8>, String> {
    let path = |path: &Path| {
        let text = path.to_str().ok_or("a path is not text")?;
        CString::new(text).map_err(|_| "a path has a NUL")
    };
    let (database, output) = (path(database)?, path(output)?);
    let mut error = ptr::null_mut();
    let mut length = 0;
    // SAFETY: all pointers live through the call; what it allocates is freed below, and so are
    // the option objects. The flag of `cancel` is borrowed until the call is over.
    unsafe {
        let how = ffi::rocksdb_open_and_compact_options_create();
        ffi::rocksdb_open_and_compact_options_set_canceled(how, cancel.0);
        let given = ffi::rocksdb_compaction_service_options_override_create_from_options(
            options.as_raw_ptr(),
        );
        let sums = ffi::rocksdb_file_checksum_gen_crc32c_factory_create();
        ffi::rocksdb_compaction_service_options_override_set_file_checksum_gen_factory(given, sums);
        ffi::rocksdb_file_checksum_gen_factory_destroy(sums); // `given` shares it
        let result = ffi::rocksdb_open_and_compact_with_options(
            how,
            database.as_ptr(),
            output.as_ptr(),
            input.as_ptr().cast(),
            input.len(),
            &raw mut length,
            given,
            &raw mut error,
        );
        ffi::rocksdb_compaction_service_options_override_destroy(given);
        ffi::rocksdb_open_and_compact_options_destroy(how);
        let answer = if error.is_null() {
            Ok(bytes(result, length).to_vec())
        } else {
            Err(CStr::from_ptr(error).to_string_lossy().into_owned())
        };
        ffi::rocksdb_free(error.cast());
        ffi::rocksdb_free(result.cast());
        answer
    }
}
