//! A deterministic simulator: clusters of protocol cores in virtual time, in one thread.
//!
//! A [`World`] runs the nodes that a [`System`] makes, on machines with clocks that are wrong,
//! CPUs that are busy and disks that forget, over a network with delays. A [`Driver`] is the
//! workload: it asks nodes and sees their answers. [`Fault`]s are data, so that they can be
//! drawn from a seed, cut down and printed. Equal seeds and faults give equal runs, to the
//! nanosecond.
//!
//! There are no threads, no real clock and no I/O in here, and nothing is random but by seed.
//!
//! | question | answered in |
//! |---|---|
//! | how a protocol plugs in, and a workload | [`system`], [`driver`] |
//! | the loop; what a run is made of | [`world`] |
//! | what happens next | [`queue`] |
//! | where nodes are, and how far apart | [`topology`] |
//! | what becomes of a message | [`network`] |
//! | what a node's clock shows | [`clock`] |
//! | what a step costs | [`cost`] |
//! | what is on disk after a crash | [`disk`] |
//! | memory that is reached without its processor | [`memory`] |
//! | what can go wrong, and drawing it from a seed | [`fault`] |
//! | thousands of seeds, and a failing one made small | [`hunt`] |
//! | what happened | [`counters`], [`trace`], drawn by [`timeline`] |
//! | why a transaction took as long as it did | [`explain`] |
//! | how long it took, and how often | [`measure`] |
//! | why a draw here shifts no draw there | [`streams`] |
//!
//! Start reading at [`system`] and [`driver`], then [`world`]. A run in short, of a core that answers at once:
//!
//! ```
//! use manxdb_core::channel::Life;
//! use manxdb_core::{Actions, Core, Event, EventOf, LocalTime, Message, NodeId, Weight};
//! use manxdb_sim::{SimTime, System, World, WorldOptions};
//!
//! #[derive(Debug, Clone)]
//! enum Never {}
//!
//! impl Message for Never {
//!     fn weight(&self) -> Weight { match *self {} }
//!     fn label(&self) -> &'static str { match *self {} }
//! }
//!
//! struct Echo;
//!
//! impl Core for Echo {
//!     type Message = Never;
//!     type Timer = ();
//!     type Request = u32;
//!     type Reply = u32;
//!     type Record = ();
//!
//!     fn step(&mut self, _: LocalTime, event: EventOf<Self>, out: &mut Actions<Self>) {
//!         if let Event::Request { id, body } = event {
//!             out.reply(id, body);
//!         }
//!     }
//!
//!     fn check(&self) -> Result<(), String> { Ok(()) } // it has no state
//!
//!     fn digest(&self) -> u64 { 0 }
//! }
//!
//! struct Echoes;
//!
//! impl System for Echoes {
//!     type Core = Echo;
//!     fn start(&mut self, _: NodeId, _: Life, _disk: Vec<()>) -> Echo { Echo }
//! }
//!
//! let mut world = World::new(Echoes, WorldOptions::small(7, 3));
//! world.schedule("1ms+5ms crash n1".parse()?);
//! for node in [0, 1, 2] {
//!     world.outside().request_at(SimTime::from_millis(2), NodeId(node), 42);
//! }
//! world.run_alone(SimTime::from_secs(1))?;
//! assert_eq!(world.counters().replies, 2);
//! assert_eq!(world.counters().troubles()["request lost"], 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod clock;
pub mod cost;
pub mod counters;
mod cpu;
pub mod disk;
pub mod driver;
pub mod explain;
pub mod fault;
pub mod hunt;
pub mod measure;
pub mod memory;
pub mod network;
mod node;
mod pending;
pub mod queue;
pub mod streams;
pub mod system;
pub mod time;
pub mod timeline;
pub mod topology;
pub mod trace;
pub mod world;

pub use cost::CostModel;
pub use driver::{Driver, NoDriver, Outside};
pub use fault::{Between, Fault, FaultKind, Group, Plan, Profile};
pub use measure::{Latencies, Windows};
pub use network::Transport;
pub use system::System;
pub use time::SimTime;
pub use topology::{Link, LinkClass, Ppm, RegionId, Topology};
pub use world::{AfterPause, ClockOptions, Failure, World, WorldOptions};
