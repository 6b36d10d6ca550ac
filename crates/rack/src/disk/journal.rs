//! Batches on their way to disk, also to one that is full or fails for a while.
//!
//! A batch is kept until it is on disk for good: when a sync fails, what it was about may be lost though
//! the next one succeeds (the system takes what it could not write for written), so the file is given
//! up, and all that is kept is written to another one before that has a name.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use manxdb_core::check::deep;

use super::directory::Directory;
use super::frame::Frame;
use super::header::{FileKind, Header};
use crate::memory::Superblock;

/// Bytes of a segment; it ends with the batch that reaches them.
const SEGMENT: u64 = 64 << 20;

/// Where files are made.
pub trait Disk {
    /// Makes a file that begins with these bytes. Where there is the name, there is all of it, for
    /// good.
    ///
    /// # Errors
    /// What the system says; it may be there or not.
    fn create(&self, name: &str, bytes: &[u8]) -> io::Result<Box<dyn Output>>;
}

/// A file that is written.
pub trait Output: Send + std::marker::Sync {
    /// Writes all of this at an offset.
    ///
    /// # Errors
    /// What the system says; some of it may be written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// All that was written is there for good.
    ///
    /// # Errors
    /// What the system says; nothing is known about any of it.
    fn sync(&self) -> io::Result<()>;
}

/// Batches that are written one behind the other.
pub struct Journal<D> {
    disk: D,
    superblock: Superblock,
    formation: u64,
    /// The number of the next segment.
    segments: u64,
    segment: Option<Segment>,
    /// The last batch that it has heard of.
    last: u64,
    /// The last one that is on disk for good.
    synced: u64,
    /// Those behind it, as they are in files.
    kept: VecDeque<(u64, Vec<u8>)>,
    kept_bytes: u64,
    /// The last batch of which files say that it is on disk for good.
    marked: u64,
    /// Bytes that it has written to files.
    bytes: u64,
    /// A batch that is lost, and that no checkpoint replaces yet; 0: none.
    needs: u64,
}

/// The file that is written to.
struct Segment {
    number: u64,
    file: Arc<dyn Output>,
    end: u64,
    /// The last batch in it, or before it.
    written: u64,
}

/// A sync to be done, by whichever thread.
pub struct Sync {
    segment: u64,
    file: Arc<dyn Output>,
    upto: u64,
}

impl Sync {
    /// Does it.
    ///
    /// # Errors
    /// As [`Output::sync`].
    pub fn run(&self) -> io::Result<()> {
        self.file.sync()
    }
}

impl<D: Disk> Journal<D> {
    /// One that goes on behind a batch that is on disk for good, in a segment of its own.
    pub fn new(disk: D, superblock: Superblock, formation: u64, segment: u64, synced: u64) -> Self {
        Self {
            disk,
            superblock,
            formation,
            segments: segment,
            segment: None,
            last: synced,
            synced,
            marked: 0,
            kept: VecDeque::new(),
            kept_bytes: 0,
            bytes: 0,
            needs: 0,
        }
    }

    /// Takes the next batch, which [`Journal::flush`] writes; its number.
    pub fn push(&mut self, batch: &[u8]) -> u64 {
        self.last += 1;
        assert!(self.last > self.synced, "what is taken is not on disk yet");
        let frame = Frame::encode(self.last, self.synced, batch);
        self.kept_bytes += frame.len() as u64;
        self.kept.push_back((self.last, frame));
        self.check();
        self.last
    }

    /// Writes what it has taken. To be called again after an error.
    ///
    /// # Errors
    /// What the system says.
    pub fn flush(&mut self) -> io::Result<()> {
        let mut segment = match self.segment.take() {
            Some(segment) => segment,
            None => self.open()?,
        };
        let lacking = |(number, _): &&(u64, Vec<u8>)| *number > segment.written;
        let first = self.kept.iter().take_while(|one| !lacking(one)).count();
        let mut done = Ok(());
        for (number, frame) in self.kept.iter().skip(first) {
            assert!(
                *number > segment.written,
                "a batch is written behind the one before it: {number} after {}",
                segment.written
            );
            done = segment.file.write_at(frame, segment.end);
            if done.is_err() {
                break;
            }
            segment.end += frame.len() as u64;
            segment.written = *number;
            self.bytes += frame.len() as u64;
        }
        self.segment = Some(segment);
        done
    }

    /// Another segment, which begins with all that is kept: who reads it while that were still to be
    /// written would take the end of the one before for the end of all.
    fn open(&mut self) -> io::Result<Segment> {
        let number = self.segments;
        // One that fails may be there all the same: the next one has another name.
        self.segments += 1;
        let header = Header {
            kind: FileKind::Batches,
            number,
            formation: self.formation,
            first: self.synced + 1,
            needs: self.needs,
            superblock: self.superblock.clone(),
        };
        let name = Directory::name(FileKind::Batches, number);
        let mut bytes = header.encode();
        bytes.extend(self.kept.iter().flat_map(|(_, frame)| frame));
        let file = self.disk.create(&name, &bytes)?;
        self.bytes += bytes.len() as u64;
        self.synced = self.last;
        self.kept.clear();
        self.kept_bytes = 0;
        self.check();
        Ok(Segment {
            number,
            file: file.into(),
            end: bytes.len() as u64,
            written: self.last,
        })
    }

    /// A sync that would bring something; one at a time.
    #[must_use]
    pub fn begin_sync(&self) -> Option<Sync> {
        let segment = self.segment.as_ref()?;
        assert!(
            segment.written <= self.last,
            "no batch is in a file that was not taken: {}",
            segment.written
        );
        (segment.written > self.synced).then(|| Sync {
            segment: segment.number,
            file: Arc::clone(&segment.file),
            upto: segment.written,
        })
    }

    /// What a sync has come to. After one that failed, all that is not on disk is written again.
    pub fn end_sync(&mut self, sync: &Sync, done: &io::Result<()>) {
        assert!(
            sync.segment < self.segments,
            "a sync is of a segment that was opened: {} of {}",
            sync.segment,
            self.segments
        );
        let is_current = self.segment.as_ref().map(|segment| segment.number) == Some(sync.segment);
        if done.is_ok() {
            assert!(
                sync.upto <= self.last,
                "no more is on disk than was taken: {} of {}",
                sync.upto,
                self.last
            );
            self.synced = self.synced.max(sync.upto);
            let synced = self.synced;
            let gone = self.kept.iter().take_while(|(number, _)| *number <= synced);
            let gone = gone.count();
            for (_, frame) in self.kept.drain(..gone) {
                self.kept_bytes -= frame.len() as u64;
            }
        } else if is_current {
            self.segment = None;
        }
        self.check();
    }

    /// How its numbers relate: what is on disk, what is kept because it is not, and what was taken.
    fn check(&self) {
        assert!(
            self.marked <= self.synced && self.synced <= self.last,
            "batches are taken, then synced, then marked: {} {} {}",
            self.last,
            self.synced,
            self.marked
        );
        assert_eq!(
            self.kept.len() as u64,
            self.last - self.synced,
            "each batch that is not on disk for good is kept"
        );
        let first = self.kept.front().map(|(number, _)| *number);
        assert!(
            first.is_none_or(|first| first == self.synced + 1),
            "batches are kept from the first that is not on disk on"
        );
        let is_counted = || {
            let frames = self.kept.iter().map(|(_, frame)| frame.len() as u64);
            frames.sum::<u64>() == self.kept_bytes
        };
        assert!(
            self.kept.is_empty() == (self.kept_bytes == 0) && (!deep() || is_counted()),
            "bytes are counted of what is kept"
        );
        assert!(
            self.needs <= self.synced,
            "a batch that is lost is not waited for: {} of {}",
            self.needs,
            self.synced
        );
        let written = self.segment.as_ref().map(|segment| segment.written);
        assert!(
            written.is_none_or(|written| (self.marked..=self.last).contains(&written)),
            "a file has what it says is on disk, and nothing that was not taken: {written:?}"
        );
    }

    /// Says behind the last batch, once, that all are on disk for good: who finds that one damaged does
    /// not take it for a torn end then.
    ///
    /// # Errors
    /// What the system says; nobody misses it.
    pub fn mark(&mut self) -> io::Result<()> {
        let is_news = self.synced == self.last && self.marked < self.synced;
        let Some(segment) = self.segment.as_mut().filter(|_| is_news) else {
            return Ok(());
        };
        let frame = Frame::encode(self.last, self.synced, &[]);
        segment.file.write_at(&frame, segment.end)?;
        segment.end += frame.len() as u64;
        self.marked = self.synced;
        Ok(())
    }

    /// Whether the next batch should go to another segment.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let segment = self.segment.as_ref();
        segment.is_some_and(|segment| segment.end >= SEGMENT)
    }

    /// Leaves the next batch out, which is lost: all before it is on disk for good, and what comes
    /// behind it is of no use until [`Journal::replaced`]. Nobody else syncs meanwhile.
    ///
    /// # Errors
    /// What the system says; to be called again.
    pub fn skip(&mut self) -> io::Result<()> {
        self.settle()?;
        self.segment = None;
        self.last += 1;
        self.synced = self.last;
        self.needs = self.last;
        self.check();
        Ok(())
    }

    /// A checkpoint behind all batches that were left out is on disk for good.
    pub fn replaced(&mut self) {
        self.needs = 0;
    }

    /// All that was taken is on disk for good.
    fn settle(&mut self) -> io::Result<()> {
        self.flush()?;
        let Some(sync) = self.begin_sync() else {
            return Ok(());
        };
        let done = sync.run();
        self.end_sync(&sync, &done);
        done
    }

    /// Ends a segment with all that was taken, on disk for good, and begins the next one; its number.
    /// Nobody else syncs meanwhile.
    ///
    /// # Errors
    /// What the system says; to be called again.
    pub fn roll(&mut self) -> io::Result<u64> {
        self.settle()?;
        self.segment = None;
        let segment = self.open()?;
        let number = segment.number;
        self.segment = Some(segment);
        Ok(number)
    }

    /// The last batch that was taken.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The last batch that is on disk for good.
    #[must_use]
    pub fn synced(&self) -> u64 {
        self.synced
    }

    /// Bytes of batches that are not on disk for good yet.
    #[must_use]
    pub fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }

    /// Bytes that it has written.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
