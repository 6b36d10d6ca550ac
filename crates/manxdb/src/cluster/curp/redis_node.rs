//! A node that replicates Redis's keys, as a process: coordinator, server, witness or proxy.

use std::os::unix::net::UnixStream;

use manxdb_core::NodeId;
use manxdb_core::channel::Life;
use manxdb_curp::disk::CurpRecord;
use manxdb_curp::{CurpNode, Options, Role};
use manxdb_net::packet::Place;
use manxdb_net::{DataDirectory, NoDriver, RegionId, Runtime};

use super::proxy::{front, pass_on};
use super::{client_of, core, journal, options, settings, shape, up};
use crate::cluster::file::ClusterFile;
use crate::cluster::{coordinator, file, node};
use crate::fault::Fault;
use crate::witness::{CarrierInKernel, CarrierWish};

/// Runs a node of the file until it is told to stop.
///
/// # Errors
/// Whatever keeps it from starting, or a disk that fails.
pub fn run(
    file: &ClusterFile,
    node: &file::Node,
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
            let (journal, disk) = journal(data, life)?;
            let server = core(options, id, life, 0, disk)?;
            // It is asked what this cluster has. Not before its journal is read: Redis clients would connect and
            // then wait for that, where they can try another server.
            let front = front(file, node.redis, client, false)?;
            let mut runtime = Runtime::new(settings, listener, front).map_err(node::other)?;
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
            let front = front(file, node.redis, id, true)?;
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
    node: &file::Node,
    mut runtime: Runtime<super::Node, NoDriver>,
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
