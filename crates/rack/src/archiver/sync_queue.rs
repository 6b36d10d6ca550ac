//! What waits for the disk: batches that are to be synced, by a thread of its own.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::Scope;

use manxdb_rsi::Snapshot;

use crate::disk::{Directory, DiskError, Journal, Sync};

/// A journal, and whoever syncs it.
pub(super) struct SyncQueue {
    pub(super) journal: Journal<Directory>,
    jobs: Sender<Sync>,
    done: Receiver<(Sync, io::Result<()>)>,
    is_syncing: bool,
    /// The cuts of batches that are not synced yet.
    cuts: VecDeque<(u64, Snapshot)>,
    /// The cut of the last one that is.
    synced: Snapshot,
    /// How often something was synced.
    pub(super) syncs: u64,
}

impl SyncQueue {
    /// Behind a cut that is synced.
    pub(super) fn new<'s>(
        journal: Journal<Directory>,
        synced: Snapshot,
        scope: &'s Scope<'s, '_>,
    ) -> Self {
        let (jobs, wanted) = mpsc::channel::<Sync>();
        let (sender, done) = mpsc::channel();
        scope.spawn(move || {
            for job in wanted {
                let result = job.run();
                if sender.send((job, result)).is_err() {
                    return;
                }
            }
        });
        Self {
            journal,
            jobs,
            done,
            is_syncing: false,
            cuts: VecDeque::new(),
            synced,
            syncs: 0,
        }
    }

    /// Takes a batch, which is to be written.
    pub(super) fn push(&mut self, batch: &[u8], cut: &Snapshot) {
        let number = self.journal.push(batch);
        assert!(
            self.cuts.back().is_none_or(|(before, _)| *before < number),
            "batches are taken in their order: {number}"
        );
        self.cuts.push_back((number, cut.clone()));
        self.check();
    }

    /// How cuts relate to what the journal has.
    fn check(&self) {
        let last = self.cuts.back().map(|(number, _)| *number);
        assert!(
            last.is_none_or(|last| last == self.journal.last()),
            "each batch has a cut, up to the last: {last:?} of {}",
            self.journal.last()
        );
        let first = self.cuts.front().map(|(_, cut)| cut);
        assert!(
            first.is_none_or(|first| first.includes(&self.synced)),
            "what waits for the disk was published behind what is there"
        );
    }

    /// Writes what was taken.
    ///
    /// # Errors
    /// To be tried again.
    pub(super) fn write(&mut self) -> io::Result<()> {
        self.journal.flush()?;
        if self.journal.is_full() {
            return self.roll().map(drop);
        }
        Ok(())
    }

    /// Hears what a sync has come to, and begins another one.
    ///
    /// # Errors
    /// It has failed: [`SyncQueue::write`] writes again what it was about.
    pub(super) fn look(&mut self) -> io::Result<()> {
        if let Ok((sync, result)) = self.done.try_recv() {
            self.heard(&sync, result)?;
        }
        if !self.is_syncing
            && let Some(sync) = self.journal.begin_sync()
        {
            self.is_syncing = self.jobs.send(sync).is_ok();
            assert!(self.is_syncing, "who syncs lives as long as the queue");
        }
        Ok(())
    }

    fn heard(&mut self, sync: &Sync, result: io::Result<()>) -> io::Result<()> {
        assert!(self.is_syncing, "a sync that has ended was begun");
        self.is_syncing = false;
        self.syncs += u64::from(result.is_ok());
        self.journal.end_sync(sync, &result);
        result
    }

    /// Ends a segment; the number of the next one.
    ///
    /// # Errors
    /// To be tried again.
    pub(super) fn roll(&mut self) -> io::Result<u64> {
        self.await_sync()?;
        self.journal.roll()
    }

    /// Leaves a batch out that is lost, with all up to a cut: a checkpoint is to have that.
    ///
    /// # Errors
    /// To be tried again.
    pub(super) fn skip(&mut self, cut: &Snapshot) -> io::Result<()> {
        self.await_sync()?;
        self.journal.skip()?;
        assert!(
            cut.includes(&self.synced),
            "what is lost was published behind what is on disk"
        );
        assert!(
            self.cuts.iter().all(|(_, before)| cut.includes(before)),
            "what is lost was published behind the batches before it, whose cuts are forgotten"
        );
        self.cuts.clear();
        self.synced = cut.clone();
        Ok(())
    }

    fn await_sync(&mut self) -> io::Result<()> {
        if self.is_syncing
            && let Ok((sync, result)) = self.done.recv()
        {
            self.heard(&sync, result)?;
        }
        Ok(())
    }

    /// All of this is on disk for good.
    pub(super) fn synced(&mut self) -> &Snapshot {
        while let Some((number, cut)) = self.cuts.pop_front() {
            if number > self.journal.synced() {
                self.cuts.push_front((number, cut));
                break;
            }
            assert!(cut.includes(&self.synced), "cuts only grow: batch {number}");
            self.synced = cut;
        }
        self.check();
        &self.synced
    }
}

/// An error of the directory.
pub(super) fn named(directory: &Directory, error: io::Error) -> DiskError {
    DiskError::Io(directory.path().to_owned(), error)
}
