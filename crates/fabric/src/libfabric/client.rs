//! A client's side: batches over links to servers.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use super::hello::{self, Ask, Denial, What};
use super::inflight::{InFlight, Piece};
use super::link::Link;
use super::listener::{ARRIVAL, ListenerAddress, PATIENCE, stay_awake};
use super::needs::Refused;
use super::provider::{Granted, Provider};
use crate::address::ServerId;
use crate::fabric::{BatchId, Completion, Fabric, check};
use crate::grants::Grants;
use crate::operation::{Fault, Misuse, Operation};

/// The memory of servers on other machines.
///
/// Nothing moves but in [`Fabric::post`] and [`Fabric::poll`]: who waits for something polls.
pub struct RemoteMemory {
    granted: Arc<Granted>,
    servers: BTreeMap<ServerId, Server>,
    inflight: InFlight,
}

/// A provider that grants what is needed: asked once, for all clients of a process.
#[derive(Clone)]
pub struct Asked(Arc<Granted>);

impl std::fmt::Debug for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Asked")
            .field(&self.0.offer.provider)
            .finish()
    }
}

impl Asked {
    /// Asks a provider, which takes as long as opening an endpoint or two.
    ///
    /// # Errors
    /// [`Refused`]: it does not grant what [`Grants::TRANSACTIONS`] says.
    pub fn of(provider: &Provider) -> Result<Self, Refused> {
        Ok(Self(Arc::new(provider.ask()?)))
    }

    /// Has a server let a client in, which has a number of its own among all of that server's. Several
    /// servers may be visited at once.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn visit(
        &self,
        listener_address: &ListenerAddress,
        client: u64,
    ) -> Result<Visit, ConnectError> {
        let address = listener_address.address;
        let ask = Ask {
            token: listener_address.token.clone(),
            client,
            what: What::Admit {
                provider: self.0.offer.provider.clone(),
            },
        };
        let (stream, answer) =
            asked(address, &ask).map_err(|error| ConnectError::Failed(address, error))?;
        let place = answer.map_err(|denial| match denial {
            Denial::ShutOut => ConnectError::ShutOut(address),
            Denial::Already => ConnectError::Already(address),
            Denial::Because(reason) => ConnectError::TurnedAway(address, reason),
        })?;
        let (server, bytes) = (place.server, place.bytes);
        let link = Ok(Link::open(&self.0, place, stream)?);
        Ok(Visit {
            address,
            server,
            known: Server { bytes, link },
        })
    }
}

/// A server that has let a client in.
pub struct Visit {
    address: SocketAddr,
    server: ServerId,
    known: Server,
}

impl Visit {
    /// What it calls itself.
    #[must_use]
    pub fn server(&self) -> ServerId {
        self.server
    }
}

/// A server that was there once.
struct Server {
    bytes: u64,
    link: Result<Link, Fault>,
}

/// A server does not let us at its memory.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nobody is there, or it is no memory server.
    #[error("the memory server at {0}: {1}")]
    Failed(SocketAddr, io::Error),
    /// It says why.
    #[error("the memory server at {0} turns this client away: {1}")]
    TurnedAway(SocketAddr, String),
    /// It has shut this client out.
    #[error("the memory server at {0} has shut this client out")]
    ShutOut(SocketAddr),
    /// A client of this number is in, or its end has not been noticed yet.
    #[error("the memory server at {0} has a client of this number already")]
    Already(SocketAddr),
    /// Two servers call themselves the same.
    #[error("the memory server at {0} calls itself {1}, as another one does")]
    Twice(SocketAddr, u16),
    /// The provider fails.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// A client is not known to be shut out.
#[derive(Debug, thiserror::Error)]
pub enum ShutOutError {
    /// Nobody is there: the server is gone, and its memory with it.
    #[error("the memory server at {0} is gone: {1}")]
    Gone(SocketAddr, io::Error),
    /// It may still write.
    #[error("the memory server at {0} does not shut a client out: {1}")]
    Kept(SocketAddr, String),
}

/// Has a server shut a client out for good ([`super::MemoryServer::fence`]).
///
/// # Errors
/// [`ShutOutError`].
pub fn shut_out(listener_address: &ListenerAddress, client: u64) -> Result<(), ShutOutError> {
    let kept = |reason: String| ShutOutError::Kept(listener_address.address, reason);
    let mut stream = match TcpStream::connect_timeout(&listener_address.address, ARRIVAL) {
        Ok(stream) => stream,
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            return Err(ShutOutError::Gone(listener_address.address, error));
        }
        Err(error) => return Err(kept(error.to_string())),
    };
    let ask = Ask {
        token: listener_address.token.clone(),
        client,
        what: What::ShutOut,
    };
    let reported = ask
        .write(&mut stream)
        .and_then(|()| stream.set_read_timeout(Some(PATIENCE)))
        .and_then(|()| hello::read_report(&mut stream));
    reported
        .map_err(|error| kept(error.to_string()))?
        .map_err(kept)
}

impl RemoteMemory {
    /// A client that knows no server yet.
    ///
    /// # Errors
    /// [`Refused`]: the provider does not grant what [`Grants::TRANSACTIONS`] says.
    pub fn open(provider: &Provider) -> Result<Self, Refused> {
        Ok(Self::through(&Asked::of(provider)?))
    }

    /// The same through a provider that was asked before.
    #[must_use]
    pub fn through(asked: &Asked) -> Self {
        let memory = Self {
            granted: Arc::clone(&asked.0),
            servers: BTreeMap::new(),
            inflight: InFlight::default(),
        };
        assert_eq!(
            memory.grants().include(Grants::TRANSACTIONS),
            Ok(()),
            "libfabric grants what transactions are built on"
        );
        memory
    }

    /// Connects to a server, as a client that has a number of its own among all of that server's.
    /// A server that was lost is found again like this.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect(
        &mut self,
        listener_address: &ListenerAddress,
        client: u64,
    ) -> Result<ServerId, ConnectError> {
        let visit = Asked(Arc::clone(&self.granted)).visit(listener_address, client)?;
        self.stay(visit)
    }

    /// Has what is asked of a server go to the one that was visited.
    ///
    /// # Errors
    /// [`ConnectError::Twice`].
    pub fn stay(&mut self, visit: Visit) -> Result<ServerId, ConnectError> {
        let name = visit.server;
        if let Some(known) = self.servers.get(&name)
            && known.link.is_ok()
        {
            return Err(ConnectError::Twice(visit.address, name.0));
        }
        let before = self.servers.insert(name, visit.known);
        assert!(
            before.is_none_or(|known| known.link.is_err()),
            "a server is visited again only after it was lost: {}",
            name.0
        );
        Ok(name)
    }

    fn lose(&mut self, server: ServerId, fault: Fault) {
        if let Some(known) = self.servers.get_mut(&server)
            && let Ok(link) = std::mem::replace(&mut known.link, Err(fault))
        {
            link.end(fault, &mut self.inflight);
        }
    }

    fn push(&mut self, piece: Piece) {
        let server = piece.at.server;
        match self.servers.get_mut(&server).map(|known| &mut known.link) {
            Some(Ok(link)) => link.push(piece),
            Some(Err(fault)) => {
                self.inflight.finish(&piece, Err(*fault));
            }
            None => {
                assert!(
                    self.servers.contains_key(&server),
                    "a batch is checked for unknown servers before any of it is pushed: {}",
                    server.0
                );
                self.inflight.finish(&piece, Err(Fault::Gone(server)));
            }
        }
    }

    fn turn(&mut self) {
        let mut lost = Vec::new();
        for (server, known) in &mut self.servers {
            if let Ok(link) = &mut known.link
                && let Err(fault) = link.turn(&mut self.inflight)
            {
                lost.push((*server, fault));
            }
        }
        for (server, fault) in lost {
            self.lose(server, fault);
        }
    }
}

impl Fabric for RemoteMemory {
    fn grants(&self) -> Grants {
        Grants {
            writes_in_order: true,
            complete_means_visible: true,
            atomic_among_clients: true,
            // Cards, and libfabric where they cannot, swap words only among their own.
            atomic_with_server: false,
            // Of most providers a thread of the server copies; that of the port at least.
            needs_no_server: false,
        }
    }

    fn registered(&self, server: ServerId) -> Option<u64> {
        self.servers.get(&server).map(|known| known.bytes)
    }

    fn post(&mut self, batch: BatchId, operations: Vec<Operation>) -> Result<(), Misuse> {
        check(&operations, |server| self.registered(server))?;
        for piece in self.inflight.begin(batch, operations, self.granted.shape) {
            self.push(piece);
        }
        self.turn();
        Ok(())
    }

    fn poll(&mut self) -> Option<Completion> {
        if let Some(done) = self.inflight.done() {
            return Some(done);
        }
        self.turn();
        self.inflight.done()
    }

    fn awaited(&self) -> Vec<(ServerId, u64)> {
        let awaited = |(server, known): (&ServerId, &Server)| {
            let landed = known.link.as_ref().ok()?.awaited()?;
            Some((*server, landed))
        };
        let awaited: Vec<_> = self.servers.iter().filter_map(awaited).collect();
        assert!(
            awaited.is_empty() || !self.inflight.is_idle(),
            "who is awaited has a part of a batch under way: {awaited:?}"
        );
        awaited
    }

    fn give_up(&mut self, server: ServerId) {
        self.lose(server, Fault::Gone(server));
    }
}

/// Asks a server for its memory.
fn asked(server: SocketAddr, ask: &Ask) -> io::Result<(TcpStream, hello::Answer)> {
    let mut stream = TcpStream::connect_timeout(&server, ARRIVAL)?;
    stay_awake(&stream)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    ask.write(&mut stream)?;
    let answer = hello::read_answer(&mut stream)?;
    if answer.as_ref().is_ok_and(|place| !place.is_sensible()) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok((stream, answer))
}
