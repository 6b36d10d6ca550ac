//! Two control planes over one store, of which one leads: whatever fails, no leader of before
//! writes or says anything, no job is lost, and no result goes to another.
#![allow(clippy::unwrap_used, clippy::panic)]

mod scripts;
mod world;

use std::rc::Rc;

use crate::common::{Load, why};
use manxdb_core::{LocalTime, Nanos};
use manxdb_jobs::election::Term;
use manxdb_jobs::mutants::Mutant;
use manxdb_sim::fault::{Choice, DownTogether, Plan, Profile};
use manxdb_sim::hunt::{Case, hunt};
use manxdb_sim::{Ppm, SimTime, World};
use world::{Kept, Pair, SHAPE, world};

/// All that can go wrong, but with clocks that run: leases stand on them.
fn plan(seed: u64) -> Plan {
    let world = world(seed);
    let mut profile = Profile::everything(&world.topology, SimTime::from_secs(40));
    profile.choices = vec![
        Choice::Crash,
        Choice::Crash,
        Choice::Pause,
        Choice::Pause,
        Choice::Slow(20),
        Choice::CutNode,
        Choice::CutNode,
        Choice::PartNode,
        Choice::PartNode,
        Choice::Loss(Ppm::percent(30)),
        Choice::Duplicate(Ppm::percent(50)),
        Choice::Reorder(Ppm::percent(30), Nanos::from_millis(300)),
        Choice::Delay(Nanos::from_millis(80)),
    ];
    profile.faults = 2..=10;
    profile.down = vec![DownTogether {
        nodes: world.topology.node_ids().collect(),
        most: world.topology.nodes(),
    }];
    profile.draw(seed, &world.topology)
}

fn run(case: &Case) -> Result<u64, String> {
    run_pair(case, Pair::new(case.seed))
}

fn run_pair(case: &Case, pair: Pair) -> Result<u64, String> {
    let client = pair.pool.client;
    let kept = Rc::clone(&pair.kept);
    let mut world = World::new(pair, world(case.seed));
    world.schedule_all(&case.plan);
    let mut load = Load::new(SHAPE, SimTime::from_secs(45));
    load.transient_percent = case.seed % 3 * 5;
    let failed = world.run_until(&mut load, SimTime::from_secs(110));
    failed.map_err(|failure| failure.to_string())?;
    judge_elections(&kept.borrow())?;
    let kept = kept.borrow();
    let left: Vec<_> = kept.durable.jobs.keys().copied().collect();
    load.judge(client, &left)?;
    Ok(kept.elections)
}

fn judge_elections(kept: &Kept) -> Result<(), String> {
    if let Some(problem) = kept.problems.first() {
        return Err(problem.clone());
    }
    for (at, term) in &kept.said {
        let follows = |(_, later): &&(LocalTime, Term)| *later > *term;
        if let Some((since, later)) = kept.elected.iter().find(follows)
            && since <= at
        {
            return Err(format!(
                "{term:?} spoke at {at:?}, {later:?} led since {since:?}"
            ));
        }
    }
    Ok(())
}

#[test]
fn without_faults_one_leads_and_every_job_is_done_by_a_worker() {
    let pair = Pair::new(7);
    let kept = Rc::clone(&pair.kept);
    let mut world = World::new(pair, world(7));
    let mut load = Load::new(SHAPE, SimTime::from_secs(60));
    world.run_until(&mut load, SimTime::from_secs(100)).unwrap();
    judge_elections(&kept.borrow()).unwrap();
    assert_eq!(load.problems, Vec::<String>::new());
    assert!(load.asked.len() > 300, "{} asked", load.asked.len());
    assert_eq!((load.done, load.open()), (load.asked.len() as u64, 0));
    let kept = kept.borrow();
    assert_eq!((kept.elections, kept.durable.jobs.len()), (1, 0));
}

#[test]
fn under_faults_no_leader_of_before_writes_and_every_job_ends_once() {
    hunt(0..600, plan, run).unwrap();
}

/// What is wrong when something is left out, and with as few faults as it needs.
fn found(change: impl Fn(&mut Pair)) -> String {
    why(hunt(0..600, plan, |case| {
        let mut pair = Pair::new(case.seed);
        change(&mut pair);
        run_pair(case, pair)
    }))
}

#[test]
fn a_deposed_leader_that_still_writes_is_found() {
    let why = found(|pair| pair.takes_all = true);
    assert!(why.contains("wrote"), "{why}");
}

#[test]
fn a_leader_that_serves_past_its_lease_is_found() {
    let why = found(|pair| pair.pool.options.mutant = Some(Mutant::ServesPastItsLease));
    assert!(why.contains("spoke"), "{why}");
}

/// How long after the first the second one was elected, through one fault.
fn second_election_through(fault: &str) -> Nanos {
    let pair = Pair::new(3);
    let kept = Rc::clone(&pair.kept);
    let mut world = World::new(pair, world(3));
    world.schedule(fault.parse().unwrap());
    let mut load = Load::new(SHAPE, SimTime::from_secs(30));
    world.run_until(&mut load, SimTime::from_secs(80)).unwrap();
    assert_eq!((load.open(), load.problems.len()), (0, 0));
    let kept = kept.borrow();
    judge_elections(&kept).unwrap();
    assert_eq!(kept.elected.len(), 2, "{fault}: {:?}", kept.elected);
    kept.elected[1].0.since(kept.elected[0].0)
}

#[test]
fn a_leader_that_dies_or_stands_still_is_followed_when_its_lease_has_run_out() {
    for fault in ["10s+60s crash n0", "10s+20s pause n0", "10s+20s part n0 *"] {
        let after = second_election_through(fault);
        // It is elected at once, renews each second, and the other one asks each second.
        let expected = Nanos::from_secs(14)..Nanos::from_millis(16_100);
        assert!(expected.contains(&after), "{fault}: {after:?}");
    }
}
