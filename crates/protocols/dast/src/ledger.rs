//! What the managers of a region agree on: timestamps given, decisions, who takes part.
//!
//! Replicated by viewstamped replication, so that a new leader goes on where the last one
//! stopped. Everything a leader tells others that must not be forgotten is in here first.

mod ahead;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use manxdb_core::NodeId;
use manxdb_core::check::ensure;
use manxdb_vr::State;
use serde::{Deserialize, Serialize};

use crate::call::{CallId, Planned};
use crate::fence::{Ballot, Change, Fences, Placed};
use crate::orders::Orders;
use crate::timestamp::Timestamp;
use crate::topology::RegionId;

/// A change of the ledger.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Entry {
    /// A transaction gets its timestamp in this region.
    Assign {
        /// The transaction.
        planned: Arc<Planned>,
        /// The region that collects the timestamps and decides.
        home: RegionId,
        /// The timestamp.
        at: Timestamp,
    },
    /// This region will never give the transaction a timestamp.
    Refuse {
        /// Which.
        id: CallId,
    },
    /// What becomes of a transaction.
    Decide {
        /// Which.
        id: CallId,
        /// The decision.
        decision: Decision,
    },
    /// A transaction has run everywhere.
    Forget {
        /// Which.
        id: CallId,
    },
    /// Cuts up to this may be told.
    Reserve {
        /// Up to here.
        upto: Timestamp,
    },
    /// A transaction is ordered ahead: this is its place, everywhere.
    Order {
        /// The transaction.
        planned: Arc<Planned>,
        /// Its place.
        at: Timestamp,
        /// The regions that it touches.
        touches: Vec<RegionId>,
        /// The other regions whose streams it goes on: those that it touches, or all with whole
        /// streams.
        to: Vec<RegionId>,
    },
    /// A ballot of the next change of who is fenced is promised.
    Promise {
        /// Which change.
        number: u64,
        /// Which ballot.
        ballot: Ballot,
        /// Nothing is taken from a region's stream behind this mark until then.
        frozen: Option<(RegionId, Timestamp)>,
        /// No mark is told and no place is cut behind this until then.
        cap: Option<Timestamp>,
    },
    /// A change of who is fenced is accepted.
    Accept {
        /// Which change.
        number: u64,
        /// Under which ballot.
        ballot: Ballot,
        /// What changes.
        change: Change,
    },
    /// More than half of the regions have accepted it.
    Change {
        /// The epoch that begins.
        epoch: u64,
        /// With which epoch the last change came that was one.
        at: u64,
        /// That one.
        change: Change,
        /// When this region is the one that is fenced: what it has passed, and the orders of the
        /// others that it runs at their places before that.
        stood: Option<(Timestamp, Vec<Placed>)>,
    },
    /// All regions have passed what is ordered ahead below this.
    Passed {
        /// Below here.
        upto: Timestamp,
    },
    /// Marks up to these may be told.
    ReserveMarks {
        /// Up to where, by the region that is told.
        upto: Vec<(RegionId, Timestamp)>,
    },
    /// Nodes are out; what they stamped is being collected.
    Evict {
        /// Who.
        nodes: Vec<NodeId>,
    },
    /// What those who were out at an epoch had stamped is collected and told. Of no effect when
    /// others were put out in the meantime: then all of it is collected once more.
    Closed {
        /// When it was asked for.
        epoch: u64,
    },
    /// A node is let in: it is sent everything and does not count yet.
    Admit {
        /// Who.
        node: NodeId,
    },
    /// A node takes part.
    Live {
        /// Who.
        node: NodeId,
    },
}

/// A decision about a cross-region transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    /// It runs at this place.
    Commit(Timestamp),
    /// It never runs.
    Abort,
}

impl Decision {
    /// Where it runs; what never runs is over before everything else.
    #[must_use]
    pub fn place(self) -> Timestamp {
        match self {
            Self::Commit(at) => at,
            Self::Abort => Timestamp::ZERO,
        }
    }
}

/// A cross-region transaction in this region.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Crt {
    /// The transaction.
    pub planned: Arc<Planned>,
    /// The region that decides.
    pub home: RegionId,
    /// Its timestamp in this region.
    pub at: Timestamp,
    /// What became of it.
    pub decision: Option<Decision>,
}

/// Who takes part in a region. Grows by one epoch with each change.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Membership {
    /// Counts changes.
    pub epoch: u64,
    /// Who takes part.
    pub live: BTreeSet<NodeId>,
    /// Who is out, and what it stamped is still being collected.
    pub closing: BTreeSet<NodeId>,
    /// Who is being let in.
    pub joining: Option<NodeId>,
}

/// Refused transactions remembered; older ones of the same client are refused by number.
const REFUSED_MAX: usize = 10_000;

/// What the managers of a region agree on.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Ledger {
    /// Cross-region transactions that have not run everywhere.
    pub crts: BTreeMap<CallId, Crt>,
    /// Cross-region transactions ordered ahead by this region that not all regions have passed.
    pub orders: Orders,
    /// Which region is fenced, if one is.
    pub fences: Fences,
    /// Transactions that never get a timestamp here.
    pub refused: BTreeSet<CallId>,
    /// Transactions that have run everywhere and that their clients may still ask for, so that they
    /// are not given a second timestamp.
    pub finished: BTreeMap<CallId, Timestamp>,
    /// Calls of a client below this number have ended.
    pub ended_below: BTreeMap<NodeId, u64>,
    /// The last timestamp given.
    pub assigned: Timestamp,
    /// Cuts up to this may have been told.
    pub reserved: Timestamp,
    /// Who takes part.
    pub members: Membership,
}

impl Membership {
    /// Checks that nobody is counted twice.
    fn check(&self) -> Result<(), String> {
        ensure(self.live.is_disjoint(&self.closing), || {
            format!(
                "M1: of {:?} some are being put out: {:?}",
                self.live, self.closing
            )
        })?;
        let joins = |node: NodeId| !self.live.contains(&node) && !self.closing.contains(&node);
        ensure(self.joining.is_none_or(joins), || {
            format!("M2: {:?} is being let in and counts already", self.joining)
        })
    }
}

impl Ledger {
    /// At the start all of `nodes` take part.
    #[must_use]
    pub fn new(nodes: impl Iterator<Item = NodeId>) -> Self {
        let members = Membership {
            live: nodes.collect(),
            ..Membership::default()
        };
        Self {
            members,
            ..Self::default()
        }
    }

    /// Whether a transaction must not be given a timestamp: it has had one, or nobody waits for it.
    #[must_use]
    pub fn is_over(&self, id: CallId) -> bool {
        let ended_below = self.ended_below.get(&id.client);
        self.finished.contains_key(&id) || ended_below.is_some_and(|below| id.number < *below)
    }

    /// Checks what holds between any two entries.
    ///
    /// # Errors
    /// The invariant that is broken, in words.
    pub fn check(&self) -> Result<(), String> {
        for (id, crt) in &self.crts {
            ensure(crt.planned.id() == *id, || {
                format!("L1: {:?} is in the ledger as {id:?}", crt.planned.id())
            })?;
            ensure(crt.at <= self.assigned, || {
                format!(
                    "L2: {id:?} is at {:?}, behind all given, {:?}",
                    crt.at, self.assigned
                )
            })?;
            if let Some(Decision::Commit(at)) = crt.decision {
                ensure(at >= crt.at, || {
                    format!("I3: {id:?} is decided at {at:?}, before {:?}", crt.at)
                })?;
            }
            ensure(
                !self.finished.contains_key(id) && !self.refused.contains(id),
                || format!("L3: {id:?} is both under way and over"),
            )?;
        }
        ensure(self.refused.len() <= REFUSED_MAX, || {
            format!("L4: {} refusals are remembered", self.refused.len())
        })?;
        self.orders.check()?;
        self.fences.check()?;
        let cap = self.fences.cap();
        ensure(
            cap.is_none_or(|cap| self.orders.most_reserved() <= cap),
            || format!("F2: marks behind the cap at {cap:?} are reserved"),
        )?;
        let first = self.orders.first();
        ensure(first.is_none_or(|first| first <= self.assigned), || {
            format!(
                "L5: {first:?} is ordered, behind all given, {:?}",
                self.assigned
            )
        })?;
        self.members.check()
    }

    /// Notes that a client waits for nothing below `number` any more.
    fn end_below(&mut self, client: NodeId, number: u64) {
        let below = self.ended_below.entry(client).or_default();
        if *below < number {
            *below = number;
            let first = CallId { client, number: 0 };
            let end = CallId { client, number };
            let ended: Vec<CallId> = self.finished.range(first..end).map(|(id, _)| *id).collect();
            for id in ended {
                self.finished.remove(&id);
            }
        }
    }

    fn refuse(&mut self, id: CallId) {
        self.crts.remove(&id);
        self.refused.insert(id);
        while self.refused.len() > REFUSED_MAX {
            self.refused.pop_first();
        }
    }
}

impl Ledger {
    /// Only what is decided: an open one of this name is a repetition, of which nobody has been
    /// told yet that it is one.
    fn forget(&mut self, id: CallId) {
        match self.crts.get(&id).and_then(|crt| crt.decision) {
            Some(Decision::Commit(at)) => {
                self.crts.remove(&id);
                self.finished.insert(id, at);
            }
            Some(Decision::Abort) => self.refuse(id),
            None => {}
        }
    }
}

impl State for Ledger {
    type Entry = Entry;

    fn apply(&mut self, _number: u64, entry: &Entry) {
        match entry {
            Entry::Assign { planned, home, at } => {
                let id = planned.id();
                self.end_below(id.client, planned.call.ended_below);
                if self.crts.contains_key(&id) || self.refused.contains(&id) || self.is_over(id) {
                    return;
                }
                self.assigned = self.assigned.max(*at);
                let crt = Crt {
                    planned: Arc::clone(planned),
                    home: *home,
                    at: *at,
                    decision: None,
                };
                self.crts.insert(id, crt);
            }
            Entry::Refuse { id } => {
                let has_place = self.crts.contains_key(id) || self.orders.has(*id);
                if !has_place && !self.is_over(*id) {
                    self.refuse(*id);
                }
            }
            Entry::Decide { id, decision } => {
                if let Some(crt) = self.crts.get_mut(id)
                    && crt.decision.is_none()
                {
                    crt.decision = Some(*decision);
                }
            }
            Entry::Order {
                planned,
                at,
                touches,
                to,
            } => self.order(planned, *at, touches, to),
            Entry::Passed { upto } => {
                self.finished.extend(self.orders.pass(*upto));
                self.fences.pass(*upto);
            }
            Entry::ReserveMarks { upto } => self.reserve_marks(upto),
            Entry::Promise {
                number,
                ballot,
                frozen,
                cap,
            } => self.promise((*number, *ballot), *frozen, *cap),
            Entry::Accept {
                number,
                ballot,
                change,
            } => {
                self.fences.accept(*number, *ballot, change);
            }
            Entry::Change {
                epoch,
                at,
                change,
                stood,
            } => {
                if self.fences.begin(*epoch, *at, change) {
                    self.change(change, stood.as_ref());
                }
            }
            Entry::Forget { id } => self.forget(*id),
            Entry::Reserve { upto } => self.reserved = self.reserved.max(*upto),
            Entry::Evict { nodes } => self.evict(nodes),
            Entry::Closed { epoch } => {
                if *epoch == self.members.epoch {
                    self.members.closing.clear();
                }
            }
            Entry::Admit { node } => {
                self.members.epoch += 1;
                self.members.joining = Some(*node);
            }
            Entry::Live { node } => {
                if self.members.joining == Some(*node) {
                    self.members.epoch += 1;
                    self.members.joining = None;
                    self.members.live.insert(*node);
                }
            }
        }
    }
}

impl Ledger {
    fn evict(&mut self, nodes: &[NodeId]) {
        let members = &mut self.members;
        members.epoch += 1;
        for node in nodes {
            if members.live.remove(node) {
                members.closing.insert(*node);
            }
        }
        // Half a joining is worth nothing when everybody else starts anew: the node asks again.
        members.joining = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_collected_before_others_were_put_out_closes_nothing() {
        let [first, second] = [NodeId(7), NodeId(10)];
        let mut ledger = Ledger::new((6..12).map(NodeId));
        let put_out = |node| Entry::Evict { nodes: vec![node] };
        ledger.apply(1, &put_out(first));
        let collected = Entry::Closed {
            epoch: ledger.members.epoch,
        };
        ledger.apply(2, &put_out(second));
        ledger.apply(3, &collected);
        assert_eq!(ledger.members.closing, BTreeSet::from([first, second]));
        let epoch = ledger.members.epoch;
        ledger.apply(4, &Entry::Closed { epoch });
        assert_eq!(ledger.members.closing, BTreeSet::new());
    }
}
