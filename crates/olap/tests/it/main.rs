//! Tests of joins and aggregations over nodes.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking; threads and sockets stand for nodes"
)]

mod aggregations;
mod common;
mod joins;
mod nodes;
