//! What a world does to small cores, against examples computed by hand.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::toys::counter::Counters;
use crate::toys::ping::{Pings, Play};
use crate::toys::seen::Seen;
use manxdb_core::{Nanos, NodeId, RequestId};
use manxdb_sim::clock::EPOCH;
use manxdb_sim::explain::{CLIENT, LAN, QUEUE, WORK, explain};
use manxdb_sim::timeline::timeline;
use manxdb_sim::trace::Record;
use manxdb_sim::{ClockOptions, CostModel, Link, NoDriver, SimTime, Topology, World, WorldOptions};

const A: NodeId = NodeId(0);
const B: NodeId = NodeId(1);

fn play(times: u32) -> Play {
    Play { with: B, times }
}

#[test]
fn without_costs_a_latency_is_message_delays_alone() {
    let mut options = WorldOptions::small(1, 2);
    options.client_delay = Nanos::from_micros(250);
    let mut world = World::new(Pings, options);
    let mut seen = Seen::default();
    world.outside().request(A, play(3));
    world.run_until(&mut seen, SimTime::MAX).unwrap();
    let (at, id, _) = seen.replies[0];
    assert_eq!((at, id), (SimTime::from_micros(6_500), RequestId(0)));
    assert_eq!(world.counters().sent("ping").lan, 3);
    assert_eq!(world.counters().sent_in_all().sum(), 6);
    assert_eq!(world.waiting(), 0);
}

#[test]
fn the_cpu_is_paid_for_in_line() {
    let mut options = WorldOptions::small(1, 3);
    options.cost = CostModel::default();
    options.cost.wake = Nanos::ZERO;
    let mut world = World::new(Pings, options);
    let mut seen = Seen::default();
    // Two games against B at the same moment, from A and from C.
    world.outside().request(A, play(1));
    world.outside().request(NodeId(2), play(1));
    world.run_until(&mut seen, SimTime::MAX).unwrap();
    // Request: receive 8, send 4 + 2·0.5 = 13 µs. At B: receive 8 + 2, execute 15, send 5 = 30.
    // Pong: receive 10, reply 4 = 14. Network 2 × 1 ms. The second game waits 30 at B.
    let first = 13 + 1_000 + 30 + 1_000 + 14;
    assert_eq!(seen.replies[0].0, SimTime::from_micros(first));
    assert_eq!(seen.replies[1].0, SimTime::from_micros(first + 30));
    assert_eq!(world.cpu_busy(B), Nanos::from_micros(60));
    assert_eq!(world.cpu_busy(A), Nanos::from_micros(13 + 14));
    // A step sees the clock of its turn, not of its arrival.
    let turns = &world.core(B).unwrap().clock;
    assert_eq!(turns[2].since(turns[1]), Nanos::from_micros(30));
}

#[test]
fn a_node_without_a_price_adds_nothing() {
    let mut options = WorldOptions::small(1, 2);
    options.cost = CostModel::default();
    let mut world = World::new(Pings, options);
    world.make_cpu_free(A);
    let mut seen = Seen::default();
    world.outside().request(A, play(1));
    world.run_until(&mut seen, SimTime::MAX).unwrap();
    assert_eq!(seen.replies[0].0, SimTime::from_micros(2_030));
    assert_eq!(world.cpu_busy(A), Nanos::ZERO);
}

#[test]
fn a_core_that_fails_its_check_ends_the_run() {
    let mut world = World::new(Counters { fails_after: 4 }, WorldOptions::small(1, 1));
    world.outside().request(A, ());
    world.outside().request_at(SimTime::from_millis(7), A, ());
    let failure = world.run_alone(SimTime::from_secs(1)).unwrap_err();
    assert_eq!(
        failure.to_string(),
        "at 0.007000000s on node 0: 5 events are too many"
    );
}

#[test]
fn equal_seeds_give_equal_runs_and_other_seeds_others() {
    let run = |seed, mark| {
        let mut options = WorldOptions::small(seed, 5);
        options.explain = mark;
        let link = Link::after(Nanos::from_millis(1)).with_jitter(Nanos::from_micros(300));
        options.topology = Topology::single(5, link);
        let mut world = World::new(Pings, options);
        for node in 0..5 {
            let with = NodeId((node + 1) % 5);
            let times = 100;
            world.outside().request(NodeId(node), Play { with, times });
        }
        world.schedule("20ms+10ms crash n3".parse().unwrap());
        world.run_until(&mut NoDriver, SimTime::MAX).unwrap();
        world.digest()
    };
    assert_eq!(run(1, false), run(1, false));
    assert_eq!(run(1, false), run(1, true), "watching changes nothing");
    assert_ne!(run(1, false), run(2, false));
}

#[test]
fn clocks_are_wrong_within_bounds_and_each_in_its_own_way() {
    let mut options = WorldOptions::small(3, 200);
    options.clocks = ClockOptions {
        offset_max: Nanos::from_millis(5),
        drift_max_ppm: 200,
    };
    let mut world = World::new(Pings, options);
    let ids: Vec<_> = world.topology().node_ids().collect();
    let shown = |world: &World<Pings>| {
        let ahead = |id: &NodeId| {
            let right = EPOCH + world.now().since(SimTime::ZERO);
            world.local_time(*id).0.cast_signed() - right.0.cast_signed()
        };
        ids.iter().map(ahead).collect::<Vec<i64>>()
    };
    let first = shown(&world);
    world.run_alone(SimTime::from_secs(10)).unwrap();
    let drifts = shown(&world).into_iter().zip(&first);
    let drifts: Vec<i64> = drifts.map(|(later, first)| later - first).collect();
    for (spans, most) in [(first, 5_000_000), (drifts, 2_000_000)] {
        assert!(spans.iter().all(|span| span.abs() <= most));
        assert!(spans.iter().any(|span| *span > most / 10 * 9));
        assert!(spans.iter().any(|span| *span < -most / 10 * 9));
    }
}

#[test]
fn a_latency_is_split_along_the_steps_that_led_to_the_answer() {
    let mut options = WorldOptions::small(1, 3);
    options.cost = CostModel::default();
    options.cost.wake = Nanos::ZERO;
    options.client_delay = Nanos::from_micros(100);
    options.explain = true;
    let mut world = World::new(Pings, options);
    let mut seen = Seen::default();
    world.outside().request(NodeId(2), play(1));
    world.outside().request(A, play(1));
    world.run_until(&mut seen, SimTime::MAX).unwrap();
    let (at, id, _) = seen.replies[1];
    assert_eq!(id, RequestId(1));
    let steps = world.outside().take_steps(1);
    let parts = explain(SimTime::ZERO, at, &steps);
    let parts = parts.iter();
    let parts = parts.map(|part| (part.reason, part.label, part.span().as_micros()));
    // The costs are those of the test above: B is busy with the other game for 30 µs.
    let expected = [
        (CLIENT, None, 100),
        (WORK, None, 13),
        (LAN, Some("ping"), 1_000),
        (QUEUE, None, 30),
        (WORK, None, 30),
        (LAN, Some("pong"), 1_000),
        (WORK, None, 14),
        (CLIENT, None, 100),
    ];
    assert_eq!(parts.collect::<Vec<_>>(), expected);
    assert!(world.outside().take_steps(1).is_empty());
    assert_eq!(world.steps().count(), 1, "the other game's");
}

#[test]
fn a_recorded_transaction_is_drawn() {
    let mut options = WorldOptions::small(1, 3);
    options.cost = CostModel::default();
    options.record = Record::Txn(0);
    let mut world = World::new(Pings, options);
    world.outside().request(A, play(2));
    world.outside().request(NodeId(2), play(1));
    world.run_alone(SimTime::from_secs(1)).unwrap();
    let drawn = "\
transaction 0, from 0.000014000s
       ms  n0       n1
    0.000  *        │        asked
    1.000  •───────▶│        ping
    2.030  │◀───────•        pong
    3.045  •───────▶│        ping
    4.075  │◀───────•        pong
    4.089  *        │        back
    4.089  ◇        │        reply
";
    assert_eq!(timeline(world.trace().rows(), 0, "0"), drawn);
}

#[test]
fn a_second_server_takes_reports_out_of_the_line() {
    let mut options = WorldOptions::small(1, 2);
    options.cost = CostModel::default();
    options.cost.wake = Nanos::ZERO;
    let mut run = |server| {
        options.cost.report_server = server;
        let mut world = World::new(Pings, options.clone());
        let mut seen = Seen::default();
        world.outside().request(A, play(1));
        // Balls of the last round are reports.
        world.outside().request(A, play(0));
        world.run_until(&mut seen, SimTime::MAX).unwrap();
        let replies = seen.replies.iter();
        let reply = |(at, id, _): &(SimTime, RequestId, _)| (id.0, at.0 / 1_000);
        replies.map(reply).collect::<Vec<_>>()
    };
    // At A: 8 + 5 and 8 + 2 µs. B gets the call at 1,013 and is done 30 later. It gets the report
    // at 1,023: 3 + 15 + 2 µs beside the call, or behind it. A takes 14 and 7 µs for the pongs.
    assert_eq!(run(true), [(1, 2_050), (0, 2_057)]);
    assert_eq!(run(false), [(0, 2_057), (1, 2_070)]);
}
