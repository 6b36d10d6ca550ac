//! Where everything is in the memory of servers that run for long.
//!
//! ```text
//! every server   0 superblock | 512 FORMATION | 576 NEXT | 1024 …
//! the first one  1024 seats, vector | logs of all places | root of the tree | rooms …
//! the others     1024 (unused)      | logs of all places | (unused)         | rooms …
//! ```
//!
//! `FORMATION` says which database it is part of ([`super::forming`]), `NEXT` where the memory begins
//! that is nobody's yet ([`super::rooms`]).

use manxdb_core::Nanos;
use manxdb_fabric::{Address, ServerId, WORD};
use manxdb_rsi::rows::Keyspace;
use manxdb_rsi::{
    Chart, Layout, LayoutError, Log, Owner, Place, Seats, Session, ThreadId, Tree, TreeError,
    Vector, Ward,
};

/// Bytes of a superblock.
pub const SUPERBLOCK: u64 = 512;
/// Where the word of the formation is.
pub(super) const FORMATION: u64 = SUPERBLOCK;
/// Where the word with the end of what is given away is.
pub(super) const NEXT: u64 = SUPERBLOCK + LINE;
const TABLES: u64 = 1024;
/// Where the first server counts the wardens that have led.
pub(super) const TERMS: u64 = TABLES;
const LINE: u64 = 64;
/// Memory for rows, at least: below it there would be hardly any.
const ROOM_LEAST: u64 = 1 << 20;
/// Versions of a node: no snapshot is too old for a tree.
const NODE_VERSIONS: usize = 2;

/// What decides where everything is; equal on all servers of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Memory servers, numbered from 0.
    pub servers: u16,
    /// Bytes of memory of each.
    pub bytes: u64,
    /// Places for clients: each does one transaction at a time.
    pub places: u16,
    /// Servers that have a copy of a place's log.
    pub log_copies: u16,
    /// Bytes of a log, which a transaction must fit into.
    pub log_bytes: u64,
    /// Versions of each row.
    pub versions: u16,
    /// Bytes of a row; longer ones are cut into pieces.
    pub value: u64,
    /// Bytes of a node of the tree of keys.
    pub node: u64,
    /// Who does not show for this long that it lives is dead.
    pub lease: Nanos,
}

/// Numbers that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GeometryError {
    /// Of something there are none, or too many.
    #[error("{0} is {1} but must be {2} to {3}")]
    Range(&'static str, u64, u64, u64),
    /// Not a multiple of a word.
    #[error("{0} is {1} bytes but must be a multiple of {WORD}")]
    Words(&'static str, u64),
    /// Rows cannot lie so in memory.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Nodes cannot.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// Nothing is left for rows.
    #[error(
        "{0} bytes of memory are too few: with {1} places, logs and tables take {2} of each server; \
         at least {3} are needed"
    )]
    Small(u64, u16, u64, u64),
    /// Addresses end before.
    #[error("a server cannot have {0} bytes of memory")]
    Large(u64),
}

impl Geometry {
    /// Checks it.
    ///
    /// # Errors
    /// [`GeometryError`].
    pub fn check(self) -> Result<Self, GeometryError> {
        let log_max = manxdb_fabric::operation::BYTES_MAX;
        let (places, servers) = (u64::from(self.places), u64::from(self.servers));
        let copies = u64::from(self.log_copies);
        let range = |name, value, least, most| {
            let is_in = (least..=most).contains(&value);
            is_in
                .then_some(())
                .ok_or(GeometryError::Range(name, value, least, most))
        };
        range("the number of memory servers", servers, 1, 1024)?;
        range(
            "the number of places",
            places,
            1,
            Vector::THREADS_MAX.into(),
        )?;
        range("the number of copies of a log", copies, 1, servers)?;
        range("the size of a log", self.log_bytes, 4096, log_max)?;
        let (least, most) = (Nanos::from_millis(100), Nanos::from_secs(60));
        range("the lease, in nanoseconds,", self.lease.0, least.0, most.0)?;
        for (name, bytes) in [
            ("a log", self.log_bytes),
            ("the memory of a server", self.bytes),
        ] {
            if !bytes.is_multiple_of(WORD) {
                return Err(GeometryError::Words(name, bytes));
            }
        }
        Layout::new(self.versions.into(), length(self.value))?;
        let nodes = Layout::new(NODE_VERSIONS, length(self.node))?;
        let root = Place::new(self.root()).ok_or(GeometryError::Large(self.bytes))?;
        Tree::new(root, nodes)?;
        let last = Address {
            server: ServerId(self.servers - 1),
            offset: self.bytes / LINE * LINE,
        };
        Place::new(last).ok_or(GeometryError::Large(self.bytes))?;
        let (taken, least) = (self.rooms(), self.rooms() + ROOM_LEAST);
        if self.bytes < least {
            return Err(GeometryError::Small(self.bytes, self.places, taken, least));
        }
        Ok(self)
    }

    /// The table of places.
    #[must_use]
    pub const fn seats(self) -> Seats {
        Seats::new(first(TABLES), self.places)
    }

    /// The vector; none if this was not checked.
    #[must_use]
    pub fn vector(self) -> Option<Vector> {
        let offset = TABLES + self.seats().bytes();
        Vector::new(first(offset.next_multiple_of(LINE)), self.places)
    }

    /// Behind the tables, on all servers alike.
    fn logs(self) -> u64 {
        let vector = self.vector().map_or(0, Vector::bytes);
        let seats = (TABLES + self.seats().bytes()).next_multiple_of(LINE);
        (seats + vector).next_multiple_of(LINE)
    }

    /// Where a place's log is on the servers that have a copy.
    #[must_use]
    pub fn log_at(self, thread: ThreadId) -> u64 {
        self.logs() + u64::from(thread.number()) * self.log_bytes.next_multiple_of(LINE)
    }

    /// Whether a server has a copy of a place's log.
    #[must_use]
    pub fn has_log(self, server: u16, thread: ThreadId) -> bool {
        let first = thread.number() % self.servers;
        (server + self.servers - first) % self.servers < self.log_copies
    }

    fn log(self, thread: ThreadId) -> Option<Log> {
        let place = |server| Address {
            server: ServerId(server),
            offset: self.log_at(thread),
        };
        let servers = (0..self.servers).filter(|server| self.has_log(*server, thread));
        Log::new(servers.map(place).collect(), self.log_bytes)
    }

    /// Behind the logs of the first server.
    fn root(self) -> Address {
        let logs = self.log_bytes.next_multiple_of(LINE) * u64::from(self.places);
        first(self.logs() + logs)
    }

    /// The tree and the rows; none if this was not checked.
    #[must_use]
    pub fn keyspace(self) -> Option<Keyspace> {
        let nodes = Layout::new(NODE_VERSIONS, length(self.node)).ok()?;
        Some(Keyspace {
            tree: Tree::new(Place::new(self.root())?, nodes).ok()?,
            records: Layout::new(self.versions.into(), length(self.value)).ok()?,
        })
    }

    /// Where the memory begins that is given away, on all servers alike.
    #[must_use]
    pub fn rooms(self) -> u64 {
        let node = Layout::new(NODE_VERSIONS, length(self.node)).map_or(0, Layout::bytes);
        self.root().offset + (node as u64).next_multiple_of(LINE)
    }

    /// The session of an owner; none if there is no such place.
    #[must_use]
    pub fn session(self, owner: Owner) -> Option<Session> {
        let session = Session::new(owner.thread, self.vector()?, owner.after)?;
        Some(session.with_log(self.log(owner.thread)?))
    }

    /// What a warden is to know; none if this was not checked.
    #[must_use]
    pub fn ward(self) -> Option<Ward> {
        let threads = (0..self.places).map(ThreadId::new);
        Some(Ward {
            seats: self.seats(),
            vector: self.vector()?,
            logs: threads
                .map(|thread| self.log(thread?))
                .collect::<Option<_>>()?,
            lease: self.lease,
            chart: Chart::fixed(),
        })
    }
}

const fn first(offset: u64) -> Address {
    let server = ServerId(0);
    Address { server, offset }
}

fn length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const GEOMETRY: Geometry = Geometry {
        servers: 3,
        bytes: 16 << 20,
        places: 8,
        log_copies: 2,
        log_bytes: 64 << 10,
        versions: 4,
        value: 100,
        node: 1_000,
        lease: Nanos::from_secs(1),
    };

    #[test]
    fn nothing_lies_over_anything_else() {
        let geometry = GEOMETRY.check().unwrap();
        let seats = geometry.seats();
        let vector = geometry.vector().unwrap();
        let thread = |number| ThreadId::new(number).unwrap();
        const { assert!(NEXT + WORD <= TABLES) };
        assert!(TABLES + seats.bytes() + vector.bytes() <= geometry.logs());
        for number in 1..geometry.places {
            let (before, at) = (
                geometry.log_at(thread(number - 1)),
                geometry.log_at(thread(number)),
            );
            assert!(before + geometry.log_bytes <= at);
        }
        let last = geometry.log_at(thread(geometry.places - 1));
        assert!(last + geometry.log_bytes <= geometry.root().offset);
        assert!(geometry.root().offset < geometry.rooms());
    }

    #[test]
    fn each_log_has_its_copies() {
        for number in 0..GEOMETRY.places {
            let thread = ThreadId::new(number).unwrap();
            let has = |server: &u16| GEOMETRY.has_log(*server, thread);
            assert_eq!((0..GEOMETRY.servers).filter(has).count(), 2);
            assert!(GEOMETRY.has_log(number % 3, thread));
        }
        assert_eq!(GEOMETRY.ward().unwrap().logs.len(), 8);
    }

    #[test]
    fn numbers_that_cannot_be_are_refused_by_name() {
        let refused = |geometry: Geometry| geometry.check().unwrap_err().to_string();
        for (geometry, why) in [
            (
                Geometry {
                    servers: 0,
                    ..GEOMETRY
                },
                "the number of memory servers is 0",
            ),
            (
                Geometry {
                    places: 300,
                    ..GEOMETRY
                },
                "the number of places is 300 but must be 1 to 256",
            ),
            (
                Geometry {
                    log_copies: 4,
                    ..GEOMETRY
                },
                "copies of a log is 4 but must be 1 to 3",
            ),
            (
                Geometry {
                    log_bytes: 2 << 20,
                    ..GEOMETRY
                },
                "the size of a log is",
            ),
            (
                Geometry {
                    lease: Nanos(5),
                    ..GEOMETRY
                },
                "the lease",
            ),
            (
                Geometry {
                    bytes: 1 << 20,
                    ..GEOMETRY
                },
                "are too few",
            ),
            (
                Geometry {
                    bytes: (16 << 20) + 4,
                    ..GEOMETRY
                },
                "a multiple of 8",
            ),
            (
                Geometry {
                    versions: 1,
                    ..GEOMETRY
                },
                "versions",
            ),
            (
                Geometry {
                    node: 8,
                    ..GEOMETRY
                },
                "nodes of a tree",
            ),
            (
                Geometry {
                    bytes: 1 << 60,
                    ..GEOMETRY
                },
                "cannot have",
            ),
        ] {
            let error = refused(geometry);
            assert!(error.contains(why), "{error}");
        }
    }
}
