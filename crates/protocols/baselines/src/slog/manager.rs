//! A manager of a region: a member of its log and, perhaps, of the global one.

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_common::{Pieces, Planned, RegionId};
use manxdb_core::check::ensure;
use manxdb_core::{NodeId, Work};
use manxdb_txn::procedure::ShardId;

use super::detock::Precedence;
use super::log::{Batch, Log};
use super::message::{Edge, Entry, SlogMessage};
use super::{Crossing, Out, SlogShared, SlogTimer, global_members, leader_of};
use crate::waits::{GLOBAL_LOG, REGION_LOG, wait};

/// A transaction on its way into the region's log.
type Pending = Vec<Arc<Planned>>;

/// One manager.
pub struct Manager {
    me: NodeId,
    region: RegionId,
    shared: Arc<SlogShared>,
    log: Log,
    /// As leader: what goes into the next batch.
    pending: Pending,
    /// Entries of each shard of the region that were sent to its replicas.
    sent: BTreeMap<ShardId, u64>,
    /// Entries of the global log that came in, and those that came before an earlier one.
    ordered: u64,
    early: BTreeMap<u64, Arc<Planned>>,
    global: Option<Log>,
    /// As leader, under Detock: who comes behind whom.
    precedence: Precedence,
    /// As leader of the global log: how many of its entries touch each region.
    touched: BTreeMap<RegionId, u64>,
}

impl Manager {
    pub(super) fn new(me: NodeId, region: RegionId, shared: Arc<SlogShared>) -> Self {
        let topology = shared.topology;
        let place_in = |members: &[NodeId]| members.iter().position(|member| *member == me);
        let members: Vec<NodeId> = topology.managers(region).collect();
        let place = place_in(&members);
        assert!(place.is_some(), "L6: a manager is one of its region's");
        let all = global_members(topology);
        Self {
            me,
            region,
            log: Log::new(members, place.unwrap_or(0)),
            pending: Pending::new(),
            sent: BTreeMap::new(),
            ordered: 0,
            early: BTreeMap::new(),
            global: place_in(&all).map(|place| Log::new(all, place)),
            precedence: Precedence::default(),
            touched: BTreeMap::new(),
            shared,
        }
    }

    fn leads(&self) -> bool {
        leader_of(self.shared.topology, self.region) == Some(self.me)
    }

    pub(super) fn start(&mut self, out: &mut Out) {
        if self.leads() {
            out.set_timer(self.shared.options.batch_every, SlogTimer::Batch);
        }
    }

    pub(super) fn close_batch(&mut self, out: &mut Out) {
        out.set_timer(self.shared.options.batch_every, SlogTimer::Batch);
        if self.pending.is_empty() {
            return;
        }
        let batch: Batch = std::mem::take(&mut self.pending).into();
        note_appends(&batch, out);
        for (to, message) in self.log.propose(batch) {
            out.send(to, SlogMessage::Region(message));
        }
    }

    pub(super) fn on_message(&mut self, from: NodeId, message: SlogMessage, out: &mut Out) {
        match message {
            SlogMessage::Order { planned }
                if planned.crosses_regions
                    && self.shared.options.crossing == Crossing::GlobalLog =>
            {
                self.order_globally(planned, out);
            }
            SlogMessage::Over { id } => self.precedence.is_over(id),
            SlogMessage::Order { planned } if self.leads() => self.add(planned, out),
            SlogMessage::Ordered { number, planned } => self.take_in(number, planned, out),
            SlogMessage::Region(message) => {
                let (messages, agreed) = self.log.receive(from, message);
                for (to, message) in messages {
                    out.send(to, SlogMessage::Region(message));
                }
                for batch in agreed {
                    self.send_entries(&batch, out);
                }
            }
            SlogMessage::Global(message) => {
                let Some(global) = &mut self.global else {
                    return;
                };
                let (messages, agreed) = global.receive(from, message);
                for (to, message) in messages {
                    out.send(to, SlogMessage::Global(message));
                }
                for planned in agreed.iter().flat_map(|batch| batch.iter()) {
                    self.hand_to_regions(planned, out);
                }
            }
            // What replicas and clients are told.
            _ => {}
        }
    }

    fn order_globally(&mut self, planned: Arc<Planned>, out: &mut Out) {
        let Some(global) = &mut self.global else {
            return;
        };
        if self.shared.options.explains {
            out.wait(planned.id().for_traces(), Some(wait(GLOBAL_LOG)));
        }
        let batch: Batch = [planned].into();
        note_appends(&batch, out);
        for (to, message) in global.propose(batch) {
            out.send(to, SlogMessage::Global(message));
        }
    }

    fn hand_to_regions(&mut self, planned: &Arc<Planned>, out: &mut Out) {
        let topology = self.shared.topology;
        if self.shared.options.explains {
            out.wait(planned.id().for_traces(), None);
        }
        for region in topology.regions_of(planned) {
            let number = self.touched.entry(region).or_default();
            *number += 1;
            let (number, planned) = (*number, Arc::clone(planned));
            match leader_of(topology, region) {
                Some(leader) if leader == self.me => self.take_in(number, planned, out),
                Some(leader) => out.send(leader, SlogMessage::Ordered { number, planned }),
                None => {}
            }
        }
    }

    /// Takes an entry of the global log into the region's next batch, behind all before it.
    fn take_in(&mut self, number: u64, planned: Arc<Planned>, out: &mut Out) {
        if number > self.ordered {
            self.early.entry(number).or_insert(planned);
        }
        while let Some(planned) = self.early.remove(&(self.ordered + 1)) {
            self.ordered += 1;
            self.add(planned, out);
        }
    }

    /// Adds a transaction to the region's next batch.
    fn add(&mut self, planned: Arc<Planned>, out: &mut Out) {
        if self.shared.options.explains {
            out.wait(planned.id().for_traces(), Some(wait(REGION_LOG)));
        }
        self.pending.push(planned);
    }

    fn send_entries(&mut self, batch: &Batch, out: &mut Out) {
        let topology = self.shared.topology;
        for planned in batch.iter().filter(|_| self.shared.options.explains) {
            out.wait(planned.id().for_traces(), None);
        }
        let batch = self.place(batch, out);
        for shard in topology.shards_of(self.region) {
            let entries = batch.iter().filter(|entry| entry.planned.touches(shard));
            let entries: Arc<[Entry]> = entries.cloned().collect();
            if entries.is_empty() {
                continue;
            }
            let sent = self.sent.entry(shard).or_default();
            let before = *sent;
            *sent += entries.len() as u64;
            for replica in topology.replicas(shard) {
                if self.is_forgotten(replica, before) {
                    continue;
                }
                let entries = Arc::clone(&entries);
                out.send(replica, SlogMessage::Entries { before, entries });
            }
        }
    }

    /// The batch as entries; under Detock all replicas are told who comes behind whom.
    fn place(&mut self, batch: &Batch, out: &mut Out) -> Vec<Entry> {
        let entry = |planned: &Arc<Planned>, behind| Entry {
            planned: Arc::clone(planned),
            behind,
        };
        if self.shared.options.crossing == Crossing::GlobalLog {
            return batch
                .iter()
                .map(|planned| entry(planned, [].into()))
                .collect();
        }
        let topology = self.shared.topology;
        let (mut entries, mut edges, mut work) = (Vec::new(), Vec::new(), Work::default());
        for planned in batch.iter() {
            let shards = topology.shards_of(self.region);
            let touches = |shard| Pieces::touches_of(&self.shared.procedures, planned, shard);
            let touches = shards.flat_map(touches).collect();
            let behind = self.precedence.place(planned, touches, &mut work);
            if planned.crosses_regions {
                edges.push(Edge {
                    id: planned.id(),
                    shards: planned.shards.as_slice().into(),
                    region: self.region,
                    behind: Arc::clone(&behind),
                });
            }
            entries.push(entry(planned, behind));
        }
        out.work(work);
        if !edges.is_empty() {
            let edges: Arc<[Edge]> = edges.into();
            for replica in topology
                .all_regions()
                .flat_map(|region| topology.nodes(region))
            {
                let edges = Arc::clone(&edges);
                out.send(replica, SlogMessage::Edges { edges });
            }
        }
        entries
    }

    /// Whether a planted defect keeps entries from a replica.
    #[allow(clippy::unused_self)] // a planted defect asks
    fn is_forgotten(&self, replica: NodeId, before: u64) -> bool {
        #[cfg(feature = "mutants")]
        return self.shared.options.mutant == Some(super::SlogMutant::GapInLog)
            && replica.0 % 3 == 2
            && before % 5 == 4;
        #[cfg(not(feature = "mutants"))]
        {
            let _ = (replica, before);
            false
        }
    }

    /// Transactions agreed on in the region's log, as far as this manager knows.
    #[must_use]
    pub fn agreed(&self) -> u64 {
        self.log.length()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        self.log.check()?;
        self.global.as_ref().map_or(Ok(()), Log::check)?;
        self.precedence.check()?;
        let first = self.early.keys().next();
        ensure(first.is_none_or(|first| *first > self.ordered + 1), || {
            format!("L7: {first:?} is not taken in behind {}", self.ordered)
        })?;
        ensure(self.leads() || self.pending.is_empty(), || {
            "L8: a follower collects a batch".into()
        })
    }
}

fn note_appends(batch: &Batch, out: &mut Out) {
    out.work(Work {
        appends: u32::try_from(batch.len()).unwrap_or(u32::MAX),
        ..Work::default()
    });
}
