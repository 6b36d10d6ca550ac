//! Whether what comes after a map is decided.
//!
//! Guests cannot be shut out, for nobody knows their numbers. So one who has put itself into the
//! table of places, as an owner or as the recovery coordinator that leads, asks this before it is anybody: if the
//! next event was undecided when it asked, whoever restores after that event finds it in the table,
//! and shuts it out.

use manxdb_core::check::ensure;
use std::sync::Arc;

use manxdb_fabric::{Operation, OperationOutcome, WORD};

use crate::machine::{Machine, Step, assert_all_answered, fault};
use crate::replicas::agree::{Undecided, accepted};
use crate::replicas::epoch_log::{EpochLog, Event, Propose};
use crate::replicas::map::{Chart, Map};

/// Asks those who decide. What most of them may have accepted it has decided for good, whoever had
/// proposed it and died over it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LearnEpoch {
    /// None: nothing ever comes.
    epoch_log: Option<EpochLog>,
    map: Arc<Map>,
    /// What only some have accepted it has decided, too.
    is_settling: bool,
    phase: Phase,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Phase {
    Begun,
    Reading,
    Settling(Propose),
}

/// The event that is decided; none: nothing was when it was asked.
pub(crate) type NextEvent = Result<Option<Event>, Undecided>;

impl LearnEpoch {
    /// After a map.
    #[must_use]
    pub fn new(chart: &Chart) -> Self {
        Self {
            epoch_log: chart.epoch_log,
            map: Arc::clone(&chart.map),
            is_settling: false,
            phase: Phase::Begun,
        }
    }

    /// The same, when somebody has accepted something, which is to be an event or to be none.
    pub(crate) fn settle(chart: &Chart) -> Self {
        let is_settling = true;
        Self {
            is_settling,
            ..Self::new(chart)
        }
    }

    fn read(&mut self) -> Step<NextEvent> {
        self.phase = Phase::Reading;
        let words = self.epoch_log.map(|epoch_log| epoch_log.words(&self.map));
        let words = words.unwrap_or_default();
        if words.is_empty() {
            return Step::Done(Ok(None));
        }
        let read = |at| Operation::Read { at, bytes: WORD };
        Step::Post(words.into_iter().map(read).collect())
    }

    fn looked(&mut self, outcomes: &[OperationOutcome]) -> Step<NextEvent> {
        let asked = self.epoch_log.map_or(0, |log| log.words(&self.map).len());
        assert_all_answered(outcomes, asked);
        let words = outcomes.iter().filter_map(|outcome| match outcome {
            OperationOutcome::Read(copy) => {
                copy.first_chunk().map(|word| u64::from_le_bytes(*word))
            }
            _ => None,
        });
        let words: Vec<_> = words.map(accepted).collect();
        let open = words.iter().filter(|word| word.is_none()).count();
        let is_open = 2 * open > outcomes.len();
        if is_open && (open == words.len() || !self.is_settling) {
            return Step::Done(Ok(None));
        }
        let last = words.into_iter().flatten().max();
        let settle = last.zip(self.epoch_log).and_then(|((_, code), epoch_log)| {
            let event = Event::of_code(code);
            epoch_log.propose(&self.map, event)
        });
        match (settle, fault(outcomes)) {
            (Some(propose), _) => {
                self.phase = Phase::Settling(propose);
                self.step(Vec::new())
            }
            (None, Some(fault)) => Step::Done(Err(fault.into())),
            (None, None) => Step::Done(Ok(None)), // not reached: all are open
        }
    }
}

impl Machine for LearnEpoch {
    type Output = NextEvent;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        match &mut self.phase {
            Phase::Begun => self.read(),
            Phase::Reading => self.looked(&outcomes),
            Phase::Settling(propose) => match propose.step(outcomes).done() {
                Ok(decided) => Step::Done(decided.map(Some)),
                Err(step) => step,
            },
        }
    }

    fn check(&self) -> Result<(), String> {
        match &self.phase {
            Phase::Begun | Phase::Reading => self.map.check(),
            Phase::Settling(propose) => {
                ensure(self.epoch_log.is_some(), || {
                    "an event is settled where events are agreed on".to_owned()
                })?;
                propose.check()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use manxdb_fabric::{Address, Fault, ServerId};

    use super::*;

    /// Words of servers, of which some are lost.
    struct Words(BTreeMap<Address, u64>, Vec<ServerId>);

    impl Words {
        fn run<W: Machine>(&mut self, mut work: W, cut: usize) -> Option<W::Output> {
            let mut outcomes = Vec::new();
            let mut left = cut;
            loop {
                let operations = match work.step(outcomes) {
                    Step::Done(output) => return Some(output),
                    Step::Post(operations) | Step::Backoff(operations, _) => operations,
                };
                outcomes = Vec::new();
                for operation in &operations {
                    left = left.checked_sub(1)?;
                    outcomes.push(self.ask(operation));
                }
            }
        }

        fn ask(&mut self, operation: &Operation) -> OperationOutcome {
            if self.1.contains(&operation.server()) {
                return OperationOutcome::Failed(Fault::Gone(operation.server()));
            }
            let word = self.0.entry(operation.at()).or_default();
            match operation {
                Operation::CompareSwap { expected, new, .. } => {
                    let found = *word;
                    if found == *expected {
                        *word = *new;
                    }
                    OperationOutcome::Word(found)
                }
                _ => OperationOutcome::Read(word.to_le_bytes().to_vec()),
            }
        }
    }

    /// Somebody proposes the loss of the last server, and dies after so many operations.
    fn proposed(cut: usize) -> (Chart, Words) {
        let servers: Vec<_> = (0..5).map(|number| (ServerId(number), 0, 4096)).collect();
        let map = Arc::new(Map::new(&servers, 3).unwrap());
        let chart = Chart::new(EpochLog::new(64, 8), map);
        let mut words = Words(BTreeMap::new(), Vec::new());
        let epoch_log = chart.epoch_log.unwrap();
        let propose = epoch_log.propose(&chart.map, Event::Lost(ServerId(4)));
        words.run(propose.unwrap(), cut);
        (chart, words)
    }

    const ALL: usize = 1_000;

    #[test]
    fn what_one_has_accepted_is_open_until_somebody_settles_it() {
        // Three reads, three promises, and what is accepted.
        for (cut, is_open) in [(6, true), (7, true), (8, false), (9, false)] {
            let (chart, mut words) = proposed(cut);
            let found = words.run(LearnEpoch::new(&chart), ALL).unwrap();
            let event = Some(Event::Lost(ServerId(4)));
            assert_eq!(found, Ok(event.filter(|_| !is_open)), "{cut}");
            let settled = words.run(LearnEpoch::settle(&chart), ALL).unwrap();
            assert_eq!(settled, Ok(event.filter(|_| cut > 6)), "{cut}");
            let found = words.run(LearnEpoch::new(&chart), ALL).unwrap();
            assert_eq!(found, settled, "{cut}");
        }
    }

    #[test]
    fn who_does_not_reach_most_of_them_does_not_know() {
        let (chart, mut words) = proposed(7);
        words.1 = vec![ServerId(2)];
        // One has accepted it, one has not, and one may have.
        let event = Some(Event::Lost(ServerId(4)));
        assert_eq!(words.run(LearnEpoch::new(&chart), ALL), Some(Ok(event)));
        words.1 = vec![ServerId(1), ServerId(2)];
        let found = words.run(LearnEpoch::new(&chart), ALL).unwrap();
        assert!(matches!(found, Err(Undecided::Fault(Fault::Gone(_)))));
    }
}
