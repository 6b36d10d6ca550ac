//! The operators of a plan. Rows below a [`Node::From`] are *wide*: every table of the FROM
//! clause owns a fixed range of slots, filled by whichever operator reads that table, NULL
//! before. So join order never renumbers columns. Above it rows are what the operator says.

use std::ops::Range;
use std::sync::Arc;

pub use super::json_table::{JsonColumn, JsonColumnKind, JsonFallback, JsonRows, JsonTable};
use super::logical::Joined;
use super::window::WindowCall;
use super::{AggregateCall, Expr, HeldView, walk};
use crate::catalog::{Column, Table};
use crate::types::{Collation, DataType, Value};

/// An operator with its inputs.
#[derive(Debug, Clone)]
pub enum Node {
    /// One row as the base has it: SELECT without FROM.
    Single,
    /// Rows of expressions.
    Values(Vec<Vec<Expr>>),
    /// Starts a wide row of `width` NULLs for everything below.
    From {
        /// Slots of the FROM clause.
        width: usize,
        /// The tables.
        input: Box<Node>,
        /// For a view: the tables before their order was chosen.
        joined: Option<Arc<Joined>>,
    },
    /// A stored table.
    Scan(Box<Scan>),
    /// A computed table.
    Virtual(Box<Virtual>),
    /// A subquery in FROM; its rows are kept when it is read again.
    Derived(Box<Derived>),
    /// A LATERAL subquery: its rows for the row it is opened over.
    Lateral(Box<Lateral>),
    /// JSON_TABLE: the only operator of a LATERAL subquery.
    JsonTable(Box<JsonTable>),
    /// The rows so far of the recursive CTE being computed, or all of a finished CTE.
    CteScan(Box<CteScan>),
    /// Keeps rows for which all hold.
    Filter {
        /// Rows.
        input: Box<Node>,
        /// Conditions.
        predicates: Vec<Expr>,
    },
    /// A join.
    Join(Box<Join>),
    /// Groups: rows become `keys ‖ aggregates`.
    Aggregate(Box<Aggregate>),
    /// Appends window function results to each row.
    Window(Box<Window>),
    /// Computes a row from a row.
    Project {
        /// Rows.
        input: Box<Node>,
        /// One expression a column.
        expressions: Vec<Expr>,
    },
    /// First of equal rows, compared on the first columns.
    Distinct {
        /// Rows.
        input: Box<Node>,
        /// Collation of each compared column.
        collations: Vec<Collation>,
        /// The order of the rows is relied on.
        keeps_order: bool,
    },
    /// Orders rows; with a limit keeps the first ones only.
    Sort {
        /// Rows.
        input: Box<Node>,
        /// By what.
        keys: Vec<SortKey>,
        /// Rows needed: limit plus offset.
        limit: Option<Limit>,
    },
    /// Skips and stops.
    Limit {
        /// Rows.
        input: Box<Node>,
        /// How many.
        limit: Limit,
    },
    /// Drops columns behind the first `width`.
    Cut {
        /// Rows.
        input: Box<Node>,
        /// Columns kept.
        width: usize,
    },
    /// UNION, EXCEPT, INTERSECT.
    SetOperation(Box<SetOperation>),
    /// Computes a recursive CTE to its fixpoint.
    Recursive(Box<Recursive>),
    /// The answer of a materialized view, or of the base plan. Always the root.
    View(Box<ViewLookup>),
    /// In a [`ViewLookup::tail`]: what the view holds under the key.
    ViewRows,
    /// In a delta of a view: a scan of the state before the commit.
    Before(Box<Node>),
}

/// LIMIT and OFFSET, evaluated when the plan runs.
#[derive(Debug, Clone)]
pub struct Limit {
    /// Rows to give; `None`: all.
    pub count: Option<Expr>,
    /// Rows to skip.
    pub offset: Option<Expr>,
}

/// One column to sort by.
#[derive(Debug, Clone)]
pub struct SortKey {
    /// Position in the row.
    pub column: usize,
    /// DESC.
    pub descending: bool,
    /// Type, which names the collation and makes ENUM sort by place.
    pub ty: DataType,
}

impl SortKey {
    /// Sorts by an expression: by the column that has it, or by one that rides along from here on.
    pub fn of(expr: Expr, descending: bool, columns: &mut Vec<Expr>) -> Self {
        let ty = expr.ty.clone();
        let known = columns.iter().position(|known| walk::same(known, &expr));
        let column = known.unwrap_or_else(|| {
            columns.push(expr);
            columns.len() - 1
        });
        Self {
            column,
            descending,
            ty,
        }
    }
}

/// How a stored table is read.
#[derive(Debug, Clone)]
pub struct Scan {
    /// The table.
    pub table: Arc<Table>,
    /// Its name in this query.
    pub alias: String,
    /// Its slots in the wide row.
    pub slots: Range<usize>,
    /// Columns to decode.
    pub wanted: Vec<bool>,
    /// Slot for the row key suffix, for UPDATE and DELETE.
    pub key_slot: Option<usize>,
    /// Way in.
    pub access: Access,
    /// Other ways in, each a single range: the one with the fewest entries is taken when the
    /// query runs. The order of rows is nobody's concern then.
    pub alternatives: Vec<Access>,
    /// Conditions on the wide row, all of them needed.
    pub predicates: Vec<Expr>,
    /// Rows expected to be read, and locked by a statement that locks; for EXPLAIN.
    pub reads: f64,
    /// Rows of those that the conditions are expected to leave; for EXPLAIN.
    pub estimate: f64,
    /// Indexes that could have been used, for EXPLAIN.
    pub possible: Vec<String>,
    /// Keys that could have been used for a range or an order if they were not blinded, for EXPLAIN.
    pub blinded: Vec<String>,
}

/// A way into a table. Bounds may admit too many rows, never too few: predicates decide.
#[derive(Debug, Clone)]
pub struct Access {
    /// Position in `Table::indexes`; `None` is the row store.
    pub index: Option<usize>,
    /// Bounds on the leading key columns.
    pub parts: Vec<KeyPart>,
    /// All columns of a unique key are bound by equality: at most one row a value.
    pub unique: bool,
    /// From the end of the key range.
    pub reverse: bool,
    /// The entries of the index hold all that is needed of a row.
    pub covers: bool,
}

/// Bound on one key column.
#[derive(Debug, Clone)]
pub enum KeyPart {
    /// Equal to one of these.
    Points {
        /// Candidates.
        values: Vec<Expr>,
        /// NULL is a value here (`<=>`, IS NULL), otherwise it matches nothing.
        null_matches: bool,
        /// The n-th value goes with the n-th of that part, which stands before this one, as in
        /// the rows of `(a, b) IN ((1, 2), (3, 4))`; `None`: each goes with each.
        tied: Option<usize>,
    },
    /// Between, both ends included. Always the last part.
    Span {
        /// At least.
        low: Option<Expr>,
        /// At most.
        high: Option<Expr>,
    },
}

/// A computed table.
#[derive(Debug, Clone)]
pub struct Virtual {
    /// Shape.
    pub table: Arc<Table>,
    /// Its name in this query.
    pub alias: String,
    /// Slots.
    pub slots: Range<usize>,
    /// Conditions.
    pub predicates: Vec<Expr>,
}

/// A subquery in FROM.
#[derive(Debug, Clone)]
pub struct Derived {
    /// Its plan.
    pub node: Node,
    /// Its name in this query.
    pub alias: String,
    /// Slots.
    pub slots: Range<usize>,
    /// Conditions on the wide row.
    pub predicates: Vec<Expr>,
    /// The rows may be asked for again and are kept.
    pub keep: bool,
}

/// A LATERAL subquery.
#[derive(Debug, Clone)]
pub struct Lateral {
    /// A subquery expression over the wide row.
    pub query: Expr,
    /// Its name in this query.
    pub alias: String,
    /// Slots.
    pub slots: Range<usize>,
    /// Conditions on the wide row.
    pub predicates: Vec<Expr>,
}

/// A reference to a common table expression that is computed once.
#[derive(Debug, Clone)]
pub struct CteScan {
    /// Which recursive CTE.
    pub id: usize,
    /// Its name in this query.
    pub alias: String,
    /// Slots.
    pub slots: Range<usize>,
    /// Conditions on the wide row.
    pub predicates: Vec<Expr>,
}

/// Under which [`CteScan::id`] the delta of a view reads the changed rows.
pub(crate) const CHANGED: usize = usize::MAX;

/// What a join keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// Pairs.
    Inner,
    /// Pairs, and left rows without partner.
    Left,
    /// Left rows with a partner.
    Semi,
    /// Left rows without a partner.
    Anti,
}

/// A join of wide rows: the right side runs over each left row, or is hashed once.
#[derive(Debug, Clone)]
pub struct Join {
    /// What is kept.
    pub kind: JoinKind,
    /// Driving side.
    pub left: Node,
    /// Other side.
    pub right: Node,
    /// Slots the right side fills.
    pub right_slots: Range<usize>,
    /// The order of the left rows is that of the result, which something above relies on.
    pub keeps_order: bool,
    /// `None`: the right side is opened over every left row and checks everything itself.
    pub hash: Option<HashKeys>,
}

/// Equalities of a hash join; none of them at all makes one bucket.
#[derive(Debug, Clone)]
pub struct HashKeys {
    /// `(left, right, collation)`.
    pub pairs: Vec<(Expr, Expr, Collation)>,
    /// What else a pair must satisfy.
    pub residual: Vec<Expr>,
}

/// Grouping.
#[derive(Debug, Clone)]
pub struct Aggregate {
    /// Rows.
    pub input: Node,
    /// GROUP BY.
    pub keys: Vec<Expr>,
    /// Calls, each a column behind the keys.
    pub calls: Vec<AggregateCall>,
    /// WITH ROLLUP.
    pub rollup: bool,
    /// Without GROUP BY there is exactly one group, also of no rows.
    pub global: bool,
}

/// Window functions that share nothing but the operator.
#[derive(Debug, Clone)]
pub struct Window {
    /// Rows.
    pub input: Node,
    /// Calls, each a column behind the input's.
    pub calls: Vec<WindowCall>,
}

/// A set operation between two inputs of equal width.
#[derive(Debug, Clone)]
pub struct SetOperation {
    /// Left.
    pub left: Node,
    /// Right.
    pub right: Node,
    /// Which.
    pub op: SetOp,
    /// Keep duplicates.
    pub all: bool,
    /// Collation of each column.
    pub collations: Vec<Collation>,
}

/// Set operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetOp {
    /// UNION.
    Union,
    /// EXCEPT.
    Except,
    /// INTERSECT.
    Intersect,
}

/// `WITH RECURSIVE`.
#[derive(Debug, Clone)]
pub struct Recursive {
    /// Identity, which [`CteScan`] names.
    pub id: usize,
    /// First rows.
    pub anchor: Node,
    /// Rows from the rows of the round before.
    pub step: Node,
    /// UNION DISTINCT.
    pub distinct: bool,
    /// Collation of each column.
    pub collations: Vec<Collation>,
    /// The columns, whose types are those of the first rows.
    pub columns: Vec<Column>,
    /// Types of what the step gives, to be stored in the columns.
    pub step_types: Vec<DataType>,
}

/// A query that a materialized view may answer.
#[derive(Debug, Clone)]
pub struct ViewLookup {
    /// The view.
    pub view: Arc<dyn HeldView>,
    /// For each column of the key, the values that are asked for: one, or those of IN.
    pub keys: Vec<Vec<Expr>>,
    /// Parameters that must have these values for the view to be the one.
    pub guards: Vec<(usize, Value)>,
    /// Where the view holds only so many first rows of a key: the LIMIT that must not go beyond.
    pub first: Option<(Limit, usize)>,
    /// Gives the rows of a key, whose parameters stand for the key's columns: planned with the query, as
    /// the tables may be others in size than when the view was made.
    pub fill: Node,
    /// The parameter of `fill` that stands for each column of the key.
    pub key_params: Vec<usize>,
    /// What is left to do with what the view holds: [`Node::ViewRows`] stands in it.
    pub tail: Node,
    /// The plan without the view.
    pub base: Node,
}
