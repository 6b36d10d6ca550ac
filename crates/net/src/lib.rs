//! The second driver of protocol cores: real processes, real clocks, TCP and UDP.
//!
//! One thread runs all cores of a process and all of its sockets ([`runtime`]), so a core is as
//! alone with its state as it is in the simulator. Messages are numbered, acknowledged and sent
//! again by `manxdb_core::channel::Reliable`, unless a core mends losses itself; what is in here may
//! lose frames whenever a connection breaks. Datagrams go as they are, in the protocol's own format.
//! Distances between regions are emulated: each frame waits for its link's delay before it is
//! written ([`delay`]). What a core writes down is on disk before the core hears so ([`journal`]).
//!
//! There is no authentication: whoever reaches the port takes part. Bytes that make no sense
//! close the connection they came on, with a reason in the log, and nothing else; a datagram that
//! makes none is counted and dropped.
//!
//! | question | answered in |
//! |---|---|
//! | how bytes on a connection look | [`frame`], [`packet`] |
//! | which sockets datagrams go through, and who sent one | [`datagrams`] |
//! | what cores wrote down | [`journal`] |
//! | for how long a process acts that is one of several for a node | [`tenure`] |
//! | how long messages are held | [`delay`] |
//! | who has which address | [`directory`] |
//! | connections, out and in | [`outbound`], [`inbound`] |
//! | the loop around it all, and who asks the cores from outside | [`runtime`], [`driver`] |
//! | which life of a node this is, and that it is the only one | [`life`] |
//! | what a running process says of itself, and how it is asked | [`status`], [`ask_status`] |
//!
//! Start reading at [`runtime`].
#![forbid(unsafe_code)]
// Clocks, files and sockets are what this crate keeps away from the cores.
#![allow(clippy::disallowed_methods)]

pub mod ask_status;
pub mod cluster_id;
pub mod counters;
pub mod datagrams;
pub mod delay;
pub mod directory;
pub mod driver;
pub mod frame;
pub mod inbound;
pub mod journal;
pub mod life;
pub mod outbound;
pub mod packet;
pub mod runtime;
pub mod status;
pub mod tenure;

pub use ask_status::{StatusError, ask_status};
pub use cluster_id::ClusterId;
pub use datagrams::UNKNOWN_SENDER;
pub use delay::Delays;
pub use directory::Directory;
pub use driver::{Driver, NoDriver, Outside};
pub use journal::{Journal, JournalError, RecordStore};
pub use life::DataDirectory;
pub use packet::{Place, RegionId};
pub use runtime::{Runtime, Settings};
pub use status::Status;
