//! What a log holds after whatever ended the process before.

use std::fs;
use std::path::{Path, PathBuf};

use super::disk;
use super::record::{self, LogPosition};
use super::segment::SegmentContents;
use crate::error::StorageError;
use crate::files::io_error;
use crate::model::WriteBatch;

/// What was found.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Segments that are still needed, oldest first.
    pub segments: Vec<(u64, PathBuf)>,
    /// Files whose records the sorted files hold.
    pub obsolete: Vec<PathBuf>,
    /// Where the log ends; `None` when it holds no segment.
    pub end: Option<LogPosition>,
    /// Highest number of a segment, 0 when there is none.
    pub newest: u64,
}

/// What to do with a batch that ends at a place.
pub type Replay<'a> = dyn FnMut(LogPosition, WriteBatch) -> Result<(), StorageError> + 'a;

/// The file of segment `number`.
pub fn path_of(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:016x}.log"))
}

/// Removes the files of all segments up to `number`.
///
/// # Errors
/// [`StorageError::Io`] when the folder cannot be listed, or a file not removed.
pub fn remove_up_to(directory: &Path, number: u64) -> Result<(), StorageError> {
    for (found, path) in numbered(directory)? {
        if found <= number {
            disk::remove(&path)
                .map_err(|error| io_error(format!("cannot remove {}", path.display()), error))?;
        }
    }
    Ok(())
}

/// Reads the log in `directory` and replays every batch at or behind `applied`.
///
/// # Errors
/// [`StorageError::Corrupt`] when a batch that was on disk is damaged or its file is missing.
pub fn recover(
    directory: &Path,
    applied: Option<LogPosition>,
    replay: &mut Replay<'_>,
) -> Result<Recovered, StorageError> {
    let mut recovered = Recovered::default();
    let first_needed = applied.map_or(0, |place| place.segment);
    let mut before: Option<SegmentContents> = None;
    for (number, path) in numbered(directory)? {
        assert!(
            recovered.segments.is_empty() || number > recovered.newest,
            "segments ascend"
        );
        recovered.newest = number;
        if number < first_needed {
            recovered.obsolete.push(path);
            continue;
        }
        let found = SegmentContents::read(path)?;
        check_number(&found, number)?;
        match &before {
            None => check_first(&found, applied)?,
            Some(before) => check_follows(&found, before, applied)?,
        }
        replay_segment(&found, applied, replay)?;
        recovered.segments.push((number, found.path.clone()));
        before = Some(found);
    }
    match (before, applied) {
        (Some(last), _) => {
            let end = last.end(applied);
            assert_eq!(
                end.segment, recovered.newest,
                "the log ends in its newest file: numbers go on behind it"
            );
            if last.is_damaged_at(end) {
                return Err(damaged(&last, end));
            }
            // What follows will say that the log was on disk up to here.
            if applied.is_none_or(|applied| applied < end) {
                last.secure(end)?;
            }
            recovered.end = Some(end);
        }
        (None, Some(applied)) => return Err(missing(directory, applied)),
        (None, None) => {}
    }
    assert_eq!(
        recovered.segments.is_empty(),
        recovered.end.is_none(),
        "a log ends in one of its files"
    );
    Ok(recovered)
}

/// Segments by number, oldest first.
fn numbered(directory: &Path) -> Result<Vec<(u64, PathBuf)>, StorageError> {
    let context = |error| io_error(format!("cannot list {}", directory.display()), error);
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(context)? {
        let path = entry.map_err(context)?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let number = stem.and_then(|stem| u64::from_str_radix(stem, 16).ok());
        // A name of another form (`7.log`) is not ours.
        if let Some(number) = number.filter(|number| path_of(directory, *number) == path) {
            found.push((number, path));
        }
    }
    found.sort();
    Ok(found)
}

fn check_number(found: &SegmentContents, number: u64) -> Result<(), StorageError> {
    if found.header.number == number {
        return Ok(());
    }
    Err(StorageError::Corrupt(format!(
        "{} holds segment {} of the commit log: a file was renamed or copied by hand",
        found.path.display(),
        found.header.number
    )))
}

/// The oldest segment must reach back to what the sorted files hold.
fn check_first(found: &SegmentContents, applied: Option<LogPosition>) -> Result<(), StorageError> {
    let is_needed_one = applied.is_some_and(|applied| applied.segment == found.header.number);
    let begins_there = found.header.previous.is_none() || found.header.previous == applied;
    if is_needed_one || begins_there {
        return Ok(());
    }
    Err(StorageError::Corrupt(format!(
        "a file of the commit log before {} is missing: restore a backup",
        found.path.display()
    )))
}

/// Each later segment names the one before it and where that ended. The sorted files may have got
/// further than that: they also hold what was refused because it did not reach the log.
fn check_follows(
    found: &SegmentContents,
    before: &SegmentContents,
    applied: Option<LogPosition>,
) -> Result<(), StorageError> {
    let end = before.end(applied);
    let is_applied = |previous| applied.is_some_and(|applied| previous <= applied);
    match found.header.previous {
        Some(previous) if previous == end => Ok(()),
        Some(previous) if previous.segment == end.segment && is_applied(previous) => Ok(()),
        Some(previous) if previous.segment == end.segment => Err(damaged(before, end)),
        _ => Err(StorageError::Corrupt(format!(
            "a file of the commit log between {} and {} is missing: restore a backup",
            before.path.display(),
            found.path.display()
        ))),
    }
}

fn damaged(found: &SegmentContents, end: LogPosition) -> StorageError {
    StorageError::Corrupt(format!(
        "the commit log {} is damaged at byte {}, before batches that were on disk: restore a \
         backup",
        found.path.display(),
        end.offset
    ))
}

fn missing(directory: &Path, applied: LogPosition) -> StorageError {
    StorageError::Corrupt(format!(
        "{} holds no commit log, and the store was at its file {}: restore that folder or a backup",
        directory.display(),
        path_of(directory, applied.segment).display()
    ))
}

fn replay_segment(
    found: &SegmentContents,
    applied: Option<LogPosition>,
    replay: &mut Replay<'_>,
) -> Result<(), StorageError> {
    let mut last: Option<LogPosition> = None;
    for (place, payload) in found.records(applied) {
        let batch = record::decode(payload).ok_or_else(|| damaged(found, place.start))?;
        assert!(
            last.is_none_or(|last| last == place.start),
            "no record of a file is passed over"
        );
        last = Some(place.end);
        assert!(place.start < place.end, "each record is replayed once");
        assert!(
            applied.is_none_or(|applied| applied <= place.start),
            "what the sorted files hold is not replayed"
        );
        replay(place.end, batch)?;
    }
    Ok(())
}

/// Hands every batch that can be read to `replay`, in order, whatever is missing between them;
/// the files nothing could be read of.
///
/// # Errors
/// What `replay` says; [`StorageError::Io`] when the folder cannot be listed.
pub fn salvage(
    directory: &Path,
    replay: &mut dyn FnMut(WriteBatch) -> Result<(), StorageError>,
) -> Result<Vec<PathBuf>, StorageError> {
    let mut lost = Vec::new();
    for (number, path) in numbered(directory)? {
        let found = match SegmentContents::read(path.clone()) {
            Ok(found) if found.header.number == number => found,
            _ => {
                lost.push(path);
                continue;
            }
        };
        for batch in found.whatever_can_be_read().filter_map(record::decode) {
            replay(batch)?;
        }
    }
    Ok(lost)
}
