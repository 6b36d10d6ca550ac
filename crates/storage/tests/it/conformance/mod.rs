//! What every engine must do, run against every engine.
//!
//! `cases` are single promises, `model` compares random histories with a naive model.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cases;
mod model;
mod subject;
