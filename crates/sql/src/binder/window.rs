//! Window functions.

use sqlparser::ast;

use super::Binder;
use super::aggregate::{WINDOW_BASE, aggregate_kind};
use super::scope::{column_expr, same_name};
use super::window_name::{NamedWindow, inherit, undefined};
use crate::error::{SqlError, SqlResult};
use crate::plan::window::{FrameBound, WindowCall, WindowFrame, WindowKind};
use crate::plan::{AggregateKind, Expr, walk};
use crate::types::{DataType, common_type};

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
            ty: DataType::BIGINT_UNSIGNED,
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

fn value_type(call: &WindowCall) -> SqlResult<DataType> {
    let count = call.arguments.len();
    let (ty, arity) = match call.kind {
        WindowKind::RowNumber | WindowKind::Rank | WindowKind::DenseRank => {
            (DataType::BIGINT_UNSIGNED, 0..=0)
        }
        WindowKind::PercentRank | WindowKind::CumeDist => (DataType::DOUBLE, 0..=0),
        WindowKind::Ntile => (DataType::BIGINT_UNSIGNED, 1..=1),
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
