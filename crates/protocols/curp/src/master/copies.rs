//! Servers whose log the master does not know: they are asked, and get a copy of everything unless theirs
//! is a beginning of the master's.

use super::{Master, Phase};
use crate::copying::{Cut, Image};
use crate::execute::Execute;
use crate::ids::{LogId, Member, View, Wlv};
use crate::log::id_behind;
use crate::master::peer::Progress;
use crate::message::CurpMessage;
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::node::Outbox;

impl<E: Execute> Master<E> {
    pub(super) fn ask_log(&mut self, index: usize, out: &mut impl Outbox) {
        let epoch = self.epoch();
        let peer = &mut self.peers[index];
        assert_eq!(peer.progress, Progress::Probe, "who is known is not asked");
        peer.in_flight = true;
        peer.ticks = 0;
        let ask = CurpMessage::AskLog {
            to: peer.member.life,
            epoch,
        };
        out.send(peer.member.node, ask);
    }

    /// A server says which log it has.
    pub(crate) fn has_log(&mut self, from: Member, log: Option<LogId>, out: &mut impl Outbox) {
        let mut peers = self.peers.iter();
        let asked = |peer: &super::Peer| peer.member == from && peer.progress == Progress::Probe;
        let Some(index) = peers.position(asked) else {
            return;
        };
        let known = log.filter(|log| self.has_entry(*log));
        let (synced, kept_from) = (self.synced, self.kept_from());
        let peer = &mut self.peers[index];
        peer.catches_up = true;
        if let Some(log) = known {
            peer.go_on_as(Progress::Replicate);
            // Not beyond what all backups have: what it wrote down may be less than it has applied, but
            // not less than all that it is told to have.
            peer.acked = log.at.min(synced);
            peer.sent = peer.acked;
            assert!(peer.acked >= kept_from, "what follows is there");
        } else {
            peer.go_on_as(Progress::Snapshot { piece: 0 });
        }
        // In a recovery the log is not whole before a witness has given its records.
        if !matches!(self.phase, Phase::Freezing { .. }) {
            self.push(index, out);
        }
        self.go_on_joining(out);
    }

    /// Whether an entry is one of this log, and all that follows it is there.
    fn has_entry(&self, id: LogId) -> bool {
        #[cfg(feature = "mutants")]
        if self.has(Mutant::AnyLogMatches) {
            return id.at >= self.kept_from() && id.at <= self.last();
        }
        let kept = self.kept.id_at(id.at);
        let known = kept.or_else(|| id_behind(self.kept.end(), &self.log, id.at));
        assert!(
            known.is_none_or(|known| known.at <= self.last()),
            "nothing is known of what is to come"
        );
        known == Some(id)
    }

    /// Sends a server the part of a copy that it needs next: one at a time is under way.
    pub(super) fn push_piece(&mut self, index: usize, out: &mut impl Outbox) {
        let Some(view) = self.view_of_copies() else {
            return;
        };
        let (epoch, end, kept_from) = (self.epoch(), self.end(), self.kept_from());
        // The log goes on behind the cut, and is kept from there on.
        let follows = |image: &Image| image.cut().epoch == epoch && image.cut().last >= kept_from;
        if !self.image.as_ref().is_some_and(follows) {
            // A store of the machine's own has what is settled; the rest follows the copy.
            let (at, completed) = if self.state.has_store() {
                (self.kept.end(), &self.settled)
            } else {
                (end, &self.rifl)
            };
            let cut = Cut {
                epoch,
                last: at.at,
                made_by: at.epoch,
            };
            let image = Image::new(cut, &self.state, completed, &self.options);
            let goes_on = self.is_serving() || at != end;
            self.image = Some(image.made_while_serving(goes_on));
            for peer in self.peers.iter_mut().filter(|peer| peer.is_copying()) {
                peer.progress = Progress::Snapshot { piece: 0 };
            }
        }
        let peer = &mut self.peers[index];
        let (Some(image), Progress::Snapshot { piece }) = (&mut self.image, peer.progress) else {
            return;
        };
        let piece = match image.piece(peer.member, piece, view) {
            Ok(piece) => piece,
            Err(why) => {
                self.failure.get_or_insert(why.to_string());
                return;
            }
        };
        peer.in_flight = true;
        peer.ticks = 0;
        peer.sent = image.cut().last;
        peer.unanswered += 1;
        self.counts.pieces += 1;
        self.counts.copied_bytes += piece.bytes.len() as u64;
        let to = peer.member.life;
        out.send(peer.member.node, CurpMessage::Install { to, piece });
    }

    /// The view to come that copies are for.
    fn view_of_copies(&self) -> Option<View> {
        match (&self.phase, &self.coming) {
            (Phase::Freezing { .. }, _) => None,
            (Phase::Filling, _) => Some(self.config.view),
            (Phase::Changing { next }, _) => Some(next.view),
            (Phase::Serving, Some(coming)) => Some(coming.view),
            // A spare may collect pieces until there is another view than this one.
            (Phase::Serving, None) => {
                let View { epoch, wlv } = self.config.view;
                let wlv = Wlv(wlv.0 + 1);
                Some(View { epoch, wlv })
            }
        }
    }

    /// A server says which part of its copy it needs next; it may need all of them again.
    pub(crate) fn collected_pieces(
        &mut self,
        from: Member,
        cut: Cut,
        next: u32,
        out: &mut impl Outbox,
    ) {
        let image = self.image.as_ref().filter(|image| image.cut() == cut);
        let Some(goes_on) = image.map(|image| image.goes_on(from)) else {
            return; // not this copy
        };
        let mut peers = self.peers.iter();
        let Some(index) = peers.position(|peer| peer.member == from) else {
            return;
        };
        let peer = &mut self.peers[index];
        let Progress::Snapshot { piece } = peer.progress else {
            return;
        };
        let begins_again = next == 0 && piece > 0;
        // The last piece is confirmed as a log is.
        let is_next = goes_on && piece.checked_add(1) == Some(next);
        if !is_next && !begins_again {
            return;
        }
        peer.go_on_as(Progress::Snapshot { piece: next });
        self.push(index, out);
    }

    /// Once nobody gets a copy, nobody needs what it is made of.
    pub(super) fn forget_image(&mut self) {
        if !self.peers.iter().any(super::Peer::is_copying) {
            self.image = None;
        }
    }
}
