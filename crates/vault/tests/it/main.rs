//! What a vault promises: keys survive crashes, damage and rotations, and erased ones do not.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod damage;
mod files;
mod life;
mod masters;
mod power;
mod world;
