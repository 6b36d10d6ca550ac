//! Owners in transactions: a row of a table whose rows are people's has an owner when its transaction
//! commits, or its table says UNOWNED ALLOWED.
//!
//! What is stored is the exception. A row without owner has a key
//! ([`crate::catalog::unowned`]); a row with one has none, and costs no byte. The key is written only when a row
//! gets its first owner or loses its last, and is read with `ReadMode::Validate`, without a lock: a
//! check never reads the rows of parents, so that it does not conflict with what updates them.
//!
//! | question | file |
//! |---|---|
//! | along which links is a row owned | [`graph`] |
//! | which rows may have got or lost an owner in this transaction | [`notes`] |
//! | do they have one, and who else is concerned | [`check`] |
//! | under which key is a row sealed | [`keys`] |
//! | which keys are to be erased when the transaction has committed | [`erasure`] |
//! | which people are being forgotten, so that nothing new becomes theirs | [`subjects`] |
//! | what is recorded of requests, as a chain | [`audit`] |
//! | which requests wait, and what is held | [`requests`] |
//! | which requests have left something in files | [`purges`] |
//!
//! Under `foreign_key_checks = 0` a row may come before its owner, as in a dump: it keeps its key
//! and waits, until [`check::place_waiting`] finds that the owner has come.

pub(crate) mod audit;
mod check;
pub(crate) mod erasure;
mod graph;
mod keys;
pub mod mutants;
mod notes;
pub(crate) mod purges;
pub(crate) mod requests;
pub(crate) mod subjects;

pub(crate) use check::{OwnerCheck, look_at_all, place_waiting, seal_all};
pub(crate) use graph::OwnerGraph;
pub(crate) use notes::OwnerNotes;
