//! Large sets of keys in little memory.
//!
//! A transaction of a million rows has read a million keys, and writes as many. Most of a key
//! stands in its predecessor already, so a sorted list of them without what they share takes some
//! eight bytes a key; as entries of a map they would take ten times that.
//!
//! | type | what it holds |
//! |---|---|
//! | [`KeyRun`] | sorted keys with a version each, packed |
//! | `WriteRun` | sorted keys with what a transaction writes there, packed |
//! | [`ReadPoints`] | the keys a transaction read: a few as they are, many as runs |
//! | [`neighbours`] | ranges that cover keys, for when even runs take too much |

pub(crate) mod neighbours;
mod points;
mod run;
mod write_run;

pub use neighbours::NEIGHBOURS_SHARE_BYTES;
pub use points::ReadPoints;
pub use run::KeyRun;
pub(crate) use run::{RunBuilder, as_length as length_of, get_number, put_number, shared_bytes};
pub(crate) use write_run::{Held, WriteRun, WriteRunBuilder};
