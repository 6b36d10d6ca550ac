//! A control plane that dies, forgets, or cannot write.

use crate::cluster::{Cluster, Member};
use crate::process::until;

/// A pool with jobs under way and waiting, of two databases whose jobs have the same numbers.
fn busy() -> (Cluster, Member, Vec<Member>) {
    let mut cluster = Cluster::new();
    let stop = [("stop_in", "1"), ("stop_at", "50"), ("slots", "1")];
    let worker = cluster.worker(&stop);
    let databases = vec![cluster.database(&[]), cluster.database(&[("seed", "2")])];
    worker.hear("stopped");
    until("both databases wait", || {
        let jobs = cluster.report().jobs;
        let of =
            |job: &manxdb_compaction::transport::wire::proto::JobLine| job.job.unwrap().database;
        jobs.iter().any(|job| of(job) != of(&jobs[0]))
    });
    (cluster, worker, databases)
}

fn all_go_on(databases: &mut [Member]) {
    for database in databases {
        let before = database.count("installed");
        until("it goes on", || database.count("installed") > before + 1);
    }
}

#[test]
fn a_control_plane_killed_and_started_at_once_goes_on_with_its_jobs() {
    let (mut cluster, mut worker, mut databases) = busy();
    let jobs = cluster.report().jobs.len();
    cluster.kill_control();
    cluster.start_control();
    assert!(jobs >= 2);
    worker.tell("go");
    all_go_on(&mut databases);
    cluster.finish(databases);
}

#[test]
fn a_control_plane_that_stays_away_sends_nobody_to_sleep() {
    let (mut cluster, mut worker, mut databases) = busy();
    cluster.kill_control();
    for database in &mut databases {
        until("it compacts at home", || database.count("away") > 1);
    }
    worker.tell("go");
    cluster.start_control();
    all_go_on(&mut databases);
    cluster.finish(databases);
}

#[test]
fn a_control_plane_that_lost_its_disk_gives_nobody_anothers_result() {
    let (mut cluster, mut worker, mut databases) = busy();
    cluster.kill_control();
    std::fs::remove_file(cluster.store()).unwrap();
    cluster.start_control();
    worker.tell("go");
    all_go_on(&mut databases);
    cluster.finish(databases);
}

#[test]
fn a_damaged_store_is_refused_and_can_be_removed() {
    let (mut cluster, mut worker, mut databases) = busy();
    cluster.kill_control();
    let mut bytes = std::fs::read(cluster.store()).unwrap();
    bytes[..4_096].fill(0xa5);
    std::fs::write(cluster.store(), &bytes).unwrap();
    let why = cluster.try_control().unwrap();
    assert!(why.contains("store"), "{why}");
    assert_eq!(std::fs::read(cluster.store()).unwrap(), bytes);
    for database in &mut databases {
        until("it compacts at home", || database.count("away") > 0);
    }
    std::fs::remove_file(cluster.store()).unwrap();
    cluster.start_control();
    worker.tell("go");
    all_go_on(&mut databases);
    cluster.finish(databases);
}

#[test]
fn a_frozen_control_plane_is_one_that_is_away() {
    let (mut cluster, mut worker, mut databases) = busy();
    cluster.control().freeze();
    for database in &mut databases {
        until("it compacts at home", || database.count("away") > 0);
    }
    cluster.control().thaw();
    worker.tell("go");
    all_go_on(&mut databases);
    cluster.finish(databases);
}

#[test]
fn a_control_plane_that_cannot_write_takes_no_job() {
    let mut cluster = Cluster::new();
    let _worker = cluster.worker(&[]);
    let mut database = cluster.database(&[]);
    until("the pool works", || database.count("installed") > 0);
    cluster.control().ask("full");
    until("it compacts at home", || database.count("away") > 1);
    cluster.control().logs(&["cannot write"]);
    let before = database.count("installed");
    cluster.control().ask("space");
    until("it goes on by itself", || {
        database.count("installed") > before + 1
    });
    cluster.finish(vec![database]);
}
