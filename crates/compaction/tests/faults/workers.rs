//! Workers that die, freeze and hang.

use manxdb_compaction::order::STAGING;

use crate::cluster::{Cluster, Member};
use crate::process::until;

/// A pool with one worker that stands still somewhere in its first job, and a database.
fn halting(percent: &str) -> (Cluster, Member, Member) {
    let mut cluster = Cluster::new();
    let stop = [("stop_in", "1"), ("stop_at", percent), ("slots", "1")];
    let worker = cluster.worker(&stop);
    let database = cluster.database(&[("load", "once")]);
    worker.hear("stopped");
    (cluster, worker, database)
}

/// Files of attempts of a database.
fn attempts(database: &Member) -> Vec<String> {
    let entries = std::fs::read_dir(database.path().join(STAGING)).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn a_worker_killed_at_any_part_of_a_job_loses_it_to_another() {
    for percent in ["0", "25", "50", "99"] {
        let (mut cluster, mut worker, mut database) = halting(percent);
        let second = cluster.worker(&[]);
        worker.kill();
        until("the dead worker's lease is over", || {
            cluster.report().lost > 0
        });
        let before = database.count("installed");
        until("the other worker goes on", || {
            database.count("installed") > before + 2
        });
        assert_eq!(database.count("deadline"), 0);
        cluster.finish(vec![database]);
        drop(second);
    }
}

#[test]
fn a_worker_killed_between_its_end_and_the_word_of_it_loses_the_job() {
    let (mut cluster, mut worker, mut database) = halting("50");
    worker.road.hold();
    worker.tell("go");
    until("it has finished", || worker.count("finished") == 1);
    worker.kill();
    let _second = cluster.worker(&[]);
    until("the dead worker's lease is over", || {
        cluster.report().lost > 0
    });
    until("the other worker goes on", || {
        database.count("installed") > 2
    });
    cluster.finish(vec![database]);
}

#[test]
fn a_worker_frozen_past_its_lease_stops_when_it_thaws() {
    let (mut cluster, mut worker, mut database) = halting("50");
    let first = attempts(&database);
    worker.freeze();
    let _second = cluster.worker(&[]);
    until("its lease is over", || cluster.report().lost > 0);
    until("the other worker goes on", || {
        database.count("installed") > 2
    });
    worker.thaw();
    worker.tell("go");
    until("it gave the job up", || worker.count("stopped") == 1);
    assert_eq!(worker.count("finished"), 0);
    until("what it wrote is gone", || {
        attempts(&database).iter().all(|name| !first.contains(name))
    });
    until("it works again", || worker.count("finished") > 0);
    cluster.finish(vec![database]);
}

#[test]
fn an_end_that_comes_past_the_lease_is_refused_and_its_files_removed() {
    let (mut cluster, mut worker, mut database) = halting("50");
    let first = attempts(&database);
    worker.road.hold();
    worker.tell("go");
    until("it has finished", || worker.count("finished") == 1);
    let _second = cluster.worker(&[]);
    until("its lease is over", || cluster.report().lost > 0);
    until("the other worker goes on", || {
        database.count("installed") > 2
    });
    worker.road.open();
    until("its word has come", || cluster.report().late > 0);
    until("what it wrote is gone", || {
        attempts(&database).iter().all(|name| !first.contains(name))
    });
    cluster.finish(vec![database]);
}

#[test]
fn a_compaction_that_hangs_goes_home_at_its_deadline() {
    let mut cluster = Cluster::new();
    let stop = [("stop_in", "1"), ("stop_at", "50"), ("slots", "1")];
    let mut worker = cluster.worker(&stop);
    let mut database = cluster.database(&[("load", "once"), ("deadline_ms", "3000")]);
    worker.hear("stopped");
    until("the database gave it up", || database.count("deadline") > 0);
    worker.tell("go");
    until("the worker works again", || worker.count("finished") > 0);
    cluster.finish(vec![database]);
}

#[test]
fn a_worker_that_drains_loses_nothing() {
    let mut cluster = Cluster::new();
    let mut worker = cluster.worker(&[]);
    let _second = cluster.worker(&[]);
    let mut database = cluster.database(&[("parts", "3")]);
    until("it works", || worker.count("finished") > 0);
    worker.ask("drain");
    worker.ended();
    let before = database.count("installed");
    until("the other worker goes on", || {
        database.count("installed") > before + 2
    });
    let report = cluster.report();
    assert_eq!((report.lost, report.failed), (0, 0));
    cluster.finish(vec![database]);
}
