//! Bound expressions: every name resolved, every type known; and the built-in [`functions`] they call.

mod arithmetic;
mod assign;
#[cfg(test)]
mod assign_tests;
mod build;
mod context;
mod describe;
mod eval;
pub mod functions;
mod matching;
mod members;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;
mod walk;

pub use arithmetic::binary_values;
pub use assign::{assign, cast};
pub use build::result_collation;
pub use context::{EvalContext, SessionInfo, Subqueries, Warning, WarningLevel};
pub use eval::{Held, compare_values};
pub use matching::{compiled as compiled_regex, like_prefix, like_text};
pub use members::{ConstantLists, RowSet};

use std::sync::Arc;

use crate::planner::Plan;
use crate::types::{Collation, DataType, Value};
use functions::ScalarFunction;

/// A bound expression with its type.
#[derive(Debug, Clone)]
pub struct Expr {
    /// What it computes.
    pub kind: ExprKind,
    /// Its type. For text types the collation in it is the one comparisons use.
    pub ty: DataType,
    /// Whether it may be NULL.
    pub nullable: bool,
}

/// Comparison operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompareOp {
    /// `=`
    Eq,
    /// `<>`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `<=>`
    NullSafeEq,
}

/// Arithmetic and bit operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `DIV`
    IntDiv,
    /// `%`
    Mod,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
}

/// The shapes of expressions.
#[derive(Debug, Clone)]
pub enum ExprKind {
    /// A constant.
    Literal(Value),
    /// The n-th `?`, from 0.
    Param(usize),
    /// A column of the current row.
    Column(usize),
    /// A column of an enclosing query's row: `depth` 1 is the next one out.
    Outer {
        /// How many queries out, from 1.
        depth: usize,
        /// Position in that query's row.
        index: usize,
    },
    /// `@name`.
    UserVariable(String),
    /// `@@name`, resolved when evaluated; true for `@@global.`.
    SystemVariable(String, bool),
    /// `@name := expr`.
    AssignUserVariable(String, Box<Expr>),
    /// Comparison under `collation` when both sides are text.
    Compare(CompareOp, Box<Expr>, Box<Expr>, Collation),
    /// Arithmetic.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// Unary minus.
    Negate(Box<Expr>),
    /// `~`
    BitNot(Box<Expr>),
    /// AND, three-valued, short-circuit.
    And(Box<Expr>, Box<Expr>),
    /// OR.
    Or(Box<Expr>, Box<Expr>),
    /// XOR.
    Xor(Box<Expr>, Box<Expr>),
    /// NOT.
    Not(Box<Expr>),
    /// IS NULL.
    IsNull(Box<Expr>),
    /// IS TRUE / IS FALSE (the bool); never NULL.
    IsBool(Box<Expr>, bool),
    /// LIKE with an escape character.
    Like {
        /// Text.
        value: Box<Expr>,
        /// Pattern.
        pattern: Box<Expr>,
        /// Escape, default `\`.
        escape: Option<char>,
        /// Case rules.
        collation: Collation,
    },
    /// REGEXP.
    Regexp {
        /// Text.
        value: Box<Expr>,
        /// Pattern.
        pattern: Box<Expr>,
        /// Case rules.
        collation: Collation,
    },
    /// `x IN (a, b, …)`.
    InList {
        /// Left side.
        value: Box<Expr>,
        /// Candidates. Shared, so that what is learned of them can be kept by their address.
        list: Arc<Vec<Expr>>,
        /// Case rules.
        collation: Collation,
    },
    /// `(a, b) = (c, d)` and IN over rows are bound to AND/OR of scalars; row constructors do not exist at run time.
    /// CASE WHEN … (the simple form is bound to comparisons).
    Case {
        /// `(condition, result)`.
        whens: Vec<(Expr, Expr)>,
        /// ELSE.
        otherwise: Option<Box<Expr>>,
    },
    /// CAST and CONVERT: to `Expr::ty`.
    Cast(Box<Expr>),
    /// A scalar function.
    Call(&'static ScalarFunction, Vec<Expr>),
    /// `(SELECT …)` of one column, at most one row. `correlated`: depends on outer rows.
    ScalarSubquery(Box<Plan>),
    /// `EXISTS (SELECT …)`.
    Exists(Box<Plan>),
    /// `x IN (SELECT …)`; several columns for row IN.
    InSubquery {
        /// Left side, one expression a column.
        values: Vec<Expr>,
        /// The query.
        plan: Box<Plan>,
        /// Case rules, one a column.
        collations: Vec<Collation>,
    },
    /// `x op ANY|ALL (SELECT …)`; the bool is true for ALL.
    Quantified {
        /// Operator.
        op: CompareOp,
        /// Left side.
        value: Box<Expr>,
        /// The query.
        plan: Box<Plan>,
        /// ALL.
        all: bool,
        /// Case rules.
        collation: Collation,
    },
}

impl Expr {
    /// A constant of type `ty`.
    #[must_use]
    pub fn literal(value: Value, ty: DataType) -> Self {
        let nullable = value.is_null();
        Self {
            kind: ExprKind::Literal(value),
            ty,
            nullable,
        }
    }
}
