//! Bound expressions: every name resolved, every type known.

use std::sync::Arc;

use super::Plan;
use crate::types::{Collation, DataType, Value};

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
    /// A built-in function.
    Call(FunctionId, Vec<Expr>),
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

/// A built-in function as expressions name it: [`crate::expr::functions`] has its type rule and body.
#[derive(Clone, Copy)]
pub struct FunctionId {
    /// Upper-case name.
    pub name: &'static str,
    /// Same arguments, same answer, within a statement: may be computed once and cached.
    pub deterministic: bool,
    /// As `deterministic`, or of what is one thing for a whole statement and another for the next: the time,
    /// the session.
    pub(crate) steady: bool,
    /// Where it stands among all functions.
    pub(crate) place: usize,
}

impl FunctionId {
    /// Whether a call with so many arguments has one answer for a whole statement, and may so be
    /// evaluated once instead of row by row.
    #[must_use]
    pub fn is_steady(&self, arguments: usize) -> bool {
        // LAST_INSERT_ID(n) sets what LAST_INSERT_ID() tells.
        self.steady && (arguments == 0 || self.name != "LAST_INSERT_ID")
    }
}

impl std::fmt::Debug for FunctionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl ExprKind {
    /// Computes a truth value: comparisons, AND, LIKE, EXISTS and their kin.
    #[must_use]
    pub fn is_predicate(&self) -> bool {
        matches!(
            self,
            ExprKind::Compare(..)
                | ExprKind::And(..)
                | ExprKind::Or(..)
                | ExprKind::Xor(..)
                | ExprKind::Not(_)
                | ExprKind::IsNull(_)
                | ExprKind::IsBool(..)
                | ExprKind::Like { .. }
                | ExprKind::Regexp { .. }
                | ExprKind::InList { .. }
                | ExprKind::Exists(_)
                | ExprKind::InSubquery { .. }
                | ExprKind::Quantified { .. }
        )
    }
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

    /// Direct operands; sub-plans are not entered.
    #[must_use]
    pub fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            ExprKind::Literal(_)
            | ExprKind::Param(_)
            | ExprKind::Column(_)
            | ExprKind::Outer { .. }
            | ExprKind::UserVariable(_)
            | ExprKind::SystemVariable(..)
            | ExprKind::ScalarSubquery(_)
            | ExprKind::Exists(_) => Vec::new(),
            ExprKind::AssignUserVariable(_, a)
            | ExprKind::Negate(a)
            | ExprKind::BitNot(a)
            | ExprKind::Not(a)
            | ExprKind::IsNull(a)
            | ExprKind::IsBool(a, _)
            | ExprKind::Cast(a)
            | ExprKind::Quantified { value: a, .. } => vec![a],
            ExprKind::Compare(_, a, b, _)
            | ExprKind::Binary(_, a, b)
            | ExprKind::And(a, b)
            | ExprKind::Or(a, b)
            | ExprKind::Xor(a, b) => vec![a, b],
            ExprKind::Like { value, pattern, .. } | ExprKind::Regexp { value, pattern, .. } => {
                vec![value, pattern]
            }
            ExprKind::InList { value, list, .. } => {
                std::iter::once(value.as_ref()).chain(list.iter()).collect()
            }
            ExprKind::Case { whens, otherwise } => whens
                .iter()
                .flat_map(|(when, result)| [when, result])
                .chain(otherwise.as_deref())
                .collect(),
            ExprKind::Call(_, args) => args.iter().collect(),
            ExprKind::InSubquery { values, .. } => values.iter().collect(),
        }
    }

    /// Whether `test` holds for this expression or anything in it (sub-plans are not entered).
    pub fn any(&self, test: &mut dyn FnMut(&Expr) -> bool) -> bool {
        test(self) || self.children().into_iter().any(|child| child.any(test))
    }

    /// Whether the value depends on nothing: no row, parameter, session or subquery.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        let own = match &self.kind {
            ExprKind::Param(_)
            | ExprKind::Column(_)
            | ExprKind::Outer { .. }
            | ExprKind::UserVariable(_)
            | ExprKind::SystemVariable(..)
            | ExprKind::AssignUserVariable(..)
            | ExprKind::ScalarSubquery(_)
            | ExprKind::Exists(_)
            | ExprKind::InSubquery { .. }
            | ExprKind::Quantified { .. } => false,
            ExprKind::Call(function, _) => function.deterministic,
            _ => true,
        };
        own && self.children().into_iter().all(Expr::is_constant)
    }
}
