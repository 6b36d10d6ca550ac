use super::power::{Random, Watch};
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

/// What the sorted files hold is not needed, so its damage is no reason to serve nothing.
#[test]
fn damage_before_what_the_sorted_files_hold_is_passed_over() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = open(directory.path(), None).unwrap();
    let ends: Vec<Place> = (1..=12)
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

/// They also hold what was refused because it did not reach the log.
#[test]
fn the_sorted_files_may_have_got_further_than_the_log() {
    let (directory, _, bytes) = twelve();
    let (mut log, _) = open(directory.path(), None).unwrap();
    write(&mut log, 14, 20, Durability::Sync);
    drop(log);
    let further = Place {
        segment: 1,
        offset: bytes.len() as u64 + 64,
    };
    assert_eq!(open(directory.path(), Some(further)).unwrap().1, [14]);
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

/// What was promised at a moment of a story.
#[derive(Debug, Clone, Copy, Default)]
struct Promise {
    /// Changes of files before it.
    changes: usize,
    /// Newest batch that was acknowledged as being on disk.
    acknowledged: u64,
    /// Newest batch there is.
    written: u64,
    /// Where the sorted files end, and the newest batch they hold.
    applied: Option<Place>,
    applied_version: u64,
}

/// A log with writes, flushes of the sorted files, and kills that the system outlives.
struct Story {
    watch: Watch,
    log: Option<CommitLog>,
    ends: Vec<Place>,
    now: Promise,
    promises: Vec<Promise>,
}

impl Story {
    fn begin() -> Self {
        Self {
            watch: Watch::new(),
            log: None,
            ends: Vec::new(),
            now: Promise::default(),
            promises: vec![Promise::default()],
        }
    }

    fn note(&mut self) {
        self.now.changes = self.watch.count();
        self.promises.push(self.now);
    }

    fn log(&mut self) -> &mut CommitLog {
        let directory = self.watch.root().join("data").join("log");
        let now = self.now;
        self.log.get_or_insert_with(|| {
            let (log, replayed) = open(&directory, now.applied).unwrap();
            assert_eq!(
                replayed,
                (now.applied_version + 1..=now.written).collect::<Vec<_>>()
            );
            log
        })
    }

    fn write(&mut self, random: &mut Random) {
        let version = self.now.written + 1;
        let size = [20, 20, 500, 1500, 6000][random.below(5)];
        let durability = [Durability::Sync, Durability::Async][random.below(2)];
        let end = write(self.log(), version, size, durability);
        self.ends.push(end);
        self.now.written = version;
        if durability == Durability::Sync {
            self.now.acknowledged = version;
        }
        self.note();
    }

    /// A batch is written while another is waited for.
    fn write_during_a_wait(&mut self, random: &mut Random) {
        let version = self.now.written + 1;
        let log = self.log();
        let end = log.prepare(&batch(version, 500)).unwrap();
        let unsynced = log.append().unwrap();
        self.ends.push(end);
        self.now.written = version;
        self.note();
        for _ in 0..random.below(3) {
            let version = self.now.written + 1;
            let size = [20, 1500, 6000][random.below(3)];
            let end = write(self.log(), version, size, Durability::Async);
            self.ends.push(end);
            self.now.written = version;
            self.note();
        }
        unsynced.wait().unwrap();
        self.now.acknowledged = version;
        self.note();
    }

    /// The sorted files get some of what they miss; `prepared` more than the log has.
    fn flush(&mut self, random: &mut Random) {
        if random.below(4) == 0 {
            let version = self.now.written + 1;
            let end = self.log().prepare(&batch(version, 500)).unwrap();
            self.ends.push(end);
            self.now.written = version;
            (self.now.applied, self.now.applied_version) = (Some(end), version);
            self.note();
            // Refused, or killed before it came to the log.
            self.log = None;
            return;
        }
        let missing = usize::try_from(self.now.written - self.now.applied_version).unwrap();
        if missing > 0 {
            let version = self.now.written - random.below(missing) as u64;
            let end = self.ends[usize::try_from(version - 1).unwrap()];
            (self.now.applied, self.now.applied_version) = (Some(end), version);
            self.note();
            self.log().retire(end);
        }
    }

    /// Opens what a power loss after `changes` leaves: all that was promised is there, in order.
    fn check_power_loss(&self, changes: usize, random: &mut Random) {
        let before = self.promises.partition_point(|it| it.changes <= changes);
        let promise = self.promises[before - 1];
        let left = self.watch.power_lost(changes, random);
        let directory = left.path().join("data").join("log");
        let (mut log, mut replayed) = open(&directory, promise.applied)
            .unwrap_or_else(|error| panic!("{promise:?}: {error}"));
        let newest = promise.applied_version + replayed.len() as u64;
        let expected: Vec<u64> = (promise.applied_version + 1..=newest).collect();
        assert_eq!(replayed, expected, "{promise:?}");
        let possible = promise.acknowledged..=promise.written + 1;
        assert!(newest >= *possible.start(), "lost: {newest}, {promise:?}");
        assert!(newest <= *possible.end(), "too new: {newest}, {promise:?}");
        write(&mut log, newest + 1, 500, Durability::Sync);
        drop(log);
        replayed.push(newest + 1);
        assert_eq!(open(&directory, promise.applied).unwrap().1, replayed);
    }
}

#[test]
fn power_lost_at_any_moment_takes_nothing_that_was_promised() {
    for seed in 0..12 {
        let mut random = Random(seed);
        let mut story = Story::begin();
        for _ in 0..40 {
            match random.below(12) {
                0 => story.log = None,
                1 | 2 => story.flush(&mut random),
                3 | 4 => story.write_during_a_wait(&mut random),
                _ => story.write(&mut random),
            }
        }
        story.log = None;
        for _ in 0..8 {
            let changes = random.below(story.watch.count() + 1);
            story.check_power_loss(changes, &mut random);
        }
    }
}

#[test]
fn an_error_of_any_change_stops_the_log_or_leaves_it_as_it_was() {
    for failing in 0.. {
        let mut random = Random(failing as u64);
        let mut story = Story::begin();
        story.write(&mut random);
        story.watch.fail_after(failing);
        let mut stopped = false;
        for _ in 0..12 {
            let version = story.now.written + 1;
            let size = [20, 1500][random.below(2)];
            let log = story.log.as_mut().unwrap();
            match log.prepare(&batch(version, size)) {
                Ok(end) => {
                    assert!(!stopped, "went on after an unknown end");
                    // Whether it is there or not, it has its version.
                    story.now.written = version;
                    story.ends.push(end);
                    match log.commit(Durability::Sync) {
                        Ok(()) => story.now.acknowledged = version,
                        Err(error) => {
                            assert!(matches!(error, StorageError::Io { .. }), "{error:?}");
                            stopped = true;
                        }
                    }
                }
                Err(StorageError::ReadOnly(why)) => {
                    assert!(why.contains("restart when this is mended"), "{why}");
                    stopped = true;
                }
                Err(error) => assert!(!stopped, "{error:?}"),
            }
        }
        story.log = None;
        // How many changes there are depends on when the filler runs: one that did not come to
        // fail must not meet the next start.
        let has_failed = story.watch.has_failed();
        if !has_failed {
            story.watch.fail_after(usize::MAX);
        }
        let directory = story.watch.root().join("data").join("log");
        let (_, replayed) = open(&directory, None).unwrap();
        let found = replayed.len() as u64;
        assert_eq!(replayed, (1..=found).collect::<Vec<_>>());
        assert!((story.now.acknowledged..=story.now.written).contains(&found));
        // A reader has seen it now: power loss may not take it.
        (story.now.acknowledged, story.now.written) = (found, found);
        story.note();
        for _ in 0..3 {
            story.check_power_loss(story.watch.count(), &mut random);
        }
        if !has_failed {
            assert!(failing > 10, "nothing failed");
            return;
        }
    }
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

#[test]
fn files_with_other_names_are_not_taken_for_segments() {
    let (directory, path, _) = twelve();
    for name in ["1.log", "+000000000000002.log", "notes.log"] {
        fs::copy(&path, directory.path().join(name)).unwrap();
    }
    assert_eq!(open(directory.path(), None).unwrap().1.len(), 12);
}
