//! Tests of the MySQL and admin listeners over sockets. What counts the threads, the memory or the
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
//! descriptors of its process is a program of its own beside this one.

mod admin_listener;
mod compression;
mod hostile_clients;
mod logins;
mod results;
mod support;
