//! Queries against tables in memory.

mod membership;
mod oracle;
mod queries;
mod world;
