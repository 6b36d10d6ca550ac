//! The log as it is written, replayed, retired and begun anew.

mod damage;
mod power_loss;

use super::*;
use crate::model::Version;
use crate::sorted::SortedWrites;

const SEGMENT_BYTES: u64 = 4 << 10;

fn batch(version: u64, value_bytes: usize) -> WriteBatch {
    let value = vec![u8::try_from(version % 251).unwrap(); value_bytes];
    WriteBatch {
        writes: vec![(Version(version), b"key".to_vec(), Some(value))],
    }
}

fn version_of(batch: &WriteBatch) -> u64 {
    let (version, key, value) = &batch.writes[0];
    let expected = vec![u8::try_from(version.0 % 251).unwrap(); value.as_ref().unwrap().len()];
    assert_eq!((key.as_slice(), value), (&b"key"[..], &Some(expected)));
    version.0
}

/// The log with the versions it replayed.
fn open(
    directory: &Path,
    applied: Option<LogPosition>,
) -> Result<(CommitLog, Vec<u64>), StorageError> {
    let mut replayed = Vec::new();
    let log = CommitLog::open(directory, SEGMENT_BYTES, applied, |_, batch| {
        replayed.push(version_of(&batch));
        Ok(())
    })?;
    Ok((log, replayed))
}

fn write(
    log: &mut CommitLog,
    version: u64,
    value_bytes: usize,
    durability: Durability,
) -> LogPosition {
    let end = log.prepare(&batch(version, value_bytes)).unwrap();
    log.commit(durability).unwrap();
    end
}

/// The one write of [`batch`], for who takes many.
struct Sorted(WriteBatch);

impl SortedWrites for Sorted {
    fn len(&self) -> usize {
        self.0.writes.len()
    }

    fn each(&self, visit: &mut dyn FnMut(&[u8], Option<&[u8]>)) {
        for (_, key, value) in &self.0.writes {
            visit(key, value.as_deref());
        }
    }
}

/// As [`write`], in pieces.
fn write_in_pieces(
    log: &mut CommitLog,
    version: u64,
    value_bytes: usize,
    durability: Durability,
) -> LogPosition {
    let writes = Sorted(batch(version, value_bytes));
    let (place, unsynced) = log.append_sorted(Version(version), &writes).unwrap();
    if durability == Durability::Sync {
        unsynced.wait().unwrap();
    }
    place.end
}

/// A log of twelve synced batches in one segment, and its bytes up to its end.
fn twelve() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = open(directory.path(), None).unwrap();
    let mut end = 0;
    for version in 1..=12 {
        end = write(&mut log, version, 20, Durability::Sync).offset;
    }
    let path = recovery::path_of(directory.path(), 1);
    let bytes = fs::read(&path).unwrap()[..usize::try_from(end).unwrap()].to_vec();
    (directory, path, bytes)
}

#[test]
fn a_record_in_pieces_is_the_one_that_is_made_at_once() {
    let bytes = |write: fn(&mut CommitLog, u64, usize, Durability) -> LogPosition| {
        let directory = tempfile::tempdir().unwrap();
        let (mut log, _) = open(directory.path(), None).unwrap();
        for (version, value_bytes) in [(1, 0), (2, 21), (3, 900), (4, 5 << 20), (5, 7)] {
            write(&mut log, version, value_bytes, Durability::Sync);
        }
        drop(log);
        let (_, replayed) = open(directory.path(), None).unwrap();
        assert_eq!(replayed, [1, 2, 3, 4, 5]);
        let segments = (1..=3).map(|number| recovery::path_of(directory.path(), number));
        segments
            .map(|path| fs::read(path).unwrap())
            .collect::<Vec<_>>()
    };
    assert!(bytes(write) == bytes(write_in_pieces));
}

#[test]
fn what_was_committed_comes_back_in_order_whatever_its_size() {
    let directory = tempfile::tempdir().unwrap();
    let mut written = Vec::new();
    for round in 0..3 {
        let (mut log, replayed) = open(directory.path(), None).unwrap();
        assert_eq!(replayed, written);
        for version in round * 10 + 1..=round * 10 + 10 {
            // Some fill a segment, one is larger than any.
            let size = usize::try_from(version * version * 13 % 9000).unwrap();
            write(&mut log, version, size, Durability::Sync);
            written.push(version);
        }
    }
    assert_eq!(open(directory.path(), None).unwrap().1, written);
}

#[test]
fn batches_that_the_sorted_files_hold_are_not_replayed_and_their_files_are_reused() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = open(directory.path(), None).unwrap();
    let ends: Vec<LogPosition> = (1..=40)
        .map(|version| write(&mut log, version, 400, Durability::Sync))
        .collect();
    let segments = log.segments();
    assert!(segments > 3);
    log.retire(ends[30]);
    assert!(log.segments() < segments);
    drop(log);
    let (mut log, replayed) = open(directory.path(), Some(ends[30])).unwrap();
    assert_eq!(replayed, (32..=40).collect::<Vec<_>>());
    // What stood in reused files before must not come back behind the new records.
    for version in 41..=80 {
        write(&mut log, version, 400, Durability::Async);
    }
    drop(log);
    let (_, replayed) = open(directory.path(), Some(ends[30])).unwrap();
    assert_eq!(replayed, (32..=80).collect::<Vec<_>>());
}

#[test]
fn an_empty_log_begun_for_a_copy_goes_on_from_there() {
    let directory = tempfile::tempdir().unwrap();
    let place = LogPosition {
        segment: 9,
        offset: 1000,
    };
    let copy = directory.path().join("log");
    begin_empty(&copy, Some(place)).unwrap();
    let (mut log, replayed) = open(&copy, Some(place)).unwrap();
    assert!(replayed.is_empty());
    write(&mut log, 5, 20, Durability::Sync);
    drop(log);
    assert_eq!(open(&copy, Some(place)).unwrap().1, [5]);
}

#[test]
fn spare_files_stay_usable_however_often_the_log_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    let mut applied = None;
    let mut version = 0;
    for _ in 0..6 {
        let (mut log, _) = open(directory.path(), applied).unwrap();
        for _ in 0..40 {
            version += 1;
            applied = Some(write(&mut log, version, 400, Durability::Sync));
        }
        // From here on all but the last wait for reuse.
        log.retire(applied.unwrap());
    }
}

#[test]
fn a_half_filled_file_is_no_spare() {
    let directory = tempfile::tempdir().unwrap();
    let filling = directory.path().join("filling-1");
    fs::write(&filling, [0; 4 << 10]).unwrap();
    let short = directory.path().join("spare-9");
    fs::write(&short, [0; 100]).unwrap();
    let (mut log, _) = open(directory.path(), None).unwrap();
    assert!(!filling.exists() && !short.exists());
    write(&mut log, 1, 20, Durability::Sync);
}

/// The sorted files also hold what was refused because it did not reach the log.
#[test]
fn the_sorted_files_may_have_got_further_than_the_log() {
    let (directory, _, bytes) = twelve();
    let (mut log, _) = open(directory.path(), None).unwrap();
    write(&mut log, 14, 20, Durability::Sync);
    drop(log);
    let further = LogPosition {
        segment: 1,
        offset: bytes.len() as u64 + 64,
    };
    assert_eq!(open(directory.path(), Some(further)).unwrap().1, [14]);
}

#[test]
fn files_with_other_names_are_not_taken_for_segments() {
    let (directory, path, _) = twelve();
    for name in ["1.log", "+000000000000002.log", "notes.log"] {
        fs::copy(&path, directory.path().join(name)).unwrap();
    }
    assert_eq!(open(directory.path(), None).unwrap().1.len(), 12);
}

#[test]
fn a_log_whose_files_are_out_of_order_is_found_out() {
    type Fault = fn(&mut CommitLog);
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = open(directory.path(), None).unwrap();
    for version in 1..=20 {
        write(&mut log, version, 1000, Durability::Sync);
    }
    assert_eq!((log.check(), log.sealed.len() > 1), (Ok(()), true));
    let faults: [(Fault, &str); 5] = [
        (|log| log.sealed.swap(0, 1), "sealed in order"),
        (|log| log.sealed[0].path.push("x"), "found by its name"),
        (|log| log.next_number -= 1, "was begun before"),
        (
            |log| log.end = log.active.as_ref().map(Segment::end),
            "where its active",
        ),
        (|log| drop(log.sealed.pop_front()), "are counted"),
    ];
    for (fault, name) in faults {
        drop(log);
        log = open(directory.path(), None).unwrap().0;
        write(&mut log, 21, 20, Durability::Sync);
        fault(&mut log);
        let found = log.check().unwrap_err();
        assert!(found.contains(name), "{found}");
    }
}
