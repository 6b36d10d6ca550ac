//! Power that is lost, and changes that fail, at any moment of a story.

use super::{batch, open, write, write_in_pieces};
use crate::log::power::{Random, Watch};
use crate::log::*;

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
    applied: Option<LogPosition>,
    applied_version: u64,
}

/// A log with writes, flushes of the sorted files, and kills that the system outlives.
struct Story {
    watch: Watch,
    log: Option<CommitLog>,
    ends: Vec<LogPosition>,
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
        let write = [write, write_in_pieces][random.below(2)];
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
