//! The carrier in the kernel: an XDP program answers, this process looks after its views.
//!
//! | file | |
//! |---|---|
//! | `objects` | the compiled programs and their maps |
//! | `kept_maps` | the maps of an earlier process, found again |
//! | `load` | giving the programs to an interface |
//! | `clock` | how much time the kernel spends in programs |
//!
//! | what must hold | how it is made |
//! |---|---|
//! | a record that was accepted is in what a freeze reads | the view is marked as frozen first; then each set is read with its lock held, and the program looks at the mark with the same lock held |
//! | a view begins with an empty table | its generation is greater than any before: no slot has it |
//! | the program never sees half a view | names and tokens are written first, one byte that makes it live in a second step |
//! | nothing is lost with this process | maps and programs are pinned; a new process goes on with them, and with their life |

mod clock;
mod kept_maps;
mod load;
mod objects;

use std::collections::BTreeSet;
use std::net::SocketAddr;

use manxdb_curp::ids::{RpcId, View};
use manxdb_curp::table::Recorded;
use manxdb_curp::wire::{Datagram, GcEntry};
use manxdb_curp::{ViewTokens, WitnessCarrier};

pub use self::clock::{ProgramClock, ProgramTime};
use self::load::Loaded;
use crate::counts::{Count, Counts};
use crate::error::CarrierError;
use crate::host;
use crate::kind::{Carrier, CarrierKind, Place};
use crate::layout::{
    PAYLOAD_BYTES, SETS, SLOT_FULL, Slot, VIEWS, ViewSlot, WAYS, decode_set, decode_views,
    encode_views, set_of,
};
use crate::pin_paths::PinPaths;

/// Reads a value with its lock held (`BPF_F_LOCK`).
const LOCKED: u64 = 4;
/// Bytes of a request's stamp.
const STAMP_BYTES: usize = 16;

/// A witness's carrier in the kernel. It goes on without this process; [`Carrier::remove`] ends it.
pub struct XdpCarrier {
    kind: CarrierKind,
    place: Place,
    kernel: Loaded,
    /// As they are in the kernel: nobody else writes them.
    views: [ViewSlot; VIEWS],
    /// Questions that came to the process, as none should.
    strays: u64,
}

impl XdpCarrier {
    /// Loads the program and gives it to the interface, with the records that an earlier process of the
    /// same cluster has left.
    ///
    /// # Errors
    /// What is missing, and how to get it.
    pub fn open(kind: CarrierKind, place: &Place) -> Result<Self, CarrierError> {
        assert!(kind.is_in_kernel(), "a process is no carrier in the kernel");
        assert!(!place.interface.is_empty(), "a program is at an interface");
        if !place.address.is_ipv4() {
            return Err(CarrierError::Address(place.address));
        }
        host::check(&place.bpffs)?;
        let pins = PinPaths::of(kind, place)?;
        let _alone = pins.lock()?;
        let opened = load::load(kind, place, &pins);
        let kernel = opened.inspect_err(|_| pins.remove_if_unused())?;
        let views = kernel.views.get(&0, 0);
        let views = views.map_err(CarrierError::refused("read the views"))?;
        Ok(Self {
            kind,
            place: place.clone(),
            kernel,
            views: decode_views(&views),
            strays: 0,
        })
    }

    fn index_of(&self, view: View) -> Option<usize> {
        let is_it = |slot: &ViewSlot| slot.live && slot.view == view;
        self.views.iter().position(is_it)
    }

    /// Has the kernel see the views as `change` makes them; false, and nothing changed here, when it
    /// does not.
    fn write(&mut self, change: impl FnOnce(&mut [ViewSlot; VIEWS])) -> bool {
        let mut views = self.views;
        change(&mut views);
        if views == self.views {
            return true;
        }
        match self.kernel.views.set(0, encode_views(&views), 0) {
            Ok(()) => {
                self.views = views;
                true
            }
            Err(error) => {
                tracing::error!(%error, "the kernel does not take the views of a witness");
                false
            }
        }
    }

    /// The slots of a set, as no processor is at work on them.
    fn set(&self, index: u32) -> Option<[Slot; WAYS]> {
        match self.kernel.sets.get(&index, LOCKED) {
            Ok(bytes) => Some(decode_set(&bytes)),
            Err(error) => {
                tracing::error!(index, %error, "the kernel does not give a set of a witness");
                None
            }
        }
    }

    /// The record in a slot that is full.
    fn recorded(&self, set: u32, way: usize, slot: &Slot) -> Option<Recorded> {
        assert_eq!(slot.state, SLOT_FULL, "only a full slot has a payload");
        assert!(set < SETS && way < WAYS, "a slot has a payload of its own");
        let index = set * u32::try_from(WAYS).ok()? + u32::try_from(way).ok()?;
        let length = usize::from(slot.length);
        let bytes = self.kernel.payloads.get(&index, 0);
        let bytes = bytes.inspect_err(|error| {
            tracing::error!(index, %error, "the kernel does not give a record of a witness");
        });
        let bytes = bytes.ok()?;
        if !(STAMP_BYTES..=PAYLOAD_BYTES).contains(&length) {
            tracing::error!(index, length, "a record of a witness has no such length");
            return None;
        }
        let number = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        Some(Recorded {
            rpc: slot.rpc,
            stamp: (number(0), number(8)),
            command: bytes[STAMP_BYTES..length].to_vec(),
        })
    }

    /// All records of a generation; nothing when one cannot be read.
    fn read(&self, generation: u32) -> Option<Vec<Recorded>> {
        let mut records = BTreeSet::new();
        for index in 0..SETS {
            for (way, slot) in self.set(index)?.iter().enumerate() {
                if slot.state == SLOT_FULL && slot.generation == generation {
                    records.insert(self.recorded(index, way, slot)?);
                }
            }
        }
        let operations: BTreeSet<RpcId> = records.iter().map(|record| record.rpc).collect();
        assert_eq!(
            operations.len(),
            records.len(),
            "an operation has one request, under all of its keys"
        );
        Some(records.into_iter().collect())
    }

    /// Questions that came to the process.
    #[must_use]
    pub fn strays(&self) -> u64 {
        self.strays
    }
}

impl WitnessCarrier for XdpCarrier {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn serve(&mut self, view: View, tokens: ViewTokens) -> bool {
        if self.index_of(view).is_some() {
            return true;
        }
        let Some(index) = self.views.iter().position(|slot| !slot.live) else {
            return false;
        };
        // The newest view is still there, ended or not: it is overwritten by a newer one alone.
        let newest = self.views.iter().map(|slot| slot.generation).max();
        let Some(generation) = newest.unwrap_or(0).checked_add(1) else {
            return false;
        };
        assert!(generation > 0, "0 is no view's: it is in slots never used");
        let round = u32::try_from(index).unwrap_or(0);
        if let Err(error) = self.kernel.rounds.set(round, 0, 0) {
            tracing::error!(%error, "the kernel does not count a witness's collections");
            return false;
        }
        let begun = ViewSlot {
            view,
            tokens,
            generation,
            live: false,
            frozen: false,
        };
        assert!(
            self.views.iter().all(|slot| slot.generation < generation),
            "no slot of the table has the generation of a view to come"
        );
        let is_begun = self.write(|views| views[index] = begun)
            && self.write(|views| views[index].live = true);
        assert!(
            !is_begun || self.index_of(view) == Some(index),
            "a view that was begun is served"
        );
        is_begun
    }

    fn end(&mut self, keep: View) {
        let is_done = self.write(|views| {
            let before = views.iter_mut().filter(|slot| slot.view < keep);
            before.for_each(|slot| slot.live = false);
        });
        let serves_older = self.views.iter().any(|slot| slot.live && slot.view < keep);
        assert!(
            !is_done || !serves_older,
            "a view that has ended is not served"
        );
    }

    fn give_up(&mut self, in_use: Option<View>, next: View) {
        let before = self.views;
        self.write(|views| {
            let given_up = |slot: &&mut ViewSlot| slot.view < next && Some(slot.view) != in_use;
            let before = views.iter_mut().filter(given_up);
            before.for_each(|slot| slot.live = false);
        });
        let of_use = |slot: &ViewSlot| Some(slot.view) == in_use && slot.generation > 0;
        let was_served = before.iter().any(|slot| slot.live && of_use(slot));
        assert!(
            !was_served || self.views.iter().any(|slot| slot.live && of_use(slot)),
            "the view in use stays"
        );
    }

    fn freeze(&mut self, view: View) -> Option<Vec<Recorded>> {
        let index = self.index_of(view)?;
        if !self.write(|views| views[index].frozen = true) {
            return None;
        }
        assert!(
            self.views[index].frozen,
            "a table is read after it has stopped"
        );
        self.read(self.views[index].generation)
    }

    fn find(&self, view: View, entry: &GcEntry) -> Option<Recorded> {
        let generation = self.views[self.index_of(view)?].generation;
        let set = set_of(entry.hash);
        let is_it = |slot: &Slot| {
            slot.state == SLOT_FULL
                && slot.generation == generation
                && slot.hash == entry.hash
                && slot.rpc == entry.rpc
        };
        let slots = self.set(set)?;
        let way = slots.iter().position(is_it)?;
        let record = self.recorded(set, way, &slots[way])?;
        // Else it may have been collected, and the payload be another's.
        let still_there = self.set(set)?[way] == slots[way];
        assert_eq!(record.rpc, entry.rpc, "a record is found by its operation");
        still_there.then_some(record)
    }

    fn answer(&mut self, asked: &Datagram) -> Option<Datagram> {
        assert!(asked.asks, "an answer is not answered");
        if self.strays == 0 {
            tracing::warn!(
                address = %self.place.address,
                carrier = %self.kind,
                "datagrams come to the process, which does not answer them: the witness's program is not at \
                 the interface where they come in, or they are no plain IPv4"
            );
        }
        self.strays += 1;
        None
    }

    fn records(&self, view: View) -> usize {
        let index = self.index_of(view);
        let records = index.and_then(|index| self.read(self.views[index].generation));
        records.map_or(0, |records| records.len())
    }

    fn refused(&self) -> u64 {
        self.counts().refused()
    }

    fn check(&self) -> Result<(), String> {
        let views = self.kernel.views.get(&0, 0);
        let views = views.map_err(|error| format!("the views cannot be read: {error}"))?;
        if decode_views(&views) != self.views {
            return Err("the kernel has other views than this process".to_owned());
        }
        let live: Vec<&ViewSlot> = self.views.iter().filter(|slot| slot.live).collect();
        let generations: BTreeSet<u32> = live.iter().map(|slot| slot.generation).collect();
        if generations.len() != live.len() {
            return Err("two views have one generation".to_owned());
        }
        if live.iter().any(|slot| slot.tokens.record == slot.tokens.gc) {
            return Err("clients could collect what they did not sync".to_owned());
        }
        self.check_table(&generations)
    }

    fn digest(&self) -> u64 {
        let live = self.views.iter().filter(|slot| slot.live);
        live.map(|slot| self.read(slot.generation).map_or(0, |all| all.len() as u64))
            .sum()
    }
}

impl XdpCarrier {
    fn check_table(&self, live: &BTreeSet<u32>) -> Result<(), String> {
        for index in 0..SETS {
            let slots = self.set(index).ok_or("a set cannot be read")?;
            let mut hashes = BTreeSet::new();
            for slot in slots.iter().filter(|slot| slot.state == SLOT_FULL) {
                if !live.contains(&slot.generation) {
                    continue;
                }
                if set_of(slot.hash) != index {
                    return Err(format!("hash {:x} lies in a foreign set", slot.hash));
                }
                if slot.rpc.client.0 == 0 {
                    return Err("a record of nobody".to_owned());
                }
                if !hashes.insert((slot.generation, slot.hash)) {
                    return Err(format!("two records share the key {:x} (I2)", slot.hash));
                }
            }
        }
        Ok(())
    }
}

impl Carrier for XdpCarrier {
    fn kind(&self) -> CarrierKind {
        self.kind
    }

    fn address(&self) -> SocketAddr {
        self.place.address
    }

    fn life(&self) -> u64 {
        self.kernel.config.life
    }

    fn tokens(&self, view: View) -> Option<ViewTokens> {
        Some(self.views[self.index_of(view)?].tokens)
    }

    fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for (number, count) in Count::ALL.iter().zip(&mut counts.0) {
            let of_each = self.kernel.counters.get(&(*number as u32), 0);
            *count = of_each.map_or(0, |of_each| of_each.iter().sum());
        }
        counts
    }

    fn remove(&mut self) -> Result<(), CarrierError> {
        take_away(self.kind, &self.place)
    }
}

/// Takes away what a witness has left in the kernel, and all its records with it; nothing when there is
/// none.
///
/// # Errors
/// What is missing, and how to get it.
pub fn take_away(kind: CarrierKind, place: &Place) -> Result<(), CarrierError> {
    host::check(&place.bpffs)?;
    let pins = PinPaths::of(kind, place)?;
    if !pins.exist() {
        return Ok(());
    }
    let _alone = pins.lock()?;
    load::unlist(place, &pins)?;
    let removed = pins.remove();
    removed.map_err(CarrierError::refused("take pinned maps away"))
}
