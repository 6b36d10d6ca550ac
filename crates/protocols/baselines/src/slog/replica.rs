//! A replica of a shard under SLOG.

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_common::Pieces;
use manxdb_common::pieces::Progress;
use manxdb_core::NodeId;
use manxdb_core::check::ensure;
use manxdb_txn::procedure::ShardId;
use manxdb_txn::rows::Rows;

use super::coordinator::Coordinator;
use super::detock::Waiting;
use super::message::{Edge, Entry, SlogMessage};
use super::{Crossing, Out, SlogShared};
use crate::waits::{SaidWaits, of_pieces};

/// One replica of one shard.
pub struct Replica {
    me: NodeId,
    shard: ShardId,
    shared: Arc<SlogShared>,
    /// Entries of the region's log that it has taken.
    taken: u64,
    /// Entries that came before earlier ones, by how many are before them.
    early: BTreeMap<u64, Arc<[Entry]>>,
    /// Under Detock: what has not had its turn.
    waiting: Waiting,
    pieces: Pieces,
    coordinator: Coordinator,
    said: SaidWaits,
}

impl Replica {
    pub(super) fn new(me: NodeId, shard: ShardId, shared: Arc<SlogShared>, rows: Rows) -> Self {
        let (procedures, placement) = (
            Arc::clone(&shared.procedures),
            Arc::clone(&shared.placement),
        );
        let release = shared.options.release;
        #[allow(unused_mut)] // a planted defect changes it
        let mut pieces = Pieces::new(shard, procedures, placement, rows, release);
        #[cfg(feature = "mutants")]
        if shared.options.mutant == Some(super::SlogMutant::LockFreedEarly) {
            pieces.free_early();
        }
        #[allow(unused_mut)] // a planted defect changes it
        let mut waiting = Waiting::new(shard);
        #[cfg(feature = "mutants")]
        {
            waiting.mutant = shared.options.mutant;
        }
        Self {
            me,
            shard,
            waiting,
            taken: 0,
            early: BTreeMap::new(),
            pieces,
            coordinator: Coordinator::new(me, Arc::clone(&shared)),
            said: SaidWaits::default(),
            shared,
        }
    }

    pub(super) fn on_message(&mut self, from: NodeId, message: SlogMessage, out: &mut Out) {
        match message {
            SlogMessage::Submit { call } if call.id.client == from => {
                self.coordinator.submit(*call, out);
            }
            SlogMessage::Entries { before, entries } => self.take_entries(before, entries, out),
            SlogMessage::Edges { edges } => self.take_edges(&edges, out),
            SlogMessage::Pass { id, passed } => {
                let progress = self.pieces.give(id, passed);
                self.tell(progress, out);
            }
            SlogMessage::Output { id, shard, given } => {
                self.coordinator.output(id, shard, given, out);
            }
            // What managers and clients are told.
            _ => {}
        }
        if self.shared.options.explains {
            let mut waits = of_pieces(&self.pieces);
            waits.extend(self.waiting.waits());
            self.said.say(waits, out);
        }
    }

    /// Takes entries of the log in its order: what comes early waits for what is before it.
    fn take_entries(&mut self, before: u64, entries: Arc<[Entry]>, out: &mut Out) {
        if before < self.taken {
            return;
        }
        self.early.entry(before).or_insert(entries);
        while let Some((before, entries)) = self.next_entries() {
            assert!(before >= self.taken, "L12: an entry is taken once");
            self.taken = before + entries.len() as u64;
            for entry in entries.iter() {
                self.enter(entry, out);
            }
        }
        self.give_turns(out);
    }

    fn enter(&mut self, entry: &Entry, out: &mut Out) {
        match self.shared.options.crossing {
            Crossing::GlobalLog => {
                let progress = self.pieces.turn(Arc::clone(&entry.planned));
                self.tell(progress, out);
            }
            Crossing::Graph => {
                let procedures = &self.shared.procedures;
                let touches = Pieces::touches_of(procedures, &entry.planned, self.shard);
                self.waiting.enter(entry.clone(), touches);
            }
        }
    }

    fn take_edges(&mut self, edges: &[Edge], out: &mut Out) {
        let topology = self.shared.topology;
        for edge in edges {
            let shards = edge.shards.iter().map(|shard| ShardId(*shard));
            let mut regions: Vec<_> = shards.map(|shard| topology.region_of(shard)).collect();
            regions.dedup();
            self.waiting.tell(edge, regions.len());
        }
        self.give_turns(out);
    }

    /// Under Detock: gives turns to what may have them now.
    fn give_turns(&mut self, out: &mut Out) {
        for planned in self.waiting.take_turns() {
            let progress = self.pieces.turn(planned);
            self.tell(progress, out);
        }
        out.work(self.waiting.take_work());
    }

    fn next_entries(&mut self) -> Option<(u64, Arc<[Entry]>)> {
        #[cfg(feature = "mutants")]
        if self.shared.options.mutant == Some(super::SlogMutant::GapInLog) {
            return self.early.pop_first();
        }
        self.early.remove_entry(&self.taken)
    }

    fn tell(&mut self, progress: Progress, out: &mut Out) {
        out.work(self.pieces.take_work());
        for values in progress.passed {
            for replica in self.shared.topology.replicas(values.to) {
                let (id, passed) = (values.planned.id(), values.passed.clone());
                out.send(replica, SlogMessage::Pass { id, passed });
            }
        }
        for ended in progress.ended {
            let (id, shard, given) = (ended.planned.id(), self.shard.0, ended.given);
            let coordinator = ended.planned.coordinator;
            if coordinator == self.me {
                self.coordinator.output(id, shard, given, out);
            } else {
                out.send(coordinator, SlogMessage::Output { id, shard, given });
            }
        }
    }

    /// What it has run, and its rows.
    #[must_use]
    pub fn pieces(&self) -> &Pieces {
        &self.pieces
    }

    pub(super) fn check(&self) -> Result<(), String> {
        self.pieces.check()?;
        self.coordinator.check()?;
        self.waiting.check()?;
        let first = self.early.keys().next();
        ensure(first.is_none_or(|first| *first > self.taken), || {
            format!("L13: {first:?} could be taken behind {}", self.taken)
        })
    }
}
