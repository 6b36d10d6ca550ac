//! Tests of the crate's public behaviour, and of its design.
#![allow(clippy::unwrap_used)]

mod fence_model;
mod membership;
