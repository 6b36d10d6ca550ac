//! Bringing the log to the backups, in batches, behind each other.

use manxdb_core::Nanos;

use super::{Master, Peer, Phase};
use crate::copying::{Cut, Image};
use crate::execute::Execute;
use crate::ids::{Member, Position};
use crate::message::{CurpMessage, Entry};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::node::{CurpTimer, Outbox};
use crate::options::Durability;

/// Entries of one message to a backup.
const ENTRIES_A_MESSAGE: usize = 256;
/// Bytes of one message to a backup, but for its last entry.
const BYTES_A_MESSAGE: usize = 4 << 20;

impl<E: Execute> Master<E> {
    /// Starts a sync now or soon.
    pub(super) fn plan_sync(&mut self, out: &mut impl Outbox) {
        assert!(self.is_serving(), "batches are of a master that serves");
        let waiting = self.log.len() as u64;
        let after = self.options.sync_after;
        if after == Nanos::ZERO || waiting >= self.options.batch {
            self.start_sync(out);
        } else if !self.sync_is_due {
            self.sync_is_due = true;
            let epoch = self.epoch();
            out.set_timer(after, CurpTimer::SyncDue(epoch));
        }
    }

    /// The time for a sync has come.
    pub(crate) fn sync_due(&mut self, out: &mut impl Outbox) {
        self.sync_is_due = false;
        self.start_sync(out);
    }

    /// Sends every backup what it was not sent yet: a client waits for it. Not after what is
    /// under way but behind it, or that client would wait for a third round trip.
    pub(crate) fn start_sync(&mut self, out: &mut impl Outbox) {
        for index in 0..self.peers.len() {
            let peer = &self.peers[index];
            let is_due = !peer.in_flight || !peer.install;
            if is_due && (peer.install || peer.sent < self.last()) {
                self.push(index, out);
            }
        }
        self.progress(out);
    }

    pub(super) fn push(&mut self, index: usize, out: &mut impl Outbox) {
        if self.has_opened() {
            self.write_down();
        }
        if self.peers[index].install {
            return self.push_piece(index, out);
        }
        let (epoch, last, synced) = (self.epoch(), self.last(), self.synced);
        let kept_from = self.kept_from();
        let peer = &mut self.peers[index];
        peer.in_flight = true;
        peer.ticks = 0;
        let (to, node) = (peer.member.life, peer.member.node);
        assert!(
            peer.acked >= kept_from,
            "backups have what is not kept for them"
        );
        peer.told = synced;
        let after = peer.sent.max(kept_from);
        assert!(after <= last, "nothing was sent from beyond the log");
        let skip = usize::try_from(after - kept_from).unwrap_or(usize::MAX);
        let log = self.kept.iter().chain(&self.log);
        let entries = log.skip(skip).take(ENTRIES_A_MESSAGE);
        let mut bytes = 0;
        let entries = entries.take_while(|entry| {
            let fits = bytes < BYTES_A_MESSAGE;
            bytes += entry.bytes();
            fits
        });
        let entries: Vec<Entry> = entries.cloned().collect();
        assert!(
            !entries.is_empty() || after == last,
            "a large entry goes alone, but it goes"
        );
        assert!(
            entries.iter().all(|entry| entry.epoch <= epoch),
            "a master sends what it or an earlier one has made"
        );
        peer.sent = after + entries.len() as Position;
        assert!(peer.sent <= last, "no more is sent than there is");
        let append = CurpMessage::Append {
            to,
            epoch,
            after,
            entries,
            last,
            synced,
        };
        out.send(node, append);
    }

    /// Sends a new backup the part of a copy that it needs next: one at a time is under way.
    fn push_piece(&mut self, index: usize, out: &mut impl Outbox) {
        let view = match (&self.phase, &self.coming) {
            (Phase::Changing { next }, _) => next.view,
            (Phase::Serving, Some(coming)) => coming.view,
            (Phase::Serving, None) => return,
            (Phase::Filling | Phase::Freezing { .. }, _) => self.config.view,
        };
        let (epoch, last, kept_from) = (self.epoch(), self.last(), self.kept_from());
        // The log goes on behind the cut, and is kept from there on.
        let follows = |image: &Image| image.cut().epoch == epoch && image.cut().last >= kept_from;
        if !self.image.as_ref().is_some_and(follows) {
            let cut = Cut { epoch, last };
            let image = Image::new(cut, &self.state, &self.rifl, &self.options);
            self.image = Some(image.made_while_serving(self.is_serving()));
            for peer in &mut self.peers {
                peer.piece = 0;
            }
        }
        let Some(image) = &self.image else {
            return;
        };
        let peer = &mut self.peers[index];
        assert!(peer.acked <= last, "nobody has more than there is");
        peer.in_flight = true;
        peer.ticks = 0;
        peer.sent = image.cut().last;
        peer.copies += 1;
        let install = CurpMessage::Install {
            to: peer.member.life,
            piece: image.piece(peer.piece, view),
        };
        out.send(peer.member.node, install);
    }

    /// A new backup says which part of its copy it needs next; it may need all of them again.
    pub(crate) fn collected_pieces(
        &mut self,
        from: Member,
        cut: Cut,
        next: u32,
        out: &mut impl Outbox,
    ) {
        let image = self.image.as_ref().filter(|image| image.cut() == cut);
        let Some(count) = image.map(Image::count) else {
            return; // not this copy
        };
        let mut peers = self.peers.iter();
        let Some(index) = peers.position(|peer| peer.member == from && peer.install) else {
            return;
        };
        let peer = &mut self.peers[index];
        assert!(
            peer.piece < count,
            "the last piece is confirmed as a log is"
        );
        let begins_again = next == 0 && peer.piece > 0;
        if next >= count || (next <= peer.piece && !begins_again) {
            return;
        }
        peer.piece = next;
        peer.copies = 0;
        self.push(index, out);
    }

    /// A backup has everything up to a place.
    pub(crate) fn appended(&mut self, from: Member, at: Position, out: &mut impl Outbox) {
        let last = self.last();
        let copied = self.image.as_ref().map(|image| image.cut().last);
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.member == from) else {
            return;
        };
        if at > last || (peer.install && copied.is_none_or(|copied| at < copied)) {
            return; // not this log, or said before its copy
        }
        peer.acked = if peer.install { at } else { peer.acked.max(at) };
        peer.sent = peer.sent.max(peer.acked);
        peer.install = false;
        peer.copies = 0;
        peer.in_flight = peer.sent > peer.acked;
        assert!(peer.sent <= last, "a backup has no more than its master");
        self.progress(out);
        self.go_on_joining(out);
        if self.held.first().is_some() || !self.is_serving() {
            self.start_sync(out);
        } else if !self.log.is_empty() {
            self.plan_sync(out);
        }
    }

    /// Does what the backups' answers allow.
    fn progress(&mut self, out: &mut impl Outbox) {
        let counted = self.peers.iter().filter(|peer| !peer.joins);
        let acked = counted.map(|peer| peer.acked);
        let all = acked.clone().min().unwrap_or_else(|| self.last());
        match &self.phase {
            Phase::Serving => {
                #[cfg(feature = "mutants")]
                let all = if self.has(Mutant::SyncOfOne) {
                    acked.max().unwrap_or(all)
                } else {
                    all
                };
                let all = self.on_own_disk(all);
                if all > self.synced {
                    self.synced_up_to(all, out);
                }
            }
            Phase::Filling | Phase::Changing { .. } => self.report_ready(out),
            Phase::Freezing { .. } => {}
        }
    }

    /// How much of what all backups have counts as synced: in `fsync` mode, what its own disk has too.
    fn on_own_disk(&self, all: Position) -> Position {
        assert!(self.owned <= self.last(), "no disk has more than there is");
        if self.options.durability == Durability::Fsync && self.options.is_honest() {
            all.min(self.owned)
        } else {
            all
        }
    }

    /// Its own disk has its log up to a place.
    pub(crate) fn owns(&mut self, at: Position, out: &mut impl Outbox) {
        assert!(at <= self.last(), "only what was executed is written down");
        self.owned = self.owned.max(at);
        if self.options.durability == Durability::Fsync {
            self.progress(out);
        }
    }

    /// Tells the coordinator that the backups of the view to come have everything.
    pub(super) fn report_ready(&self, out: &mut impl Outbox) {
        let has_all = |peer: &Peer| !peer.install && peer.acked == self.last();
        let ready = self.peers.iter().all(has_all) && self.on_own_disk(self.last()) == self.last();
        #[cfg(feature = "mutants")]
        let ready = ready || self.has(Mutant::OpensBeforeSync);
        if !ready {
            return;
        }
        let view = match &self.phase {
            Phase::Filling => self.config.view,
            Phase::Changing { next } => next.view,
            Phase::Freezing { .. } | Phase::Serving => return,
        };
        assert!(
            view.epoch >= self.epoch(),
            "a view to come is not an earlier one"
        );
        out.send(self.options.coordinator, CurpMessage::Ready { view });
    }

    /// All backups have everything up to a place.
    pub(super) fn synced_up_to(&mut self, synced: Position, out: &mut impl Outbox) {
        assert!(synced >= self.synced, "what is synced stays so");
        assert!(synced <= self.last(), "nothing is synced that is not there");
        let count = usize::try_from(synced - self.synced).unwrap_or(usize::MAX);
        let last = self.last();
        let drained = self.log.drain(..count);
        if self.coming.is_some() {
            self.kept.extend(drained);
        } else {
            drop(drained);
        }
        self.synced = synced;
        assert_eq!(self.last(), last, "a sync moves no entry");
        #[cfg(feature = "mutants")]
        for peer in self.peers.iter_mut().filter(|peer| !peer.joins) {
            peer.acked = peer.acked.max(synced); // with a planted defect: the log is gone
        }
        self.unsynced.synced_up_to(synced);
        self.conflicted = self.conflicted.split_off(&(synced + 1));
        for (to, message) in self.held.release(synced) {
            out.send(to, message);
        }
        let first = self.held.first();
        assert!(
            first.is_none_or(|at| at > synced),
            "nobody waits for nothing"
        );
        self.collect(out);
    }
}
