//! Bringing the log to the backups, in batches, behind each other.

use manxdb_core::Nanos;

use super::{ENTRIES_A_MESSAGE, Master, Peer, Phase};
use crate::execute::{Execute, Settled};
use crate::ids::{Member, Position};
use crate::log::Entry;
use crate::master::peer::Progress;
use crate::message::CurpMessage;
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::node::{CurpTimer, Outbox};
use crate::options::Durability;

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
            let is_due = !peer.in_flight || peer.has_log();
            let lacks = !peer.has_log() || peer.sent < self.last();
            if is_due && lacks && !peer.follows() {
                self.push(index, out);
            }
        }
        self.progress(out);
    }

    pub(super) fn push(&mut self, index: usize, out: &mut impl Outbox) {
        if self.has_opened() {
            self.write_down();
        }
        match self.peers[index].progress {
            Progress::Probe => self.ask_log(index, out),
            Progress::Snapshot { .. } => self.push_piece(index, out),
            Progress::Replicate => self.push_entries(index, out),
        }
    }

    fn push_entries(&mut self, index: usize, out: &mut impl Outbox) {
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
        peer.unanswered += u32::from(peer.follows());
        // No more than it has said to have (F2); that is what all have, for a backup.
        let synced = synced.min(peer.acked);
        peer.told = synced;
        let is_new = peer.is_new;
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
        peer.sent_all = peer.sent == last;
        assert!(peer.sent <= last, "no more is sent than there is");
        let append = CurpMessage::Append {
            to,
            epoch,
            after,
            entries,
            last,
            synced,
            is_new,
        };
        out.send(node, append);
    }

    /// A backup has everything up to a place.
    pub(crate) fn appended(&mut self, from: Member, at: Position, out: &mut impl Outbox) {
        let last = self.last();
        let copied = self.image.as_ref().map(|image| image.cut().last);
        let mut peers = self.peers.iter();
        let Some(index) = peers.position(|peer| peer.member == from) else {
            return;
        };
        let peer = &mut self.peers[index];
        let fits = match peer.progress {
            Progress::Probe => false,
            Progress::Snapshot { .. } => copied.is_some_and(|copied| at >= copied),
            Progress::Replicate => true,
        };
        if !fits || at > last {
            return; // not this log, or said before its copy
        }
        peer.confirm(at);
        assert!(peer.sent <= last, "a backup has no more than its master");
        self.forget_image();
        if self.peers[index].follows() {
            return self.go_on_following(index, out);
        }
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
        let counted = self.peers.iter().filter(|peer| peer.counts());
        let acked = counted.map(|peer| peer.acked);
        let all = acked.clone().min().unwrap_or_else(|| self.last());
        match &self.phase {
            Phase::Serving => {
                #[cfg(feature = "mutants")]
                let all = if self.has(Mutant::SyncOfOne) {
                    acked.max().unwrap_or(all)
                } else {
                    self.with_followers(all)
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

    /// With a planted defect, as many backups and spares have it as there are backups.
    #[cfg(feature = "mutants")]
    fn with_followers(&self, all: Position) -> Position {
        if !self.has(Mutant::FollowerCounts) {
            return all;
        }
        let known = self.peers.iter().filter(|peer| peer.has_log());
        let known = known.filter(|peer| peer.counts() || peer.follows());
        let mut acked: Vec<Position> = known.map(|peer| peer.acked).collect();
        acked.sort_unstable_by(|one, other| other.cmp(one));
        let faults = self.config.backups.len();
        acked.get(faults.wrapping_sub(1)).copied().unwrap_or(all)
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
        let has_all = |peer: &Peer| peer.has_log() && peer.acked == self.last();
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

    /// Has the machine take into its own store, if it has one, the first entries of what was not synced. Not
    /// before the view is open: an attempt that comes to nothing has settled nothing.
    fn settle(&mut self, count: usize) {
        if count == 0 || !self.state.has_store() || self.failure.is_some() {
            return;
        }
        assert!(self.is_serving(), "only a master that serves settles");
        let mut end = self.kept.end();
        for entry in self.log.iter().take(count) {
            end.at += 1;
            end.epoch = entry.epoch;
            self.settled.take(end.at, &entry.change);
        }
        let settled = Settled::of(self.log.iter().take(count), end, &self.settled);
        if let Err(why) = self.state.settle(&settled) {
            self.failure = Some(why.to_string());
        }
    }

    /// All backups have everything up to a place.
    pub(super) fn synced_up_to(&mut self, synced: Position, out: &mut impl Outbox) {
        assert!(synced >= self.synced, "what is synced stays so");
        assert!(synced <= self.last(), "nothing is synced that is not there");
        let count = usize::try_from(synced - self.synced).unwrap_or(usize::MAX);
        let last = self.last();
        self.settle(count);
        for entry in self.log.drain(..count) {
            self.kept.push(entry);
        }
        self.synced = synced;
        assert_eq!(self.last(), last, "a sync moves no entry");
        #[cfg(feature = "mutants")]
        for peer in self.peers.iter_mut().filter(|peer| peer.counts()) {
            peer.acked = peer.acked.max(synced); // with a planted defect: the log is gone
        }
        self.trim_kept();
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
