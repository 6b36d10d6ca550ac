//! The defects of CaaS-LSM's public control plane (reference, section 1.6), each as a test that
//! ours passes. The numbers are the reference's; what is about files and sockets (5 in part, 7,
//! 13) is tested where those are.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::plane::{Plane, able, database_node, finished, job, one_that_runs, worker_node};
use manxdb_core::{Nanos, NodeId};
use manxdb_jobs::job::{Facts, FailureClass, Fingerprint, LocalReason, Pressure, WorkerId, Zone};
use manxdb_jobs::message::{Ability, Ended, OutputVerdict};
use manxdb_jobs::record::Durable;
use manxdb_jobs::{Message, Options, Policy};

/// 1: ids began again with 0, and a database was given the result of another one's job.
#[test]
fn a_control_plane_without_its_disk_takes_no_result_of_its_former_self() {
    let mut plane = Plane::new(Options::default());
    let of_first = job(1, 1, 1);
    plane.beat(7, able(1), &[], 0);
    plane.alive(of_first, &[], Pressure::default());
    plane.submit(of_first, Facts::default());
    let former = plane.runs()[0].1;

    plane.disk.clear();
    plane.restart();
    let of_second = job(2, 1, 1);
    plane.alive(of_second, &[], Pressure::default());
    plane.submit(of_second, Facts::default());
    plane.beat(7, able(2), &[former], 1);
    let stop = Message::Stop { attempt: former };
    assert!(plane.said().contains(&(worker_node(7), stop.clone())));
    plane.end(7, former, finished());
    assert_eq!(plane.said(), [(worker_node(7), stop)]);
    assert_eq!(plane.control.counts().late, 1);
}

/// 1, with its disk: what waits is answered once, each with its own.
#[test]
fn a_restarted_control_plane_goes_on_with_what_it_had() {
    let mut plane = Plane::new(Options::default());
    let jobs = [job(1, 1, 1), job(2, 1, 1)];
    plane.beat(7, able(4), &[], 0);
    for id in jobs {
        plane.alive(id, &[], Pressure::default());
        plane.submit(id, Facts::default());
    }
    let runs = plane.runs();
    plane.end(7, runs[0].1, finished());
    plane.said();
    plane.restart();
    plane.beat(7, able(4), &[runs[1].1], 2);
    for id in jobs {
        plane.alive(id, &[1], Pressure::default());
    }
    let done = |message: &Message| match message {
        Message::Done { attempt, .. } => Some(*attempt),
        _ => None,
    };
    let said = plane.said();
    let told: Vec<_> = said
        .iter()
        .filter_map(|(to, message)| Some((*to, done(message)?)))
        .collect();
    assert_eq!(told, [(database_node(jobs[0]), runs[0].1)]);
    plane.end(7, runs[1].1, finished());
    let said = plane.said();
    let told = said
        .iter()
        .filter_map(|(to, message)| Some((*to, done(message)?)));
    assert_eq!(
        told.collect::<Vec<_>>(),
        [(database_node(jobs[1]), runs[1].1)]
    );
}

/// 2: workers registered once, and a control plane that started again had none for ever.
#[test]
fn workers_are_known_again_by_their_next_word() {
    let mut plane = Plane::new(Options::default());
    plane.beat(7, able(1), &[], 0);
    plane.restart();
    let id = job(1, 1, 1);
    plane.alive(id, &[], Pressure::default());
    plane.submit(id, Facts::default());
    assert_eq!(plane.runs(), []);
    plane.beat(7, able(1), &[], 0);
    assert_eq!(plane.runs().len(), 1);
}

/// 3: a worker that was back before it was missed had lost its jobs, and nobody knew.
#[test]
fn a_worker_that_was_back_at_once_has_lost_its_jobs() {
    let mut plane = Plane::new(Options::default());
    let id = job(1, 1, 1);
    plane.beat(7, able(1), &[], 0);
    plane.alive(id, &[], Pressure::default());
    plane.submit(id, Facts::default());
    let first = plane.runs()[0].1;
    // The same process lost it: it took the order and does not run it.
    plane.beat(7, able(1), &[], 1);
    plane.pass(Nanos::from_millis(500));
    let (worker, second) = plane.runs()[0];
    assert_eq!((worker, second.number), (7, 2));
    assert_ne!(first.token, second.token);
    // A new process: its lease runs out.
    plane.alive(id, &[1], Pressure::default());
    for _ in 0..12 {
        plane.pass(Nanos::from_millis(500));
        plane.alive(id, &[1], Pressure::default());
        plane.beat(8, able(1), &[], 0);
    }
    let runs = plane.runs();
    assert_eq!((runs[0].0, runs[0].1.number), (8, 3));
}

/// 5: attempts wrote to the directory of the job, two of them at a time after a false alarm.
#[test]
fn every_attempt_has_a_directory_of_its_own() {
    let mut plane = Plane::new(Options::default());
    let id = job(1, 1, 1);
    let mut names = std::collections::BTreeSet::new();
    for start in 0..3 {
        plane.beat(7, able(1), &[], 0);
        plane.alive(id, &[], Pressure::default());
        plane.submit(id, Facts::default());
        plane.pass(Nanos::from_secs(1));
        for (_, attempt) in plane.runs() {
            assert!(names.insert(attempt.to_string()), "{attempt} was there");
            plane.end(7, attempt, Ended::Failed(FailureClass::Transient));
        }
        plane.pass(Nanos::from_secs(1));
        names.extend(plane.runs().iter().map(|(_, attempt)| attempt.to_string()));
        plane.disk.clear();
        plane.restart();
        assert_eq!(names.len(), 2 * (start + 1));
    }
}

/// 6: the job sent home was the one just popped, the most urgent.
#[test]
fn what_is_too_much_is_sent_home_from_the_end() {
    let options = Options {
        waiting_each_slot: 3,
        ..Options::default()
    };
    let mut plane = Plane::new(options);
    plane.pass(options.patience); // right after a start nobody knows how many workers there are
    plane.beat(7, able(1), &[], 0);
    let level = |start_level, bytes| Facts {
        start_level,
        bytes,
        ..Facts::default()
    };
    plane.alive(job(1, 1, 1), &[], Pressure::default());
    for number in 1..=8 {
        let facts = level(u8::from(number % 2 == 0), number << 20);
        plane.submit(job(1, 1, number), facts);
    }
    let said = plane.said();
    let home: Vec<u64> = said
        .iter()
        .filter_map(|(_, message)| match message {
            Message::GoLocal { job, reason } if *reason == LocalReason::Overloaded => {
                Some(job.number)
            }
            _ => None,
        })
        .collect();
    // 1 runs, 3, 5 and 7 wait: those of level 0. The others went, the largest first.
    assert_eq!(home, [4, 6, 2, 8]);
}

/// 8: only the worker with the fewest tasks was asked whether it has memory.
#[test]
fn a_worker_without_memory_is_passed_over() {
    let mut plane = Plane::new(Options::default());
    let poor = Ability {
        memory: 1 << 20,
        ..able(4)
    };
    plane.beat(7, poor, &[], 0);
    plane.beat(8, able(1), &[], 0);
    let id = job(1, 1, 1);
    plane.alive(id, &[], Pressure::default());
    plane.submit(id, Facts::default());
    assert_eq!(plane.runs()[0].0, 8);
}

/// 9: one worker that hung stopped the watch over all.
#[test]
fn a_silent_worker_holds_up_no_other() {
    let mut plane = Plane::new(Options::default());
    plane.beat(7, able(1), &[], 0);
    plane.beat(8, able(1), &[], 0);
    let jobs = [job(1, 1, 1), job(2, 1, 1)];
    for id in jobs {
        plane.alive(id, &[], Pressure::default());
        plane.submit(id, Facts::default());
    }
    let runs = plane.runs();
    let quick = runs.iter().find(|(worker, _)| *worker == 8).unwrap().1;
    plane.end(8, quick, finished());
    for _ in 0..13 {
        plane.pass(Nanos::from_millis(500));
        plane.beat(8, able(1), &[], 1);
        for id in jobs {
            plane.alive(id, &[1], Pressure::default());
        }
    }
    let runs = plane.runs();
    assert_eq!((runs[0].0, runs[0].1.number), (8, 2));
    assert_eq!(plane.control.counts().lost, 1);
}

/// 12: workers compacted with options of their own, and what that made was installed.
#[test]
fn a_worker_that_would_compact_otherwise_is_never_asked() {
    let mut plane = Plane::new(Options::default());
    let other = Ability {
        fingerprints: vec![Fingerprint(2), Fingerprint(3)],
        ..able(4)
    };
    plane.beat(7, other.clone(), &[], 0);
    let id = job(1, 1, 1);
    plane.alive(id, &[], Pressure::default());
    plane.submit(id, Facts::default());
    for _ in 0..8 {
        plane.pass(Nanos::from_millis(500));
        plane.beat(7, other.clone(), &[], 0);
        plane.alive(id, &[1], Pressure::default());
    }
    let local = Message::GoLocal {
        job: id,
        reason: LocalReason::NoWorker,
    };
    let said = plane.said();
    assert!(said.contains(&(database_node(id), local)), "{said:?}");
    let is_run = |(_, message): &(NodeId, Message)| matches!(message, Message::Run { .. });
    assert!(!said.iter().any(is_run));
}

/// 14: jobs and results of databases that died were kept for ever.
#[test]
fn a_database_that_died_leaves_nothing() {
    let mut plane = Plane::new(Options::default());
    plane.beat(7, able(4), &[], 0);
    for number in 1..=3 {
        plane.alive(job(1, 1, 1), &[1, 2, 3], Pressure::default());
        plane.submit(job(1, 1, number), Facts::default());
    }
    let runs = plane.runs();
    plane.end(7, runs[0].1, finished());
    plane.pass(Nanos::from_secs(11));
    assert!(plane.control.report().jobs.is_empty());
    assert!(Durable::of(plane.disk.iter().cloned()).jobs.is_empty());
}

/// Beyond the list: a failure that repeats on another worker is the job's own.
#[test]
fn a_poisoned_job_goes_home_after_two_workers() {
    let options = Options {
        attempts_max: 9,
        ..Options::default()
    };
    let mut plane = Plane::new(options);
    let id = job(1, 1, 1);
    plane.beat(7, able(1), &[], 0);
    plane.beat(8, able(1), &[], 0);
    plane.alive(id, &[], Pressure::default());
    plane.submit(id, Facts::default());
    let cause = FailureClass::Deterministic { cause: 9 };
    let (first, attempt) = plane.runs()[0];
    plane.end(first, attempt, Ended::Failed(cause));
    plane.pass(Nanos::from_secs(1));
    let (second, attempt) = plane.runs()[0];
    assert_ne!(first, second);
    plane.end(second, attempt, Ended::Failed(cause));
    let local = Message::GoLocal {
        job: id,
        reason: LocalReason::Poison,
    };
    assert!(plane.said().contains(&(database_node(id), local)));
}

/// Beyond the list: whose outputs were refused gets nothing more, also after a restart.
#[test]
fn a_worker_whose_outputs_were_refused_is_not_trusted_again() {
    let (mut plane, id, attempt) = one_that_runs();
    plane.end(7, attempt, finished());
    let refused = vec![(attempt, OutputVerdict::Refused)];
    plane.alive_with(id, &[], Pressure::default(), refused);
    for restarts in 0..2 {
        let next = job(1, 1, 2 + restarts);
        plane.alive(next, &[], Pressure::default());
        plane.submit(next, Facts::default());
        plane.beat(7, able(1), &[], 1);
        assert_eq!(plane.runs(), []);
        plane.restart();
    }
}

/// Beyond the list: the worker of a refused result may be gone, or not be heard of since the
/// control plane started again; it is banned all the same, when the verdict is first heard.
#[test]
fn a_refusal_bans_a_worker_that_is_not_there() {
    let (mut plane, id, attempt) = one_that_runs();
    plane.end(7, attempt, finished());
    plane.restart();
    let refused = vec![(attempt, OutputVerdict::Refused)];
    plane.alive_with(id, &[], Pressure::default(), refused);
    assert_eq!(plane.control.report().banned, [WorkerId(7)]);
    plane.restart();
    assert_eq!(plane.control.report().banned, [WorkerId(7)]);
}

/// Beyond the list: a database speaks for nobody but itself.
#[test]
fn nobody_settles_the_jobs_of_another_database() {
    let (mut plane, _, attempt) = one_that_runs();
    plane.end(7, attempt, finished());
    let refused = vec![(attempt, OutputVerdict::Refused)];
    plane.alive_with(job(2, 1, 1), &[], Pressure::default(), refused);
    let report = plane.control.report();
    assert_eq!((report.banned.len(), report.jobs.len()), (0, 1));
}

/// Beyond the list: a database near a stall is served before one that is not, its level 0 first.
#[test]
fn relief_goes_to_who_stalls_first() {
    let mut plane = Plane::new(Options::default());
    let pressed = Pressure {
        files: 19,
        files_stall: 20,
        files_hour: 3_600,
    };
    let ids = [job(1, 1, 1), job(2, 1, 1), job(3, 1, 1)];
    let level = |start_level| Facts {
        start_level,
        bytes: 1 << 20,
        ..Facts::default()
    };
    plane.alive(ids[0], &[], Pressure::default());
    plane.submit(ids[0], level(2));
    plane.alive(ids[1], &[], Pressure::default());
    plane.submit(ids[1], level(0));
    plane.alive(ids[2], &[], pressed);
    plane.submit(ids[2], level(0));
    plane.beat(7, able(3), &[], 0);
    let order: Vec<u64> = plane
        .runs()
        .iter()
        .map(|(_, attempt)| attempt.job.database.0)
        .collect();
    assert_eq!(order, [3, 2, 1]);
}

/// Beyond the list: a database to which the first words were lost does not take back what a worker
/// has begun.
#[test]
fn who_asks_again_hears_that_a_worker_has_begun() {
    let (mut plane, id, attempt) = one_that_runs();
    plane.submit(id, Facts::default());
    let begun = Message::Begun { job: id };
    assert_eq!(plane.said(), [(database_node(id), begun)]);
    plane.end(7, attempt, Ended::Failed(FailureClass::Transient));
    plane.said();
    plane.submit(id, Facts::default());
    let taken = Message::Taken { job: id };
    assert_eq!(plane.said(), [(database_node(id), taken)]);
}

/// Beyond the list: numbers that nobody honest says stop nothing.
#[test]
fn the_largest_numbers_that_can_be_said_stop_nothing() {
    for policy in Policy::ALL {
        let mut plane = Plane::new(Options {
            policy,
            ..Options::default()
        });
        for worker in [7, 8] {
            let ability = Ability {
                slots: u32::MAX,
                bytes_second: worker - 7,
                zone: Zone(u16::MAX),
                memory: u64::MAX,
                ..able(1)
            };
            plane.beat(worker, ability, &[], u64::MAX);
        }
        let pressure = Pressure {
            files: u32::MAX,
            files_stall: u32::MAX,
            files_hour: u32::MAX,
        };
        for database in 1..=3 {
            plane.alive_weighing(job(database, 1, 1), u32::MAX, pressure);
            for number in 1..=4 {
                let facts = Facts {
                    bytes: u64::MAX,
                    score: i64::MIN,
                    ..Facts::default()
                };
                plane.submit(job(database, 1, number), facts);
            }
        }
        plane.pass(Nanos::from_secs(1));
        assert!(!plane.runs().is_empty(), "{}", policy.name());
    }
}

/// Beyond the list: a slot of each worker is never taken by what does not relieve level 0.
#[test]
fn a_slot_is_kept_for_level_0() {
    let mut plane = Plane::new(Options::default());
    plane.beat(7, able(2), &[], 0);
    plane.alive(job(1, 1, 1), &[], Pressure::default());
    for number in 1..=3 {
        let start_level = u8::from(number < 3);
        let facts = Facts {
            start_level,
            ..Facts::default()
        };
        plane.submit(job(1, 1, number), facts);
    }
    let runs = plane.runs();
    let numbers: Vec<u64> = runs.iter().map(|(_, attempt)| attempt.job.number).collect();
    assert_eq!(numbers, [1, 3]);
}
