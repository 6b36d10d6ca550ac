//! Queries against tables in memory.

mod frameworks;
mod membership;
mod oracle;
mod plans;
mod queries;
mod shop;
mod world;
