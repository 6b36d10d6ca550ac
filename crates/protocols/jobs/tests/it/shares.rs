//! Who was given much of a pool lately, and what the others get beside it.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;

use crate::plane::{Plane, able, finished, job};
use manxdb_core::Nanos;
use manxdb_jobs::Options;
use manxdb_jobs::job::{AttemptId, DatabaseId, Facts, JobId, Pressure};
use manxdb_jobs::mutants::Mutant;
use manxdb_jobs::record::{Durable, Record};

const WORKERS: [u64; 4] = [7, 8, 9, 10];
/// Slots for anything: one of each worker's four is kept for level 0.
const SLOTS: usize = 12;
/// Databases that are there; the first is the greedy one.
const DATABASES: u64 = 20;

/// A pool, and what runs in it.
struct Pool {
    plane: Plane,
    running: Vec<(u64, AttemptId)>,
    /// Jobs of each database that are not over, and how many it has asked for.
    waiting: BTreeMap<u64, Vec<u64>>,
    asked: BTreeMap<u64, u64>,
}

impl Pool {
    fn new() -> Self {
        Self::with(None)
    }

    fn with(mutant: Option<Mutant>) -> Self {
        let options = Options {
            mutant,
            ..Options::default()
        };
        let mut pool = Self {
            plane: Plane::new(options),
            running: Vec::new(),
            waiting: BTreeMap::new(),
            asked: BTreeMap::new(),
        };
        pool.all_say_that_they_are_there();
        pool
    }

    fn all_say_that_they_are_there(&mut self) {
        for worker in WORKERS {
            let own = self.running.iter().filter(|(at, _)| *at == worker);
            let own: Vec<AttemptId> = own.map(|(_, attempt)| *attempt).collect();
            self.plane.beat(worker, able(4), &own, u64::MAX);
        }
        for database in 1..=DATABASES {
            let waiting = self.waiting.entry(database).or_default().clone();
            let id = job(database, 1, 1);
            self.plane.alive(id, &waiting, Pressure::default());
        }
        self.note_runs();
    }

    fn note_runs(&mut self) {
        self.running.extend(self.plane.runs());
    }

    /// A database asks for jobs of 4 s that do not relieve level 0.
    fn ask(&mut self, database: u64, count: u64) {
        for _ in 0..count {
            let number = self.asked.entry(database).or_default();
            *number += 1;
            self.waiting.entry(database).or_default().push(*number);
            let facts = Facts {
                start_level: 6,
                output_level: 6,
                bytes: 256 << 20,
                ..Facts::default()
            };
            self.plane.submit(job(database, 1, *number), facts);
        }
        self.note_runs();
    }

    /// What has run longest is done.
    fn one_ends(&mut self) {
        let (worker, attempt) = self.running.remove(0);
        self.plane.end(worker, attempt, finished());
        let JobId {
            database, number, ..
        } = attempt.job;
        let waiting = self.waiting.entry(database.0).or_default();
        waiting.retain(|one| *one != number);
        self.note_runs();
    }

    /// Time in which everybody says again and again that it is there.
    fn pass(&mut self, span: Nanos) {
        let beat = self.plane.options.beat;
        for _ in 0..span.0 / beat.0 {
            self.plane.pass(beat);
            self.all_say_that_they_are_there();
        }
    }

    /// For some minutes, the first database has more done than there are slots for.
    fn greed(&mut self) {
        self.ask(1, 16);
        for _ in 0..40 {
            self.pass(Nanos::from_secs(4));
            for _ in 0..self.running.len() {
                self.one_ends();
                self.ask(1, 1);
            }
        }
    }

    fn running_of(&self, database: u64) -> usize {
        let of = |(_, attempt): &&(u64, AttemptId)| attempt.job.database.0 == database;
        self.running.iter().filter(of).count()
    }
}

#[test]
fn who_was_given_much_waits_behind_all_who_were_given_little() {
    let mut pool = Pool::new();
    pool.greed();
    for database in 2..=5 {
        pool.ask(database, 5);
    }
    let before = pool.running.len();
    assert!(pool.running_of(1) >= before - 1, "{:?}", pool.running);
    for _ in 0..before {
        pool.one_ends();
    }
    let others: usize = (2..=5).map(|one| pool.running_of(one)).sum();
    assert_eq!((pool.running_of(1), others), (0, SLOTS));
}

#[test]
fn a_burst_finds_a_slot_free_beside_who_was_given_much() {
    let mut pool = Pool::new();
    pool.ask(1, 16);
    assert_eq!(pool.running_of(1), SLOTS, "nobody was given more so far");
    pool.greed();
    assert_eq!(pool.running_of(1), SLOTS - 1);
    pool.ask(2, 1);
    assert_eq!(pool.running_of(2), 1, "{:?}", pool.running);
}

#[test]
fn who_was_given_much_is_one_of_many_again_after_some_hours() {
    let mut pool = Pool::new();
    pool.greed();
    while !pool.running.is_empty() {
        pool.one_ends();
    }
    pool.pass(Nanos::from_secs(4 * 3_600));
    pool.ask(1, 16);
    assert_eq!(pool.running_of(1), SLOTS);
}

#[test]
fn who_was_given_much_is_not_one_of_many_when_it_opens_again() {
    let mut pool = Pool::new();
    pool.greed();
    while !pool.running.is_empty() {
        pool.one_ends();
    }
    let again = job(1, 2, 1);
    pool.plane.alive(again, &[], Pressure::default());
    for number in 1..=16 {
        let facts = Facts {
            start_level: 6,
            bytes: 256 << 20,
            ..Facts::default()
        };
        pool.plane.submit(job(1, 2, number), facts);
    }
    assert_eq!(pool.plane.runs().len(), SLOTS - 1);
}

/// Slots that the first database gets when nothing else runs, after it was given much and the
/// control plane started again.
fn after_a_restart(mutant: Option<Mutant>) -> usize {
    let mut pool = Pool::with(mutant);
    pool.greed();
    while !pool.running.is_empty() {
        pool.one_ends();
    }
    pool.plane.restart();
    pool.all_say_that_they_are_there();
    pool.ask(1, 16);
    pool.running_of(1)
}

#[test]
fn a_control_plane_that_starts_again_knows_who_was_given_much() {
    assert_eq!(after_a_restart(None), SLOTS - 1);
    assert_eq!(after_a_restart(Some(Mutant::ForgetsAccounts)), SLOTS);
}

#[test]
fn memories_fade_over_restarts_as_without_them() {
    let lately_after = |restarts: u32| {
        let mut pool = Pool::new();
        pool.greed();
        for _ in 0..4 {
            for _ in 0..restarts {
                pool.plane.restart();
            }
            pool.pass(Nanos::from_secs(900));
            // One attempt writes how far memories have faded.
            pool.ask(2, 1);
        }
        pool.ask(1, 1);
        let durable = Durable::of(pool.plane.disk);
        durable.accounts[&DatabaseId(1)].lately
    };
    let (without, with) = (lately_after(0), lately_after(3));
    assert!(with.abs_diff(without) * 100 <= without, "{without}, {with}");
}

#[test]
fn an_account_costs_no_write_of_its_own_and_goes_with_its_database() {
    let mut pool = Pool::new();
    pool.greed();
    while !pool.running.is_empty() {
        pool.one_ends();
    }
    let gone = |record: &&Record| matches!(record, Record::Gone { .. });
    let disk = &pool.plane.disk;
    assert_eq!(disk.iter().filter(gone).count(), 0);
    assert_eq!(Durable::of(disk.iter().cloned()).accounts.len(), 1);
    pool.plane.restart();
    let written = pool.plane.disk.len();
    let patience = pool.plane.options.session;
    pool.plane.pass(patience);
    assert_eq!(pool.plane.disk.len(), written, "it may still come");
    pool.plane.pass(pool.plane.options.beat);
    let durable = Durable::of(pool.plane.disk.iter().cloned());
    assert_eq!((durable.accounts.len(), durable.jobs.len()), (0, 0));
    // Those that never had anything are nowhere.
    assert_eq!(pool.plane.disk.iter().filter(gone).count(), 1);
}
