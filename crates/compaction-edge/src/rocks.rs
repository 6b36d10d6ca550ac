//! The edge to RocksDB: its compaction service hook and its worker entry, made safe.
//!
//! RocksDB asks a [`Service`] on its own compaction threads, once for each job (and each part of a
//! job that it splits): `schedule`, then `wait`, which may block for as long as the job takes.
//! Closing the database calls `cancel`, after which every `wait` must return. Whatever a service
//! does wrong, a panic included, RocksDB is told to compact locally: no other answer is safe to
//! give by mistake, since any failure but that one ends the database's writes.
#![allow(unsafe_code)] // each block says why it is sound

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr;
use std::slice;
use std::sync::Arc;

use librocksdb_sys as ffi;
use rocksdb::{AsRawPtr, Options};

/// What RocksDB says of a job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobInfo {
    /// Path of the database.
    pub database: String,
    /// Its identity, the same each time it is open.
    pub database_id: String,
    /// This time it is open.
    pub session: String,
    /// Name of the column family.
    pub family: String,
    /// Number of the job, from 1 each time the database is open, and below it, in the lower half,
    /// of its part.
    pub job: u64,
    /// Lowest level of the inputs.
    pub start_level: i32,
    /// Level of the outputs.
    pub output_level: i32,
    /// Asked for by hand.
    pub is_manual: bool,
    /// Every file of the column family is an input.
    pub is_full: bool,
}

impl JobInfo {
    /// The number of the job in RocksDB's own log.
    pub fn number(&self) -> u64 {
        self.job >> 32
    }
}

/// How a job ends for RocksDB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waited {
    /// With the worker's answer, which RocksDB reads and installs without checking any file.
    Done(Vec<u8>),
    /// RocksDB compacts it itself.
    Local,
}

/// Where a database's compactions go.
pub trait Service: Send + Sync {
    /// Takes a job; its name, or none: compact locally.
    fn schedule(&self, info: &JobInfo, input: &[u8]) -> Option<String>;

    /// Waits until a job ends.
    fn wait(&self, job: &str) -> Waited;

    /// The database closes: every wait returns.
    fn cancel(&self);

    /// A job's outputs were renamed into the database, or could not be.
    fn installed(&self, job: &str, is_installed: bool);
}

const SUCCESS: c_int = ffi::rocksdb_compactionservice_jobstatus_success.cast_signed();
const USE_LOCAL: c_int = ffi::rocksdb_compactionservice_jobstatus_use_local.cast_signed();

/// The name that RocksDB writes to its log.
const NAME: &CStr = c"manxdb.compaction.1";

type State = Arc<dyn Service>;

/// Gives a database that is opened with `options` a service.
pub fn set_service(options: &mut Options, service: Arc<dyn Service>) {
    let state = Box::into_raw(Box::new(service)).cast::<c_void>();
    // SAFETY: the callbacks get `state`, which `destroy` frees once when RocksDB drops the
    // service; `options` lives through the call, and keeps a shared pointer of its own.
    unsafe {
        let service = ffi::rocksdb_compactionservice_create(
            state,
            Some(destroy),
            Some(schedule),
            NAME.as_ptr(),
            Some(wait),
            Some(cancel),
            Some(installed),
        );
        ffi::rocksdb_options_set_compaction_service(options.as_raw_ptr(), service);
    }
}

unsafe extern "C" fn destroy(state: *mut c_void) {
    // SAFETY: made by `Box::into_raw` in `set_service`, and RocksDB calls this once.
    drop(unsafe { Box::from_raw(state.cast::<State>()) });
}

/// The service behind a callback's state.
///
/// # Safety
/// `state` is what `set_service` gave to RocksDB, which has not called `destroy` yet.
unsafe fn service<'a>(state: *mut c_void) -> &'a State {
    // SAFETY: as the caller promises.
    unsafe { &*state.cast::<State>() }
}

unsafe extern "C" fn schedule(
    state: *mut c_void,
    info: *const ffi::rocksdb_compactionservice_jobinfo_t,
    input: *const c_char,
    length: usize,
) -> *mut ffi::rocksdb_compactionservice_scheduleresponse_t {
    // SAFETY: RocksDB's pointers are valid for the call, and so is `state`.
    let name = unsafe {
        let (service, info) = (service(state), job_info(info));
        let input = bytes(input, length);
        catch_unwind(AssertUnwindSafe(|| service.schedule(&info, input)))
    };
    let name = name.ok().flatten().and_then(|name| CString::new(name).ok());
    let mut error = ptr::null_mut();
    // SAFETY: the name lives through the call, which copies it; `error` is freed below.
    unsafe {
        let response = match &name {
            Some(name) => ffi::rocksdb_compactionservice_scheduleresponse_create(
                name.as_ptr(),
                SUCCESS,
                &raw mut error,
            ),
            None => ffi::rocksdb_compactionservice_scheduleresponse_create_with_status(
                USE_LOCAL,
                &raw mut error,
            ),
        };
        ffi::rocksdb_free(error.cast());
        response
    }
}

unsafe extern "C" fn wait(
    state: *mut c_void,
    job: *const c_char,
    result: *mut *mut c_char,
    length: *mut usize,
) -> c_int {
    // SAFETY: RocksDB's pointers are valid for the call, and so is `state`.
    let waited = unsafe {
        let (service, job) = (service(state), CStr::from_ptr(job).to_string_lossy());
        catch_unwind(AssertUnwindSafe(|| service.wait(&job)))
    };
    let Ok(Waited::Done(bytes)) = waited else {
        return USE_LOCAL;
    };
    // SAFETY: the caller frees what `malloc` gave; `result` and `length` are its out-parameters.
    unsafe {
        let copy = libc::malloc(bytes.len().max(1)).cast::<u8>();
        if copy.is_null() {
            return USE_LOCAL;
        }
        ptr::copy_nonoverlapping(bytes.as_ptr(), copy, bytes.len());
        *result = copy.cast();
        *length = bytes.len();
    }
    SUCCESS
}

unsafe extern "C" fn cancel(state: *mut c_void) {
    // SAFETY: `state` is valid. A panic is a service's own trouble: its waits end by themselves.
    let _ = unsafe {
        let service = service(state);
        catch_unwind(AssertUnwindSafe(|| service.cancel()))
    };
}

unsafe extern "C" fn installed(state: *mut c_void, job: *const c_char, status: c_int) {
    // SAFETY: RocksDB's pointers are valid for the call, and so is `state`.
    let _ = unsafe {
        let (service, job) = (service(state), CStr::from_ptr(job).to_string_lossy());
        catch_unwind(AssertUnwindSafe(|| {
            service.installed(&job, status == SUCCESS);
        }))
    };
}

/// # Safety
/// `start` points to `length` bytes that live as long as the result is used.
unsafe fn bytes<'a>(start: *const c_char, length: usize) -> &'a [u8] {
    if start.is_null() {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { slice::from_raw_parts(start.cast(), length) }
}

/// # Safety
/// `info` is valid.
unsafe fn job_info(info: *const ffi::rocksdb_compactionservice_jobinfo_t) -> JobInfo {
    type Text = unsafe extern "C" fn(
        *const ffi::rocksdb_compactionservice_jobinfo_t,
        *mut usize,
    ) -> *const c_char;
    let text = |get: Text| {
        let mut length = 0;
        // SAFETY: the text belongs to `info` and is copied at once.
        unsafe {
            let start = get(info, &raw mut length);
            String::from_utf8_lossy(bytes(start, length)).into_owned()
        }
    };
    // SAFETY: as the caller promises.
    unsafe {
        JobInfo {
            database: text(ffi::rocksdb_compactionservice_jobinfo_t_get_db_name),
            database_id: text(ffi::rocksdb_compactionservice_jobinfo_t_get_db_id),
            session: text(ffi::rocksdb_compactionservice_jobinfo_t_get_db_session_id),
            family: text(ffi::rocksdb_compactionservice_jobinfo_t_get_cf_name),
            job: ffi::rocksdb_compactionservice_jobinfo_t_get_job_id(info),
            start_level: ffi::rocksdb_compactionservice_jobinfo_t_get_base_input_level(info),
            output_level: ffi::rocksdb_compactionservice_jobinfo_t_get_output_level(info),
            is_manual: ffi::rocksdb_compactionservice_jobinfo_t_is_manual_compaction(info) != 0,
            is_full: ffi::rocksdb_compactionservice_jobinfo_t_is_full_compaction(info) != 0,
        }
    }
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

/// Runs one job of a database that another process has open: reads its files, writes the outputs
/// to `output`, an empty directory, and answers what the database is to be told.
///
/// `options` carry what the database's own options file cannot: comparator, merge operator,
/// compaction filter, prefix extractor and table format. They must mean what the database's mean.
///
/// # Errors
/// In RocksDB's words: a file is missing or damaged, the disk is full, it was cancelled.
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
    // the two option objects. The flag of `cancel` is borrowed until the call is over.
    unsafe {
        let how = ffi::rocksdb_open_and_compact_options_create();
        ffi::rocksdb_open_and_compact_options_set_canceled(how, cancel.0);
        let given = ffi::rocksdb_compaction_service_options_override_create_from_options(
            options.as_raw_ptr(),
        );
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
