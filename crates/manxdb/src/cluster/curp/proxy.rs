//! Where Redis clients connect to a cluster that replicates their keys: at its servers, and at proxies.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use manxdb_core::NodeId;
use manxdb_core::channel::Life;
use manxdb_curp::Options;
use manxdb_curp_client::ClientMeter;
use manxdb_curp_client::client::unlisted;
use manxdb_curp_redis::{Front, FrontSettings, RedisMachine};
use manxdb_net::RegionId;
use manxdb_net::packet::Place;
use manxdb_redis::server::Settings as RedisSettings;

use super::{cluster, durability, notes, options};
use crate::cluster::file::ClusterFile;
use crate::cluster::node;
use crate::fault::Fault;
use crate::process::random_u64;

/// Redis clients of one process.
const CONNECTIONS_MAX: usize = 10_000;

/// Where Redis clients connect, in a process that has a CURP client.
pub(super) fn front(
    redis: Option<SocketAddr>,
    client: NodeId,
    options: &Options,
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
        faults: options.faults,
        connections_max: CONNECTIONS_MAX,
        redis: RedisSettings {
            port: address.port(),
            is_synced: false,
            run_id,
            ..RedisSettings::default()
        },
    };
    Front::new(listener, settings).map_err(|error| Fault::io("cannot serve Redis clients", error))
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

/// Runs a proxy that the cluster file does not list. What `show` makes of its counts lives as long as it.
///
/// # Errors
/// As [`run`](super::run), and those of `show`.
pub fn run_unlisted_proxy<T>(
    file: &ClusterFile,
    listen: SocketAddr,
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
    let front = front(Some(listen), place.node, &options(file))?;
    let _shown = show(front.meter())?;
    pass_on(file, front, listener, place, Life(1), stop)
}
