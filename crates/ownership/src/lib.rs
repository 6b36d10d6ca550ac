//! Who owns each row: annotations of tables become a graph of edges, along which owners are found.
//!
//! The model is K9db's (OSDI'23 §4), with the defects of its implementation left out. Pure code: no
//! catalog, no keys, no I/O; the caller describes its tables ([`TableShape`]) and stores what is decided
//! ([`Edge`], [`Rule`]). What is decided for a link is decided once, when the link is made; no later
//! table changes it.
//!
//! | question | module |
//! |---|---|
//! | how a table, a link and an edge look | [`shape`] |
//! | which link becomes which edge | [`resolve`] |
//! | why a definition is refused | [`refusal`] |
//! | through which chains of edges a row is someone's | [`graph`] |
//! | what happens to a row that others keep | [`rule`]; which rules are not in force: `idle_rules` |
//! | how it is proven that a person was forgotten | [`proof`] |
//! | how long the law wants rows to be kept | [`retention`] |
//! | what is wrong or doubtful with a schema | [`compliance`] |
//!
//! Start reading at [`shape`].
#![forbid(unsafe_code)]

pub mod compliance;
pub mod graph;
mod idle_rules;
pub mod proof;
pub mod refusal;
pub mod resolve;
pub mod retention;
pub mod rule;
pub mod shape;

pub use compliance::{Finding, Severity, TableReport, report};
pub use graph::{Chain, ChainEnd, Chains, Hop, OwnershipGraph};
pub use refusal::{OwnershipRefusal, check};
pub use resolve::resolve;
pub use retention::{RETAINED_MAX, Retention, RetentionUnit};
pub use rule::{Rule, RuleAction, RuleEvent, RuleSubject};
pub use shape::{Annotation, ColumnShape, Edge, EdgeKind, Link, Origin, TableName, TableShape};
