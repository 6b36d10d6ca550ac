//! Nodes as threads, over sockets and over memory; and rows drawn from seeds.
#![allow(dead_code)] // each test uses a part

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;

use manxdb_core::Random;
use manxdb_fabric::ServerId;
use manxdb_fabric::shm::{MemoryServer, SharedMemory};
use manxdb_olap::memory::{Node, NodeRegion};
use manxdb_olap::sockets::Sockets;
use manxdb_olap::{Key, Rows, Width};

pub fn width(bytes: usize) -> Width {
    Width::new(bytes).unwrap()
}

/// How keys are drawn.
#[derive(Debug, Clone, Copy)]
pub enum Keys {
    /// All alike, below a bound.
    Even(u64),
    /// Half of all rows have one of three keys, the others are below a bound.
    Skewed(u64),
    /// Always the same.
    One,
}

/// Rows of a node: keys as drawn, and bytes that tell rows apart.
pub fn rows(random: &mut Random, bytes: usize, count: u64, keys: Keys) -> Rows {
    let mut rows = Rows::new(width(bytes));
    for _ in 0..count {
        let key = match keys {
            Keys::Even(bound) => random.below(bound),
            Keys::Skewed(_) if random.below(2) == 0 => random.below(3),
            Keys::Skewed(bound) => random.below(bound),
            Keys::One => 77,
        };
        let payload: Vec<u8> = (0..bytes.div_ceil(8))
            .flat_map(|_| random.next_bits().to_le_bytes())
            .collect();
        rows.push(Key(u32::try_from(key).unwrap()), &payload);
    }
    rows
}

/// All rows of all nodes.
pub fn all(nodes: &[Rows]) -> Rows {
    let mut all = Rows::new(nodes[0].width());
    for rows in nodes {
        all.extend(rows.as_bytes()).unwrap();
    }
    all
}

/// Sockets between so many nodes.
pub fn sockets(nodes: usize) -> Vec<Sockets> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut ends: Vec<Vec<Option<TcpStream>>> = (0..nodes)
        .map(|_| (0..nodes).map(|_| None).collect())
        .collect();
    let pairs = (0..nodes).flat_map(|one| (0..one).map(move |other| (one, other)));
    for (one, other) in pairs {
        ends[one][other] = Some(TcpStream::connect(address).unwrap());
        ends[other][one] = Some(listener.accept().unwrap().0);
    }
    let connect = |streams| Sockets::new(streams).unwrap();
    ends.into_iter().map(connect).collect()
}

/// Memory of so many nodes, in a directory.
pub fn memory(directory: &Path, region: NodeRegion) -> Vec<MemoryServer> {
    let start = |node: u16| {
        let path = directory.join(node.to_string());
        MemoryServer::start(&path, ServerId(node), region.bytes()).unwrap()
    };
    (0..region.nodes()).map(start).collect()
}

/// A node's way to it.
pub fn connect(directory: &Path, region: NodeRegion, me: u16) -> SharedMemory {
    let mut fabric = SharedMemory::default();
    for node in 0..region.nodes() {
        let path = directory.join(node.to_string());
        fabric.connect(&path, u64::from(me)).unwrap();
    }
    fabric
}

/// What all nodes found, each with its sockets.
pub fn by_messages<T: Send>(nodes: usize, run: impl Fn(usize, &mut Sockets) -> T + Sync) -> Vec<T> {
    let run = &run;
    thread::scope(|scope| {
        let threads: Vec<_> = sockets(nodes)
            .into_iter()
            .enumerate()
            .map(|(me, mut sockets)| scope.spawn(move || run(me, &mut sockets)))
            .collect();
        threads.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

/// The same, each with its memory.
pub fn by_writes<T: Send>(
    region: NodeRegion,
    run: impl Fn(usize, &mut Node<SharedMemory>) -> T + Sync,
) -> Vec<T> {
    let directory = tempfile::tempdir().unwrap();
    let _servers = memory(directory.path(), region);
    let (run, path) = (&run, directory.path());
    thread::scope(|scope| {
        let threads: Vec<_> = (0..region.nodes())
            .map(|me| {
                let mut node = Node::new(connect(path, region, me), region, me).unwrap();
                scope.spawn(move || run(usize::from(me), &mut node))
            })
            .collect();
        threads.into_iter().map(|one| one.join().unwrap()).collect()
    })
}
