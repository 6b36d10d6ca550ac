//! The commit log: batches of writes, in order, on disk before they are acknowledged.
//!
//! The sorted files get a batch only when a memtable is full; until then the log is the only
//! durable copy. It is ours rather than RocksDB's because a log that grows makes each sync write
//! file-system metadata too, and because RocksDB refuses to reuse files while telling damage from
//! a torn tail; we want both (docs/decisions/007).
//!
//! ```text
//! log/0000000000000007.log   sealed: a memtable may still need it
//! log/0000000000000008.log   active: records are added here
//! log/spare-3                filled ahead, or retired and waiting for reuse
//! ```
//!
//! Segments form a chain: each names the one before it and where that ended, so a missing file and
//! a damaged end are found (`recovery`). A segment goes when the sorted files hold all of it.
//!
//! Start reading at [`CommitLog`], then `record`, `segment`, `recovery`. Only [`crate::rocks`] writes
//! one; the module is public for the fuzz target that damages one.

mod disk;
mod lanes;
mod pieces;
#[cfg(test)]
mod power;
mod record;
mod recovery;
mod search;
mod segment;
mod spares;

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use manxdb_core::check::ensure;

pub use disk::create_folder;
pub use lanes::Unsynced;
pub use record::LogPosition;
pub use recovery::salvage;
pub use search::search;

use self::segment::{Header, Segment};
use self::spares::Spares;
use crate::error::StorageError;
use crate::files::io_error;
use crate::model::{Durability, WriteBatch};

/// Folder of a data directory that holds the log.
pub const FOLDER: &str = "log";

/// Smallest segment, so that the head and a few records fit.
const SEGMENT_BYTES_MIN: u64 = 4 << 10;
const _: () = assert!(
    SEGMENT_BYTES_MIN > segment::HEADER_BYTES + record::HEADER_BYTES as u64,
    "the smallest segment takes a record"
);

/// Highest number a segment is found with: behind it a process never runs out of numbers.
const NUMBER_MAX: u64 = u64::MAX >> 1;

/// A segment that gets no more records.
#[derive(Debug)]
struct Sealed {
    path: PathBuf,
    number: u64,
}

/// The log of one store, for one writer at a time.
pub struct CommitLog {
    directory: PathBuf,
    segment_bytes: u64,
    spares: Spares,
    active: Option<Segment>,
    sealed: VecDeque<Sealed>,
    /// Where the last segment ended, while none is active.
    end: Option<LogPosition>,
    next_number: u64,
    /// The record that [`CommitLog::prepare`] began.
    pending: Vec<u8>,
    /// Files that are done with are removed, not used again: see [`CommitLog::begin_clean`].
    removes_files: bool,
    /// The last segment that was begun in a file without old records.
    clean_segment: Option<u64>,
    /// Why nothing can be written any more.
    broken: Option<String>,
    counters: Arc<Counters>,
}

/// What a log has done since it was opened, for metrics, which must not wait for a write.
#[derive(Debug, Default)]
pub struct Counters {
    /// Waits for the disk.
    pub syncs: AtomicU64,
    /// Bytes of records.
    pub bytes: AtomicU64,
    /// Files that hold records, now.
    pub files: AtomicU64,
}

impl CommitLog {
    /// Opens the log in `directory` and hands every batch at or behind `applied` to `replay`, in
    /// order and with where it ends. `applied` is how far the sorted files got, as told by [`CommitLog::prepare`];
    /// `None` when they hold nothing of this log.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] when batches that were on disk are damaged or missing; what
    /// `replay` says; [`StorageError::Io`].
    pub fn open(
        directory: &Path,
        segment_bytes: u64,
        applied: Option<LogPosition>,
        mut replay: impl FnMut(LogPosition, WriteBatch) -> Result<(), StorageError>,
    ) -> Result<Self, StorageError> {
        disk::create_folder(directory)?;
        let segment_bytes = segment_bytes.max(SEGMENT_BYTES_MIN);
        let spares = Spares::open(directory, segment_bytes)?;
        let recovered = recovery::recover(directory, applied, &mut replay)?;
        if recovered.newest > NUMBER_MAX {
            let last = recovery::path_of(directory, recovered.newest);
            return Err(StorageError::Corrupt(format!(
                "{} is no file that the commit log made: its number is too high",
                last.display()
            )));
        }
        let next_number = recovered.newest + 1;
        let numbers = recovered.segments.iter().map(|(number, _)| *number);
        assert!(
            numbers.is_sorted_by(|one, two| one < two),
            "segments are in order"
        );
        let last = recovered.segments.last().map(|(number, _)| *number);
        assert!(
            last.is_none_or(|last| last == recovered.newest),
            "a new segment gets a number that no file has"
        );
        let end = recovered.end.or(applied);
        assert!(
            applied <= end,
            "the log ends no earlier than what the sorted files hold of it"
        );
        for path in &recovered.obsolete {
            spares.give_back(path);
        }
        let log = Self {
            directory: directory.to_owned(),
            segment_bytes,
            spares,
            active: None,
            sealed: recovered
                .segments
                .into_iter()
                .map(|(number, path)| Sealed { path, number })
                .collect(),
            next_number,
            end,
            pending: Vec::new(),
            removes_files: false,
            clean_segment: None,
            broken: None,
            counters: Arc::default(),
        };
        log.count_files();
        assert_eq!(log.check(), Ok(()));
        Ok(log)
    }

    /// What holds between any two calls.
    ///
    /// # Errors
    /// The invariant that is broken.
    fn check(&self) -> Result<(), String> {
        let numbers = self.sealed.iter().map(|sealed| sealed.number);
        ensure(numbers.is_sorted_by(|one, next| one < next), || {
            format!("segments are sealed in order: {:?}", self.sealed)
        })?;
        let is_named =
            |sealed: &Sealed| sealed.path == recovery::path_of(&self.directory, sealed.number);
        ensure(self.sealed.iter().all(is_named), || {
            format!("a segment is found by its name: {:?}", self.sealed)
        })?;
        let newest = self.sealed.back().map(|sealed| sealed.number);
        let active = self.active.as_ref().map(|active| active.end().segment);
        ensure(active.is_none_or(|active| newest < Some(active)), || {
            format!("segment {newest:?} is sealed behind the active one, {active:?}")
        })?;
        ensure(active.max(newest) < Some(self.next_number), || {
            format!("segment {} was begun before", self.next_number)
        })?;
        ensure(self.active.is_none() || self.end.is_none(), || {
            format!(
                "the log ends where its active segment does, not at {:?}",
                self.end
            )
        })?;
        let clean = self.clean_segment;
        ensure(clean < Some(self.next_number), || {
            format!("segment {clean:?} is to be begun, and has no old records")
        })?;
        let counted = self.counters.files.load(Ordering::Relaxed);
        ensure(counted == self.segments() as u64, || {
            format!("{counted} files are counted of {}", self.segments())
        })
    }

    /// Makes `batch` ready to be committed, with room for it; where the log will end with it.
    ///
    /// # Errors
    /// [`StorageError::Full`], [`StorageError::ReadOnly`], [`StorageError::Io`]: nothing of the
    /// batch is written. The next try may succeed, unless the log failed in the middle of
    /// something, now or before: then it takes nothing more until it is opened again.
    /// [`StorageError::Engine`] for a batch of 4 GiB.
    pub fn prepare(&mut self, batch: &WriteBatch) -> Result<LogPosition, StorageError> {
        self.check_usable()?;
        record::encode(batch, &mut self.pending).ok_or_else(too_long)?;
        self.make_room(self.pending.len())
    }

    fn check_usable(&self) -> Result<(), StorageError> {
        let stopped = |reason: &String| {
            StorageError::ReadOnly(format!(
                "writes stopped, restart when this is mended: {reason}"
            ))
        };
        self.broken.as_ref().map(stopped).map_or(Ok(()), Err)
    }

    /// Finds room for a record of so many bytes; where the log will end with it.
    fn make_room(&mut self, bytes: usize) -> Result<LogPosition, StorageError> {
        let size = bytes.next_multiple_of(record::ALIGNMENT);
        let is_fitting = |active: &Segment| active.has_room(size);
        if !self.active.as_ref().is_some_and(is_fitting) {
            self.roll_over(size as u64)?;
        }
        let fitting = self.active.as_ref().filter(|active| is_fitting(active));
        // Somebody else cut the file short.
        let end = fitting.map(Segment::end).ok_or_else(|| {
            StorageError::Engine("a new file of the log is shorter than it was made".to_owned())
        })?;
        assert_eq!(
            end.segment + 1,
            self.next_number,
            "a batch has room in the newest segment"
        );
        Ok(LogPosition {
            offset: end.offset + size as u64,
            ..end
        })
    }

    /// Writes what [`CommitLog::prepare`] made ready: it outlives the process then, and power
    /// loss when it was waited for ([`Unsynced::wait`]), for which the log is not needed. Others
    /// may be written meanwhile.
    ///
    /// # Errors
    /// [`StorageError::Io`]: whether the batch is in the log is not known, and it takes nothing
    /// more until it is opened again.
    pub fn append(&mut self) -> Result<Unsynced, StorageError> {
        assert!(
            !self.pending.is_empty(),
            "a batch is prepared before it is appended"
        );
        assert!(
            self.broken.is_none(),
            "nothing is appended to a log that has failed"
        );
        let Some(active) = &mut self.active else {
            return Err(StorageError::Engine("nothing was prepared".to_owned()));
        };
        let appended = active.append(&mut self.pending).map(|()| active.unsynced());
        let bytes = self.pending.len() as u64;
        self.counters.bytes.fetch_add(bytes, Ordering::Relaxed);
        // A batch that is appended twice would be read twice.
        self.pending.clear();
        self.or_broken(appended)
    }

    /// As [`CommitLog::append`]; with [`Durability::Sync`] the batch and all before it are on
    /// disk then.
    ///
    /// # Errors
    /// As [`CommitLog::append`].
    pub fn commit(&mut self, durability: Durability) -> Result<(), StorageError> {
        let unsynced = self.append()?;
        match durability {
            Durability::Sync => self.or_broken(unsynced.wait()),
            Durability::Async => Ok(()),
        }
    }

    /// Takes nothing more, because a wait for a batch failed.
    pub fn stop(&mut self, why: &StorageError) {
        self.broken.get_or_insert_with(|| why.to_string());
    }

    /// After an error that leaves open what is on disk, nothing may follow: what is written behind
    /// a hole would be lost with it, and the system may call a file synced after it lost a part.
    fn or_broken<T>(&mut self, done: Result<T, StorageError>) -> Result<T, StorageError> {
        done.inspect_err(|error| self.stop(error))
    }

    /// Whether segments wait for the sorted files to hold what is in them.
    pub fn has_sealed(&self) -> bool {
        !self.sealed.is_empty()
    }

    /// Lets go of segments that the sorted files hold whole: they hold all before `applied`.
    pub fn retire(&mut self, applied: LogPosition) {
        assert!(
            Some(applied) <= self.end(),
            "the sorted files hold nothing that was not logged"
        );
        while let Some(oldest) = self.sealed.front() {
            if oldest.number >= applied.segment {
                break;
            }
            if self.removes_files {
                // One that is left is tried again by [`CommitLog::discard`].
                let _ = disk::remove(&oldest.path);
            } else {
                self.spares.give_back(&oldest.path);
            }
            self.sealed.pop_front();
        }
        self.count_files();
        assert_eq!(self.check(), Ok(()));
    }

    /// Goes on in a file that never held records, so that all that is logged so far can go with its
    /// files ([`CommitLog::discard`]), once the sorted files hold it; where the log ended. `None`
    /// when nothing was logged, ever or since it did so last.
    ///
    /// # Errors
    /// As [`CommitLog::prepare`].
    pub fn begin_clean(&mut self) -> Result<Option<LogPosition>, StorageError> {
        if let Some(reason) = &self.broken {
            return Err(StorageError::ReadOnly(reason.clone()));
        }
        let Some(end) = self.end() else {
            return Ok(None);
        };
        let is_empty = self.active.is_some() && end.offset == segment::HEADER_BYTES;
        if is_empty && self.clean_segment == Some(end.segment) && self.sealed.is_empty() {
            return Ok(None);
        }
        self.removes_files = true;
        self.spares.remove_all()?;
        self.roll_over(0)?;
        self.clean_segment = self.end().map(|begun| begun.segment);
        assert!(
            self.clean_segment > Some(end.segment),
            "a new segment has a number of its own"
        );
        Ok(Some(end))
    }

    /// Removes the files of what was logged up to `before`, where [`CommitLog::begin_clean`] began anew;
    /// false while the sorted files, which got as far as `applied`, do not hold all of it.
    ///
    /// # Errors
    /// [`StorageError::Io`] when a file cannot be removed.
    pub fn discard(
        &mut self,
        before: LogPosition,
        applied: LogPosition,
    ) -> Result<bool, StorageError> {
        assert!(
            Some(applied) <= self.end(),
            "no file goes for what was not logged"
        );
        if applied < before {
            return Ok(false);
        }
        self.sealed.retain(|sealed| sealed.number > before.segment);
        self.count_files();
        recovery::remove_up_to(&self.directory, before.segment)?;
        disk::sync_folder(&self.directory).map_err(|error| {
            io_error(format!("cannot sync {}", self.directory.display()), error)
        })?;
        self.removes_files = false;
        assert!(
            self.end().is_some_and(|end| end.segment > before.segment),
            "the segment that is written to stays"
        );
        assert_eq!(self.check(), Ok(()));
        Ok(true)
    }

    /// Where the log ends; `None` when nothing was ever logged.
    pub fn end(&self) -> Option<LogPosition> {
        self.active.as_ref().map(Segment::end).or(self.end)
    }

    /// Since the log was opened.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }

    /// Number of files that hold records.
    pub fn segments(&self) -> usize {
        self.sealed.len() + usize::from(self.active.is_some())
    }

    /// Begins a segment with room for a record of `size` bytes. Everything before it is on disk
    /// before it exists, and its head before it has its name.
    fn roll_over(&mut self, size: u64) -> Result<(), StorageError> {
        if let Some(active) = &self.active {
            let synced = active.unsynced().wait();
            self.or_broken(synced)?;
        }
        assert!(self.next_number > 0, "segments are counted from 1");
        assert!(
            self.active.as_ref().is_none_or(Segment::is_synced),
            "all before a segment is on disk before it exists"
        );
        let header = Header {
            number: self.next_number,
            previous: self.end(),
        };
        let length = self.segment_bytes.max(segment::HEADER_BYTES + size);
        let spare = self.spares.take(length)?;
        let begun = Segment::begin(spare.clone(), &header, &self.counters)
            .and_then(|segment| self.name(segment));
        let segment = begun.inspect_err(|_| {
            // One that cannot be removed is a spare again at the next start.
            let _ = disk::remove(&spare);
        })?;
        // Until this is on disk nothing may be acknowledged, neither here nor in the segment
        // before: the name may be there after a crash, and says where that one ended.
        let synced = disk::sync_folder(&self.directory)
            .map_err(|error| io_error(format!("cannot sync {}", self.directory.display()), error));
        self.or_broken(synced)?;
        self.next_number += 1;
        if let Some(full) = self.active.replace(segment) {
            let last = self.sealed.back().map_or(0, |last| last.number);
            assert!(last < full.end().segment, "segments are sealed in order");
            self.sealed.push_back(Sealed {
                number: full.end().segment,
                path: full.path().to_owned(),
            });
        }
        self.end = None;
        self.count_files();
        assert_eq!(self.check(), Ok(()));
        Ok(())
    }

    fn count_files(&self) {
        let files = self.segments() as u64;
        self.counters.files.store(files, Ordering::Relaxed);
    }

    /// Gives a segment that was begun in a spare file its name.
    fn name(&self, mut segment: Segment) -> Result<Segment, StorageError> {
        let path = recovery::path_of(&self.directory, segment.end().segment);
        let context = format!("cannot name {}", path.display());
        let renamed = segment.rename(path);
        renamed.map_err(|error| io_error(context, error))?;
        Ok(segment)
    }
}

fn too_long() -> StorageError {
    StorageError::Engine("a batch of 4 GiB or more cannot be logged".to_owned())
}

/// Makes an empty log in `directory` for a copy of a store whose sorted files hold everything.
///
/// # Errors
/// [`StorageError::Full`], [`StorageError::ReadOnly`] or [`StorageError::Io`].
pub fn begin_empty(directory: &Path, after: Option<LogPosition>) -> Result<(), StorageError> {
    let context = |error| io_error(format!("cannot write {}", directory.display()), error);
    fs::create_dir(directory).map_err(context)?;
    let number = after.map_or(1, |place| place.segment.saturating_add(1));
    assert!(
        after.is_none_or(|place| place.segment < number),
        "the log of a copy goes on behind what its sorted files hold"
    );
    let path = recovery::path_of(directory, number);
    segment::fill(&path, segment::HEADER_BYTES)?;
    let previous = None;
    Segment::begin(path, &Header { number, previous }, &Arc::default())?;
    disk::sync_folder(directory).map_err(context)
}

#[cfg(test)]
mod tests;
