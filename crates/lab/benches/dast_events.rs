//! Events a CPU second of the simulator with DAST running: `cargo bench -p manxdb-lab --bench
//! dast_events`. An event is what the simulator takes from its queue: a message that arrives, a
//! timer, a request or a reply. CPU time of the one thread; every step is charged to a CPU, and
//! its core's invariants are checked.
//!
//! In millions of events a CPU second, optimised build, nothing beside it:
//!
//! | shards | clients each | FIFO | datagrams, with the channel that puts them in order |
//! |---|---|---|---|
//! | 2 × 1 | 3 | 3.1 | 2.7 |
//! | 3 × 5 | 4 | 2.2 | 1.3 |
//! | 3 × 5 | 16 | 0.9 | 0.6 |
//!
//! A sixth of it moves messages and events about; nothing else stands out. With more clients an
//! event is more often a piece that runs and less often a report.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::cast_precision_loss)]

use manxdb_dast::{Level, Options};
use manxdb_lab::append::{AppendLoad, shared};
use manxdb_lab::candidate::ReliableSystem;
use manxdb_lab::dast::{DastSystem, paper_links, place};
use manxdb_lab::load::{Load, LoadOptions};
use manxdb_sim::{CostModel, SimTime, System, Transport, World, WorldOptions};
use manxdb_workloads::Topology;
use manxdb_workloads::append::Settings;

const ROUNDS: usize = 5;

/// Processor time of this thread, as Linux counts it: others may use the machine as well.
fn processor_nanoseconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().unwrap_or_default();
    first.parse().unwrap_or(f64::NAN)
}

struct Setup {
    topology: Topology,
    options: WorldOptions,
    load: Load<AppendLoad>,
}

fn setup(regions: u32, shards_per_region: u32, clients: u32) -> Setup {
    let topology = Topology {
        regions,
        shards_per_region,
    };
    let shape = shared(topology, Options::default()).topology;
    let (lan, wan) = paper_links();
    let (places, clients) = place(shape, clients, lan, wan);
    let mut options = WorldOptions::new(1, places);
    options.cost = CostModel::default();
    let load_options = LoadOptions {
        clients,
        outstanding: 1,
        until: SimTime::from_secs(60),
        explain: false,
    };
    let settings = Settings {
        lists_per_shard: 1_000,
        cross_region: 0.1,
        ..Settings::default()
    };
    let lists = AppendLoad::new(topology, settings, Level::Serializable, 1);
    Setup {
        topology,
        options,
        load: Load::new(lists, load_options),
    }
}

/// Events of two virtual seconds, and millions of them a CPU second.
fn rate<S>(system: S, options: WorldOptions, mut load: Load<AppendLoad>) -> (u64, f64)
where
    S: System,
    Load<AppendLoad>: manxdb_sim::Driver<S>,
{
    let mut world = World::new(system, options);
    let start = processor_nanoseconds();
    world.run_until(&mut load, SimTime::from_secs(2)).unwrap();
    let events = world.counters().events;
    (
        events,
        events as f64 * 1e3 / (processor_nanoseconds() - start),
    )
}

fn measure(regions: u32, shards: u32, clients: u32, is_reliable: bool) {
    let mut rates = Vec::new();
    let mut events = 0;
    for _ in 0..ROUNDS {
        let mut setup = setup(regions, shards, clients);
        let system = DastSystem::new(shared(setup.topology, Options::default()));
        let (counted, one) = if is_reliable {
            setup.options.transport = Transport::Datagram;
            rate(ReliableSystem(system), setup.options, setup.load)
        } else {
            rate(system, setup.options, setup.load)
        };
        events = counted;
        rates.push(one);
    }
    rates.sort_by(f64::total_cmp);
    let network = if is_reliable { "datagrams" } else { "FIFO" };
    let rate = rates[ROUNDS / 2];
    println!(
        "{regions} x {shards} shards, {clients:>2} clients each, {network:<9}  {events:>8} events  {rate:.2} M/s"
    );
}

fn main() {
    for is_reliable in [false, true] {
        measure(2, 1, 3, is_reliable);
        measure(3, 5, 4, is_reliable);
        measure(3, 5, 16, is_reliable);
    }
}
