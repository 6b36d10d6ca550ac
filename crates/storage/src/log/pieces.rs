//! A record that is too long to be made in memory first: written in pieces, its head last.
//!
//! Without its head a record is none, so what a crash leaves in between is the torn end of a log, as
//! of any record that nobody waited for. Whoever reads it sees one record like all others.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering;

use super::record::{self, ALIGNMENT, HEADER_BYTES, LogPosition};
use super::{CommitLog, Unsynced, disk, too_long};
use crate::error::StorageError;
use crate::model::Version;
use crate::sorted::SortedWrites;

/// Bytes written at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Length of the payload of `writes`; `None` when a key, a value or the whole is too long for its
/// length field.
pub fn payload_bytes(writes: &dyn SortedWrites) -> Option<u32> {
    let mut bytes = Some(0_u64);
    writes.each(&mut |key, value| {
        bytes = bytes.and_then(|bytes| Some(bytes + record::write_bytes(key, value)?));
    });
    // As far as whole records may reach.
    u32::try_from(bytes? + HEADER_BYTES as u64).ok()?;
    u32::try_from(bytes?).ok()
}

impl CommitLog {
    /// Writes one record of `writes` at `version`, in pieces; where it stands, and what to wait for.
    ///
    /// # Errors
    /// As [`CommitLog::prepare`], then as [`CommitLog::append`].
    pub fn append_sorted(
        &mut self,
        version: Version,
        writes: &dyn SortedWrites,
    ) -> Result<(Range<LogPosition>, Unsynced), StorageError> {
        self.check_usable()?;
        let payload_bytes = payload_bytes(writes).ok_or_else(too_long)?;
        let end = self.make_room(record::HEADER_BYTES + payload_bytes as usize)?;
        let Some(active) = &mut self.active else {
            return Err(StorageError::Engine("nothing was prepared".to_owned()));
        };
        let start = active.end();
        let appended = active
            .append_sorted(version, writes, payload_bytes)
            .map(|()| active.unsynced());
        let bytes = end.offset - start.offset;
        self.counters.bytes.fetch_add(bytes, Ordering::Relaxed);
        let unsynced = self.or_broken(appended)?;
        assert_eq!(
            self.end(),
            Some(end),
            "a record ends where room was found for it"
        );
        Ok((start..end, unsynced))
    }
}

/// A record being written.
pub struct Pieces<'a> {
    file: &'a File,
    path: &'a Path,
    place: LogPosition,
    head: [[u8; 4]; 2],
    payload_bytes: u32,
    hasher: crc32fast::Hasher,
    piece: Vec<u8>,
    /// Bytes of the payload that the file has.
    written: u64,
}

impl<'a> Pieces<'a> {
    /// A record at `place` of the file, of which nothing is written; the segment is known to be on
    /// disk up to `synced_to`.
    pub fn begin(
        file: &'a File,
        path: &'a Path,
        place: LogPosition,
        synced_to: u64,
        payload_bytes: u32,
    ) -> Self {
        assert!(
            synced_to <= place.offset,
            "nothing behind a record is on disk before it"
        );
        let synced_to = u32::try_from(synced_to).unwrap_or(u32::MAX);
        let head = [payload_bytes.to_le_bytes(), synced_to.to_le_bytes()];
        Self {
            file,
            path,
            place,
            head,
            payload_bytes,
            hasher: record::begun(place, head[0], head[1]),
            piece: Vec::new(),
            written: 0,
        }
    }

    /// Writes all of `writes` at `version`, then the head; bytes the record takes.
    pub fn write(mut self, version: Version, writes: &dyn SortedWrites) -> io::Result<u64> {
        let mut failure = None;
        writes.each(&mut |key, value| {
            if failure.is_some() {
                return;
            }
            let is_put = record::put_write(version, key, value, &mut self.piece);
            assert!(is_put.is_some(), "a write was measured before it is logged");
            if self.piece.len() >= PIECE_BYTES {
                failure = self.flush().err();
            }
        });
        match failure {
            Some(failure) => Err(failure),
            None => self.end(),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.hasher.update(&self.piece);
        let at = self.place.offset + HEADER_BYTES as u64 + self.written;
        disk::write_at(self.file, self.path, &self.piece, at)?;
        self.written += self.piece.len() as u64;
        assert!(
            self.written <= u64::from(self.payload_bytes),
            "a record takes the room that was reserved for it"
        );
        self.piece.clear();
        Ok(())
    }

    fn end(mut self) -> io::Result<u64> {
        self.flush()?;
        assert_eq!(
            self.written,
            u64::from(self.payload_bytes),
            "a record is as long as its head says"
        );
        let end = HEADER_BYTES as u64 + self.written;
        let size = end.next_multiple_of(ALIGNMENT as u64);
        let padding = [0; ALIGNMENT];
        let padding = padding.get(..usize::try_from(size - end).unwrap_or(0));
        let behind = self.place.offset + end;
        disk::write_at(self.file, self.path, padding.unwrap_or_default(), behind)?;
        let checksum = self.hasher.finalize().to_le_bytes();
        let head = [record::MAGIC, self.head[0], self.head[1], checksum].concat();
        assert_eq!(head.len(), HEADER_BYTES, "a payload begins behind its head");
        disk::write_at(self.file, self.path, &head, self.place.offset)?;
        Ok(size)
    }
}
