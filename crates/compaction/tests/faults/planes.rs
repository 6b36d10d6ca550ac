//! Two control planes over etcd, of which one leads: killed, frozen, and without etcd.

use std::net::SocketAddr;

use manxdb_compaction::transport::security::Security;
use manxdb_jobs::election::Why;
use manxdb_test_etcd::Etcd;

use crate::cluster::{Cluster, Member};
use crate::process::{Process, until};
use crate::settings::Settings;

struct Planes {
    cluster: Cluster,
    etcd: Etcd,
    all: Vec<(Process, SocketAddr)>,
}

impl Planes {
    fn new(members: usize) -> Self {
        let mut planes = Self {
            cluster: Cluster::without_control(&Settings::default(), Security::default()),
            etcd: Etcd::start(members),
            all: Vec::new(),
        };
        for _ in 0..2 {
            planes.start(None);
        }
        planes.wait_for_leader();
        planes
    }

    fn start(&mut self, listen: Option<SocketAddr>) {
        let plane = self.cluster.try_plane(&self.etcd.members(), listen);
        self.all.push(plane.unwrap());
    }

    /// Place of the one that leads.
    fn wait_for_leader(&mut self) -> usize {
        let mut leader = None;
        let planes = &mut self.all;
        until("somebody leads", || {
            let leads = |plane: &mut (Process, _)| plane.0.count("leads") == 1;
            leader = planes.iter_mut().position(leads);
            leader.is_some()
        });
        leader.unwrap()
    }

    /// Waits until this one leads.
    fn wait_until_leads(&mut self, place: usize) -> u64 {
        let plane = &mut self.all[place].0;
        until("it leads", || plane.count("leads") == 1);
        plane.count("term")
    }

    /// With jobs under way and waiting, of two databases whose jobs have the same numbers.
    fn busy(&mut self) -> (Member, Vec<Member>) {
        let stop = [("stop_in", "1"), ("stop_at", "50"), ("slots", "1")];
        let worker = self.cluster.worker(&stop);
        let cluster = &mut self.cluster;
        let databases = vec![cluster.database(&[]), cluster.database(&[("seed", "2")])];
        worker.hear("stopped");
        let cluster = &self.cluster;
        until("both databases wait", || {
            let jobs = cluster.report().jobs;
            let of = |job: &manxdb_compaction::transport::wire::proto::JobLine| {
                job.job.unwrap().database
            };
            jobs.iter().any(|job| of(job) != of(&jobs[0]))
        });
        (worker, databases)
    }
}

fn all_go_on(databases: &mut [Member]) {
    for database in databases {
        let before = database.count("installed");
        until("it goes on", || database.count("installed") > before + 1);
    }
}

fn all_compact_at_home(databases: &mut [Member]) {
    for database in databases {
        let before = database.count("away");
        until("it compacts at home", || database.count("away") > before);
    }
}

#[test]
fn a_leader_killed_with_jobs_under_way_is_followed_by_the_other() {
    let mut planes = Planes::new(1);
    let (mut worker, mut databases) = planes.busy();
    let leader = planes.wait_for_leader();
    let term = planes.all[leader].0.count("term");
    let (mut killed, address) = planes.all.remove(leader);
    killed.kill();
    assert!(planes.wait_until_leads(0) > term);
    worker.tell("go");
    all_go_on(&mut databases);
    // Back where it was, it stands by; then it is its turn.
    planes.start(Some(address));
    let (mut other, _) = planes.all.remove(0);
    other.kill();
    planes.wait_until_leads(0);
    all_go_on(&mut databases);
    planes.cluster.finish(databases);
}

#[test]
fn a_leader_that_is_told_to_end_lets_the_other_lead() {
    let mut planes = Planes::new(1);
    let (mut worker, mut databases) = planes.busy();
    let leader = planes.wait_for_leader();
    let jobs = planes.cluster.report().jobs.len();
    planes.all[leader].0.ask("end");
    planes.wait_until_leads(1 - leader);
    let ended = &mut planes.all[leader].0;
    assert_eq!(ended.count("leads"), 0);
    let log = &planes.all[1 - leader].0;
    let found = log.logs(&["this control plane leads"]);
    assert!(jobs >= 2 && !found.contains(" jobs=0"), "{found}");
    // Who talked to the one that leads no more was told so, and asked the other one.
    for database in &databases {
        database.logs(&["no control plane here", "does not lead"]);
    }
    worker.tell("go");
    all_go_on(&mut databases);
    planes.cluster.finish(databases);
}

#[test]
fn a_leader_frozen_past_its_lease_writes_nothing_and_hands_out_nothing() {
    let mut planes = Planes::new(1);
    let (mut worker, mut databases) = planes.busy();
    let leader = planes.wait_for_leader();
    planes.all[leader].0.freeze();
    planes.wait_until_leads(1 - leader);
    worker.tell("go");
    all_go_on(&mut databases);
    let said = |planes: &Planes| {
        let log = planes.all[leader].0.log_text();
        [
            "given to a worker",
            "done; the database is told",
            "sent home",
        ]
        .map(|what| log.matches(what).count())
    };
    let before = said(&planes);
    planes.all[leader].0.thaw();
    planes.all[leader]
        .0
        .logs(&["this control plane leads no more"]);
    all_go_on(&mut databases);
    assert_eq!(said(&planes), before);
    assert_eq!(planes.all[leader].0.count("leads"), 0);
    // Had anything of it arrived, the other one would have been deposed by it.
    let other = planes.all[1 - leader].0.log_text();
    assert!(!other.contains(Why::Deposed.words()), "{other}");
    planes.cluster.finish(databases);
}

#[test]
fn control_planes_without_etcd_send_everybody_home_and_come_back_with_it() {
    let mut planes = Planes::new(1);
    let (mut worker, mut databases) = planes.busy();
    let leader = planes.wait_for_leader();
    let term = planes.all[leader].0.count("term");
    planes.etcd.kill(0);
    let stops = &mut planes.all[leader].0;
    until("it stops leading", || stops.count("leads") == 0);
    all_compact_at_home(&mut databases);
    worker.tell("go");
    planes.etcd.again(0);
    let leader = planes.wait_for_leader();
    assert!(planes.all[leader].0.count("term") > term);
    all_go_on(&mut databases);
    planes.cluster.finish(databases);
}

#[test]
fn an_etcd_that_lost_its_data_is_an_empty_store() {
    let mut planes = Planes::new(1);
    let (mut worker, mut databases) = planes.busy();
    planes.etcd.kill(0);
    planes.etcd.forget(0);
    planes.etcd.again(0);
    worker.tell("go");
    all_go_on(&mut databases);
    planes.cluster.finish(databases);
}

#[test]
fn one_of_three_members_of_etcd_is_not_missed() {
    for place in 0..3 {
        let mut planes = Planes::new(3);
        let (mut worker, mut databases) = planes.busy();
        planes.etcd.kill(place);
        worker.tell("go");
        all_go_on(&mut databases);
        planes.cluster.finish(databases);
    }
}

#[test]
fn a_control_plane_says_why_it_does_not_reach_etcd() {
    let mut cluster = Cluster::without_control(&Settings::default(), Security::default());
    let refused = cluster.try_plane("127.0.0.1:1", None).map(|_| ());
    let why = refused.unwrap_err();
    assert!(why.contains("no member of etcd answers"), "{why}");
    assert!(why.contains("127.0.0.1:1"), "{why}");
}
