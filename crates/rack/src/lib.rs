//! Transactions inside a rack: clients and memory servers over a fabric, beside what they are
//! compared with.
//!
//! One workload, [`checkout`], on several systems, each of them a [`checkout::Shop`]:
//!
//! | system | what it is | in |
//! |---|---|---|
//! | `rsi` | our protocol over one-sided memory: a vector of timestamps, several versions | [`checkout::one_sided`] |
//! | `rsi-published` | RSI as it was published: a bit vector, one version (§4.2) | [`checkout::published`] |
//! | `trad-si` | snapshot isolation with two-phase commit over TCP (Binnig et al., "The End of Slow Networks", §4.1) | [`two_phase`] |
//! | `two-sided` | the same with messages through shared memory in place of sockets (§3.1, architecture c) | [`two_phase`], [`mailbox`] |
//!
//! And rows with procedures on them, such as TPC-C's, on our protocol alone: [`rows`]; and SQL: [`path`].
//! Memory servers that outlive their clients, and clients that may die: [`memory`]; what is committed
//! there on disk: [`archiver`], [`disk`].
//!
//! Start reading at [`checkout`], then [`drive`].
#![forbid(unsafe_code)]
// Sockets, threads and clocks are what this crate carries the protocols with.
#![allow(clippy::disallowed_methods)]

pub mod archiver;
pub mod checkout;
pub mod disk;
pub mod drive;
pub mod mailbox;
pub mod memory;
pub mod path;
pub mod rows;
mod silence;
pub mod two_phase;
