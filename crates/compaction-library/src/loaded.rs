//! The RocksDB that the program has loaded.
#![allow(unsafe_code)] // each block says why it is sound

use std::ffi::{CStr, CString, c_int, c_void};
use std::mem::transmute;
use std::ptr;

use manxdb_compaction_edge::{Hooks, RawService, TableFunctions};

/// What is looked for: RocksDB has it since its C interface has compaction services.
const MARK: &CStr = c"rocksdb_compactionservice_create";
const SET: &CStr = c"rocksdb_options_set_compaction_service";

/// `rocksdb_options_set_compaction_service`.
type Set = unsafe extern "C" fn(*mut c_void, *mut RawService);

/// Functions of a RocksDB that stays loaded.
pub struct Loaded {
    /// What a service is made with,
    pub hooks: Hooks,
    /// and given to options.
    pub set: Set,
    /// Functions that read a worker's outputs through.
    pub tables: TableFunctions,
}

impl Loaded {
    /// Finds the one that there is.
    ///
    /// # Errors
    /// There is none, more than one, or one of another release.
    pub fn find() -> Result<Self, String> {
        let place = place()?;
        // SAFETY: the loader answers null or where the symbol of this name is; these names are
        // RocksDB's.
        let find = |name: &CStr| unsafe { libc::dlsym(place, name.as_ptr()) }.cast_const();
        let missing = |name: &CStr| {
            let name = name.to_string_lossy();
            format!("the RocksDB of this program has no {name}: it must be of release 11.8")
        };
        // SAFETY: as said of `find`.
        let hooks = unsafe { Hooks::find(find) }.map_err(missing)?;
        // SAFETY: as said of `find`.
        let tables = unsafe { TableFunctions::find(find) }.map_err(missing)?;
        let set = find(SET);
        if set.is_null() {
            return Err(missing(SET));
        }
        // SAFETY: RocksDB's function of this name has this type.
        let set = unsafe { transmute::<*const c_void, Set>(set) };
        Ok(Self { hooks, set, tables })
    }
}

/// Where the loader is to look: among what the whole program sees, or in one library.
fn place() -> Result<*mut c_void, String> {
    // SAFETY: a question to the loader.
    if !unsafe { libc::dlsym(libc::RTLD_DEFAULT, MARK.as_ptr()) }.is_null() {
        return Ok(libc::RTLD_DEFAULT);
    }
    let mut found: Vec<(*mut c_void, *mut c_void, &CString)> = Vec::new();
    let libraries = libraries();
    for library in &libraries {
        // SAFETY: it is loaded already: nothing is run. The handle is kept, so that it stays.
        let (handle, mark) = unsafe {
            let how = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
            let handle = libc::dlopen(library.as_ptr(), how);
            if handle.is_null() {
                continue;
            }
            (handle, libc::dlsym(handle, MARK.as_ptr()))
        };
        // A library shows the symbols of those that it needs too.
        if !mark.is_null() && found.iter().all(|(_, one, _)| *one != mark) {
            found.push((handle, mark, library));
        }
    }
    match &found[..] {
        [(handle, _, _)] => Ok(*handle),
        [] => Err(
            "no RocksDB of release 11.8 is to be seen in this program: load it before a service is \
             made; a program that has RocksDB inside must be linked with -Wl,--export-dynamic, and \
             with --whole-archive around librocksdb.a"
                .to_owned(),
        ),
        several => {
            let names = several.iter().map(|(_, _, name)| name.to_string_lossy());
            let names: Vec<_> = names.collect();
            let names = names.join(", ");
            Err(format!("RocksDB is loaded more than once: {names}"))
        }
    }
}

/// Names of all libraries that are loaded.
fn libraries() -> Vec<CString> {
    let mut names: Vec<CString> = Vec::new();
    // SAFETY: `remember` gets `names`, which lives through the call, and returns at once.
    unsafe { libc::dl_iterate_phdr(Some(remember), ptr::from_mut(&mut names).cast()) };
    names
}

unsafe extern "C" fn remember(
    library: *mut libc::dl_phdr_info,
    _: usize,
    names: *mut c_void,
) -> c_int {
    // SAFETY: the loader's description of a library, and what `libraries` gave.
    let (name, names) = unsafe {
        let name = (*library).dlpi_name;
        (name, &mut *names.cast::<Vec<CString>>())
    };
    if !name.is_null() {
        // SAFETY: the loader's own text.
        let name = unsafe { CStr::from_ptr(name) };
        if !name.is_empty() {
            names.push(name.to_owned());
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_that_are_loaded_have_names() {
        let names = libraries();
        let has = |part: &str| {
            names
                .iter()
                .any(|name| name.to_string_lossy().contains(part))
        };
        assert!(has("libc.so"), "{names:?}");
    }
}
