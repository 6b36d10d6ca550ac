//! What materialized views hold, in memory: keys that are filled when they are first asked for
//! (partial state, as in Noria, OSDI'18 §4), kept up to date by the deltas of commits, and read by
//! each reader as of its own snapshot.
//!
//! Nothing here knows SQL, rows or storage: a view holds [`Contents`] by key, a commit brings
//! changes of contents with its [`Version`]. Who uses it fills keys, computes deltas and runs the
//! base plan whenever a [`Lookup`] is no hit.
//!
//! | question | answered in |
//! |---|---|
//! | deltas of commits, applied in commit order before a snapshot shows them | [`Feed`] |
//! | keys of one view: filled, changed, read, evicted | [`View`] |
//! | the bound on the bytes of all views | [`Pool`] |
//!
//! The rules that make a hit equal to the base plan at the reader's snapshot:
//!
//! 1. All changes up to a version are applied before any snapshot of that version exists.
//! 2. A fill announces itself before it reads. Changes that arrive meanwhile wait for its end, and
//!    those above its snapshot are applied on top of what it read.
//! 3. A fill whose snapshot is older than a change that passed before it was announced is refused.
//! 4. A reader between the last fill and the last change is served by undoing the changes above
//!    its snapshot, which are kept as long as such a reader may exist.
#![forbid(unsafe_code)]

mod contents;
mod feed;
#[cfg(feature = "mutants")]
pub mod mutants;
mod pool;
mod slot;
mod statistics;
mod view;

pub use contents::{Contents, Unsuited};
pub use feed::Feed;
pub use manxdb_storage::Version;
pub use pool::Pool;
pub use statistics::ViewStatistics;
pub use view::{Fill, HeldKey, Lookup, View};
