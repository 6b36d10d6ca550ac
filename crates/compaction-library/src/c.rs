//! The symbol.
#![allow(unsafe_code)] // each block says why it is sound

use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use manxdb_compaction_edge::{RawService, raw_service};

use crate::configuration::Configuration;
use crate::loaded::Loaded;
use crate::served::Served;

/// Makes a compaction service, as `include/manxdb_compaction.h` says.
///
/// # Safety
/// `configuration` is null or a text with a NUL behind it; `error` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manxdb_compaction_service(
    configuration: *const c_char,
    error: *mut *mut c_char,
) -> *mut RawService {
    let made = catch_unwind(AssertUnwindSafe(|| {
        if configuration.is_null() {
            return Err("no configuration was given".to_owned());
        }
        // SAFETY: as the caller promises.
        let text = unsafe { CStr::from_ptr(configuration) };
        make(&text.to_string_lossy(), &Loaded::find()?)
    }));
    let (service, why) = match made {
        Ok(Ok(service)) => (service, ptr::null_mut()),
        Ok(Err(why)) => (ptr::null_mut(), copied(&why)),
        Err(_) => (ptr::null_mut(), copied("making the service failed")),
    };
    if error.is_null() {
        // SAFETY: made by `copied`, and given to nobody.
        unsafe { libc::free(why.cast()) };
    } else {
        // SAFETY: as the caller promises.
        unsafe { *error = why };
    }
    service
}

/// A service of the RocksDB that is loaded.
///
/// # Errors
/// What is wrong with the configuration.
pub fn make(text: &str, rocksdb: &Loaded) -> Result<*mut RawService, String> {
    let served = Served::start(&Configuration::read(text)?, rocksdb.tables)?;
    // SAFETY: what was found stays loaded.
    Ok(unsafe { raw_service(rocksdb.hooks, served) })
}

/// A text that its receiver frees.
fn copied(text: &str) -> *mut c_char {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    // SAFETY: it has a NUL behind it and lives through the call.
    unsafe { libc::strdup(text.as_ptr()) }
}
