//! One rack of memory servers in virtual time, with processes, recovery coordinators and clients that
//! move money: what tests of losses and of disks share.

#![allow(clippy::unwrap_used, clippy::panic)]

pub mod bank;
pub mod client_handle;
pub mod plan;
pub mod rack;
pub mod watch;
