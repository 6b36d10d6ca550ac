//! Detock: which transactions of a replica's log may have their turns.
//!
//! Logs of regions differ in the order of what touches several, so that transactions may wait for each
//! other. A cross-region transaction has its turn when it is known of it and of all its ancestors, in
//! every region that they touch, whom they come behind ([`Edge`]). Those on a cycle have theirs
//! together, in the order of their identities, on all replicas. A local transaction that comes behind
//! one of a cycle has its turn behind all of it, also where the log has it between two of them; all
//! other pairs that meet keep the order of the log.

mod cycles;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use manxdb_common::{CallId, Conflicts, Planned, RegionId};
use manxdb_core::check::ensure;
use manxdb_core::{Wait, Work};
use manxdb_txn::procedure::{ShardId, Touch};

use super::super::message::{Edge, Entry};
use crate::janus::graph::Graph;
use crate::janus::{Parent, Parents};
use crate::waits::{OTHER_LOGS, ROW, wait, wait_on};

/// What stands between an entry and its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Blocker {
    /// An earlier entry of this shard's log, by place.
    Entry(u64),
    /// A cross-region transaction that comes first somewhere in the region.
    Crossing(CallId),
}

#[derive(Debug)]
struct Waits {
    entry: Entry,
    blockers: BTreeSet<Blocker>,
}

/// A cross-region transaction of which not all regions have told.
#[derive(Debug, Default)]
struct Placing {
    told: BTreeSet<RegionId>,
    parents: BTreeSet<Parent>,
}

/// The entries of one replica that have not had their turns, and what it knows of all regions.
#[derive(Debug)]
pub struct Waiting {
    shard: ShardId,
    entries: BTreeMap<u64, Waits>,
    places: BTreeMap<CallId, u64>,
    met: Conflicts<u64>,
    next: u64,
    placing: BTreeMap<CallId, Placing>,
    graph: Graph,
    /// Of which all regions have told, and which have not had their turns.
    open: BTreeSet<CallId>,
    /// Those of them that have an ancestor of which not all regions have told, each with one.
    missing: BTreeMap<CallId, CallId>,
    work: Work,
    #[cfg(feature = "mutants")]
    pub mutant: Option<super::super::SlogMutant>,
}

impl Waiting {
    pub fn new(shard: ShardId) -> Self {
        Self {
            shard,
            entries: BTreeMap::new(),
            places: BTreeMap::new(),
            met: Conflicts::default(),
            next: 0,
            placing: BTreeMap::new(),
            graph: Graph::default(),
            open: BTreeSet::new(),
            missing: BTreeMap::new(),
            work: Work::default(),
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }

    /// Takes the next entry of the log, with what it touches here.
    pub fn enter(&mut self, entry: Entry, touches: Vec<Touch>) {
        let (place, id) = (self.next, entry.planned.id());
        self.next += 1;
        let earlier = self.met.clashing(&touches).into_iter();
        let mut blockers: BTreeSet<Blocker> = earlier.map(Blocker::Entry).collect();
        if !entry.planned.crosses_regions {
            let behind = entry.behind.iter().map(|parent| parent.id);
            let behind = behind.filter(|id| !self.graph.had_its_turn(*id));
            blockers.extend(behind.map(Blocker::Crossing));
        }
        self.met.add(place, touches);
        let before = self.places.insert(id, place);
        assert!(before.is_none(), "L16: a transaction is in a log once");
        self.entries.insert(place, Waits { entry, blockers });
    }

    /// A region tells whom a transaction comes behind there; it touches so many regions.
    pub fn tell(&mut self, edge: &Edge, regions: usize) {
        if self.graph.is_committed(edge.id) {
            return;
        }
        let placing = self.placing.entry(edge.id).or_default();
        placing.told.insert(edge.region);
        placing.parents.extend(edge.behind.iter().cloned());
        self.work.edges += u32::try_from(edge.behind.len()).unwrap_or(u32::MAX);
        if placing.told.len() < regions && !self.is_hasty() {
            return;
        }
        let placing = self.placing.remove(&edge.id).unwrap_or_default();
        let parents: Parents = placing.parents.into_iter().collect();
        self.work.vertices += 1;
        self.graph
            .commit(edge.id, Arc::clone(&edge.shards), parents);
        self.open.insert(edge.id);
        self.missing.retain(|_, missing| *missing != edge.id);
    }

    #[allow(clippy::unused_self)] // a planted defect asks
    fn is_hasty(&self) -> bool {
        #[cfg(feature = "mutants")]
        return self.mutant == Some(super::super::SlogMutant::OtherLogsNotAwaited);
        #[cfg(not(feature = "mutants"))]
        false
    }

    /// The transactions that may have their turns now, in order.
    pub fn take_turns(&mut self) -> Vec<Arc<Planned>> {
        let mut turns = Vec::new();
        loop {
            let before = (turns.len(), self.open.len());
            self.let_locals_go(&mut turns);
            let ready = self.open.iter().filter(|id| !self.missing.contains_key(id));
            for id in ready.copied().collect::<Vec<CallId>>() {
                self.try_crossing(id, &mut turns);
            }
            if (turns.len(), self.open.len()) == before {
                return turns;
            }
        }
    }

    /// Local transactions that nothing stands before.
    fn let_locals_go(&mut self, turns: &mut Vec<Arc<Planned>>) {
        loop {
            let free = self.entries.iter().find(|(_, waits)| {
                waits.blockers.is_empty() && !waits.entry.planned.crosses_regions
            });
            let Some(place) = free.map(|(place, _)| *place) else {
                return;
            };
            self.let_go(place, turns);
        }
    }

    /// An entry has its turn.
    fn let_go(&mut self, place: u64, turns: &mut Vec<Arc<Planned>>) {
        let Some(waits) = self.entries.remove(&place) else {
            return;
        };
        let touched = self.met.remove(place);
        assert!(touched.is_some(), "L17: what waits is in the index");
        self.places.remove(&waits.entry.planned.id());
        turns.push(waits.entry.planned);
        self.unblock(Blocker::Entry(place));
    }

    fn unblock(&mut self, blocker: Blocker) {
        for waits in self.entries.values_mut() {
            waits.blockers.remove(&blocker);
        }
    }

    /// What entries wait for.
    pub fn waits(&self) -> impl Iterator<Item = (CallId, Wait)> + '_ {
        self.entries.values().map(|waits| {
            let id = waits.entry.planned.id();
            let mut rows = waits.blockers.iter().filter_map(|blocker| match blocker {
                Blocker::Entry(place) => Some(self.entries.get(place)?.entry.planned.id()),
                Blocker::Crossing(other) => Some(*other),
            });
            let wait = match rows.next() {
                Some(other) => wait_on(ROW, other),
                None => wait(OTHER_LOGS),
            };
            (id, wait)
        })
    }

    /// Work done since it was last taken.
    pub fn take_work(&mut self) -> Work {
        std::mem::take(&mut self.work)
    }

    pub fn check(&self) -> Result<(), String> {
        self.graph.check()?;
        ensure(self.entries.keys().copied().eq(self.met.names()), || {
            "L17: what waits is not what is in the index".into()
        })?;
        for (place, waits) in &self.entries {
            let id = waits.entry.planned.id();
            ensure(self.places.get(&id) == Some(place), || {
                format!("L19: {id:?} waits at another place")
            })?;
            let is_local = !waits.entry.planned.crosses_regions;
            ensure(!(is_local && waits.blockers.is_empty()), || {
                format!("L20: {id:?} waits for nothing")
            })?;
            for blocker in &waits.blockers {
                let is_there = match blocker {
                    Blocker::Entry(earlier) => {
                        earlier < place && self.entries.contains_key(earlier)
                    }
                    Blocker::Crossing(other) => !self.graph.had_its_turn(*other),
                };
                ensure(is_there, || {
                    format!("L21: {id:?} waits for what is over: {blocker:?}")
                })?;
            }
        }
        for id in &self.open {
            ensure(
                self.graph.is_committed(*id) && !self.graph.had_its_turn(*id),
                || format!("L22: {id:?} is not open"),
            )?;
        }
        for missing in self.missing.values() {
            ensure(!self.graph.is_committed(*missing), || {
                format!("L23: {missing:?} is waited for and known")
            })?;
        }
        Ok(())
    }
}
