//! A replica of a shard under Janus.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use manxdb_common::node::ReplicaOf;
use manxdb_common::pieces::{Passed, Progress, Release};
use manxdb_common::{CallId, Conflicts, Pieces, Planned};
use manxdb_core::check::ensure;
use manxdb_core::{NodeId, Wait, Work};
use manxdb_txn::procedure::ShardId;
use manxdb_txn::rows::Rows;

use super::graph::{Ancestry, Graph};
use super::message::{JanusMessage, Parent, Parents, Vertex};
use super::{Janus, JanusShared, Out};
use crate::waits::{ANCESTOR, SaidWaits, of_pieces, wait_on};

/// One replica of one shard.
pub struct Replica {
    shard: ShardId,
    shared: Arc<JanusShared>,
    /// Transactions that were asked for here and have not had their turn.
    known: BTreeMap<CallId, Arc<Planned>>,
    /// What they touch.
    met: Conflicts<CallId>,
    graph: Graph,
    /// Committed transactions, each with an ancestor that is not.
    waiting: BTreeMap<CallId, CallId>,
    /// Ancestors that other replicas were asked for.
    inquired: BTreeSet<CallId>,
    /// Who asked for what is not committed here yet.
    asked: BTreeMap<CallId, Vec<NodeId>>,
    pieces: Pieces,
    said: SaidWaits,
}

impl ReplicaOf<Janus> for Replica {
    fn new(shard: ShardId, shared: Arc<JanusShared>, rows: Rows) -> Self {
        let (procedures, placement) = (
            Arc::clone(&shared.procedures),
            Arc::clone(&shared.placement),
        );
        Self {
            pieces: Pieces::new(shard, procedures, placement, rows, Release::Piece),
            shard,
            shared,
            known: BTreeMap::new(),
            met: Conflicts::default(),
            graph: Graph::default(),
            waiting: BTreeMap::new(),
            inquired: BTreeSet::new(),
            asked: BTreeMap::new(),
            said: SaidWaits::default(),
        }
    }

    fn on_message(&mut self, from: NodeId, message: JanusMessage, out: &mut Out) {
        match message {
            JanusMessage::PreAccept { planned } => self.pre_accept(from, planned, out),
            JanusMessage::Accept { id, parents } => {
                out.work(Work {
                    vertices: length(&parents),
                    ..Work::default()
                });
                let shard = self.shard.0;
                out.send(from, JanusMessage::AcceptOk { id, shard });
            }
            JanusMessage::Commit { id, parents } => {
                if let Some(planned) = self.known.get(&id) {
                    let shards = planned.shards.as_slice().into();
                    self.commit(id, shards, parents, out);
                }
            }
            JanusMessage::Inquire { id } => self.on_inquire(from, id, out),
            JanusMessage::Graph { vertices } => self.learn(vertices, out),
            JanusMessage::Pass { id, passed } => self.take_values(id, passed, out),
            // What clients are told.
            JanusMessage::PreAcceptOk { .. }
            | JanusMessage::AcceptOk { .. }
            | JanusMessage::Output { .. } => {}
        }
        self.say_waits(out);
    }

    fn check(&self) -> Result<(), String> {
        self.pieces.check()?;
        self.graph.check()?;
        ensure(self.known.keys().copied().eq(self.met.names()), || {
            "J2: what is known is not what is in the index".into()
        })?;
        for (id, missing) in &self.waiting {
            ensure(!self.graph.is_committed(*missing), || {
                format!("J4: {id:?} waits for {missing:?}, which is committed")
            })?;
            let is_open = self.known.contains_key(id) && self.graph.is_committed(*id);
            ensure(is_open, || format!("J5: {id:?} waits and need not"))?;
        }
        for id in self.known.keys() {
            ensure(!self.pieces.had_turn(*id), || {
                format!("J6: {id:?} had its turn and is known as if it had not")
            })?;
        }
        Ok(())
    }

    fn digest(&self) -> u64 {
        self.pieces.digest()
    }
}

impl Replica {
    fn pre_accept(&mut self, from: NodeId, planned: Arc<Planned>, out: &mut Out) {
        let id = planned.id();
        let is_again = self.known.contains_key(&id) || self.pieces.had_turn(id);
        if is_again || !planned.touches(self.shard) {
            return;
        }
        let touches = Pieces::touches_of(&self.shared.procedures, &planned, self.shard);
        let parent = |id: CallId| {
            let known = self.known.get(&id)?;
            let shards = known.shards.as_slice().into();
            Some(Parent { id, shards })
        };
        let met = self.met.clashing(&touches);
        let parents: Parents = met.into_iter().filter_map(parent).collect();
        out.work(Work {
            keys: u32::try_from(touches.len()).unwrap_or(u32::MAX),
            edges: length(&parents),
            ..Work::default()
        });
        self.met.add(id, touches);
        let before = self.known.insert(id, planned);
        assert!(before.is_none(), "J1: a transaction is noted once");
        let shard = self.shard.0;
        out.send(from, JanusMessage::PreAcceptOk { id, shard, parents });
    }

    fn commit(&mut self, id: CallId, shards: Arc<[u32]>, parents: Parents, out: &mut Out) {
        out.work(Work {
            vertices: 1 + length(&parents),
            ..Work::default()
        });
        self.graph.commit(id, shards, parents);
        self.is_committed(id, out);
    }

    /// A transaction is known to be committed: it may have its turn, those that wait for it may,
    /// and who has asked for it is answered.
    fn is_committed(&mut self, id: CallId, out: &mut Out) {
        for asking in self.asked.remove(&id).unwrap_or_default() {
            self.answer(asking, id, out);
        }
        self.inquired.remove(&id);
        let waiting = self.waiting.iter();
        let waiting = waiting.filter(|(_, missing)| **missing == id);
        let waiting: Vec<CallId> = waiting.map(|(waiting, _)| *waiting).collect();
        for next in &waiting {
            self.waiting.remove(next);
        }
        let own = self.known.contains_key(&id).then_some(id);
        for next in own.into_iter().chain(waiting) {
            self.try_turn(next, out);
        }
    }

    fn learn(&mut self, vertices: Vec<Vertex>, out: &mut Out) {
        let mut news = Vec::new();
        out.work(Work {
            vertices: u32::try_from(vertices.len()).unwrap_or(u32::MAX),
            ..Work::default()
        });
        for vertex in vertices {
            let (id, is_here) = (vertex.id, vertex.shards.contains(&self.shard.0));
            // A committed transaction was noted by all replicas of its shards.
            if is_here && !self.known.contains_key(&id) && !self.pieces.had_turn(id) {
                continue;
            }
            if self.graph.learn(vertex, is_here) {
                news.push(id);
            }
        }
        for id in news {
            self.is_committed(id, out);
        }
    }

    fn on_inquire(&mut self, from: NodeId, id: CallId, out: &mut Out) {
        if self.graph.is_committed(id) {
            self.answer(from, id, out);
        } else {
            self.asked.entry(id).or_default().push(from);
        }
    }

    fn answer(&self, asking: NodeId, id: CallId, out: &mut Out) {
        let mut work = Work::default();
        let vertices = self.graph.vertices(id, &mut work);
        out.work(work);
        out.send(asking, JanusMessage::Graph { vertices });
    }

    /// Gives a committed transaction its turn, and its ancestors before it, unless one of them is
    /// not committed.
    fn try_turn(&mut self, id: CallId, out: &mut Out) {
        if self.pieces.had_turn(id) || !self.graph.is_committed(id) {
            return;
        }
        let mut work = Work::default();
        let ancestry = self.graph.ancestry(id, &mut work);
        out.work(work);
        let cycles = match ancestry {
            Ancestry::Missing(_) if self.is_hasty() => vec![vec![id]],
            Ancestry::Missing(missing) => return self.wait_for(id, &missing, out),
            Ancestry::Cycles(cycles) => cycles,
        };
        for cycle in cycles {
            let cycle: Arc<[CallId]> = cycle.into();
            for member in cycle.iter() {
                self.graph.had_turn(*member, &cycle);
                let Some(planned) = self.known.remove(member) else {
                    continue;
                };
                // What is known of an ancestor that is not committed may have become enough.
                self.waiting.remove(member);
                let touches = self.met.remove(*member);
                assert!(touches.is_some(), "J2: what is known is in the index");
                let progress = self.pieces.turn(planned);
                self.tell(progress, out);
            }
        }
        assert!(
            self.pieces.had_turn(id),
            "J3: a transaction is its own ancestor"
        );
    }

    #[allow(clippy::unused_self)] // a planted defect asks
    fn is_hasty(&self) -> bool {
        #[cfg(feature = "mutants")]
        return self.shared.options.mutant == Some(super::JanusMutant::AncestorsNotAwaited);
        #[cfg(not(feature = "mutants"))]
        false
    }

    fn wait_for(&mut self, id: CallId, missing: &[Parent], out: &mut Out) {
        let Some(first) = missing.first() else {
            return;
        };
        self.waiting.insert(id, first.id);
        for parent in missing {
            let is_here = parent.shards.contains(&self.shard.0);
            if !is_here && self.inquired.insert(parent.id) {
                let id = parent.id;
                if let Some(owner) = self.owner_of(parent) {
                    out.send(owner, JanusMessage::Inquire { id });
                }
            }
        }
    }

    /// A replica that stores a transaction, in this region if there is one.
    fn owner_of(&self, parent: &Parent) -> Option<NodeId> {
        let topology = self.shared.topology;
        let here = topology.region_of(self.shard);
        let shards = parent.shards.iter().map(|shard| ShardId(*shard));
        let near = |shard: &ShardId| topology.region_of(*shard) != here;
        let shard = shards.min_by_key(near)?;
        let replicas: Vec<NodeId> = topology.replicas(shard).collect();
        let turn = usize::try_from(parent.id.number).unwrap_or(0);
        replicas.get(turn % replicas.len()).copied()
    }

    fn take_values(&mut self, id: CallId, passed: Passed, out: &mut Out) {
        let progress = self.pieces.give(id, passed);
        self.tell(progress, out);
    }

    fn tell(&mut self, progress: Progress, out: &mut Out) {
        out.work(self.pieces.take_work());
        for values in progress.passed {
            for replica in self.shared.topology.replicas(values.to) {
                let (id, passed) = (values.planned.id(), values.passed.clone());
                out.send(replica, JanusMessage::Pass { id, passed });
            }
        }
        for ended in progress.ended {
            let (id, shard, given) = (ended.planned.id(), self.shard.0, ended.given);
            let output = JanusMessage::Output { id, shard, given };
            out.send(ended.planned.coordinator, output);
        }
    }

    fn say_waits(&mut self, out: &mut Out) {
        if !self.shared.options.explains {
            return;
        }
        let mut waits: BTreeMap<CallId, Wait> = of_pieces(&self.pieces);
        let waiting = self.waiting.iter();
        waits.extend(waiting.map(|(id, missing)| (*id, wait_on(ANCESTOR, *missing))));
        self.said.say(waits, out);
    }

    /// What it has run, and its rows.
    #[must_use]
    pub fn pieces(&self) -> &Pieces {
        &self.pieces
    }
}

fn length(parents: &Parents) -> u32 {
    u32::try_from(parents.len()).unwrap_or(u32::MAX)
}
