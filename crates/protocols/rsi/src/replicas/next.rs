//! Whether what comes after a map is decided.
//!
//! Guests cannot be shut out, for nobody knows their numbers. So one who has put itself into the
//! table of places, as an owner or as the warden that leads, asks this before it is anybody: if the
//! next event was undecided when it asked, whoever restores after that event finds it in the table,
//! and shuts it out.

use manxdb_fabric::{Operation, Outcome, WORD};

use crate::replicas::agree::{Undecided, accepted};
use crate::replicas::annals::{Annals, Event, Propose};
use crate::replicas::map::{Chart, Map};
use crate::work::{Step, Work, fault};

/// Asks those who decide. What one of them has accepted it has decided for good, whoever had
/// proposed it and died over it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Next {
    /// None: nothing ever comes.
    annals: Option<Annals>,
    map: std::sync::Arc<Map>,
    phase: Phase,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Phase {
    Begun,
    Reading,
    Settling(Propose),
}

/// The event that is decided; none: nothing was when it was asked.
pub(crate) type Found = Result<Option<Event>, Undecided>;

impl Next {
    /// After a map.
    #[must_use]
    pub fn new(chart: &Chart) -> Self {
        Self {
            annals: chart.annals,
            map: std::sync::Arc::clone(&chart.map),
            phase: Phase::Begun,
        }
    }

    fn read(&mut self) -> Step<Found> {
        self.phase = Phase::Reading;
        let words = self.annals.map(|annals| annals.words(&self.map));
        let words = words.unwrap_or_default();
        if words.is_empty() {
            return Step::Done(Ok(None));
        }
        let read = |at| Operation::Read { at, bytes: WORD };
        Step::Ask(words.into_iter().map(read).collect())
    }

    fn looked(&mut self, outcomes: &[Outcome]) -> Step<Found> {
        let words = outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::Read(copy) => copy.first_chunk().map(|word| u64::from_le_bytes(*word)),
            _ => None,
        });
        let words: Vec<_> = words.map(accepted).collect();
        let open = words.iter().filter(|word| word.is_none()).count();
        if 2 * open > outcomes.len() {
            return Step::Done(Ok(None));
        }
        let last = words.into_iter().flatten().max();
        let settle = last.zip(self.annals).and_then(|((_, code), annals)| {
            let event = Event::of_code(code);
            annals.propose(&self.map, event)
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

impl Work for Next {
    type Output = Found;

    fn step(&mut self, outcomes: Vec<Outcome>) -> Step<Self::Output> {
        match &mut self.phase {
            Phase::Begun => self.read(),
            Phase::Reading => self.looked(&outcomes),
            Phase::Settling(propose) => match propose.step(outcomes).done() {
                Ok(decided) => Step::Done(decided.map(Some)),
                Err(step) => step,
            },
        }
    }
}
