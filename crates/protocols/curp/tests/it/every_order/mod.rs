//! Every order of steps of the smallest cluster: two clients, two keys, one fault to survive.
//!
//! The nodes are the real cores (`CurpNode`): coordinator, three servers, a witness, two clients. They
//! cannot be copied, so what a node is, is named by what has happened to it ([`nodes`]), and the search goes
//! over the places of all nodes in their histories, breadth first, each state once. What is modelled is
//! what the world does with them ([`steps`]):
//!
//! | | |
//! |---|---|
//! | messages | in order on one channel, as the runtime has them, in any order on different ones, or never |
//! | records, collections, answers to them | in any order, or never |
//! | the first master | at any step the coordinator hears it no more, and its backup becomes master by what it has and the witness has. The first one goes on; a crash is the same without what it does then |
//! | the witness | at any step it ends and comes back with nothing; the next view has its new life |
//! | timers | a sync begins at any step. No lease holds once the coordinator decides for another master: that timers see to this is not explored |
//! | once a run, in a test of its own | a datagram comes again, a client asks again, or for a sync |
//! | the second view | nothing fails in it, and its messages are as fast as can be |
//!
//! Of steps that nobody else can tell from the same ones at another time, one time is explored: a client
//! hears at once what does not complete its operation, a backup gets at once what is sent, an operation is
//! asked for at the beginning or right after an answer. What comes late otherwise comes late one message
//! further on, or might as well have come before the first view ended.
//!
//! A write adds an element of its own to its key's list and answers with the list, so that an answer shows
//! every write before it, and a write that ran twice. In each state the clients' answers so far, and what
//! the second master has as reads behind them, are linearizable (`checker::linear`): so nothing acknowledged
//! is lost. Cores check their own invariants after each event.
//!
//! Not here: clients that are forgotten, records that are in the way for long, scripts, copies for new
//! backups, disks, a second fault; the simulator has them.

mod history;
mod nodes;
mod numbered;
mod past;
mod search;
mod steps;

use manxdb_curp::mutants::Mutant;

use self::history::Judge;
use self::nodes::{Defect, Nodes};
use self::search::Seen;
use self::steps::Explorer;
use crate::common::machine::Command;

/// Operations of one client, one after the other.
const OPERATIONS_MAX: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    Write(u8),
    Read(u8),
}
use Kind::{Read, Write};

impl Kind {
    fn with_keys_exchanged(self) -> Self {
        match self {
            Write(key) => Write(1 - key),
            Read(key) => Read(1 - key),
        }
    }
}

/// What each of two clients asks for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Program([Vec<Kind>; 2]);

impl Program {
    /// A write adds an element of its own to its key's list, and answers with the list: so each answer
    /// shows all writes before it, and one that ran twice.
    fn commands(&self, client: usize) -> Vec<Command> {
        let numbered = (0..).zip(&self.0[client]);
        let command = |(place, kind): (u64, &Kind)| match kind {
            Write(key) => Command::Push(*key, 10 * (client as u64 + 1) + place),
            Read(key) => Command::Get(*key),
        };
        numbered.map(command).collect()
    }

    fn reads(&self, client: usize, place: usize) -> bool {
        matches!(self.0[client][place], Read(_))
    }

    fn writes(&self) -> usize {
        let all = self.0.iter().flatten();
        all.filter(|kind| matches!(kind, Write(_))).count()
    }

    fn with_keys_exchanged(&self) -> Self {
        let exchanged = |client: usize| {
            let kinds = self.0[client].iter();
            kinds.map(|kind| kind.with_keys_exchanged()).collect()
        };
        Self([0, 1].map(exchanged))
    }

    fn with_clients_exchanged(&self) -> Self {
        let [one, other] = self.0.clone();
        Self([other, one])
    }
}

/// All programs of so many operations of each client; of those that differ by the names of keys or
/// clients alone, one.
fn programs(lengths: [usize; 2]) -> Vec<Program> {
    let kinds = [Write(0), Write(1), Read(0), Read(1)];
    let count: usize = lengths.iter().sum();
    let all = (0..4usize.pow(u32::try_from(count).unwrap())).map(|number| {
        let nth = |place: u32| kinds[number / 4usize.pow(place) % 4];
        let all: Vec<Kind> = (0..u32::try_from(count).unwrap()).map(nth).collect();
        let (one, other) = all.split_at(lengths[0]);
        Program([one.to_vec(), other.to_vec()])
    });
    let is_first = |program: &Program| {
        let exchanged = program.with_clients_exchanged();
        let same = [
            program.with_keys_exchanged(),
            exchanged.with_keys_exchanged(),
            exchanged,
        ];
        let mut same = same
            .iter()
            .filter(|same| same.0.each_ref().map(Vec::len) == lengths);
        same.all(|same| program <= same)
    };
    all.filter(is_first).collect()
}

fn explore(defect: Option<Defect>, programs: &[Program], repeats: u8) -> (Seen, Option<String>) {
    let mut nodes = Nodes::new(defect);
    let mut seen = Seen::default();
    for program in programs {
        let mut judge = Judge::default();
        let mut explorer = Explorer::new(&mut nodes, &mut judge, program, repeats);
        let (more, wrong) = explorer.explore();
        println!("{:?}: {more:?}", program.0);
        seen.add(more);
        if let Some(wrong) = wrong {
            return (seen, Some(format!("{wrong}\n{program:?}")));
        }
    }
    println!("{seen:?}, {} events of cores", nodes.events);
    (seen, None)
}

#[test]
fn two_operations_are_linearizable_in_every_order() {
    let (seen, wrong) = explore(None, &programs([1, 1]), 0);
    assert_eq!(wrong, None);
    assert!(seen.states > 300_000, "{seen:?}");
    assert!(seen.replayed > 10_000, "{seen:?}");
    assert!(seen.fast > 100_000 && seen.synced > 100_000, "{seen:?}");
}

/// All programs with one write at most, and one with two.
#[test]
fn three_operations_are_linearizable_in_every_order() {
    let mut all = programs([2, 1]);
    all.retain(|program| program.writes() <= 1);
    all.push(Program([vec![Write(0), Write(1)], vec![Read(0)]]));
    let (seen, wrong) = explore(None, &all, 0);
    assert_eq!(wrong, None);
    assert!(seen.states > 700_000, "{seen:?}");
    assert!(seen.replayed > 25_000, "{seen:?}");
}

#[test]
fn four_operations_are_linearizable_in_every_order() {
    let program = Program([vec![Write(0), Read(0)], vec![Read(0), Read(0)]]);
    let (seen, wrong) = explore(None, &[program], 0);
    assert_eq!(wrong, None);
    assert!(seen.states > 50_000, "{seen:?}");
}

#[test]
fn what_comes_again_changes_nothing() {
    let program = Program([vec![Write(0)], vec![Read(0)]]);
    let (seen, wrong) = explore(None, &[program], 1);
    assert_eq!(wrong, None);
    assert!(seen.states > 90_000, "{seen:?}");
}

#[test]
fn each_part_of_the_protocol_is_needed() {
    let defects = [
        Defect::CompletionsNotRestored,
        Defect::Core(Mutant::QuorumInsteadOfAll),
        Defect::Core(Mutant::GcBeforeSync),
        Defect::Core(Mutant::NoFreeze),
        Defect::Core(Mutant::NoReplay),
        Defect::Core(Mutant::NoConflictCheck),
        Defect::Core(Mutant::NoRifl),
        Defect::Core(Mutant::NoEpoch),
        Defect::Core(Mutant::ReadsUnsynced),
        Defect::Core(Mutant::NoLease),
        Defect::Core(Mutant::WitnessIgnoresConflict),
    ];
    for defect in defects {
        let other = match defect {
            Defect::Core(Mutant::GcBeforeSync) => Write(1),
            Defect::Core(Mutant::NoLease | Mutant::ReadsUnsynced) => Read(0),
            _ => Write(0),
        };
        let program = Program([vec![Write(0)], vec![other]]);
        let (seen, wrong) = explore(Some(defect), &[program], 0);
        let Some(wrong) = wrong else {
            panic!("{defect:?} is as good: {seen:?}");
        };
        println!("{defect:?}: {}", wrong.lines().next().unwrap_or_default());
    }
}
