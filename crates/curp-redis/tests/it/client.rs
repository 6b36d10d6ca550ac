//! The client for Rust programs, with a cluster whose nodes are threads of the test.
#![allow(clippy::disallowed_methods)]

use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

use manxdb_core::channel::Life;
use manxdb_core::{Nanos, NodeId};
use manxdb_curp::{CurpNode, Options};
use manxdb_curp_client::{Cluster, ConnectError, CoordinatorDriver};
use manxdb_curp_redis::{RedisClient, RedisError, RedisMachine, Value};
use manxdb_net::{ClusterId, Delays, Directory, Journal, Place, RegionId, Runtime};

type Node = CurpNode<RedisMachine>;

/// Coordinator, three servers, one witness.
const NODES: u32 = 5;

/// A node, until it is stopped.
struct Running {
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

struct Nodes {
    running: Vec<Running>,
    coordinator: SocketAddr,
    _disk: tempfile::TempDir,
}

impl Nodes {
    fn start() -> Self {
        let disk = tempfile::tempdir().unwrap();
        let listeners: Vec<TcpListener> = (0..NODES)
            .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
            .collect();
        let mut directory = Directory::default();
        for (number, listener) in (0..).zip(&listeners) {
            directory.add_server(place(number), listener.local_addr().unwrap());
        }
        let cluster = Cluster {
            id: ClusterId(11),
            directory,
            delays: Delays::default(),
            options: Options {
                servers: 3,
                // A busy machine gives a thread long pauses.
                heartbeat_every: Nanos::from_millis(50),
                suspect_after: Nanos::from_millis(600),
                lease: Nanos::from_millis(300),
                race_after: Nanos::from_millis(50),
                patience: Nanos::from_millis(200),
                ..Options::default()
            },
        };
        let coordinator = listeners[0].local_addr().unwrap();
        let nodes = (0..).zip(listeners);
        let running = nodes.map(|(number, listener)| {
            let path = disk.path().join("journal");
            run(cluster.clone(), number, listener, path)
        });
        Self {
            running: running.collect(),
            coordinator,
            _disk: disk,
        }
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for node in &mut self.running {
            node.stop();
        }
    }
}

fn place(number: u32) -> Place {
    Place {
        node: NodeId(number),
        region: RegionId(0),
    }
}

fn run(cluster: Cluster, number: u32, listener: TcpListener, disk: std::path::PathBuf) -> Running {
    let (stop, stops) = UnixStream::pair().unwrap();
    let thread = std::thread::spawn(move || {
        let settings = cluster.settings(number.into(), false, |_| Vec::new());
        let driver = CoordinatorDriver::new(&cluster);
        let mut runtime = Runtime::new(settings, listener, driver).unwrap();
        let (life, node) = (Life(1), NodeId(number));
        if number == 0 {
            let (journal, kept) = Journal::open(&disk, 1).unwrap();
            let core = Node::open(node, 1, cluster.options, 5, kept).unwrap();
            runtime
                .add_with_journal(
                    place(number),
                    life,
                    core,
                    (journal, manxdb_curp::disk::CurpRecord::supersedes),
                )
                .unwrap();
        } else {
            let core = Node::open(node, 1, cluster.options, 0, Vec::new()).unwrap();
            runtime.add(place(number), life, core);
            runtime.open_datagrams(node).unwrap();
        }
        runtime.run(Some(&stops)).unwrap();
    });
    Running {
        stop: Some(stop),
        thread: Some(thread),
    }
}

#[test]
fn a_program_asks_in_one_round_trip_and_each_command_runs_once_whoever_dies() {
    let mut nodes = Nodes::start();
    let client = RedisClient::connect(&[nodes.coordinator]).unwrap();
    client.set("greeting", "hello").unwrap();
    assert_eq!(client.get("greeting").unwrap(), Some(b"hello".to_vec()));
    assert_eq!(client.get("nothing").unwrap(), None);
    let pairs = client.command(&["HSET", "hash", "a", "1", "b", "2"]);
    assert_eq!(pairs.unwrap(), Value::Integer(2));
    let refused = |words: &[&str]| match client.command(words) {
        Err(RedisError::Refused(why)) => why,
        other => panic!("{words:?}: {other:?}"),
    };
    assert!(refused(&["INCR", "greeting"]).contains("not an integer"));
    assert!(refused(&["BLPOP", "list", "0"]).contains("BLPOP may wait"));
    assert!(refused(&["MULTI"]).contains("MULTI is of a connection"));
    assert!(refused(&["GET"]).contains("wrong number of arguments"));
    assert!(client.counts().fast >= 1, "{:?}", client.counts());

    // Any number of threads; the first master ends in their midst.
    const EACH: i64 = 40;
    std::thread::scope(|scope| {
        let counting = || {
            for _ in 0..EACH {
                client.incr("visits").unwrap();
            }
        };
        let threads = [scope.spawn(counting), scope.spawn(counting)];
        while client.counts().conflicts + client.counts().fast < 20 {
            client.set("other", "x").unwrap();
        }
        nodes.running[1].stop();
        for thread in threads {
            thread.join().unwrap();
        }
    });
    let visits = client.get("visits").unwrap().unwrap();
    assert_eq!(String::from_utf8(visits).unwrap(), (2 * EACH).to_string());
    assert!(client.del("visits").unwrap() && !client.del("visits").unwrap());
    assert_eq!(client.counts().unknown, 0);
}

#[test]
fn a_node_that_is_no_coordinator_is_told_apart() {
    let nodes = Nodes::start();
    // The coordinator is asked although one before it does not answer.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = gone.local_addr().unwrap();
    assert!(RedisClient::connect(&[gone, nodes.coordinator]).is_ok());
    let refused = RedisClient::connect(&[gone]).err().unwrap();
    assert!(
        matches!(refused, ConnectError::NoCoordinator(_)),
        "{refused}"
    );
}
