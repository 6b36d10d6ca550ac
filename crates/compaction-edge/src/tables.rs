//! Verification of sorted files by RocksDB's own code before a database installs them.
//!
//! RocksDB's C interface reads only files of a database. To have files verified, the caller writes
//! a manifest (`MANIFEST`, `CURRENT`) beside them first.
#![allow(unsafe_code)] // each block says why it is sound

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

use crate::hook::functions;

#[cfg(feature = "rocksdb")]
pub use librocksdb_sys::{rocksdb_options_t as RawOptions, rocksdb_t as RawDatabase};
#[cfg(not(feature = "rocksdb"))]
pub use opaque::{RawDatabase, RawOptions};

/// RocksDB's objects where its header is not at hand: only pointers to them are passed on.
#[cfg(not(feature = "rocksdb"))]
mod opaque {
    /// `rocksdb_options_t`.
    #[repr(C)]
    pub struct RawOptions([u8; 0]);
    /// `rocksdb_t`.
    #[repr(C)]
    pub struct RawDatabase([u8; 0]);
}

type CreateOptions = unsafe extern "C" fn() -> *mut RawOptions;
type EndOptions = unsafe extern "C" fn(*mut RawOptions);
type SetNumber = unsafe extern "C" fn(*mut RawOptions, c_int);
type Open = unsafe extern "C" fn(
    *const RawOptions,
    *const c_char,
    u8,
    *mut *mut c_char,
) -> *mut RawDatabase;
type Verify = unsafe extern "C" fn(*mut RawDatabase, *mut *mut c_char);
type Close = unsafe extern "C" fn(*mut RawDatabase);
type Free = unsafe extern "C" fn(*mut c_void);

functions! {
    /// Functions of RocksDB's C interface that read tables, of release 11.8.
    TableFunctions {
        options_create: CreateOptions = c"rocksdb_options_create",
        options_destroy: EndOptions = c"rocksdb_options_destroy",
        set_log_level: SetNumber = c"rocksdb_options_set_info_log_level",
        open: Open = c"rocksdb_open_for_read_only",
        verify: Verify = c"rocksdb_verify_checksum",
        close: Close = c"rocksdb_close",
        free: Free = c"rocksdb_free",
    }
}

/// RocksDB's `FATAL_LEVEL`: no lines in a log that is not kept.
const SILENT: c_int = 4;

impl TableFunctions {
    /// Opens the database in `database` read-only, which compares each file with its unique
    /// identity in the manifest, and reads all blocks of all files: data, index, filter, properties
    /// and footer. It decompresses nothing and looks at no key, so it does not depend on the
    /// comparator.
    ///
    /// # Errors
    /// RocksDB's message. A message that begins with `Corruption` says that a file differs from
    /// what RocksDB wrote.
    pub fn verify_blocks(&self, database: &Path) -> Result<(), String> {
        let path = database.to_str().ok_or("the path is not text")?;
        let path = CString::new(path).map_err(|_| "the path has a NUL")?;
        let mut error = ptr::null_mut();
        // SAFETY: the options and the path live through the call that opens; the database is
        // closed here and used by nobody else; `error` is null or a text of RocksDB's, which
        // `said` frees. It is looked at before the next call may write to it.
        unsafe {
            let options = (self.options_create)();
            (self.set_log_level)(options, SILENT);
            let opened = (self.open)(options, path.as_ptr(), 0, &raw mut error);
            (self.options_destroy)(options);
            self.said(error)?;
            if opened.is_null() {
                return Err("RocksDB opens nothing and does not say why".to_owned());
            }
            error = ptr::null_mut();
            (self.verify)(opened, &raw mut error);
            (self.close)(opened);
            self.said(error)
        }
    }

    /// # Safety
    /// `error` is null or a text allocated by RocksDB that has no other owner.
    unsafe fn said(&self, error: *mut c_char) -> Result<(), String> {
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: as the caller promises.
        unsafe {
            let text = CStr::from_ptr(error).to_string_lossy().into_owned();
            (self.free)(error.cast());
            Err(text)
        }
    }
}
