//! A rack with a log archiver, and what happens to it until all power is gone and it begins again.

use std::rc::Rc;

use manxdb_checker::versions::Outcome;
use manxdb_core::{Nanos, Random};
use manxdb_fabric::{Address, BatchId, Operation, ServerId};
use manxdb_rsi::mutants::Mutant;
use manxdb_rsi::{Bootstrap, Layout, Replay, Snapshot, Stamp, ThreadId};
use manxdb_sim::SimTime;

use crate::drains::SLOTS;
use crate::drains::archiver::{self, Cellar};
use crate::drains::disk::Checkpoint;
use crate::simulated_rack::bank::{self, Notes};
use crate::simulated_rack::plan::{self, SERVERS};
use crate::simulated_rack::rack::{LEASE, Pid, Rack};

/// A rack, and who is in it.
pub struct Story {
    pub rack: Rack,
    pub notes: Notes,
    pub cellar: Cellar,
    pub archiver: Pid,
    pub tellers: Vec<Pid>,
    pub seed: u64,
}

impl Story {
    /// Begins with what others have left.
    fn begin(mut rack: Rack, notes: &Notes, cellar: Cellar, seed: u64) -> Self {
        for _ in 0..3 {
            rack.coordinator();
        }
        let (own, disk) = (Rc::clone(notes), cellar.clone());
        let archiver = rack.program(|handle| archiver::keep(handle, own, disk));
        Self {
            rack,
            notes: Rc::clone(notes),
            cellar,
            archiver,
            tellers: Vec::new(),
            seed,
        }
    }

    /// A database with all money in one record.
    pub fn new(seed: u64, mutant: Option<Mutant>, cellar: Cellar) -> Self {
        let rack = Rack::new(seed, SLOTS, mutant);
        let mut story = Self::begin(rack, &Notes::default(), cellar, seed);
        let notes = Rc::clone(&story.notes);
        let first = story.rack.program(|handle| bank::fill(handle, notes));
        story.finish(&[first]);
        story
    }

    pub fn teller(&mut self, until: SimTime) {
        let notes = Rc::clone(&self.notes);
        let teller = self.rack.program(|handle| bank::work(handle, notes, until));
        self.tellers.push(teller);
    }

    /// A log archiver dies; the next one goes on.
    pub fn succeed(&mut self) {
        self.rack.kill(self.archiver);
        self.begin_to_keep();
    }

    pub fn begin_to_keep(&mut self) {
        let (notes, cellar) = (Rc::clone(&self.notes), self.cellar.clone());
        let archiver = self
            .rack
            .program(|handle| archiver::keep(handle, notes, cellar));
        self.archiver = archiver;
    }

    /// Runs until some have come to their end.
    pub fn finish(&mut self, pids: &[Pid]) {
        let end = self.rack.now() + LEASE * 60;
        while pids.iter().any(|pid| self.rack.is_at_work(*pid)) {
            let seed = self.seed;
            assert!(self.rack.now() < end, "seed {seed}: programs wait for ever");
            self.rack.run_until(self.rack.now() + LEASE);
        }
    }

    /// Everybody comes to an end, and all is judged.
    pub fn close(mut self) -> Self {
        self.finish(&self.tellers.clone());
        self.rack.late_one_in = 0;
        let notes = Rc::clone(&self.notes);
        let last = self.rack.program(|handle| bank::touch_all(handle, notes));
        self.finish(&[last]);
        self.cellar.is_over.set(true);
        self.rack.settle(LEASE * 60);
        self.rack.watch.check_end(&self.rack.memory);
        bank::judge(&self.rack, &self.notes, self.seed);
        self
    }

    /// Things happen to everybody, until a time.
    pub fn go(&mut self, random: &mut Random, until: SimTime) {
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
                        self.rack.coordinator();
                    }
                }
                4 => self
                    .rack
                    .still(self.archiver, Nanos(random.below(2 * LEASE.0))),
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
    pub fn restart(self, random: &mut Random, mutant: Option<Mutant>) -> Self {
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
        let mut rack = Rack::new(seed + 1_000_000, SLOTS, mutant);
        for (at, bytes) in checkpoint.iter().flat_map(|one| &one.records) {
            put(&mut rack, *at, bytes.clone());
        }
        for record in replay.records() {
            put(&mut rack, record.at(), record.bytes());
        }
        let anew = Bootstrap::behind(replay.cut());
        let plan = rack.plan.clone();
        for operation in anew.operations(plan.vector, plan.client_slots, plan.kept.unwrap()) {
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
