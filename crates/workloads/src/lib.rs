//! The workloads ManxDB is measured with, as pure code.
//!
//! A workload says what tables there are, what rows they hold at a scale, which requests
//! arrive and which statements each request sends. It does not send them: there is no socket,
//! clock or thread in here, and everything random comes from a seed, so that a driver over the
//! MySQL protocol, a simulator and a test all ask the very same questions.
//!
//! A request is a conversation: its later statements depend on the rows of the earlier ones. A
//! driver therefore asks for the next [`Statement`] with the [`Answer`] to the one before,
//! until there is none.
//!
//! Start reading at [`lobsters`].
#![forbid(unsafe_code)]

pub mod lobsters;
mod statement;

pub use manxdb_core::Random;
pub use statement::{Answer, Statement, Value};
