//! Geo ordering in which a local transaction never waits for a cross-region one (DAST).
//!
//! A protocol core: no sockets, clocks or threads (see `manxdb_core`). It orders one-shot
//! procedures over many regions, each with its shards, each shard with three replicas in its
//! region ("Achieving low tail-latency and high scalability for serializable transactions in edge
//! computing", Chen et al., EuroSys 2021). Section numbers in these pages are that paper's.
//!
//! A transaction of one region (*local*, IRT) is stamped by its coordinator, sent to the replicas
//! it touches, and runs when all clocks of the region have passed its stamp. A transaction of
//! several regions (*cross-region*, CRT) gets an anticipated timestamp in each; the largest is
//! final. Until that is known, every clock of those regions stays below it by *stretching*: local
//! transactions go on with stamps below it and wait for nothing.
//!
//! | question | answered in |
//! |---|---|
//! | how places in the order look, and how a clock stays below a floor | [`timestamp`], [`clock`], [`wall`] |
//! | what is asked, and how it is cut into pieces | [`manxdb_common::call`] |
//! | in which order a shard's transactions run, and what may pass a piece that waits | [`execution`] |
//! | what a replica does | [`replica`] |
//! | what the managers of a region do, and agree on | [`manager`], [`ledger`] |
//! | what becomes of a region that is silent | [`fence`] |
//! | who is where | [`manxdb_common::topology`] |
//! | what nodes say to each other | [`message`] |
//! | why a transaction waits | [`waits`] |
//!
//! With [`Crossing::Ahead`] a cross-region transaction gets its final place at once from the
//! managers of its home region, behind what they have promised the others ([`manager`]).
//!
//! Start reading at [`clock`], then [`execution`], then [`replica`].
#![forbid(unsafe_code)]

pub mod client;
pub mod clock;
pub mod execution;
pub mod fence;
pub mod held;
pub mod ledger;
pub mod manager;
pub mod message;
#[cfg(feature = "mutants")]
pub mod mutants;
pub mod node;
pub mod options;
pub mod orders;
pub mod replica;
pub mod timestamp;
pub mod waits;
pub mod wall;
pub mod wanted;

pub use manxdb_common::{Answer, Ask, Call, CallId, Level, Planned};
pub use manxdb_common::{RegionId, Role, Topology, call, topology};
pub use node::DastNode;
pub use options::{Crossing, Options, Shared, Survive};
pub use timestamp::Timestamp;
pub use wanted::DastTimer;
