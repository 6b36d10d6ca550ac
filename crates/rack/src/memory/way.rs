//! How the memory of servers is reached.

use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use manxdb_fabric::shm::{self, ConnectError, SharedMemory, ShutOutError};
use manxdb_fabric::{Fabric, Fault, ServerId};

use super::MemoryError;

/// Tries to be let in by a server that closes its door, and the time between two.
const TRIES_MAX: u32 = 5;
const PAUSE: Duration = Duration::from_millis(4);

/// How the memory of servers is reached.
pub trait Way: Send + Sync + 'static {
    /// What a client has then.
    type Fabric: Fabric + Send + 'static;

    /// Connects to those of these servers that are there, as a client that they can shut out; and
    /// says why others are not reached.
    fn reach(&self, servers: &[u16], client: u64) -> (Self::Fabric, Vec<Missing>);

    /// Has a server shut a client out for good, or learns that the server is gone for good.
    ///
    /// # Errors
    /// [`NotOut`]: it may still write.
    fn shut_out(&self, server: u16, client: u64) -> Result<(), NotOut>;
}

/// A client may still write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotOut {
    /// The server sees to it, and lives: however long that takes, it is no reason to give it up.
    Yet,
    /// The server does not answer, or cannot.
    Unheard,
}

/// A server that is not reached.
#[derive(Debug)]
pub struct Missing {
    /// Which.
    pub server: u16,
    /// What becomes of what is asked of it; none: it may be that this process can reach nothing.
    pub fault: Option<Fault>,
    /// Why.
    pub error: MemoryError,
}

/// Memory that processes of a machine share: sockets of servers in one directory.
#[derive(Debug, Clone)]
pub struct SharedWay {
    directory: PathBuf,
}

impl SharedWay {
    /// Through the sockets in a directory.
    #[must_use]
    pub fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
        }
    }

    /// The socket of a server in a directory.
    #[must_use]
    pub fn socket(directory: &Path, server: u16) -> PathBuf {
        directory.join(format!("memory-{server}"))
    }

    /// A door that is closed in one's face may be that of a server which is just dying.
    fn insist(&self, memory: &mut SharedMemory, server: u16, client: u64) -> Option<Missing> {
        let mut tries = 0;
        loop {
            tries += 1;
            let missing = self.connect(memory, server, client)?;
            if !matches!(missing.fault, Some(Fault::Fenced(_))) || tries >= TRIES_MAX {
                return Some(missing);
            }
            thread::sleep(PAUSE);
        }
    }

    fn connect(&self, memory: &mut SharedMemory, server: u16, client: u64) -> Option<Missing> {
        let socket = Self::socket(&self.directory, server);
        let (fault, error) = match memory.connect(&socket, client) {
            Ok(found) if found == ServerId(server) => return None,
            Ok(found) => (None, MemoryError::Number(socket, server, found.0)),
            Err(error) => (
                fault(&error, server),
                MemoryError::Connect(error.to_string()),
            ),
        };
        Some(Missing {
            server,
            fault,
            error,
        })
    }
}

/// What it means that a server is not reached.
fn fault(error: &ConnectError, server: u16) -> Option<Fault> {
    let ConnectError::Failed(_, error) = error else {
        return None;
    };
    match error.kind() {
        // Nobody listens, or nobody who runs.
        io::ErrorKind::NotFound
        | io::ErrorKind::ConnectionRefused
        | io::ErrorKind::WouldBlock
        | io::ErrorKind::TimedOut => Some(Fault::Gone(ServerId(server))),
        // It has closed the door.
        io::ErrorKind::InvalidData
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => Some(Fault::Fenced(ServerId(server))),
        _ => None,
    }
}

impl Way for SharedWay {
    type Fabric = SharedMemory;

    fn reach(&self, servers: &[u16], client: u64) -> (SharedMemory, Vec<Missing>) {
        let mut memory = SharedMemory::default();
        let connect = |server: &u16| self.insist(&mut memory, *server, client);
        let missing = servers.iter().filter_map(connect).collect();
        (memory, missing)
    }

    fn shut_out(&self, server: u16, client: u64) -> Result<(), NotOut> {
        let socket = Self::socket(&self.directory, server);
        match shm::shut_out(&socket, client) {
            Ok(()) | Err(ShutOutError::Gone(..)) => Ok(()),
            Err(ShutOutError::Dying(_)) => Err(NotOut::Yet),
            Err(ShutOutError::Kept(..)) => Err(NotOut::Unheard),
        }
    }
}
