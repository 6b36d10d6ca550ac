//! A witness's table for one view: requests by the hashes of their keys.
//!
//! | invariant | where it is made |
//! |---|---|
//! | no two records share a key | [`SlotTable::record`] looks into every set before it takes one slot |
//! | a record is there under all of its keys or under none | it takes its slots back when a set is full |
//! | only what a collection freed leaves its ids behind (a *tombstone*), so that a late copy of its record is answered and not kept | taking back puts back what was there |
//! | nothing is recorded after a freeze | every change looks at it first |
//! | a record goes by a collection, never by age | [`SlotTable::collect`] is the only place that frees one |

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{ClientId, RpcId};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::wire::{GcEntry, KEYS_MAX, RecordedRequest, Status};

/// Rounds of collection after which a record that is in the way is reported.
const STALE_ROUNDS: u64 = 3;
/// Reports kept until the next collection carries them.
const REPORTS_MAX: usize = 32;

/// A record as it is read for recovery.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Recorded {
    /// The operation.
    pub rpc: RpcId,
    /// When and with which luck, in [`crate::ids::Stamp`]'s order.
    pub stamp: (u64, u64),
    /// What.
    #[serde(with = "crate::bytes")]
    pub command: Vec<u8>,
}

/// What every carrier of witnesses keeps its records in.
pub trait WitnessTable {
    /// Keeps a request under all of its hashes (1 to [`KEYS_MAX`], each once), or under none.
    fn record(&mut self, hashes: &[u64], rpc: RpcId, request: &RecordedRequest) -> Status;

    /// Forgets records that are synced, a slot an entry; gives back what has been in the way for
    /// too long.
    fn collect(&mut self, entries: &[GcEntry]) -> Vec<GcEntry>;

    /// Whether no record has any of these hashes.
    fn is_clean(&self, hashes: &[u64]) -> bool;

    /// From now on nothing changes.
    fn freeze(&mut self);

    /// Whether it is frozen.
    fn is_frozen(&self) -> bool;

    /// All records, each once.
    fn records(&self) -> Vec<Recorded>;

    /// The record of an operation, if there is one.
    fn find(&self, entry: &GcEntry) -> Option<Recorded>;
}

#[derive(Debug, Clone, Default)]
struct Slot {
    /// Without one the slot is empty; then the ids are a tombstone, or nobody's.
    request: Option<RecordedRequest>,
    hash: u64,
    rpc: RpcId,
    round: u64,
}

impl Slot {
    fn is(&self, hash: u64, rpc: RpcId) -> bool {
        self.hash == hash && self.rpc == rpc
    }

    fn is_tombstone_of(&self, hash: u64, rpc: RpcId) -> bool {
        self.request.is_none() && self.is(hash, rpc)
    }
}

/// The table in the memory of a process: sets of a few slots, found by the low bits of a hash.
#[derive(Debug, Clone)]
pub struct SlotTable {
    slots: Vec<Slot>,
    ways: usize,
    round: u64,
    frozen: bool,
    reports: BTreeSet<GcEntry>,
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
}

impl SlotTable {
    /// A table of `sets` (rounded up to a power of two) of `ways` slots.
    #[must_use]
    pub fn new(sets: usize, ways: usize) -> Self {
        let sets = sets.max(1).next_power_of_two();
        assert!(sets.is_power_of_two(), "the low bits of a hash are a set");
        Self {
            slots: vec![Slot::default(); sets * ways.max(1)],
            ways: ways.max(1),
            round: 0,
            frozen: false,
            reports: BTreeSet::new(),
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }

    /// With a planted defect.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn with_mutant(mut self, mutant: Option<Mutant>) -> Self {
        self.mutant = mutant;
        self
    }

    fn set(&self, hash: u64) -> std::ops::Range<usize> {
        let sets = self.slots.len() / self.ways;
        let set = usize::try_from(hash & (sets as u64 - 1)).unwrap_or(0);
        assert!(set < sets, "a hash has a set");
        set * self.ways..(set + 1) * self.ways
    }

    /// Takes a slot for each hash; gives all back when one set is full.
    fn reserve(&mut self, hashes: &[u64], rpc: RpcId, request: &RecordedRequest) -> Status {
        #[cfg(feature = "mutants")]
        let frozen = self.frozen && self.mutant.is_none();
        #[cfg(not(feature = "mutants"))]
        let frozen = self.frozen;
        assert!(!frozen, "a table that was read takes nothing");
        let mut taken: Vec<(usize, Slot)> = Vec::with_capacity(hashes.len());
        for hash in hashes {
            let free = |index: &usize| self.slots[*index].request.is_none();
            // The oldest tombstone of the set goes first; a slot never used is older than any.
            let slot = self
                .set(*hash)
                .filter(free)
                .min_by_key(|index| self.slots[*index].round);
            let Some(index) = slot else {
                assert!(taken.len() < hashes.len(), "one of the sets was full");
                self.take_back(taken);
                return Status::Full;
            };
            assert!(
                self.slots[index].round <= self.round,
                "no slot is of a round to come"
            );
            let record = Slot {
                request: Some(request.clone()),
                hash: *hash,
                rpc,
                round: self.round,
            };
            let before = std::mem::replace(&mut self.slots[index], record);
            assert!(before.request.is_none(), "a record goes by a collection");
            taken.push((index, before));
        }
        assert_eq!(taken.len(), hashes.len(), "under all of its keys");
        Status::Accepted
    }

    fn take_back(&mut self, taken: Vec<(usize, Slot)>) {
        for (index, before) in taken {
            #[cfg(feature = "mutants")]
            if self.mutant == Some(Mutant::TombstoneOfAborted) {
                self.slots[index].request = None;
                continue;
            }
            // With its ids left, a record that nobody keeps would be answered as accepted.
            self.slots[index] = before;
        }
    }

    fn recorded(slot: &Slot) -> Option<Recorded> {
        let request = slot.request.as_ref()?;
        Some(Recorded {
            rpc: slot.rpc,
            stamp: (request.stamp.micros, request.stamp.seed),
            command: request.command.clone(),
        })
    }

    /// Checks the invariants of the table above.
    ///
    /// # Errors
    /// What is broken, in words.
    pub fn check(&self) -> Result<(), String> {
        let mut by_hash = BTreeMap::new();
        for (index, slot) in self.slots.iter().enumerate() {
            if slot.request.is_none() {
                continue;
            }
            if !self.set(slot.hash).contains(&index) {
                return Err(format!("hash {:x} lies in a foreign set", slot.hash));
            }
            if slot.rpc.client == ClientId(0) {
                return Err("a record of nobody".to_owned());
            }
            if slot.round > self.round {
                return Err("a record of a round to come".to_owned());
            }
            if let Some(other) = by_hash.insert(slot.hash, slot.rpc) {
                let rpc = slot.rpc;
                return Err(format!("{rpc:?} and {other:?} share a key (I2)"));
            }
        }
        Ok(())
    }
}

impl WitnessTable for SlotTable {
    fn record(&mut self, hashes: &[u64], rpc: RpcId, request: &RecordedRequest) -> Status {
        #[cfg(feature = "mutants")]
        let frozen = self.frozen && self.mutant != Some(Mutant::NoFreeze);
        #[cfg(not(feature = "mutants"))]
        let frozen = self.frozen;
        if frozen {
            return Status::Frozen;
        }
        let distinct: BTreeSet<&u64> = hashes.iter().collect();
        if hashes.is_empty() || distinct.len() != hashes.len() || hashes.len() > KEYS_MAX {
            return Status::Bad;
        }
        if rpc.client == ClientId(0) {
            return Status::Bad;
        }
        let (mut conflict, mut own) = (false, 0);
        for hash in hashes {
            for index in self.set(*hash) {
                let slot = &self.slots[index];
                if slot.is_tombstone_of(*hash, rpc) {
                    return Status::Accepted; // on all backups already
                }
                if slot.request.is_none() || slot.hash != *hash {
                    continue;
                }
                if slot.rpc == rpc {
                    own += 1;
                    continue;
                }
                conflict = true;
                let (hash, rpc) = (slot.hash, slot.rpc);
                if self.round - slot.round > STALE_ROUNDS && self.reports.len() < REPORTS_MAX {
                    self.reports.insert(GcEntry { hash, rpc });
                }
            }
        }
        #[cfg(feature = "mutants")]
        let conflict = conflict && self.mutant != Some(Mutant::WitnessIgnoresConflict);
        if conflict {
            return Status::Conflict;
        }
        assert!(
            own <= hashes.len(),
            "a record lies once under each of its keys"
        );
        if own > 0 {
            // Asked again. Under a part of its keys: a collection freed the others, so it is
            // synced.
            return Status::Accepted;
        }
        self.reserve(hashes, rpc, request)
    }

    fn collect(&mut self, entries: &[GcEntry]) -> Vec<GcEntry> {
        if self.frozen {
            return Vec::new();
        }
        self.round += 1;
        for entry in entries {
            for index in self.set(entry.hash) {
                if self.slots[index].is(entry.hash, entry.rpc) {
                    self.slots[index].request = None;
                    self.slots[index].round = self.round;
                }
            }
        }
        let reports = std::mem::take(&mut self.reports);
        assert!(reports.len() <= REPORTS_MAX, "reports fit into an answer");
        let still_there = |entry: &GcEntry| self.find(entry).is_some();
        reports.into_iter().filter(still_there).collect()
    }

    fn is_clean(&self, hashes: &[u64]) -> bool {
        hashes.iter().all(|hash| {
            let mut set = self.set(*hash);
            set.all(|index| self.slots[index].request.is_none() || self.slots[index].hash != *hash)
        })
    }

    fn freeze(&mut self) {
        self.frozen = true;
    }

    fn is_frozen(&self) -> bool {
        self.frozen
    }

    fn records(&self) -> Vec<Recorded> {
        let all: BTreeSet<Recorded> = self.slots.iter().filter_map(Self::recorded).collect();
        all.into_iter().collect()
    }

    fn find(&self, entry: &GcEntry) -> Option<Recorded> {
        let mut set = self.set(entry.hash);
        let index = set.find(|index| {
            let slot = &self.slots[*index];
            slot.request.is_some() && slot.is(entry.hash, entry.rpc)
        })?;
        Self::recorded(&self.slots[index])
    }
}
