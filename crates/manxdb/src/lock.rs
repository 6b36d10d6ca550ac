//! A file that one process at a time has, for as long as it lives.

use std::fs::File;
use std::path::Path;

use crate::fault::Fault;

/// Takes a lock file, made when missing; `taken` is said when another process has it.
///
/// # Errors
/// [`Fault::Other`] with what is said, or the system's error with the path.
pub fn take(path: &Path, taken: impl FnOnce() -> String) -> Result<File, Fault> {
    use rustix::fs::{FlockOperation, flock};
    let io = |error| Fault::io(format!("cannot open {}", path.display()), error);
    let mut options = File::options();
    let file = options.create(true).truncate(false).write(true).open(path);
    let file = file.map_err(io)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Fault::Other(taken())),
        Err(error) => Err(io(error.into())),
    }
}
