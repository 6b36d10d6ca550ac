//! What recovery coordinators do about events: they hear of them and settle them.

use std::sync::Arc;

use manxdb_core::LocalTime;
use manxdb_fabric::Fault;

use crate::machine::Machine;
use crate::membership::{End, MembershipAction, Phase, Purpose, RecoveryCoordinator};
use crate::replicas::{Chart, Event, LearnEpoch, News, Undecided};

impl RecoveryCoordinator {
    /// The version of the map that may be used.
    pub(super) fn since(&self) -> u64 {
        let pending = self.pending.len() as u64;
        assert!(
            pending <= self.map.version(),
            "a map has come of the events that are not noted"
        );
        self.map.version() - pending
    }

    /// What is to be done about events before anything else.
    pub(super) fn hear(&mut self, now: LocalTime, news: &News) -> Option<MembershipAction> {
        let known = self.pending.len().min(news.noted.len());
        if let Some(event) = news.noted.get(self.pending.len()) {
            self.map = Arc::new(self.map.after(*event));
            self.pending.clear();
            return Some(self.look(now));
        }
        self.pending.drain(..known);
        if news.is_accepted {
            return Some(self.ask_next(now, Purpose::Settle));
        }
        news.gone.map(|server| self.give_up(server))
    }

    /// Asks whether what comes after the map is decided.
    pub(super) fn ask_next(&mut self, now: LocalTime, purpose: Purpose) -> MembershipAction {
        let epoch_log = self.ward.chart.epoch_log;
        let map = Arc::clone(&self.map);
        let chart = Chart { epoch_log, map };
        let mut work = match purpose {
            Purpose::Settle => LearnEpoch::settle(&chart),
            Purpose::Lead(_) | Purpose::Fill(_) => LearnEpoch::new(&chart),
        };
        match work.step(Vec::new()).done() {
            Ok(next) => self.asked(now, purpose, next),
            Err(step) => self.wait(Phase::Asking(purpose, work), step),
        }
    }

    /// What comes after the map, if that is decided.
    pub(super) fn asked(
        &mut self,
        now: LocalTime,
        purpose: Purpose,
        next: Result<Option<Event>, Undecided>,
    ) -> MembershipAction {
        match (next, purpose) {
            (Ok(None), Purpose::Lead(election)) => self.elected(election),
            (Ok(None), Purpose::Fill(owner)) => self.take_place(now, owner),
            (Ok(None), Purpose::Settle) => self.pause(), // who has accepted it is gone
            (Ok(Some(event)), purpose) => {
                self.map = Arc::new(self.map.after(event));
                self.pending.push(event);
                match purpose {
                    // The table is where it was.
                    Purpose::Lead(_) if !event.is_loss() => self.ask_next(now, purpose),
                    _ => self.look(now),
                }
            }
            (Err(Undecided::Fault(fault @ Fault::Fenced(_))), _) => {
                MembershipAction::End(End::Fault(fault))
            }
            (Err(_), _) => self.pause(), // to be tried again when they answer
        }
    }
}
