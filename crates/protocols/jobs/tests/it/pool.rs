//! A pool without faults, and one with everything that can go wrong.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::common::{CONTROL, Load, Pool, Shape, why};
use manxdb_jobs::Policy;
use manxdb_jobs::job::LocalReason;
use manxdb_jobs::mutants::Mutant;
use manxdb_jobs::node::Node;
use manxdb_sim::fault::{Choice, DownTogether, Plan, Profile};
use manxdb_sim::hunt::{Case, hunt};
use manxdb_sim::{Ppm, SimTime, World};

const SHAPE: Shape = Shape {
    workers: 3,
    databases: 4,
    slots: 2,
};

fn report(world: &World<Pool>) -> manxdb_jobs::control::Report {
    match world.core(CONTROL) {
        Some(Node::Control(control)) => control.report(),
        other => panic!("{other:?} is no control plane"),
    }
}

#[test]
fn without_faults_every_job_is_done_by_a_worker_and_leaves_nothing() {
    for policy in Policy::ALL {
        let mut pool = Pool::new(SHAPE, 7);
        pool.options.policy = policy;
        let mut world = World::new(pool, SHAPE.world(7));
        let mut load = Load::new(SHAPE, SimTime::from_secs(60));
        world.run_until(&mut load, SimTime::from_secs(100)).unwrap();
        assert_eq!(load.problems, Vec::<String>::new());
        assert!(load.asked.len() > 400, "{} asked", load.asked.len());
        let by_workers = load.done * 100 / load.asked.len() as u64;
        // CaaS-LSM's sends jobs home whenever six wait, as they do while it sleeps.
        let least = if policy == Policy::CaasLevel { 50 } else { 100 };
        assert!(by_workers >= least, "{}: {by_workers} %", policy.name());
        assert_eq!(load.open(), 0, "{}", policy.name());
        assert_eq!(report(&world).jobs, Vec::new(), "{}", policy.name());
    }
}

/// Everything may go wrong with everybody, also all at once.
fn plan(seed: u64) -> Plan {
    let world = SHAPE.world(seed);
    let until = SimTime::from_secs(40);
    let mut profile = Profile::everything(&world.topology, until);
    profile.choices = Profile::all_choices();
    // A control plane that cannot write says nothing: like one that is away.
    profile
        .choices
        .retain(|choice| !matches!(choice, Choice::PartRegion));
    profile
        .choices
        .extend([Choice::Crash, Choice::Loss(Ppm::percent(20))]);
    profile.down = vec![DownTogether {
        nodes: world.topology.node_ids().collect(),
        most: world.topology.nodes(),
    }];
    profile.draw(seed, &world.topology)
}

fn run(case: &Case) -> Result<u64, String> {
    run_pool(case, Pool::new(SHAPE, case.seed))
}

fn run_pool(case: &Case, pool: Pool) -> Result<u64, String> {
    let client = pool.client;
    let mut world = World::new(pool, SHAPE.world(case.seed));
    for fault in &case.plan.faults {
        world.schedule(fault.clone());
    }
    let mut load = Load::new(SHAPE, SimTime::from_secs(45));
    load.transient_percent = case.seed % 3 * 5;
    let failed = world.run_until(&mut load, SimTime::from_secs(100));
    failed.map_err(|failure| failure.to_string())?;
    let left: Vec<_> = report(&world).jobs.iter().map(|line| line.job).collect();
    load.judge(client, &left)?;
    Ok(world.core(CONTROL).map_or(0, manxdb_core::Core::digest))
}

#[test]
fn under_faults_every_job_ends_once_and_no_result_goes_to_another() {
    hunt(0..1_000, plan, run).unwrap();
}

/// What is wrong with a pool when something is left out, and with as few faults as it needs.
fn found(change: impl Fn(&mut Pool)) -> String {
    why(hunt(0..300, plan, |case| {
        let mut pool = Pool::new(SHAPE, case.seed);
        change(&mut pool);
        run_pool(case, pool)
    }))
}

#[test]
fn sessions_that_look_alike_are_found() {
    let why = found(|pool| pool.same_sessions = true);
    assert!(
        why.contains("result") || why.contains("never ended"),
        "{why}"
    );
}

#[test]
fn attempts_without_tokens_are_found() {
    let why = found(|pool| pool.options.mutant = Some(Mutant::NoTokens));
    assert!(why.contains("begun twice"), "{why}");
}

#[test]
fn late_ends_taken_for_present_ones_are_found() {
    let why = found(|pool| pool.options.mutant = Some(Mutant::TakesLateEnds));
    assert!(why.contains("says otherwise"), "{why}");
}

#[test]
fn jobs_not_given_up_with_their_database_are_found() {
    let why = found(|pool| pool.options.mutant = Some(Mutant::KeepsJobsOfTheDead));
    assert!(why.contains("jobs are left"), "{why}");
}

/// Jobs that were sent home because nobody finished them in time, through one fault.
fn overdue_through(fault: &str, mutant: Option<Mutant>) -> usize {
    let mut pool = Pool::new(SHAPE, 3);
    pool.options.mutant = mutant;
    let mut world = World::new(pool, SHAPE.world(3));
    world.schedule(fault.parse().unwrap());
    let mut load = Load::new(SHAPE, SimTime::from_secs(30));
    world.run_until(&mut load, SimTime::from_secs(80)).unwrap();
    assert_eq!((load.open(), load.problems.len()), (0, 0));
    load.locals(LocalReason::Deadline)
}

#[test]
fn what_a_dead_worker_ran_is_run_by_another_within_its_lease() {
    let death = "10s+60s crash n1";
    assert_eq!(overdue_through(death, None), 0);
    assert!(overdue_through(death, Some(Mutant::LeasesForEver)) > 0);
}

/// Milliseconds that 99 of 100 jobs take at most, and jobs sent home, of 49 databases that share
/// four workers with another one.
fn beside(greedy: bool, policy: Policy) -> (u64, usize) {
    let shape = Shape {
        workers: 4,
        databases: 50,
        slots: 2,
    };
    let mut pool = Pool::new(shape, 11);
    pool.options.policy = policy;
    let mut world = World::new(pool, shape.world(11));
    let mut load = Load::new(shape, SimTime::from_secs(60));
    load.gap = 15.0;
    load.greedy = greedy.then(|| shape.database(0));
    world.run_until(&mut load, SimTime::from_secs(120)).unwrap();
    let (waits, sent_home) = load.others();
    let p99 = waits[waits.len() * 99 / 100];
    (p99.0 / 1_000_000, sent_home)
}

#[test]
fn a_greedy_database_costs_its_neighbours_little() {
    let (alone, _) = beside(false, Policy::Manxdb);
    let (beside_it, sent_home) = beside(true, Policy::Manxdb);
    assert_eq!(sent_home, 0);
    assert!(
        beside_it < 3 * alone,
        "{alone} ms alone, {beside_it} ms beside"
    );
    let (in_turn, _) = beside(true, Policy::Random);
    assert!(
        in_turn > 3 * alone,
        "in the order of arrival {in_turn} ms: nothing is shown"
    );
}

#[test]
fn a_refusal_bans_its_worker_also_when_every_third_message_is_lost() {
    for seed in 0..40 {
        let mut world = World::new(Pool::new(SHAPE, seed), SHAPE.world(seed));
        world.schedule("0s+60s loss *>* 330000ppm".parse().unwrap());
        let mut load = Load::new(SHAPE, SimTime::from_secs(20));
        load.bad_worker = Some(Shape::worker(1));
        world.run_until(&mut load, SimTime::from_secs(50)).unwrap();
        let banned = report(&world).banned.len();
        assert_eq!((banned, load.refused > 0), (1, true), "seed {seed}");
    }
}

#[test]
fn jobs_that_a_control_plane_forgot_are_submitted_again() {
    let amnesia = "10s+200ms wipe n0";
    assert_eq!(overdue_through(amnesia, None), 0);
    assert!(overdue_through(amnesia, Some(Mutant::NeverMends)) > 0);
}
