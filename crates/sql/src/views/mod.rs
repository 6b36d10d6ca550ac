//! Materialized views, kept up to date in the commit.
//!
//! A view's definition is in the catalog; what it holds is in memory only ([`manxdb_views`]), so a
//! start begins empty and erased data hides nowhere. A key of it is filled by the base plan when it
//! is first read. Commits are heard of in their order, before any snapshot shows them
//! ([`manxdb_txn::CommitObserver`]): from each written row and its predecessor, read at the version
//! before, the deltas of the views over its table are computed and applied. So every way to commit a
//! row is covered, whichever statement it came from, and what was rolled back is never heard of.
//!
//! | file | holds |
//! |---|---|
//! | `definition` | from a definition to its shapes, one for each SELECT |
//! | `shape` | what of a query is held, and what is left to do; what is refused |
//! | `pure` | which expressions give the same for everybody |
//! | `matching` | whether a query is answered by a view |
//! | `contents`, `groups`, `top` | what is held under a key: rows, groups with aggregates, or the first rows in an order |
//! | `delta` | from a changed row to changes of keys |
//! | `neutral` | evaluation without a session |
//! | `maintained` | one view in use |
//! | `registry` | all of them: commits, catalog changes, memory |
//! | `search` | rows of tables as views hold them, for `GDPR VERIFY` |
//! | `candidates`, `template_text` | queries that might earn a view, and the definition each would have |

mod candidates;
mod contents;
mod definition;
mod delta;
mod groups;
mod maintained;
mod matching;
mod neutral;
mod pure;
mod registry;
mod search;
mod shape;
mod template_text;
mod top;

pub(crate) use candidates::{Candidate, Candidates, Verdict};
pub(crate) use definition::shapes_of;
pub use maintained::Maintained;
pub(crate) use matching::answer;
pub(crate) use registry::Views;
pub(crate) use search::HeldRow;
pub(crate) use shape::HeldTable;
pub(crate) use template_text::definition_text;

/// Bytes that views may take unless `views_memory` says otherwise.
pub(crate) const MEMORY_BYTES: usize = 64 << 20;
