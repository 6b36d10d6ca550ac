//! A piece of memory with a file descriptor, which others may map.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::memfd_create;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate};
use rustix::io::{Errno, Result};

use crate::address::WORD;

/// Without these a mapping could lose its end, and who reads there its life.
fn lasting() -> SealFlags {
    SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL
}

/// Makes a segment of so many bytes, all zero, whose size is settled for good.
///
/// # Errors
/// The system has no such memory.
pub(crate) fn make(bytes: u64) -> Result<OwnedFd> {
    if bytes == 0 || !bytes.is_multiple_of(WORD) {
        return Err(Errno::INVAL);
    }
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let segment = memfd_create("manxdb-memory", flags)?;
    ftruncate(&segment, bytes)?;
    fcntl_add_seals(&segment, lasting())?;
    assert_eq!(
        measure(&segment),
        Ok(bytes),
        "a client maps as much of a segment as its server has made"
    );
    Ok(segment)
}

/// Bytes of a segment that somebody else has made.
///
/// # Errors
/// It is none, or it may still be shortened.
pub(crate) fn measure(segment: impl AsFd) -> Result<u64> {
    let bytes = u64::try_from(fstat(&segment)?.st_size).map_err(|_| Errno::INVAL)?;
    let is_lasting = fcntl_get_seals(&segment)?.contains(SealFlags::SHRINK);
    if !is_lasting || bytes == 0 || !bytes.is_multiple_of(WORD) {
        return Err(Errno::INVAL);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_keeps_its_size() {
        let segment = make(4096).unwrap();
        assert_eq!(measure(&segment), Ok(4096));
        assert_eq!(ftruncate(&segment, 0), Err(Errno::PERM));
        assert_eq!(ftruncate(&segment, 8192), Err(Errno::PERM));
        assert_eq!(make(0).err(), Some(Errno::INVAL));
        assert_eq!(make(12).err(), Some(Errno::INVAL));
    }

    #[test]
    fn what_may_be_shortened_is_not_mapped() {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let loose = memfd_create("loose", flags).unwrap();
        ftruncate(&loose, 4096).unwrap();
        assert_eq!(measure(&loose), Err(Errno::INVAL));
    }
}
