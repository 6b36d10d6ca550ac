//! A log archiver at work: what was published since the last batch is the next one.

use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use manxdb_rsi::{Batch, Drained, LogEntry, Machine, Progress, Snapshot, Stamp};

use super::copy::{Around, Copy};
use super::sync_queue::{SyncQueue, named};
use super::{ArchiveError, LAST, LogArchiver, PAUSE, encode};
use crate::disk::{DiskError, FileKind, Header, History, Journal};
use crate::memory::{DurabilityRecord, JoinedClient, Memory, MemoryError, Source, Transport};
use crate::path::advance_watermark;

/// Looks without news before one rests longer between two of them.
const BUSY: u32 = 64;
/// Between two looks when there was something just now, and when there was not.
const REST: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(1));
const _: () = assert!(
    REST.0.as_nanos() < REST.1.as_nanos() && BUSY > 0,
    "one without news looks more seldom"
);
/// Bytes that may wait for a sync, in the log archiver's own memory.
const BEHIND_MAX: u64 = 256 << 20;
/// Bounds of snapshots are heeded so often in a lease.
const HEEDS: u32 = 8;
/// Between two tries of a checkpoint that has failed.
const ANOTHER: Duration = Duration::from_secs(10);
/// The same while commits wait for it.
const SOON: Duration = Duration::from_secs(1);

/// What a log archiver has while it works.
struct ArchiveRun<'k, 's, W: Transport> {
    archiver: &'k LogArchiver<'k, W>,
    memory: &'k Memory<W>,
    scope: &'s Scope<'s, 'k>,
    member: JoinedClient<W::Fabric>,
    durability: DurabilityRecord,
    line: SyncQueue,
    progress: Progress,
    /// What it has said last.
    said: (Snapshot, Snapshot),
    copy: Option<Copy>,
    /// Bytes and syncs that are in the tally.
    tallied: (u64, u64),
    sizes: Sizes,
    acknowledged: Instant,
    /// Looks without news, one after the other.
    idle: u32,
}

/// When there is to be another checkpoint.
struct Sizes {
    /// Bytes of batches that were there when this shift began.
    before: u64,
    /// Bytes that its journal had written when the last checkpoint began.
    since: u64,
    /// Bytes of that.
    checkpoint: u64,
    /// Not before.
    not_before: Instant,
}

impl<W: Transport + Clone> LogArchiver<'_, W> {
    /// Works until it is to end, or something is in the way.
    pub(super) fn run_loop<'s, 'k>(
        &'k self,
        memory: &'k Memory<W>,
        scope: &'s Scope<'s, 'k>,
    ) -> Result<(), ArchiveError> {
        let mut run_loop = ArchiveRun::begin(self, memory, scope)?;
        while !self.is_over() {
            run_loop.turn()?;
        }
        run_loop.end()
    }
}

impl<'k, 's, W: Transport + Clone> ArchiveRun<'k, 's, W> {
    fn begin(
        archiver: &'k LogArchiver<'k, W>,
        memory: &'k Memory<W>,
        scope: &'s Scope<'s, 'k>,
    ) -> Result<Self, ArchiveError> {
        let (mut journal, written, (checkpoint, before)) = take_over(archiver, memory)?;
        let mut member = memory.join()?;
        let durability = memory.durability(member.client.carrier_mut().map())?;
        // What the one before has written may not be on disk: the first segment has it once more.
        let opened = journal.flush();
        opened.map_err(|error| named(archiver.directory, error))?;
        let line = SyncQueue::new(journal, written.clone(), scope);
        let mut run_loop = Self {
            archiver,
            memory,
            scope,
            member,
            durability,
            line,
            said: (written.clone(), written.clone()),
            progress: Progress::new(written),
            tallied: (0, 0),
            copy: None,
            sizes: Sizes {
                before,
                since: 0,
                checkpoint,
                not_before: Instant::now(),
            },
            acknowledged: Instant::now(),
            idle: 0,
        };
        run_loop.publish()?;
        (archiver.note)(&format!(
            "rows are written to {}",
            archiver.directory.path().display()
        ));
        Ok(run_loop)
    }

    /// One look at what is new, and one step of all else.
    fn turn(&mut self) -> Result<(), ArchiveError> {
        let is_news = self.drain()?;
        self.look_at_disk()?;
        let is_copying = self.check_point();
        self.keep()?;
        self.idle = if is_news {
            0
        } else {
            self.idle.saturating_add(1)
        };
        if self.idle == BUSY {
            let _ = self.line.journal.mark(); // or nobody says so
        }
        if !is_news && !is_copying {
            let (short, long) = REST;
            thread::sleep(if self.idle < BUSY { short } else { long });
        }
        Ok(())
    }

    /// Carries something out; none: a memory server was lost over it, and it goes on.
    fn run<T: Machine>(&mut self, work: T) -> Result<Option<T::Output>, ArchiveError> {
        let driver = self.member.client.carrier_mut();
        let done = driver.run(work).map_err(MemoryError::from)?;
        let Some(fault) = driver.fault() else {
            return Ok(Some(done));
        };
        match self.memory.go_on(&mut self.member)? {
            None => Err(MemoryError::from(fault).into()),
            Some(_) => {
                let map = self.member.client.carrier_mut().map();
                self.durability = self.memory.durability(map)?;
                self.copy = None; // it is begun anew
                // A new replica knows of nothing yet.
                self.say()?;
                Ok(None)
            }
        }
    }

    /// Writes what was published since the last time; whether there was anything.
    fn drain(&mut self) -> Result<bool, ArchiveError> {
        if self.line.journal.kept_bytes() > BEHIND_MAX {
            return Ok(false); // the disk is slower than whoever commits
        }
        let drain = self.durability.drain(&self.progress);
        match self.run(drain)? {
            None | Some(Err(_) | Ok(None)) => return Ok(false),
            Some(Ok(Some(Drained::Batch { cut, entries }))) => self.write(cut, entries)?,
            Some(Ok(Some(Drained::Gap { cut, lost }))) => self.skip(cut, lost)?,
        }
        self.publish()?;
        Ok(true)
    }

    fn write(&mut self, cut: Snapshot, entries: Vec<LogEntry>) -> Result<(), ArchiveError> {
        let batch = Batch {
            formation: self.memory.formation(),
            number: self.line.journal.last() + 1,
            cut,
            entries,
        };
        assert!(
            batch.cut.includes(self.progress.written()),
            "a batch is behind the one before it"
        );
        self.line.push(&batch.encode(), &batch.cut);
        assert_eq!(
            self.line.journal.last(),
            batch.number,
            "a batch has the number under which it is in files"
        );
        self.insist(SyncQueue::write)?;
        self.progress.wrote(batch.cut);
        Ok(())
    }

    /// Goes on behind a gap, which a checkpoint is to close.
    fn skip(&mut self, cut: Snapshot, lost: Stamp) -> Result<(), ArchiveError> {
        let path = self.archiver.directory.path().display();
        (self.archiver.note)(&format!(
            "transaction {lost} is in no log and in no file of {path}, which has lost it: all rows are \
             copied in its place, and commits that wait for the disk wait for that"
        ));
        self.archiver.tally.gaps.add(1);
        assert!(
            !self.progress.written().admits(lost),
            "what is lost is not in a file: {lost}"
        );
        self.insist(|line| line.skip(&cut))?;
        assert!(
            self.line.journal.synced() == self.line.journal.last(),
            "all before a gap is on disk for good"
        );
        self.progress.lost(cut);
        self.copy = None; // what was begun before the gap does not close it
        Ok(())
    }

    /// Does something with the disk until it is done; a commit that waits for it waits that long.
    fn insist<T>(
        &mut self,
        work: impl Fn(&mut SyncQueue) -> std::io::Result<T>,
    ) -> Result<T, ArchiveError> {
        let (mut said, began) = (String::new(), Instant::now());
        loop {
            let error = match work(&mut self.line) {
                Ok(done) => {
                    if !said.is_empty() {
                        self.archiver.tally.set_trouble("");
                        (self.archiver.note)("rows are written to disk again");
                    }
                    return Ok(done);
                }
                Err(error) => error,
            };
            if self.archiver.is_over() && began.elapsed() > LAST {
                return Err(named(self.archiver.directory, error).into());
            }
            self.archiver.tally.failures.add(1);
            let news = error.to_string();
            if news != said {
                let path = self.archiver.directory.path().display();
                let what = format!("cannot write to {path}: {news}; commits wait until I can");
                self.archiver.tally.set_trouble(&what);
                (self.archiver.note)(&what);
                said = news;
            }
            thread::sleep(PAUSE / 4);
            self.keep()?;
        }
    }

    fn look_at_disk(&mut self) -> Result<(), ArchiveError> {
        if let Err(error) = self.line.look() {
            self.archiver.tally.failures.add(1);
            let path = self.archiver.directory.path().display();
            (self.archiver.note)(&format!(
                "what was written to {path} is not on disk: {error}; it is written again"
            ));
            self.insist(SyncQueue::write)?;
        }
        self.publish()
    }

    /// Says how far it is, if that is news.
    fn publish(&mut self) -> Result<(), ArchiveError> {
        let (written, synced) = &self.said;
        let is_said = written == self.progress.written()
            && synced == self.progress.synced(self.line.synced());
        if is_said && self.idle > 0 {
            return Ok(());
        }
        self.say()
    }

    fn say(&mut self) -> Result<(), ArchiveError> {
        self.count();
        let written = self.progress.written().clone();
        let synced = self.progress.synced(self.line.synced()).clone();
        assert!(
            synced.includes(&self.said.1),
            "what was said to be on disk for good stays there"
        );
        assert!(
            written.includes(&self.said.0),
            "what was said to be written is: its slots were written over"
        );
        assert!(
            written.includes(&synced),
            "nothing is on disk that was not written"
        );
        let said = self.durability.publish(&written, &synced);
        self.said = (written, synced);
        self.run(said).map(drop)
    }

    /// What its files have come to since it was counted last.
    fn count(&mut self) {
        let (bytes, syncs) = (self.line.journal.bytes(), self.line.syncs);
        assert!(
            bytes >= self.tallied.0 && syncs >= self.tallied.1,
            "bytes and syncs are counted once"
        );
        let tally = self.archiver.tally;
        tally.bytes.add(bytes - self.tallied.0);
        tally.syncs.add(syncs - self.tallied.1);
        self.tallied = (bytes, syncs);
    }

    /// Goes on with a checkpoint, or begins one when it is time to; whether it is reading.
    fn check_point(&mut self) -> bool {
        let is_due = self.sizes.is_due(&self.line, self.archiver.floor) || self.progress.has_gap();
        if self.copy.is_none() && is_due && Instant::now() >= self.sizes.not_before {
            self.copy = self.begin_copy().map_or_else(
                |error| {
                    self.give_up(&error);
                    None
                },
                Some,
            );
        }
        let Some(copy) = self.copy.take() else {
            return false;
        };
        let scope = self.scope;
        match copy.step(&mut self.around(), scope) {
            Ok(Copy::Done(bytes)) => {
                assert!(bytes > 0, "a checkpoint that is on disk has bytes");
                self.sizes.checkpoint = bytes;
                self.archiver.tally.checkpoints.add(1);
                self.line.journal.replaced();
                self.progress.closed();
                (self.archiver.note)(&format!(
                    "all rows are in a checkpoint of {} MiB",
                    bytes >> 20
                ));
            }
            Ok(copy) => self.copy = Some(copy),
            Err(error) => self.give_up(&error),
        }
        matches!(self.copy, Some(Copy::Reading(..)))
    }

    fn give_up(&mut self, error: &ArchiveError) {
        self.archiver.tally.failures.add(1);
        (self.archiver.note)(&format!("no checkpoint for now: {error}"));
        let pause = if self.progress.has_gap() {
            SOON
        } else {
            ANOTHER
        };
        self.sizes.not_before = Instant::now() + pause;
    }

    fn begin_copy(&mut self) -> Result<Copy, ArchiveError> {
        let number = self.insist(SyncQueue::roll)?;
        let bytes = self.line.journal.bytes();
        (self.sizes.before, self.sizes.since) = (0, bytes);
        let header = Header {
            kind: FileKind::Checkpoint,
            number,
            formation: self.memory.formation(),
            first: self.line.journal.last() + 1,
            needs: 0,
            superblock: self.memory.superblock(),
        };
        assert!(
            self.line.journal.synced() == self.line.journal.last(),
            "a checkpoint begins behind batches that are on disk for good"
        );
        let cut = encode(
            self.memory.formation(),
            header.first - 1,
            self.progress.written(),
        );
        Copy::begin(&mut self.around(), header, &cut)
    }

    fn around(&mut self) -> Around<'_, W::Fabric> {
        Around {
            driver: self.member.client.carrier_mut(),
            plan: self.memory.plan(),
            directory: self.archiver.directory,
            durability: &self.durability,
            synced: self.line.synced(),
        }
    }

    /// Keeps its place, and is in no snapshot's way.
    fn keep(&mut self) -> Result<(), ArchiveError> {
        let driver = self.member.client.carrier_mut();
        driver.keep().map_err(MemoryError::from)?;
        let lease = Duration::from_nanos(self.memory.geometry().lease.0);
        if self.acknowledged.elapsed() > lease / HEEDS {
            self.acknowledged = Instant::now();
            let low_watermark = self.memory.low_watermark();
            let _ = advance_watermark(&mut self.member.client, low_watermark, &|_| true); // or it has met a fault
        }
        Ok(())
    }

    /// All that is published by now is on disk for good, unless that takes too long.
    fn end(mut self) -> Result<(), ArchiveError> {
        let until = Instant::now() + LAST;
        while self.drain()? && Instant::now() < until {}
        while self.progress.has_gap() && Instant::now() < until {
            self.turn()?;
        }
        while self.line.journal.synced() < self.line.journal.last() && Instant::now() < until {
            self.look_at_disk()?;
            thread::sleep(REST.1);
        }
        let _ = self.line.journal.mark(); // or nobody says so
        self.idle = 0;
        self.publish()
    }
}

impl Sizes {
    /// Whether reading batches would take longer than reading a checkpoint.
    fn is_due(&self, line: &SyncQueue, floor: u64) -> bool {
        assert!(
            line.journal.bytes() >= self.since,
            "a journal does not shrink: {} bytes, and it had {}",
            line.journal.bytes(),
            self.since
        );
        let behind = self.before + line.journal.bytes() - self.since;
        behind > floor.max(self.checkpoint)
    }
}

type Taken = (Journal<crate::disk::Directory>, Snapshot, (u64, u64));

/// Goes on behind the last whole batch: with what is not known to be on disk once more; the cut of that
/// batch, and bytes of the checkpoint and of all batches behind it.
fn take_over<W: Transport>(
    archiver: &LogArchiver<'_, W>,
    memory: &Memory<W>,
) -> Result<Taken, ArchiveError> {
    let (superblock, formation) = (memory.superblock(), memory.formation());
    let directory = archiver.directory;
    if directory.identity(formation)? != superblock.directory {
        let path = directory.path().display().to_string();
        return Err(ArchiveError::Elsewhere(path));
    }
    let journal = |segment, synced| {
        let directory = directory.clone();
        Journal::new(directory, superblock.clone(), formation, segment, synced)
    };
    let Some(history) = History::look(directory, &superblock)? else {
        let nothing = Snapshot::empty(memory.geometry().places);
        return Ok((journal(1, 0), nothing, (0, 0)));
    };
    if history.formation() != formation {
        let file = history.file().unwrap_or(directory.path()).to_owned();
        return Err(DiskError::Formation(file).into());
    }
    let tail = history.batches::<DiskError>(&mut |_| Ok(()))?;
    let last = tail
        .last
        .map_or_else(|| history.cut(), |last| Ok(Some(last)))?;
    let written = match last {
        Some(last) => history.decode(&last)?.cut,
        None => Snapshot::empty(memory.geometry().places),
    };
    if written.numbers().len() != usize::from(memory.geometry().places) {
        let file = history.file().unwrap_or(directory.path()).to_owned();
        return Err(DiskError::Damaged(file, 0).into());
    }
    let mut journal = journal(history.next(), tail.synced);
    for batch in &tail.behind {
        journal.push(batch);
    }
    assert_eq!(
        journal.last(),
        tail.synced + tail.behind.len() as u64,
        "each batch that is not known to be on disk for good is written once more"
    );
    directory.remove_before(history.first_segment())?;
    Ok((journal, written, history.bytes()))
}
