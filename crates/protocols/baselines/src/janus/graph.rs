//! Who comes behind whom, as far as one replica knows: committed transactions and their parents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use manxdb_common::CallId;
use manxdb_core::Work;
use manxdb_core::check::ensure;

use super::message::{Parent, Parents, Vertex};

/// The graph of one replica.
///
/// Edges go from a transaction to its parents. A committed one may have its turn when all that can
/// be reached from it is committed; those on a cycle with it have theirs together.
///
/// Nothing is ever taken out: somebody may ask for any transaction that another one came behind. So
/// a run is limited by memory, about 100 bytes a transaction and replica.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    committed: BTreeMap<CallId, Committed>,
}

#[derive(Debug)]
struct Committed {
    shards: Arc<[u32]>,
    parents: Parents,
    /// Its cycle, once it had its turn here or, if it is not stored here, where it is.
    cycle: Option<Arc<[CallId]>>,
}

/// What stands between a transaction and its turn.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ancestry {
    /// These ancestors are not committed, as far as is known here.
    Missing(Vec<Parent>),
    /// None: these cycles have their turns, one after the other, each ascending.
    Cycles(Vec<Vec<CallId>>),
}

impl Graph {
    /// A transaction is committed. Decisions do not change.
    pub fn commit(&mut self, id: CallId, shards: Arc<[u32]>, parents: Parents) {
        assert!(parents.is_sorted(), "G1: parents ascend");
        let committed = Committed {
            shards,
            parents,
            cycle: None,
        };
        let known = self.committed.entry(id).or_insert(committed);
        assert!(!known.shards.is_empty(), "G2: a transaction is somewhere");
    }

    /// Another replica says that a transaction is committed. Whether this was news.
    pub fn learn(&mut self, vertex: Vertex, is_stored_here: bool) -> bool {
        let is_news = !self.is_committed(vertex.id);
        self.commit(vertex.id, vertex.shards, vertex.parents);
        // What is stored here has its turn here, whatever it had elsewhere.
        if let (false, Some(cycle), Some(known)) = (
            is_stored_here,
            vertex.cycle,
            self.committed.get_mut(&vertex.id),
        ) {
            known.cycle.get_or_insert(cycle);
        }
        is_news
    }

    pub fn is_committed(&self, id: CallId) -> bool {
        self.committed.contains_key(&id)
    }

    /// Whether a transaction is known to have had its turn.
    pub fn had_its_turn(&self, id: CallId) -> bool {
        let known = self.committed.get(&id);
        known.is_some_and(|known| known.cycle.is_some())
    }

    /// Whether a transaction, as far as it is known, touches a shard.
    pub fn is_stored_on(&self, id: CallId, shard: u32) -> bool {
        let known = self.committed.get(&id);
        known.is_some_and(|known| known.shards.contains(&shard))
    }

    /// A transaction had its turn, with the others of its cycle.
    pub fn had_turn(&mut self, id: CallId, cycle: &Arc<[CallId]>) {
        assert!(cycle.contains(&id), "G3: a transaction is on its cycle");
        let known = self.committed.get_mut(&id);
        assert!(known.is_some(), "G4: only the committed have turns");
        if let Some(known) = known {
            known.cycle = Some(Arc::clone(cycle));
        }
    }

    /// Where the search goes on from a committed transaction. One that had its turn leads to others
    /// of its cycle only: all other ancestors of it are committed, and those that meet a
    /// transaction which has not had its turn here are parents of that one as well.
    fn parents_to_visit(known: &Committed) -> impl Iterator<Item = &Parent> {
        let cycle = known.cycle.as_deref();
        let is_ahead = move |parent: &&Parent| cycle.is_none_or(|it| it.contains(&parent.id));
        known.parents.iter().filter(is_ahead)
    }

    /// What stands between a committed transaction and its turn.
    pub fn ancestry(&self, from: CallId, work: &mut Work) -> Ancestry {
        let mut seen = BTreeSet::from([from]);
        let mut open = vec![from];
        let mut missing = Vec::new();
        while let Some(id) = open.pop() {
            work.visits += 1;
            let Some(known) = self.committed.get(&id) else {
                continue;
            };
            for parent in Self::parents_to_visit(known) {
                work.edges += 1;
                if !seen.insert(parent.id) {
                    continue;
                }
                if self.is_committed(parent.id) {
                    open.push(parent.id);
                } else {
                    missing.push(parent.clone());
                }
            }
        }
        if missing.is_empty() {
            return Ancestry::Cycles(self.cycles(from));
        }
        Ancestry::Missing(missing)
    }

    /// The cycles that can be reached, ancestors first (Tarjan 1972, without recursion).
    pub fn cycles(&self, from: CallId) -> Vec<Vec<CallId>> {
        let mut search = Search::default();
        search.enter(from, self.next_of(from));
        while let Some(frame) = search.frames.last_mut() {
            let at = frame.at;
            match frame.next.pop() {
                Some(next) => match search.low.get(&next) {
                    None => search.enter(next, self.next_of(next)),
                    Some(_) if search.on_stack.contains(&next) => {
                        let number = search.number[&next];
                        search.lower(at, number);
                    }
                    Some(_) => {}
                },
                None => search.leave(),
            }
        }
        search.found
    }

    fn next_of(&self, id: CallId) -> Vec<CallId> {
        let known = self.committed.get(&id);
        let parents = known.into_iter().flat_map(Self::parents_to_visit);
        let committed = parents.filter(|parent| self.is_committed(parent.id));
        committed.map(|parent| parent.id).collect()
    }

    /// A committed transaction and its committed ancestors, for somebody who does not store it.
    pub fn vertices(&self, from: CallId, work: &mut Work) -> Vec<Vertex> {
        let mut seen = BTreeSet::from([from]);
        let mut open = vec![from];
        let mut vertices = Vec::new();
        while let Some(id) = open.pop() {
            let Some(known) = self.committed.get(&id) else {
                continue;
            };
            work.vertices += 1;
            vertices.push(Vertex {
                id,
                shards: Arc::clone(&known.shards),
                parents: Arc::clone(&known.parents),
                cycle: known.cycle.clone(),
            });
            for parent in Self::parents_to_visit(known) {
                if seen.insert(parent.id) {
                    open.push(parent.id);
                }
            }
        }
        vertices
    }

    pub fn check(&self) -> Result<(), String> {
        for (id, known) in &self.committed {
            ensure(known.parents.iter().all(|parent| parent.id != *id), || {
                format!("G5: {id:?} comes behind itself")
            })?;
        }
        Ok(())
    }
}

/// A search under way.
#[derive(Debug, Default)]
struct Search {
    number: BTreeMap<CallId, usize>,
    low: BTreeMap<CallId, usize>,
    stack: Vec<CallId>,
    on_stack: BTreeSet<CallId>,
    frames: Vec<Frame>,
    found: Vec<Vec<CallId>>,
}

#[derive(Debug)]
struct Frame {
    at: CallId,
    next: Vec<CallId>,
}

impl Search {
    fn enter(&mut self, at: CallId, next: Vec<CallId>) {
        let number = self.number.len();
        self.number.insert(at, number);
        self.low.insert(at, number);
        self.stack.push(at);
        self.on_stack.insert(at);
        self.frames.push(Frame { at, next });
    }

    fn lower(&mut self, at: CallId, to: usize) {
        if let Some(low) = self.low.get_mut(&at) {
            *low = to.min(*low);
        }
    }

    fn leave(&mut self) {
        let Some(frame) = self.frames.pop() else {
            return;
        };
        let low = self.low[&frame.at];
        if low == self.number[&frame.at] {
            let mut cycle = Vec::new();
            while let Some(id) = self.stack.pop() {
                self.on_stack.remove(&id);
                cycle.push(id);
                if id == frame.at {
                    break;
                }
            }
            cycle.sort_unstable();
            self.found.push(cycle);
        }
        if let Some(before) = self.frames.last().map(|frame| frame.at) {
            self.lower(before, low);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manxdb_core::{NodeId, Random};

    fn id(number: u64) -> CallId {
        CallId {
            client: NodeId(1),
            number,
        }
    }

    fn place(number: u64) -> usize {
        usize::try_from(number).unwrap_or(usize::MAX)
    }

    fn parents(of: &[u64]) -> Parents {
        let shards: Arc<[u32]> = [0].into();
        let parent = |number: &u64| Parent {
            id: id(*number),
            shards: Arc::clone(&shards),
        };
        of.iter().map(parent).collect()
    }

    fn graph(edges: &[(u64, &[u64])]) -> Graph {
        let mut graph = Graph::default();
        for (number, of) in edges {
            graph.commit(id(*number), [0].into(), parents(of));
        }
        graph
    }

    #[test]
    fn a_transaction_waits_for_all_that_can_be_reached() {
        let mut graph = graph(&[(1, &[2]), (2, &[3])]);
        let missing = Ancestry::Missing(parents(&[3]).to_vec());
        assert_eq!(graph.ancestry(id(1), &mut Work::default()), missing);
        graph.commit(id(3), [0].into(), parents(&[2]));
        let cycles = vec![vec![id(2), id(3)], vec![id(1)]];
        let mut work = Work::default();
        assert_eq!(graph.ancestry(id(1), &mut work), Ancestry::Cycles(cycles));
        assert_eq!((work.visits, work.edges), (3, 3));
    }

    #[test]
    fn what_had_its_turn_elsewhere_leads_to_its_cycle_only() {
        let mut graph = graph(&[(1, &[2])]);
        let told = |number, of: &[u64], cycle: &[u64]| Vertex {
            id: id(number),
            shards: [1].into(),
            parents: parents(of),
            cycle: Some(cycle.iter().copied().map(id).collect()),
        };
        assert!(graph.learn(told(2, &[3, 9], &[2, 3]), false));
        assert!(graph.learn(told(3, &[1, 2, 8], &[2, 3]), false));
        let cycles = vec![vec![id(2), id(3)], vec![id(1)]];
        let ancestry = graph.ancestry(id(1), &mut Work::default());
        assert_eq!(ancestry, Ancestry::Cycles(cycles));
    }

    /// Two are on one cycle when each can be reached from the other.
    #[test]
    fn cycles_are_those_of_reachability_and_ancestors_come_first() {
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let count = 1 + random.below(9);
            let mut graph = Graph::default();
            let mut reach = vec![vec![false; 10]; 10];
            for number in 0..count {
                let of: Vec<u64> = (0..count)
                    .filter(|other| *other != number && random.below(4) == 0)
                    .collect();
                for other in &of {
                    reach[place(number)][place(*other)] = true;
                }
                graph.commit(id(number), [0].into(), parents(&of));
            }
            for middle in 0..10 {
                for from in 0..10 {
                    for to in 0..10 {
                        reach[from][to] |= reach[from][middle] && reach[middle][to];
                    }
                }
            }
            let cycles = graph.cycles(id(0));
            let reached = (0..count).filter(|other| *other == 0 || reach[0][place(*other)]);
            let mut all: Vec<CallId> = cycles.concat();
            all.sort_unstable();
            assert_eq!(all, reached.map(id).collect::<Vec<_>>(), "seed {seed}");
            for (at, cycle) in cycles.iter().enumerate() {
                for (other_at, other) in cycles.iter().enumerate() {
                    let (from, to) = (place(cycle[0].number), place(other[0].number));
                    assert!(at == other_at || !(reach[from][to] && reach[to][from]));
                    assert!(at >= other_at || !reach[from][to], "seed {seed}");
                }
                for pair in cycle.windows(2) {
                    let (one, two) = (place(pair[0].number), place(pair[1].number));
                    assert!(reach[one][two] && reach[two][one], "seed {seed}");
                }
            }
        }
    }
}
