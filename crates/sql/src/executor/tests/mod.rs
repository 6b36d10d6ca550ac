//! Queries against tables in memory.

mod oracle;
mod queries;
mod world;
