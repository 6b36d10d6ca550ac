//! Reading a part of a file at once.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// Bytes of a file.
///
/// # Errors
/// It ends before them, or cannot be read.
pub(crate) fn read_at(file: &File, from: u64, bytes: u64) -> io::Result<Vec<u8>> {
    let length = usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut buffer = vec![0; length];
    file.read_exact_at(&mut buffer, from)?;
    Ok(buffer)
}
