//! Tests of the checkers of histories.

mod common;
mod embedded;
mod linear;
mod planted;
mod second_opinion;
mod versions;
