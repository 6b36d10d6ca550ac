//! TPC-C under DAST in virtual time: the latencies aimed at, and the consistency of its rows.
#![allow(clippy::unwrap_used)]

use crate::common::run_to_rest;
use manxdb_core::Nanos;
use manxdb_dast::{Crossing, Options};
use manxdb_lab::dast::{DastSystem, paper_links, place};
use manxdb_lab::load::{Load, LoadOptions, percentile};
use manxdb_lab::tpcc::{Mix, TpccLoad, system};
use manxdb_sim::{Link, SimTime, World, WorldOptions};
use manxdb_txn::procedure::ShardId;
use manxdb_txn::rows::Rows;
use manxdb_workloads::Topology;
use manxdb_workloads::tpcc::{Parameters, PaymentSums, Scale, check};

struct Run {
    world: World<DastSystem>,
    load: Load<TpccLoad>,
    until: SimTime,
}

fn run(topology: Topology, clients: u32, mix: Mix, links: (Link, Link), millis: u64) -> Run {
    run_with(Crossing::Anticipated, topology, clients, mix, links, millis)
}

fn run_with(
    crossing: Crossing,
    topology: Topology,
    clients: u32,
    mix: Mix,
    (lan, wan): (Link, Link),
    millis: u64,
) -> Run {
    let options = Options {
        crossing,
        ..Options::default()
    };
    let system = system(topology, Scale::tiny(), options);
    let (places, clients) = place(system.shared().topology, clients, lan, wan);
    let mut world_options = WorldOptions::new(1, places);
    // Where latencies are asked for there are many clients, and looks would take longer than steps.
    world_options.check = clients.len() < 100;
    let mut world = World::new(system, world_options);
    let until = SimTime::from_millis(millis);
    let options = LoadOptions {
        clients,
        outstanding: 1,
        until,
        explain: false,
    };
    let generator = TpccLoad::new(topology, Scale::tiny(), mix, 1);
    let mut load = Load::new(generator, options);
    let span = (until, until + Nanos::from_secs(3));
    let servers = world.system().shared().topology;
    run_to_rest(&mut world, &mut load, servers, span).unwrap();
    assert_eq!(load.open(), 0, "every call ends");
    let failed = load.made().iter().find(|made| {
        let (_, answer) = made.answered.as_ref().unwrap();
        answer.given.is_err()
    });
    assert!(failed.is_none(), "{failed:?}");
    Run { world, load, until }
}

impl Run {
    /// Median and 99th percentile.
    fn latencies(&self, crosses_regions: bool) -> (Nanos, Nanos) {
        let all = self
            .load
            .latencies(crosses_regions, SimTime::from_millis(500), self.until);
        (percentile(&all, 50), percentile(&all, 99))
    }

    /// The rows of one replica of each shard.
    fn rows(&self, replica: usize) -> Vec<Rows> {
        let topology = self.world.system().shared().topology;
        let shards = (0..topology.shards()).map(ShardId);
        let nodes = shards.map(|shard| topology.replicas(shard).nth(replica).unwrap());
        let rows = nodes.map(|node| {
            let core = self.world.core(node).unwrap();
            core.replica().unwrap().execution().rows().clone()
        });
        rows.collect()
    }
}

const THREE_BY_FIVE: Topology = Topology {
    regions: 3,
    shards_per_region: 5,
};

#[test]
fn all_five_transactions_leave_consistent_rows_on_every_replica() {
    let topology = Topology {
        regions: 2,
        shards_per_region: 2,
    };
    let mix = Mix::Tpcc(Parameters::as_published());
    for crossing in Crossing::ALL {
        let run = run_with(crossing, topology, 6, mix, paper_links(), 4_000);
        for replica in 0..3 {
            let rows = run.rows(replica);
            let wrong = check(&rows, topology, Scale::tiny(), PaymentSums::Tpcc);
            assert!(
                wrong.is_empty(),
                "{crossing:?}, replica {replica}: {wrong:#?}"
            );
        }
        assert!(run.load.made().len() > 1_000, "{crossing:?}");
    }
}

/// The targets: 16 clients a shard, a tenth of the payments across regions, two fifths of them by
/// last name and so with a value from one region to another.
#[test]
fn payments_meet_the_targets_for_local_and_cross_region_tails() {
    let mix = Mix::Payment { cross_region: 0.1 };
    let calm = run(THREE_BY_FIVE, 16, mix, paper_links(), 1_500);
    let (_, local) = calm.latencies(false);
    let (_, cross) = calm.latencies(true);
    assert!(local <= Nanos::from_millis(16), "local {local:?}");
    assert!(cross <= Nanos::from_millis(225), "cross-region {cross:?}");
    let (lan, wan) = paper_links();
    let links = (lan, wan.with_jitter(Nanos::from_millis(30)));
    let (_, shaken) = run(THREE_BY_FIVE, 16, mix, links, 1_500).latencies(false);
    assert!(
        shaken <= local + Nanos::from_millis(1),
        "{shaken:?} after {local:?}"
    );
    let mostly = Mix::Payment { cross_region: 0.9 };
    let (_, busy) = run(THREE_BY_FIVE, 16, mostly, paper_links(), 1_500).latencies(false);
    assert!(
        busy <= local + Nanos::from_millis(1),
        "{busy:?} after {local:?}"
    );
}
