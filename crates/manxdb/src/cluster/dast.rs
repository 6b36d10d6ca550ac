//! How a node of DAST is put together.

use std::sync::Arc;

use manxdb_core::{Nanos, NodeId};
use manxdb_dast::options::lead_of_millis;
use manxdb_dast::{DastNode, Options, Role, Shared, Topology};
use manxdb_txn::procedure::{Registry, ShardId};

use super::file::{ClusterFile, nanos};
use super::rows::first_rows;

/// Managers look after their group so often. Twelve ticks without a word change the leader: more
/// than a busy machine makes a process wait, as a rule.
const MANAGER_TICK: Nanos = Nanos::from_millis(25);

/// How long a region is silent before the others fence it: longer than its managers take to find
/// another leader, up to 900 ms with ticks as above.
const FENCE_AFTER: Nanos = Nanos::from_millis(1_500);

/// The shape of a cluster.
pub fn topology(file: &ClusterFile) -> Topology {
    Topology {
        regions: file.regions,
        shards_per_region: file.shards_per_region,
    }
}

/// The shape as workloads see it, which is also where keys live.
pub fn placement(file: &ClusterFile) -> manxdb_workloads::Topology {
    manxdb_workloads::Topology {
        regions: file.regions,
        shards_per_region: file.shards_per_region,
    }
}

/// What every node of a cluster is given.
pub fn shared(file: &ClusterFile) -> Shared {
    let procedures = Registry::default();
    for procedure in manxdb_workloads::procedures() {
        procedures.register(procedure);
    }
    let options = Options::of_distance(file.delays().wan * 2);
    // `ClusterFile::read` has seen that it is one.
    let lead = file.lead_ms.and_then(|millis| lead_of_millis(millis).ok());
    Shared {
        topology: topology(file),
        options: Options {
            manager_tick: MANAGER_TICK,
            suspect_after: nanos(file.suspect_ms),
            crossing: file.crossing,
            survive: file.survive,
            fence_after: FENCE_AFTER,
            first_lead: lead.unwrap_or(options.first_lead),
            ..options
        },
        procedures: Arc::new(procedures),
        placement: Arc::new(placement(file)),
    }
}

/// A node in its `life`th life.
pub fn node(file: &ClusterFile, node: NodeId, life: u64, shared: &Shared) -> DastNode {
    let shard = match shared.topology.role(node) {
        Role::Replica(shard) => shard,
        // They keep no rows and never ask for any.
        Role::Manager(_) | Role::Client => ShardId(0),
    };
    DastNode::new(node, life, shared, || {
        first_rows(file, placement(file), shard)
    })
}

/// What a node is, for people, and its region.
pub fn role(topology: Topology, node: NodeId) -> (String, u32) {
    let region = topology.region_of_node(node).map_or(0, |region| region.0);
    let role = match topology.role(node) {
        Role::Replica(shard) => format!("replica of shard {}", shard.0),
        Role::Manager(region) => format!("manager of region {}", region.0),
        Role::Client => "client".to_owned(),
    };
    (role, region)
}

pub use super::node::STATE;

/// The state of a replica that does.
pub const TAKES_PART: &str = "takes part";
/// The state of one that does not.
pub const OUT: &str = "is out";

/// The states of a manager.
pub const LEADS: &str = "leads";
/// As [`LEADS`].
pub const FOLLOWS: &str = "follows";
/// The state of one that has lost its memory and not got it from the others.
pub const RECOVERS: &str = "recovers";

/// Equal for replicas with equal rows.
pub const ROWS: &str = "rows";

/// What a node says of itself.
pub fn notes(core: &DastNode) -> Vec<(String, String)> {
    let mut notes = Vec::new();
    let mut note = |name: &str, value: String| notes.push((name.to_owned(), value));
    if let Some(replica) = core.replica() {
        let state = if replica.is_live() { TAKES_PART } else { OUT };
        note(STATE, state.to_owned());
        let rows = replica.execution().rows().digest();
        note(ROWS, format!("{rows:016x}"));
        note("records", replica.records().to_string());
    }
    if let Some(manager) = core.manager() {
        let state = match (manager.has_memory(), manager.leads()) {
            (false, _) => RECOVERS,
            (true, true) => LEADS,
            (true, false) => FOLLOWS,
        };
        note(STATE, state.to_owned());
        note("records", manager.records().to_string());
    }
    notes
}
