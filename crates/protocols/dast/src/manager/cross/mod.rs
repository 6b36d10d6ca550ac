//! Cross-region transactions: every touched region anticipates a timestamp, and the home region
//! takes the largest (DAST §4.3).
//!
//! The timestamps of all regions decide: once each is in its region's ledger, the transaction
//! commits at the largest of them, whoever asks. The home region may give it up instead, in its
//! ledger first, as long as it has told nobody of a commit; and a home that has never heard of it
//! refuses it for ever. So no region decides alone and none has to remember what another can be
//! asked for.
//!
//! | file | |
//! |---|---|
//! | here | what this region is asked, and tells |
//! | [`anticipate`] | the timestamp of this region |
//! | [`decision`] | the timestamps of all regions, and what follows from them |
//! | [`ending`] | when all may forget it |
//! | [`retry`] | what is asked for again, or given up |

mod anticipate;
mod decision;
mod ending;
mod retry;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use manxdb_core::LocalTime;

use super::{Effect, Manager};
use crate::call::{CallId, Planned};
use crate::ledger::{Crt, Entry};
use crate::message::{DastMessage, Decision};
use crate::timestamp::Timestamp;
use crate::topology::{RegionId, Role};
use crate::waits::{LEDGER, wait};
use crate::wanted::Out;

/// A cross-region transaction under way, as this leader knows it.
#[derive(Debug)]
pub(super) struct Crossing {
    since: LocalTime,
    /// This leader gave the timestamp, so no earlier one can have told of a decision.
    is_own: bool,
    /// The timestamps of the regions; none: refused.
    assigned: BTreeMap<RegionId, Option<Timestamp>>,
    executed: BTreeSet<RegionId>,
    /// The decision is acted upon.
    decided: bool,
}

impl Crossing {
    fn new(since: LocalTime, is_own: bool) -> Self {
        Self {
            since,
            is_own,
            assigned: BTreeMap::new(),
            executed: BTreeSet::new(),
            decided: false,
        }
    }
}

impl Manager {
    pub(super) fn on_prepare_region(
        &mut self,
        now: LocalTime,
        planned: Arc<Planned>,
        home: RegionId,
        after: Timestamp,
        out: &mut Out,
    ) {
        let id = planned.id();
        // Before all else: a home region's new leader may ask for the timestamp of one whose client
        // has its answer already.
        if let Some(crt) = self.ledger().crts.get(&id) {
            let (at, home) = (crt.at, crt.home);
            self.say_assigned(now, id, home, Some(at), out);
            return;
        }
        if self.ledger().is_over(id) {
            // Its coordinator asks the replicas for what it gave.
            return;
        }
        if self.ledger().refused.contains(&id) {
            self.say_assigned(now, id, home, None, out);
            if home == self.region {
                let refusal = DastMessage::Settle {
                    id,
                    anticipated: Timestamp::ZERO,
                    decision: Decision::Abort,
                };
                out.send(planned.coordinator, refusal);
            }
            return;
        }
        if self
            .lead
            .as_ref()
            .is_none_or(|lead| lead.untold.contains_key(&id))
        {
            return;
        }
        let at = self.anticipate(now, home, after);
        let Some(lead) = &mut self.lead else {
            return;
        };
        lead.assigned = at;
        let other = lead.untold.insert(id, at);
        assert!(other.is_none(), "a transaction is given one timestamp");
        let crossing = lead
            .crossing
            .entry(id)
            .or_insert_with(|| Crossing::new(now, true));
        crossing.is_own = true;
        out.wait(id.for_traces(), Some(wait(LEDGER)));
        let entry = Entry::Assign { planned, home, at };
        self.propose(entry, Effect::TellAssigned(id), out);
    }

    /// The timestamp is in the ledger: the region hears it, and the home does.
    pub(super) fn tell_assigned(&mut self, now: LocalTime, id: CallId, out: &mut Out) {
        if let Some(lead) = &mut self.lead {
            lead.untold.remove(&id);
        }
        let Some(crt) = self.ledger().crts.get(&id).cloned() else {
            return;
        };
        out.wait(id.for_traces(), None);
        self.tell_region(&crt, out);
        self.say_assigned(now, id, crt.home, Some(crt.at), out);
    }

    /// Every node of the region holds its clock below the timestamp; those that the transaction
    /// touches take it in line.
    fn tell_region(&self, crt: &Crt, out: &mut Out) {
        let topology = self.shared.topology;
        for node in self.listeners() {
            let touched = match topology.role(node) {
                Role::Replica(shard) => crt.planned.touches(shard),
                _ => false,
            };
            let at = crt.at;
            let message = if touched {
                let planned = Arc::clone(&crt.planned);
                DastMessage::PrepareCrt { planned, at }
            } else {
                let id = crt.planned.id();
                DastMessage::Floor { id, at }
            };
            out.send(node, message);
        }
    }

    /// To the home region; if that is this one, takes note.
    fn say_assigned(
        &mut self,
        now: LocalTime,
        id: CallId,
        home: RegionId,
        at: Option<Timestamp>,
        out: &mut Out,
    ) {
        let region = self.region;
        if home == region {
            self.on_assigned(now, id, region, at, out);
        } else {
            out.send(
                self.leader_of(home),
                DastMessage::Assigned { id, region, at },
            );
        }
    }

    /// A new leader tells its nodes all that is open.
    pub(super) fn tell_all_open(&mut self, out: &mut Out) {
        let crts: Vec<Crt> = self.ledger().crts.values().cloned().collect();
        for crt in crts {
            if crt.decision != Some(Decision::Abort) {
                self.tell_region(&crt, out);
            }
            if let Some(decision) = crt.decision {
                let settle = DastMessage::Settle {
                    id: crt.planned.id(),
                    anticipated: crt.at,
                    decision,
                };
                for node in self.listeners() {
                    out.send(node, settle.clone());
                }
            }
        }
    }
}
