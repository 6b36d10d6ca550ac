//! What binder, planner and executor hand each other: pure data.
//!
//! The binder makes expressions and, of each SELECT, a [`select::SelectParts`] over a
//! [`logical::Group`] of tables; the planner makes [`physical`] operators of it; the executor runs
//! the [`Plan`]. An expression may hold the plan of a subquery, and plans hold expressions, so all of
//! it stands here, and nothing here evaluates, chooses or reads anything. [`walk`] looks into and
//! rewrites what is nested.

mod aggregate;
mod expr;
mod json_table;
pub(crate) mod logical;
pub(crate) mod physical;
pub(crate) mod select;
mod view;
pub(crate) mod walk;
pub mod window;

pub use aggregate::{AggregateCall, AggregateKind};
pub use expr::{BinaryOp, CompareOp, Expr, ExprKind, FunctionId};
pub use view::{HeldView, ViewFill, ViewRead};

use manxdb_txn::ReadMode;

use crate::catalog::TableId;
use crate::types::{ColumnMeta, DataType};
use physical::Node;

/// A query, ready to run. Immutable and shared between sessions through the plan cache.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Result columns.
    pub columns: Vec<ColumnMeta>,
    /// Types the `?` parameters were inferred to have, by position; `Null` when unknown.
    pub param_types: Vec<DataType>,
    /// Reads a row of an enclosing query.
    pub correlated: bool,
    /// Base tables read, for privileges and cache invalidation: (id, database, name).
    pub tables: Vec<TableRead>,
    /// FOR UPDATE / FOR SHARE.
    pub locking: Locking,
    /// How base tables are read, which follows from the lock clause.
    pub read_mode: ReadMode,
    /// The operators.
    pub root: Node,
}

/// Lock clause of a SELECT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Locking {
    /// Plain.
    #[default]
    None,
    /// FOR SHARE, LOCK IN SHARE MODE.
    Share,
    /// FOR UPDATE.
    Update,
}

/// A bound query whose operators are chosen.
#[derive(Debug)]
pub(crate) struct BoundQuery {
    pub node: Node,
    pub columns: Vec<ColumnMeta>,
    /// Rows expected.
    pub rows: f64,
}

/// A stored table that is read: identity, database, name.
pub type TableRead = (TableId, String, String);
