//! Both ends of the streams between regions: what one has ordered ahead, in order and without
//! gaps, and marks that say up to where that is all.
//!
//! A stream has no acknowledgements. Its entries are numbered in the sender's ledger, so that a
//! part that does not go on where the last one ended is seen; it is not followed then, and the
//! sender is asked for all from the last mark on. A new leader at either end begins in the same
//! way.
//!
//! | invariant | |
//! |---|---|
//! | A1 | marks increase, and every entry below a mark comes on the stream before it |
//! | A5 | entries are taken once each, in the order of their numbers |

use std::collections::VecDeque;

use manxdb_core::check::ensure;

use crate::message::{Held, StreamPart};
use crate::timestamp::Timestamp;

/// Delays remembered: half a second of marks.
const SEEN_MAX: usize = 200;

/// Delays seen before any is believed.
const SEEN_LEAST: usize = 8;

/// By how much a lead may grow with one mark, in microseconds. What is told with a lead that is too
/// long cannot be taken back, and one that is too short makes clocks stretch, which costs little.
const GROWTH_MAX_MICROS: i64 = 1_000;

/// What takes longer than this, in microseconds, is no delay but a connection that was down.
const DELAY_MAX_MICROS: i64 = 10_000_000;

/// This region's stream to another one.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// The mark told.
    told: Timestamp,
    /// How far ahead of its clock this region tells marks, in microseconds; below zero when the
    /// other region's clocks are behind by more than the way is long.
    lead: i64,
    /// Entries that are agreed on and not sent, and the number of the first.
    unsent: Vec<Held>,
    first: u64,
    /// When the other region was heard of last, by the manager's ticks.
    heard_tick: u64,
    /// It has been heard of since the stream began.
    is_heard: bool,
}

impl Outgoing {
    /// A stream that goes on with entry `first`.
    pub(super) fn new(first: u64, lead_micros: u64, tick: u64) -> Self {
        assert!(first > 0, "A5: entries are numbered from 1");
        Self {
            told: Timestamp::ZERO,
            lead: i64::try_from(lead_micros).unwrap_or(i64::MAX),
            unsent: Vec::new(),
            first,
            heard_tick: tick,
            is_heard: false,
        }
    }

    /// It begins again with entry `first`, and nothing has been told.
    pub(super) fn restart(&mut self, first: u64, tick: u64) {
        *self = Self {
            lead: self.lead,
            ..Self::new(first, 0, tick)
        };
    }

    /// The mark told: no entry below it comes any more.
    pub(super) fn told(&self) -> Timestamp {
        self.told
    }

    /// Where a clock that shows `reading` would tell the next mark.
    pub(super) fn ahead_of(&self, reading: u64) -> u64 {
        reading.saturating_add_signed(self.lead)
    }

    /// Takes an entry that is agreed on, unless the stream began again behind it: then it was sent
    /// with what was in the ledger.
    pub(super) fn push(&mut self, number: u64, entry: Held) {
        let next = self.first + self.unsent.len() as u64;
        assert!(number <= next, "A5: entry {number} comes after {next}");
        if number == next {
            self.unsent.push(entry);
        }
    }

    /// Raises the mark: everything below it is sent, or will be with what [`Self::take`] gives.
    pub(super) fn raise(&mut self, mark: Timestamp) {
        self.told = self.told.max(mark);
    }

    /// The entries to send, and the number of the first.
    pub(super) fn take(&mut self) -> (u64, Vec<Held>) {
        let (first, entries) = (self.first, std::mem::take(&mut self.unsent));
        self.first += entries.len() as u64;
        assert!(
            entries.iter().all(|entry| entry.at >= self.told),
            "A1: what is sent is not below a mark told"
        );
        (first, entries)
    }

    /// Whether something is to be sent at once.
    pub(super) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// How far ahead of its clock this region tells marks, in microseconds; none when it tells them
    /// behind it.
    pub(super) fn lead_micros(&self) -> u64 {
        u64::try_from(self.lead).unwrap_or(0)
    }

    /// The other region says what a part takes to it, in microseconds; a lead is longer by `slack`.
    pub(super) fn learn(&mut self, delay: i64, slack: i64) {
        let wanted = delay.clamp(-DELAY_MAX_MICROS, DELAY_MAX_MICROS) + slack;
        self.lead = wanted.min(self.lead.saturating_add(GROWTH_MAX_MICROS));
    }

    /// What is true of it at this tick, when `next` is the number of the ledger's next entry for it.
    pub(super) fn check(&self, tick: u64, next: u64) -> Result<(), String> {
        let end = self.first + self.unsent.len() as u64;
        ensure(self.first > 0 && end <= next, || {
            format!("A5: {end} is sent next, of {next} in the ledger")
        })?;
        ensure(self.heard_tick <= tick, || {
            let heard = self.heard_tick;
            format!("A5: it was heard of at tick {heard} of {tick}")
        })
    }

    /// The other region is there.
    pub(super) fn hear(&mut self, tick: u64) {
        self.heard_tick = self.heard_tick.max(tick);
        self.is_heard = true;
    }

    /// Whether the other region has been heard of at all.
    pub(super) fn is_heard(&self) -> bool {
        self.is_heard
    }

    /// For how many ticks it has been silent.
    pub(super) fn silent_ticks(&self, tick: u64) -> u64 {
        tick.saturating_sub(self.heard_tick)
    }
}

/// What comes of a part.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is followed: these entries are new.
    Entries(Vec<Held>),
    /// It does not go on where the last one ended: the sender is to be asked.
    Gap,
    /// An answer is waited for, and this is none.
    Waiting,
}

/// Another region's stream to this one.
#[derive(Debug)]
pub(super) struct Incoming {
    received: u64,
    mark: Timestamp,
    /// It has been asked for again, from here on, and nothing else is followed.
    asked: Option<Timestamp>,
    delays: Delays,
    #[cfg(feature = "mutants")]
    accepts_gaps: bool,
}

impl Incoming {
    /// A stream of which everything below `from` has been told in this region.
    pub(super) fn new(from: Timestamp) -> Self {
        Self {
            received: 0,
            mark: from,
            asked: Some(from),
            delays: Delays::default(),
            #[cfg(feature = "mutants")]
            accepts_gaps: false,
        }
    }

    /// A stream from its first entry on, of which nothing has been missed.
    pub(super) fn from_the_first() -> Self {
        Self {
            asked: None,
            ..Self::new(Timestamp::ZERO)
        }
    }

    /// Takes over what another manager of this region has followed, if that is more.
    pub(super) fn adopt(&mut self, received: u64, mark: Timestamp) {
        self.received = self.received.max(received);
        self.mark = self.mark.max(mark);
        assert!(self.mark >= mark, "A1: marks do not go back");
    }

    /// The number of the last entry that is here.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Plants a defect.
    #[cfg(feature = "mutants")]
    pub(super) fn accept_gaps(&mut self) {
        self.accepts_gaps = true;
    }

    /// All of that region below this are here: those that touch this one, or all with whole
    /// streams.
    pub(super) fn mark(&self) -> Timestamp {
        self.mark
    }

    /// From where it is asked for again, if it is.
    pub(super) fn asked(&self) -> Option<Timestamp> {
        self.asked
    }

    /// Follows a part, or not.
    pub(super) fn take(&mut self, part: StreamPart) -> Taken {
        #[cfg(feature = "mutants")]
        if self.accepts_gaps {
            self.asked = None;
        }
        if let Some(from) = self.asked {
            if part.since.is_none_or(|since| since > from) {
                return Taken::Waiting;
            }
            self.asked = None;
            self.received = self.received.max(part.first.saturating_sub(1));
        }
        if part.first > self.received + 1 {
            #[cfg(feature = "mutants")]
            if self.accepts_gaps {
                self.received = part.first - 1;
                return self.take(part);
            }
            self.asked = Some(self.mark);
            return Taken::Gap;
        }
        assert!(self.asked.is_none(), "A5: what is asked for is waited for");
        let known = usize::try_from(self.received + 1 - part.first).unwrap_or(usize::MAX);
        let new: Vec<Held> = part.entries.into_iter().skip(known).collect();
        self.received += new.len() as u64;
        self.mark = self.mark.max(part.mark);
        Taken::Entries(new)
    }

    /// What is true of it between any two steps.
    pub(super) fn check(&self) -> Result<(), String> {
        let (asked, mark) = (self.asked, self.mark);
        ensure(asked.is_none_or(|asked| asked <= mark), || {
            format!("A1: it is asked for from {asked:?} on, and is here up to {mark:?}")
        })?;
        let seen = self.delays.seen.len();
        ensure(seen <= SEEN_MAX, || {
            format!("A5: {seen} delays are remembered")
        })
    }

    /// A part that was sent when the other region's time was `sent` is here now.
    pub(super) fn saw(&mut self, reading: u64, sent: u64, interval: u64) {
        self.delays.saw(reading, sent, interval);
    }

    /// What parts take, in microseconds, by both regions' times.
    pub(super) fn delay(&self) -> Option<i64> {
        self.delays.high()
    }
}

/// What parts have taken of late.
#[derive(Debug, Default)]
struct Delays {
    seen: VecDeque<i64>,
    /// The interval of marks that this region is in, and the shortest delay in it: of parts that
    /// were held up and come all at once, only the last says what the way takes.
    interval: u64,
    shortest: Option<i64>,
}

impl Delays {
    fn saw(&mut self, reading: u64, sent: u64, interval: u64) {
        let signed = |micros: u64| i64::try_from(micros).unwrap_or(i64::MAX);
        let delay = signed(reading).saturating_sub(signed(sent));
        let now = reading / interval.max(1);
        if now != self.interval {
            self.interval = now;
            self.seen.extend(self.shortest.take());
            if self.seen.len() > SEEN_MAX {
                self.seen.pop_front();
            }
            assert!(self.seen.len() <= SEEN_MAX, "delays are not kept for ever");
        }
        self.shortest = Some(self.shortest.map_or(delay, |shortest| shortest.min(delay)));
    }

    /// The nineteenth of twenty.
    fn high(&self) -> Option<i64> {
        if self.seen.len() < SEEN_LEAST {
            return None;
        }
        let mut sorted: Vec<i64> = self.seen.iter().copied().collect();
        let place = sorted.len() * 19 / 20;
        Some(*sorted.select_nth_unstable(place).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::RegionId;

    fn at(micros: u64) -> Timestamp {
        Timestamp::at(micros, 0)
    }

    fn part(since: Option<u64>, first: u64, mark: u64) -> StreamPart {
        StreamPart {
            region: RegionId(1),
            since: since.map(at),
            first,
            entries: Vec::new(),
            mark: at(mark),
            epoch: 0,
            sent: 0,
            delay: None,
            closed: Timestamp::ZERO,
            position: Timestamp::ZERO,
        }
    }

    #[test]
    fn a_new_end_follows_only_an_answer_that_begins_early_enough() {
        let mut stream = Incoming::new(at(50));
        assert_eq!(stream.take(part(None, 9, 70)), Taken::Waiting);
        assert_eq!(stream.take(part(Some(60), 9, 70)), Taken::Waiting);
        assert_eq!(stream.mark(), at(50));
        assert_eq!(stream.take(part(Some(40), 9, 70)), Taken::Entries(vec![]));
        assert_eq!((stream.mark(), stream.asked()), (at(70), None));
        assert_eq!(stream.take(part(None, 9, 60)), Taken::Entries(vec![]));
        assert_eq!(stream.mark(), at(70), "marks do not go back");
    }

    #[test]
    fn a_gap_is_seen_and_nothing_behind_it_is_believed() {
        let mut stream = Incoming::new(Timestamp::ZERO);
        assert_eq!(stream.take(part(Some(0), 1, 10)), Taken::Entries(vec![]));
        assert_eq!(stream.take(part(None, 2, 90)), Taken::Gap);
        assert_eq!((stream.mark(), stream.asked()), (at(10), Some(at(10))));
        assert_eq!(stream.take(part(None, 2, 95)), Taken::Waiting);
        assert_eq!(stream.take(part(Some(10), 1, 99)), Taken::Entries(vec![]));
        assert_eq!(stream.mark(), at(99));
    }

    #[test]
    fn a_stream_that_accepts_gaps_believes_too_much() {
        let mut stream = Incoming::new(Timestamp::ZERO);
        stream.accept_gaps();
        stream.take(part(Some(0), 1, 10));
        assert_eq!(stream.take(part(None, 2, 90)), Taken::Entries(vec![]));
        assert_eq!(stream.mark(), at(90));
    }

    #[test]
    fn a_lead_follows_the_delay_and_grows_slowly() {
        let mut stream = Outgoing::new(1, 57_500, 0);
        assert_eq!(stream.ahead_of(1_000_000), 1_057_500);
        stream.learn(20_000, 7_500);
        assert_eq!(stream.ahead_of(1_000_000), 1_027_500);
        stream.learn(30_000_000, 7_500);
        assert_eq!(stream.ahead_of(1_000_000), 1_028_500);
        stream.learn(-500_000, 7_500);
        assert_eq!(stream.ahead_of(1_000_000), 507_500);
    }

    #[test]
    fn what_was_sent_when_the_stream_began_again_is_not_sent_twice() {
        let entry = || Held {
            at: at(30),
            planned: crate::orders::tests::planned(1),
        };
        let mut stream = Outgoing::new(1, 0, 0);
        stream.push(1, entry());
        stream.restart(4, 7);
        stream.push(3, entry());
        assert!(!stream.has_unsent());
        stream.push(4, entry());
        assert_eq!((stream.take().0, stream.take().1.len()), (4, 0));
    }

    #[test]
    fn parts_that_were_held_up_say_little_of_the_way() {
        let mut delays = Delays::default();
        for round in 0..20 {
            delays.saw(1_000_000 + round * 2_500, 950_000 + round * 2_500, 2_500);
        }
        assert_eq!(delays.high(), Some(50_000));
        for late in 0..300 {
            delays.saw(2_000_000, 1_200_000 + late * 2_500, 2_500);
        }
        delays.saw(2_002_500, 1_952_500, 2_500);
        assert_eq!(delays.high(), Some(50_000), "all that came at once are one");
    }
}
