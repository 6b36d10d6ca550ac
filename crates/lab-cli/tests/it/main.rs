//! Tests of the program manxdb-lab.

mod command_line;
mod fillrandom;
mod lab;
mod rack;
mod simulation;
mod support;
