//! ManxDB, the database with short tails: one binary, all roles.
#![forbid(unsafe_code)]

fn main() {}
