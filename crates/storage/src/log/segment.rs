//! One file of the log: a header, records, and zeros or what an earlier life left.
//!
//! | bytes | |
//! |---|---|
//! | 8 | `MANXLOG1` |
//! | 8 | number of the segment |
//! | 8, 8 | number and end of the segment before it; zeros when the log begins here |
//! | 4 | CRC-32 of the fields above |
//!
//! The whole length is written before the first use: a sync of a record then has no metadata of
//! the file system to write, which makes it two to five times as fast.

use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::lanes::{Lanes, Unsynced, unknown};
use super::pieces::Pieces;
use super::record::{self, ALIGNMENT, LogPosition};
use super::{Counters, disk};
use crate::error::StorageError;
use crate::files::io_error;
use crate::model::Version;
use crate::sorted::SortedWrites;

/// Where records begin.
pub const HEADER_BYTES: u64 = 64;
const _: () = assert!(
    HEADER_BYTES.is_multiple_of(ALIGNMENT as u64),
    "the first record is found where records begin"
);

const MAGIC: [u8; 8] = *b"MANXLOG1";
const FIELDS_BYTES: usize = 32;
/// Zeros written at a time.
const FILL_BYTES: usize = 1 << 20;

/// What a segment says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Begins at 1, rises by at least one from segment to segment.
    pub number: u64,
    /// Where the log ended when this segment was begun; `None` when it begins here.
    pub previous: Option<LogPosition>,
}

impl Header {
    fn bytes(&self) -> Vec<u8> {
        assert!(
            self.previous
                .is_none_or(|previous| previous.segment < self.number),
            "a segment follows an earlier one"
        );
        assert!(
            self.previous
                .is_none_or(|previous| previous.offset >= HEADER_BYTES),
            "a segment ends behind its own head"
        );
        let previous = self.previous.unwrap_or(LogPosition {
            segment: 0,
            offset: 0,
        });
        let mut bytes = MAGIC.to_vec();
        for field in [self.number, previous.segment, previous.offset] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        assert_eq!(
            bytes.len(),
            FIELDS_BYTES,
            "a header is read as it was written"
        );
        let checksum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        assert!(
            bytes.len() as u64 <= HEADER_BYTES,
            "records begin behind the header"
        );
        bytes
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let fields = bytes.get(..FIELDS_BYTES)?;
        let checksum = bytes.get(FIELDS_BYTES..FIELDS_BYTES + 4)?.try_into().ok()?;
        if !fields.starts_with(&MAGIC) || crc32fast::hash(fields) != u32::from_le_bytes(checksum) {
            return None;
        }
        let number = |at: usize| {
            let bytes = fields.get(at..at + 8)?.try_into().ok()?;
            Some(u64::from_le_bytes(bytes))
        };
        let (segment, offset) = (number(16)?, number(24)?);
        Some(Self {
            // A segment that no other could name as the one before it is not ours.
            number: number(8).filter(|number| *number > 0)?,
            previous: (segment > 0).then_some(LogPosition { segment, offset }),
        })
    }
}

/// The segment that records are added to.
#[derive(Debug)]
pub struct Segment {
    file: File,
    path: Arc<Path>,
    number: u64,
    length: u64,
    end: u64,
    lanes: Arc<Lanes>,
}

impl Segment {
    /// Makes `path`, a file filled before (see [`fill`]), the segment that `header` says; each
    /// wait for the disk will be counted.
    ///
    /// # Errors
    /// [`StorageError::Io`], [`StorageError::Full`] or [`StorageError::ReadOnly`].
    pub fn begin(
        path: PathBuf,
        header: &Header,
        counters: &Arc<Counters>,
    ) -> Result<Self, StorageError> {
        let begin = || {
            let file = File::options().read(true).write(true).open(&path)?;
            let length = file.metadata()?.len();
            disk::write_at(&file, &path, &header.bytes(), 0)?;
            disk::sync(&file, &path)?;
            let lanes = Lanes::open(&path, HEADER_BYTES, counters)?;
            Ok((file, length, Arc::new(lanes)))
        };
        let (file, length, lanes) =
            begin().map_err(|error| io_error(format!("cannot begin {}", path.display()), error))?;
        Ok(Self {
            file,
            path: path.into(),
            number: header.number,
            length,
            end: HEADER_BYTES,
            lanes,
        })
    }

    /// Gives the file the name it is found by.
    ///
    /// # Errors
    /// What the operating system reports; the file then has its old name.
    pub fn rename(&mut self, path: PathBuf) -> std::io::Result<()> {
        disk::rename(&self.path, &path)?;
        self.path = path.into();
        Ok(())
    }

    /// Where the next record begins.
    pub fn end(&self) -> LogPosition {
        LogPosition {
            segment: self.number,
            offset: self.end,
        }
    }

    /// Whether all records are known to be on disk.
    pub fn is_synced(&self) -> bool {
        self.lanes.synced_to() >= self.end
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether `bytes` more fit.
    pub fn has_room(&self, bytes: usize) -> bool {
        let left = self.length.saturating_sub(self.end);
        u64::try_from(bytes).is_ok_and(|bytes| bytes <= left)
    }

    /// Adds the record begun in `bytes` ([`record::encode`]); it is in the operating system then.
    ///
    /// # Errors
    /// [`StorageError::Io`]: whether the record is in the file is not known.
    pub fn append(&mut self, bytes: &mut Vec<u8>) -> Result<(), StorageError> {
        record::seal(self.end(), self.lanes.synced_to(), bytes);
        assert!(
            self.has_room(bytes.len()),
            "a record ends inside its segment"
        );
        disk::write_at(&self.file, &self.path, bytes, self.end)
            .map_err(|error| unknown("write", &self.path, error))?;
        self.end += bytes.len() as u64;
        assert!(
            self.end.is_multiple_of(ALIGNMENT as u64),
            "records begin at multiples"
        );
        self.lanes.written(self.end);
        Ok(())
    }

    /// Adds the record of `writes` at `version`, whose payload takes so many bytes, in pieces; it is in
    /// the operating system then.
    ///
    /// # Errors
    /// As [`Segment::append`].
    pub fn append_sorted(
        &mut self,
        version: Version,
        writes: &dyn SortedWrites,
        payload_bytes: u32,
    ) -> Result<(), StorageError> {
        let (place, synced_to) = (self.end(), self.lanes.synced_to());
        let pieces = Pieces::begin(&self.file, &self.path, place, synced_to, payload_bytes);
        let size = pieces
            .write(version, writes)
            .map_err(|error| unknown("write", &self.path, error))?;
        self.end += size;
        assert!(
            self.end <= self.length && self.end.is_multiple_of(ALIGNMENT as u64),
            "a record ends inside its segment, where another may begin"
        );
        self.lanes.written(self.end);
        Ok(())
    }

    /// All records, to wait for without the segment.
    pub fn unsynced(&self) -> Unsynced {
        Unsynced {
            lanes: Arc::clone(&self.lanes),
            path: Arc::clone(&self.path),
            end: self.end,
        }
    }
}

/// Writes a new file of `length` zeros, durably; leaves nothing when that fails.
///
/// # Errors
/// [`StorageError::Full`], [`StorageError::ReadOnly`] or [`StorageError::Io`].
pub fn fill(path: &Path, length: u64) -> Result<(), StorageError> {
    let write = |file: File| {
        let zeros = vec![0; FILL_BYTES];
        let mut at = 0;
        while at < length {
            let count =
                usize::try_from(length - at).map_or(FILL_BYTES, |left| left.min(FILL_BYTES));
            disk::write_at(&file, path, zeros.get(..count).unwrap_or_default(), at)?;
            at += count as u64;
        }
        assert_eq!(at, length, "a file is filled to its length");
        disk::sync(&file, path)
    };
    let context = |error| io_error(format!("cannot make {}", path.display()), error);
    let file = disk::create(path).map_err(context)?;
    write(file).map_err(|error| {
        // The error that stopped the writing is the one to report.
        let _ = disk::remove(path);
        context(error)
    })
}

/// A segment read whole, to recover from.
#[derive(Debug)]
pub struct SegmentContents {
    /// Its file.
    pub path: PathBuf,
    /// What it says of itself.
    pub header: Header,
    bytes: Vec<u8>,
}

impl SegmentContents {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] when it is no segment, [`StorageError::Io`] when it cannot be
    /// read.
    pub fn read(path: PathBuf) -> Result<Self, StorageError> {
        let bytes = fs::read(&path)
            .map_err(|error| io_error(format!("cannot read {}", path.display()), error))?;
        match Header::parse(&bytes) {
            Some(header) => Ok(Self {
                path,
                header,
                bytes,
            }),
            None => Err(StorageError::Corrupt(format!(
                "the head of the commit log's file {} is damaged: restore a backup",
                path.display()
            ))),
        }
    }

    fn record_at(&self, offset: u64) -> Option<record::Record<'_>> {
        let place = LogPosition {
            segment: self.header.number,
            offset,
        };
        record::read(self.bytes.get(usize::try_from(offset).ok()?..)?, place)
    }

    /// Where records begin that the sorted files do not hold, which hold all before `applied`.
    fn first(&self, applied: Option<LogPosition>) -> u64 {
        let here = applied.filter(|applied| applied.segment == self.header.number);
        here.map_or(HEADER_BYTES, |applied| applied.offset.max(HEADER_BYTES))
    }

    /// The payloads of the records from `applied` up to the first that is not valid, with where
    /// they stand. Those before are not looked at: nobody needs them, whatever became of them.
    pub fn records(
        &self,
        applied: Option<LogPosition>,
    ) -> impl Iterator<Item = (Range<LogPosition>, &[u8])> {
        let segment = self.header.number;
        let at = move |offset| LogPosition { segment, offset };
        let mut next = self.first(applied);
        std::iter::from_fn(move || {
            let record = self.record_at(next)?;
            let start = next;
            next += record.size as u64;
            Some((at(start)..at(next), record.payload))
        })
    }

    /// Behind the last record of [`SegmentContents::records`].
    pub fn end(&self, applied: Option<LogPosition>) -> LogPosition {
        let first = LogPosition {
            segment: self.header.number,
            offset: self.first(applied),
        };
        let last = self.records(applied).last();
        last.map_or(first, |(place, _)| place.end)
    }

    /// Every valid record, also behind damage, with where it begins.
    pub fn whatever_can_be_read(&self) -> impl Iterator<Item = &[u8]> {
        let mut next = HEADER_BYTES;
        std::iter::from_fn(move || {
            while next < self.bytes.len() as u64 {
                if let Some(record) = self.record_at(next) {
                    next += record.size as u64;
                    return Some(record.payload);
                }
                next += ALIGNMENT as u64;
            }
            None
        })
    }

    /// Writes what stands before `end` once more and waits for the disk.
    ///
    /// It may be in memory only: the process before may have been killed before it waited, or its
    /// wait may have failed, after which the system believes the file to be on disk.
    ///
    /// # Errors
    /// [`StorageError::Full`], [`StorageError::ReadOnly`] or [`StorageError::Io`].
    pub fn secure(&self, end: LogPosition) -> Result<(), StorageError> {
        assert_eq!(
            end.segment, self.header.number,
            "a segment is secured to its own end"
        );
        let length = usize::try_from(end.offset).unwrap_or(usize::MAX);
        let needed = self.bytes.get(..length).unwrap_or(&self.bytes);
        let write = || {
            let file = File::options().write(true).open(&self.path)?;
            disk::write_at(&file, &self.path, needed, 0)?;
            disk::sync(&file, &self.path)
        };
        write().map_err(|error| io_error(format!("cannot write {}", self.path.display()), error))
    }

    /// Whether a valid record behind `end` says that the disk had what is missing at `end`.
    ///
    /// A crash may leave the last records cut short, or, when they were not waited for, holes
    /// between them; but whoever wrote a record knew how far the segment was on disk. Hence a
    /// record that knew more than `end` proves damage rather than a crash.
    ///
    /// Time and memory grow with the file alone, whatever is in it: a client's values can look
    /// like the heads of a million records that reach to the end, so no payload is read for its
    /// head's sake.
    pub fn is_damaged_at(&self, end: LogPosition) -> bool {
        assert_eq!(
            end.segment, self.header.number,
            "damage is looked for behind its own end"
        );
        let rest = usize::try_from(end.offset).ok();
        let Some(rest) = rest.and_then(|from| self.bytes.get(from..)) else {
            return false;
        };
        let mut sums = None;
        (ALIGNMENT..rest.len()).step_by(ALIGNMENT).any(|at| {
            let place = LogPosition {
                offset: end.offset + at as u64,
                ..end
            };
            let head = rest.get(at..).and_then(|bytes| record::head(bytes, place));
            let Some(head) = head.filter(|head| head.synced_to > end.offset) else {
                return false;
            };
            let sums = sums.get_or_insert_with(|| Sums::of(rest));
            let begin = at + record::HEADER_BYTES;
            let before = sums.until(begin);
            let through = sums.until(begin.saturating_add(head.payload_bytes));
            before
                .zip(through)
                .is_some_and(|(before, through)| head.is_between(before, through))
        })
    }
}

/// CRC-32 of every beginning of some bytes.
struct Sums<'a> {
    bytes: &'a [u8],
    /// At `i` of the first `i × ALIGNMENT` bytes.
    coarse: Vec<u32>,
}

impl<'a> Sums<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        let mut hasher = crc32fast::Hasher::new();
        let mut coarse = Vec::with_capacity(bytes.len() / ALIGNMENT + 1);
        coarse.push(0);
        for chunk in bytes.chunks_exact(ALIGNMENT) {
            hasher.update(chunk);
            coarse.push(hasher.clone().finalize());
        }
        assert_eq!(
            coarse.len(),
            bytes.len() / ALIGNMENT + 1,
            "each beginning of whole pieces has its sum"
        );
        Self { bytes, coarse }
    }

    /// Of the first `count` bytes; `None` when there are fewer.
    fn until(&self, count: usize) -> Option<u32> {
        let known = count / ALIGNMENT;
        let left = self.bytes.get(known * ALIGNMENT..count)?;
        let mut hasher = crc32fast::Hasher::new_with_initial(*self.coarse.get(known)?);
        hasher.update(left);
        Some(hasher.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_back_and_every_flipped_bit_found() {
        for previous in [
            None,
            Some(LogPosition {
                segment: 4,
                offset: 99,
            }),
        ] {
            let header = Header {
                number: 5,
                previous,
            };
            let bytes = header.bytes();
            assert_eq!(Header::parse(&bytes), Some(header));
            for bit in 0..bytes.len() * 8 {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Header::parse(&damaged), None, "bit {bit}");
            }
        }
    }

    #[test]
    fn sums_of_beginnings_are_those_of_their_bytes() {
        let bytes: Vec<u8> = (0..61_u8).map(|byte| byte.wrapping_mul(37)).collect();
        let sums = Sums::of(&bytes);
        for count in 0..=bytes.len() {
            assert_eq!(sums.until(count), Some(crc32fast::hash(&bytes[..count])));
        }
        assert_eq!(sums.until(bytes.len() + 1), None);
        assert_eq!(sums.until(usize::MAX), None);
    }
}
