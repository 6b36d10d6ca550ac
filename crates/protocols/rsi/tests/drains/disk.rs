//! What a keeper's disk has, and what is left of it when the power is gone.

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
    pub checkpoint: Option<Checkpoint>,
    /// Batches that were written.
    pub batches: u64,
    /// Checkpoints that were completed, and batches that a keeper found cut off.
    pub completed: u64,
    pub cut_off: u64,
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
            checkpoint: None,
            batches: 0,
            completed: 0,
            cut_off: 0,
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

    /// Whole batches, up to one that is not.
    pub fn read(&self) -> (Vec<Batch>, usize) {
        let (mut batches, mut place) = (Vec::new(), 0);
        while let Some((batch, length)) = Batch::decode(&self.file[place..]) {
            batches.push(batch);
            place += length;
        }
        (batches, place)
    }

    /// Cuts off what is not whole at the end.
    pub fn mend(&mut self) -> Vec<Batch> {
        let (batches, length) = self.read();
        assert!(length >= self.synced, "what was synced is damaged");
        self.cut_off += u64::from(length < self.file.len());
        self.file.truncate(length);
        batches
    }

    /// The power is gone: some of what was not synced is as well.
    pub fn cut(&mut self, random: &mut Random) {
        let unsynced = (self.file.len() - self.synced) as u64;
        let left = random.below(unsynced + 1);
        self.file
            .truncate(self.synced + usize::try_from(left).unwrap());
    }
}
