//! A server that replicates SQL's rows, and the CURP client of its own commits, as a process.

use std::net::TcpListener;
use std::os::unix::net::UnixStream;

use manxdb_core::NodeId;
use manxdb_core::channel::Life;
use manxdb_curp::Role;
use manxdb_curp::disk::CurpRecord;
use manxdb_curp_sql::driver::SqlNode;
use manxdb_curp_sql::{Home, PrimaryDriver, SqlMachine};
use manxdb_net::packet::Place;
use manxdb_net::{DataDirectory, RegionId, Runtime};

use super::{client_of, journal, options, settings, shape, up};
use crate::cluster::file::{ClusterFile, ClusterProtocol, Node};
use crate::cluster::node;
use crate::fault::Fault;

/// The engine of a replica's rows: it is written in the order of the log by one thread, which also answers
/// the cluster, so its memtables are small and written out soon.
const STORE: manxdb_storage::Options = manxdb_storage::Options {
    block_cache_bytes: 32 << 20,
    write_buffer_bytes: 8 << 20,
    file_bytes: 64 << 20,
    level0_files: 4,
    background_jobs: 2,
    log_segment_bytes: 8 << 20,
    statistics: false,
};

/// The server of SQL's rows that a node of the file is.
///
/// # Errors
/// It is none.
pub fn sql_server(file: &ClusterFile, number: u32) -> Result<&Node, Fault> {
    if file.protocol != ClusterProtocol::Curp || !shape(file).sql {
        return Err(Fault::Config(
            "the cluster file describes no cluster that replicates SQL's rows: manxdb cluster up curp \
             --sql starts one"
                .to_owned(),
        ));
    }
    let node = file.node(number);
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
    node: &Node,
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
    let failure = driver.known_failure();
    let mut runtime = Runtime::new(settings, listener, driver).map_err(node::other)?;
    // Server and client are one machine.
    runtime.hold_no_hosted();
    let home = Home::open(data.path(), STORE).map_err(|error| {
        Fault::io(
            format!(
                "cannot open the replicated rows in {}",
                data.path().display()
            ),
            error,
        )
    })?;
    let core = |id, disk| {
        let empty = SqlMachine::stored(&home);
        SqlNode::open_on(empty, id, life.0, options, 0, disk).map_err(node::other)
    };
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
    runtime.run(Some(stop)).map_err(node::other)?;
    match failure.why() {
        Some(why) => Err(Fault::Other(why.to_owned())),
        None => Ok(()),
    }
}
