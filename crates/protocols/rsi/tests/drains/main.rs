//! What a keeper writes to disk, in virtual time, under load, with deaths and losses: then all power
//! is gone, and what comes of the disk is judged.
//!
//! | test | what happens | what must hold |
//! |---|---|---|
//! | power | processes and keepers die, servers are lost; then all is lost but what is on disk, twice | history up to the cut, money, replicas; what was promised is there; no lock is in the way; all go on |
//! | gaps | what is not synced is lost under keepers that die over it, again and again; then as above | the same; nothing is promised that needs a copy of memory which is not complete |
//! | slow | a keeper is slow, or dead for long | nothing is written over that is not written; those who wait go on |
//! | rows | the same of rows in a tree, inserted and deleted | of each client what it did up to some moment is there, and what was promised |
//! | deaths | keepers and others die one after the other, and servers are lost, while nothing is written | all are buried; then all is written |
//! | defects | each is planted | one of the above finds it |
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

#[allow(dead_code)]
#[path = "../places/bank.rs"]
mod bank;
#[path = "../common/mod.rs"]
mod common;
mod disk;
#[path = "../places/hand.rs"]
mod hand;
mod keeper;
#[path = "../places/plan.rs"]
mod plan;
#[allow(dead_code)]
#[path = "../places/rack.rs"]
mod rack;
mod tree;
#[allow(dead_code)]
#[path = "../places/watch.rs"]
mod watch;

use std::rc::Rc;

use bank::Notes;
use common::each_is_found;
use disk::Checkpoint;
use keeper::Cellar;
use manxdb_checker::versions::Outcome;
use manxdb_core::{Nanos, Random};
use manxdb_fabric::{Address, BatchId, Operation, ServerId};
use manxdb_rsi::mutants::Mutant;
use manxdb_rsi::{Anew, Layout, Replay, Snapshot, Stamp, ThreadId};
use manxdb_sim::SimTime;
use plan::{SERVERS, THREADS};
use rack::{LEASE, Pid, Rack};

/// Slots of a log: data goes round fast.
const SLOTS: u64 = 5;
const TELLERS: usize = 3;

/// A rack, and who is in it.
struct Story {
    rack: Rack,
    notes: Notes,
    cellar: Cellar,
    keeper: Pid,
    tellers: Vec<Pid>,
    seed: u64,
}

impl Story {
    /// Begins with what others have left.
    fn begin(mut rack: Rack, notes: &Notes, cellar: Cellar, seed: u64) -> Self {
        for _ in 0..3 {
            rack.warden();
        }
        let (own, disk) = (Rc::clone(notes), cellar.clone());
        let keeper = rack.program(|hand| keeper::keep(hand, own, disk));
        Self {
            rack,
            notes: Rc::clone(notes),
            cellar,
            keeper,
            tellers: Vec::new(),
            seed,
        }
    }

    /// A database with all money in one record.
    fn new(seed: u64, mutant: Option<Mutant>, cellar: Cellar) -> Self {
        let rack = Rack::new(seed, mutant);
        let mut story = Self::begin(rack, &Notes::default(), cellar, seed);
        let notes = Rc::clone(&story.notes);
        let first = story.rack.program(|hand| bank::fill(hand, notes));
        story.finish(&[first]);
        story
    }

    fn teller(&mut self, until: SimTime) {
        let notes = Rc::clone(&self.notes);
        let teller = self.rack.program(|hand| bank::work(hand, notes, until));
        self.tellers.push(teller);
    }

    /// A keeper dies; the next one goes on.
    fn succeed(&mut self) {
        self.rack.kill(self.keeper);
        self.begin_to_keep();
    }

    fn begin_to_keep(&mut self) {
        let (notes, cellar) = (Rc::clone(&self.notes), self.cellar.clone());
        let keeper = self.rack.program(|hand| keeper::keep(hand, notes, cellar));
        self.keeper = keeper;
    }

    /// Runs until some have come to their end.
    fn finish(&mut self, pids: &[Pid]) {
        let end = self.rack.now() + LEASE * 60;
        while pids.iter().any(|pid| self.rack.is_at_work(*pid)) {
            let seed = self.seed;
            assert!(self.rack.now() < end, "seed {seed}: programs wait for ever");
            self.rack.run_until(self.rack.now() + LEASE);
        }
    }

    /// Everybody comes to an end, and all is judged.
    fn close(mut self) -> Self {
        self.finish(&self.tellers.clone());
        self.rack.late_one_in = 0;
        let notes = Rc::clone(&self.notes);
        let last = self.rack.program(|hand| bank::touch_all(hand, notes));
        self.finish(&[last]);
        self.cellar.is_over.set(true);
        self.rack.settle(LEASE * 60);
        self.rack.watch.check_end(&self.rack.memory);
        bank::judge(&self.rack, &self.notes, self.seed);
        self
    }

    /// Things happen to everybody, until a time.
    fn go(&mut self, random: &mut Random, until: SimTime) {
        let mut lost: Vec<ServerId> = Vec::new();
        while self.rack.now() < until {
            let wait = self.rack.now() + Nanos(random.below(LEASE.0));
            self.rack.run_until(wait.min(until));
            match random.below(8) {
                0 => {
                    let place = random.below(self.tellers.len() as u64);
                    let teller = self.tellers.remove(usize::try_from(place).unwrap());
                    self.rack.kill(teller);
                    self.teller(until);
                }
                1 | 2 => self.succeed(),
                3 => {
                    if let Some(leader) = self.rack.leader() {
                        self.rack.kill(leader);
                        self.rack.warden();
                    }
                }
                4 => self
                    .rack
                    .still(self.keeper, Nanos(random.below(2 * LEASE.0))),
                5 => {
                    let server = ServerId(u16::try_from(random.below(SERVERS.into())).unwrap());
                    let epochs = self.rack.watch.map.epoch();
                    let is_open = epochs == lost.len() as u64 && lost.len() < 2;
                    if is_open && !lost.contains(&server) {
                        self.rack.memory.lose(server);
                        lost.push(server);
                    }
                }
                _ => {}
            }
        }
    }

    /// The power is gone: what there was in memory is lost, and what is on disk is written to other
    /// memory.
    fn restart(self, random: &mut Random, mutant: Option<Mutant>) -> Self {
        let Self {
            notes,
            cellar,
            seed,
            ..
        } = self;
        let mut disk = cellar.disk.borrow_mut();
        disk.cut(random);
        let batches = disk.mend();
        let checkpoint = disk.checkpoint.clone();
        let (number, first) = checkpoint.as_ref().map_or((0, disk.base.clone()), |one| {
            (one.number, one.first.clone())
        });
        let mut replay = Replay::new(disk.formation, number, first).with(mutant);
        for batch in batches.into_iter().filter(|batch| batch.number >= number) {
            replay.take(batch).unwrap();
        }
        let mut rack = Rack::new(seed + 1_000_000, mutant);
        for (at, bytes) in checkpoint.iter().flat_map(|one| &one.records) {
            put(&mut rack, *at, bytes.clone());
        }
        for record in replay.records() {
            put(&mut rack, record.at(), record.bytes());
        }
        let anew = Anew::behind(replay.cut());
        let plan = rack.plan.clone();
        for operation in anew.operations(plan.vector, plan.seats, plan.kept.unwrap()) {
            let Operation::Write { at, bytes } = operation else {
                panic!("{operation:?}");
            };
            put(&mut rack, at, bytes);
        }
        forget(&notes, replay.cut(), seed);
        bank::judge(&rack, &notes, seed);
        let next = Cellar::new(disk.formation + 1, anew.snapshot().clone());
        // What was restored is a checkpoint before anybody is let in.
        next.disk.borrow_mut().checkpoint = Some(copy(&rack, anew.snapshot()));
        Self::begin(rack, &notes, next, seed)
    }
}

/// Writes to all replicas of what is at an address, before anybody looks.
fn put(rack: &mut Rack, at: Address, bytes: Vec<u8>) {
    for at in plan::replicas(&rack.plan.chart.map, at) {
        let bytes = bytes.clone();
        let write = vec![Operation::Write { at, bytes }];
        rack.memory.post(0, BatchId(0), write, Nanos(0)).unwrap();
        while rack.memory.step().is_some() {}
    }
}

/// All records as they are, of which nobody writes any.
fn copy(rack: &Rack, cut: &Snapshot) -> Checkpoint {
    let record = |(at, layout): (Address, Layout)| {
        let primary = plan::replicas(&rack.plan.chart.map, at)[0];
        (at, rack.memory.look(primary, layout.bytes() as u64))
    };
    Checkpoint {
        first: cut.clone(),
        number: 0,
        records: rack.plan.records().into_iter().map(record).collect(),
    }
}

/// What is behind a cut has never been; nothing of it was promised to last.
fn forget(notes: &Notes, cut: &Snapshot, seed: u64) {
    for seen in notes.synced.borrow_mut().drain(..) {
        assert!(cut.includes(&seen), "seed {seed}: {seen:?} is lost");
    }
    notes.lost.borrow_mut().clear();
    let stamp = |writer: u64, sequence| {
        let thread = ThreadId::new(u16::try_from(writer).unwrap()).unwrap();
        Stamp { thread, sequence }
    };
    let mut transactions = notes.transactions.borrow_mut();
    transactions.retain(|transaction| {
        let mut snapshot = transaction.snapshot.iter();
        snapshot.all(|(writer, number)| cut.admits(stamp(*writer, *number)))
    });
    for transaction in transactions.iter_mut() {
        let version = transaction.version.unwrap();
        if !cut.admits(stamp(version.writer, version.number)) {
            transaction.outcome = Outcome::Failed;
        }
    }
}

/// What all runs of a story came to.
#[derive(Default)]
struct Tally {
    commits: usize,
    promises: usize,
    batches: u64,
    checkpoints: u64,
    cut_off: u64,
    found: u64,
    closed: u64,
    used: u64,
    epochs: u64,
    unwritten: u64,
}

impl Tally {
    fn add(&mut self, story: &Story) {
        let disk = story.cellar.disk.borrow();
        self.commits = self.commits.max(story.notes.count());
        self.promises += story.notes.synced.borrow().len();
        self.batches += disk.batches;
        self.checkpoints += disk.completed;
        self.cut_off += disk.cut_off;
        self.found += disk.found;
        self.closed += disk.closed;
        let checkpoint = disk.checkpoint.as_ref();
        self.used += u64::from(checkpoint.is_some_and(|one| one.number > 0));
        self.epochs += story.rack.opened;
        self.unwritten = self.unwritten.max(*story.notes.unwritten.borrow());
    }

    fn join(&mut self, other: &Self) {
        self.commits += other.commits;
        self.promises += other.promises;
        self.batches += other.batches;
        self.checkpoints += other.checkpoints;
        self.cut_off += other.cut_off;
        self.found += other.found;
        self.closed += other.closed;
        self.used += other.used;
        self.epochs += other.epochs;
        self.unwritten += other.unwritten;
    }

    fn print(&self, story: &str) {
        println!(
            "{story}: {} commits that are there, {} promises kept, {} batches, {} of them cut off, \
             {} gaps, {} of them closed, {} checkpoints, {} times one was needed; {} epochs opened, \
             {} commits waited in vain",
            self.commits,
            self.promises,
            self.batches,
            self.cut_off,
            self.found,
            self.closed,
            self.checkpoints,
            self.used,
            self.epochs,
            self.unwritten
        );
    }
}

/// All power is lost, twice.
fn power(seed: u64, mutant: Option<Mutant>) -> Tally {
    let mut random = Random::stream(seed, &[31]);
    let mut story = Story::new(seed, mutant, Cellar::new(seed, Snapshot::empty(THREADS)));
    let mut tally = Tally::default();
    for _ in 0..2 {
        let span = Nanos(LEASE.0 + random.below(6 * LEASE.0));
        let until = story.rack.now() + span;
        for _ in 0..TELLERS {
            story.teller(until + LEASE);
        }
        story.rack.late_one_in = 200;
        story.go(&mut random, until);
        tally.add(&story);
        story = story.restart(&mut random, mutant);
    }
    let until = story.rack.now() + LEASE * 2;
    for _ in 0..TELLERS {
        story.teller(until);
    }
    tally.add(&story.close());
    tally
}

const SEEDS: u64 = 200;

#[test]
fn what_is_on_disk_is_all_that_was_promised_and_a_state_that_was() {
    let mut tally = Tally::default();
    for seed in 0..SEEDS {
        tally.join(&power(seed, None));
    }
    tally.print(&format!("power, {SEEDS} seeds"));
    let is_seen = tally.cut_off > 0 && tally.used > SEEDS / 4 && tally.epochs > SEEDS / 4;
    assert!(is_seen, "this test is blind");
}

/// Keepers seldom sync, and what they have not is lost when they die; then all power is lost, twice.
fn gaps(seed: u64) -> Tally {
    let mut random = Random::stream(seed, &[34]);
    let mut story = Story::new(seed, None, Cellar::new(seed, Snapshot::empty(THREADS)));
    let mut tally = Tally::default();
    for _ in 0..2 {
        let until = story.rack.now() + LEASE * 60;
        for _ in 0..TELLERS {
            story.teller(until);
        }
        for least in [LEASE * 6, Nanos::ZERO] {
            story.notes.is_hasty.set(true);
            story.cellar.sync_one_in.set(u64::MAX);
            story.rack.run_until(story.rack.now() + LEASE * 3);
            story.cellar.disk.borrow_mut().fail(&mut random);
            story.cellar.sync_one_in.set(2);
            story.notes.is_hasty.set(false);
            story.succeed();
            // It takes some leases to be sure that something is lost.
            let span = least + Nanos(random.below(9 * LEASE.0));
            story.rack.run_until(story.rack.now() + span);
        }
        tally.add(&story);
        story = story.restart(&mut random, None);
    }
    tally.add(&story.close());
    tally
}

/// Once, and the power is lost as soon as the next keeper has written something.
fn gap_and_power(seed: u64, mutant: Option<Mutant>) -> Tally {
    let mut random = Random::stream(seed, &[35]);
    let mut story = Story::new(seed, mutant, Cellar::new(seed, Snapshot::empty(THREADS)));
    for _ in 0..TELLERS {
        story.teller(story.rack.now() + LEASE * 60);
    }
    story.notes.is_hasty.set(true);
    story.cellar.sync_one_in.set(u64::MAX);
    story.rack.run_until(story.rack.now() + LEASE * 2);
    story.cellar.disk.borrow_mut().fail(&mut random);
    story.cellar.sync_one_in.set(1);
    story.notes.is_hasty.set(false);
    story.succeed();
    let before = story.cellar.disk.borrow().batches;
    let end = story.rack.now() + LEASE * 20;
    while story.cellar.disk.borrow().batches == before && story.rack.now() < end {
        story
            .rack
            .run_until(story.rack.now() + Nanos(LEASE.0 / 100));
    }
    let span = Nanos(random.below(LEASE.0 / 10));
    story.rack.run_until(story.rack.now() + span);
    let mut tally = Tally::default();
    tally.add(&story);
    story = story.restart(&mut random, mutant);
    tally.add(&story.close());
    tally
}

const GAP_SEEDS: u64 = 60;

#[test]
fn what_a_disk_loses_under_a_keeper_that_dies_is_copied_from_memory() {
    let mut tally = Tally::default();
    for seed in 0..GAP_SEEDS {
        tally.join(&gaps(seed));
    }
    tally.print(&format!("gaps, {GAP_SEEDS} seeds"));
    let is_seen = tally.closed > GAP_SEEDS / 2 && tally.found > tally.closed;
    assert!(is_seen, "this test is blind");
    let mut tally = Tally::default();
    for seed in 0..SEEDS {
        tally.join(&gap_and_power(seed, None));
    }
    tally.print(&format!("a gap and no power, {SEEDS} seeds"));
    let is_seen = tally.found > SEEDS / 2 && tally.closed < tally.found;
    assert!(is_seen, "this test is blind");
}

/// A keeper takes far longer than threads take to go round their logs.
fn slow(seed: u64, mutant: Option<Mutant>) -> Tally {
    let mut random = Random::stream(seed, &[32]);
    let mut story = Story::new(seed, mutant, Cellar::new(seed, Snapshot::empty(THREADS)));
    story.cellar.pause.set(4 * LEASE.0);
    let until = story.rack.now() + LEASE * 12;
    for _ in 0..TELLERS {
        story.teller(until);
    }
    story.rack.run_until(until);
    story.cellar.pause.set(100_000);
    let mut tally = Tally::default();
    tally.add(&story);
    story = story.restart(&mut random, mutant);
    tally.add(&story.close());
    tally
}

#[test]
fn nothing_is_written_over_that_a_slow_keeper_has_not_written() {
    let mut tally = Tally::default();
    for seed in 0..SEEDS {
        tally.join(&slow(seed, None));
    }
    tally.print(&format!("slow, {SEEDS} seeds"));
}

/// No keeper lives for so long that commits give up; then one does.
#[test]
fn who_waits_for_a_keeper_in_vain_goes_on_when_there_is_one() {
    let room = SLOTS - 2;
    for seed in 0..20 {
        let cellar = Cellar::new(seed, Snapshot::empty(THREADS));
        let mut story = Story::new(seed, None, cellar);
        story.rack.kill(story.keeper);
        let before = story.notes.count() as u64;
        let until = story.rack.now() + LEASE * 60;
        for _ in 0..TELLERS {
            story.teller(until + LEASE * 10);
        }
        story.rack.run_until(until);
        let done = story.notes.count() as u64 - before;
        assert!(done <= TELLERS as u64 * room, "seed {seed}: {done} commits");
        assert!(*story.notes.unwritten.borrow() > 0, "seed {seed}");
        story.begin_to_keep();
        let story = story.close();
        let all = story.notes.count() as u64 - before;
        assert!(all > 4 * done, "seed {seed}: {all} commits");
    }
}

const TREE_SEEDS: u64 = 60;

#[test]
fn rows_are_there_with_their_tree_up_to_a_moment() {
    let counts = (0..TREE_SEEDS).map(|seed| tree::power(seed, None));
    let (kept, lost) = counts.fold((0, 0), |(kept, lost), one| (kept + one.0, lost + one.1));
    println!("rows, {TREE_SEEDS} seeds: {kept} writes are there, {lost} are not");
    assert!(lost > 0 && kept > TREE_SEEDS * 10, "this test is blind");
}

/// How many transactions of a thread are published and not written, at most.
fn behind(story: &Story) -> u64 {
    let Story { rack, cellar, .. } = story;
    let at = plan::replicas(&rack.watch.map, rack.plan.lines)[0];
    let vector = rack.plan.vector;
    let (published, _) = vector.parse(&rack.memory.look(at, vector.bytes()));
    let disk = cellar.disk.borrow();
    let (batches, _) = disk.read();
    let written = batches.last().map_or(&disk.base, |batch| &batch.cut);
    let pairs = published.numbers().iter().zip(written.numbers());
    pairs
        .map(|(published, written)| published - written)
        .max()
        .unwrap()
}

/// Nobody writes to disk what the dead leave, keepers least of all.
fn deaths(seed: u64) -> u64 {
    let mut random = Random::stream(seed, &[33]);
    let cellar = Cellar::new(seed, Snapshot::empty(THREADS));
    let mut story = Story::new(seed, None, cellar);
    let losses = [random.below(50), 50 + random.below(50)];
    let until = story.rack.now() + LEASE * 200;
    for round in 0..100 {
        story.rack.kill(story.keeper);
        if round % 3 > 0 {
            story.cellar.asleep.set(100 * LEASE.0);
            story.begin_to_keep();
        } else {
            story.teller(until);
        }
        story
            .rack
            .run_until(story.rack.now() + Nanos(random.below(2 * LEASE.0)));
        for teller in story.tellers.drain(..) {
            story.rack.kill(teller);
        }
        if losses.contains(&round) {
            let epochs = story.rack.watch.map.epoch();
            story.rack.memory.lose(story.rack.watch.primary());
            while story.rack.watch.map.epoch() == epochs {
                assert!(story.rack.step(until), "seed {seed}: no epoch begins");
            }
        }
    }
    story.rack.kill(story.keeper);
    let behind = behind(&story);
    story.cellar.asleep.set(0);
    story.begin_to_keep();
    let until = story.rack.now() + LEASE * 4;
    for _ in 0..TELLERS {
        story.teller(until);
    }
    story.rack.run_until(until);
    story.restart(&mut random, None).close();
    behind
}

#[test]
fn who_closes_the_dead_never_waits_for_a_keeper() {
    let behind = (0..20).map(deaths);
    let behind: Vec<u64> = behind.collect();
    println!("deaths: threads were {behind:?} transactions ahead of what is written");
    let is_round = behind.iter().filter(|count| **count > 2 * SLOTS).count();
    assert!(is_round > 10, "this test is blind");
}

type Scenario = fn(u64, Mutant);

#[test]
fn planted_defects_are_found() {
    let slowly: Scenario = |seed, mutant| {
        slow(seed, Some(mutant));
    };
    let powerless: Scenario = |seed, mutant| {
        power(seed, Some(mutant));
    };
    let with_rows: Scenario = |seed, mutant| {
        tree::power(seed, Some(mutant));
    };
    let over_a_gap: Scenario = |seed, mutant| {
        gap_and_power(seed, Some(mutant));
    };
    let cases = [
        (Mutant::OverwritesTheUnwritten, slowly),
        (Mutant::DrainsWhatIsLogged, powerless),
        (Mutant::WaitsForItselfAlone, powerless),
        (Mutant::ReplaysByThread, powerless),
        (Mutant::ReplaysByThread, with_rows),
        (Mutant::CompletesTooEarly, powerless),
        (Mutant::GoesOnOverAGap, over_a_gap),
        (Mutant::PromisesOverAGap, over_a_gap),
    ];
    each_is_found(&cases, 2 * SEEDS, |scenario, seed, mutant| {
        scenario(seed, mutant);
    });
}
