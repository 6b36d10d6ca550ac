//! Nodes of a cluster that replicates Redis's keys or SQL's rows (CURP), as processes.
//!
//! | file | |
//! |---|---|
//! | here | what all of them share: their options, journals and cores |
//! | `redis_node` | coordinator, server, witness or proxy of a cluster that replicates Redis's keys |
//! | `proxy` | where Redis clients connect |
//! | `sql_server` | a server that replicates SQL's rows |
//! | `notes` | what nodes say of themselves |

mod notes;
mod proxy;
mod redis_node;
mod sql_server;

use manxdb_core::channel::Life;
use manxdb_core::{Nanos, NodeId};
use manxdb_curp::disk::CurpRecord;
use manxdb_curp::hash::KeyHasher;
use manxdb_curp::slots::Group;
use manxdb_curp::{CurpNode, Durability, Options, Role};
use manxdb_curp_client::Cluster;
use manxdb_curp_redis::RedisMachine;
use manxdb_net::{DataDirectory, Journal, Settings};

use super::file::{ClusterFile, CurpShape, nanos};
use super::node;
use crate::fault::Fault;

pub use self::notes::{
    COORDINATES, CountedRows, FOLLOWS, PASSES_ON, SERVES, WAITS, WITNESSES, notes,
};
pub use self::proxy::run_unlisted_proxy;
pub use self::redis_node::{carrier, run};
pub use self::sql_server::{run_sql_server, sql_server};

/// A node of such a cluster.
pub type Node = CurpNode<RedisMachine>;

/// What is looked after when nothing else happens comes around so often.
const RETRY_EVERY: Nanos = Nanos::from_millis(10);
/// A client that is silent for so long is forgotten, with what became of its commands.
const CLIENT_PATIENCE: Nanos = Nanos::from_secs(60);

/// The shape of a cluster: `ClusterFile::read` has seen that it has one.
fn shape(file: &ClusterFile) -> CurpShape {
    file.curp.clone().unwrap_or_default()
}

/// How its nodes behave.
#[must_use]
pub fn options(file: &ClusterFile) -> Options {
    let shape = shape(file);
    let suspect_after = nanos(file.suspect_ms);
    // Half of a round trip.
    let away = file.delays().lan;
    Options {
        faults: shape.faults as usize,
        coordinator: NodeId(0),
        servers: shape.servers,
        witnesses: shape.witnesses,
        table: (4_096, 4),
        hasher: KeyHasher {
            secret: shape.secret(),
        },
        heartbeat_every: Nanos(suspect_after.0 / 12),
        suspect_after,
        lease: Nanos(suspect_after.0 / 2),
        retry_every: RETRY_EVERY + away * 4,
        // Longer than two round trips, which a conflict takes.
        race_after: Nanos::from_millis(5) + away * 6,
        patience: Nanos::from_millis(100) + away * 8,
        client_ticks: u32::try_from(CLIENT_PATIENCE.0 / (RETRY_EVERY + away * 4).0)
            .unwrap_or(u32::MAX),
        durability: shape.durability().unwrap_or(Durability::Memory),
        ..Options::default()
    }
}

/// The durability mode of a cluster, wherever a process says what it promises.
#[must_use]
pub fn durability(file: &ClusterFile) -> &'static str {
    match options(file).durability {
        Durability::Fsync => "fsync",
        Durability::Memory | Durability::Volatile => "memory",
    }
}

/// The journal of a node, and what is in it.
///
/// # Errors
/// As [`Journal::open`].
pub(super) fn journal(
    data: &DataDirectory,
    life: Life,
) -> Result<(Journal, Vec<CurpRecord>), Fault> {
    Journal::open(&data.path().join("journal"), life.0).map_err(node::other)
}

/// What a node is, for people.
#[must_use]
pub fn role(file: &ClusterFile, node: NodeId) -> &'static str {
    match options(file).role(node) {
        Role::Coordinator => "coordinator",
        Role::Server => "server",
        Role::Witness => "witness",
        Role::Client => "proxy",
    }
}

/// How many nodes a shape has.
#[must_use]
pub fn nodes(shape: &CurpShape) -> u32 {
    1 + shape.servers + shape.witnesses + shape.proxies
}

/// The CURP client in the process of a server: it has a number that no other node has.
#[must_use]
pub fn client_of(file: &ClusterFile, server: NodeId) -> NodeId {
    let first = nodes(&shape(file));
    assert!(server.0 >= 1, "node 0 is the coordinator");
    NodeId(first + server.0 - 1)
}

/// What a cluster is called where slots move, and what MOVED tells: where its Redis clients connect, at its
/// first proxy, or at its first server. Nothing when no client can.
#[must_use]
pub fn group(file: &ClusterFile) -> Option<Group> {
    let of = |role: &'static str| file.nodes.iter().filter(move |node| node.role == role);
    let address = of("proxy").chain(of("server")).find_map(|node| node.redis);
    address.and_then(|address| Group::new(&address.to_string()))
}

/// What a client of the cluster has to know of it.
#[must_use]
pub fn cluster(file: &ClusterFile) -> Cluster {
    Cluster {
        id: file.id(),
        directory: file.directory(),
        delays: file.delays(),
        options: options(file),
    }
}

pub(super) fn settings<E: CountedRows>(
    file: &ClusterFile,
    seed: u64,
    holds_datagrams: bool,
) -> Settings<CurpNode<E>> {
    cluster(file).settings(seed, holds_datagrams, notes::<E>)
}

/// Says that it runs.
pub(super) fn up(file: &ClusterFile, node: &super::file::Node, life: Life) {
    let (number, role, address) = (node.number, &node.role, node.address);
    let durability = durability(file);
    match node.redis {
        Some(redis) => {
            tracing::info!(node = number, role, %address, %redis, life = life.0, durability, "up");
        }
        None => tracing::info!(node = number, role, %address, life = life.0, durability, "up"),
    }
}

/// The core of a node, with what its disk has.
///
/// # Errors
/// A record of another role.
pub(super) fn core(
    options: Options,
    node: NodeId,
    life: Life,
    secret: u64,
    disk: Vec<CurpRecord>,
) -> Result<Node, Fault> {
    let opened = CurpNode::open(node, life.0, options, secret, disk);
    opened.map_err(node::other)
}
