//! Memory servers on other machines.

use std::io;
use std::thread;
use std::time::Duration;

use manxdb_fabric::libfabric::{
    ConnectError, Door, Provider, RemoteMemory, ShutOutError, shut_out,
};
use manxdb_fabric::{Fault, ServerId};

use super::MemoryError;
use super::way::{Missing, NotOut, Way};

/// Tries to be let in by a server that may not have noticed yet that one has left, and the time between
/// two.
const TRIES_MAX: u32 = 50;
const PAUSE: Duration = Duration::from_millis(4);

/// Memory of servers on other machines, through libfabric: their doors, in the order of their numbers.
#[derive(Debug, Clone)]
pub struct RemoteWay {
    doors: Vec<Door>,
    provider: Provider,
}

/// A server that is not reached now, and may be a moment later.
struct Away {
    missing: Missing,
    may_pass: bool,
}

impl RemoteWay {
    /// Through a provider of libfabric to servers behind these doors, of which there is at least one.
    ///
    /// # Errors
    /// [`MemoryError::Connect`]: the provider cannot be used, or this machine has no way there.
    pub fn new(provider: &str, doors: Vec<Door>) -> Result<Self, MemoryError> {
        let failed = |why: String| MemoryError::Connect(why);
        let first = doors.first().ok_or(MemoryError::Geometry)?.address;
        let provider = Provider::towards(provider, first)
            .map_err(|error| failed(format!("no way to the memory server at {first}: {error}")))?;
        // Whether it can be used is known when it is used.
        RemoteMemory::open(&provider).map_err(|refused| failed(refused.to_string()))?;
        Ok(Self { doors, provider })
    }

    /// How many doors it knows.
    #[must_use]
    pub fn doors(&self) -> usize {
        self.doors.len()
    }

    fn insist(&self, memory: &mut RemoteMemory, server: u16, client: u64) -> Option<Missing> {
        let mut tries = 0;
        loop {
            tries += 1;
            let away = self.connect(memory, server, client)?;
            if !away.may_pass || tries >= TRIES_MAX {
                return Some(away.missing);
            }
            thread::sleep(PAUSE);
        }
    }

    fn connect(&self, memory: &mut RemoteMemory, server: u16, client: u64) -> Option<Away> {
        let away = |fault, error, may_pass| Away {
            missing: Missing {
                server,
                fault,
                error,
            },
            may_pass,
        };
        let Some(door) = self.doors.get(usize::from(server)) else {
            let error = MemoryError::Address(server, self.doors.len());
            return Some(away(None, error, false));
        };
        match memory.connect(door, client) {
            Ok(found) if found == ServerId(server) => None,
            Ok(found) => {
                let error = MemoryError::Number(door.address.to_string(), server, found.0);
                Some(away(None, error, false))
            }
            Err(error) => {
                let (fault, may_pass) = fault(&error, server);
                Some(away(
                    fault,
                    MemoryError::Connect(error.to_string()),
                    may_pass,
                ))
            }
        }
    }
}

/// What it means that a server is not reached, and whether that may pass.
fn fault(error: &ConnectError, server: u16) -> (Option<Fault>, bool) {
    let gone = Some(Fault::Gone(ServerId(server)));
    let fenced = Some(Fault::Fenced(ServerId(server)));
    match error {
        ConnectError::ShutOut(_) => (fenced, false),
        ConnectError::Already(_) => (fenced, true),
        ConnectError::Failed(_, error) => match error.kind() {
            // Nobody listens, or nobody who runs, or there is no machine.
            io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::WouldBlock
            | io::ErrorKind::TimedOut => (gone, false),
            // It has closed the door, as one does that is just dying.
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof => (fenced, true),
            _ => (None, false),
        },
        ConnectError::TurnedAway(..) | ConnectError::Twice(..) | ConnectError::Refused(_) => {
            (None, false)
        }
    }
}

impl Way for RemoteWay {
    type Fabric = RemoteMemory;

    fn reach(
        &self,
        servers: &[u16],
        client: u64,
    ) -> Result<(RemoteMemory, Vec<Missing>), MemoryError> {
        let memory = RemoteMemory::open(&self.provider);
        let mut memory = memory.map_err(|refused| MemoryError::Connect(refused.to_string()))?;
        let connect = |server: &u16| self.insist(&mut memory, *server, client);
        let missing = servers.iter().filter_map(connect).collect();
        Ok((memory, missing))
    }

    fn shut_out(&self, server: u16, client: u64) -> Result<(), NotOut> {
        let door = self.doors.get(usize::from(server)).ok_or(NotOut::Unheard)?;
        match shut_out(door, client) {
            Ok(()) | Err(ShutOutError::Gone(..)) => Ok(()),
            // Nothing is waited for there but the server itself.
            Err(ShutOutError::Kept(..)) => Err(NotOut::Unheard),
        }
    }
}
