//! What must be true of a cluster when faults are over and nothing new is asked.
//!
//! Every call has ended as its client was told; replicas of a shard did the same in the same
//! order and have the same rows; what clients saw is explained by an order of the level they
//! asked for, and nothing that they were told of is missing; and records about the past are gone.

use std::collections::{BTreeMap, BTreeSet};

use manxdb_checker::append;
use manxdb_checker::replicas::{self, Extent, Log};
use manxdb_checker::replies::{self, Call, End};
use manxdb_core::NodeId;
use manxdb_dast::manager::Manager;
use manxdb_dast::replica::Replica;
use manxdb_dast::{Survive, Timestamp};
use manxdb_sim::World;
use manxdb_txn::procedure::ShardId;
use manxdb_workloads::Topology;
use manxdb_workloads::append::{decode, list_of};

use super::Setting;
use crate::append::{AppendLoad, history, promise};
use crate::candidate::ReliableSystem;
use crate::dast::DastSystem;
use crate::load::{Load, Made};

/// Records about transactions that a replica may keep at rest, for each client and call under way.
const RECORDS_PER_CALL: usize = 30;

/// Whether every call has ended and all replicas take part, have run everything and agree.
#[must_use]
pub fn is_at_rest(world: &World<ReliableSystem<DastSystem>>, load: &Load<AppendLoad>) -> bool {
    load.open() == 0 && what_is_not_at_rest(world, load).is_empty()
}

/// Judges a run that had time to come to rest.
///
/// # Errors
/// Everything that is wrong, in words.
pub fn judge(
    world: &World<ReliableSystem<DastSystem>>,
    load: &Load<AppendLoad>,
    setting: &Setting,
) -> Result<(), String> {
    let mut wrong = Vec::new();
    if let Some(made) = load.made().iter().find(|made| made.answered.is_none()) {
        let open = load.open();
        wrong.push(format!("{open} calls never ended, the first: {made:?}"));
    }
    let restless = what_is_not_at_rest(world, load);
    if !restless.is_empty() || !wrong.is_empty() {
        wrong.extend(restless);
        wrong.extend(where_all_stand(world));
        return Err(wrong.join("\n"));
    }
    let logs = logs(world);
    let survives = world.system().0.shared().options.survive == Survive::Region;
    let may_move = |one, other| survives && is_moved(one, other);
    wrong.extend(replicas::check_unless(&logs, may_move));
    wrong.extend(replies::check(
        &calls(load, setting.topology),
        &executed(&logs),
        true,
    ));
    let mut history = history(load.made())?;
    history.end_state = Some(end_state(world));
    let verdict = append::check(&history, promise(setting.level));
    if !verdict.is_valid() {
        wrong.push(verdict.to_string());
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(wrong.join("\n"))
}

/// Whether a transaction that a fenced region ran at one of two places ran at the other one
/// elsewhere: that is behind it, within a microsecond, and named by the same site.
fn is_moved(one: Timestamp, other: Timestamp) -> bool {
    let (old, new) = (one.min(other), one.max(other));
    new.stretch > 0 && new.micros > old.micros && new.site == old.site
}

fn servers(world: &World<ReliableSystem<DastSystem>>) -> impl Iterator<Item = NodeId> {
    let topology = world.system().0.shared().topology;
    (0..topology.servers()).map(NodeId)
}

fn replica(world: &World<ReliableSystem<DastSystem>>, node: NodeId) -> Option<&Replica> {
    world.core(node)?.core().replica()
}

/// All replicas with their shards.
fn all_replicas(
    world: &World<ReliableSystem<DastSystem>>,
) -> impl Iterator<Item = (ShardId, NodeId, Option<&Replica>)> {
    let topology = world.system().0.shared().topology;
    let shards = (0..topology.shards()).map(ShardId);
    let nodes = shards.flat_map(move |shard| {
        let nodes = topology.replicas(shard);
        nodes.map(move |node| (shard, node))
    });
    nodes.map(|(shard, node)| (shard, node, replica(world, node)))
}

fn what_is_not_at_rest(
    world: &World<ReliableSystem<DastSystem>>,
    load: &Load<AppendLoad>,
) -> Vec<String> {
    let records_max = RECORDS_PER_CALL * load.calls_at_a_time();
    let mut first: BTreeMap<ShardId, u64> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (shard, node, replica) in all_replicas(world) {
        let Some(replica) = replica.filter(|replica| replica.is_live()) else {
            wrong.push(format!("{node:?} of {shard:?} does not take part"));
            continue;
        };
        let waiting = replica.execution().waiting();
        if waiting > 0 {
            wrong.push(format!("{waiting} transactions wait on {node:?}"));
        }
        if let Some(floor) = replica.lowest_floor() {
            wrong.push(format!("{node:?} holds its clock below {floor}"));
        }
        if replica.records() > records_max {
            let records = replica.records();
            wrong.push(format!("{node:?} keeps {records} records"));
        }
        let digest = replica.execution().digest();
        if *first.entry(shard).or_insert(digest) != digest {
            wrong.push(format!("{node:?} differs from others of {shard:?}"));
        }
    }
    wrong
}

/// Where every server stands, for people.
fn where_all_stand(world: &World<ReliableSystem<DastSystem>>) -> Vec<String> {
    let described = servers(world).map(|node| {
        let Some(core) = world.core(node) else {
            return format!("{node:?} is down");
        };
        let replica = core.core().replica().map(Replica::describe);
        let manager = core.core().manager().map(Manager::describe);
        let text = replica.or(manager).unwrap_or_default();
        format!("{node:?}: {text}")
    });
    described.collect()
}

fn logs(world: &World<ReliableSystem<DastSystem>>) -> Vec<Log<Timestamp>> {
    let all = all_replicas(world).filter_map(|(shard, node, replica)| {
        let execution = replica?.execution();
        let entries = execution.order().iter();
        Some(Log {
            shard: shard.0,
            replica: node.0,
            // A replica that was away has taken over the order of a peer.
            extent: Extent::Whole,
            entries: entries.map(|(at, id)| (*at, id.for_traces())).collect(),
            digest: execution.digest(),
        })
    });
    all.collect()
}

fn executed(logs: &[Log<Timestamp>]) -> BTreeMap<u32, BTreeSet<u64>> {
    let mut executed: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    for log in logs {
        let names = log.entries.iter().map(|(_, txn)| *txn);
        executed.entry(log.shard).or_default().extend(names);
    }
    executed
}

fn calls(load: &Load<AppendLoad>, topology: Topology) -> Vec<Call> {
    let ended = load.made().iter();
    ended.filter_map(|made| call(made, topology)).collect()
}

/// A call as its client was told it ended.
fn call(made: &Made, topology: Topology) -> Option<Call> {
    let (_, answer) = made.answered.as_ref()?;
    let (_, operations) = decode(&made.job.ask.args).ok()?;
    let shards: BTreeSet<u32> = operations
        .iter()
        .map(|operation| topology.home_of(operation.list.partition).0)
        .collect();
    Some(Call {
        txn: answer.id.for_traces(),
        shards: shards.into_iter().collect(),
        end: match answer.given {
            Ok(_) => End::Acknowledged,
            Err(_) => End::Refused,
        },
    })
}

/// All lists, as one replica of each shard has them.
fn end_state(world: &World<ReliableSystem<DastSystem>>) -> BTreeMap<u64, Vec<u64>> {
    let topology = world.system().0.shared().topology;
    let shards = (0..topology.shards()).map(ShardId);
    let first = shards.filter_map(|shard| {
        let node = topology.replicas(shard).next()?;
        replica(world, node)
    });
    let rows = first.flat_map(|replica| replica.execution().rows().changes());
    rows.filter_map(|(key, value)| list_of(key, value?))
        .collect()
}
