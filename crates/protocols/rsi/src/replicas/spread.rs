//! Does to replicas what is asked of regions.

use std::future::Future;
use std::sync::Arc;

use manxdb_fabric::{Address, Fault, Operation, Outcome, WORD};

#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::replicas::map::{Kind, Map};
use crate::replicas::raise::again;
use crate::work::{Carrier, Step, Work};

/// A piece of work on regions, as one on servers: what it asks for is done in one round trip, or
/// two where something must be at the backups first, or at the primary.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Spread<W> {
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
    /// What the work hears.
    outcome: Outcome,
}

impl<W: Work> Spread<W> {
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
    fn proceed(&mut self, outcomes: Vec<Outcome>) -> Step<W::Output> {
        match self.work.step(outcomes) {
            Step::Done(output) => Step::Done(output),
            Step::Ask(operations) => match self.begin(operations) {
                first if first.is_empty() => self.go_on(),
                first => Step::Ask(first),
            },
            Step::Again(operations, times) => match self.begin(operations) {
                first if first.is_empty() => self.go_on(),
                first => Step::Again(first, times),
            },
        }
    }

    /// What of these comes first.
    fn begin(&mut self, operations: Vec<Operation>) -> Vec<Operation> {
        self.phase = Phase::First;
        let mut all = Vec::with_capacity(operations.len());
        self.asked.clear();
        for operation in operations {
            let (first, asked) = self.split(operation);
            all.extend(first);
            self.asked.push(asked);
        }
        all
    }

    /// What of an operation comes first, and the rest of it.
    fn split(&self, operation: Operation) -> (Vec<Operation>, Asked) {
        let Some((region, _)) = self.map.find(operation.at()) else {
            return at_once(vec![operation]);
        };
        let mut replicas = self.map.everywhere(&operation);
        let (Some(region), false) = (region, replicas.is_empty()) else {
            return lost(operation.at());
        };
        let backups = replicas.split_off(1);
        let Ok([primary]) = <[Operation; 1]>::try_from(replicas) else {
            return lost(operation.at()); // not reached: it is not empty
        };
        match (&operation, region.kind()) {
            (Operation::WriteThenSet { .. }, _) => self.install(primary, backups),
            (Operation::Write { .. }, Kind::Records(_)) => at_once(vec![primary]),
            (Operation::Write { .. }, _) => at_once([vec![primary], backups].concat()),
            (Operation::Read { .. }, Kind::Lines) => self.look(primary, &backups),
            (Operation::CompareSwap { expected, new, .. }, Kind::Entries) => {
                self.enter(primary, &backups, (*expected, *new))
            }
            (Operation::CompareSwap { expected, .. }, Kind::Places) => {
                self.swap(primary, backups, *expected)
            }
            _ => at_once(vec![primary]),
        }
    }

    /// Who swaps a word at the primary has it, and raises it at the backups.
    #[cfg_attr(not(feature = "mutants"), expect(clippy::unused_self))]
    fn swap(
        &self,
        primary: Operation,
        backups: Vec<Operation>,
        expected: u64,
    ) -> (Vec<Operation>, Asked) {
        #[cfg(feature = "mutants")]
        let backups = match self.mutant {
            Some(Mutant::SeatsAtThePrimaryAlone) => Vec::new(),
            _ => backups,
        };
        let (first, mut asked) = then(vec![primary], backups, Some(expected));
        asked.is_raised = true;
        (first, asked)
    }

    /// A record is on all backups before anybody sees it unlocked.
    #[cfg_attr(not(feature = "mutants"), expect(clippy::unused_self))]
    fn install(&self, primary: Operation, backups: Vec<Operation>) -> (Vec<Operation>, Asked) {
        #[cfg(feature = "mutants")]
        if self.mutant == Some(Mutant::UnlocksBeforeBackups) {
            return then(vec![primary], backups, None);
        }
        if backups.is_empty() {
            return at_once(vec![primary]);
        }
        then(backups, vec![primary], None)
    }

    /// A look at the vector counts where a server that is not lost has let us in.
    #[cfg_attr(not(feature = "mutants"), expect(clippy::unused_self))]
    fn look(&self, primary: Operation, backups: &[Operation]) -> (Vec<Operation>, Asked) {
        let proof = backups.first().map(|backup| Operation::Read {
            at: backup.at(),
            bytes: WORD,
        });
        #[cfg(feature = "mutants")]
        let proof = proof.filter(|_| self.mutant != Some(Mutant::BeginsAtThePrimaryAlone));
        at_once([primary].into_iter().chain(proof).collect())
    }

    /// Who swaps a word at the primary has it, and writes it to the backups.
    #[cfg_attr(not(feature = "mutants"), expect(clippy::unused_self))]
    fn enter(
        &self,
        primary: Operation,
        backups: &[Operation],
        (expected, new): (u64, u64),
    ) -> (Vec<Operation>, Asked) {
        let write = |backup: &Operation| Operation::Write {
            at: backup.at(),
            bytes: new.to_le_bytes().to_vec(),
        };
        #[cfg(feature = "mutants")]
        let backups = match self.mutant {
            Some(Mutant::EntersAtThePrimaryAlone) => &[],
            _ => backups,
        };
        let writes = backups.iter().map(write).collect();
        then(vec![primary], writes, Some(expected))
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
        Step::Ask(next)
    }

    fn all_is_done(&mut self) -> Step<W::Output> {
        self.phase = Phase::Begun;
        let asked = std::mem::take(&mut self.asked);
        self.proceed(asked.into_iter().map(|asked| asked.outcome).collect())
    }

    /// Takes what came of a round trip.
    fn hear(&mut self, outcomes: Vec<Outcome>) {
        let is_first = self.phase == Phase::First;
        let mut outcomes = outcomes.into_iter();
        for asked in &mut self.asked {
            let own = outcomes.by_ref().take(asked.under_way);
            asked.hear(own, is_first);
        }
    }
}

impl Asked {
    /// The first outcome is what the work hears, unless something has failed; then nothing is done
    /// any more.
    fn hear(&mut self, outcomes: impl Iterator<Item = Outcome>, is_first: bool) {
        for (place, outcome) in outcomes.enumerate() {
            match outcome {
                Outcome::Failed(fault) => self.outcome = Outcome::Failed(fault),
                _ if matches!(self.outcome, Outcome::Failed(_)) => {}
                outcome if is_first && place == 0 => self.outcome = outcome,
                outcome => {
                    let raised = self.raised.get(place);
                    let next = raised.and_then(|swap| again(swap, &outcome));
                    self.then.extend(next);
                }
            }
        }
        let is_off = match (&self.outcome, self.if_word) {
            (Outcome::Failed(_), _) => true,
            (Outcome::Word(word), Some(expected)) => *word != expected,
            _ => false,
        };
        if is_off {
            self.then.clear();
        }
    }
}

fn then(
    first: Vec<Operation>,
    then: Vec<Operation>,
    if_word: Option<u64>,
) -> (Vec<Operation>, Asked) {
    let asked = Asked {
        under_way: first.len(),
        then,
        if_word,
        is_raised: false,
        raised: Vec::new(),
        outcome: Outcome::Written,
    };
    (first, asked)
}

fn at_once(operations: Vec<Operation>) -> (Vec<Operation>, Asked) {
    then(operations, Vec::new(), None)
}

/// No server has it any more, or ever had.
fn lost(at: Address) -> (Vec<Operation>, Asked) {
    let (none, mut asked) = at_once(Vec::new());
    asked.outcome = Outcome::Failed(Fault::Gone(at.server));
    (none, asked)
}

impl<W: Work> Work for Spread<W> {
    type Output = W::Output;

    fn step(&mut self, outcomes: Vec<Outcome>) -> Step<Self::Output> {
        self.hear(outcomes);
        match self.phase {
            Phase::Begun => self.proceed(Vec::new()),
            Phase::First | Phase::Second => self.go_on(),
        }
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

    fn run<W: Work>(&mut self, work: W) -> impl Future<Output = Result<W::Output, Self::Error>> {
        let map = Arc::clone(&self.map);
        self.carrier.run(Spread::new(map, work))
    }
}
