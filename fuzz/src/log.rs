//! What the store finds of its commit log.

use std::fs;
use std::path::{Path, PathBuf};

use manxdb_storage::log::{CommitLog, LogPosition};
use manxdb_storage::{Durability, StorageError, Version, WriteBatch};

use crate::Script;

/// Smallest segment there is, so that few batches make many.
const SEGMENT_BYTES: u64 = 4 << 10;
/// Where records begin in a segment.
const HEADER_BYTES: usize = 64;
/// Steps of one history.
const STEPS_MAX: usize = 48;

/// A log that was written, closed, damaged and opened in the order that `data` says, or opened
/// over files that `data` forges: an error, or all batches up to some point.
///
/// # Panics
/// When what comes back is neither.
pub fn log(data: &[u8]) {
    let mut script = Script::new(data);
    let directory = temporary();
    if script.byte().is_multiple_of(2) {
        history(&mut script, directory.path());
    } else {
        forged(&mut script, directory.path());
    }
}

/// In memory where there is such a place: nothing here asks what a disk does.
fn temporary() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
    made.unwrap_or_else(|error| panic!("no place for a log: {error}"))
}

/// A log, and the batches in it that the sorted files do not hold.
struct Kept<'a> {
    directory: &'a Path,
    applied: Option<LogPosition>,
    batches: Vec<(LogPosition, WriteBatch)>,
    version: u64,
}

fn history(script: &mut Script<'_>, directory: &Path) {
    let mut kept = Kept {
        directory,
        applied: None,
        batches: Vec::new(),
        version: 0,
    };
    let mut log = kept.open_whole();
    for _ in 0..STEPS_MAX {
        if script.is_done() {
            break;
        }
        match script.byte() % 8 {
            0..=3 => kept.write(&mut log, script),
            4 => kept.apply(&mut log, script.below(8)),
            5 | 6 => {
                drop(log);
                log = kept.open_whole();
            }
            _ => {
                drop(log);
                damage(script, directory);
                match kept.open_damaged() {
                    Some(opened) => log = opened,
                    None => return,
                }
            }
        }
    }
    drop(log);
    drop(kept.open_whole());
}

impl Kept<'_> {
    fn write(&mut self, log: &mut CommitLog, script: &mut Script<'_>) {
        let batch = batch(script, &mut self.version);
        let durability = match script.byte() % 2 {
            0 => Durability::Sync,
            _ => Durability::Async,
        };
        let end = commit(log, &batch, durability);
        assert!(
            self.batches.last().is_none_or(|(before, _)| *before < end),
            "the log went back"
        );
        self.batches.push((end, batch));
    }

    /// The sorted files hold `more` batches more.
    fn apply(&mut self, log: &mut CommitLog, more: usize) {
        let done = more.min(self.batches.len());
        if let Some((place, _)) = self.batches.drain(..done).next_back() {
            self.applied = Some(place);
            log.retire(place);
        }
    }

    /// Opens a log that nothing happened to.
    fn open_whole(&mut self) -> CommitLog {
        let (log, found) = open(self.directory, self.applied)
            .unwrap_or_else(|error| panic!("a whole log does not open: {error}"));
        assert!(found == self.batches, "a whole log came back changed");
        log
    }

    /// Opens a log that was damaged; `None` when it says so.
    fn open_damaged(&mut self) -> Option<CommitLog> {
        match open(self.directory, self.applied) {
            Ok((log, found)) => {
                assert!(
                    self.batches.starts_with(&found),
                    "a damaged log came back with other batches"
                );
                self.batches = found;
                Some(log)
            }
            Err(StorageError::Corrupt(_)) => None,
            Err(other) => panic!("damage is no {other:?}"),
        }
    }
}

type Opened = (CommitLog, Vec<(LogPosition, WriteBatch)>);

fn open(directory: &Path, applied: Option<LogPosition>) -> Result<Opened, StorageError> {
    let mut found = Vec::new();
    let log = CommitLog::open(directory, SEGMENT_BYTES, applied, |place, batch| {
        found.push((place, batch));
        Ok(())
    })?;
    Ok((log, found))
}

fn commit(log: &mut CommitLog, batch: &WriteBatch, durability: Durability) -> LogPosition {
    let end = log
        .prepare(batch)
        .unwrap_or_else(|error| panic!("no room: {error}"));
    log.commit(durability)
        .unwrap_or_else(|error| panic!("not written: {error}"));
    end
}

/// Up to three writes with fresh versions; values repeat bytes of the script, some past the end
/// of a segment.
fn batch(script: &mut Script<'_>, version: &mut u64) -> WriteBatch {
    let mut batch = WriteBatch::default();
    for _ in 0..=script.below(3) {
        *version += 1;
        let key_bytes = script.below(9);
        let key = script.bytes(key_bytes).to_vec();
        let value = match script.below(4) {
            0 => None,
            times => {
                let piece_bytes = script.below(24);
                let piece = script.bytes(piece_bytes);
                Some(piece.repeat(times * script.below(100)))
            }
        };
        batch.writes.push((Version(*version), key, value));
    }
    batch
}

/// Changes one file of a closed log as a disk or a person may. Few bits at a time: the checksum
/// of a record has 32, and whoever may set them all can write records.
fn damage(script: &mut Script<'_>, directory: &Path) {
    let files = segments(directory);
    let Some(path) = files.get(script.below(files.len())) else {
        return;
    };
    let mut bytes = fs::read(path).unwrap_or_default();
    let at = script.below(bytes.len());
    match script.byte() % 4 {
        0 => {
            let _ = fs::remove_file(path);
            return;
        }
        1 => bytes.truncate(at),
        2 => {
            let until = bytes.len().min(at + script.below(2000));
            bytes[at..until].fill(0);
        }
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                // Never set: the same change twice would mend what it broke.
                *byte &= !(1 << (script.byte() % 8));
            }
        }
    }
    put(path, &bytes);
}

fn put(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// The files of a log by number.
fn segments(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "log"))
        .collect();
    paths.sort();
    paths
}

/// Opens files with any content. What opens must take a batch and come back with it.
fn forged(script: &mut Script<'_>, directory: &Path) {
    let mut number = 0;
    let mut previous = None;
    for _ in 0..=script.below(3) {
        number = match script.byte() % 8 {
            0 => script.word(),
            step => number.saturating_add(u64::from(step)),
        };
        if script.byte().is_multiple_of(8) {
            previous = any_place(script);
        }
        let (bytes, end) = forged_segment(script, number, previous);
        put(&directory.join(format!("{number:016x}.log")), &bytes);
        previous = Some(end);
    }
    let applied = match script.byte() % 4 {
        0 => any_place(script),
        _ => None,
    };
    let Ok((mut log, mut batches)) = open(directory, applied) else {
        return;
    };
    let mut version = 0;
    let more = batch(script, &mut version);
    let end = commit(&mut log, &more, Durability::Sync);
    drop(log);
    batches.push((end, more));
    let (_, again) = open(directory, applied)
        .unwrap_or_else(|error| panic!("opened once, but not again: {error}"));
    assert!(again == batches, "what was opened came back changed");
}

fn any_place(script: &mut Script<'_>) -> Option<LogPosition> {
    match script.byte() % 3 {
        0 => None,
        1 => Some(LogPosition {
            segment: script.word(),
            offset: script.word(),
        }),
        _ => Some(LogPosition {
            segment: u64::from(script.byte()),
            offset: u64::from(script.short()),
        }),
    }
}

/// A segment of records with right checksums and any payload, and any bytes between them; where
/// its valid records end.
fn forged_segment(
    script: &mut Script<'_>,
    number: u64,
    previous: Option<LogPosition>,
) -> (Vec<u8>, LogPosition) {
    let mut bytes = header(number, previous);
    if script.byte().is_multiple_of(16) {
        let at = script.below(bytes.len());
        bytes[at] ^= script.byte();
    }
    let mut end = bytes.len();
    let mut is_broken = false;
    for _ in 0..script.below(6) {
        let length = script.below(300);
        let payload = script.bytes(length);
        match script.byte() % 4 {
            0 => {
                bytes.extend_from_slice(payload);
                bytes.resize(bytes.len().next_multiple_of(8), 0);
                is_broken |= !payload.is_empty();
            }
            _ => push_record(&mut bytes, number, u32::from(script.short()), payload),
        }
        if !is_broken {
            end = bytes.len();
        }
    }
    let offset = end as u64;
    let segment = number;
    (bytes, LogPosition { segment, offset })
}

/// As the table in the log's `segment.rs` says.
fn header(number: u64, previous: Option<LogPosition>) -> Vec<u8> {
    let mut bytes = b"MANXLOG1".to_vec();
    let (segment, offset) = previous.map_or((0, 0), |place| (place.segment, place.offset));
    for field in [number, segment, offset] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes.resize(HEADER_BYTES, 0);
    bytes
}

/// As the table in the log's `record.rs` says.
fn push_record(bytes: &mut Vec<u8>, number: u64, synced_to: u32, payload: &[u8]) {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let mut sum = crc32fast::Hasher::new();
    sum.update(&number.to_le_bytes());
    sum.update(&(bytes.len() as u64).to_le_bytes());
    sum.update(&length.to_le_bytes());
    sum.update(&synced_to.to_le_bytes());
    sum.update(payload);
    bytes.extend(b"MXR1");
    bytes.extend(length.to_le_bytes());
    bytes.extend(synced_to.to_le_bytes());
    bytes.extend(sum.finalize().to_le_bytes());
    bytes.extend(payload);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forged_files_are_files_of_a_log() {
        let directory = temporary();
        let payload = [1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, b'k', b'v'];
        let mut bytes = header(3, None);
        push_record(&mut bytes, 3, 64, &payload);
        put(&directory.path().join("0000000000000003.log"), &bytes);
        let mut next = header(
            4,
            Some(LogPosition {
                segment: 3,
                offset: bytes.len() as u64,
            }),
        );
        push_record(&mut next, 4, 64, &payload);
        put(&directory.path().join("0000000000000004.log"), &next);
        let (_, found) = open(directory.path(), None).unwrap();
        let write = (Version(1), b"k".to_vec(), Some(b"v".to_vec()));
        for (_, batch) in &found {
            assert_eq!(batch.writes, std::slice::from_ref(&write));
        }
        assert_eq!(found.len(), 2);
    }
}
