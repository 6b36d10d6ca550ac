//! What a log archiver's disk has, and what is left of it when the power is gone.

use std::collections::BTreeMap;

use manxdb_core::Random;
use manxdb_fabric::Address;
use manxdb_rsi::{Batch, Snapshot};

/// A file of batches, and a copy of memory.
pub struct Disk {
    /// Of the database that it is of.
    pub formation: u64,
    /// What the database began with.
    pub base: Snapshot,
    file: Vec<u8>,
    /// Bytes of it that are there when the power is gone.
    synced: usize,
    /// Where a gap is, and up to which batch a checkpoint must have everything for what is behind.
    gaps: Vec<(usize, u64)>,
    /// A sync has failed: some of what was written is lost.
    pub has_failed: bool,
    pub checkpoint: Option<Checkpoint>,
    /// Batches that were written.
    pub batches: u64,
    /// Checkpoints that were completed, and batches that a log archiver found cut off.
    pub completed: u64,
    pub cut_off: u64,
    /// Gaps that were found, and that were closed.
    pub found: u64,
    pub closed: u64,
}

/// A copy of memory.
#[derive(Clone)]
pub struct Checkpoint {
    /// All of this was there before anything was copied.
    pub first: Snapshot,
    /// Of the first batch that it needs.
    pub number: u64,
    pub records: BTreeMap<Address, Vec<u8>>,
}

impl Disk {
    pub fn new(formation: u64, base: Snapshot) -> Self {
        Self {
            formation,
            base,
            file: Vec::new(),
            synced: 0,
            gaps: Vec::new(),
            has_failed: false,
            checkpoint: None,
            batches: 0,
            completed: 0,
            cut_off: 0,
            found: 0,
            closed: 0,
        }
    }

    pub fn append(&mut self, bytes: &[u8]) {
        self.file.extend(bytes);
    }

    pub fn length(&self) -> usize {
        self.file.len()
    }

    pub fn sync(&mut self, length: usize) {
        self.synced = self.synced.max(length);
    }

    /// What comes is of use with a checkpoint that has this batch, which is lost.
    pub fn gap(&mut self, lost: u64) {
        self.gaps.push((self.file.len(), lost));
        self.found += 1;
    }

    /// Where what can be used ends, because the checkpoint lacks a batch that is lost.
    fn end(&self) -> usize {
        let has = self.checkpoint.as_ref().map_or(0, |one| one.number);
        let mut open = self.gaps.iter().filter(|(_, lost)| has <= *lost);
        open.next().map_or(self.file.len(), |(end, _)| *end)
    }

    /// Whole batches, up to one that is not, or a gap that is open.
    pub fn read(&self) -> (Vec<Batch>, usize) {
        let (mut batches, mut place) = (Vec::new(), 0);
        let file = &self.file[..self.end()];
        while let Some((batch, length)) = Batch::decode(&file[place..]) {
            batches.push(batch);
            place += length;
        }
        (batches, place)
    }

    /// Cuts off what is not whole at the end.
    pub fn mend(&mut self) -> Vec<Batch> {
        let end = self.end();
        let (batches, length) = self.read();
        self.synced = self.synced.min(end);
        assert!(length >= self.synced, "what was synced is damaged");
        self.cut_off += u64::from(length < self.file.len());
        self.file.truncate(length);
        self.gaps.retain(|(place, _)| *place < end);
        batches
    }

    /// A sync fails, and some of what was not on disk before is lost without a trace.
    pub fn fail(&mut self, random: &mut Random) {
        self.cut(random);
        self.has_failed = true;
    }

    /// The power is gone: some of what was not synced is as well.
    pub fn cut(&mut self, random: &mut Random) {
        let unsynced = (self.file.len() - self.synced) as u64;
        let left = random.below(unsynced + 1);
        self.file
            .truncate(self.synced + usize::try_from(left).unwrap());
    }
}
