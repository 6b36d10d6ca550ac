//! Memory servers that run for long, and clients that come and go.
//!
//! | question | answered in |
//! |---|---|
//! | which numbers decide where everything is | [`geometry`] |
//! | where everything is, at servers or in regions of several | [`plan`], [`shape`] |
//! | what a server says about its memory | [`superblock`] |
//! | which servers belong together, and which is empty again | [`forming`] |
//! | how they are reached | [`way`] |
//! | whose memory is whose | [`unused`] |
//! | what is on disk of it, and what is to be | [`durability`] |
//! | how servers that were started again get their rows | [`again`] |
//! | who has a place, and how it goes on after the loss of a server | [`client_slots`] |
//! | who decides that a client is dead, or a server lost | [`watch`] |
//! | which servers do not answer, for people | [`missing`] |
//! | what a server sees of all that | [`counted`] |
//!
//! A client of the fabric is one [`Name`]: first a guest, who looks and takes a place; then the owner
//! of that place, who keeps its lease ([`Driver::keeping`]) and runs transactions. An owner that is
//! shut out hears of it as a fault, and takes another place; or, where memory is replicated and a
//! server was lost, goes on with its own in the next epoch ([`Source::go_on`]). What is lost when a
//! memory server without replicas ends is in [`MemoryError::Empty`].

mod areas;
mod chunks;
mod client_slots;
mod durability;
mod forming;
mod geometry;
mod missing;
mod plan;
mod region_layout;
#[cfg(feature = "libfabric")]
mod remote;
mod restore;
mod stats;
mod superblock;
mod transport;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_core::Random;
use manxdb_fabric::{Address, Fabric, Fault, Misuse, Operation, OperationOutcome, ServerId};
use manxdb_rsi::rows::Failure;
use manxdb_rsi::{Chart, JoinError, Map, Name, Ward};
use parking_lot::Mutex;

pub use self::client_slots::{JoinedClient, Source};
pub use self::durability::DurabilityRecord;
pub use self::forming::waits_for_rows;
#[cfg(test)]
pub(crate) use self::geometry::tests::GEOMETRY;
pub use self::geometry::{Geometry, GeometryError};
pub use self::missing::ServerProbe;
pub use self::plan::{Plan, SUPERBLOCK};
#[cfg(feature = "libfabric")]
pub use self::remote::RemoteTransport;
pub use self::restore::{MemoryRestore, first_words};
pub use self::stats::MemoryStats;
pub use self::superblock::{Mismatch, NAME_MAX, Superblock, SuperblockError};
pub use self::transport::{NotOut, SharedTransport, Transport, UnreachedServer};
pub use self::watch::{Watched, watch};
use crate::availability::{Availability, LostServers};
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
    #[error("{0} is said to be of memory server {1}, but memory server {2} answers there")]
    Number(String, u16, u16),
    /// Nobody has said where a server is.
    #[error(
        "the memory servers are more than the {1} whose addresses are given: memory server {0} has none"
    )]
    Address(u16, usize),
    /// Servers of two databases.
    #[error("{0}: start all memory servers of a database with the same settings")]
    Mismatch(#[from] Mismatch),
    /// A server has lost what it had.
    #[error(
        "memory server {0} was started anew: its memory is empty while others have rows, and what it \
         had is lost. Start all memory servers anew"
    )]
    Empty(u16),
    /// Servers whose rows are on disk.
    #[error("rows are being restored from disk: try again when the memory servers have them")]
    Waiting,
    /// Servers of two formations.
    #[error(
        "memory server {0} has rows of another database than memory server 0. Start all memory servers anew"
    )]
    Mixed(u16),
    /// What a server says cannot be.
    #[error("the sizes that the memory servers say cannot be")]
    Geometry,
    /// A server is lost, and nobody goes on for now.
    #[error("a memory server is lost, and what it had is not restored yet")]
    Ending,
    /// Several servers are lost at a time.
    #[error("{0}")]
    Lost(LostServers),
    /// Nobody else gets in.
    #[error("{0}: give the memory servers more of them (--places), or end another server")]
    Full(JoinError),
    /// All memory is somebody's.
    #[error(
        "{}: delete rows, or start the memory servers anew with more of it (--size-mb)",
        no_room(*.living, *.of)
    )]
    NoRoom {
        /// Servers that are left, on which there was looked for it.
        living: u16,
        /// Servers that there are to be.
        of: u16,
    },
    /// A transaction needs more than a client can get.
    #[error(
        "a transaction adds {0} rows or pieces of rows, and memory is given away in pieces of at most {1}"
    )]
    Large(u64, u64),
    /// What is noted of a client for its own sake cannot be read or written.
    #[error("{0}")]
    Own(Failure<Misuse>),
    /// A server did not answer.
    #[error("{0}")]
    Fault(#[from] Fault),
    /// It was not carried out.
    #[error("{0}")]
    Misuse(#[from] Misuse),
}

fn no_room(living: u16, of: u16) -> String {
    match of.saturating_sub(living) {
        0 => format!("the memory of all {of} memory servers is given away"),
        lost => format!(
            "the memory of the {living} memory servers that are left is given away, {lost} of {of} are lost"
        ),
    }
}

/// The memory of a database.
pub struct Memory<W> {
    way: W,
    superblock: Superblock,
    plan: Plan,
    /// What is known of it when one comes in.
    chart: Chart,
    /// Under which all servers were formed.
    formation: u64,
    /// This process, among those that use the memory.
    own: u64,
    /// Whether its clients are to ask for anything.
    availability: Arc<Availability>,
    random: Mutex<Random>,
}

impl<W: Transport> Memory<W> {
    /// Finds out what memory there is, and forms it if all of it is empty. Numbers are drawn from
    /// the seed: no other process has the same.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub fn open(way: W, seed: u64) -> Result<Self, MemoryError> {
        let mut random = Random::stream(seed, &[0x006d_656d]);
        let superblock = any_superblock(&way, &mut random)?;
        let plan = Plan::of(superblock.geometry).map_err(|_| MemoryError::Geometry)?;
        let all: Vec<u16> = (0..superblock.geometry.servers).collect();
        let (fabric, missing) = way.reach(&all, guest(&mut random).client())?;
        let (known, missing) = faults(missing, &plan)?;
        let mut driver = Driver::new(fabric).without(known);
        for other in superblocks(&mut driver, &all)? {
            other.belongs_to(&superblock)?;
        }
        let draw = random.next_bits();
        let formation = if plan.geometry().is_replicated() {
            let found = forming::form_or_find(&mut driver, superblock.geometry.servers, draw)?;
            match (found, missing) {
                (Some(formation), _) => formation,
                (None, Some(error)) => return Err(error),
                (None, None) => return Err(MemoryError::Empty(0)), // not reached: it forms them
            }
        } else {
            forming::form(&mut driver, superblock.geometry.servers, draw)?
        };
        assert_eq!(
            plan.geometry(),
            superblock.geometry,
            "a plan is of the sizes that the servers say"
        );
        Ok(Self {
            way,
            superblock,
            chart: plan.chart(),
            plan,
            formation,
            own: random.next_bits() | 1,
            availability: Arc::default(),
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

    /// What a recovery coordinator is to know.
    fn ward(&self) -> Ward {
        self.plan.ward(self.chart.clone())
    }

    /// A name for one who has none yet.
    fn guest(&self) -> Name {
        guest(&mut self.random.lock())
    }

    /// A number by chance.
    fn draw(&self) -> u64 {
        self.random.lock().next_bits()
    }

    /// Servers of a map.
    fn servers(&self, map: &Map) -> Vec<u16> {
        if self.plan.geometry().is_replicated() {
            map.servers().map(|server| server.0).collect()
        } else {
            (0..self.geometry().servers).collect()
        }
    }

    /// A way to the servers of a map under a name. Where memory is replicated, what is asked of those
    /// that are not there, or were started anew, comes to a fault.
    fn connect(&self, name: Name, map: &Map) -> Result<Driver<W::Fabric>, MemoryError> {
        let servers = self.servers(map);
        let (fabric, missing) = self.way.reach(&servers, name.client())?;
        assert!(
            missing.iter().all(|one| servers.contains(&one.server)),
            "only servers that are connected to can be missing"
        );
        let (known, _) = faults(missing, &self.plan)?;
        let driver = Driver::new(fabric).without(known);
        let mut driver = driver.of_lease(self.geometry().lease);
        let strange = forming::strange(&mut driver, &servers, self.formation)?;
        for (server, error) in strange {
            assert!(
                servers.contains(&server),
                "only a server that was asked is strange: {server} of {servers:?}"
            );
            if !self.plan.geometry().is_replicated() {
                return Err(error);
            }
            driver.give_up(ServerId(server));
        }
        Ok(driver)
    }
}

fn guest(random: &mut Random) -> Name {
    Name::Guest(random.next_bits() >> 16)
}

/// What becomes of what is asked of servers that are not reached, and why one of them is not.
///
/// # Errors
/// Why one is not that cannot be missing.
fn faults(
    missing: Vec<UnreachedServer>,
    plan: &Plan,
) -> Result<(BTreeMap<ServerId, Fault>, Option<MemoryError>), MemoryError> {
    let (mut known, mut first) = (BTreeMap::new(), None);
    for one in missing {
        let fault = one.fault.filter(|_| plan.geometry().is_replicated());
        let Some(fault) = fault else {
            return Err(one.error);
        };
        let former = known.insert(ServerId(one.server), fault);
        assert!(
            former.is_none(),
            "a server is reached or missing once: {}",
            one.server
        );
        first.get_or_insert(one.error);
    }
    Ok((known, first))
}

/// What the first server says that is there; the others say the same.
fn any_superblock<W: Transport>(way: &W, random: &mut Random) -> Result<Superblock, MemoryError> {
    let mut why = None;
    for server in 0..Map::FIRST {
        let (fabric, missing) = way.reach(&[server], guest(random).client())?;
        match missing.into_iter().next() {
            None => {
                let found = superblocks(&mut Driver::new(fabric), &[server])?;
                let superblock = found.into_iter().next().ok_or(MemoryError::Geometry)?;
                return match why {
                    Some(why) if superblock.geometry.replicas == 1 => Err(why),
                    _ => Ok(superblock),
                };
            }
            Some(UnreachedServer {
                fault: None, error, ..
            }) => return Err(error),
            Some(one) => why = why.or(Some(one.error)),
        }
    }
    Err(why.unwrap_or(MemoryError::Geometry)) // not reached: one was asked
}

/// What those of these servers that answer say about themselves.
fn superblocks<F: Fabric>(
    driver: &mut Driver<F>,
    servers: &[u16],
) -> Result<Vec<Superblock>, MemoryError> {
    let read = |server: &u16| Operation::Read {
        at: Address {
            server: ServerId(*server),
            offset: 0,
        },
        bytes: SUPERBLOCK,
    };
    let outcomes = driver.ask(servers.iter().map(read).collect())?;
    assert_eq!(
        outcomes.len(),
        servers.len(),
        "each server was asked for its superblock"
    );
    let parse = |(server, outcome): (&u16, OperationOutcome)| match outcome {
        OperationOutcome::Failed(_) => None,
        OperationOutcome::Read(bytes) => {
            let said = Superblock::decode(&bytes);
            Some(said.map_err(|why| MemoryError::Superblock(*server, why)))
        }
        other => {
            assert!(
                matches!(other, OperationOutcome::Read(_)),
                "a read is answered by a copy: {other:?}"
            );
            None
        }
    };
    servers.iter().zip(outcomes).filter_map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_memory_says_how_many_servers_it_is_of() {
        let said = |living| MemoryError::NoRoom { living, of: 4 }.to_string();
        assert!(said(4).starts_with("the memory of all 4 memory servers is given away:"));
        let two = said(2);
        assert!(
            two.contains("the 2 memory servers that are left") && two.contains("2 of 4 are lost"),
            "{two}"
        );
    }
}
