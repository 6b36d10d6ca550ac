//! A workload whose every effect can be counted: increments of rows.
#![allow(dead_code)] // not every test uses all of it

pub mod baselines;
pub mod chain;
pub mod golden;

use std::sync::Arc;

use manxdb_core::{Core, Nanos, NodeId, Random};
use manxdb_dast::replica::Replica;
use manxdb_dast::{Answer, Ask, Level, Options, Shared, Topology};
use manxdb_lab::candidate::HoldsReplica;
use manxdb_lab::load::{Generator, Job, Load};
use manxdb_sim::{Failure, SimTime, System, World};
use manxdb_storage::KeyRange;
use manxdb_txn::procedure::{
    Placement, Procedure, ProcedureError, ProcedurePiece, Registry, RowView, ShardId, Touch, Values,
};

/// Increments one row on each of some shards. Arguments: pairs of shard and row.
struct Add;

/// The first byte of a key is its shard.
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
    fn plan(&self, args: &[u8], _: &dyn Placement) -> Result<Vec<ProcedurePiece>, ProcedureError> {
        let piece = |pair: &[u8]| ProcedurePiece {
            part: 0,
            shard: ShardId(pair[0].into()),
            needs: Vec::new(),
            gives: Vec::new(),
            steps: 1,
        };
        Ok(args.chunks(2).map(piece).collect())
    }
    fn run(
        &self,
        piece: &ProcedurePiece,
        args: &[u8],
        _: &Values,
        rows: &mut dyn RowView,
    ) -> Result<Values, ProcedureError> {
        for pair in args.chunks(2) {
            if u32::from(pair[0]) == piece.shard.0 {
                let count = rows.get(pair)?.map_or(0, |value| count_of(&value));
                rows.write(pair.to_vec(), Some((count + 1).to_le_bytes().to_vec()))?;
            }
        }
        Ok(Values::new())
    }
    fn touches(&self, piece: &ProcedurePiece, args: &[u8]) -> Vec<Touch> {
        let own = args
            .chunks(2)
            .filter(|pair| u32::from(pair[0]) == piece.shard.0);
        own.map(Touch::write).collect()
    }
}

fn count_of(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().unwrap())
}

/// Sum of all rows of a replica.
pub fn sum(replica: &Replica) -> u64 {
    let rows = replica.execution().rows().changes();
    rows.filter_map(|(_, value)| value).map(count_of).sum()
}

/// Increments at home, some of them also in another region.
pub struct Increments {
    pub topology: Topology,
    pub crt_percent: u64,
    pub level: Level,
}

impl Generator for Increments {
    fn next(&mut self, _client: u32, home: ShardId, random: &mut Random) -> Option<Job> {
        let row = u8::try_from(random.below(50)).unwrap();
        let mut args = vec![u8::try_from(home.0).unwrap(), row];
        let crosses_regions = random.below(100) < self.crt_percent;
        let each = self.topology.shards_per_region;
        if crosses_regions {
            let region = self.topology.region_of(home).0;
            let others = self.topology.shards() - each;
            let mut other = u32::try_from(random.below(others.into())).unwrap();
            if other >= region * each {
                other += each;
            }
            args.extend([u8::try_from(other).unwrap(), row]);
        } else if each > 1 && random.below(100) < 5 {
            let first = self.topology.region_of(home).0 * each;
            let other = first + (home.0 - first + 1) % each;
            args.extend([u8::try_from(other).unwrap(), row]);
        }
        let ask = Ask {
            procedure: "add".into(),
            args,
            level: self.level,
            home,
        };
        Some(Job {
            ask,
            crosses_regions,
        })
    }
}

/// A cluster that knows the procedure.
pub fn shared(topology: Topology, options: Options) -> Shared {
    let procedures = Registry::default();
    procedures.register(Arc::new(Add));
    Shared {
        topology,
        options,
        procedures: Arc::new(procedures),
        placement: Arc::new(ByFirstByte),
    }
}

/// How often a run looks whether the cluster has come to rest.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);

/// Runs on at rest: what is under way twice, or late, still arrives.
const REST: Nanos = Nanos::from_millis(500);

/// Runs a workload that asks nothing from `quiet` on until every call has ended and the replicas of
/// each shard have done the same, and for [`REST`] beyond that; at most until `ends`. A cluster at rest
/// takes the simulator as long as a busy one, so that a fixed end is mostly time in which nothing
/// happens.
///
/// # Errors
/// A core's check failed.
pub fn run_to_rest<S, G>(
    world: &mut World<S>,
    load: &mut Load<G>,
    topology: Topology,
    (quiet, ends): (SimTime, SimTime),
) -> Result<(), Failure>
where
    S: System,
    S::Core: Core<Request = Ask, Reply = Answer> + HoldsReplica,
    G: Generator,
{
    let mut until = quiet.min(ends);
    loop {
        world.run_until(load, until)?;
        if until == ends {
            return Ok(());
        }
        if load.open() == 0 && do_replicas_agree(world, topology) {
            return world.run_until(load, (until + REST).min(ends));
        }
        until = (until + LOOK_EVERY).min(ends);
    }
}

fn do_replicas_agree<S>(world: &World<S>, topology: Topology) -> bool
where
    S: System,
    S::Core: HoldsReplica,
{
    let mut shards = (0..topology.shards()).map(ShardId);
    shards.all(|shard| {
        let views = topology
            .replicas(shard)
            .map(|node| world.core(node)?.view());
        let digests: Vec<Option<u64>> = views.map(|view| Some(view?.digest)).collect();
        digests[0].is_some() && digests.iter().all(|digest| *digest == digests[0])
    })
}

/// The replicas of a shard that take part, by a look into each.
pub fn live<'a>(
    topology: Topology,
    shard: ShardId,
    mut look: impl FnMut(NodeId) -> Option<&'a Replica>,
) -> Vec<&'a Replica> {
    let replicas = topology.replicas(shard).filter_map(&mut look);
    replicas.filter(|replica| replica.is_live()).collect()
}
