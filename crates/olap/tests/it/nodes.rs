//! Nodes that are gone, or are none of ours: the others say so, and do not wait for ever.
#![allow(clippy::unwrap_used, clippy::panic)]
#![allow(clippy::disallowed_methods)] // threads and sockets stand for nodes

use std::collections::VecDeque;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use crate::common::{Keys, connect, memory, rows, width};
use manxdb_core::Random;
use manxdb_fabric::shm::SharedMemory;
use manxdb_fabric::{
    BatchId, Completion, Fabric, Fault, Grants, Misuse, Operation, OperationOutcome, ServerId,
};
use manxdb_olap::join::{Tables, Travel, by_messages, by_writes};
use manxdb_olap::memory::{Load, Node, NodeRegion};
use manxdb_olap::sockets::Sockets;
use manxdb_olap::{OlapError, Rows, Traffic, aggregate};

fn some() -> Rows {
    rows(&mut Random::new(1), 8, 100, Keys::Even(50))
}

/// A join of these with a socket's other end.
fn join(streams: Vec<Option<TcpStream>>) -> Result<(), OlapError> {
    let (build, probe) = (some(), some());
    let tables = Tables {
        build: &build,
        probe: &probe,
    };
    let mut sockets = Sockets::new(streams).unwrap();
    by_messages(&mut sockets, tables, Travel::All, 2, |_, _| {}).map(|_| ())
}

/// What a join says whose other node says these bytes and is gone.
fn said_of(bytes: &[u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::scope(|scope| {
        let joined = scope.spawn(move || {
            let stream = TcpStream::connect(address).unwrap();
            join(vec![None, Some(stream)]).unwrap_err().to_string()
        });
        let mut other = listener.accept().unwrap().0;
        other.write_all(bytes).unwrap();
        other.shutdown(std::net::Shutdown::Write).unwrap();
        joined.join().unwrap()
    })
}

#[test]
fn a_node_that_ends_early_or_says_what_makes_no_sense_is_named() {
    assert_eq!(said_of(&[]), "node 1 is gone");
    // Half of a message.
    assert_eq!(said_of(&[0, 0, 0, 0, 9, 0, 0, 0, 1]), "node 1 is gone");
    let nonsense = "node 1 says what makes no sense: ";
    assert!(said_of(&[9; 8]).starts_with(nonsense));
    // Rows that are not whole, and a filter that nobody has asked for.
    let cut = said_of(&[0, 0, 0, 0, 3, 0, 0, 0, 1, 2, 3]);
    assert!(cut.contains("3 bytes are not so many rows of 8"), "{cut}");
    let filter = said_of(&[1, 0, 0, 0, 0, 0, 0, 0]);
    assert!(
        filter.contains("a filter, when rows are awaited"),
        "{filter}"
    );
}

#[test]
fn nodes_that_are_ahead_and_end_disturb_nobody() {
    // Ends of both sides in one go, before this side has begun: it is not gone, it is done.
    let said = [2, 0, 0, 0, 0, 0, 0, 0];
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    other.write_all(&said).unwrap();
    other.shutdown(std::net::Shutdown::Write).unwrap();
    join(vec![None, Some(listener.accept().unwrap().0)]).unwrap();
}

/// Memory of which a server is gone.
struct Without {
    memory: SharedMemory,
    server: ServerId,
    failed: VecDeque<Completion>,
}

impl Fabric for Without {
    fn grants(&self) -> Grants {
        self.memory.grants()
    }

    fn registered(&self, server: ServerId) -> Option<u64> {
        self.memory.registered(server)
    }

    fn post(&mut self, batch: BatchId, operations: Vec<Operation>) -> Result<(), Misuse> {
        if operations.iter().all(|one| one.server() != self.server) {
            return self.memory.post(batch, operations);
        }
        let gone = OperationOutcome::Failed(Fault::Gone(self.server));
        let outcomes = vec![gone; operations.len()];
        self.failed
            .push_back(Completion::new(batch, &operations, outcomes));
        Ok(())
    }

    fn poll(&mut self) -> Option<Completion> {
        self.failed.pop_front().or_else(|| self.memory.poll())
    }
}

fn load(rows: u64) -> Load {
    let width = width(8);
    Load { rows, width }
}

#[test]
fn a_node_whose_memory_is_gone_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let region = NodeRegion::new(2, 1, 1 << 10, &[load(1_000), load(1_000)]).unwrap();
    let _servers = memory(directory.path(), region);
    let fabric = Without {
        memory: connect(directory.path(), region, 0),
        server: ServerId(1),
        failed: VecDeque::new(),
    };
    let mut node = Node::new(fabric, region, 0).unwrap();
    let (build, probe) = (some(), some());
    let tables = Tables {
        build: &build,
        probe: &probe,
    };
    let error = by_writes(&mut node, tables, 1, |_, _| {}).unwrap_err();
    assert_eq!(error.to_string(), "node 1 is gone");
}

/// Memory whose user says when it has looked after a server so often.
struct Looking {
    memory: SharedMemory,
    server: ServerId,
    looks: u32,
    said: Sender<()>,
}

impl Fabric for Looking {
    fn grants(&self) -> Grants {
        self.memory.grants()
    }

    fn registered(&self, server: ServerId) -> Option<u64> {
        self.memory.registered(server)
    }

    fn post(&mut self, batch: BatchId, operations: Vec<Operation>) -> Result<(), Misuse> {
        let is_look =
            |one: &Operation| matches!(one, Operation::Read { .. }) && one.server() == self.server;
        if operations.iter().any(is_look) {
            self.looks += 1;
        }
        if self.looks == 5 {
            let _ = self.said.send(());
        }
        self.memory.post(batch, operations)
    }

    fn poll(&mut self) -> Option<Completion> {
        self.memory.poll()
    }
}

#[test]
fn what_is_sent_does_not_depend_on_who_is_late() {
    let directory = tempfile::tempdir().unwrap();
    let region = NodeRegion::new(2, 1, 1 << 10, &[load(1_000), load(1_000)]).unwrap();
    let _servers = memory(directory.path(), region);
    let (said, looked) = channel();
    let fabric = Looking {
        memory: connect(directory.path(), region, 0),
        server: ServerId(1),
        looks: 0,
        said,
    };
    let late = connect(directory.path(), region, 1);
    let nothing = Rows::new(width(8));
    let tables = Tables {
        build: &nothing,
        probe: &nothing,
    };
    let sent = thread::scope(|scope| {
        scope.spawn(move || {
            looked.recv().unwrap();
            let mut late = Node::new(late, region, 1).unwrap();
            by_writes(&mut late, tables, 1, |_, _| {}).unwrap();
        });
        let mut node = Node::new(fabric, region, 0).unwrap();
        by_writes(&mut node, tables, 1, |_, _| {}).unwrap()
    });
    // That it has written all that it had.
    let (messages, bytes) = (1, 8);
    assert_eq!(sent, Traffic { messages, bytes });
}

#[test]
fn memory_that_does_not_fit_the_region_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let region = NodeRegion::new(2, 1, 1 << 10, &[load(10)]).unwrap();
    let _servers = memory(directory.path(), region);
    let refused = |client, region: NodeRegion, me| {
        let paths = NodeRegion::new(2, 1, 1 << 10, &[load(10)]).unwrap();
        let fabric = connect(directory.path(), paths, client);
        match Node::new(fabric, region, me) {
            Ok(_) => panic!("it is let in"),
            Err(error) => error.to_string(),
        }
    };
    let larger = NodeRegion::new(2, 1, 1 << 10, &[load(10_000)]).unwrap();
    assert!(refused(1, larger, 0).contains("node 0 has registered"));
    let more = NodeRegion::new(3, 1, 1 << 10, &[]).unwrap().with_pieces(1);
    assert!(refused(2, more, 0).contains("node 2 has registered 0 bytes"));
    assert_eq!(refused(3, region, 2), "node 2 of 2, from 0 on");
}

#[test]
fn an_aggregation_refuses_rows_of_a_join() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    other.write_all(&[0, 1, 0, 0, 8, 0, 0, 0]).unwrap();
    other.write_all(&[0; 8]).unwrap();
    let own = listener.accept().unwrap().0;
    let mut sockets = Sockets::new(vec![None, Some(own)]).unwrap();
    let error = aggregate::by_messages(&mut sockets, &some(), |_| {}).unwrap_err();
    assert!(error.to_string().contains("a join, when groups"), "{error}");
}
