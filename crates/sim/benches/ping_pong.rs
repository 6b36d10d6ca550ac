//! Events a second of the simulator itself: 300 nodes on a WAN of 50 to 55 ms, each with
//! messages under way to random peers. CPU time of the one thread. `cargo bench -p manxdb-sim`.
//!
//! On one core of an AMD EPYC whose caches ten other processes were using, in millions of events
//! a CPU second:
//!
//! | network | messages under way per node | events/s |
//! |---|---|---|
//! | FIFO | 8 | 8.4 |
//! | FIFO, CPU model on | 8 | 7.3 |
//! | datagrams | 8 | 13.1 |
//! | FIFO | 300 | 5.3 |
//! | datagrams | 300 | 5.7 |
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::cast_precision_loss)]

use manxdb_core::channel::Life;
use manxdb_core::{
    Actions, Core, Digest, Event, EventOf, LocalTime, Message, Nanos, NodeId, Random, Weight,
};
use manxdb_sim::{CostModel, Link, SimTime, System, Topology, Transport, World, WorldOptions};

const NODES: u32 = 300;
const ROUNDS: usize = 5;

#[derive(Debug, Clone, Copy)]
enum Ball {
    Ping,
    Pong,
}

impl Message for Ball {
    fn weight(&self) -> Weight {
        Weight::Report
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::Pong => "pong",
        }
    }
}

/// Keeps some pings under way.
struct Player {
    random: Random,
    in_flight: u32,
    pongs: u64,
}

impl Core for Player {
    type Message = Ball;
    type Timer = ();
    type Request = ();
    type Reply = ();
    type Record = ();

    fn step(&mut self, _: LocalTime, event: EventOf<Self>, out: &mut Actions<Self>) {
        let pings = match event {
            Event::Start => self.in_flight,
            Event::Message {
                from,
                body: Ball::Ping,
            } => {
                out.send(from, Ball::Pong);
                0
            }
            Event::Message { .. } => {
                self.pongs += 1;
                1
            }
            _ => 0,
        };
        for _ in 0..pings {
            let peer = self.random.below(u64::from(NODES));
            out.send(NodeId(u32::try_from(peer).unwrap()), Ball::Ping);
        }
    }

    /// Nothing: what is measured is a step without one.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        digest.number(self.pongs);
        digest.value()
    }
}

struct Players {
    in_flight: u32,
}

impl System for Players {
    type Core = Player;

    fn start(&mut self, node: NodeId, _: Life, _: Vec<()>) -> Player {
        Player {
            random: Random::stream(1, &[u64::from(node.0)]),
            in_flight: self.in_flight,
            pongs: 0,
        }
    }
}

/// Processor time of this thread, as Linux counts it: others may use the machine as well.
fn processor_nanoseconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().unwrap_or_default();
    first.parse().unwrap_or(f64::NAN)
}

/// The median rate of several rounds, in millions of events a second.
fn measure(what: &str, in_flight: u32, secs: u64, change: impl Fn(&mut WorldOptions)) {
    let wan = Link::after(Nanos::from_micros(52_500)).with_jitter(Nanos::from_micros(2_500));
    let mut rates = Vec::new();
    let mut events = 0;
    for _ in 0..ROUNDS {
        let mut options = WorldOptions::new(1, Topology::single(NODES, wan));
        options.check = false;
        change(&mut options);
        let mut world = World::new(Players { in_flight }, options);
        let start = processor_nanoseconds();
        world.run_alone(SimTime::from_secs(secs)).unwrap();
        events = world.counters().events;
        rates.push(events as f64 * 1e3 / (processor_nanoseconds() - start));
    }
    rates.sort_by(f64::total_cmp);
    let rate = rates[ROUNDS / 2];
    println!("{what:<28} {in_flight:>4} in flight  {events:>9} events  {rate:>6.2} M/s");
}

fn main() {
    let datagram = |options: &mut WorldOptions| options.transport = Transport::Datagram;
    measure("fifo", 8, 60, |_| {});
    measure("fifo, costs", 8, 60, |options| {
        options.cost = CostModel::default();
    });
    measure("datagram", 8, 60, datagram);
    measure("fifo", 300, 5, |_| {});
    measure("datagram", 300, 5, datagram);
}
