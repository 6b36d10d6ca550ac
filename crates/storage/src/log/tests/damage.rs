//! Files that are cut, damaged, forged or not there.

use super::{SEGMENT_BYTES, open, twelve, version_of, write};
use crate::log::*;
use crate::model::Version;

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
    let ends: Vec<LogPosition> = (1..=40)
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

/// What the sorted files hold is not needed, so its damage is no reason to serve nothing.
#[test]
fn damage_before_what_the_sorted_files_hold_is_passed_over() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = open(directory.path(), None).unwrap();
    let ends: Vec<LogPosition> = (1..=12)
        .map(|version| write(&mut log, version, 20, Durability::Sync))
        .collect();
    drop(log);
    let path = recovery::path_of(directory.path(), 1);
    let mut bytes = fs::read(&path).unwrap();
    let damaged = usize::try_from(ends[4].offset).unwrap() + 20;
    bytes[damaged] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert!(open(directory.path(), Some(ends[4])).is_err());
    assert_eq!(
        open(directory.path(), Some(ends[5])).unwrap().1,
        (7..=12).collect::<Vec<_>>()
    );
}

#[test]
fn salvage_reads_on_behind_damage() {
    let (directory, path, mut bytes) = twelve();
    let record_bytes = (bytes.len() - usize::try_from(segment::HEADER_BYTES).unwrap()) / 12;
    let fifth = usize::try_from(segment::HEADER_BYTES).unwrap() + 4 * record_bytes;
    bytes[fifth + 20] ^= 1;
    fs::write(&path, &bytes).unwrap();
    fs::write(directory.path().join("0000000000000002.log"), "no log").unwrap();
    let mut found = Vec::new();
    let lost = salvage(directory.path(), &mut |batch| {
        found.push(version_of(&batch));
        Ok(())
    });
    assert_eq!(lost.unwrap(), [recovery::path_of(directory.path(), 2)]);
    assert_eq!(found, [1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12]);
}

/// The first batch on disk, then one that was not waited for and was cut short: its head is gone,
/// and what it carried looks like heads of records, each reaching to the end.
fn torn_batch_of_heads(payload_bytes: usize) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = open(directory.path(), None).unwrap();
    write(&mut log, 1, 20, Durability::Sync);
    let mut heads = Vec::with_capacity(payload_bytes);
    while heads.len() < payload_bytes {
        let reach = u32::try_from(payload_bytes - heads.len()).unwrap();
        heads.extend(b"MXR1");
        heads.extend(reach.to_le_bytes());
    }
    // Header 16, version 8, two lengths 8, key 8: the value begins at a multiple of 8.
    let forged = WriteBatch {
        writes: vec![(Version(2), b"12345678".to_vec(), Some(heads))],
    };
    log.prepare(&forged).unwrap();
    log.commit(Durability::Async).unwrap();
    drop(log);
    // It is larger than the rest of the first segment.
    let path = recovery::path_of(directory.path(), 2);
    let mut bytes = fs::read(&path).unwrap();
    bytes[usize::try_from(segment::HEADER_BYTES).unwrap()] ^= 1;
    fs::write(&path, &bytes).unwrap();
    directory
}

/// Reading each payload that the heads promise would be 4 TB here, hours of them.
#[test]
fn a_value_full_of_forged_heads_does_not_stop_the_log_from_opening() {
    let directory = torn_batch_of_heads(8 << 20);
    assert_eq!(open(directory.path(), None).unwrap().1, [1]);
}

#[test]
fn damage_before_a_record_that_knew_better_is_found_among_forged_heads() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = open(directory.path(), None).unwrap();
    let heads = b"MXR1\x10\0\0\0".repeat(100);
    let forged = WriteBatch {
        writes: vec![(Version(1), b"12345678".to_vec(), Some(heads))],
    };
    log.prepare(&forged).unwrap();
    log.commit(Durability::Sync).unwrap();
    // Lengths that are and are not multiples of the alignment.
    write(&mut log, 2, 21, Durability::Sync);
    drop(log);
    let path = recovery::path_of(directory.path(), 1);
    let mut bytes = fs::read(&path).unwrap();
    bytes[usize::try_from(segment::HEADER_BYTES).unwrap()] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let Err(StorageError::Corrupt(message)) = open(directory.path(), None) else {
        panic!("a batch that was on disk is lost");
    };
    assert!(message.contains("is damaged at byte 64"), "{message}");
}

#[test]
fn a_segment_behind_which_numbers_could_run_out_is_refused() {
    for number in [u64::MAX, u64::MAX - 1, NUMBER_MAX + 1] {
        let directory = tempfile::tempdir().unwrap();
        let path = recovery::path_of(directory.path(), number);
        segment::fill(&path, SEGMENT_BYTES).unwrap();
        let header = Header {
            number,
            previous: None,
        };
        Segment::begin(path.clone(), &header, &Arc::default()).unwrap();
        let Err(StorageError::Corrupt(message)) = open(directory.path(), None) else {
            panic!("opened");
        };
        assert!(message.contains(path.to_str().unwrap()), "{message}");
    }
}

/// 0 stands for no segment where the next one names it.
#[test]
fn a_segment_numbered_zero_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = recovery::path_of(directory.path(), 0);
    segment::fill(&path, SEGMENT_BYTES).unwrap();
    let header = Header {
        number: 0,
        previous: None,
    };
    Segment::begin(path, &header, &Arc::default()).unwrap();
    let opened = open(directory.path(), None).map(|(_, replayed)| replayed);
    assert!(
        matches!(opened, Err(StorageError::Corrupt(_))),
        "{opened:?}"
    );
}
