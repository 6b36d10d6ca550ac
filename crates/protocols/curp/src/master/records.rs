//! What a master does with the records of witnesses: has them forgotten, and replays them.

use manxdb_core::NodeId;

use super::{Master, Phase};
use crate::execute::Execute;
use crate::garbage::GcLink;
use crate::ids::{Stamp, View};
use crate::message::CurpMessage;
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::node::Outbox;
use crate::rifl::Known;
use crate::table::Recorded;
use crate::wire::{Datagram, Op};

impl<E: Execute> Master<E> {
    /// Lets witnesses forget what is synced.
    pub(super) fn collect(&mut self, out: &mut impl Outbox) {
        let synced = self.synced;
        #[cfg(feature = "mutants")]
        let synced = if self.has(Mutant::GcBeforeSync) {
            self.last()
        } else {
            synced
        };
        while self.garbage.front().is_some_and(|(at, _)| *at <= synced) {
            let Some((_, entry)) = self.garbage.pop_front() else {
                break;
            };
            assert!(
                self.rifl.look_up(entry.rpc) != Known::New,
                "only what has run is forgotten"
            );
            for link in &mut self.links {
                link.add(entry);
            }
        }
        for link in &mut self.links {
            link.send(&self.config, out);
        }
    }

    /// Updates whose records some witness may still have.
    pub(crate) fn uncollected(&self) -> usize {
        let waiting = self.links.iter().map(GcLink::waiting).max();
        self.garbage.len() + waiting.unwrap_or(0)
    }

    /// A witness has collected, and says what is in the way there.
    pub(crate) fn collected(&mut self, from: NodeId, datagram: &Datagram, out: &mut impl Outbox) {
        if !self.is_serving() || datagram.view != self.config.view || datagram.op != Op::Gc {
            return;
        }
        let mut links = self.links.iter_mut();
        let Some(link) = links.find(|link| link.witness.node == from) else {
            return;
        };
        if !link.answered(datagram) {
            return;
        }
        for entry in &datagram.entries {
            match self.rifl.look_up(entry.rpc) {
                Known::Done { at, .. } if at > self.synced => {} // it will go
                Known::New => {
                    // Its client went away before the master heard of it.
                    let view = self.config.view;
                    let entry = *entry;
                    out.send(from, CurpMessage::Fetch { view, entry });
                }
                Known::Done { .. } | Known::Acknowledged | Known::Expired => {
                    let at = self.last();
                    self.garbage.push_back((at, *entry));
                }
            }
        }
        self.collect(out);
        if !self.log.is_empty() {
            self.plan_sync(out);
        }
    }

    /// A record that is in the way at a witness: it is done like a client's own attempt.
    pub(crate) fn fetched(&mut self, view: View, record: &Recorded, out: &mut impl Outbox) {
        if self.is_serving() && view == self.config.view {
            self.replay(record, false);
            self.start_sync(out);
        }
    }

    /// Does a recorded request, unless it was done. In a recovery one that touches undeclared
    /// keys is dropped. The acknowledgements that requests carry are
    /// not recorded: in the order of replay they would drop what comes later (RIFL, C.1).
    pub(crate) fn replay(&mut self, record: &Recorded, recovers: bool) {
        if self.rifl.look_up(record.rpc) != Known::New {
            return;
        }
        let is_recovery = matches!(self.phase, Phase::Freezing { .. });
        #[cfg(feature = "mutants")]
        let is_recovery = is_recovery || self.has(Mutant::MixedWitnesses);
        assert!(
            is_recovery == recovers || self.is_serving(),
            "a record is replayed before a view opens, or because it is in the way"
        );
        let Some(declared) = E::declare(&record.command) else {
            return;
        };
        let stamp = Stamp {
            micros: record.stamp.0,
            seed: record.stamp.1,
        };
        let executed = self.state.execute(&record.command, stamp);
        let declared = self.options.hasher.hashes(0, &declared.keys);
        let touched = self.options.hasher.hashes(0, &executed.touched);
        let undeclared =
            executed.touches_all || touched.iter().any(|hash| !declared.contains(hash));
        #[cfg(feature = "mutants")]
        let undeclared = undeclared && !self.has(Mutant::ReplaysUndeclared);
        if undeclared && recovers {
            // It was never answered: an answer before a sync needs declared keys alone, and
            // after a sync it would be known. So it may not have been.
            return;
        }
        let ack = 0;
        #[cfg(feature = "mutants")]
        let ack = if self.has(Mutant::AckInReplay) {
            record.rpc.seq
        } else {
            ack
        };
        self.execute(record.rpc, ack, &declared, touched, executed);
        let is_done = matches!(self.rifl.look_up(record.rpc), Known::Done { .. });
        assert!(
            is_done || !self.options.is_honest(),
            "what was replayed is not replayed again"
        );
        self.counts.replayed += 1;
    }
}
