//! Every kind of fault takes effect, and what it does is counted: a kind that nothing counts
//! would be a kind that no test has met.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::toys::counter::Counters;
use crate::toys::ping::{Pings, Play};
use manxdb_core::{Nanos, NodeId};
use manxdb_sim::counters::Counters as Counts;
use manxdb_sim::{
    ClockOptions, CostModel, Link, Profile, SimTime, Topology, Transport, World, WorldOptions,
};
use manxdb_test_harness::seeds;

const NODES: u32 = 6;
const END: SimTime = SimTime::from_secs(4);

fn options(seed: u64) -> WorldOptions {
    let link = |millis| Link::after(Nanos::from_millis(millis)).with_jitter(Nanos(500_000));
    let mut options = WorldOptions::new(seed, Topology::even(2, NODES / 2, link(2), link(20)));
    options.cost = CostModel::default();
    options.cost.sync = Nanos::from_millis(3);
    options.clocks = ClockOptions {
        offset_max: Nanos::from_millis(5),
        drift_max_ppm: 100,
    };
    options
}

/// Games and records under the plan of a seed; what went wrong.
fn troubles(seed: u64, transport: Transport) -> Counts {
    let mut options = options(seed);
    options.transport = transport;
    let topology = options.topology.clone();
    let plan = Profile::everything(&topology, END).draw(seed, &topology);
    let mut pings = World::new(Pings, options.clone());
    let mut counters = World::new(Counters::default(), options);
    pings.schedule_all(&plan);
    counters.schedule_all(&plan);
    for number in 0..400_u64 {
        let at = SimTime::from_millis(number * 10);
        let node = NodeId(u32::try_from(number).unwrap() % NODES);
        let with = NodeId((node.0 + 1) % NODES);
        let times = 3;
        pings.outside().request_at(at, node, Play { with, times });
        counters.outside().request_at(at, node, ());
    }
    pings.run_alone(END).unwrap();
    counters.run_alone(END).unwrap();
    let mut counts = pings.counters().clone();
    counts.add_troubles(counters.counters());
    counts
}

#[test]
fn every_kind_of_fault_happens() {
    let mut counts = Counts::default();
    for seed in 0..seeds(300) {
        counts.add_troubles(&troubles(seed, Transport::default()));
        counts.add_troubles(&troubles(seed, Transport::Datagram));
    }
    println!("{counts}");
    for name in [
        "crash",
        "wipe",
        "pause",
        "slow",
        "step",
        "drift",
        "freeze",
        "disk-slow",
        "disk-full",
        "disk-fails",
        "cut",
        "part",
        "loss",
        "duplicate",
        "reorder",
        "delay",
        "message cut off",
        "message doubled",
        "message held by a partition",
        "message held up",
        "message lost",
        "message lost by a crash",
        "message to a dead node",
        "packet sent again",
        "record lost",
        "record torn",
        "request lost",
        "restart",
        "sync failed",
    ] {
        let count = counts.troubles().get(name).copied().unwrap_or(0);
        assert!(count >= 10, "{name}: {count}");
    }
}
