//! The numbers that decide where everything is in the memory of servers that run for long.

use manxdb_core::Nanos;
use manxdb_fabric::WORD;
use manxdb_rsi::{EpochLog, Layout, LayoutError, Log, Map, TreeError, Vector};

use super::plan::Plan;

/// Versions of a node: no snapshot is too old for a tree.
const NODE_VERSIONS: usize = 2;
/// Servers, at most; where memory is replicated, each has regions of its own to be the primary of.
const SERVERS_MAX: u64 = 1024;
const REPLICATED_SERVERS_MAX: u64 = 64;
/// Slots of a log, at most.
const SLOTS_MAX: u64 = 64;
/// Most of three agree on a loss.
const REPLICATED_SERVERS_LEAST: u64 = 3;
const _: () = assert!(
    REPLICATED_SERVERS_MAX < Map::FIRST as u64 && SERVERS_MAX <= 1 << 10,
    "the number of a server is none of a region's, and a place has ten bits for it"
);
const _: () = assert!(
    REPLICATED_SERVERS_LEAST == EpochLog::ACCEPTORS as u64,
    "there are as many servers as agree on a loss"
);
const _: () = assert!(
    Log::RING_MIN <= SLOTS_MAX && Vector::THREADS_MAX <= u16::MAX / 2,
    "a ring can be had, and each place has a thread"
);

/// What decides where everything is; equal on all servers of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Memory servers, numbered from 0.
    pub servers: u16,
    /// Servers that have the same memory; 1: what a server has is lost with it.
    pub replicas: u16,
    /// Bytes of memory of each.
    pub bytes: u64,
    /// Places for clients: each does one transaction at a time.
    pub places: u16,
    /// Servers that have a copy of a place's log; where memory is replicated, as many as replicas.
    pub log_copies: u16,
    /// Bytes of a log's slot, which a transaction must fit into.
    pub log_bytes: u64,
    /// Slots of a log; 1 where nothing is written to disk: more are for transactions that are not
    /// written yet.
    pub log_slots: u16,
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
        Plan::of(self).map(|plan| plan.geometry)
    }

    /// Whether each number is one that can be.
    pub(super) fn check_numbers(&self) -> Result<(), GeometryError> {
        let log_max = manxdb_fabric::operation::BYTES_MAX;
        let (places, servers) = (u64::from(self.places), u64::from(self.servers));
        let (copies, replicas) = (u64::from(self.log_copies), u64::from(self.replicas));
        let (least, most) = if self.is_replicated() {
            (REPLICATED_SERVERS_LEAST, REPLICATED_SERVERS_MAX)
        } else {
            (1, SERVERS_MAX)
        };
        range("the number of memory servers", servers, least, most)?;
        range("the number of replicas", replicas, 1, servers)?;
        let places_max = Vector::THREADS_MAX.into();
        range("the number of places", places, 1, places_max)?;
        let (least, most) = if self.is_replicated() {
            (replicas, replicas)
        } else {
            (1, servers)
        };
        range("the number of copies of a log", copies, least, most)?;
        range("the size of a log", self.log_bytes, 4096, log_max)?;
        let slots = self.log_slots.into();
        if self.is_kept() {
            range(
                "the number of slots of a log",
                slots,
                Log::RING_MIN,
                SLOTS_MAX,
            )?;
        }
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
        Ok(())
    }

    /// Whether a log archiver writes to disk what is committed.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.log_slots != 1
    }

    /// Whether no memory is lost with one server.
    #[must_use]
    pub fn is_replicated(&self) -> bool {
        self.replicas > 1
    }

    /// How rows lie in memory.
    pub(super) fn records(&self) -> Result<Layout, LayoutError> {
        let layout = Layout::new(self.versions.into(), length(self.value))?;
        Ok(layout.with_overflow())
    }

    /// How nodes of the tree do.
    pub(super) fn nodes(&self) -> Result<Layout, LayoutError> {
        Layout::new(NODE_VERSIONS, length(self.node))
    }
}

fn range(name: &'static str, value: u64, least: u64, most: u64) -> Result<(), GeometryError> {
    let is_in = (least..=most).contains(&value);
    is_in
        .then_some(())
        .ok_or(GeometryError::Range(name, value, least, most))
}

fn length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const GEOMETRY: Geometry = Geometry {
        servers: 3,
        replicas: 1,
        bytes: 16 << 20,
        places: 8,
        log_copies: 2,
        log_bytes: 64 << 10,
        log_slots: 1,
        versions: 4,
        value: 100,
        node: 1_000,
        lease: Nanos::from_secs(1),
    };

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
                    servers: 2,
                    replicas: 2,
                    ..GEOMETRY
                },
                "the number of memory servers is 2 but must be 3 to 64",
            ),
            (
                Geometry {
                    replicas: 4,
                    ..GEOMETRY
                },
                "the number of replicas is 4 but must be 1 to 3",
            ),
            (
                Geometry {
                    replicas: 3,
                    ..GEOMETRY
                },
                "copies of a log is 2 but must be 3 to 3",
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

    #[test]
    fn a_log_is_no_ring_or_has_slots_enough() {
        let with = |log_slots| {
            let geometry = Geometry {
                log_slots,
                bytes: 64 << 20,
                ..GEOMETRY
            };
            geometry.check().map_err(|error| error.to_string())
        };
        assert!(with(1).is_ok() && with(4).is_ok() && with(64).is_ok());
        for slots in [0, 2, 3, 65] {
            let said = with(slots).unwrap_err();
            let words = format!("the number of slots of a log is {slots} but must be 4 to 64");
            assert_eq!(said, words);
        }
    }
}
