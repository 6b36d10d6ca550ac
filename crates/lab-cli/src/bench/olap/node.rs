//! What each node of a run does.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use manxdb_fabric::shm::SharedMemory;
use manxdb_olap::join::{Tables, Travel};
use manxdb_olap::memory::{Node, NodeRegion};
use manxdb_olap::sockets::Sockets;
use manxdb_olap::workload::Answer;
use manxdb_olap::{Traffic, aggregate, join};

use super::Done;
use crate::bench::{cpu_of, memories, processes};
use crate::cli::{Algorithm, OlapNode, OlapShape};
use crate::fault::Fault;

/// What carries rows.
enum Carrier {
    Sockets(Sockets),
    /// And into how many partitions each that comes is divided.
    Memory(Box<Node<SharedMemory>>, u32),
}

/// Runs a node.
///
/// # Errors
/// Another one is not there or is gone; what decides the run makes no sense.
pub fn node(args: &OlapNode) -> Result<ExitCode, Fault> {
    let shape = serde_json::from_str(&args.shape)
        .map_err(|error| Fault::Other(format!("--shape: {error}")))?;
    let done = work(args, &shape);
    done.map(|()| ExitCode::SUCCESS)
        .map_err(|error| Fault::Other(error.to_string()))
}

fn work(args: &OlapNode, shape: &OlapShape) -> io::Result<()> {
    let width = shape.check().map_err(io::Error::other)?;
    let me = args.number;
    let room = shape.room(width).map_err(io::Error::other)?;
    let memory = match room {
        Some((room, _)) => Some(memories::serve(&args.directory, me, room.bytes())?),
        None => None,
    };
    let carrier = match room {
        Some((room, divided)) => Carrier::Memory(reach(args, room)?, divided),
        None => Carrier::Sockets(meet(&args.directory, me, shape.nodes)?),
    };
    let (build, probe) = if shape.algorithm.is_join() {
        let pairs = shape.pairs(width);
        (pairs.build(me), pairs.probe(me))
    } else {
        let rows = shape.grouped(width).rows(me);
        let none = manxdb_olap::Rows::new(width);
        (rows, none)
    };
    let tables = Tables {
        build: &build,
        probe: &probe,
    };
    let parts = shape.parts(width);
    processes::once(|| {
        let cpu = || cpu_of(Some(std::process::id())).unwrap_or_default();
        let (began, used) = (Instant::now(), cpu());
        let (answer, sent) = answer(carrier, shape.algorithm, tables, parts)?;
        Ok(Done {
            found: answer.found,
            sum: answer.sum,
            seconds: began.elapsed().as_secs_f64(),
            cpu_seconds: cpu().saturating_sub(used).as_secs_f64(),
            messages: sent.messages,
            bytes: sent.bytes,
        })
    })?;
    drop(memory);
    Ok(())
}

/// Joins or adds up, with all others.
fn answer(
    carrier: Carrier,
    algorithm: Algorithm,
    tables: Tables<'_>,
    parts: u32,
) -> io::Result<(Answer, Traffic)> {
    let mut answer = Answer::default();
    let is_join = algorithm.is_join();
    let travel = match algorithm {
        Algorithm::GhjBloom => Travel::Filtered,
        _ => Travel::All,
    };
    let sent = match carrier {
        Carrier::Sockets(mut sockets) if is_join => {
            let each = |one: &[u8], other: &[u8]| answer.pair(one, other);
            join::by_messages(&mut sockets, tables, travel, parts, each)
        }
        Carrier::Sockets(mut sockets) => {
            aggregate::by_messages(&mut sockets, tables.build, |group| answer.group(group))
        }
        Carrier::Memory(mut node, divided) if is_join => {
            let each = |one: &[u8], other: &[u8]| answer.pair(one, other);
            join::by_writes(&mut node, tables, divided, each)
        }
        Carrier::Memory(mut node, _) => {
            aggregate::by_writes(&mut node, tables.build, |group| answer.group(group))
        }
    };
    sent.map(|sent| (answer, sent)).map_err(io::Error::other)
}

/// This node's way to the memory of all.
fn reach(args: &OlapNode, room: NodeRegion) -> io::Result<Box<Node<SharedMemory>>> {
    let me = args.number;
    let fabric = memories::connect(&args.directory, room.nodes(), u64::from(me))?;
    let node = Node::new(fabric, room, me).map_err(io::Error::other)?;
    Ok(Box::new(node))
}

/// Connects to all other nodes: to those of lower numbers, and is connected to by the others.
fn meet(directory: &Path, me: u16, nodes: u16) -> io::Result<Sockets> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    // Whole or not there at all.
    let unfinished = directory.join(format!("node-{me}.unfinished"));
    fs::write(&unfinished, port.to_string())?;
    fs::rename(unfinished, port_of(directory, me))?;
    let mut streams: Vec<Option<TcpStream>> = (0..nodes).map(|_| None).collect();
    for (other, stream) in (0..me).zip(&mut streams) {
        let file = port_of(directory, other);
        memories::await_file(&file)?;
        let port = fs::read_to_string(file)?.parse::<u16>();
        let port = port.map_err(io::Error::other)?;
        let mut connected = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        connected.write_all(&me.to_le_bytes())?;
        *stream = Some(connected);
    }
    for _ in me + 1..nodes {
        let mut connected = listener.accept()?.0;
        let mut number = [0; 2];
        connected.read_exact(&mut number)?;
        let number = u16::from_le_bytes(number);
        match streams.get_mut(usize::from(number)) {
            Some(stream) if number > me && stream.is_none() => *stream = Some(connected),
            _ => return Err(io::Error::other(format!("a node calls itself {number}"))),
        }
    }
    Sockets::new(streams)
}

fn port_of(directory: &Path, node: u16) -> PathBuf {
    directory.join(format!("node-{node}.port"))
}
