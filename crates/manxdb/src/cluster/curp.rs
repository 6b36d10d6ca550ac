//! How a node of a cluster that replicates Redis's keys or SQL's rows (CURP) is put together, and run.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use manxdb_core::channel::Life;
use manxdb_core::{Nanos, NodeId};
use manxdb_curp::disk::CurpRecord;
use manxdb_curp::hash::KeyHasher;
use manxdb_curp::ids::Member;
use manxdb_curp::{CurpNode, Durability, Execute, Options, Role};
use manxdb_curp_client::client::unlisted;
use manxdb_curp_client::{ClientMeter, Cluster};
use manxdb_curp_redis::{Front, FrontSettings, RedisMachine};
use manxdb_curp_sql::driver::SqlNode;
use manxdb_curp_sql::{PrimaryDriver, SqlMachine};
use manxdb_net::packet::Place;
use manxdb_net::{DataDirectory, Journal, NoDriver, RegionId, Runtime, Settings};
use manxdb_redis::server::Settings as RedisSettings;

use super::coordinator;
use super::file::{ClusterFile, ClusterProtocol, CurpShape, nanos};
use super::node::{self, STATE};
use crate::fault::Fault;
use crate::process::random_u64;
use crate::witness::{CarrierInKernel, CarrierWish};

/// A node of such a cluster.
pub type Node = CurpNode<RedisMachine>;

/// What is looked after when nothing else happens comes around so often.
const RETRY_EVERY: Nanos = Nanos::from_millis(10);
/// A client that is silent for so long is forgotten, with what became of its commands.
const CLIENT_PATIENCE: Nanos = Nanos::from_secs(60);
/// Redis clients of one process.
const CONNECTIONS_MAX: usize = 10_000;

/// The note by which a coordinator says what keeps the cluster from going on.
pub const WAITS: &str = "waits for";
/// Says what a node is: one of these.
pub const COORDINATES: &str = "coordinates";
/// A server that decides what is executed.
pub const SERVES: &str = "is master";
/// A server that is not the master.
pub const FOLLOWS: &str = "follows";
/// A witness.
pub const WITNESSES: &str = "records";
/// A proxy that has a view.
pub const PASSES_ON: &str = "passes on";

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

/// Begins the next life of a node. One that lost its directory must not be taken for the process before,
/// which had what was acknowledged: so lives are numbered from the clock's seconds on.
///
/// # Errors
/// The directory cannot be written, or has a counter that is none.
pub fn begin_life(data: &DataDirectory) -> Result<Life, Fault> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since.map_or(1, |since| since.as_secs());
    data.begin_life_from(seconds.max(1)).map_err(node::other)
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

/// A machine that says how many rows it has.
pub trait CountedRows: Execute {
    /// So many.
    fn count_rows(&self) -> usize;
}

impl CountedRows for RedisMachine {
    fn count_rows(&self) -> usize {
        self.rows()
    }
}

impl CountedRows for SqlMachine {
    fn count_rows(&self) -> usize {
        self.rows().len()
    }
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

/// Runs a node of the file until it is told to stop.
///
/// # Errors
/// Whatever keeps it from starting, or a disk that fails.
pub fn run(
    file: &ClusterFile,
    node: &super::file::Node,
    data: &DataDirectory,
    life: Life,
    carrier: &CarrierWish,
    stop: &UnixStream,
) -> Result<(), Fault> {
    let id = NodeId(node.number);
    let seed = u64::from(node.number) << 32 | life.0;
    let options = options(file);
    if options.role(id) == Role::Coordinator {
        coordinator::check_alone(file)?;
    }
    let listener = node::listen(node)?;
    match options.role(id) {
        Role::Coordinator => coordinator::run_alone(file, node, data, life, listener, stop),
        Role::Server => {
            let settings = settings(file, seed, true);
            let client = client_of(file, id);
            let front = front(node.redis, client, &options)?;
            let (journal, disk) = journal(data, life)?;
            let mut runtime = Runtime::new(settings, listener, front).map_err(node::other)?;
            let server = core(options, id, life, 0, disk)?;
            runtime
                .add_with_journal(
                    node.place(),
                    life,
                    server,
                    (journal, CurpRecord::supersedes),
                )
                .map_err(node::other)?;
            runtime.open_datagrams(id).map_err(node::other)?;
            let place = Place {
                node: client,
                region: RegionId(node.region),
            };
            let options = Options {
                records: false,
                ..options
            };
            runtime.add(place, life, core(options, client, life, 0, Vec::new())?);
            up(file, node, life);
            runtime.run(Some(stop)).map_err(node::other)
        }
        Role::Witness => {
            let settings = settings(file, seed, false);
            let runtime = Runtime::new(settings, listener, NoDriver).map_err(node::other)?;
            witness(file, node, runtime, life, carrier, stop)
        }
        Role::Client => {
            let front = front(node.redis, id, &options)?;
            pass_on(file, front, listener, node.place(), life, stop)
        }
    }
}

/// The carrier that the cluster file names for its witnesses.
///
/// # Errors
/// None has that name.
pub fn carrier(file: &ClusterFile, keeps: bool) -> Result<CarrierWish, Fault> {
    let shape = shape(file);
    Ok(CarrierWish {
        kind: shape.carrier().map_err(Fault::Config)?,
        interface: shape.interface,
        fallback: shape.carrier_fallback,
        keeps,
        ..CarrierWish::default()
    })
}

/// Runs a witness. Its process keeps the connections, and in the kernel's carriers nothing else: datagrams
/// are answered before they come to its socket, which only holds the port.
fn witness(
    file: &ClusterFile,
    node: &super::file::Node,
    mut runtime: Runtime<Node, NoDriver>,
    life: Life,
    carrier: &CarrierWish,
    stop: &UnixStream,
) -> Result<(), Fault> {
    let id = NodeId(node.number);
    runtime.open_datagrams(id).map_err(node::other)?;
    let opened = carrier.in_kernel(node.address, file.id().0, life.0)?;
    let Some(opened) = opened else {
        let core = core(options(file), id, life, 0, Vec::new())?;
        runtime.add(node.place(), life, core);
        up(file, node, life);
        return runtime.run(Some(stop)).map_err(node::other);
    };
    let CarrierInKernel {
        carrier: opened,
        place,
    } = opened;
    let kind = opened.kind();
    // The records' life, not the process's: those of an earlier process are still there.
    let records_life = opened.life();
    tracing::info!(carrier = %kind, interface = place.interface, life = records_life, "records in the kernel; durability: memory");
    let core = CurpNode::witness_on(id, records_life, options(file), opened);
    runtime.add(node.place(), life, core);
    up(file, node, life);
    let ran = runtime.run(Some(stop)).map_err(node::other);
    if !carrier.keeps {
        crate::witness::remove(kind, &place)?;
    }
    ran
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

/// The server of SQL's rows that a node of the file is.
///
/// # Errors
/// It is none.
pub fn sql_server(file: &ClusterFile, number: u32) -> Result<&super::file::Node, Fault> {
    if file.protocol != ClusterProtocol::Curp || !shape(file).sql {
        return Err(Fault::Config(
            "the cluster file describes no cluster that replicates SQL's rows: manxdb cluster up curp \
             --sql starts one"
                .to_owned(),
        ));
    }
    let node = file.nodes.iter().find(|node| node.number == number);
    let server = node.filter(|node| options(file).role(NodeId(node.number)) == Role::Server);
    server.ok_or_else(|| {
        let servers = shape(file).servers;
        Fault::Config(format!(
            "node {number} is no server of the cluster file: those are 1 to {servers}"
        ))
    })
}

/// Runs a server of SQL's rows, and the CURP client of its own commits, until `stop` is closed.
///
/// # Errors
/// Whatever keeps it from starting or going on.
pub fn run_sql_server(
    file: &ClusterFile,
    node: &super::file::Node,
    (data, life): (&DataDirectory, Life),
    listener: TcpListener,
    driver: PrimaryDriver,
    stop: &UnixStream,
) -> Result<(), Fault> {
    let (id, client) = (NodeId(node.number), client_of(file, NodeId(node.number)));
    let seed = u64::from(node.number) << 32 | life.0;
    let settings = settings::<SqlMachine>(file, seed, true);
    let options = options(file);
    let (journal, disk) = journal(data, life)?;
    let mut runtime = Runtime::new(settings, listener, driver).map_err(node::other)?;
    // Server and client are one machine.
    runtime.hold_no_hosted();
    let core = |id, disk| SqlNode::open(id, life.0, options, 0, disk).map_err(node::other);
    runtime
        .add_with_journal(
            node.place(),
            life,
            core(id, disk)?,
            (journal, CurpRecord::supersedes),
        )
        .map_err(node::other)?;
    runtime.open_datagrams(id).map_err(node::other)?;
    let place = Place {
        node: client,
        region: RegionId(node.region),
    };
    runtime.add(place, life, core(client, Vec::new())?);
    runtime.open_datagrams(client).map_err(node::other)?;
    up(file, node, life);
    runtime.run(Some(stop)).map_err(node::other)
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
    opened.map_err(super::node::other)
}

/// Where Redis clients connect, in a process that has a CURP client.
fn front(redis: Option<SocketAddr>, client: NodeId, options: &Options) -> Result<Front, Fault> {
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

fn pass_on(
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
/// As [`run`], and those of `show`.
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

/// What a node says of itself.
#[must_use]
pub fn notes<E: CountedRows>(core: &CurpNode<E>) -> Vec<(String, String)> {
    let mut notes = Vec::new();
    let mut note = |name: &str, value: String| notes.push((name.to_owned(), value));
    if let Some(coordinator) = core.coordinator() {
        note(STATE, COORDINATES.to_owned());
        if let Some(what) = coordinator.waits_for() {
            note(WAITS, what);
        }
        let nodes = |members: &[Member]| {
            let nodes: Vec<_> = members
                .iter()
                .map(|member| member.node.0.to_string())
                .collect();
            nodes.join(" ")
        };
        note("spares", nodes(&coordinator.spares()));
        if let Some(config) = coordinator.config() {
            note(
                "view",
                format!("{}.{}", config.view.epoch.0, config.view.wlv.0),
            );
            note("master", config.master.node.0.to_string());
            note("backups", nodes(&config.backups));
            note("witnesses", nodes(&config.witnesses));
        }
    }
    if let Some(server) = core.server() {
        let is_master = server.serves().is_some();
        note(STATE, if is_master { SERVES } else { FOLLOWS }.to_owned());
        if let Some(counts) = server.counts() {
            note("fast", counts.fast.to_string());
            note("synced first", counts.synced_first.to_string());
            note("replayed", counts.replayed.to_string());
            note("clients forgotten", counts.expired.to_string());
            let uncollected = server.uncollected().unwrap_or(0);
            note("records not collected", uncollected.to_string());
        }
        if let (Some(not_synced), Some(backlog)) = (server.not_synced(), server.backlog()) {
            note("not synced", not_synced.to_string());
            let backlog = backlog.iter();
            let backlog = backlog.map(|(backup, commands)| format!("{}:{commands}", backup.0));
            note("backlog", backlog.collect::<Vec<_>>().join(" "));
        }
        let (applied, state) = server.applied();
        note("applied", applied.to_string());
        let rows = server.served().unwrap_or(state).count_rows();
        note("rows", rows.to_string());
        note("not on disk", server.not_on_disk().to_string());
    }
    if let Some(witness) = core.witness() {
        note(STATE, WITNESSES.to_owned());
        note("carrier", witness.carrier().to_owned());
        note(
            "datagrams refused for their content",
            witness.refused().to_string(),
        );
    }
    if let Some(client) = core.client() {
        note(STATE, PASSES_ON.to_owned());
        note("waiting", client.waiting().to_string());
    }
    notes
}
