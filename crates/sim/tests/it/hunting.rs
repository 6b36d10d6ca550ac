//! A bug that only some faults show is found, and its plan cut down to one of them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::toys::ring::{PATIENCE, Rings};
use manxdb_core::{Nanos, NodeId};
use manxdb_sim::counters::Counters;
use manxdb_sim::fault::{Choice, DownTogether};
use manxdb_sim::hunt::{Case, hunt};
use manxdb_sim::{CostModel, Ppm, Profile, SimTime, World, WorldOptions};

const NODES: u32 = 5;

fn run(case: &Case) -> Result<(u64, Counters), String> {
    let options = WorldOptions::small(case.seed, NODES);
    let mut world = World::new(Rings { nodes: NODES }, options);
    world.schedule_all(&case.plan);
    let ran = world.run_alone(SimTime::from_secs(2));
    ran.map_err(|failure| failure.to_string())?;
    Ok((world.digest(), world.counters().clone()))
}

fn profile() -> Profile {
    let topology = WorldOptions::small(0, NODES).topology;
    let mut profile = Profile::everything(&topology, SimTime::from_secs(2));
    profile.faults = 5..=9;
    profile.choices = vec![
        Choice::Crash,
        Choice::Pause,
        Choice::ClockStep(Nanos::from_secs(1)),
        Choice::ClockFreeze,
        Choice::Slow(10),
        Choice::Duplicate(Ppm::percent(50)),
    ];
    // Node 0 must not start again: that would be another bug.
    profile.down = vec![DownTogether {
        nodes: (1..NODES).map(NodeId).collect(),
        most: 1,
    }];
    profile
}

#[test]
fn a_planted_bug_is_found_and_its_plan_cut_down() {
    let topology = WorldOptions::small(0, NODES).topology;
    let draw = |seed| profile().draw(seed, &topology);
    let test = |case: &Case| run(case).map(|(digest, _)| digest);
    let found = hunt(0..1_000, draw, test).unwrap_err();
    assert!(found.why.contains("two tokens in round"), "{found}");
    let faults = &found.case.plan.faults;
    assert_eq!(faults.len(), 1, "{found}");
    assert_eq!(faults[0].kind.name(), "pause", "{found}");
    // Half as long would not be enough.
    let lasts = faults[0].lasts;
    assert!(lasts > PATIENCE - Nanos::from_millis(6), "{found}");
    assert!(lasts <= PATIENCE * 2 + Nanos::from_micros(2), "{found}");
    // The line that is printed fails again, the same way.
    let again: Case = found.case.to_string().parse().unwrap();
    assert_eq!(test(&again), Err(found.why));
}

#[test]
fn a_token_takes_the_time_computed_by_hand() {
    let mut options = WorldOptions::small(1, NODES);
    options.cost = CostModel::default();
    let mut world = World::new(Rings { nodes: NODES }, options);
    // Node 0 starts in 1 µs and sends in 4; each hop takes 1 ms, 8 µs to receive, 4 to send. The
    // timer of each round costs node 0 a microsecond, between two tokens.
    let hop = 1_000 + 8 + 4;
    let round = u64::from(NODES) * hop;
    let seen = 5 + 100 * round - 4;
    world.run_alone(SimTime::from_micros(seen - 8 - 1)).unwrap();
    assert_eq!(world.core(NodeId(0)).unwrap().round, 99);
    world.run_alone(SimTime::from_micros(seen)).unwrap();
    assert_eq!(world.core(NodeId(0)).unwrap().round, 100);
    assert_eq!(
        world.counters().sent("token").lan,
        100 * u64::from(NODES) + 1
    );
}
