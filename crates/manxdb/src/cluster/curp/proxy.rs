//! Where Redis clients connect to a cluster that replicates their keys: at its servers, and at proxies.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use manxdb_core::NodeId;
use manxdb_core::channel::Life;
use manxdb_curp_client::ClientMeter;
use manxdb_curp_client::client::unlisted;
use manxdb_curp_redis::{Front, FrontSettings, HomeCluster, RedisMachine};
use manxdb_net::RegionId;
use manxdb_net::packet::Place;
use manxdb_redis::server::Settings as RedisSettings;

use super::{cluster, durability, group, notes, options};
use crate::cluster::file::ClusterFile;
use crate::cluster::node;
use crate::fault::Fault;
use crate::process::random_u64;

/// Redis clients of one process.
const CONNECTIONS_MAX: usize = 10_000;

/// Where Redis clients connect, in a process that has a CURP client. A front that `follows` asks another
/// cluster for keys that have moved there.
pub(super) fn front(
    file: &ClusterFile,
    redis: Option<SocketAddr>,
    client: NodeId,
    follows: bool,
) -> Result<Front, Fault> {
    let Some(address) = redis else {
        return Err(Fault::Config(
            "a server or proxy of the cluster file has no `redis` address".to_owned(),
        ));
    };
    let listener = TcpListener::bind(address).map_err(|error| Fault::Listen {
        address,
        listener: "Redis clients",
        flag: "redis-port",
        reason: error.to_string(),
    })?;
    let run_id = format!(
        "{:016x}{:016x}{:08x}",
        random_u64()?,
        random_u64()?,
        client.0
    );
    let settings = FrontSettings {
        node: client,
        faults: options(file).faults,
        connections_max: CONNECTIONS_MAX,
        home: home(file),
        follows,
        redis: RedisSettings {
            port: address.port(),
            is_synced: false,
            run_id,
            ..RedisSettings::default()
        },
    };
    Front::new(listener, settings).map_err(|error| Fault::io("cannot serve Redis clients", error))
}

/// What other clusters are told of this one.
fn home(file: &ClusterFile) -> HomeCluster {
    let (coordinator, directory) = (options(file).coordinator, file.directory());
    let first = directory.find(coordinator).map(|(address, _)| address);
    let others = directory.others(coordinator).iter().copied();
    HomeCluster {
        name: group(file),
        coordinators: first.into_iter().chain(others).collect(),
    }
}

pub(super) fn pass_on(
    file: &ClusterFile,
    front: Front,
    listener: TcpListener,
    place: Place,
    life: Life,
    stop: &UnixStream,
) -> Result<(), Fault> {
    let cluster = cluster(file);
    let hosted = cluster.host(place, life, listener, front, notes::<RedisMachine>);
    let mut runtime = hosted.map_err(node::other)?;
    tracing::info!(
        node = place.node.0,
        life = life.0,
        durability = durability(file),
        "passes Redis clients' commands on"
    );
    runtime.run(Some(stop)).map_err(node::other)
}

/// Runs a proxy that the cluster file does not list, and that `follows` keys to other clusters or not. What
/// `show` makes of its counts lives as long as it.
///
/// # Errors
/// As [`run`](super::run), and those of `show`.
pub fn run_unlisted_proxy<T>(
    file: &ClusterFile,
    listen: SocketAddr,
    follows: bool,
    show: impl FnOnce(Arc<ClientMeter>) -> Result<T, Fault>,
    stop: &UnixStream,
) -> Result<(), Fault> {
    // Drawn, its first life is its only one.
    let node = unlisted().map_err(|error| Fault::io("cannot draw a number", error))?;
    let place = Place {
        node,
        region: RegionId(0),
    };
    let listener = TcpListener::bind((listen.ip(), 0))
        .map_err(|error| Fault::io("cannot listen for answers", error))?;
    let front = front(file, Some(listen), place.node, follows)?;
    let _shown = show(front.meter())?;
    pass_on(file, front, listener, place, Life(1), stop)
}
