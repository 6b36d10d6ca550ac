//! SQL's rows, replicated in one round trip.
//!
//! `manxdb-curp` replicates any deterministic machine of keys; the machine of this crate is a map of
//! rows, and its commands are *effects*: what a transaction that was validated already writes, at
//! which version. Replicas execute no SQL and validate nothing. The server that does is the *primary*:
//! it is the CURP master and the CURP client of its own commits in one process.
//!
//! ```text
//! MySQL client ── SQL ── LocalPath ──Confirm── Commits ── PrimaryDriver ── CURP client ─┬─ master (this process)
//!                        (validates,           (queue)    (the loop of      effects     ├─ witnesses: 1 round trip
//!                         orders)                          the process)                 └─ backups: when they conflict
//! ```
//!
//! | question | answered in |
//! |---|---|
//! | what is written into records and logs | [`effects`] |
//! | what backups keep, who may write it | [`machine`] |
//! | how more rows than memory are kept | [`stored`] |
//! | which commits are confirmed, and in which order they are shown | [`commits`] |
//! | when a server may be primary, and when no longer | [`primary`] |
//! | until when it may read | [`lease`] |
//! | how it runs in a process | [`driver`] |
//!
//! No SQL, no sockets of MySQL clients and no command line are in here. Start reading at [`machine`],
//! then [`primary`].
#![forbid(unsafe_code)]
// The driver's lease is measured against the clock that only goes forward.
#![allow(clippy::disallowed_methods)]

pub mod commits;
pub mod driver;
pub mod effects;
pub mod lease;
pub mod machine;
pub mod primary;
pub mod stored;

pub use commits::Commits;
pub use driver::{PrimaryDriver, PrimaryEvent};
pub use effects::{Effects, Owner, SqlCommand};
pub use machine::{Rows, RowsView, SqlMachine};
pub use primary::Primary;
pub use stored::Home;
