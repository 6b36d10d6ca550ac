//! The policies of published systems, for comparisons: what each of them does that ours does not
//! (reference, sections 1.3 and 1.7).
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;

use crate::plane::{Plane, able, finished, job};
use manxdb_core::Nanos;
use manxdb_jobs::job::{Facts, FailureClass, JobId, LocalReason, Pressure, Zone};
use manxdb_jobs::message::{Ability, Ended};
use manxdb_jobs::{Message, Options, Policy};

fn plane(policy: Policy) -> Plane {
    Plane::new(Options {
        policy,
        ..Options::default()
    })
}

/// A database is there and asks for a job.
fn ask(plane: &mut Plane, id: JobId, zone: Zone) {
    let waiting: Vec<u64> = (1..id.number).collect();
    plane.alive(id, &waiting, Pressure::default());
    let facts = Facts {
        zone,
        ..Facts::default()
    };
    plane.submit(id, facts);
}

fn in_zone(zone: u16) -> Ability {
    Ability {
        zone: Zone(zone),
        ..able(1)
    }
}

/// Jobs that were sent home since it was last asked.
fn sent_home(plane: &mut Plane) -> Vec<(JobId, LocalReason)> {
    let said = plane.said();
    let home = said.into_iter().filter_map(|(_, message)| match message {
        Message::GoLocal { job, reason } => Some((job, reason)),
        _ => None,
    });
    home.collect()
}

/// Disaggre-RocksDB: a call to a fixed address, which waits in no queue.
#[test]
fn a_database_with_one_worker_asks_no_other_and_waits_for_no_slot() {
    let mut plane = plane(Policy::Static);
    for worker in [7, 8] {
        plane.beat(worker, able(1), &[], 0);
    }
    for number in 1..=4 {
        for database in [1, 2] {
            ask(&mut plane, job(database, 1, number), Zone(0));
        }
    }
    let mut workers: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (worker, attempt) in plane.runs() {
        let database = attempt.job.database.0;
        workers.entry(database).or_default().push(worker);
    }
    assert_eq!(workers, BTreeMap::from([(1, vec![7; 4]), (2, vec![8; 4])]));
}

/// As an operator would write the addresses down.
#[test]
fn databases_with_one_worker_each_are_spread_and_have_the_near_one() {
    let mut plane = plane(Policy::Static);
    plane.beat(7, in_zone(1), &[], 0);
    plane.beat(8, in_zone(0), &[], 0);
    for (database, zone) in [(1, 0), (2, 0), (3, 1), (4, 0)] {
        ask(&mut plane, job(database, 1, 1), Zone(zone));
    }
    let runs = plane.runs().into_iter();
    let workers: Vec<u64> = runs.map(|(worker, _)| worker).collect();
    assert_eq!(workers, [8, 7, 7, 8]);
}

#[test]
fn a_database_whose_one_worker_is_gone_compacts_at_home_until_another_takes_its_place() {
    let mut plane = plane(Policy::Static);
    plane.beat(7, able(1), &[], 0);
    plane.beat(8, able(1), &[], 0);
    let (first, second) = (job(1, 1, 1), job(1, 1, 2));
    ask(&mut plane, first, Zone(0));
    assert_eq!(plane.runs()[0].0, 7);
    for _ in 0..12 {
        plane.pass(Nanos::from_millis(500));
        plane.alive(first, &[1], Pressure::default());
        plane.beat(8, able(1), &[], 0);
    }
    assert_eq!(sent_home(&mut plane), [(first, LocalReason::Attempts)]);
    plane.alive(second, &[], Pressure::default());
    ask(&mut plane, second, Zone(0));
    assert_eq!(sent_home(&mut plane), [(second, LocalReason::NoWorker)]);
    plane.beat(9, able(1), &[], 0);
    ask(&mut plane, job(1, 1, 3), Zone(0));
    assert_eq!(plane.runs()[0].0, 9);
}

#[test]
fn what_a_databases_one_worker_fails_at_is_not_tried_again() {
    let classes = [
        FailureClass::Declined,
        FailureClass::Transient,
        FailureClass::Deterministic { cause: 1 },
    ];
    for class in classes {
        let mut plane = plane(Policy::Static);
        for worker in [7, 8] {
            plane.beat(worker, able(1), &[], 0);
        }
        let id = job(1, 1, 1);
        ask(&mut plane, id, Zone(0));
        let (worker, attempt) = plane.runs()[0];
        plane.end(worker, attempt, Ended::Failed(class));
        assert_eq!(sent_home(&mut plane), [(id, LocalReason::Attempts)]);
    }
}

/// Nebula-Random-Sche: a job waits for the worker that was drawn for it.
#[test]
fn a_worker_drawn_at_random_is_waited_for_while_another_has_nothing_to_do() {
    let mut waits = 0;
    for database in 1..=16 {
        let mut plane = plane(Policy::Random);
        for worker in [7, 8] {
            plane.beat(worker, able(1), &[], 0);
        }
        for number in 1..=2 {
            ask(&mut plane, job(database, 1, number), Zone(0));
        }
        let runs = plane.runs();
        waits += usize::from(runs.len() == 1);
        plane.end(runs[0].0, runs[0].1, finished());
        let next = plane.runs();
        assert_eq!(runs.len() + next.len(), 2);
        assert_eq!(
            runs.iter()
                .chain(&next)
                .map(|(_, one)| one.job.number)
                .max(),
            Some(2)
        );
    }
    assert!((4..=12).contains(&waits), "{waits} of 16");
}

/// Nebula-Random-Sche has no order of jobs but that of their arrival.
#[test]
fn at_random_what_relieves_level_0_waits_for_what_came_before() {
    let mut plane = plane(Policy::Random);
    plane.beat(7, able(1), &[], 0);
    plane.alive(job(1, 1, 1), &[], Pressure::default());
    for (number, start_level) in [(1, 1), (2, 1), (3, 0)] {
        let facts = Facts {
            start_level,
            ..Facts::default()
        };
        plane.submit(job(1, 1, number), facts);
    }
    for number in 1..=3 {
        let runs = plane.runs();
        assert_eq!(runs[0].1.job.number, number);
        plane.end(7, runs[0].1, finished());
    }
}

/// CaaS-LSM: its one thread sleeps for a second when the worker with the fewest tasks is full.
#[test]
fn the_published_scheduler_sleeps_while_a_slot_is_free_again() {
    let mut plane = plane(Policy::CaasLevel);
    plane.beat(7, able(1), &[], 0);
    for number in 1..=3 {
        ask(&mut plane, job(1, 1, number), Zone(0));
    }
    let runs = plane.runs();
    assert_eq!(runs.len(), 1);
    plane.end(7, runs[0].1, finished());
    plane.pass(Nanos::from_millis(500));
    assert_eq!(plane.runs(), []);
    plane.pass(Nanos::from_millis(500));
    assert_eq!(plane.runs().len(), 1);
}

/// CaaS-LSM's own order, as published, for comparisons.
#[test]
fn the_published_order_is_level_then_score_then_age() {
    let options = Options {
        policy: Policy::CaasLevel,
        ..Options::default()
    };
    let mut plane = Plane::new(options);
    let scores = [(1, 5_000), (0, 1_000), (0, 3_000), (0, -1), (1, 9_000)];
    plane.alive(job(1, 1, 1), &[], Pressure::default());
    plane.beat(7, able(1), &[], 0);
    plane.submit(job(1, 1, 1), Facts::default());
    for (number, (start_level, score)) in (2..).zip(scores) {
        let facts = Facts {
            start_level,
            score,
            ..Facts::default()
        };
        plane.submit(job(1, 1, number), facts);
    }
    let mut order = Vec::new();
    let mut seen = 0;
    while let Some((_, attempt)) = plane.runs().first().copied() {
        order.push(attempt.job.number);
        seen += 1;
        plane.end(7, attempt, finished());
        plane.now = plane.now + Nanos::from_secs(2);
        plane.alive(job(1, 1, 1), &[1, 2, 3, 4, 5, 6], Pressure::default());
        plane.beat(7, able(1), &[], seen);
    }
    assert_eq!(order, [1, 5, 4, 3, 6, 2]);
}
