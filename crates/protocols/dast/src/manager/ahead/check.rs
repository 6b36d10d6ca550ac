//! What holds of a leader's streams, and of its attempts, between any two steps.

use manxdb_core::check::ensure;

use super::{Ahead, Manager};
use crate::manager::{Effect, Lead};

impl Manager {
    pub(super) fn check_streams(&self, lead: &Lead, ahead: &Ahead) -> Result<(), String> {
        let orders = lead.waiting_for(|effect| matches!(effect, Effect::TellOrdered { .. }));
        ensure(ahead.unagreed.len() == orders, || {
            let open = ahead.unagreed.len();
            format!("A1: {open} places are open, and {orders} are to be told")
        })?;
        let reserves = lead.waiting_for(|effect| matches!(effect, Effect::NoteMarks));
        ensure(reserves == usize::from(ahead.reserving), || {
            format!("A2: {reserves} reservations of marks are under way")
        })?;
        let is_whole = ahead.incoming.keys().eq(ahead.outgoing.keys());
        ensure(ahead.incoming.is_empty() || is_whole, || {
            "A3: streams are followed of some of the other regions".to_owned()
        })?;
        let ticks = lead.clocks.ticks();
        for (region, stream) in &ahead.outgoing {
            let next = self.ledger().orders.next_number(*region);
            let checked = stream.check(ticks, next);
            checked.map_err(|broken| format!("the stream to region {}: {broken}", region.0))?;
        }
        for (region, stream) in &ahead.incoming {
            let checked = stream.check();
            checked.map_err(|broken| format!("the stream of region {}: {broken}", region.0))?;
        }
        let (told, bound) = (ahead.told, self.bound());
        ensure(told <= bound, || {
            format!("A3: a bound at {told:?} was told, and it is at {bound:?}")
        })?;
        self.check_attempt(ahead, ticks)
    }

    fn check_attempt(&self, ahead: &Ahead, ticks: u64) -> Result<(), String> {
        let fences = &self.ledger().fences;
        let (acted, epoch) = (ahead.fencing.epoch(), fences.epoch());
        ensure(acted == epoch, || {
            format!("F2: a leader has acted upon {acted} changes of {epoch}")
        })?;
        let Some(attempt) = ahead.fencing.current() else {
            return Ok(());
        };
        ensure(attempt.number == fences.next(), || {
            let (number, next) = (attempt.number, fences.next());
            format!("F2: an attempt at change {number} goes on, and {next} is the next")
        })?;
        let (ballot, round) = (attempt.ballot, ahead.fencing.round);
        ensure(
            ballot.region == self.region && ballot.round <= round,
            || format!("F1: {ballot:?} is an attempt of another one, or of a round behind {round}"),
        )?;
        let (since, asked) = (attempt.since_tick, attempt.asked_tick);
        ensure(since <= asked && asked <= ticks, || {
            format!("F2: an attempt began at {since}, and asked at {asked} of {ticks} ticks")
        })?;
        let (accepted, majority) = (attempt.accepted.len(), self.majority());
        ensure(accepted < majority, || {
            format!("F2: {accepted} regions have accepted, and it is not decided")
        })
    }
}
