//! Memory servers on other machines.

use std::io;
use std::thread;

use manxdb_fabric::libfabric::{
    Asked, ConnectError, ListenerAddress, Provider, RemoteMemory, ShutOutError, Visit, shut_out,
};
use manxdb_fabric::{Fabric as _, ServerId};

use super::MemoryError;
use super::transport::{ConnectRefusal as Met, NotOut, PAUSE, Transport, UnreachedServer, insist};

/// Memory of servers on other machines, through libfabric: their listeners, in the order of their numbers.
#[derive(Debug, Clone)]
pub struct RemoteTransport {
    listener_addresses: Vec<ListenerAddress>,
    asked: Asked,
}

impl RemoteTransport {
    /// Through a provider of libfabric to servers behind these listeners, of which there is at least one.
    ///
    /// # Errors
    /// [`MemoryError::Connect`]: the provider cannot be used, or this machine has no way there.
    pub fn new(
        provider: &str,
        listener_addresses: Vec<ListenerAddress>,
    ) -> Result<Self, MemoryError> {
        let failed = |why: String| MemoryError::Connect(why);
        let first = listener_addresses
            .first()
            .ok_or(MemoryError::Geometry)?
            .address;
        let provider = Provider::towards(provider, first)
            .map_err(|error| failed(format!("no way to the memory server at {first}: {error}")))?;
        let asked = Asked::of(&provider).map_err(|refused| failed(refused.to_string()))?;
        Ok(Self {
            listener_addresses,
            asked,
        })
    }

    /// How many listeners it knows.
    #[must_use]
    pub fn listener_addresses(&self) -> usize {
        self.listener_addresses.len()
    }

    fn visit(&self, server: u16, client: u64) -> Result<Visit, (Met, MemoryError)> {
        let Some(listener_address) = self.listener_addresses.get(usize::from(server)) else {
            let error = MemoryError::Address(server, self.listener_addresses.len());
            return Err((Met::Wrong, error));
        };
        let visit = self.asked.visit(listener_address, client);
        let visit =
            visit.map_err(|error| (met(&error), MemoryError::Connect(error.to_string())))?;
        let found = visit.server();
        if found == ServerId(server) {
            return Ok(visit);
        }
        let error = MemoryError::Number(listener_address.address.to_string(), server, found.0);
        Err((Met::Wrong, error))
    }
}

/// What is met at a listener over TCP.
fn met(error: &ConnectError) -> Met {
    match error {
        ConnectError::ShutOut(_) => Met::Shut,
        // It has not noticed yet that one has left: it lives.
        ConnectError::Already(_) => Met::Busy,
        ConnectError::Failed(_, error) => match error.kind() {
            // Nobody listens, or nobody who runs, or there is no machine. Over shared memory nobody needs
            // a server that hangs; here all who go on without it come to its listener first, and who waits
            // there for longer than a lease loses its own place over it.
            io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::WouldBlock
            | io::ErrorKind::TimedOut => Met::Gone,
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof => Met::Closed,
            _ => Met::Wrong,
        },
        ConnectError::TurnedAway(..) | ConnectError::Twice(..) | ConnectError::Refused(_) => {
            Met::Wrong
        }
    }
}

impl Transport for RemoteTransport {
    type Fabric = RemoteMemory;

    /// All at once: most of the time goes by waiting for them.
    fn reach(
        &self,
        servers: &[u16],
        client: u64,
    ) -> Result<(RemoteMemory, Vec<UnreachedServer>), MemoryError> {
        let visit = |server: u16| insist(server, PAUSE, || self.visit(server, client));
        let visits: Vec<_> = thread::scope(|scope| {
            let begin = |server: &u16| {
                let server = *server;
                scope.spawn(move || visit(server))
            };
            let begun: Vec<_> = servers.iter().map(begin).collect();
            let ended = begun.into_iter().map(thread::ScopedJoinHandle::join);
            ended.collect()
        });
        let mut memory = RemoteMemory::through(&self.asked);
        let mut missing = Vec::new();
        for visit in visits {
            match visit.map_err(|_| MemoryError::Geometry)? {
                Ok(visit) => {
                    let stayed = memory.stay(visit);
                    stayed.map_err(|error| MemoryError::Connect(error.to_string()))?;
                }
                Err(one) => missing.push(one),
            }
        }
        assert!(
            servers.iter().all(|server| {
                memory.registered(ServerId(*server)).is_some()
                    || missing.iter().any(|one| one.server == *server)
            }),
            "each server is connected to, or is said to be missing"
        );
        Ok((memory, missing))
    }

    fn shut_out(&self, server: u16, client: u64) -> Result<(), NotOut> {
        let listener_address = self
            .listener_addresses
            .get(usize::from(server))
            .ok_or(NotOut::Unheard)?;
        match shut_out(listener_address, client) {
            Ok(()) | Err(ShutOutError::Gone(..)) => Ok(()),
            // Nothing is waited for there but the server itself.
            Err(ShutOutError::Kept(..)) => Err(NotOut::Unheard),
        }
    }
}
