//! Spares follow the log before they are needed.
//!
//! The coordinator names spares; the master asks each for its log, sends it a copy if it has to, and from
//! then on what is logged, at its ticks. When a backup or the master is gone, the view to come has a spare
//! that lacks the last few entries, and no copy has to be made while clients wait.
//!
//! | invariant | |
//! |---|---|
//! | F1 | nothing counts on a spare: no update waits for one, and none is synced because of one |
//! | F2 | a spare is told that all have no more than it has said to have, so it applies nothing that the master has otherwise |
//! | F3 | what is kept for spares is bounded, more while one of them catches up; one that lacks more gets a copy |
//! | F4 | at most one message is on its way to a spare, or is sent again ever later |
//!
//! The master's own log and state are not a spare's: its records say nothing of what was acknowledged, and
//! it becomes no master before it was a backup.

use super::{ENTRIES_A_MESSAGE, Master, Peer};
use crate::execute::Execute;
use crate::ids::Member;
use crate::master::joining::NEAR;
use crate::master::peer::{Progress, Purpose};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::node::Outbox;

impl<E: Execute> Master<E> {
    /// Has these spares follow the log, and no others.
    pub(crate) fn follow_me(&mut self, spares: &[Member], out: &mut impl Outbox) {
        if !self.is_serving() {
            return;
        }
        self.peers
            .retain(|peer| !peer.follows() || spares.contains(&peer.member));
        for member in spares {
            let mut peers = self.peers.iter();
            let is_known = peers.any(|peer| peer.member == *member);
            if !is_known && *member != self.config.master {
                let spare = Peer::of_unknown_log(*member, Purpose::Follows, self.synced);
                self.peers.push(spare);
                self.push(self.peers.len() - 1, out);
            }
        }
        self.forget_image();
        let counted = self.peers.iter().filter(|peer| peer.counts()).count();
        assert!(
            counted == self.config.backups.len(),
            "F1: a spare is no backup"
        );
    }

    /// Spares that lack a few entries at most.
    pub(crate) fn near(&self) -> Vec<Member> {
        if !self.is_serving() {
            return Vec::new();
        }
        let is_near = |peer: &&Peer| peer.follows() && peer.has_log() && self.lacks(peer) <= NEAR;
        let near = self.peers.iter().filter(is_near);
        near.map(|peer| peer.member).collect()
    }

    /// A spare has said what it has. What it lacks goes at the next tick, so that many entries make one
    /// message; but at once when that would be more than one.
    pub(super) fn go_on_following(&mut self, index: usize, out: &mut impl Outbox) {
        let peer = &self.peers[index];
        assert!(peer.follows(), "others get the log at once");
        if self.lacks(peer) >= ENTRIES_A_MESSAGE as u64 && !peer.in_flight {
            self.push(index, out);
        }
    }

    /// Forgets what is kept beyond its bound (F3). What a view to come needs is not forgotten (J2).
    pub(super) fn trim_kept(&mut self) {
        if !self.is_serving() || self.coming.is_some() {
            return;
        }
        let waits = self.peers.iter().any(|peer| peer.catches_up);
        self.kept.trim(if waits {
            self.options.kept_for_copies()
        } else {
            self.options.kept_bytes
        });
        let from = self.kept_from();
        let image = self.image.as_ref().map(|image| image.cut().last);
        #[cfg(feature = "mutants")]
        self.skip_gaps(from);
        for peer in self.peers.iter_mut().filter(|peer| peer.follows()) {
            let is_behind = match peer.progress {
                Progress::Probe => false,
                Progress::Snapshot { .. } => image.is_some_and(|cut| cut < from),
                Progress::Replicate => peer.acked < from,
            };
            if is_behind {
                peer.drop_behind();
            }
        }
        self.forget_image();
        let lacks_more = |peer: &Peer| peer.has_log() && peer.acked < from;
        assert!(
            !self.peers.iter().any(lacks_more),
            "what backups and spares lack is kept"
        );
    }

    /// With a planted defect, a spare counts as having what is not kept for it any more.
    #[cfg(feature = "mutants")]
    fn skip_gaps(&mut self, from: crate::ids::Position) {
        if !self.has(Mutant::GapSkipped) {
            return;
        }
        for peer in self.peers.iter_mut().filter(|peer| peer.follows()) {
            if peer.has_log() && peer.acked < from {
                (peer.acked, peer.sent) = (from, from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use manxdb_core::{LocalTime, NodeId};

    use super::super::Phase;
    use super::*;
    use crate::ids::{ClientId, LogId, Position};
    use crate::log::{Change, KeptLog};
    use crate::machine_tests::{OneKeyEach, Said, config, log_id, member, synced_update};
    use crate::message::CurpMessage;
    use crate::options::Options;
    use crate::rifl::Rifl;

    const BACKUP: u32 = 2;
    const SPARE: u32 = 3;

    /// A master of the second epoch that serves, and whose log began with an entry of the first one. A
    /// spare is to follow it.
    fn master(kept_bytes: usize, said: &mut Said) -> Master<OneKeyEach> {
        let now = config(2, 1, BACKUP);
        let mut rifl = Rifl::default();
        rifl.take(1, &Change::Opened(ClientId(1)));
        let options = Options {
            kept_bytes,
            ..Options::default()
        };
        let log = (KeptLog::behind(log_id(1, 1)), VecDeque::new());
        let peers = vec![Peer::backup(member(BACKUP), 1)];
        let mut master = Master::new(
            options,
            now.clone(),
            Phase::Filling,
            (OneKeyEach, rifl),
            log,
            peers,
        );
        master.serve(&now, said);
        master.follow_me(&[member(SPARE)], said);
        master
    }

    /// An update that its backup has, or has not yet.
    fn update(master: &mut Master<OneKeyEach>, seq: u64, is_synced: bool, said: &mut Said) {
        let request = synced_update(master.config.view, seq, seq.to_le_bytes().to_vec());
        master.run(LocalTime(0), true, NodeId(9), request, said);
        if is_synced {
            master.appended(member(BACKUP), master.last(), said);
        }
    }

    /// What the spare was sent since it was last looked at: places that entries followed, how many they
    /// were, and what it was told that all have.
    fn sent(said: &mut Said) -> Vec<(Position, usize, Position)> {
        let all = said.0.drain(..);
        let to_it = all.filter(|(node, _)| *node == NodeId(SPARE));
        let appends = to_it.filter_map(|(_, body)| match body {
            CurpMessage::Append {
                after,
                entries,
                synced,
                is_new,
                ..
            } => {
                assert!(is_new, "what it says to have is on its disk");
                Some((after, entries.len(), synced))
            }
            _ => None,
        });
        appends.collect()
    }

    #[test]
    fn a_spare_gets_the_log_at_ticks_and_nothing_counts_on_it() {
        let mut said = Said::default();
        let mut master = master(1 << 20, &mut said);
        master.has_log(member(SPARE), Some(log_id(1, 1)), &mut said);
        assert_eq!(master.near(), [member(SPARE)]);
        update(&mut master, 1, false, &mut said);
        update(&mut master, 2, false, &mut said);
        assert_eq!(sent(&mut said), [(1, 0, 1)], "the rest goes at a tick");
        master.appended(member(SPARE), 1, &mut said);
        master.tick(&mut said);
        assert_eq!(sent(&mut said), [(1, 2, 1)]);
        master.appended(member(SPARE), 3, &mut said);
        assert_eq!(master.synced, 1, "F1: its backup has nothing yet");
        master.appended(member(BACKUP), 3, &mut said);
        assert_eq!(master.synced, 3);
        master.tick(&mut said);
        assert_eq!(sent(&mut said), [(3, 0, 3)], "what it may apply");
        // Its backup has more than it has: it is told of what it has.
        update(&mut master, 3, true, &mut said);
        master.appended(member(SPARE), 3, &mut said);
        master.tick(&mut said);
        assert_eq!(sent(&mut said), [(3, 1, 3)], "F2");
        assert!(master.check().is_ok());
    }

    /// Whether a spare with that log gets a copy, where the master's third entry is the last one.
    fn gets_a_copy(log: Option<LogId>) -> bool {
        let mut said = Said::default();
        let mut master = master(1 << 20, &mut said);
        update(&mut master, 1, true, &mut said);
        update(&mut master, 2, true, &mut said);
        master.has_log(member(SPARE), log, &mut said);
        let mut all = said.0.iter();
        let copies = all.any(|(_, body)| matches!(body, CurpMessage::Install { .. }));
        assert_ne!(copies, sent(&mut said).len() == 1, "or the rest of the log");
        copies
    }

    #[test]
    fn a_log_goes_on_where_its_last_entry_is_one_of_the_masters() {
        for known in [log_id(1, 1), log_id(2, 2), log_id(3, 2)] {
            assert!(!gets_a_copy(Some(known)), "{known:?}");
        }
        for other in [log_id(0, 0), log_id(2, 1), log_id(3, 1), log_id(4, 2)] {
            assert!(gets_a_copy(Some(other)), "{other:?}");
        }
        assert!(gets_a_copy(None), "a master that was replaced");
    }

    #[test]
    fn one_that_lacks_more_than_is_kept_is_asked_again_later_and_later() {
        let mut said = Said::default();
        let mut master = master(0, &mut said);
        let asked = |said: &mut Said| {
            let mut all = said.0.drain(..);
            all.any(|(_, body)| matches!(body, CurpMessage::AskLog { .. }))
        };
        assert!(asked(&mut said));
        let mut waited = Vec::new();
        for seq in 1..=3 {
            let end = master.end();
            master.has_log(member(SPARE), Some(end), &mut said);
            assert_eq!(master.near(), [member(SPARE)]);
            update(&mut master, seq, true, &mut said);
            assert!(master.near().is_empty(), "F3: nothing is kept");
            assert!(master.check().is_ok());
            said.0.clear();
            let ticks = (1..100).find(|_| {
                master.tick(&mut said);
                asked(&mut said)
            });
            waited.push(ticks.unwrap_or(0));
        }
        assert_eq!(waited, [9, 17, 33]);
    }

    #[test]
    fn a_spare_that_becomes_a_backup_needs_the_last_entries_alone() {
        let mut said = Said::default();
        let mut master = master(1 << 20, &mut said);
        master.has_log(member(SPARE), Some(log_id(1, 1)), &mut said);
        master.appended(member(SPARE), 1, &mut said);
        update(&mut master, 1, false, &mut said);
        let mut next = config(2, 1, SPARE);
        next.view.wlv.0 += 1;
        said.0.clear();
        master.reconfigure(next.clone(), &mut said);
        assert!(!master.is_serving(), "at once");
        assert_eq!(sent(&mut said), [(1, 1, 1)]);
        master.appended(member(SPARE), 2, &mut said);
        master.serve(&next, &mut said);
        assert_eq!((master.synced, master.counts.pieces), (2, 0));
        assert!(master.check().is_ok());
    }
}
