//! What a server writes to its disk, and what waits until it is there.

use manxdb_core::Token;

use super::Server;
use crate::disk::{Holding, ServerRecord, Then};
use crate::execute::Execute;
use crate::node::Outbox;

impl<E: Execute> Server<E> {
    /// The log that it has, unless it is master.
    pub(super) fn holding(&self) -> Option<Holding> {
        assert!(
            self.base <= self.me.life,
            "no log goes on since a life to come"
        );
        (self.disk.is_used() && self.is_kept).then(|| Holding {
            base: self.base,
            epoch: self.store.epoch,
            copied: self.store.copied,
            last: self.store.last(),
        })
    }

    /// A record is safe.
    pub(crate) fn persisted(&mut self, token: Token, out: &mut impl Outbox) {
        for then in self.disk.persisted(token) {
            self.follow(then, out);
        }
        self.write_down(out);
        if self.has_new_whole && self.disk.unsafe_records() == 0 {
            self.has_new_whole = false;
            let master = self.master.as_mut().filter(|master| master.has_opened());
            match master {
                Some(master) => master.state.forget_earlier(),
                None if self.is_kept => self.store.state.forget_earlier(),
                None => {}
            }
        }
    }

    fn follow(&mut self, then: Then, out: &mut impl Outbox) {
        match then {
            Then::Tell(to, message) => out.send(to, message),
            Then::Own(elected, at) => {
                if let Some(master) = &mut self.master
                    && master.elected == elected
                {
                    master.owns(at, out);
                }
            }
        }
    }

    /// Has something follow once everything written so far is safe.
    pub(super) fn once_safe(&mut self, then: Then, out: &mut impl Outbox) {
        if let Some(now) = self.disk.then(then) {
            self.follow(now, out);
        }
    }

    /// Writes down what a step has made of the log as a master, and the whole state when the log is long.
    pub(super) fn write_down(&mut self, out: &mut impl Outbox) {
        if !self.disk.is_used() {
            return;
        }
        if let Some(master) = &mut self.master {
            let (elected, records) = (master.elected, master.take_records());
            let last = master.last();
            for (at, record) in records {
                assert!(at <= last, "only what was executed is written down");
                self.disk.write(record, out);
                self.once_safe(Then::Own(elected, at), out);
            }
        }
        let has_log = self.is_kept || self.master.as_ref().is_some_and(|m| m.has_opened());
        if has_log && self.disk.is_long() {
            self.write_whole(out);
        }
    }

    pub(super) fn write_whole(&mut self, out: &mut impl Outbox) {
        let base = self.base;
        let master = self.master.as_mut();
        let own = master.map(|master| (master.elected, master.take_whole(base)));
        let own = match own {
            Some((elected, Ok(Some(whole)))) => Some((elected, whole)),
            Some((_, Ok(None))) | None => None,
            Some((_, Err(why))) => return self.fail(&why),
        };
        self.has_new_whole = true;
        let Some((elected, whole)) = own else {
            assert!(self.is_kept, "who has no master's log has one of its own");
            return match self.store.to_whole(base) {
                Ok(whole) => self.disk.write(ServerRecord::Whole(whole), out),
                Err(why) => self.fail(&why),
            };
        };
        let at = whole.verified;
        self.disk.write(ServerRecord::Whole(whole), out);
        self.once_safe(Then::Own(elected, at), out);
    }
}
