//! Databases that die at each moment of a job, and ones that close.

use manxdb_compaction::order::STAGING;

use crate::cluster::{Cluster, Member};
use crate::process::until;

/// A database killed at a moment of its third job.
fn killed(moment: &str) -> (Cluster, Vec<Member>, Member) {
    let mut cluster = Cluster::new();
    let workers = vec![cluster.worker(&[]), cluster.worker(&[])];
    let mut database = cluster.database(&[("die", moment), ("die_in", "3")]);
    database.ended();
    (cluster, workers, database)
}

fn goes_on_after_it_was_killed(moment: &str) {
    let (mut cluster, _workers, database) = killed(moment);
    let mut database = cluster.again(database);
    until("it goes on", || database.count("installed") > 2);
    cluster.finish(vec![database]);
}

#[test]
fn a_database_killed_before_it_asks_opens_clean() {
    goes_on_after_it_was_killed("schedule");
}

#[test]
fn a_database_killed_when_it_has_asked_opens_clean() {
    goes_on_after_it_was_killed("scheduled");
}

#[test]
fn a_database_killed_between_answer_and_renaming_opens_clean() {
    goes_on_after_it_was_killed("answered");
}

/// In the middle of the renames, or while it writes down what it has installed.
#[test]
fn a_database_killed_while_it_installs_opens_clean() {
    goes_on_after_it_was_killed("renaming");
}

#[test]
fn a_database_killed_between_installing_and_saying_so_opens_clean() {
    goes_on_after_it_was_killed("installed");
}

/// What `kill -9` between two renames leaves: one output has a number of the database's, the
/// others are still where the worker wrote them.
#[test]
fn a_database_killed_between_two_renames_opens_clean() {
    let (mut cluster, _workers, database) = killed("answered");
    let staging = database.path().join(STAGING);
    let sorted = |path: &std::path::Path| path.extension().is_some_and(|end| end == "sst");
    let attempts = std::fs::read_dir(staging).unwrap().flatten();
    let files = attempts.flat_map(|attempt| std::fs::read_dir(attempt.path()).unwrap().flatten());
    let output = files
        .map(|file| file.path())
        .find(|path| sorted(path))
        .unwrap();
    let number = |entry: std::fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.split('.').next()?.parse::<u64>().ok()
    };
    let there = std::fs::read_dir(database.path()).unwrap().flatten();
    let next = there.filter_map(number).max().unwrap() + 1;
    let renamed = database.path().join(format!("{next:06}.sst"));
    std::fs::rename(output, &renamed).unwrap();
    let mut database = cluster.again(database);
    until("it goes on", || database.count("installed") > 2);
    cluster.finish(vec![database]);
}

#[test]
fn a_database_killed_while_a_worker_compacts_takes_nothing_from_its_former_life() {
    let mut cluster = Cluster::new();
    let stop = [("stop_in", "1"), ("stop_at", "0"), ("slots", "1")];
    let mut worker = cluster.worker(&stop);
    let mut database = cluster.database(&[]);
    worker.hear("stopped");
    database.kill();
    let mut database = cluster.again(database);
    // What the former life asked for is made after the new one has swept, unless the worker has
    // heard before that nobody wants it. Its word comes late, or to a control plane that has not
    // heard of the new life yet; the judge looks for what is left of it.
    worker.tell("go");
    until("it has ended it", || {
        worker.count("finished") + worker.count("failed") + worker.count("stopped") > 0
    });
    until("it goes on", || database.count("installed") > 2);
    cluster.finish(vec![database]);
}

#[test]
fn a_frozen_database_finds_its_jobs_given_up_and_goes_on() {
    let mut cluster = Cluster::new();
    let _worker = cluster.worker(&[]);
    let mut database = cluster.database(&[]);
    until("the pool works", || database.count("installed") > 0);
    database.freeze();
    until("its jobs are given up", || cluster.report().jobs.is_empty());
    database.thaw();
    let before = database.count("installed");
    until("it goes on", || database.count("installed") > before + 1);
    cluster.finish(vec![database]);
}

#[test]
fn closing_does_not_wait_for_a_worker() {
    let mut cluster = Cluster::new();
    let stop = [("stop_in", "1"), ("stop_at", "50"), ("slots", "1")];
    let mut worker = cluster.worker(&stop);
    let mut database = cluster.database(&[("load", "once")]);
    worker.hear("stopped");
    // It stands still for as long as nobody tells it to go on: who closes cannot have waited.
    let last = database.ask("close");
    println!("{last}");
    worker.tell("go");
    database.ended();
    until("its job is given up", || cluster.report().jobs.is_empty());
    let database = cluster.again(database);
    cluster.finish(vec![database]);
}
