//! DAST in virtual time: latencies of an unloaded cluster to the microsecond.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::sync::Arc;

use manxdb_core::{Nanos, Random};
use manxdb_dast::{Ask, Level, Options, Shared, Topology};
use manxdb_lab::dast::{DastSystem, paper_links, place};
use manxdb_lab::load::{Generator, Job, Load, LoadOptions, percentile};
use manxdb_sim::{SimTime, World, WorldOptions};
use manxdb_storage::KeyRange;
use manxdb_txn::procedure::{
    Piece, Placement, Procedure, ProcedureError, Registry, RowView, ShardId, Touch, Values,
};

struct Add;

struct ByFirstByte;

impl Placement for ByFirstByte {
    fn shard_of(&self, key: &[u8]) -> ShardId {
        ShardId(key.first().copied().unwrap_or(0).into())
    }
    fn shards_of(&self, _range: &KeyRange) -> Vec<ShardId> {
        Vec::new()
    }
}

impl Procedure for Add {
    fn name(&self) -> &'static str {
        "add"
    }
    fn plan(&self, args: &[u8], _: &dyn Placement) -> Result<Vec<Piece>, ProcedureError> {
        let piece = |pair: &[u8]| Piece {
            part: 0,
            shard: ShardId(pair[0].into()),
            needs: Vec::new(),
            gives: Vec::new(),
        };
        Ok(args.chunks(2).map(piece).collect())
    }
    fn run(
        &self,
        piece: &Piece,
        args: &[u8],
        _: &Values,
        rows: &mut dyn RowView,
    ) -> Result<Values, ProcedureError> {
        for pair in args.chunks(2) {
            if u32::from(pair[0]) == piece.shard.0 {
                let count = rows.get(pair)?.map_or(0, |value| value[0]);
                rows.write(pair.to_vec(), Some(vec![count.wrapping_add(1)]))?;
            }
        }
        Ok(Values::new())
    }
    fn touches(&self, piece: &Piece, args: &[u8]) -> Vec<Touch> {
        let own = args
            .chunks(2)
            .filter(|pair| u32::from(pair[0]) == piece.shard.0);
        own.map(Touch::write).collect()
    }
}

struct Mixed {
    topology: Topology,
    crt_percent: u64,
}

impl Generator for Mixed {
    fn next(&mut self, _client: u32, home: ShardId, random: &mut Random) -> Job {
        let home_byte = u8::try_from(home.0).unwrap();
        let row = u8::try_from(random.below(50)).unwrap();
        let mut args = vec![home_byte, row];
        let crosses_regions = random.below(100) < self.crt_percent;
        if crosses_regions {
            let region = self.topology.region_of(home).0;
            let others = self.topology.shards() - self.topology.shards_per_region;
            let mut other = u32::try_from(random.below(others.into())).unwrap();
            if other >= region * self.topology.shards_per_region {
                other += self.topology.shards_per_region;
            }
            args.extend([u8::try_from(other).unwrap(), row]);
        }
        let ask = Ask {
            procedure: "add".into(),
            args,
            level: Level::Serializable,
            home,
        };
        Job {
            ask,
            crosses_regions,
        }
    }
}

fn run(crt_percent: u64, clients: u32, topology: Topology) -> (World<DastSystem>, Load<Mixed>) {
    let procedures = Registry::default();
    procedures.register(Arc::new(Add));
    let shared = Shared {
        topology,
        options: Options {
            keeps_order: true,
            ..Options::default()
        },
        procedures: Arc::new(procedures),
        placement: Arc::new(ByFirstByte),
    };
    let (lan, wan) = paper_links();
    let (places, clients) = place(topology, clients, lan, wan);
    let options = WorldOptions::new(7, places);
    let mut world = World::new(DastSystem::new(shared), options);
    let generator = Mixed {
        topology,
        crt_percent,
    };
    let until = SimTime::from_secs(4);
    let load = LoadOptions {
        clients,
        outstanding: 1,
        until,
    };
    let mut load = Load::new(generator, load);
    world.run_until(&mut load, SimTime::from_secs(6)).unwrap();
    (world, load)
}

fn same_on_all_replicas(world: &World<DastSystem>, topology: Topology) {
    for shard in (0..topology.shards()).map(ShardId) {
        let replicas: Vec<_> = topology
            .replicas(shard)
            .map(|node| world.core(node).unwrap().replica().unwrap())
            .collect();
        assert!(replicas[0].execution().order().len() > 100);
        for replica in &replicas {
            assert!(replica.execution().order().is_sorted());
            assert_eq!(replica.execution().order(), replicas[0].execution().order());
            assert_eq!(
                replica.execution().digest(),
                replicas[0].execution().digest()
            );
            println!("{shard:?} {} records", replica.records());
        }
    }
    for manager in topology
        .all_regions()
        .flat_map(|region| topology.managers(region))
    {
        println!(
            "{manager:?} {} records",
            world.core(manager).unwrap().manager().unwrap().records()
        );
    }
}

#[test]
fn an_unloaded_cluster_has_the_latencies_of_its_round_trips() {
    let topology = Topology {
        regions: 3,
        shards_per_region: 2,
    };
    let (world, load) = run(10, 4, topology);
    let (from, until) = (SimTime::from_secs(1), SimTime::from_secs(4));
    let local = load.latencies(false, from, until);
    let cross = load.latencies(true, from, until);
    println!(
        "local {} p50 {:?} p99 {:?} max {:?}; cross {} p50 {:?} p99 {:?}; open {}; {} events",
        local.len(),
        percentile(&local, 50),
        percentile(&local, 99),
        local.last(),
        cross.len(),
        percentile(&cross, 50),
        percentile(&cross, 99),
        load.open(),
        world.counters().events
    );
    assert_eq!(load.open(), 0);
    same_on_all_replicas(&world, topology);
    assert!(percentile(&local, 99) <= Nanos::from_millis(16));
    assert!(percentile(&cross, 99) <= Nanos::from_millis(225));
}
