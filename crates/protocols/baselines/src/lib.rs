//! Published protocols that DAST is compared with, as protocol cores for the simulator.
//!
//! Each orders the same one-shot procedures over the same clusters as `manxdb_dast`: regions,
//! shards with three replicas in one region, clients beside them. They are what experiments need
//! and no product: nothing is kept on disk, no node comes back after it has failed, and no process
//! of a cluster runs them.
//!
//! | protocol | how it orders | answered in |
//! |---|---|---|
//! | Janus | by the transactions that each one met, in the round trips of its client | [`janus`] |
//! | TAPIR | not at all: its client asks whether what it read still holds, and begins again if not | [`tapir`] |
//! | SLOG | by a log a region, and a global one for what touches several | [`slog`] |
//! | Detock | by a log a region, and the graph of whom what touches several comes behind in them | [`slog`] |
//!
//! Start reading at [`janus`]; what runs once the order is decided is
//! [`manxdb_common::pieces`].
#![forbid(unsafe_code)]

pub mod janus;
pub mod slog;
pub mod tapir;
pub mod waits;

pub use janus::{JanusNode, JanusOptions};
pub use slog::{SlogNode, SlogOptions};
pub use tapir::{TapirNode, TapirOptions};
