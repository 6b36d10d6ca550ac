//! From one view to the next: recovery, reconfiguration, opening, and what is sent again meanwhile.

use super::{
    COPIES_DOUBLED, FREEZE_TICKS_MAX, Master, PATIENCE_TICKS, Peer, Phase, RESENDS_DOUBLED,
};
use crate::execute::Execute;
use crate::garbage::GcLink;
use crate::ids::{Config, Member, View};
use crate::master::peer::{Progress, Purpose};
use crate::message::CurpMessage;
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::node::Outbox;
use crate::table::Recorded;

impl<E: Execute> Master<E> {
    /// A witness of the old view has stopped and gives its records: the only ones that count.
    pub(crate) fn frozen(
        &mut self,
        from: Member,
        view: View,
        records: &[Recorded],
        out: &mut impl Outbox,
    ) {
        #[cfg(feature = "mutants")]
        if self.phase == Phase::Filling && self.has(Mutant::MixedWitnesses) {
            for record in records {
                self.replay(record, true);
            }
            return self.start_sync(out);
        }
        let Phase::Freezing { old } = &self.phase else {
            return;
        };
        if view != old.view || !CurpMessage::names(&old.witnesses, from) {
            return;
        }
        #[cfg(feature = "mutants")]
        let records = if self.has(Mutant::NoReplay) {
            &[]
        } else {
            records
        };
        // In the order in which each client asked. Records commute, so any order gives the same
        // state; but a machine that numbers its changes gets them in the order of their numbers.
        let mut records: Vec<&Recorded> = records.iter().collect();
        records.sort_by_key(|record| record.rpc);
        for record in records {
            self.replay(record, true);
        }
        assert!(
            self.config.view.epoch > view.epoch,
            "who recovers from a view has a later life than its master"
        );
        self.phase = Phase::Filling;
        self.start_sync(out);
    }

    /// Goes over to other backups or witnesses; new backups get their copies first, if the view in use can be
    /// served meanwhile.
    pub(crate) fn reconfigure(&mut self, new: Config, out: &mut impl Outbox) {
        let newer = match &self.phase {
            Phase::Serving => {
                let known = self.coming.as_ref().unwrap_or(&self.config);
                new.view > known.view
            }
            Phase::Changing { next } => new.view > next.view,
            Phase::Freezing { .. } | Phase::Filling => false,
        };
        if !newer {
            return self.report_ready(out);
        }
        if new.view.epoch > self.epoch() {
            // Somebody tried to take over and did not get there. Backups may have changed what
            // not all of them had.
            assert!(
                matches!(self.phase, Phase::Serving | Phase::Changing { .. }),
                "the epoch of a master that recovers is its own"
            );
            for peer in &mut self.peers {
                // One that is no backup of the view in use may have been given another log whole.
                let is_backup = CurpMessage::names(&self.config.backups, peer.member);
                *peer = if is_backup && peer.has_log() {
                    Peer::backup(peer.member, self.synced)
                } else {
                    Peer::of_unknown_log(peer.member, Purpose::Backup, self.synced)
                };
            }
            self.config.view.epoch = new.view.epoch;
            self.image = None;
        } else if self.is_serving() {
            return self.begin_joining(new, out);
        }
        self.change_to(new, out);
    }

    /// Serves nobody until the backups of a view to come have everything.
    pub(super) fn change_to(&mut self, new: Config, out: &mut impl Outbox) {
        self.coming = None;
        let mut known = std::mem::take(&mut self.peers);
        for member in &new.backups {
            let same = known.iter().position(|peer| peer.member == *member);
            let fresh = Peer::of_unknown_log(*member, Purpose::Backup, self.synced);
            let mut peer = same.map_or(fresh, |index| known.remove(index));
            peer.purpose = Purpose::Backup;
            self.peers.push(peer);
        }
        self.forget_image();
        assert_eq!(
            self.peers.len(),
            new.backups.len(),
            "a peer for each backup"
        );
        assert!(
            !CurpMessage::names(&new.backups, new.master),
            "a master is not its own backup"
        );
        self.phase = Phase::Changing { next: new };
        self.start_sync(out);
    }

    /// The coordinator has decided for a view: opens.
    pub(crate) fn serve(&mut self, config: &Config, out: &mut impl Outbox) {
        let awaited = match &self.phase {
            Phase::Filling => self.config.view,
            Phase::Changing { next } => next.view,
            Phase::Freezing { .. } | Phase::Serving => return,
        };
        if awaited != config.view {
            return;
        }
        assert!(
            config.view.epoch >= self.epoch(),
            "a view to open is not an earlier one"
        );
        let has_all = |peer: &Peer| peer.acked == self.last() && peer.has_log();
        assert!(
            self.peers.iter().all(has_all) || !self.options.is_honest(),
            "all backups of a view that opens have the whole log"
        );
        assert_ne!(
            config.record_token, config.gc_token,
            "clients cannot collect what they did not sync"
        );
        self.config = config.clone();
        self.phase = Phase::Serving;
        self.image = None;
        for peer in &mut self.peers {
            peer.is_new = false;
            peer.catches_up = false;
        }
        self.write_down();
        assert!(
            self.journaled == self.last() || !self.options.durability.is_on_disk(),
            "what a view begins with is written down"
        );
        // The witnesses of this view are empty: there is nothing to collect of the last one.
        self.garbage.clear();
        let links = config.witnesses.iter().copied().map(GcLink::new);
        self.links = links.collect();
        self.synced_up_to(self.last(), out);
        assert!(self.log.is_empty(), "a view begins with everything synced");
    }

    /// Looks after what should have been answered.
    pub(crate) fn tick(&mut self, out: &mut impl Outbox) {
        if let Phase::Freezing { old } = &self.phase {
            // A witness answers with all of its records: more and more seldom.
            self.freezing_ticks += 1;
            let ticks = self.freezing_ticks;
            if ticks.is_power_of_two() || ticks.is_multiple_of(FREEZE_TICKS_MAX) {
                for witness in &old.witnesses {
                    out.send(witness.node, CurpMessage::Freeze(old.view));
                }
            }
            for index in 0..self.peers.len() {
                if self.peers[index].progress == Progress::Probe {
                    self.ask_log(index, out);
                }
            }
            return;
        }
        let (last, synced) = (self.last(), self.synced);
        for index in 0..self.peers.len() {
            let peer = &mut self.peers[index];
            if peer.waits > 0 {
                peer.waits -= 1;
                continue;
            }
            peer.ticks += 1;
            let lacks = !peer.has_log() || peer.acked < last || peer.told < synced;
            // Each further message without an answer is waited for twice as long: a server that is only slow,
            // as with some large entries, would be sent them faster than it can take them.
            let doubled = if peer.has_log() && !peer.follows() {
                RESENDS_DOUBLED
            } else {
                COPIES_DOUBLED
            };
            let patience = PATIENCE_TICKS << peer.unanswered.min(doubled);
            if lacks && (!peer.in_flight || peer.ticks > patience) {
                assert!(
                    peer.acked <= last || !peer.has_log(),
                    "no backup has more than its master"
                );
                let is_resent = peer.in_flight && peer.has_log() && !peer.follows();
                peer.unanswered += u32::from(is_resent);
                peer.sent = peer.acked;
                self.push(index, out);
            }
        }
        if self.is_serving() {
            for link in &self.links {
                link.send_again(&self.config, out);
            }
            self.expire();
        } else {
            self.report_ready(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use manxdb_core::NodeId;

    use super::*;
    use crate::ids::{ClientId, RpcId};
    use crate::log::{Change, KeptLog};
    use crate::machine_tests::{OneKeyEach, Said, config, log_id, member};
    use crate::options::Options;
    use crate::rifl::Rifl;

    fn record(seq: u64, command: &str) -> Recorded {
        let client = ClientId(1);
        Recorded {
            rpc: RpcId { client, seq },
            stamp: (0, 0),
            command: command.as_bytes().to_vec(),
        }
    }

    /// The end of the log of a master that has said that it is ready after it recovered from the first
    /// witness, once the second one has spoken too.
    fn after_two_witnesses(options: Options) -> u64 {
        let (old, new) = (config(1, 1, 2), config(2, 2, 3));
        let mut rifl = Rifl::default();
        rifl.take(1, &Change::Opened(ClientId(1)));
        let mut master = Master::new(
            options,
            new.clone(),
            Phase::Freezing { old: old.clone() },
            (OneKeyEach, rifl),
            (KeptLog::behind(log_id(1, 1)), VecDeque::new()),
            vec![Peer::backup(member(3), 1)],
        );
        let mut said = Said::default();
        master.frozen(member(9), old.view, &[record(1, "a")], &mut said);
        assert_eq!(master.last(), 1, "no witness of the view");
        master.frozen(member(5), old.view, &[record(1, "a")], &mut said);
        assert_eq!((master.last(), master.phase == Phase::Filling), (2, true));
        master.appended(member(3), 2, &mut said);
        let is_ready = |(to, body): &(NodeId, CurpMessage)| {
            *to == options.coordinator && *body == CurpMessage::Ready { view: new.view }
        };
        assert!(said.0.iter().any(is_ready));
        master.frozen(member(6), old.view, &[record(2, "b")], &mut said);
        master.last()
    }

    #[test]
    fn a_master_that_is_ready_takes_nothing_of_a_second_witness() {
        assert_eq!(after_two_witnesses(Options::default()), 2);
    }

    #[cfg(feature = "mutants")]
    #[test]
    fn a_recovery_from_two_witnesses_is_found() {
        let options = Options {
            mutant: Some(Mutant::MixedWitnesses),
            ..Options::default()
        };
        let last = after_two_witnesses(options);
        assert_eq!(last, 3, "an entry that no backup has when the view opens");
    }
}
