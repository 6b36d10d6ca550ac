//! RocksDB's compaction service hook, made safe.
//!
//! RocksDB asks a [`Service`] on its own compaction threads, once for each job (and each part of a
//! job that it splits): `schedule`, then `wait`, which may block for as long as the job takes.
//! Closing the database calls `cancel`, after which every `wait` must return. Whatever a service
//! does wrong, a panic included, RocksDB is told to compact locally: no other answer is safe to
//! give by mistake, since any failure but that one ends the database's writes.
//!
//! RocksDB's functions are called through [`Hooks`], a table of pointers: a server has linked them,
//! a library inside of another program finds them there.
#![allow(unsafe_code)] // each block says why it is sound

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::slice;
use std::sync::Arc;

/// RocksDB's description of a job.
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
    /// Accepts a job and returns its name, or returns `None`: then RocksDB compacts it locally.
    fn schedule(&self, info: &JobInfo, input: &[u8]) -> Option<String>;

    /// Waits until a job ends.
    fn wait(&self, job: &str) -> Waited;

    /// The database closes: every wait returns.
    fn cancel(&self);

    /// A job's outputs were renamed into the database, or could not be.
    fn installed(&self, job: &str, is_installed: bool);
}

const SUCCESS: c_int = 0;
const USE_LOCAL: c_int = 3;

/// The name that RocksDB writes to its log.
const NAME: &CStr = c"manxdb.compaction.1";

#[cfg(feature = "rocksdb")]
pub use librocksdb_sys::{
    rocksdb_compactionservice_jobinfo_t as RawJobInfo,
    rocksdb_compactionservice_scheduleresponse_t as RawResponse,
    rocksdb_compactionservice_t as RawService,
};
#[cfg(not(feature = "rocksdb"))]
pub use opaque::{RawJobInfo, RawResponse, RawService};

/// RocksDB's objects where its header is not at hand: only pointers to them are passed on.
#[cfg(not(feature = "rocksdb"))]
mod opaque {
    /// `rocksdb_compactionservice_t`.
    #[repr(C)]
    pub struct RawService([u8; 0]);
    /// `rocksdb_compactionservice_jobinfo_t`.
    #[repr(C)]
    pub struct RawJobInfo([u8; 0]);
    /// `rocksdb_compactionservice_scheduleresponse_t`.
    #[repr(C)]
    pub struct RawResponse([u8; 0]);
}

type Schedule =
    unsafe extern "C" fn(*mut c_void, *const RawJobInfo, *const c_char, usize) -> *mut RawResponse;
type Wait = unsafe extern "C" fn(*mut c_void, *const c_char, *mut *mut c_char, *mut usize) -> c_int;
type Told = unsafe extern "C" fn(*mut c_void);
type Installed = unsafe extern "C" fn(*mut c_void, *const c_char, c_int);
type Create = unsafe extern "C" fn(
    *mut c_void,
    Option<Told>,
    Option<Schedule>,
    *const c_char,
    Option<Wait>,
    Option<Told>,
    Option<Installed>,
) -> *mut RawService;
type Respond = unsafe extern "C" fn(*const c_char, c_int, *mut *mut c_char) -> *mut RawResponse;
type RespondStatus = unsafe extern "C" fn(c_int, *mut *mut c_char) -> *mut RawResponse;
type Text = unsafe extern "C" fn(*const RawJobInfo, *mut usize) -> *const c_char;
type Number = unsafe extern "C" fn(*const RawJobInfo) -> u64;
type Level = unsafe extern "C" fn(*const RawJobInfo) -> c_int;
type Flag = unsafe extern "C" fn(*const RawJobInfo) -> u8;

/// A table of RocksDB's functions, and how they are found by their names.
macro_rules! functions {
    ($(#[$about:meta])* $table:ident { $($field:ident: $type:ty = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy)]
        #[allow(missing_docs)] // RocksDB's own
        pub struct $table {
            $(pub $field: $type,)*
        }

        impl $table {
            /// Finds them all by their names.
            ///
            /// # Errors
            /// The name of one that is not there.
            ///
            /// # Safety
            /// `find` answers null, or where RocksDB's function of this name is.
            pub unsafe fn find(
                find: impl Fn(&std::ffi::CStr) -> *const std::ffi::c_void,
            ) -> Result<Self, &'static std::ffi::CStr> {
                Ok(Self {
                    $($field: {
                        let address = find($name);
                        if address.is_null() {
                            return Err($name);
                        }
                        // SAFETY: RocksDB's function of this name has this type.
                        unsafe { std::mem::transmute::<*const std::ffi::c_void, $type>(address) }
                    },)*
                })
            }
        }
    };
}

pub(crate) use functions;

functions! {
    /// Functions of RocksDB's C interface that a service is made with, of release 11.8.
    Hooks {
        create: Create = c"rocksdb_compactionservice_create",
        respond: Respond = c"rocksdb_compactionservice_scheduleresponse_create",
        respond_status: RespondStatus =
            c"rocksdb_compactionservice_scheduleresponse_create_with_status",
        db_name: Text = c"rocksdb_compactionservice_jobinfo_t_get_db_name",
        db_id: Text = c"rocksdb_compactionservice_jobinfo_t_get_db_id",
        db_session_id: Text = c"rocksdb_compactionservice_jobinfo_t_get_db_session_id",
        cf_name: Text = c"rocksdb_compactionservice_jobinfo_t_get_cf_name",
        job_id: Number = c"rocksdb_compactionservice_jobinfo_t_get_job_id",
        base_input_level: Level = c"rocksdb_compactionservice_jobinfo_t_get_base_input_level",
        output_level: Level = c"rocksdb_compactionservice_jobinfo_t_get_output_level",
        is_full_compaction: Flag = c"rocksdb_compactionservice_jobinfo_t_is_full_compaction",
        is_manual_compaction: Flag = c"rocksdb_compactionservice_jobinfo_t_is_manual_compaction",
        free: Told = c"rocksdb_free",
    }
}

struct State {
    hooks: Hooks,
    service: Arc<dyn Service>,
}

/// Makes a RocksDB compaction service. Its owner is the database's options, or a `std::shared_ptr`.
///
/// # Safety
/// `hooks` are functions of a RocksDB that stays loaded for as long as the service lives.
pub unsafe fn raw_service(hooks: Hooks, service: Arc<dyn Service>) -> *mut RawService {
    let state = Box::into_raw(Box::new(State { hooks, service })).cast::<c_void>();
    // SAFETY: the callbacks get `state`, which `destroy` frees once when RocksDB drops the service.
    unsafe {
        (hooks.create)(
            state,
            Some(destroy),
            Some(schedule),
            NAME.as_ptr(),
            Some(wait),
            Some(cancel),
            Some(installed),
        )
    }
}

unsafe extern "C" fn destroy(state: *mut c_void) {
    // SAFETY: made by `Box::into_raw` in `raw_service`, and RocksDB calls this once.
    let state = unsafe { Box::from_raw(state.cast::<State>()) };
    // A service that panics while it ends must not take the program with it.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(state)));
}

/// The state behind a callback's pointer.
///
/// # Safety
/// `state` is the pointer that `raw_service` gave to RocksDB, and RocksDB has not called `destroy`
/// yet.
unsafe fn state_of<'a>(state: *mut c_void) -> &'a State {
    // SAFETY: as the caller promises.
    unsafe { &*state.cast::<State>() }
}

unsafe extern "C" fn schedule(
    state: *mut c_void,
    info: *const RawJobInfo,
    input: *const c_char,
    length: usize,
) -> *mut RawResponse {
    // SAFETY: RocksDB's pointers are valid for the call, and so is `state`.
    let State { hooks, service } = unsafe { state_of(state) };
    // SAFETY: as above.
    let (info, input) = unsafe { (job_info(hooks, info), bytes(input, length)) };
    let name = catch_unwind(AssertUnwindSafe(|| service.schedule(&info, input)));
    let name = name.ok().flatten().and_then(|name| CString::new(name).ok());
    let mut error = ptr::null_mut();
    // SAFETY: the name lives through the call, which copies it; `error` is freed below.
    unsafe {
        let response = match &name {
            Some(name) => (hooks.respond)(name.as_ptr(), SUCCESS, &raw mut error),
            None => (hooks.respond_status)(USE_LOCAL, &raw mut error),
        };
        (hooks.free)(error.cast());
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
        let (service, job) = (
            &state_of(state).service,
            CStr::from_ptr(job).to_string_lossy(),
        );
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
        let service = &state_of(state).service;
        catch_unwind(AssertUnwindSafe(|| service.cancel()))
    };
}

unsafe extern "C" fn installed(state: *mut c_void, job: *const c_char, status: c_int) {
    // SAFETY: RocksDB's pointers are valid for the call, and so is `state`.
    let _ = unsafe {
        let (service, job) = (
            &state_of(state).service,
            CStr::from_ptr(job).to_string_lossy(),
        );
        catch_unwind(AssertUnwindSafe(|| {
            service.installed(&job, status == SUCCESS);
        }))
    };
}

/// # Safety
/// `start` points to `length` bytes that live as long as the result is used.
pub(crate) unsafe fn bytes<'a>(start: *const c_char, length: usize) -> &'a [u8] {
    if start.is_null() {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { slice::from_raw_parts(start.cast(), length) }
}

/// # Safety
/// `info` is valid.
unsafe fn job_info(hooks: &Hooks, info: *const RawJobInfo) -> JobInfo {
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
            database: text(hooks.db_name),
            database_id: text(hooks.db_id),
            session: text(hooks.db_session_id),
            family: text(hooks.cf_name),
            job: (hooks.job_id)(info),
            start_level: (hooks.base_input_level)(info),
            output_level: (hooks.output_level)(info),
            is_manual: (hooks.is_manual_compaction)(info) != 0,
            is_full: (hooks.is_full_compaction)(info) != 0,
        }
    }
}
