//! Streams to other regions: what is agreed on, in order, and marks.

use manxdb_core::{LocalTime, Nanos};

use super::Ahead;
use crate::ledger::Entry;
use crate::manager::stream::{Incoming, Outgoing};
use crate::manager::{Effect, Manager};
use crate::message::{DastMessage, Held, StreamPart};
use crate::timestamp::Timestamp;
use crate::topology::RegionId;
use crate::wanted::{DastTimer, Out};

/// How far beyond what is to be told next marks are reserved, in microseconds. A new leader's places
/// lie behind what its predecessor had reserved.
const RESERVE_MICROS: u64 = 100_000;

/// Ticks after which a region that says nothing is told only every so many marks: what waits for
/// it would otherwise be sent again, all of it, when it is back.
const SILENT_TICKS: u64 = 100;

/// See [`SILENT_TICKS`].
const SELDOM: u64 = 40;

impl Manager {
    /// Marks go out at multiples of the interval of reports, as those do.
    pub(in crate::manager) fn set_mark_timer(&self, now: LocalTime, out: &mut Out) {
        let interval = self.shared.options.report_every.as_micros().max(1);
        let left = interval - now.as_micros() % interval;
        out.set_timer(Nanos::from_micros(left), DastTimer::Mark);
    }

    /// Tells every other region the next mark.
    pub(in crate::manager) fn tell_marks(&mut self, now: LocalTime, out: &mut Out) {
        let Some(lead) = &mut self.lead else {
            return;
        };
        let tick = lead.clocks.ticks();
        let Some(ahead) = &mut lead.ahead else {
            return;
        };
        ahead.rounds += 1;
        let is_seldom = ahead.rounds % SELDOM == 0;
        let streams = ahead.outgoing.iter();
        let told = streams.filter(|(_, it)| is_seldom || it.silent_ticks(tick) <= SILENT_TICKS);
        let mut told: Vec<RegionId> = told.map(|(region, _)| *region).collect();
        told.retain(|region| self.speaks_with(*region));
        for region in told {
            self.send_unsent(now, region, out);
        }
    }

    /// Sends what has been agreed on since, if there is something.
    pub(in crate::manager) fn flush_streams(&mut self, now: LocalTime, out: &mut Out) {
        let ahead = self.lead.as_ref().and_then(|lead| lead.ahead.as_ref());
        let streams = ahead.into_iter().flat_map(|ahead| &ahead.outgoing);
        let unsent = streams.filter(|(_, stream)| stream.has_unsent());
        let unsent = unsent.filter(|(region, _)| self.speaks_with(**region));
        let unsent: Vec<RegionId> = unsent.map(|(region, _)| *region).collect();
        for region in unsent {
            self.send_unsent(now, region, out);
        }
    }

    /// What is not sent yet, each in a part of its own, the last with the mark.
    pub(in crate::manager) fn send_unsent(
        &mut self,
        now: LocalTime,
        region: RegionId,
        out: &mut Out,
    ) {
        let Some(stream) = self.outgoing(region) else {
            return;
        };
        let told = stream.told();
        let (mut first, entries) = stream.take();
        let mark = self.raise_mark(now, region);
        let count = entries.len();
        for (place, entry) in entries.into_iter().enumerate() {
            let mark = if place + 1 == count { mark } else { told };
            self.send_part(now, region, (None, first, vec![entry]), mark, out);
            first += 1;
        }
        if count == 0 {
            self.send_part(now, region, (None, first, Vec::new()), mark, out);
        }
    }

    /// Everything at `since` or behind it that is not over.
    pub(in crate::manager) fn send_since(
        &mut self,
        now: LocalTime,
        region: RegionId,
        since: Timestamp,
        out: &mut Out,
    ) {
        if !self.speaks_with(region) {
            return;
        }
        let Some(stream) = self.outgoing(region) else {
            return;
        };
        if stream.has_unsent() {
            self.send_unsent(now, region, out);
        }
        let (first, entries) = self.ledger().orders.stream_to(region, since);
        let mark = self.raise_mark(now, region);
        self.send_part(now, region, (Some(since), first, entries), mark, out);
    }

    pub(in crate::manager) fn outgoing(&mut self, region: RegionId) -> Option<&mut Outgoing> {
        let ahead = self.lead.as_mut()?.ahead.as_mut()?;
        ahead.outgoing.get_mut(&region)
    }

    /// The next mark for a region: ahead of the clock, but not beyond what is reserved, nor past a
    /// place that is not agreed on.
    pub(in crate::manager) fn raise_mark(&mut self, now: LocalTime, region: RegionId) -> Timestamp {
        let reserved = self.reserved_for(region);
        let passes_open = self.passes_unagreed();
        let fenced = self.fenced();
        let Some(lead) = &mut self.lead else {
            return Timestamp::ZERO;
        };
        let reading = lead.clocks.reading(now);
        let Some(ahead) = &mut lead.ahead else {
            return Timestamp::ZERO;
        };
        let unagreed = ahead.first_unagreed(region).filter(|_| !passes_open);
        let next = ahead.outgoing.get(&region);
        let next = next.map_or(0, |stream| ahead.next_mark(stream, reading, fenced));
        let Some(stream) = ahead.outgoing.get_mut(&region) else {
            return Timestamp::ZERO;
        };
        let mut mark = Timestamp::at(next, 0).min(reserved);
        mark = unagreed.map_or(mark, |first| mark.min(first));
        stream.raise(mark);
        let told = stream.told();
        assert!(
            unagreed.is_none_or(|first| told <= first),
            "A1: a mark does not pass what is not agreed on"
        );
        told
    }

    #[allow(clippy::unused_self)] // a planted defect asks
    pub(in crate::manager) fn passes_unagreed(&self) -> bool {
        #[cfg(feature = "mutants")]
        if self.shared.options.mutant == Some(crate::mutants::Mutant::MarkBeforeEntries) {
            return true;
        }
        false
    }

    pub(in crate::manager) fn reserved_for(&self, region: RegionId) -> Timestamp {
        #[cfg(feature = "mutants")]
        if self.shared.options.mutant == Some(crate::mutants::Mutant::MarkNotReserved) {
            return Timestamp::MAX;
        }
        self.ledger().orders.reserved(region)
    }

    pub(in crate::manager) fn send_part(
        &mut self,
        now: LocalTime,
        region: RegionId,
        (since, first, entries): (Option<Timestamp>, u64, Vec<Held>),
        mark: Timestamp,
        out: &mut Out,
    ) {
        let (closed, position) = self.progress().unwrap_or_default();
        let closed = self.told_of(region, closed);
        let position = self.told_of(region, position);
        assert!(self.speaks_with(region), "who is fenced is sent no stream");
        assert!(
            mark <= self.reserved_for(region),
            "A2: a mark is reserved before it is told"
        );
        let Some(lead) = &self.lead else {
            return;
        };
        assert!(
            lead.view == self.group.view(),
            "who leads no more sends nothing"
        );
        let ahead = lead.ahead.as_ref();
        let incoming = ahead.and_then(|ahead| ahead.incoming.get(&region));
        let part = StreamPart {
            region: self.region,
            since,
            first,
            entries,
            mark,
            epoch: self.group.state().fences.epoch(),
            sent: lead.clocks.reading(now),
            delay: incoming.and_then(Incoming::delay),
            closed,
            position,
        };
        if self.copies.is_none() {
            let to = self.leader_of(region);
            out.send(to, DastMessage::Stream(Box::new(part)));
            return;
        }
        for manager in self.shared.topology.managers(region) {
            out.send(manager, DastMessage::Stream(Box::new(part.clone())));
        }
    }

    /// Sees to it that marks can go on: none passes what the ledger reserves.
    pub(in crate::manager) fn reserve_marks(&mut self, now: LocalTime, out: &mut Out) {
        let orders = &self.group.state().orders;
        let fences = &self.group.state().fences;
        let fenced = fences.fenced().map(|span| span.region);
        // Behind a cap nothing is told, and up to it all is reserved.
        let is_bound = fences.is_out() || fences.cap().is_some();
        let Some(lead) = &mut self.lead else {
            return;
        };
        let reading = lead.clocks.reading(now);
        let may_reserve = |ahead: &&Ahead| !ahead.reserving && !is_bound;
        let Some(ahead) = lead.ahead.as_ref().filter(may_reserve) else {
            return;
        };
        let next = |stream: &Outgoing| {
            let next = ahead.next_mark(stream, reading, fenced);
            next.max(stream.told().micros)
        };
        let needs = ahead.outgoing.iter().any(|(region, stream)| {
            orders.reserved(*region).micros < next(stream) + RESERVE_MICROS / 2
        });
        if !needs {
            return;
        }
        let streams = ahead.outgoing.iter();
        let upto = streams.map(|(region, stream)| {
            let upto = Timestamp::at(next(stream) + RESERVE_MICROS, 0);
            (*region, upto)
        });
        let upto = upto.collect();
        if let Some(ahead) = &mut lead.ahead {
            ahead.reserving = true;
        }
        self.propose(Entry::ReserveMarks { upto }, Effect::NoteMarks, out);
    }

    /// A reservation of marks is agreed on.
    pub(in crate::manager) fn note_marks(&mut self) {
        let lead = self.lead.as_mut();
        if let Some(ahead) = lead.and_then(|lead| lead.ahead.as_mut()) {
            ahead.reserving = false;
        }
    }
}
