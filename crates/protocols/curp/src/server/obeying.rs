//! What a server does as a backup.

use manxdb_core::NodeId;

use super::Server;
use crate::copying::{Copied, Cut, Piece, Took};
use crate::disk::{ServerRecord, Then};
use crate::execute::Execute;
use crate::ids::{Epoch, Position, View};
use crate::message::CurpMessage;
use crate::node::Outbox;

impl<E: Execute> Server<E> {
    pub(super) fn as_backup(&mut self, from: NodeId, body: CurpMessage, out: &mut impl Outbox) {
        let life = self.me.life;
        let (epoch, at, waits) = match body {
            CurpMessage::Append {
                to,
                epoch,
                after,
                entries,
                last,
                synced,
                is_new,
            } if to == life => {
                if !self.obeys(epoch) {
                    return;
                }
                if self.disk.is_used() && !self.is_kept {
                    return; // its disk has another log: it needs everything
                }
                let before = self.store.last();
                let copy = self.disk.is_used().then(|| entries.clone());
                let took = self
                    .store
                    .append(&self.options, after, entries, last, synced);
                let Some(at) = took else {
                    return;
                };
                // That all have some more is not written down: a later record says it again.
                let is_cut = self.store.last() < before;
                if let Some(entries) = copy.filter(|entries| is_cut || !entries.is_empty()) {
                    let obeyed = ServerRecord::Obeyed {
                        epoch,
                        after,
                        entries,
                        last,
                        synced,
                    };
                    self.disk.write(obeyed, out);
                }
                (epoch, at, is_new || self.disk.is_waited_for())
            }
            CurpMessage::AskLog { to, epoch } if to == life => {
                return self.tell_log(from, epoch, out);
            }
            CurpMessage::Install { to, piece } if to == life => {
                return self.take_piece(from, piece, out);
            }
            _ => return,
        };
        self.say_appended(from, (epoch, at), waits, out);
    }

    /// Tells a master which log this server has, so that it may need no copy. Which of what is not applied
    /// is that master's, entries that follow tell.
    fn tell_log(&mut self, from: NodeId, epoch: Epoch, out: &mut impl Outbox) {
        if !self.obeys(epoch) {
            return;
        }
        let is_own = self.is_kept || !self.disk.is_used();
        let log = is_own.then(|| self.store.kept.end());
        assert!(
            log.is_none_or(|log| log.at == self.store.applied && log.epoch <= epoch),
            "what is applied is of this master or an earlier one"
        );
        let life = self.me.life;
        let has_log = CurpMessage::HasLog { life, epoch, log };
        // Whatever the mode, as what a copy has.
        self.once_safe(Then::Tell(from, has_log), out);
    }

    /// Takes a part of a copy of everything that a master has; the last one makes this server a backup.
    fn take_piece(&mut self, from: NodeId, piece: Piece, out: &mut impl Outbox) {
        let cut = piece.cut;
        let Cut { epoch, last, .. } = cut;
        if !self.obeys(epoch) {
            return;
        }
        if self.store.needs(last) {
            #[cfg(feature = "mutants")]
            let piece = self.as_if_whole(piece);
            let beside = &self.store.state;
            match self.collector.take(&piece, beside, &self.options) {
                Ok(Took::Nothing) => return,
                Ok(Took::Next(next)) => {
                    let life = self.me.life;
                    let collected = CurpMessage::Collected { life, cut, next };
                    return out.send(from, collected);
                }
                Ok(Took::Whole) => match self.collector.finish() {
                    Ok(Some(copied)) => self.become_copy(cut, copied, out),
                    Ok(None) => return, // it is sent again from its beginning
                    Err(why) => return self.fail(&why),
                },
                Err(why) => return self.fail(&why),
            }
        }
        // Whatever the mode: a member of a view has on its disk what the view began with.
        self.say_appended(from, (epoch, last), true, out);
    }

    fn become_copy(&mut self, cut: Cut, copied: Copied<E>, out: &mut impl Outbox) {
        // Of a copy behind which a view was served nothing is said to the coordinator: should all
        // processes stop before the next view, the members of the one in use count.
        let is_complete = copied.is_complete || self.counts_any_copy();
        let view = if is_complete {
            copied.view
        } else {
            View::default()
        };
        self.store
            .install(cut.end(), copied.state, copied.completed);
        self.store.copied = view;
        assert_eq!(
            self.store.last(),
            cut.last,
            "a copy ends where the log does"
        );
        self.base = self.me.life;
        self.is_kept = true;
        self.write_whole(out);
    }

    #[cfg(feature = "mutants")]
    fn counts_any_copy(&self) -> bool {
        let mutant = crate::mutants::Mutant::AnyCopyComplete;
        self.options.has(mutant)
    }

    #[cfg(not(feature = "mutants"))]
    #[allow(clippy::unused_self)] // a planted defect asks
    fn counts_any_copy(&self) -> bool {
        false
    }

    /// With a planted defect, a copy of nothing in place of the first piece: the log follows it.
    #[cfg(feature = "mutants")]
    fn as_if_whole(&self, piece: Piece) -> Piece {
        use crate::copying::Image;
        let mutant = crate::mutants::Mutant::LogBeforeLastPiece;
        if !self.options.has(mutant) || piece.number > 0 || piece.is_last {
            return piece;
        }
        let options = crate::options::Options::default();
        let rifl = crate::rifl::Rifl::default();
        let mut image = Image::new(piece.cut, &E::empty(), &rifl, &options);
        image.piece(self.me, 0, piece.view).unwrap_or(piece)
    }

    /// Tells a master that this server has its log up to a place, once it is on disk or at once.
    fn say_appended(
        &mut self,
        from: NodeId,
        (epoch, at): (Epoch, Position),
        waits: bool,
        out: &mut impl Outbox,
    ) {
        let life = self.me.life;
        assert!(at <= self.store.last(), "only what is there is confirmed");
        let appended = CurpMessage::Appended { life, epoch, at };
        #[cfg(feature = "mutants")]
        let waits = waits
            && !self
                .options
                .has(crate::mutants::Mutant::AcknowledgedUnpersisted);
        if waits {
            self.once_safe(Then::Tell(from, appended), out);
        } else {
            out.send(from, appended);
        }
    }

    /// Whether a master of this epoch may write here; one that may ends what this server did as
    /// a master of an older one.
    fn obeys(&mut self, epoch: Epoch) -> bool {
        #[cfg(feature = "mutants")]
        if self.options.has(crate::mutants::Mutant::NoEpoch) && epoch < self.store.epoch {
            return true;
        }
        let master = self.master.as_ref();
        if master.is_some_and(|master| master.epoch() >= epoch) {
            return false; // no backup
        }
        let obeys = self.store.fence(epoch);
        assert!(
            !obeys || self.store.epoch == epoch,
            "the newest master alone writes here"
        );
        if obeys {
            self.master = None;
        }
        obeys
    }
}
