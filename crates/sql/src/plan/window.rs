//! Calls of window functions, and the frames they see.

use super::{AggregateCall, Expr};
use crate::error::SqlError;
use crate::types::DataType;

/// What MySQL calls a window without a name, as all are whose frames we check.
pub(crate) const UNNAMED_WINDOW: &str = "<unnamed window>";

/// Which window function.
#[derive(Debug, Clone)]
pub enum WindowKind {
    /// `ROW_NUMBER`.
    RowNumber,
    /// RANK.
    Rank,
    /// `DENSE_RANK`.
    DenseRank,
    /// `PERCENT_RANK`.
    PercentRank,
    /// `CUME_DIST`.
    CumeDist,
    /// NTILE(n).
    Ntile,
    /// LAG: value, offset, default.
    Lag,
    /// LEAD.
    Lead,
    /// `FIRST_VALUE`.
    FirstValue,
    /// `LAST_VALUE`.
    LastValue,
    /// `NTH_VALUE`.
    NthValue,
    /// An aggregate over the frame.
    Aggregate(AggregateCall),
}

/// A bound of a frame.
#[derive(Debug, Clone)]
pub enum FrameBound {
    /// UNBOUNDED PRECEDING or FOLLOWING.
    Unbounded,
    /// CURRENT ROW.
    Current,
    /// `n PRECEDING`, in rows.
    Preceding(Expr),
    /// `n FOLLOWING`, in rows.
    Following(Expr),
    /// A distance in values of the one ORDER BY expression.
    Range(Box<RangeBound>),
}

/// Where a frame of RANGE with a distance ends.
#[derive(Debug, Clone)]
pub struct RangeBound {
    /// The distance as written, which must be neither NULL nor negative.
    pub distance: Expr,
    /// The current row's ORDER BY value, moved by the distance.
    pub limit: Expr,
}

/// The rows an aggregate sees.
#[derive(Debug, Clone)]
pub struct WindowFrame {
    /// ROWS; otherwise RANGE, where peers belong together.
    pub rows: bool,
    /// First row.
    pub start: FrameBound,
    /// Last row.
    pub end: FrameBound,
}

/// A window function call.
#[derive(Debug, Clone)]
pub struct WindowCall {
    /// Function.
    pub kind: WindowKind,
    /// Arguments of non-aggregates.
    pub arguments: Vec<Expr>,
    /// PARTITION BY.
    pub partition: Vec<Expr>,
    /// ORDER BY; true for DESC.
    pub order: Vec<(Expr, bool)>,
    /// Frame.
    pub frame: WindowFrame,
    /// Result type.
    pub ty: DataType,
}

impl WindowCall {
    /// Shows the expressions inside.
    pub fn for_each_expr(&self, each: &mut dyn FnMut(&Expr)) {
        if let WindowKind::Aggregate(call) = &self.kind {
            call.for_each_expr(each);
        }
        self.arguments.iter().for_each(&mut *each);
        self.partition.iter().for_each(&mut *each);
        self.order.iter().for_each(|(expr, _)| each(expr));
        for bound in [&self.frame.start, &self.frame.end] {
            match bound {
                FrameBound::Preceding(expr) | FrameBound::Following(expr) => each(expr),
                FrameBound::Range(range) => {
                    each(&range.distance);
                    each(&range.limit);
                }
                FrameBound::Unbounded | FrameBound::Current => {}
            }
        }
    }

    /// As [`Self::for_each_expr`], to change them.
    pub fn for_each_expr_mut(&mut self, each: &mut dyn FnMut(&mut Expr)) {
        if let WindowKind::Aggregate(call) = &mut self.kind {
            call.for_each_expr_mut(each);
        }
        self.arguments.iter_mut().for_each(&mut *each);
        self.partition.iter_mut().for_each(&mut *each);
        self.order.iter_mut().for_each(|(expr, _)| each(expr));
        for bound in [&mut self.frame.start, &mut self.frame.end] {
            match bound {
                FrameBound::Preceding(expr) | FrameBound::Following(expr) => each(expr),
                FrameBound::Range(range) => {
                    each(&mut range.distance);
                    each(&mut range.limit);
                }
                FrameBound::Unbounded | FrameBound::Current => {}
            }
        }
    }

    /// Whether the result may be NULL.
    pub(crate) fn nullable(&self) -> bool {
        match &self.kind {
            WindowKind::Aggregate(call) => call.nullable(),
            WindowKind::RowNumber
            | WindowKind::Rank
            | WindowKind::DenseRank
            | WindowKind::PercentRank
            | WindowKind::CumeDist => false,
            _ => true,
        }
    }
}

/// 3586: a bound of a frame that no rows are at.
pub(crate) fn illegal_distance() -> SqlError {
    let message = format!(
        "Window '{UNNAMED_WINDOW}': frame start or end is negative, NULL or of non-integral type"
    );
    SqlError::new(3586, "HY000", message)
}
