//! How the memory of servers is reached.

use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use manxdb_fabric::shm::{self, ConnectError, SharedMemory, ShutOutError};
use manxdb_fabric::{Fabric, Fault, ServerId};

use super::MemoryError;

/// Tries to be let in by a server that does not accept, by one that is busy, and the time between two.
const CLOSED_MAX: u32 = 5;
const BUSY_MAX: u32 = 1_000;
pub(super) const PAUSE: Duration = Duration::from_millis(4);
/// Tries to be heard by a server that says nothing when connected to, each of which takes some seconds, before
/// it is given up. So long nobody who runs is silent, however busy the machine is; and one that stands
/// still is in nobody's way for longer, for it shuts nobody out.
const SILENT_MAX: u32 = 4;

/// How the memory of servers is reached.
pub trait Transport: Send + Sync + 'static {
    /// What a client has then.
    type Fabric: Fabric + Send + 'static;

    /// Connects to those of these servers that are there, as a client that they can shut out; and
    /// says why others are not reached.
    ///
    /// # Errors
    /// [`MemoryError`]: this process reaches nothing.
    fn reach(
        &self,
        servers: &[u16],
        client: u64,
    ) -> Result<(Self::Fabric, Vec<UnreachedServer>), MemoryError>;

    /// Has a server shut a client out for good, or learns that the server is gone for good.
    ///
    /// # Errors
    /// [`NotOut`]: it may still write.
    fn shut_out(&self, server: u16, client: u64) -> Result<(), NotOut>;
}

/// A client may still write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotOut {
    /// The server sees to it, or will, and lives: however long that takes, it is no reason to give it up.
    Yet,
    /// The server does not answer, or cannot.
    Unheard,
}

/// A server that is not reached.
#[derive(Debug)]
pub struct UnreachedServer {
    /// Which.
    pub server: u16,
    /// What becomes of what is asked of it; none: it may be that this process can reach nothing.
    pub fault: Option<Fault>,
    /// Why.
    pub error: MemoryError,
}

/// Memory that processes of a machine share: sockets of servers in one directory.
#[derive(Debug, Clone)]
pub struct SharedTransport {
    directory: PathBuf,
}

impl SharedTransport {
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

    fn connect(
        &self,
        memory: &mut SharedMemory,
        server: u16,
        client: u64,
    ) -> Result<(), (ConnectRefusal, MemoryError)> {
        let socket = Self::socket(&self.directory, server);
        match memory.connect(&socket, client) {
            Ok(found) if found == ServerId(server) => Ok(()),
            Ok(found) => {
                let socket = socket.display().to_string();
                Err((
                    ConnectRefusal::Wrong,
                    MemoryError::Number(socket, server, found.0),
                ))
            }
            Err(error) => Err((
                ConnectRefusal::of(&error),
                MemoryError::Connect(error.to_string()),
            )),
        }
    }
}

/// What is met on connecting of a server that lets one not in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectRefusal {
    /// Nobody.
    Gone,
    /// It is closed in one's face; it may be that of a server which is just dying.
    Closed,
    /// Somebody who says nothing: a server that stands still, or is slow.
    Silent,
    /// Somebody who has no time: a server that lives.
    Busy,
    /// Somebody who says that one was shut out.
    #[cfg_attr(not(feature = "libfabric"), allow(dead_code))] // over TCP it is said
    Shut,
    /// Another server, or it is this process that can reach nothing.
    Wrong,
}

impl ConnectRefusal {
    fn of(error: &ConnectError) -> Self {
        match error {
            ConnectError::Gone(..) => Self::Gone,
            ConnectError::Busy(_) => Self::Busy,
            ConnectError::Silent(_) => Self::Silent,
            ConnectError::Failed(_, why) => match why.kind() {
                io::ErrorKind::InvalidData
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::UnexpectedEof => Self::Closed,
                _ => Self::Wrong,
            },
            ConnectError::Twice(..) => Self::Wrong,
        }
    }

    /// How often in a row it is met before it is believed.
    fn tries_max(self) -> u32 {
        match self {
            Self::Gone | Self::Shut | Self::Wrong => 1,
            Self::Closed => CLOSED_MAX,
            Self::Silent => SILENT_MAX,
            Self::Busy => BUSY_MAX,
        }
    }

    /// What becomes of what is asked of the server. Nobody gives up one that is busy.
    fn fault(self, server: u16) -> Option<Fault> {
        match self {
            Self::Gone | Self::Silent => Some(Fault::Gone(ServerId(server))),
            Self::Closed | Self::Shut => Some(Fault::Fenced(ServerId(server))),
            Self::Busy | Self::Wrong => None,
        }
    }
}

/// Tries to be let in until that has come to something, with pauses; why one is not.
pub(super) fn insist<T>(
    server: u16,
    pause: Duration,
    mut attempt: impl FnMut() -> Result<T, (ConnectRefusal, MemoryError)>,
) -> Result<T, UnreachedServer> {
    let (mut met, mut tries) = (ConnectRefusal::Gone, 0);
    loop {
        let (door, error) = match attempt() {
            Ok(done) => return Ok(done),
            Err(why) => why,
        };
        tries = if door == met { tries + 1 } else { 1 };
        met = door;
        assert!(
            (1..=door.tries_max()).contains(&tries),
            "a server is tried as often as its refusal allows: {tries}"
        );
        if tries >= door.tries_max() {
            let fault = door.fault(server);
            return Err(UnreachedServer {
                server,
                fault,
                error,
            });
        }
        thread::sleep(pause);
    }
}

impl Transport for SharedTransport {
    type Fabric = SharedMemory;

    fn reach(
        &self,
        servers: &[u16],
        client: u64,
    ) -> Result<(SharedMemory, Vec<UnreachedServer>), MemoryError> {
        let mut memory = SharedMemory::default();
        let reach = |server: &u16| {
            insist(*server, PAUSE, || {
                self.connect(&mut memory, *server, client)
            })
            .err()
        };
        let missing: Vec<UnreachedServer> = servers.iter().filter_map(reach).collect();
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
        let socket = Self::socket(&self.directory, server);
        match shm::shut_out(&socket, client) {
            Ok(()) | Err(ShutOutError::Gone(..)) => Ok(()),
            Err(ShutOutError::Dying(_) | ShutOutError::Busy(_)) => Err(NotOut::Yet),
            Err(ShutOutError::Kept(..)) => Err(NotOut::Unheard),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of these doors, one after the other, before one is let in.
    fn reached(doors: &[(ConnectRefusal, u32)]) -> Result<(), Option<Fault>> {
        let all = doors
            .iter()
            .flat_map(|(door, times)| (0..*times).map(|_| *door));
        let mut all = all.collect::<Vec<_>>().into_iter();
        let attempt = || match all.next() {
            Some(door) => Err((door, MemoryError::Connect(String::new()))),
            None => Ok(()),
        };
        insist(7, Duration::ZERO, attempt).map_err(|missing| missing.fault)
    }

    #[test]
    fn a_server_that_lives_is_not_taken_for_one_that_is_gone() {
        let gone = Some(Fault::Gone(ServerId(7)));
        assert_eq!(reached(&[(ConnectRefusal::Gone, 1)]), Err(gone));
        assert_eq!(reached(&[(ConnectRefusal::Busy, 999)]), Ok(()));
        assert_eq!(reached(&[(ConnectRefusal::Busy, 1_000)]), Err(None));
        assert_eq!(reached(&[(ConnectRefusal::Silent, 3)]), Ok(()));
        // It has said something in between.
        let patient = [
            (ConnectRefusal::Silent, 3),
            (ConnectRefusal::Busy, 1),
            (ConnectRefusal::Silent, 3),
        ];
        assert_eq!(reached(&patient), Ok(()));
        assert_eq!(reached(&[(ConnectRefusal::Silent, 4)]), Err(gone));
        let fenced = Some(Fault::Fenced(ServerId(7)));
        assert_eq!(reached(&[(ConnectRefusal::Closed, 5)]), Err(fenced));
        assert_eq!(reached(&[(ConnectRefusal::Shut, 1)]), Err(fenced));
        assert_eq!(reached(&[(ConnectRefusal::Wrong, 1)]), Err(None));
    }
}
