//! A node's log on disk.
//!
//! Records are appended and synced in batches: what is appended while a sync runs is part of
//! the next one. A crash loses what no sync has covered, or the end of it: a part may have
//! reached the disk unasked, and its last record may be torn. A log finds a torn record by its
//! checksum and ends before it.

use std::collections::VecDeque;

use manxdb_core::{Nanos, Random, Token};

use crate::time::SimTime;

/// What became of the records of a node that crashed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loss {
    /// Records that no sync had covered and that are gone.
    pub lost: u64,
    /// Of these, torn ones: a part of them is on disk.
    pub torn: u64,
}

/// A record that waits for its sync.
#[derive(Debug, Clone)]
struct Unsynced<P> {
    record: P,
    token: Token,
    /// When it was appended.
    at: SimTime,
}

/// One node's log.
#[derive(Debug, Clone)]
pub struct Disk<P> {
    latency: Nanos,
    /// How many times slower than it should be.
    slowness: u32,
    full: bool,
    failing: bool,
    synced: Vec<P>,
    unsynced: VecDeque<Unsynced<P>>,
    /// Records of the front of `unsynced` that the running sync covers, and when it ends.
    running: Option<(usize, SimTime)>,
}

impl<P: Clone> Disk<P> {
    /// An empty disk with this latency of a sync.
    pub fn new(latency: Nanos) -> Self {
        Self {
            latency,
            slowness: 1,
            full: false,
            failing: false,
            synced: Vec::new(),
            unsynced: VecDeque::new(),
            running: None,
        }
    }

    /// Appends a record behind all others.
    pub fn append(&mut self, at: SimTime, record: P, token: Token) {
        let at = self.unsynced.back().map_or(at, |last| at.max(last.at));
        self.unsynced.push_back(Unsynced { record, token, at });
    }

    /// Starts a sync of all that waits, unless one runs or nothing can be written; when it ends.
    pub fn start_sync(&mut self, now: SimTime) -> Option<SimTime> {
        if self.running.is_some() || self.full || self.unsynced.is_empty() {
            return None;
        }
        // The first record decides: it may be on its way from a CPU that is not done with it.
        let start = now.max(self.unsynced.front()?.at);
        let covered = self.unsynced.iter().take_while(|one| one.at <= start);
        let covered = covered.count();
        let end = start + self.latency * u64::from(self.slowness);
        self.running = Some((covered, end));
        Some(end)
    }

    /// Ends the sync that is due now: the names of what is safe, or that the disk failed.
    ///
    /// # Errors
    /// The disk failed. What it holds is unknown, and the process must end.
    pub fn end_sync(&mut self) -> Result<Vec<Token>, DiskFailed> {
        let Some((covered, _)) = self.running.take() else {
            return Ok(Vec::new());
        };
        if self.failing {
            return Err(DiskFailed);
        }
        let done = self.unsynced.drain(..covered);
        let mut tokens = Vec::with_capacity(covered);
        for one in done {
            self.synced.push(one.record);
            tokens.push(one.token);
        }
        Ok(tokens)
    }

    /// The node crashes: of what was not synced the disk has a part, decided by `random`.
    pub fn crash(&mut self, at: SimTime, random: &mut Random) -> Loss {
        let running = self.running.take().map_or(0, |(covered, _)| covered);
        let all = self.unsynced.len() as u64;
        // What the CPU was still working on was never written, nor what there was no room for.
        let done = self.unsynced.iter().take_while(|one| one.at <= at).count();
        let written = if self.full { done.min(running) } else { done } as u64;
        let kept = random.below(written + 1);
        let torn = u64::from(kept < written && random.below(2) == 0);
        for one in self
            .unsynced
            .drain(..)
            .take(usize::try_from(kept).unwrap_or(0))
        {
            self.synced.push(one.record);
        }
        Loss {
            lost: all - kept,
            torn,
        }
    }

    /// The records on disk, oldest first.
    pub fn records(&self) -> &[P] {
        &self.synced
    }

    /// How many records wait for a sync.
    pub fn waiting(&self) -> usize {
        self.unsynced.len()
    }

    /// Replaces it by an empty one.
    pub fn erase(&mut self) {
        self.synced.clear();
        self.unsynced.clear();
        self.running = None;
    }

    /// While it is full no sync begins.
    pub fn set_full(&mut self, full: bool) {
        self.full = full;
    }

    /// While it fails every sync does.
    pub fn set_failing(&mut self, failing: bool) {
        self.failing = failing;
    }

    /// Makes it this many times slower than it should be; 1 is healthy.
    pub fn set_slowness(&mut self, times: u32) {
        self.slowness = times.max(1);
    }
}

/// A sync failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a sync failed")]
pub struct DiskFailed;

#[cfg(test)]
mod tests {
    use super::*;

    const fn micros(micros: u64) -> SimTime {
        SimTime::from_micros(micros)
    }

    fn disk() -> Disk<u32> {
        Disk::new(Nanos::from_micros(200))
    }

    #[test]
    fn records_of_one_moment_share_a_sync_and_later_ones_the_next() {
        let mut disk = disk();
        disk.append(micros(0), 1, Token(1));
        disk.append(micros(0), 2, Token(2));
        assert_eq!(disk.start_sync(micros(0)), Some(micros(200)));
        disk.append(micros(50), 3, Token(3));
        assert_eq!(disk.start_sync(micros(50)), None);
        assert_eq!(disk.end_sync(), Ok(vec![Token(1), Token(2)]));
        assert_eq!(disk.start_sync(micros(200)), Some(micros(400)));
        assert_eq!(disk.end_sync(), Ok(vec![Token(3)]));
        assert_eq!(disk.start_sync(micros(400)), None);
        assert_eq!(disk.records(), [1, 2, 3]);
    }

    #[test]
    fn a_sync_waits_for_the_cpu_that_writes_the_record() {
        let mut disk = disk();
        disk.append(micros(30), 1, Token(1));
        assert_eq!(disk.start_sync(micros(10)), Some(micros(230)));
    }

    #[test]
    fn a_crash_keeps_the_synced_and_at_most_a_prefix_of_the_rest() {
        let mut lengths = [0; 4];
        let mut torn = 0;
        for seed in 0..200 {
            let mut disk = disk();
            disk.append(micros(0), 1, Token(1));
            disk.start_sync(micros(0));
            disk.end_sync().unwrap();
            disk.append(micros(300), 2, Token(2));
            disk.append(micros(300), 3, Token(3));
            disk.append(micros(900), 4, Token(4));
            let loss = disk.crash(micros(400), &mut Random::new(seed));
            let length = disk.records().len();
            assert_eq!(disk.records(), &[1, 2, 3][..length]);
            assert_eq!(loss.lost, 4 - length as u64);
            lengths[length] += 1;
            torn += loss.torn;
            assert!(loss.torn == 0 || length < 3, "nothing is left to be torn");
        }
        assert_eq!(lengths[0], 0);
        assert!(lengths[1..].iter().all(|count| *count > 40), "{lengths:?}");
        assert!(torn > 40, "{torn}");
    }

    #[test]
    fn what_there_was_no_room_for_is_not_there_after_a_crash() {
        for seed in 0..50 {
            let mut disk = disk();
            disk.append(micros(0), 1, Token(1));
            disk.start_sync(micros(0));
            disk.set_full(true);
            disk.append(micros(10), 2, Token(2));
            disk.crash(micros(100), &mut Random::new(seed));
            assert!(disk.records().len() <= 1, "{:?}", disk.records());
        }
    }

    #[test]
    fn a_full_disk_makes_records_wait_and_a_failing_one_says_so() {
        let mut disk = disk();
        disk.set_full(true);
        disk.append(micros(0), 1, Token(1));
        assert_eq!(disk.start_sync(micros(0)), None);
        disk.set_full(false);
        disk.set_slowness(3);
        assert_eq!(disk.start_sync(micros(10)), Some(micros(610)));
        disk.set_failing(true);
        assert_eq!(disk.end_sync(), Err(DiskFailed));
        assert_eq!(disk.records(), [0_u32; 0]);
    }
}
