//! New backups get their copies while the view in use is served.
//!
//! A view with a backup that has no log begins with a copy of everything, which takes as long as the
//! state is large. Until the copies are there the master serves the view in use: its backups and witnesses
//! alone count, as before. What it logs meanwhile follows the copies. Once each new backup lacks a few
//! entries at most, the master stops serving and brings them the rest
//! ([`Changing`](super::Phase::Changing)). A spare that followed the log needs no copy: the view in use
//! ends at once.
//!
//! While a backup of the view in use is gone, nothing can be synced: reads and updates that commute with
//! what is not synced are answered, all others wait for the view to come.
//!
//! | invariant | |
//! |---|---|
//! | J1 | what is synced is on the backups of the view in use; nothing counts on one that joins |
//! | J2 | the log is kept from the cut of a copy on until the view that the copy is for opens |

use super::{Master, Peer};
use crate::execute::Execute;
use crate::ids::{Config, Position};
use crate::master::peer::Purpose;
use crate::message::CurpMessage;
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::node::Outbox;

/// A new backup that lacks no more entries than this is waited for.
pub(super) const NEAR: u64 = 256;

impl<E: Execute> Master<E> {
    /// What follows this place is here.
    pub(super) fn kept_from(&self) -> Position {
        let from = self.kept.start().at;
        assert!(from <= self.synced, "what is kept is synced");
        from
    }

    /// Begins to bring the new backups of a view to come up to the log.
    pub(super) fn begin_joining(&mut self, new: Config, out: &mut impl Outbox) {
        assert!(self.is_serving(), "a view is served meanwhile");
        assert_eq!(
            new.view.epoch,
            self.epoch(),
            "whoever serves on has no new life"
        );
        let is_new = |peer: &Peer| CurpMessage::names(&new.backups, peer.member);
        self.peers
            .retain(|peer| peer.purpose != Purpose::Joins || is_new(peer));
        for member in &new.backups {
            let mut peers = self.peers.iter_mut();
            match peers.find(|peer| peer.member == *member) {
                Some(peer) if peer.follows() => peer.join(),
                Some(_) => {}
                None => {
                    let peer = Peer::of_unknown_log(*member, Purpose::Joins, self.synced);
                    self.peers.push(peer);
                }
            }
        }
        let counted = self.peers.iter().filter(|peer| peer.counts()).count();
        assert!(
            counted == self.config.backups.len() || !self.options.is_honest(),
            "J1: the backups of the view in use are those that count"
        );
        self.coming = Some(new);
        self.go_on_joining(out);
    }

    /// Sends new backups what they lack; ends the view in use once that is little, or too much to be kept.
    pub(super) fn go_on_joining(&mut self, out: &mut impl Outbox) {
        let Some(coming) = &self.coming else {
            return;
        };
        assert!(self.is_serving(), "a view is served meanwhile");
        let last = self.last();
        let joins = |peer: &Peer| peer.purpose == Purpose::Joins;
        let is_near = |peer: &Peer| peer.has_log() && self.lacks(peer) <= NEAR;
        let mut joining = self.peers.iter().filter(|peer| joins(peer));
        if joining.all(is_near) || self.kept.bytes() > self.options.kept_for_copies() {
            let coming = coming.clone();
            #[cfg(feature = "mutants")]
            self.forget_what_joiners_lack();
            return self.change_to(coming, out);
        }
        for index in 0..self.peers.len() {
            let peer = &self.peers[index];
            let lacks = !peer.has_log() || peer.sent < last;
            if joins(peer) && lacks && !peer.in_flight {
                self.push(index, out);
            }
        }
    }

    /// With a planted defect: as if a copy had what came after it.
    #[cfg(feature = "mutants")]
    fn forget_what_joiners_lack(&mut self) {
        if !self.has(Mutant::JoinsWithoutLog) {
            return;
        }
        let last = self.last();
        let joins = |peer: &&mut Peer| peer.purpose == Purpose::Joins;
        for peer in self.peers.iter_mut().filter(joins) {
            peer.acked = last;
            peer.sent = last;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use manxdb_core::LocalTime;

    use super::super::Phase;
    use super::*;
    use crate::ids::{ClientId, Member};
    use crate::log::{Change, KeptLog};
    use crate::machine_tests::{OneKeyEach, Said, config, log_id, member, synced_update};
    use crate::options::Options;
    use crate::rifl::Rifl;

    const OLD: u32 = 2;
    const NEW: u32 = 3;

    /// A master that serves with one backup and was told of a view with another one, which has no log.
    fn joining(said: &mut Said) -> Master<OneKeyEach> {
        let now = config(1, 1, OLD);
        let mut rifl = Rifl::default();
        rifl.take(1, &Change::Opened(ClientId(1)));
        let mut master = Master::new(
            Options::default(),
            now.clone(),
            Phase::Filling,
            (OneKeyEach, rifl),
            (KeptLog::behind(log_id(1, 1)), VecDeque::new()),
            vec![Peer::backup(member(OLD), 1)],
        );
        master.serve(&now, said);
        let mut next = config(1, 1, NEW);
        next.view.wlv.0 += 1;
        master.reconfigure(next, said);
        master.has_log(member(NEW), None, said);
        assert!(master.is_serving(), "while the copy is made");
        master
    }

    fn update(master: &mut Master<OneKeyEach>, seq: u64, command: Vec<u8>, said: &mut Said) {
        let request = synced_update(master.config.view, seq, command);
        master.run(LocalTime(0), true, manxdb_core::NodeId(9), request, said);
    }

    /// Places that entries to a member followed, and how many they were.
    fn appends(said: &Said, to: Member) -> Vec<(Position, usize)> {
        let to_it = said.0.iter().filter(|(node, _)| *node == to.node);
        let appends = to_it.filter_map(|(_, body)| match body {
            CurpMessage::Append { after, entries, .. } => Some((*after, entries.len())),
            _ => None,
        });
        appends.collect()
    }

    fn is_ready(said: &Said) -> bool {
        let mut all = said.0.iter();
        all.any(|(_, body)| matches!(body, CurpMessage::Ready { .. }))
    }

    #[test]
    fn what_is_served_meanwhile_follows_the_copy_and_counts_on_the_old_backup() {
        let mut said = Said::default();
        let mut master = joining(&mut said);
        update(&mut master, 1, b"a".to_vec(), &mut said);
        update(&mut master, 2, b"b".to_vec(), &mut said);
        assert_eq!(master.synced, 1);
        master.appended(member(OLD), 3, &mut said);
        assert_eq!((master.synced, master.kept_from()), (3, 1), "J1, J2");
        assert!(
            appends(&said, member(NEW)).is_empty(),
            "its copy comes first"
        );
        assert!(master.check().is_ok() && master.is_serving());
        master.appended(member(NEW), 1, &mut said);
        assert!(
            !master.is_serving() && !is_ready(&said),
            "it lacks two entries"
        );
        assert_eq!(appends(&said, member(NEW)), [(1, 2)]);
        master.appended(member(NEW), 3, &mut said);
        assert!(is_ready(&said));
        let next = match &master.phase {
            Phase::Changing { next } => next.clone(),
            phase => panic!("{phase:?}"),
        };
        master.serve(&next, &mut said);
        assert!(master.check().is_ok());
    }

    #[test]
    fn what_a_backup_said_before_its_copy_says_nothing() {
        let mut said = Said::default();
        let mut master = joining(&mut said);
        update(&mut master, 1, b"a".to_vec(), &mut said);
        master.appended(member(NEW), 0, &mut said);
        assert!(master.is_serving() && !is_ready(&said));
    }

    #[test]
    fn a_view_that_logs_more_than_is_kept_ends() {
        let mut said = Said::default();
        let mut master = joining(&mut said);
        for (seq, at) in [(1, 2), (2, 3)] {
            assert!(master.is_serving());
            let half = master.options.kept_for_copies() / 2;
            update(&mut master, seq, vec![b'a'; half], &mut said);
            master.appended(member(OLD), at, &mut said);
        }
        assert!(!master.is_serving() && !is_ready(&said));
    }
}
