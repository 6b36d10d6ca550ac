//! The keys of views under every order of steps that their users may take.

mod interleavings;
mod model;
mod views;
