//! What faults do to small cores, against examples computed by hand.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::toys::counter::Counters;
use crate::toys::ping::{Pings, Play};
use crate::toys::seen::Seen;
use manxdb_core::{LocalTime, Nanos, NodeId};
use manxdb_sim::clock::{Clock, EPOCH};
use manxdb_sim::{
    CostModel, Fault, FaultKind, Link, SimTime, Topology, Transport, World, WorldOptions,
};
use manxdb_test_harness::seeds;

const A: NodeId = NodeId(0);
const B: NodeId = NodeId(1);

fn play(times: u32) -> Play {
    Play { with: B, times }
}

fn fault(text: &str) -> Fault {
    text.parse().unwrap()
}

#[test]
fn a_slow_node_takes_longer_while_it_is_slow() {
    let mut options = WorldOptions::small(1, 2);
    options.cost = CostModel::default();
    let mut world = World::new(Pings, options);
    world.schedule(fault("1s+1s slow n1 x10"));
    let mut seen = Seen::default();
    let outside = &mut world.outside();
    for secs in [0, 1, 3] {
        outside.request_at(SimTime::from_secs(secs) + Nanos(1_000_000), A, play(1));
    }
    world.run_until(&mut seen, SimTime::MAX).unwrap();
    let spans: Vec<u64> = [0, 1, 3]
        .iter()
        .zip(&seen.replies)
        .map(|(secs, reply)| reply.0.since(SimTime::from_secs(*secs)).as_micros() - 1_000)
        .collect();
    assert_eq!(spans, [2_057, 2_057 + 270, 2_057]);
}

#[test]
fn clocks_step_and_drift_and_timers_follow_only_the_drift() {
    let mut world = World::new(Pings, WorldOptions::small(1, 2));
    world.set_clock(B, Clock::new(5_000, 100));
    world.schedule(fault("1s+0s step n0 -500ms"));
    world.schedule(fault("2s+1s freeze n0"));
    world.schedule(fault("2s+1s drift n1 1000ppm"));
    let mut shown = Vec::new();
    for secs in 1..=4 {
        world.run_alone(SimTime::from_secs(secs)).unwrap();
        let ahead = |time: LocalTime| time.0 - EPOCH.0;
        shown.push((ahead(world.local_time(A)), ahead(world.local_time(B))));
    }
    assert_eq!(
        shown,
        [
            (500_000_000, 1_000_105_000),
            (1_500_000_000, 2_000_205_000),
            (1_500_000_000, 3_001_305_000),
            (2_500_000_000, 4_001_405_000),
        ]
    );
}

#[test]
fn a_crash_loses_what_no_sync_has_covered_and_no_acknowledged_record() {
    let (mut lost, mut torn) = (0, 0);
    for seed in 0..seeds(200) {
        let mut options = WorldOptions::small(seed, 1);
        options.cost = CostModel::default();
        options.cost.sync = Nanos::from_micros(500);
        let mut world = World::new(Counters::default(), options);
        let mut seen = Seen::default();
        for number in 0..50 {
            let at = SimTime::from_micros(number * 100);
            world.outside().request_at(at, A, ());
        }
        world.schedule(fault("2750us+1ms crash n0"));
        world.run_until(&mut seen, SimTime::MAX).unwrap();
        let restart = SimTime::from_micros(3_750);
        let crash = SimTime::from_micros(2_750);
        assert_eq!(seen.changes, [(crash, A, false), (restart, A, true)]);
        let old = seen.replies.iter().filter(|reply| reply.0 <= crash);
        assert!(old.clone().count() > 10);
        // Acknowledged before: on disk after. Nobody hears of the rest.
        let acknowledged = old.count() as u64;
        let again = seen.replies.iter().filter(|reply| reply.0 > crash);
        let first = again.clone().map(|reply| reply.2).min().unwrap();
        assert!(first > acknowledged, "{first} after {acknowledged}");
        assert!(again.clone().all(|reply| reply.1.0 >= 38), "too late");
        assert_eq!(world.life(A).0, 2);
        assert_eq!(world.disk(A).len() as u64, world.core(A).unwrap().value);
        assert_eq!(world.counters().troubles()["request lost"], 10);
        lost += world.counters().troubles().get("record lost").unwrap_or(&0);
        torn += world.counters().troubles().get("record torn").unwrap_or(&0);
    }
    assert!(lost > 200 && torn > 50, "{lost} lost, {torn} torn");
}

#[test]
fn a_wiped_node_starts_with_an_empty_disk() {
    let mut world = World::new(Counters::default(), WorldOptions::small(1, 1));
    world.outside().request(A, ());
    world.schedule(fault("1ms+1ms wipe n0"));
    world.run_alone(SimTime::from_secs(1)).unwrap();
    assert_eq!(world.core(A).unwrap().value, 0);
    assert_eq!(world.life(A).0, 2);
}

#[test]
fn a_failed_sync_ends_the_process_and_a_full_disk_makes_it_wait() {
    let mut options = WorldOptions::small(1, 1);
    options.cost.sync = Nanos::from_micros(100);
    let mut world = World::new(Counters::default(), options);
    let mut seen = Seen::default();
    world.schedule(fault("1ms+9ms disk-full n0"));
    world.schedule(fault("20ms+10ms disk-fails n0"));
    world.outside().request_at(SimTime::from_millis(2), A, ());
    world.outside().request_at(SimTime::from_millis(25), A, ());
    world.outside().request_at(SimTime::from_millis(40), A, ());
    world.run_until(&mut seen, SimTime::MAX).unwrap();
    let times: Vec<_> = seen.replies.iter().map(|reply| reply.0).collect();
    let expected = [10_100, 40_100].map(SimTime::from_micros);
    assert_eq!(times, expected);
    let down = (SimTime::from_micros(25_100), A, false);
    assert_eq!(seen.changes, [down, (SimTime::from_millis(30), A, true)]);
}

#[test]
fn in_flight_to_or_from_a_crashed_node_is_lost_on_fifo_links() {
    for (crash, replies) in [("n0", 0), ("n1", 0), ("n2", 1)] {
        let mut world = World::new(Pings, WorldOptions::small(1, 3));
        let mut seen = Seen::default();
        world.outside().request(A, play(1));
        world.schedule(fault(&format!("500us+1us crash {crash}")));
        world.run_until(&mut seen, SimTime::MAX).unwrap();
        assert_eq!(seen.replies.len(), replies, "{crash}");
    }
}

#[test]
fn what_the_cpu_had_not_finished_never_leaves_a_crashed_node() {
    let mut options = WorldOptions::small(1, 2);
    options.transport = Transport::Datagram;
    options.cost = CostModel::default();
    // B has the ping after 1,013 µs and would be done with it after 1,043.
    for (crash, replies) in [("1030us+1us crash n1", 0), ("1050us+1us crash n1", 1)] {
        let mut world = World::new(Pings, options.clone());
        let mut seen = Seen::default();
        let start = SimTime::from_millis(0);
        world.outside().request_at(start, A, play(1));
        world.schedule(fault(crash));
        world.run_until(&mut seen, SimTime::MAX).unwrap();
        assert_eq!(seen.replies.len(), replies, "{crash}");
    }
}

#[test]
fn fifo_messages_wait_out_a_partition_and_datagrams_do_not() {
    let lan = Link::after(Nanos::from_millis(1));
    let topology = Topology::even(2, 1, lan, lan);
    for (transport, expected) in [
        (Transport::default(), Some(101)),
        (Transport::Datagram, None),
    ] {
        let mut options = WorldOptions::new(1, topology.clone());
        options.transport = transport;
        let mut world = World::new(Pings, options);
        let mut seen = Seen::default();
        world.schedule(fault("0s+100ms cut r1 r0"));
        world
            .outside()
            .request_at(SimTime::from_millis(5), A, play(1));
        world.run_until(&mut seen, SimTime::MAX).unwrap();
        let at = seen.replies.first().map(|reply| reply.0);
        assert_eq!(at, expected.map(SimTime::from_millis));
    }
}

#[test]
fn a_pause_holds_everything_up_and_loses_nothing() {
    let mut world = World::new(Pings, WorldOptions::small(1, 2));
    let mut seen = Seen::default();
    world.schedule(fault("500us+99500us pause n1"));
    world.outside().request(A, play(1));
    world.run_until(&mut seen, SimTime::MAX).unwrap();
    assert_eq!(seen.replies[0].0, SimTime::from_millis(101));
}

#[test]
fn a_node_that_crashes_while_it_pauses_starts_with_an_empty_line() {
    let mut world = World::new(Pings, WorldOptions::small(1, 2));
    world.schedule(fault("500us+99500us pause n1"));
    world.schedule(fault("2ms+1ms crash n1"));
    world.outside().request(A, play(1));
    world.run_alone(SimTime::from_secs(1)).unwrap();
    let shown = &world.core(B).unwrap().clock;
    assert_eq!(*shown, [EPOCH + Nanos::from_millis(3)]);
}

#[test]
fn faults_on_a_node_that_is_down_do_nothing() {
    let mut world = World::new(Counters::default(), WorldOptions::small(1, 1));
    world.schedule(fault("1ms+9ms crash n0"));
    world.schedule(fault("2ms+1ms crash n0"));
    world.schedule(fault("3ms+1ms slow n0 x9"));
    let kind = FaultKind::Crash {
        node: A,
        disk_lost: false,
    };
    assert_eq!(kind.to_string(), "crash n0");
    world.run_alone(SimTime::from_millis(9)).unwrap();
    assert!(
        world.core(A).is_none(),
        "the second crash's end wakes nobody"
    );
    world.run_alone(SimTime::from_millis(11)).unwrap();
    assert!(world.core(A).is_some());
    assert_eq!(world.counters().troubles()["crash"], 1);
    assert!(!world.counters().troubles().contains_key("slow"));
}

#[test]
fn the_start_comes_before_a_message_of_the_same_nanosecond() {
    let mut options = WorldOptions::small(1, 2);
    options.transport = Transport::Datagram;
    let mut world = World::new(Pings, options);
    let mut seen = Seen::default();
    world.schedule(fault("500us+1500us crash n1"));
    let at = SimTime::from_millis(1);
    world.outside().request_at(at, A, play(1));
    world.run_until(&mut seen, SimTime::MAX).unwrap();
    assert_eq!(seen.replies[0].0, SimTime::from_millis(3));
}

#[test]
fn a_node_stays_down_until_the_last_fault_that_keeps_it_down_is_over() {
    let mut options = WorldOptions::small(1, 1);
    options.cost.sync = Nanos::from_millis(1);
    let mut world = World::new(Counters::default(), options);
    let mut seen = Seen::default();
    world.schedule(fault("1ms+9ms disk-fails n0"));
    world.schedule(fault("2ms+18ms crash n0"));
    world.schedule(fault("30ms+9ms disk-fails n0"));
    world.schedule(fault("31ms+2ms crash n0"));
    // Fails after the second crash is over.
    world.outside().request_at(SimTime::from_millis(34), A, ());
    world.run_until(&mut seen, SimTime::MAX).unwrap();
    let changes = [
        (2, false),
        (20, true),
        (31, false),
        (33, true),
        (35, false),
        (39, true),
    ];
    let changes = changes.map(|(millis, up)| (SimTime::from_millis(millis), A, up));
    assert_eq!(seen.changes, changes);
}
