//! The one thread of a memory server that calls libfabric.
//!
//! It owns all ports, one for each connection of a client, and polls them in turn: of most providers
//! that is when reads, writes and swaps are done, one after another. Other threads give it orders.
//! While there are clients it never rests: a memory server has a processor for it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::hello::{Denial, Report, SHUT_OUT};
use super::listener::PATIENCE;
use super::port::Port;
use crate::waiting::Waiting;

/// Rounds through all connections between two looks at what is ordered.
const ROUNDS: u32 = 64;
/// Rounds of these in which a client that is shut out may hear of it and end what it has begun, and how
/// long they may take. One that hangs begins nothing meanwhile.
const GRACE: u32 = 256;
const GRACE_TIME: Duration = Duration::from_millis(100);
const _: () = assert!(
    GRACE_TIME.as_millis() < PATIENCE.as_millis(),
    "whoever has a client shut out waits for as long as that client may take"
);

/// What other threads want.
pub(super) enum Order {
    /// Whether a client may have a connection: asked before a port is opened for it, elsewhere, since memory is
    /// registered over it, which may take long.
    Ask {
        client: u64,
        reply: Sender<Result<(), Denial>>,
    },
    /// A client gets a connection, unless it may not have one any more; its number comes with the answer.
    Admit {
        client: u64,
        port: Port,
        /// On which it has asked.
        stream: TcpStream,
        reply: Sender<Result<u64, Denial>>,
    },
    /// A client is to write nothing more; the reply says why it may.
    Shut { client: u64, reply: Sender<Report> },
    /// The client of a connection is gone.
    Leave { client: u64, connection: u64 },
    /// All connections are to be closed.
    End,
}

/// What other threads see.
pub(super) type Seen = Arc<Mutex<Shown>>;

/// Who is there, and who was.
#[derive(Default)]
pub(super) struct Shown {
    pub(super) present: BTreeSet<u64>,
    /// How many were shut out.
    pub(super) ended: usize,
}

/// All clients of a server.
pub(super) struct Connections {
    seen: Seen,
    open: BTreeMap<u64, Connection>,
    /// Those who are not let in again: a word for each.
    shut: BTreeSet<u64>,
    /// How many there have been.
    count: u64,
    waiting: Waiting,
}

/// A client's.
struct Connection {
    number: u64,
    port: Port,
    stream: TcpStream,
}

impl Connection {
    /// Whether its client still has its connection.
    fn is_inhabited(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let said = recv(&self.stream, &mut [0], flags);
        matches!(said, Err(Errno::AGAIN | Errno::INTR))
    }
}

impl Connections {
    /// None are open yet.
    pub(super) fn new(seen: Seen) -> Self {
        Self {
            seen,
            open: BTreeMap::new(),
            shut: BTreeSet::new(),
            count: 0,
            waiting: Waiting::default(),
        }
    }

    /// Until the end is ordered, or nobody is left to order it.
    pub(super) fn run(mut self, orders: &Receiver<Order>) {
        loop {
            let order = if self.open.is_empty() {
                orders.recv().map_err(|_| TryRecvError::Disconnected)
            } else {
                orders.try_recv()
            };
            match order {
                Ok(Order::End) | Err(TryRecvError::Disconnected) => return,
                Ok(order) => self.follow(order),
                Err(TryRecvError::Empty) => {}
            }
            self.poll();
            self.waiting.give_way();
        }
    }

    fn poll(&mut self) {
        for _ in 0..ROUNDS {
            for connection in self.open.values_mut() {
                // An error is that of a client's operation, of which the client hears.
                while let Ok(Some(_)) = connection.port.poll() {}
            }
        }
    }

    /// Replies when all can see what has become of it.
    fn follow(&mut self, order: Order) {
        match order {
            Order::Ask { client, reply } => {
                let _ = reply.send(self.may_come(client)); // or it is gone again
            }
            Order::Admit {
                client,
                port,
                stream,
                reply,
            } => {
                let answer = self.admit(client, port, stream);
                self.show();
                let _ = reply.send(answer); // or it is gone again, and says so
            }
            Order::Shut { client, reply } => {
                let shut = self.shut(client);
                self.show();
                let _ = reply.send(shut); // or its patience was at an end
            }
            Order::Leave { client, connection } => {
                let is_there = |found: &Connection| found.number == connection;
                if self.open.get(&client).is_some_and(is_there) {
                    let _ = self.close(client); // it is gone
                }
                self.show();
            }
            Order::End => {}
        }
    }

    fn show(&self) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(
            self.open.keys().all(|client| !self.shut.contains(client)),
            "a client that is shut out has no port"
        );
        assert!(
            seen.ended <= self.shut.len(),
            "who was shut out stays so: {} of {}",
            self.shut.len(),
            seen.ended
        );
        seen.present = self.open.keys().copied().collect();
        seen.ended = self.shut.len();
    }

    fn may_come(&self, client: u64) -> Result<(), Denial> {
        if self.shut.contains(&client) {
            return Err(Denial::ShutOut);
        }
        if self.open.contains_key(&client) {
            return Err(Denial::Already);
        }
        Ok(())
    }

    /// The number of its connection.
    fn admit(&mut self, client: u64, port: Port, stream: TcpStream) -> Result<u64, Denial> {
        self.may_come(client)?; // it may have been shut out since it asked
        self.count += 1;
        let number = self.count;
        assert!(
            self.open.values().all(|other| other.number < number),
            "a connection has a number of its own, or another one would be closed in its place: {number}"
        );
        let connection = Connection {
            number,
            port,
            stream,
        };
        let other = self.open.insert(client, connection);
        assert!(other.is_none(), "a client has one port: {client}");
        Ok(number)
    }

    /// Says so to the client first, that it knows why its operations fail, and waits a while until
    /// it has gone of itself. Libfabric needs that: when it closes an endpoint of `verbs;ofi_rxm`
    /// it answers what has come by then, over the connection that it has just closed (1.17).
    fn shut(&mut self, client: u64) -> Report {
        self.shut.insert(client);
        if let Some(connection) = self.open.get_mut(&client) {
            let _ = connection.stream.write_all(&[SHUT_OUT]); // or it is gone
        }
        assert!(
            self.may_come(client).is_err(),
            "a client is not let in again before its port is closed: {client}"
        );
        let began = Instant::now();
        for _ in 0..GRACE {
            let is_there = self.open.get(&client).is_some_and(Connection::is_inhabited);
            if !is_there || began.elapsed() > GRACE_TIME {
                break;
            }
            self.poll();
            self.waiting.give_way();
        }
        self.close(client)
    }

    fn close(&mut self, client: u64) -> Report {
        let Some(connection) = self.open.remove(&client) else {
            return Ok(());
        };
        assert!(
            !self.open.contains_key(&client),
            "a port that is closed is polled no more: {client}"
        );
        let closed = connection.port.close();
        let _ = connection.stream.shutdown(Shutdown::Both); // ends the thread that listens to it
        closed.map_err(|code| code.to_string())
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        let clients: Vec<u64> = self.open.keys().copied().collect();
        for client in clients {
            let _ = self.close(client); // a port that stays open keeps its memory
        }
    }
}
