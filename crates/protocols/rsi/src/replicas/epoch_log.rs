//! What is agreed on about the map, one event after another: where everybody who knows an old map
//! finds the present one.
//!
//! Every server has two words for each event. By the first of them three servers agree on it
//! ([`Decide`]): the first three of the map before it, so that an event that takes one of them away
//! puts another in its place, and two can be lost one after the other. The second is a note, on all
//! servers of the map after it, written when that map may be used: after a loss when everybody of
//! the epoch before is shut out and all is restored. Who finds a note anywhere believes it.

use manxdb_core::check::ensure;
use manxdb_fabric::{Address, Fault, Operation, OperationOutcome, ServerId, WORD, WORD_LENGTH};

use crate::machine::{Machine, Step, assert_all_answered};
use crate::replicas::agree::{Decide, Undecided, accepted};
use crate::replicas::map::Map;

/// Something that changes a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A server is given up, whether or not somebody still reaches it.
    Lost(ServerId),
    /// All replicas of the region of this number are whole.
    Filled(u16),
}

impl Event {
    const FILLED: u16 = 1 << 15;

    /// Whether it begins an epoch.
    #[must_use]
    pub fn is_loss(self) -> bool {
        matches!(self, Self::Lost(_))
    }

    fn code(self) -> u16 {
        let (Self::Lost(ServerId(number)) | Self::Filled(number)) = self;
        assert!(
            number < Self::FILLED,
            "a number does not reach into the bit for its kind: {self:?}"
        );
        match self {
            Self::Lost(server) => server.0,
            Self::Filled(region) => Self::FILLED | region,
        }
    }

    pub(super) fn of_code(code: u16) -> Self {
        if code & Self::FILLED == 0 {
            Self::Lost(ServerId(code))
        } else {
            Self::Filled(code & !Self::FILLED)
        }
    }
}

/// Where events are noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EpochLog {
    offset: u64,
    count: u64,
}

impl EpochLog {
    /// Servers that agree.
    pub const ACCEPTORS: usize = 3;

    /// Of so many events, from an offset on at each server, where no region is.
    #[must_use]
    pub const fn new(offset: u64, count: u64) -> Self {
        Self { offset, count }
    }

    /// Bytes at each server.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        2 * self.count * WORD
    }

    fn word(self, server: ServerId, event: u64) -> Address {
        assert!(
            event < self.count,
            "the log has room for event {event}: {} events",
            self.count
        );
        let offset = self.offset + 2 * event * WORD;
        Address { server, offset }
    }

    fn note(self, server: ServerId, event: u64) -> Address {
        self.word(server, event).plus(WORD)
    }

    /// Proposes what comes after a map; none: there is no room for more events. When something
    /// else is agreed on, this may not be so any more.
    #[must_use]
    pub fn propose(self, map: &Map, event: Event) -> Option<Propose> {
        let places = self.words(map);
        (!places.is_empty()).then(|| Propose(Decide::new(places, event.code())))
    }

    /// Where what comes after a map is agreed on; nowhere: there is no room for more events.
    pub(super) fn words(self, map: &Map) -> Vec<Address> {
        let number = map.version();
        let archivers = map.servers().take(Self::ACCEPTORS);
        let archivers = archivers.filter(|_| number < self.count);
        archivers.map(|server| self.word(server, number)).collect()
    }

    /// Looks at every server of a map, and for what has come after an earlier one of this version.
    pub(crate) fn look(self, map: &Map, since: u64) -> Vec<Operation> {
        let last = map.version().min(self.count.saturating_sub(1));
        let since = since.min(last);
        let read = |server| Operation::Read {
            at: self.word(server, since),
            bytes: 2 * WORD * (last - since + 1),
        };
        map.servers().map(read).collect()
    }

    /// What such a look has found.
    pub(crate) fn news(self, map: &Map, since: u64, outcomes: &[OperationOutcome]) -> News {
        assert_eq!(
            outcomes.len(),
            map.servers().count(),
            "each server was asked for events"
        );
        let mut news = News::default();
        // There are no words for more.
        let pairs = usize::try_from(self.count.saturating_sub(since)).unwrap_or(0);
        for (server, outcome) in map.servers().zip(outcomes) {
            match outcome {
                OperationOutcome::Failed(Fault::Gone(_)) => news.gone = news.gone.or(Some(server)),
                OperationOutcome::Read(copy) => {
                    let (words, _) = copy.as_chunks::<WORD_LENGTH>();
                    let words = words.get(..2 * pairs).unwrap_or(words);
                    news.read(words, map.version() - since);
                }
                _ => {}
            }
        }
        news
    }

    /// Notes what came after a map, when the map with it may be used.
    #[must_use]
    pub fn write(self, map: &Map, event: Event) -> Vec<Operation> {
        let word = 1 + u64::from(event.code());
        let after = map.after(event);
        assert_eq!(
            after.version(),
            map.version() + 1,
            "an event makes the next version of a map"
        );
        let write = |server| Operation::Write {
            at: self.note(server, map.version()),
            bytes: word.to_le_bytes().to_vec(),
        };
        after.servers().map(write).collect()
    }

    /// Notes at all servers of a map the events that it has last come of.
    pub(crate) fn note_all(self, map: &Map, events: &[Event]) -> Vec<Operation> {
        assert!(
            map.version() >= events.len() as u64,
            "a map has come of the events that are noted: version {}, {} events",
            map.version(),
            events.len()
        );
        let first = map.version() - events.len() as u64;
        let note = |(number, event): (u64, &Event)| {
            let bytes = (1 + u64::from(event.code())).to_le_bytes().to_vec();
            let at = map.servers().map(move |server| self.note(server, number));
            at.map(move |at| Operation::Write {
                at,
                bytes: bytes.clone(),
            })
        };
        (first..).zip(events).flat_map(note).collect()
    }

    /// Finds the map that may be used, from one that could be.
    #[must_use]
    pub fn learn(self, map: Map) -> Learn {
        let epoch_log = self;
        let is_begun = false;
        Learn {
            epoch_log,
            map,
            is_begun,
        }
    }
}

/// What servers say about events.
#[derive(Debug, Clone, Default)]
pub(crate) struct News {
    /// Those that are noted, from the first that was looked for.
    pub noted: Vec<Event>,
    /// Somebody has accepted what comes after the map.
    pub is_accepted: bool,
    /// A server that does not answer.
    pub gone: Option<ServerId>,
}

impl News {
    /// What one says; its words of this place are about what comes after the map.
    fn read(&mut self, words: &[[u8; WORD_LENGTH]], last: u64) {
        let (pairs, _) = words.as_chunks::<2>();
        let mut noted = Vec::new();
        for (place, [word, note]) in (0..).zip(pairs) {
            let is_accepted = accepted(u64::from_le_bytes(*word)).is_some();
            self.is_accepted |= place == last && is_accepted;
            let code = u64::from_le_bytes(*note).checked_sub(1);
            let code = code.and_then(|code| u16::try_from(code).ok());
            if let Some(code) = code.filter(|_| noted.len() as u64 == place) {
                noted.push(Event::of_code(code));
            }
        }
        if noted.len() > self.noted.len() {
            self.noted = noted;
        }
    }
}

/// Agrees on the next event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Propose(Decide);

impl Propose {
    /// The same with a defect.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn with(self, mutant: Option<crate::mutants::Mutant>) -> Self {
        Self(self.0.with(mutant))
    }
}

impl Machine for Propose {
    type Output = Result<Event, Undecided>;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        match self.0.step(outcomes) {
            Step::Post(operations) => Step::Post(operations),
            Step::Backoff(operations, times) => Step::Backoff(operations, times),
            Step::Done(decided) => Step::Done(decided.map(Event::of_code)),
        }
    }

    fn check(&self) -> Result<(), String> {
        self.0.check()
    }
}

/// Reads notes, one after another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Learn {
    epoch_log: EpochLog,
    map: Map,
    is_begun: bool,
}

impl Learn {
    fn read(&mut self) -> Step<Result<Map, Fault>> {
        self.is_begun = true;
        let number = self.map.version();
        if number >= self.epoch_log.count {
            return Step::Done(Ok(self.map.clone()));
        }
        let read = |server| Operation::Read {
            at: self.epoch_log.note(server, number),
            bytes: WORD,
        };
        Step::Post(self.map.servers().map(read).collect())
    }
}

impl Machine for Learn {
    type Output = Result<Map, Fault>;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        if !self.is_begun {
            return self.read();
        }
        assert_all_answered(&outcomes, self.map.servers().count());
        let words = outcomes.iter().filter_map(|outcome| match outcome {
            OperationOutcome::Read(copy) => {
                copy.first_chunk().map(|word| u64::from_le_bytes(*word))
            }
            _ => None,
        });
        let words: Vec<u64> = words.collect();
        let code = words.iter().find(|word| **word > 0).map(|word| word - 1);
        match (
            code.and_then(|code| u16::try_from(code).ok()),
            words.is_empty(),
        ) {
            (Some(code), _) => {
                self.map = self.map.after(Event::of_code(code));
                self.read()
            }
            (None, false) => Step::Done(Ok(self.map.clone())),
            // Nobody answers: of those who were known, none is left, or all have shut us out.
            (None, true) => {
                let fault = crate::machine::fault(&outcomes);
                Step::Done(fault.map_or_else(|| Ok(self.map.clone()), Err))
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        let (version, count) = (self.map.version(), self.epoch_log.count);
        ensure(version <= count, || {
            format!("a map of version {version} has come of {count} events at most")
        })?;
        self.map.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_a_code() {
        for event in [
            Event::Lost(ServerId(0)),
            Event::Lost(ServerId(Map::FIRST - 1)),
            Event::Filled(0),
            Event::Filled(Map::REGIONS_MAX - 1),
        ] {
            assert_eq!(Event::of_code(event.code()), event);
        }
    }

    /// Memory of notes alone.
    fn read(notes: &[Operation], lost: &[u16], operation: &Operation) -> OperationOutcome {
        if lost.contains(&operation.server().0) {
            return OperationOutcome::Failed(Fault::Gone(operation.server()));
        }
        let written = notes.iter().find_map(|note| match note {
            Operation::Write { at, bytes } if *at == operation.at() => Some(bytes.clone()),
            _ => None,
        });
        OperationOutcome::Read(written.unwrap_or_else(|| vec![0; WORD_LENGTH]))
    }

    #[test]
    fn who_knows_the_first_map_finds_the_last_one_though_most_who_agreed_are_lost() {
        let servers: Vec<_> = (0..5).map(|number| (ServerId(number), 0, 4096)).collect();
        let first = Map::new(&servers, 3).unwrap();
        let epoch_log = EpochLog::new(64, 8);
        let (mut notes, mut map) = (Vec::new(), first.clone());
        for event in [0, 2, 1].map(|lost| Event::Lost(ServerId(lost))) {
            notes.extend(epoch_log.write(&map, event));
            map = map.after(event);
        }
        let mut learn = epoch_log.learn(first.clone());
        let mut outcomes = Vec::new();
        let learned = loop {
            match learn.step(outcomes) {
                Step::Done(map) => break map,
                Step::Post(reads) | Step::Backoff(reads, _) => {
                    let answers = reads.iter().map(|one| read(&notes, &[0, 1, 2], one));
                    outcomes = answers.collect();
                }
            }
        };
        assert_eq!(learned, Ok(map));
        let mut alone = epoch_log.learn(first);
        alone.step(Vec::new());
        let gone = OperationOutcome::Failed(Fault::Gone(ServerId(0)));
        assert_eq!(
            alone.step(vec![gone; servers.len()]),
            Step::Done(Err(Fault::Gone(ServerId(0))))
        );
    }
}
