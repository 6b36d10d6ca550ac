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
//! | how a protocol and a workload plug in | [`system`] |
//! | the loop; what a run is made of | [`world`] |
//! | what happens next | [`queue`] |
//! | where nodes are, and how far apart | [`topology`] |
//! | what becomes of a message | [`network`] |
//! | what a node's clock shows | [`clock`] |
//! | what a step costs | [`cost`] |
//! | what is on disk after a crash | [`disk`] |
//! | what can go wrong, and drawing it from a seed | [`fault`] |
//! | thousands of seeds, and a failing one made small | [`hunt`] |
//! | what happened | [`counters`], [`marks`], [`trace`], drawn by [`timeline`] |
//! | how long it took, and how often | [`measure`] |
//! | why a draw here shifts no draw there | [`streams`] |
//!
//! Start reading at [`system`], then [`world`].
#![forbid(unsafe_code)]

pub mod clock;
pub mod cost;
pub mod counters;
mod cpu;
pub mod disk;
pub mod fault;
pub mod hunt;
pub mod marks;
pub mod measure;
pub mod network;
mod node;
pub mod queue;
pub mod streams;
pub mod system;
pub mod time;
pub mod timeline;
pub mod topology;
pub mod trace;
pub mod world;

pub use cost::CostModel;
pub use fault::{Between, Fault, FaultKind, Group, Plan, Profile};
pub use measure::{Latencies, Windows};
pub use network::Transport;
pub use system::{Driver, NoDriver, System};
pub use time::SimTime;
pub use topology::{Link, LinkClass, Ppm, RegionId, Topology};
pub use world::{ClockOptions, Failure, Outside, World, WorldOptions};
