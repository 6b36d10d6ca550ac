//! RocksDB's events about local compactions, made safe.
//!
//! A compaction that reads a block with a wrong checksum fails and changes nothing. By default
//! RocksDB then stops all writes of the database (`Severity::kUnrecoverableError`), although the
//! writes do not depend on the block. With a [`CompactionListener`] writes continue: the listener
//! is told of the failure and delays further compactions of the same files.
#![allow(unsafe_code)] // each block says why it is sound

use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr;
use std::slice;
use std::sync::Arc;

use librocksdb_sys as ffi;
use rocksdb::{AsRawPtr, DB, Options};

/// Hears of compactions, on RocksDB's threads. No lock of RocksDB's is held.
pub trait CompactionListener: Send + Sync {
    /// A compaction of files with these names is about to begin, and begins when this returns:
    /// until then RocksDB takes these files for none of its other compactions.
    fn begins(&self, inputs: &[String]);

    /// One has ended, with an error of RocksDB's or without.
    fn ended(&self, inputs: &[String], error: Option<&str>);
}

/// RocksDB's `BackgroundErrorReason::kCompaction`.
const COMPACTION: u32 = 1;

/// The prefix of RocksDB's error messages about a damaged block, file or key.
pub const CORRUPTION: &str = "Corruption";

type State = Arc<dyn CompactionListener>;

/// Gives a database that is opened with `options` a listener. Damage that its compactions meet does
/// not end its writes any more.
pub fn set_compaction_listener(options: &mut Options, listener: Arc<dyn CompactionListener>) {
    let state = Box::into_raw(Box::new(listener)).cast::<c_void>();
    // SAFETY: the callbacks get `state`, which `destroy` frees once when RocksDB drops the listener;
    // the options keep the listener in a shared pointer of their own.
    unsafe {
        let listener = ffi::rocksdb_eventlistener_create(
            state,
            Some(destroy),
            Some(flush),
            Some(flush),
            Some(compaction_begin),
            Some(compaction_completed),
            Some(subcompaction),
            Some(subcompaction),
            Some(ingested),
            Some(background_error),
            Some(stall),
            Some(sealed),
        );
        ffi::rocksdb_options_add_eventlistener(options.as_raw_ptr(), listener);
    }
}

/// Flushes and compactions that a database runs at a time from now on.
///
/// # Errors
/// In RocksDB's words.
pub fn set_background_jobs(db: &DB, jobs: u16) -> Result<(), String> {
    set_option(db, c"max_background_jobs", u64::from(jobs))
}

/// When the manifest of a database is written anew: at a change that finds it larger than `bytes`, and
/// by `amplification_percent` larger than it was when it was written anew last.
///
/// # Errors
/// In RocksDB's words.
pub fn set_manifest_size(db: &DB, bytes: u64, amplification_percent: u16) -> Result<(), String> {
    let amplification = u64::from(amplification_percent);
    set_option(db, c"max_manifest_space_amp_pct", amplification)?;
    set_option(db, c"max_manifest_file_size", bytes)
}

/// Ends compactions of key ranges that somebody waits for, and lets no other begin.
pub fn stop_manual_compactions(db: &DB) {
    // SAFETY: the database lives through the call, which may be made beside any other.
    unsafe { ffi::rocksdb_disable_manual_compaction(db.as_raw_ptr()) }
}

fn set_option(db: &DB, name: &CStr, value: u64) -> Result<(), String> {
    let value = format!("{value}\0");
    let (names, values) = ([name.as_ptr()], [value.as_ptr().cast::<c_char>()]);
    let mut error = ptr::null_mut();
    // SAFETY: the database and both texts, which end with a NUL, live through the call.
    unsafe {
        let db = db.as_raw_ptr();
        ffi::rocksdb_set_db_options(db, 1, names.as_ptr(), values.as_ptr(), &raw mut error);
        text_of(error).map_or(Ok(()), Err)
    }
}

/// # Safety
/// `error` is null or a text allocated by RocksDB that has no other owner.
unsafe fn text_of(error: *mut c_char) -> Option<String> {
    if error.is_null() {
        return None;
    }
    // SAFETY: as the caller promises.
    unsafe {
        let text = CStr::from_ptr(error).to_string_lossy().into_owned();
        ffi::rocksdb_free(error.cast());
        Some(text)
    }
}

/// # Safety
/// `state` is what [`set_compaction_listener`] gave to RocksDB, which has not called `destroy` yet.
unsafe fn state_of<'a>(state: *mut c_void) -> &'a State {
    // SAFETY: as the caller promises.
    unsafe { &*state.cast::<State>() }
}

unsafe extern "C" fn destroy(state: *mut c_void) {
    // SAFETY: made by `Box::into_raw` above, and RocksDB calls this once.
    let state = unsafe { Box::from_raw(state.cast::<State>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(state)));
}

/// Names of a compaction's inputs, without directories.
///
/// # Safety
/// `info` is valid.
unsafe fn inputs(info: *const ffi::rocksdb_compactionjobinfo_t) -> Vec<String> {
    // SAFETY: places below the count are there; names live as long as `info` and are copied.
    unsafe {
        let count = ffi::rocksdb_compactionjobinfo_input_files_count(info);
        let paths = (0..count).map(|place| {
            let mut length = 0;
            let start = ffi::rocksdb_compactionjobinfo_input_file_at(info, place, &raw mut length);
            let path = slice::from_raw_parts(start.cast::<u8>(), length);
            let path = String::from_utf8_lossy(path);
            let name = Path::new(&*path).file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        });
        paths.collect()
    }
}

unsafe extern "C" fn compaction_begin(
    state: *mut c_void,
    _: *mut ffi::rocksdb_t,
    info: *const ffi::rocksdb_compactionjobinfo_t,
) {
    // SAFETY: RocksDB's pointers are valid for the call, and so is `state`.
    let (listener, inputs) = unsafe { (state_of(state), inputs(info)) };
    let _ = catch_unwind(AssertUnwindSafe(|| listener.begins(&inputs)));
}

unsafe extern "C" fn compaction_completed(
    state: *mut c_void,
    _: *mut ffi::rocksdb_t,
    info: *const ffi::rocksdb_compactionjobinfo_t,
) {
    let mut error = ptr::null_mut();
    // SAFETY: RocksDB's pointers are valid for the call, and so is `state`; `error` is freed by
    // `text_of`.
    let (listener, inputs, error) = unsafe {
        ffi::rocksdb_compactionjobinfo_status(info, &raw mut error);
        (state_of(state), inputs(info), text_of(error))
    };
    let _ = catch_unwind(AssertUnwindSafe(|| {
        listener.ended(&inputs, error.as_deref());
    }));
}

unsafe extern "C" fn background_error(
    _: *mut c_void,
    reason: u32,
    status: *mut ffi::rocksdb_status_ptr_t,
) {
    if reason != COMPACTION {
        return;
    }
    let mut error = ptr::null_mut();
    // SAFETY: the status is valid for the call and may be changed; `error` is freed by `text_of`.
    unsafe {
        ffi::rocksdb_status_ptr_get_error(status, &raw mut error);
        if text_of(error).is_some_and(|error| error.starts_with(CORRUPTION)) {
            ffi::rocksdb_reset_status(status);
        }
    }
}

// RocksDB calls every callback of a listener, so those of no interest have to be there.
unsafe extern "C" fn flush(
    _: *mut c_void,
    _: *mut ffi::rocksdb_t,
    _: *const ffi::rocksdb_flushjobinfo_t,
) {
}
unsafe extern "C" fn subcompaction(_: *mut c_void, _: *const ffi::rocksdb_subcompactionjobinfo_t) {}
unsafe extern "C" fn ingested(
    _: *mut c_void,
    _: *mut ffi::rocksdb_t,
    _: *const ffi::rocksdb_externalfileingestioninfo_t,
) {
}
unsafe extern "C" fn stall(_: *mut c_void, _: *const ffi::rocksdb_writestallinfo_t) {}
unsafe extern "C" fn sealed(_: *mut c_void, _: *const ffi::rocksdb_memtableinfo_t) {}
