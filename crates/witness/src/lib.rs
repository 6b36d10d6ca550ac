//! Carriers of CURP's witnesses: what answers records, collections and probes.
//!
//! What a witness has to do is decided in `manxdb_curp` ([`manxdb_curp::table`], [`manxdb_curp::carrier`]).
//! This crate does it in three places, and one suite of tests runs against all of them
//! (`tests/it/conformance.rs`). It knows no cluster: who begins, freezes and ends a view is told by a
//! coordinator's messages, or by a person.
//!
//! | carrier | who answers a datagram | survives |
//! |---|---|---|
//! | [`CarrierKind::User`] | a thread of the process | nothing |
//! | [`CarrierKind::Xdp`] | a program in the network driver (native XDP) | the end of the process |
//! | [`CarrierKind::XdpGeneric`] | the same program, behind the driver: any interface, `lo` too | the end of the process |
//!
//! Durability of all three: memory. Pinned maps are the kernel's memory; they end with the machine.
//!
//! The programs are C (`bpf/`), as ARGUS (APNet 2019) has them on a SmartNIC. Their objects are committed,
//! so that nobody needs a compiler for them, and a test makes them again and compares.
//!
//! | question | answered in |
//! |---|---|
//! | which bytes lie where in a map | [`layout`] |
//! | what is counted | [`counts`] |
//! | what a carrier in the kernel needs of a machine, and how to get it | [`host`], [`error`] |
//! | which carriers there are, and which is taken when one cannot be had | [`kind`], [`fallback`] |
//! | what outlives the process, and where | [`pin_paths`] |
//! | views, freezing and reading of tables in the kernel | [`xdp`] |
//! | the carrier in a process | [`user`] |
//!
//! Start reading at [`xdp`], then `bpf/witness.bpf.c`.
#![forbid(unsafe_code)]
// Sockets and threads are what this crate keeps away from the core.
#![allow(clippy::disallowed_methods)]

mod checksum;
pub mod counts;
pub mod error;
pub mod fallback;
pub mod host;
pub mod kind;
pub mod layout;
pub mod pin_paths;
pub mod user;
pub mod xdp;

pub use counts::{Count, Counts};
pub use error::CarrierError;
pub use fallback::{open, open_or_fall_back};
pub use kind::{Carrier, CarrierKind, Place};
pub use user::UserCarrier;
pub use xdp::{ProgramClock, ProgramTime, XdpCarrier};
