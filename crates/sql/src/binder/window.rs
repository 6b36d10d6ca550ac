//! Window functions.

use sqlparser::ast;

use super::Binder;
use super::aggregate::{AggregateCall, AggregateKind, WINDOW_BASE, aggregate_kind, bigint};
use super::scope::{column_expr, same_name};
use super::window_name::{NamedWindow, inherit, undefined};
use crate::error::{SqlError, SqlResult};
use crate::expr::Expr;
use crate::planner::walk;
use crate::types::{DataType, common_type};

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
}

/// Whether the result of a window function is inside.
pub(super) fn reads_window(expr: &Expr) -> bool {
    let mut found = false;
    walk::references(expr, &mut |(depth, index)| {
        found |= depth == 0 && index >= WINDOW_BASE;
    });
    found
}

/// Casts `expr` to `ty` where it is of another type.
fn convert(expr: &mut Expr, ty: &DataType) -> SqlResult<()> {
    if expr.ty != *ty {
        *expr = Expr::cast(expr.clone(), ty.clone())?;
    }
    Ok(())
}

fn window_kind(name: &str) -> Option<WindowKind> {
    use WindowKind as W;
    Some(match name.to_ascii_uppercase().as_str() {
        "ROW_NUMBER" => W::RowNumber,
        "RANK" => W::Rank,
        "DENSE_RANK" => W::DenseRank,
        "PERCENT_RANK" => W::PercentRank,
        "CUME_DIST" => W::CumeDist,
        "NTILE" => W::Ntile,
        "LAG" => W::Lag,
        "LEAD" => W::Lead,
        "FIRST_VALUE" => W::FirstValue,
        "LAST_VALUE" => W::LastValue,
        "NTH_VALUE" => W::NthValue,
        _ => return None,
    })
}

impl Binder<'_> {
    /// Binds `f(…) OVER (…)`.
    pub(crate) fn bind_window(
        &mut self,
        name: &str,
        function: &ast::Function,
        over: &ast::WindowType,
    ) -> SqlResult<Expr> {
        let misplaced = || {
            SqlError::new(
                3593,
                "HY000",
                format!("You cannot use the window function '{name}' in this context.'"),
            )
        };
        let frame = self.frame()?;
        let has_rows = matches!(frame.place, "field list" | "order clause");
        if !has_rows || !frame.aggregates_allowed || frame.in_aggregate {
            return Err(misplaced());
        }
        let spec = self.window_spec(over)?;
        let mut call = self.window_call(name, function)?;
        for expr in &spec.partition_by {
            call.partition.push(self.bind_scalar(expr)?);
        }
        for key in &spec.order_by {
            let expr = self.bind_scalar(&key.expr)?;
            call.order.push((expr, super::order::descending(key)));
        }
        call.frame = self.window_frame(spec.window_frame.as_ref(), &call.order)?;
        let mut nested = false;
        call.for_each_expr(&mut |expr| nested |= reads_window(expr));
        if nested {
            return Err(misplaced());
        }
        let (ty, nullable) = (call.ty.clone(), call.nullable());
        let windows = &mut self.frame_mut()?.windows;
        windows.push(call);
        Ok(column_expr(WINDOW_BASE + windows.len() - 1, ty, nullable))
    }

    fn window_spec(&self, over: &ast::WindowType) -> SqlResult<ast::WindowSpec> {
        let find = |name: &ast::Ident| -> SqlResult<NamedWindow> {
            let named = &self.frame()?.named_windows;
            let found = named
                .iter()
                .find(|(known, _)| same_name(known, &name.value));
            found.cloned().ok_or_else(|| undefined(&name.value))
        };
        match over {
            ast::WindowType::NamedWindow(name) => find(name).map(|(_, spec)| spec),
            ast::WindowType::WindowSpec(spec) => match &spec.window_name {
                None => Ok(spec.clone()),
                Some(name) => inherit("<unnamed window>", spec, &find(name)?),
            },
        }
    }

    fn window_call(&mut self, name: &str, function: &ast::Function) -> SqlResult<WindowCall> {
        let frame = WindowFrame {
            rows: false,
            start: FrameBound::Unbounded,
            end: FrameBound::Current,
        };
        let mut call = WindowCall {
            kind: WindowKind::RowNumber,
            arguments: Vec::new(),
            partition: Vec::new(),
            order: Vec::new(),
            frame,
            ty: bigint(true),
        };
        if let Some(kind) = window_kind(name) {
            if matches!(&function.args, ast::FunctionArguments::List(l) if l.duplicate_treatment.is_some())
                || function.null_treatment == Some(ast::NullTreatment::IgnoreNulls)
            {
                return Err(SqlError::not_supported(function.to_string()));
            }
            call.arguments = self.function_arguments(function)?;
            call.kind = kind;
            call.ty = value_type(&call)?;
            if let [value, _, default] = call.arguments.as_mut_slice() {
                call.ty = common_type(&[&value.ty, &default.ty]);
                for argument in [value, default] {
                    convert(argument, &call.ty)?;
                }
            }
            return Ok(call);
        }
        let kind = aggregate_kind(name).filter(|kind| *kind != AggregateKind::Grouping);
        let Some(kind) = kind else {
            return Err(SqlError::not_supported(format!("{name} OVER")));
        };
        let aggregate = self.aggregate_call(kind, function)?;
        if aggregate.distinct || !aggregate.order.is_empty() {
            return Err(SqlError::not_supported("<window function>(DISTINCT ..)"));
        }
        call.ty = aggregate.ty.clone();
        call.kind = WindowKind::Aggregate(aggregate);
        Ok(call)
    }
}

impl WindowCall {
    fn nullable(&self) -> bool {
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

fn value_type(call: &WindowCall) -> SqlResult<DataType> {
    let count = call.arguments.len();
    let (ty, arity) = match call.kind {
        WindowKind::RowNumber | WindowKind::Rank | WindowKind::DenseRank => (bigint(true), 0..=0),
        WindowKind::PercentRank | WindowKind::CumeDist => (DataType::DOUBLE, 0..=0),
        WindowKind::Ntile => (bigint(true), 1..=1),
        WindowKind::Lag | WindowKind::Lead => (first_type(call), 1..=3),
        WindowKind::FirstValue | WindowKind::LastValue => (first_type(call), 1..=1),
        WindowKind::NthValue => (first_type(call), 2..=2),
        WindowKind::Aggregate(_) => (call.ty.clone(), 0..=usize::MAX),
    };
    if arity.contains(&count) {
        return Ok(ty);
    }
    Err(SqlError::new(
        1582,
        "42000",
        "Incorrect parameter count in the call to native window function",
    ))
}

fn first_type(call: &WindowCall) -> DataType {
    call.arguments
        .first()
        .map_or(DataType::Null, |argument| argument.ty.clone())
}
