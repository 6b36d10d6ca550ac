//! Memory servers that run for long, and clients that come and go.
//!
//! | question | answered in |
//! |---|---|
//! | where everything is | [`geometry`] |
//! | what a server says about its memory | [`superblock`] |
//! | which servers belong together, and which is empty again | [`forming`] |
//! | whose memory is whose | [`rooms`] |
//! | who decides that a client is dead | [`watch`] |
//! | what a server sees of all that | [`counted`] |
//!
//! A client of the fabric is one [`Name`]: first a guest, who looks and takes a place; then the owner
//! of that place, who keeps its lease ([`Driver::keeping`]) and runs transactions. An owner that is
//! shut out hears of it as a fault, and takes another place; over memory that processes share it
//! hears nothing, for its process is ended. What is lost when a memory server ends is in
//! [`MemoryError::Empty`].

mod counted;
mod forming;
mod geometry;
mod rooms;
mod superblock;
mod watch;

use std::path::{Path, PathBuf};

use manxdb_core::Random;
use manxdb_fabric::shm::{self, SharedMemory};
use manxdb_fabric::{Address, Fabric, Fault, Misuse, Operation, Outcome, ServerId};
use manxdb_rsi::rows::{Client, Extent};
use manxdb_rsi::{Chart, Join, JoinError, Lease, Name, Owner, Seat, ThreadId};
use parking_lot::Mutex;

pub use self::counted::Counted;
pub use self::geometry::{Geometry, GeometryError, SUPERBLOCK};
pub use self::superblock::{Mismatch, NAME_MAX, Superblock, SuperblockError};
pub use self::watch::{Watched, watch};
use crate::drive::Driver;

/// Why memory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// A server is not there, or lets nobody in.
    #[error("{0}")]
    Connect(String),
    /// What is there is none of ours.
    #[error("memory server {0}: {1}")]
    Superblock(u16, SuperblockError),
    /// Another server answers.
    #[error("{0} is the socket of memory server {1}, but memory server {2} answers there")]
    Number(PathBuf, u16, u16),
    /// Servers of two databases.
    #[error("{0}: start all memory servers of a database with the same settings")]
    Mismatch(#[from] Mismatch),
    /// A server has lost what it had.
    #[error(
        "memory server {0} was started anew: its memory is empty while others have rows, and what it \
         had is lost. Start all memory servers anew"
    )]
    Empty(u16),
    /// Servers of two formations.
    #[error(
        "memory server {0} has rows of another database than memory server 0. Start all memory servers anew"
    )]
    Mixed(u16),
    /// What a server says cannot be.
    #[error("the sizes that the memory servers say cannot be")]
    Geometry,
    /// Nobody else gets in.
    #[error("{0}: give the memory servers more of them (--places), or end another server")]
    Full(JoinError),
    /// All memory is somebody's.
    #[error("the memory of all {0} memory servers is given away")]
    NoRoom(u16),
    /// A server did not answer.
    #[error("{0}")]
    Fault(#[from] Fault),
    /// It was not carried out.
    #[error("{0}")]
    Misuse(#[from] Misuse),
}

/// How the memory of servers is reached.
pub trait Way: Send + Sync + 'static {
    /// What a client has then.
    type Fabric: Fabric + Send + 'static;

    /// Connects to servers from 0 on, as a client that they can shut out.
    ///
    /// # Errors
    /// [`MemoryError::Connect`], [`MemoryError::Number`].
    fn connect(&self, servers: u16, client: u64) -> Result<Self::Fabric, MemoryError>;

    /// Has a server shut a client out for good, or learns that the server is gone for good.
    ///
    /// # Errors
    /// Why it may still write.
    fn shut_out(&self, server: u16, client: u64) -> Result<(), String>;
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
}

impl Way for SharedWay {
    type Fabric = SharedMemory;

    fn connect(&self, servers: u16, client: u64) -> Result<SharedMemory, MemoryError> {
        let mut memory = SharedMemory::default();
        for server in 0..servers {
            let socket = Self::socket(&self.directory, server);
            let connected = memory.connect(&socket, client);
            let found = connected.map_err(|error| MemoryError::Connect(error.to_string()))?;
            if found != ServerId(server) {
                return Err(MemoryError::Number(socket, server, found.0));
            }
        }
        Ok(memory)
    }

    fn shut_out(&self, server: u16, client: u64) -> Result<(), String> {
        let socket = Self::socket(&self.directory, server);
        match shm::shut_out(&socket, client) {
            Ok(()) | Err(shm::ShutOutError::Gone(..)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The memory of a database.
pub struct Memory<W> {
    way: W,
    superblock: Superblock,
    /// Under which all servers were formed.
    formation: u64,
    random: Mutex<Random>,
}

/// A client with a place.
pub struct Member<F> {
    /// Whose place it is.
    pub owner: Owner,
    /// Its way to the rows.
    pub client: Client<Driver<F>>,
}

impl<W: Way> Memory<W> {
    /// Finds out what memory there is, and forms it if all of it is empty. Numbers are drawn from
    /// the seed: no other process has the same.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub fn open(way: W, seed: u64) -> Result<Self, MemoryError> {
        let mut random = Random::stream(seed, &[0x006d_656d]);
        let mut driver = Driver::new(way.connect(1, guest(&mut random).client())?);
        let first = superblocks(&mut driver, 1)?;
        let superblock = first.into_iter().next().ok_or(MemoryError::Geometry)?;
        let servers = superblock.geometry.servers;
        superblock
            .geometry
            .check()
            .map_err(|_| MemoryError::Geometry)?;
        let mut driver = Driver::new(way.connect(servers, guest(&mut random).client())?);
        for other in superblocks(&mut driver, servers)? {
            other.belongs_to(&superblock)?;
        }
        let formation = forming::form(&mut driver, servers, random.next_bits())?;
        Ok(Self {
            way,
            superblock,
            formation,
            random: Mutex::new(random),
        })
    }

    /// What all servers say.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        self.superblock.geometry
    }

    /// The name of the database.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.superblock.name
    }

    /// A name for one who has none yet.
    fn guest(&self) -> Name {
        guest(&mut self.random.lock())
    }

    fn below(&self, bound: u64) -> u64 {
        self.random.lock().below(bound)
    }

    /// A way to the memory under a name, while it is still the same memory.
    fn connect(&self, name: Name) -> Result<W::Fabric, MemoryError> {
        let servers = self.geometry().servers;
        let mut driver = Driver::new(self.way.connect(servers, name.client())?);
        forming::check(&mut driver, servers, self.formation)?;
        Ok(driver.into_fabric())
    }

    /// Takes a place.
    ///
    /// # Errors
    /// [`MemoryError::Full`] while all are taken; others.
    pub fn join(&self) -> Result<Member<W::Fabric>, MemoryError> {
        let geometry = self.geometry();
        let mut driver = Driver::new(self.connect(self.guest())?);
        let place = u16::try_from(self.below(geometry.places.into())).unwrap_or(0);
        let chart = Chart::fixed();
        let join = Join::new(geometry.seats(), chart.clone(), place);
        let owner = match driver.run(join)? {
            Ok(joined) => joined.owner,
            Err(JoinError::Fault(fault)) => return Err(fault.into()),
            Err(full) => return Err(MemoryError::Full(full)),
        };
        let fabric = self.connect(Name::Owner(owner))?;
        let lease = Lease::new(geometry.seats(), owner, &chart.map);
        let mut driver = Driver::keeping(fabric, lease, geometry.lease);
        driver.keep()?;
        let session = geometry.session(owner).ok_or(MemoryError::Geometry)?;
        let keyspace = geometry.keyspace().ok_or(MemoryError::Geometry)?;
        let nothing = |bytes| {
            let base = Address {
                server: ServerId(0),
                offset: geometry.rooms(),
            };
            Extent::new(base, bytes, 0).ok_or(MemoryError::Geometry)
        };
        let records = nothing(keyspace.records.bytes())?;
        let nodes = nothing(keyspace.tree.layout().bytes())?;
        let client = Client::new(driver, session, keyspace, records, nodes);
        Ok(Member { owner, client })
    }
}

fn guest(random: &mut Random) -> Name {
    Name::Guest(random.next_bits() >> 16)
}

/// What servers say about themselves.
fn superblocks<F: Fabric>(
    driver: &mut Driver<F>,
    servers: u16,
) -> Result<Vec<Superblock>, MemoryError> {
    let read = |server| Operation::Read {
        at: Address {
            server: ServerId(server),
            offset: 0,
        },
        bytes: SUPERBLOCK,
    };
    let outcomes = driver.ask((0..servers).map(read).collect())?;
    let parse = |(server, outcome)| match outcome {
        Outcome::Failed(fault) => Err(MemoryError::from(fault)),
        Outcome::Read(bytes) => {
            Superblock::decode(&bytes).map_err(|why| MemoryError::Superblock(server, why))
        }
        _ => Err(MemoryError::Superblock(server, SuperblockError::Stranger)),
    };
    (0..).zip(outcomes).map(parse).collect()
}

/// Where a process gets clients, and what it knows of those of other processes.
pub trait Source<F>: Send + Sync {
    /// A client with a place of its own.
    ///
    /// # Errors
    /// [`MemoryError`].
    fn join(&self) -> Result<Member<F>, MemoryError>;

    /// Gives a client room for so many records.
    ///
    /// # Errors
    /// [`MemoryError::NoRoom`]; others.
    fn refill(&self, client: &mut Client<Driver<F>>, records: u64) -> Result<(), MemoryError>;

    /// Leaves places whose owners are not connected any more. Whoever watches gives them to others.
    ///
    /// # Errors
    /// [`MemoryError`]: their leases lapse all the same.
    fn leave(&self, owners: &[Owner]) -> Result<(), MemoryError>;

    /// Clients that have places, or had them and are not buried yet: numbers as the fabric's.
    ///
    /// # Errors
    /// [`MemoryError`].
    fn present(&self, client: &mut Client<Driver<F>>) -> Result<Vec<u64>, MemoryError>;
}

impl<W: Way> Source<W::Fabric> for Memory<W> {
    fn join(&self) -> Result<Member<W::Fabric>, MemoryError> {
        Self::join(self)
    }

    fn refill(
        &self,
        client: &mut Client<Driver<W::Fabric>>,
        records: u64,
    ) -> Result<(), MemoryError> {
        let geometry = self.geometry();
        let first = u16::try_from(self.below(geometry.servers.into())).unwrap_or(0);
        let room = rooms::take(client.carrier_mut(), geometry, first, records)?;
        client.refill(room.records, room.nodes);
        Ok(())
    }

    fn leave(&self, owners: &[Owner]) -> Result<(), MemoryError> {
        let mut driver = Driver::new(self.connect(self.guest())?);
        let seats = self.geometry().seats();
        let leave = |owner: &Owner| Lease::leave(seats, *owner);
        driver.ask(owners.iter().map(leave).collect())?;
        Ok(())
    }

    fn present(&self, client: &mut Client<Driver<W::Fabric>>) -> Result<Vec<u64>, MemoryError> {
        let geometry = self.geometry();
        let threads: Vec<ThreadId> = (0..geometry.places).filter_map(ThreadId::new).collect();
        let read = |thread: &ThreadId| Operation::Read {
            at: geometry.seats().seat(*thread),
            bytes: manxdb_fabric::WORD,
        };
        let outcomes = client
            .carrier_mut()
            .ask(threads.iter().map(read).collect())?;
        let mut present = Vec::new();
        for (thread, outcome) in threads.into_iter().zip(outcomes) {
            if let Seat::Kept(after) | Seat::Taken(after) | Seat::Over(after) =
                Seat::of_word(forming::number(outcome)?)
            {
                present.push(Name::Owner(Owner { thread, after }).client());
            }
        }
        Ok(present)
    }
}
