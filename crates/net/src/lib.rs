//! The second driver of protocol cores: real processes, real clocks, TCP.
//!
//! One thread runs all cores of a process and all of its sockets ([`runtime`]), so a core is as
//! alone with its state as it is in the simulator. Messages are numbered, acknowledged and sent
//! again by `manxdb_core::channel::Reliable`; what is in here may lose frames whenever a
//! connection breaks. Distances between regions are emulated: each frame waits for its link's
//! delay before it is written ([`delay`]).
//!
//! There is no authentication: whoever reaches the port takes part. Bytes that make no sense
//! close the connection they came on, with a reason in the log, and nothing else.
//!
//! | question | answered in |
//! |---|---|
//! | how bytes on a connection look | [`frame`], [`packet`] |
//! | how long messages are held | [`delay`] |
//! | who has which address | [`directory`] |
//! | connections, out and in | [`outbound`], [`inbound`] |
//! | the loop around it all, and who asks the cores from outside | [`runtime`], [`driver`] |
//! | which life of a node this is, and that it is the only one | [`life`] |
//! | what a running process says of itself | [`status`] |
//!
//! Start reading at [`runtime`].
#![forbid(unsafe_code)]
// Clocks, files and sockets are what this crate keeps away from the cores.
#![allow(clippy::disallowed_methods)]

pub mod counters;
pub mod delay;
pub mod directory;
pub mod driver;
pub mod frame;
pub mod inbound;
pub mod life;
pub mod outbound;
pub mod packet;
pub mod runtime;
pub mod status;

pub use delay::Delays;
pub use directory::Directory;
pub use driver::{Driver, NoDriver, Outside};
pub use life::DataDirectory;
pub use packet::{ClusterId, Place, RegionId};
pub use runtime::{Runtime, Settings};
pub use status::{Status, StatusError, ask_status};
