//! The frontends of ManxDB: MySQL clients over TCP and TLS, and the admin page over HTTP.
//!
//! A frontend turns bytes into calls on a [`manxdb_sql::session::Session`] and results back into
//! bytes. It owns what the layers below may not touch: sockets, threads, clocks and randomness;
//! those layers get the latter two through [`ProcessHost`]. It knows no SQL and no storage.
//!
//! One operating-system thread serves one connection with blocking I/O: the kernel's
//! preemption keeps short statements short beside long ones, an idle thread costs a few
//! kilobytes, and a client that stops reading holds up nobody else.
//!
//! Start reading at [`mysql`], then `mysql/connection.rs`.
#![forbid(unsafe_code)]
// A frontend is where the ban on clocks, threads and sockets ends: this crate provides them.
#![allow(clippy::disallowed_methods)]

mod account_host;
pub mod admin;
mod data_files;
mod host;
pub mod key_files;
pub mod mysql;
pub mod password_key;
pub mod redis;
mod spill;
pub mod tls;
mod transport;

pub use host::ProcessHost;
pub use spill::SpillDirectory;
