//! Tests of the program manxdb, and rules of the repository.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod assertion_density;
mod book;
mod command_line;
mod docs_sql;
mod error_reference;
mod layering;
mod links;
mod module_circles;
mod server_process;
mod sources;
mod sql_on_rsi;
mod support;
