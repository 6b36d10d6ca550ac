use super::*;
use crate::engine::Version;

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
fn open(directory: &Path, applied: Option<Place>) -> Result<(CommitLog, Vec<u64>), StorageError> {
    let mut replayed = Vec::new();
    let log = CommitLog::open(directory, SEGMENT_BYTES, applied, |_, batch| {
        replayed.push(version_of(&batch));
        Ok(())
    })?;
    Ok((log, replayed))
}

fn write(log: &mut CommitLog, version: u64, value_bytes: usize, durability: Durability) -> Place {
    let end = log.prepare(&batch(version, value_bytes)).unwrap();
    log.commit(durability).unwrap();
    end
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
    let ends: Vec<Place> = (1..=40)
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
fn a_log_cut_anywhere_leaves_whole_batches() {
    let (directory, path, bytes) = twelve();
    let mut found = Vec::new();
    for cut in usize::try_from(segment::HEADER_BYTES).unwrap()..=bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        let (_, replayed) = open(directory.path(), None).unwrap();
        assert_eq!(replayed, (1..=replayed.len() as u64).collect::<Vec<_>>());
        found.push(replayed.len());
    }
    assert!(found.is_sorted());
    assert_eq!((found[0], found[found.len() - 1]), (0, 12));
}

#[test]
fn damage_is_an_error_and_never_a_loss_unless_it_looks_like_a_torn_last_batch() {
    let (directory, path, bytes) = twelve();
    let record_bytes = (bytes.len() - usize::try_from(segment::HEADER_BYTES).unwrap()) / 12;
    let last = bytes.len() - record_bytes;
    for place in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x10;
        fs::write(&path, &damaged).unwrap();
        match open(directory.path(), None) {
            Err(StorageError::Corrupt(message)) => {
                assert!(place < last, "byte {place}: {message}");
                assert!(message.contains(path.to_str().unwrap()), "{message}");
            }
            Err(other) => panic!("byte {place}: {other:?}"),
            // Unused bytes of the head and padding mean nothing.
            Ok((_, replayed)) if place < last => assert_eq!(replayed.len(), 12, "byte {place}"),
            Ok((_, replayed)) => assert!(replayed.len() >= 11, "byte {place}"),
        }
    }
}

#[test]
fn holes_among_batches_that_nobody_waited_for_end_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = open(directory.path(), None).unwrap();
    write(&mut log, 1, 20, Durability::Sync);
    let from = write(&mut log, 2, 20, Durability::Async).offset;
    let to = write(&mut log, 3, 20, Durability::Async).offset;
    write(&mut log, 4, 20, Durability::Async);
    drop(log);
    let path = recovery::path_of(directory.path(), 1);
    let mut bytes = fs::read(&path).unwrap();
    bytes[usize::try_from(from).unwrap()..usize::try_from(to).unwrap()].fill(0);
    fs::write(&path, &bytes).unwrap();
    let (mut log, replayed) = open(directory.path(), None).unwrap();
    assert_eq!(replayed, [1, 2]);
    write(&mut log, 5, 20, Durability::Async);
    drop(log);
    assert_eq!(open(directory.path(), None).unwrap().1, [1, 2, 5]);
}

#[test]
fn a_missing_file_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = open(directory.path(), None).unwrap();
    let ends: Vec<Place> = (1..=40)
        .map(|version| write(&mut log, version, 400, Durability::Sync))
        .collect();
    let segments = log.segments() as u64;
    drop(log);
    let corrupt = |applied| match open(directory.path(), applied) {
        Err(StorageError::Corrupt(message)) => message,
        other => panic!("{:?}", other.map(|(_, replayed)| replayed)),
    };
    fs::remove_file(recovery::path_of(directory.path(), 2)).unwrap();
    assert!(corrupt(None).contains("is missing"));
    // Once the sorted files hold it, it is not missed.
    let third = ends.iter().find(|end| end.segment == 3).unwrap();
    assert!(open(directory.path(), Some(*third)).is_ok());
    for number in 1..=segments {
        let _ = fs::remove_file(recovery::path_of(directory.path(), number));
    }
    assert!(corrupt(Some(ends[39])).contains("holds no commit log"));
}

#[test]
fn an_empty_log_begun_for_a_copy_goes_on_from_there() {
    let directory = tempfile::tempdir().unwrap();
    let place = Place {
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
