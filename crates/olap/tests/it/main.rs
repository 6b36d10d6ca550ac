//! Tests of joins and aggregations over nodes.

mod aggregations;
mod common;
mod joins;
mod nodes;
