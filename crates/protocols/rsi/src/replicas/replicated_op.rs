//! Does to replicas what is asked of regions.

use manxdb_core::check::ensure;
use std::future::Future;
use std::sync::Arc;

use manxdb_fabric::{Address, Fault, Operation, OperationOutcome, WORD};

use crate::machine::{Carrier, Machine, Step};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::replicas::map::{Map, RegionKind};
use crate::replicas::raise_max::again;

/// A piece of work on regions, as one on servers: what it asks for is done in one round trip, or
/// two where something must be at the backups first, or at the primary.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReplicatedOp<W> {
    map: Arc<Map>,
    work: W,
    /// What the work asked for and has not heard of yet.
    asked: Vec<Asked>,
    phase: Phase,
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Phase {
    Begun,
    /// What comes first is under way.
    First,
    /// What comes after it, until all of it is done.
    Second,
}

/// One operation of a region.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Asked {
    /// Its operations of the round trip that is under way.
    under_way: usize,
    /// Those of the next one.
    then: Vec<Operation>,
    /// They are to be done only if this is what the first of these comes to.
    if_word: Option<u64>,
    /// Swaps of words that only go up: each is tried until there is as much.
    is_raised: bool,
    /// Such swaps that are under way.
    raised: Vec<Operation>,
    /// What the machine hears; none: nothing has come of it yet.
    outcome: Option<OperationOutcome>,
}

impl<W: Machine> ReplicatedOp<W> {
    /// Over a map, which must be of the epoch under whose name its operations are carried out.
    #[must_use]
    pub fn new(map: Arc<Map>, work: W) -> Self {
        Self {
            map,
            work,
            asked: Vec::new(),
            phase: Phase::Begun,
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }

    /// The same with a defect.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn with(mut self, mutant: Option<Mutant>) -> Self {
        self.mutant = mutant;
        self
    }

    /// Goes on with the work, which has heard what came of all that it asked for.
    fn proceed(&mut self, outcomes: Vec<OperationOutcome>) -> Step<W::Output> {
        match self.work.step(outcomes) {
            Step::Done(output) => Step::Done(output),
            Step::Post(operations) => match self.begin(operations) {
                first if first.is_empty() => self.go_on(),
                first => Step::Post(first),
            },
            Step::Backoff(operations, times) => match self.begin(operations) {
                first if first.is_empty() => self.go_on(),
                first => Step::Backoff(first, times),
            },
        }
    }

    /// What of these comes first.
    fn begin(&mut self, operations: Vec<Operation>) -> Vec<Operation> {
        self.phase = Phase::First;
        let mut all = Vec::with_capacity(operations.len());
        self.asked.clear();
        for operation in operations {
            let before = all.len();
            let mut asked = self.split(operation, &mut all);
            asked.under_way = all.len() - before;
            assert_ne!(
                asked.under_way > 0,
                asked.outcome.is_some(),
                "an operation is under way, or its region is lost"
            );
            self.asked.push(asked);
        }
        all
    }

    /// Adds what of an operation comes first; the rest of it. What is to be written is copied for
    /// backups alone.
    fn split(&self, operation: Operation, first: &mut Vec<Operation>) -> Asked {
        let at = operation.at();
        let Some((region, offset)) = self.map.find(at) else {
            first.push(operation);
            return Asked::nothing_more();
        };
        let mut places = region.into_iter().flat_map(|region| region.at(offset));
        let (Some(region), Some(primary)) = (region, places.next()) else {
            return Asked::lost(at);
        };
        match (&operation, region.kind()) {
            (Operation::WriteThenSet { .. }, _) => {
                let backups = each(&operation, places);
                return self.install(operation.moved(primary), backups, first);
            }
            (Operation::Write { .. }, RegionKind::Records(_)) => {}
            (Operation::Write { .. }, _) => {
                let backups = each(&operation, places);
                first.push(operation.moved(primary));
                first.extend(backups);
                return Asked::nothing_more();
            }
            (Operation::Read { .. }, RegionKind::Lines) => {
                first.push(operation.moved(primary));
                first.extend(self.proof(places));
                return Asked::nothing_more();
            }
            (Operation::CompareSwap { expected, new, .. }, RegionKind::Entries) => {
                let (expected, new) = (*expected, *new);
                first.push(operation.moved(primary));
                return self.enter(places, (expected, new));
            }
            (Operation::CompareSwap { expected, .. }, RegionKind::Places) => {
                let expected = *expected;
                let backups = each(&operation, places);
                first.push(operation.moved(primary));
                return self.swap(backups, expected);
            }
            _ => {}
        }
        first.push(operation.moved(primary));
        Asked::nothing_more()
    }

    /// Who swaps a word at the primary has it, and raises it at the backups.
    #[cfg_attr(not(feature = "mutants"), expect(clippy::unused_self))]
    fn swap(&self, backups: Vec<Operation>, expected: u64) -> Asked {
        #[cfg(feature = "mutants")]
        let backups = match self.mutant {
            Some(Mutant::SlotsAtThePrimaryAlone) => Vec::new(),
            _ => backups,
        };
        let mut asked = Asked::then(backups, Some(expected));
        asked.is_raised = true;
        asked
    }

    /// A record is on all backups before anybody sees it unlocked.
    #[cfg_attr(not(feature = "mutants"), expect(clippy::unused_self))]
    fn install(
        &self,
        primary: Operation,
        backups: Vec<Operation>,
        first: &mut Vec<Operation>,
    ) -> Asked {
        #[cfg(feature = "mutants")]
        if self.mutant == Some(Mutant::UnlocksBeforeBackups) {
            first.push(primary);
            return Asked::then(backups, None);
        }
        if backups.is_empty() {
            first.push(primary);
            return Asked::nothing_more();
        }
        first.extend(backups);
        Asked::then(vec![primary], None)
    }

    /// A look at the vector counts where a server that is not lost has let us in.
    #[cfg_attr(not(feature = "mutants"), expect(clippy::unused_self))]
    fn proof(&self, mut backups: impl Iterator<Item = Address>) -> Option<Operation> {
        let bytes = WORD;
        let proof = backups.next().map(|at| Operation::Read { at, bytes });
        #[cfg(feature = "mutants")]
        let proof = proof.filter(|_| self.mutant != Some(Mutant::BeginsAtThePrimaryAlone));
        proof
    }

    /// Who swaps a word at the primary has it, and writes it to the backups.
    #[cfg_attr(not(feature = "mutants"), expect(clippy::unused_self))]
    fn enter(&self, backups: impl Iterator<Item = Address>, (expected, new): (u64, u64)) -> Asked {
        let write = |at: Address| Operation::Write {
            at,
            bytes: new.to_le_bytes().to_vec(),
        };
        let writes = backups.map(write).collect();
        #[cfg(feature = "mutants")]
        let writes = match self.mutant {
            Some(Mutant::EntersAtThePrimaryAlone) => Vec::new(),
            _ => writes,
        };
        Asked::then(writes, Some(expected))
    }

    /// Asks for what comes next, if anything does.
    fn go_on(&mut self) -> Step<W::Output> {
        self.phase = Phase::Second;
        let mut next = Vec::new();
        for asked in &mut self.asked {
            asked.under_way = asked.then.len();
            if asked.is_raised {
                asked.raised.clone_from(&asked.then);
            }
            next.append(&mut asked.then);
        }
        if next.is_empty() {
            return self.all_is_done();
        }
        Step::Post(next)
    }

    fn all_is_done(&mut self) -> Step<W::Output> {
        self.phase = Phase::Begun;
        let asked = std::mem::take(&mut self.asked);
        let count = asked.len();
        let outcomes = asked.into_iter().filter_map(|asked| asked.outcome);
        let outcomes: Vec<OperationOutcome> = outcomes.collect();
        assert_eq!(
            outcomes.len(),
            count,
            "each operation of a region has come to something"
        );
        self.proceed(outcomes)
    }

    /// Takes what came of a round trip.
    fn hear(&mut self, outcomes: Vec<OperationOutcome>) {
        let is_first = self.phase == Phase::First;
        // An outcome that did not come must not be taken for success.
        assert_eq!(
            outcomes.len(),
            self.asked.iter().map(|asked| asked.under_way).sum(),
            "every operation that was posted has an outcome"
        );
        let mut outcomes = outcomes.into_iter();
        for asked in &mut self.asked {
            let own = outcomes.by_ref().take(asked.under_way);
            asked.hear(own, is_first);
        }
    }
}

impl Asked {
    /// Something comes after what is first, if the first comes to this word.
    fn then(then: Vec<Operation>, if_word: Option<u64>) -> Self {
        Self {
            under_way: 0,
            then,
            if_word,
            is_raised: false,
            raised: Vec::new(),
            outcome: None,
        }
    }

    fn nothing_more() -> Self {
        Self::then(Vec::new(), None)
    }

    /// No server has it any more, or ever had.
    fn lost(at: Address) -> Self {
        let mut asked = Self::nothing_more();
        asked.outcome = Some(OperationOutcome::Failed(Fault::Gone(at.server)));
        asked
    }

    /// The first outcome is what the work hears, unless something has failed; then nothing is done
    /// any more.
    fn hear(&mut self, outcomes: impl Iterator<Item = OperationOutcome>, is_first: bool) {
        for (place, outcome) in outcomes.enumerate() {
            match outcome {
                OperationOutcome::Failed(fault) => {
                    self.outcome = Some(OperationOutcome::Failed(fault));
                }
                _ if matches!(self.outcome, Some(OperationOutcome::Failed(_))) => {}
                outcome if is_first && place == 0 => self.outcome = Some(outcome),
                outcome => {
                    assert!(
                        self.raised.is_empty() || place < self.raised.len(),
                        "each backup that is raised was asked for"
                    );
                    let raised = self.raised.get(place);
                    let next = raised.and_then(|swap| again(swap, &outcome));
                    self.then.extend(next);
                }
            }
        }
        let is_off = match (&self.outcome, self.if_word) {
            (Some(OperationOutcome::Failed(_)), _) => true,
            (Some(OperationOutcome::Word(word)), Some(expected)) => *word != expected,
            (outcome, expected) => {
                assert!(
                    expected.is_none() || self.under_way == 0,
                    "a swap at the primary comes to a word: {outcome:?}"
                );
                false
            }
        };
        if is_off {
            self.then.clear();
        }
    }
}

/// The same operation at each of some places.
fn each(operation: &Operation, places: impl Iterator<Item = Address>) -> Vec<Operation> {
    places.map(|at| operation.clone().moved(at)).collect()
}

impl<W: Machine> Machine for ReplicatedOp<W> {
    type Output = W::Output;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        self.hear(outcomes);
        match self.phase {
            Phase::Begun => self.proceed(Vec::new()),
            Phase::First | Phase::Second => self.go_on(),
        }
    }

    fn check(&self) -> Result<(), String> {
        ensure(self.phase != Phase::Begun || self.asked.is_empty(), || {
            "nothing is under way of a machine that is not begun".to_owned()
        })?;
        for asked in &self.asked {
            ensure(!asked.is_raised || asked.if_word.is_some(), || {
                "backups are raised to a word that was swapped at the primary".to_owned()
            })?;
            let is_first = self.phase == Phase::First;
            ensure(!is_first || asked.raised.is_empty(), || {
                "backups are raised after the primary".to_owned()
            })?;
            ensure(is_first || asked.outcome.is_some(), || {
                "the machine's outcome comes with the first round trip".to_owned()
            })?;
        }
        self.work.check()
    }
}

/// Carries work on regions out, over one that carries work on servers out.
#[derive(Debug)]
pub struct Mapped<C> {
    carrier: C,
    map: Arc<Map>,
}

impl<C> Mapped<C> {
    /// Over a map of the epoch under whose name the carrier acts.
    #[must_use]
    pub fn new(carrier: C, map: Arc<Map>) -> Self {
        Self { carrier, map }
    }
}

impl<C: Carrier> Carrier for Mapped<C> {
    type Error = C::Error;

    fn run<W: Machine>(&mut self, work: W) -> impl Future<Output = Result<W::Output, Self::Error>> {
        let map = Arc::clone(&self.map);
        self.carrier.run(ReplicatedOp::new(map, work))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use manxdb_fabric::ServerId;

    use super::*;
    use crate::machine::Once;

    /// Two writes to servers, posted.
    fn posted() -> ReplicatedOp<Once> {
        let servers: Vec<_> = (0..3).map(|number| (ServerId(number), 0, 4096)).collect();
        let map = Arc::new(Map::new(&servers, 3).unwrap());
        let write = |offset| Operation::Write {
            at: Address {
                server: ServerId(0),
                offset,
            },
            bytes: vec![0; 8],
        };
        let mut op = ReplicatedOp::new(map, Once::new(vec![write(0), write(8)]));
        match op.step(Vec::new()) {
            Step::Post(operations) => assert_eq!(operations.len(), 2),
            step => panic!("{step:?}"),
        }
        op
    }

    #[test]
    fn outcomes_are_heard_in_the_order_of_their_operations() {
        let gone = OperationOutcome::Failed(Fault::Gone(ServerId(0)));
        let step = posted().step(vec![OperationOutcome::Written, gone.clone()]);
        assert_eq!(step, Step::Done(vec![OperationOutcome::Written, gone]));
    }

    #[test]
    #[should_panic(expected = "every operation that was posted has an outcome")]
    fn a_completion_that_is_short_is_no_success() {
        let _ = posted().step(vec![OperationOutcome::Written]);
    }

    #[test]
    #[should_panic(expected = "every operation that was posted has an outcome")]
    fn a_completion_that_is_too_long_is_no_success() {
        let _ = posted().step(vec![OperationOutcome::Written; 3]);
    }
}
