//! A mapped segment, word by word.
#![allow(unsafe_code)] // each block says why it is sound

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use std::os::fd::AsFd;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use crate::address::{WORD, WORD_LENGTH};

/// Words that a processor fetches at once.
const LINE: usize = 64 / WORD_LENGTH;

/// Words that other processes may change at any time.
pub(crate) struct Words {
    base: *mut AtomicU64,
    count: usize,
}

// SAFETY: the mapping belongs to this value alone until it is dropped, and all access is atomic.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    /// Maps a file of so many bytes, which can never become shorter.
    ///
    /// # Errors
    /// The system has no room for it.
    pub(crate) fn map(segment: impl AsFd, bytes: u64) -> rustix::io::Result<Self> {
        let length = usize::try_from(bytes).map_err(|_| Errno::NOMEM)?;
        assert!(
            length > 0 && length.is_multiple_of(WORD_LENGTH),
            "segments are whole words, not {length} bytes"
        );
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice touches nothing that is there.
        let base = unsafe {
            mmap(
                ptr::null_mut(),
                length,
                protection,
                MapFlags::SHARED,
                segment,
                0,
            )?
        };
        assert!(
            base.cast::<AtomicU64>().is_aligned(),
            "mappings begin at pages, which begin at words"
        );
        Ok(Self {
            base: base.cast(),
            count: length / WORD_LENGTH,
        })
    }

    /// Has the system give all of it now, which otherwise comes page by page as it is first used.
    ///
    /// # Errors
    /// The system has not that much.
    pub(crate) fn populate(&self) -> rustix::io::Result<()> {
        // SAFETY: the mapping is this value's own; the pages that come are the segment's.
        let found = unsafe {
            let length = self.count * WORD_LENGTH;
            madvise(self.base.cast(), length, Advice::LinuxPopulateWrite)
        };
        match found {
            Err(Errno::INVAL) => Ok(()), // before Linux 5.14: they come as they are used
            found => found,
        }
    }

    /// Where it is, and how many bytes there are: for hardware and libraries that copy themselves.
    #[cfg(feature = "libfabric")]
    pub(crate) fn region(&self) -> (*mut u8, usize) {
        (self.base.cast(), self.count * WORD_LENGTH)
    }

    fn all(&self) -> &[AtomicU64] {
        // SAFETY: `map` made a mapping of at least so many words, aligned to pages, readable and
        // writable until drop; its file is sealed against shrinking, so every word exists. Other
        // processes write it too: each word is an atomic.
        unsafe { slice::from_raw_parts(self.base, self.count) }
    }

    /// Words from an offset on. Callers have checked that they are inside.
    fn from(&self, offset: u64, bytes: usize) -> &[AtomicU64] {
        assert!(
            offset.is_multiple_of(WORD) && bytes.is_multiple_of(WORD_LENGTH),
            "memory is made of words: {offset:#x}, {bytes} bytes"
        );
        let first = usize::try_from(offset / WORD).unwrap_or(usize::MAX);
        let last = first.saturating_add(bytes / WORD_LENGTH);
        self.all().get(first..last).unwrap_or_default()
    }

    /// Whether so many bytes from an offset on are inside. What is not, is neither read nor written.
    pub(crate) fn hold(&self, offset: u64, bytes: u64) -> bool {
        let all = (self.count * WORD_LENGTH) as u64;
        offset.checked_add(bytes).is_some_and(|end| end <= all)
    }

    /// Has the processor fetch what will be copied from or to there: the ways to memory of all
    /// that is copied overlap, as those of a card do.
    pub(crate) fn touch(&self, offset: u64, bytes: usize) {
        let words = self.from(offset, bytes);
        let (lines, _) = words.as_chunks::<LINE>();
        let lines = lines.iter().map(|line| line.as_ptr());
        let last = words.last().map(ptr::from_ref);
        lines.chain(last).for_each(fetch);
    }

    /// Copies from there, in rising order.
    pub(crate) fn read(&self, offset: u64, bytes: usize) -> Vec<u8> {
        let words = self.from(offset, bytes).iter();
        let copy = words.map(|word| word.load(Ordering::Acquire).to_le_bytes());
        copy.collect::<Vec<_>>().into_flattened()
    }

    /// Copies to there.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) {
        let (chunks, rest) = bytes.as_chunks::<WORD_LENGTH>();
        assert!(
            rest.is_empty(),
            "no byte is left behind the last whole word"
        );
        for (word, chunk) in self.from(offset, bytes.len()).iter().zip(chunks) {
            word.store(u64::from_le_bytes(*chunk), Ordering::Relaxed);
        }
    }

    /// Sets a word after all that this thread has written.
    pub(crate) fn set(&self, offset: u64, word: u64) {
        let one = self.from(offset, WORD_LENGTH).first();
        assert!(
            one.is_some(),
            "a word that says that bytes are there is set, not lost: {offset:#x}"
        );
        if let Some(one) = one {
            one.store(word, Ordering::Release);
        }
    }

    /// Sets a word if it is `expected`; what it was.
    pub(crate) fn compare_swap(&self, offset: u64, expected: u64, new: u64) -> Option<u64> {
        let one = self.from(offset, WORD_LENGTH).first()?;
        let done = one.compare_exchange(expected, new, Ordering::SeqCst, Ordering::SeqCst);
        Some(done.unwrap_or_else(|found| found))
    }

    /// Adds to a word; what it was.
    pub(crate) fn fetch_add(&self, offset: u64, delta: u64) -> Option<u64> {
        let one = self.from(offset, WORD_LENGTH).first()?;
        Some(one.fetch_add(delta, Ordering::SeqCst))
    }
}

/// Has the processor fetch the line of a word, and goes on meanwhile.
fn fetch(word: *const AtomicU64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: nothing comes of it, whatever the address is.
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(word.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = word;
}

impl Drop for Words {
    fn drop(&mut self) {
        let length = self.count * WORD_LENGTH;
        // SAFETY: the mapping is this value's own, and nobody borrows from it any more. An error
        // would leave it mapped, which harms nothing.
        let _ = unsafe { munmap(self.base.cast(), length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::segment;

    #[test]
    #[should_panic(expected = "is set, not lost")]
    fn no_word_is_lost_that_says_that_bytes_are_there() {
        let segment = segment::make(4096).unwrap();
        let words = Words::map(&segment, 4096).unwrap();
        words.set(4088, 1);
        assert_eq!(words.read(4088, 8), 1_u64.to_le_bytes());
        words.set(4096, 1);
    }
}
