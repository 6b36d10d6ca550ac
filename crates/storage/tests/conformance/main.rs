//! What every engine must do, run against every engine.
//!
//! `cases` are single promises, `model` compares random histories with a naive model.

mod cases;
mod model;
mod subject;
