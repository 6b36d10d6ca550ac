//! Calls of aggregate functions.

use super::{Expr, walk};
use crate::types::DataType;

/// Which aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AggregateKind {
    /// COUNT(*).
    CountRows,
    /// COUNT(expr, …).
    Count,
    /// SUM.
    Sum,
    /// AVG.
    Avg,
    /// MIN.
    Min,
    /// MAX.
    Max,
    /// `GROUP_CONCAT`.
    GroupConcat,
    /// `STDDEV_POP`.
    StdPop,
    /// `STDDEV_SAMP`.
    StdSamp,
    /// `VAR_POP`.
    VarPop,
    /// `VAR_SAMP`.
    VarSamp,
    /// `BIT_AND`.
    BitAnd,
    /// `BIT_OR`.
    BitOr,
    /// `BIT_XOR`.
    BitXor,
    /// `JSON_ARRAYAGG`.
    JsonArray,
    /// `JSON_OBJECTAGG`.
    JsonObject,
    /// GROUPING: which of its arguments a row of ROLLUP sums over, the last one in the lowest bit.
    Grouping,
    /// The value of some row: `ANY_VALUE` and functionally dependent columns.
    First,
}

impl AggregateKind {
    /// Whether it works on the bits of numbers.
    pub(crate) fn is_bitwise(self) -> bool {
        use AggregateKind as A;
        matches!(self, A::BitAnd | A::BitOr | A::BitXor)
    }

    /// Whether it calculates with its argument as a number.
    pub(crate) fn calculates(self) -> bool {
        use AggregateKind as A;
        let deviates = matches!(self, A::StdPop | A::StdSamp | A::VarPop | A::VarSamp);
        deviates || self.is_bitwise() || matches!(self, A::Sum | A::Avg)
    }
}

/// An aggregate call.
#[derive(Debug, Clone)]
pub struct AggregateCall {
    /// Function.
    pub kind: AggregateKind,
    /// DISTINCT.
    pub distinct: bool,
    /// Arguments, over the wide row.
    pub arguments: Vec<Expr>,
    /// ORDER BY of `GROUP_CONCAT`; the bool is true for DESC.
    pub order: Vec<(Expr, bool)>,
    /// SEPARATOR of `GROUP_CONCAT`.
    pub separator: String,
    /// Result type.
    pub ty: DataType,
}

impl AggregateCall {
    /// Shows the expressions inside.
    pub fn for_each_expr(&self, each: &mut dyn FnMut(&Expr)) {
        self.arguments.iter().for_each(&mut *each);
        self.order.iter().for_each(|(expr, _)| each(expr));
    }

    /// As [`Self::for_each_expr`], to change them.
    pub fn for_each_expr_mut(&mut self, each: &mut dyn FnMut(&mut Expr)) {
        self.arguments.iter_mut().for_each(&mut *each);
        self.order.iter_mut().for_each(|(expr, _)| each(expr));
    }

    /// COUNT is never NULL, nor are the bit functions.
    #[must_use]
    pub fn nullable(&self) -> bool {
        !matches!(
            self.kind,
            AggregateKind::CountRows
                | AggregateKind::Count
                | AggregateKind::BitAnd
                | AggregateKind::BitOr
                | AggregateKind::BitXor
                | AggregateKind::Grouping
        )
    }

    /// The value of `expr` in some row of the group.
    #[must_use]
    pub fn first(expr: Expr) -> Self {
        Self {
            kind: AggregateKind::First,
            distinct: false,
            ty: expr.ty.clone(),
            arguments: vec![expr],
            order: Vec::new(),
            separator: String::new(),
        }
    }

    pub(crate) fn same(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.distinct == other.distinct
            && self.separator == other.separator
            && self.arguments.len() == other.arguments.len()
            && self.order.len() == other.order.len()
            && self
                .arguments
                .iter()
                .zip(&other.arguments)
                .all(|(a, b)| walk::same(a, b))
            && self
                .order
                .iter()
                .zip(&other.order)
                .all(|((a, d), (b, e))| d == e && walk::same(a, b))
    }
}
