//! Tests of the checkers of histories.

mod common;
mod embedded;
mod planted;
mod second_opinion;
mod versions;
