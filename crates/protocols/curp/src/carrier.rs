//! What carries a witness: where its records lie, and who answers its datagrams.
//!
//! The messages that begin, freeze and end a view reach a witness as any other; what they do is
//! done by its carrier. [`MemoryCarrier`] keeps tables in the memory of a process and answers
//! datagrams when it is asked to: it is what the simulator runs, and the measure of all others. A
//! carrier in the kernel (crate `manxdb-witness`) answers datagrams before a process sees them.

use std::collections::BTreeMap;

use manxdb_core::Digest;

use crate::ids::View;
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::table::{Recorded, SlotTable, WitnessTable};
use crate::wire::{Datagram, GcEntry, Op, Status};

/// Views served at the same time: the one in use, and those that are being tried.
pub const VIEWS_MAX: usize = 8;

/// What a datagram has to show, of one view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewTokens {
    /// Of records and probes: clients have it.
    pub record: u64,
    /// Of collections: the master alone has it.
    pub gc: u64,
}

/// Where a witness keeps its records, for any number of views up to [`VIEWS_MAX`].
pub trait WitnessCarrier: Send {
    /// Its name, for people.
    fn name(&self) -> &'static str {
        "user"
    }

    /// Begins to serve a view with an empty table; asked again it changes nothing. False when
    /// [`VIEWS_MAX`] others are served, or the carrier failed: then the view is not served.
    fn serve(&mut self, view: View, tokens: ViewTokens) -> bool;

    /// Stops to serve all views before `keep`, and forgets their records.
    fn end(&mut self, keep: View);

    /// Stops to serve all views before `next` but the one that is in use: attempts that were given up, so
    /// nobody has recorded anything under their names. Without it a carrier is full after some of
    /// them, for ever. One that cannot tell them apart ends what is before the view in use.
    fn give_up(&mut self, in_use: Option<View>, next: View) {
        if let Some(in_use) = in_use.filter(|in_use| *in_use < next) {
            self.end(in_use);
        }
    }

    /// From now on nothing is recorded or collected in a view, for ever. Gives all that it has: each
    /// record that was accepted and not collected is among it. Nothing when the view is not
    /// served, or the carrier failed; then it can be asked again.
    fn freeze(&mut self, view: View) -> Option<Vec<Recorded>>;

    /// The record of an operation, if there is one.
    fn find(&self, view: View, entry: &GcEntry) -> Option<Recorded>;

    /// What it answers to a question; nothing when the carrier has it answered elsewhere, so that
    /// the question came to the wrong place.
    fn answer(&mut self, asked: &Datagram) -> Option<Datagram>;

    /// Records of a view.
    fn records(&self, view: View) -> usize;

    /// Questions refused for what is in them.
    fn refused(&self) -> u64;

    /// Checks its invariants.
    ///
    /// # Errors
    /// What is broken, in words.
    fn check(&self) -> Result<(), String>;

    /// What it holds, for comparing two runs.
    fn digest(&self) -> u64;
}

#[derive(Debug)]
struct OfView {
    table: SlotTable,
    tokens: ViewTokens,
}

/// The carrier in the memory of a process.
#[derive(Debug)]
pub struct MemoryCarrier {
    /// Sets, and slots a set.
    size: (usize, usize),
    views: BTreeMap<View, OfView>,
    refused: u64,
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
}

impl MemoryCarrier {
    /// A carrier whose tables have `size.0` sets (rounded up to a power of two) of `size.1` slots.
    #[must_use]
    pub fn new(size: (usize, usize)) -> Self {
        Self {
            size,
            views: BTreeMap::new(),
            refused: 0,
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

    /// What datagrams of a view have to show, if it is served.
    #[must_use]
    pub fn tokens(&self, view: View) -> Option<ViewTokens> {
        self.views.get(&view).map(|of_view| of_view.tokens)
    }

    fn table(&self) -> SlotTable {
        let table = SlotTable::new(self.size.0, self.size.1);
        #[cfg(feature = "mutants")]
        let table = table.with_mutant(self.mutant);
        table
    }
}

impl WitnessCarrier for MemoryCarrier {
    fn serve(&mut self, view: View, tokens: ViewTokens) -> bool {
        if self.views.contains_key(&view) {
            return true;
        }
        if self.views.len() >= VIEWS_MAX {
            return false;
        }
        let table = self.table();
        assert!(
            !table.is_frozen(),
            "a view begins with a table that records"
        );
        self.views.insert(view, OfView { table, tokens });
        true
    }

    fn end(&mut self, keep: View) {
        self.views.retain(|view, _| *view >= keep);
    }

    fn give_up(&mut self, in_use: Option<View>, next: View) {
        self.views
            .retain(|view, _| *view >= next || Some(*view) == in_use);
        assert!(
            self.views.len() <= VIEWS_MAX,
            "there is a table for each of the few views"
        );
    }

    fn freeze(&mut self, view: View) -> Option<Vec<Recorded>> {
        let of_view = self.views.get_mut(&view)?;
        of_view.table.freeze();
        assert!(
            of_view.table.is_frozen(),
            "a table is read after it has stopped"
        );
        Some(of_view.table.records())
    }

    fn find(&self, view: View, entry: &GcEntry) -> Option<Recorded> {
        self.views.get(&view)?.table.find(entry)
    }

    fn answer(&mut self, asked: &Datagram) -> Option<Datagram> {
        assert!(asked.asks, "an answer is not answered");
        let Some(of_view) = self.views.get_mut(&asked.view) else {
            return Some(asked.answer(Status::WrongLife, Vec::new()));
        };
        let token = match asked.op {
            Op::Gc => of_view.tokens.gc,
            Op::Record | Op::Probe => of_view.tokens.record,
        };
        if asked.token != token {
            self.refused += 1;
            return Some(asked.answer(Status::Bad, Vec::new()));
        }
        let (status, entries) = match (asked.op, &asked.request) {
            (Op::Record, Some(request)) => {
                let status = of_view.table.record(&asked.hashes, asked.rpc, request);
                (status, Vec::new())
            }
            (Op::Gc, _) if of_view.table.is_frozen() => (Status::Frozen, Vec::new()),
            (Op::Gc, _) => (Status::GcOk, of_view.table.collect(&asked.entries)),
            (Op::Probe, _) if of_view.table.is_frozen() => (Status::Frozen, Vec::new()),
            (Op::Probe, _) if of_view.table.is_clean(&asked.hashes) => (Status::Clean, Vec::new()),
            (Op::Probe, _) => (Status::Dirty, Vec::new()),
            (Op::Record, None) => (Status::Bad, Vec::new()),
        };
        self.refused += u64::from(status == Status::Bad);
        Some(asked.answer(status, entries))
    }

    fn records(&self, view: View) -> usize {
        let of_view = self.views.get(&view);
        of_view.map_or(0, |of_view| of_view.table.records().len())
    }

    fn refused(&self) -> u64 {
        self.refused
    }

    fn check(&self) -> Result<(), String> {
        if self.views.len() > VIEWS_MAX {
            return Err(format!("{} views at a witness", self.views.len()));
        }
        self.views.values().try_for_each(|of_view| {
            if of_view.tokens.record == of_view.tokens.gc {
                return Err("clients could collect what they did not sync".to_owned());
            }
            of_view.table.check()
        })
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        for (view, of_view) in &self.views {
            digest.number(view.epoch.0).number(view.wlv.0.into());
            digest.number(of_view.table.records().len() as u64);
        }
        digest.value()
    }
}
