//! Aggregate calls and the rewriting of expressions over groups.

use sqlparser::ast;

use super::Binder;
use super::scope::{column_expr, seen_from};
use crate::error::{SqlError, SqlResult};
use crate::expr::functions;
use crate::plan::{AggregateCall, AggregateKind, Expr, ExprKind, walk};
use crate::types::{Collation, DataType, IntWidth, TextSize, Value};

/// Aggregates of the level being bound are columns from here on until the level is complete.
pub(crate) const CALL_BASE: usize = 1 << 24;
/// Window results likewise.
pub(crate) const WINDOW_BASE: usize = 1 << 25;

/// Arguments of GROUPING, each a bit of its result.
const GROUPING_ARGUMENTS_MAX: usize = 63;

/// The aggregate called `name`.
pub(crate) fn aggregate_kind(name: &str) -> Option<AggregateKind> {
    use AggregateKind as A;
    Some(match name.to_ascii_uppercase().as_str() {
        "COUNT" => A::Count,
        "SUM" => A::Sum,
        "AVG" => A::Avg,
        "MIN" => A::Min,
        "MAX" => A::Max,
        "GROUP_CONCAT" => A::GroupConcat,
        "STD" | "STDDEV" | "STDDEV_POP" => A::StdPop,
        "STDDEV_SAMP" => A::StdSamp,
        "VARIANCE" | "VAR_POP" => A::VarPop,
        "VAR_SAMP" => A::VarSamp,
        "BIT_AND" => A::BitAnd,
        "BIT_OR" => A::BitOr,
        "BIT_XOR" => A::BitXor,
        "JSON_ARRAYAGG" => A::JsonArray,
        "JSON_OBJECTAGG" => A::JsonObject,
        "GROUPING" => A::Grouping,
        "ANY_VALUE" => A::First,
        _ => return None,
    })
}

fn digits(ty: &DataType) -> Option<(u8, u8)> {
    match ty {
        DataType::Int {
            width, unsigned, ..
        } => Some((
            match width {
                IntWidth::Tiny => 3,
                IntWidth::Small => 5,
                IntWidth::Medium => 8,
                IntWidth::Int => 10,
                IntWidth::Big if *unsigned => 20,
                IntWidth::Big => 19,
            },
            0,
        )),
        DataType::Year => Some((4, 0)),
        DataType::Bit { .. } => Some(ty.precision_scale()),
        DataType::Decimal {
            precision, scale, ..
        } => Some((*precision, *scale)),
        DataType::Null => Some((1, 0)),
        DataType::Date => Some((8, 0)),
        DataType::Time { fsp } => Some((7 + fsp, *fsp)),
        DataType::DateTime { fsp } | DataType::Timestamp { fsp } => Some((14 + fsp, *fsp)),
        _ => None,
    }
}

/// The type an aggregate over `argument` has.
pub(crate) fn result_type(
    kind: AggregateKind,
    argument: Option<&Expr>,
    collation: Collation,
) -> DataType {
    use AggregateKind as A;
    let ty = argument.map_or(&DataType::Null, |a| &a.ty);
    let decimal = |more: u8, scale: u8| match digits(ty) {
        Some((p, s)) => DataType::Decimal {
            precision: (p + more).min(65),
            scale: (s + scale).min(30),
            sign: DataType::SIGNED,
        },
        None => DataType::double_with(ty.fraction_digits().map(|digits| digits + scale)),
    };
    match kind {
        A::CountRows | A::Count | A::Grouping => DataType::BIGINT,
        A::Sum => decimal(22, 0),
        A::Avg => decimal(4, 4),
        A::Min | A::Max => ty.clone().computed(),
        A::First => ty.clone(),
        A::GroupConcat => DataType::Text {
            size: TextSize::Normal,
            collation,
        },
        A::StdPop | A::StdSamp | A::VarPop | A::VarSamp => DataType::DOUBLE,
        A::BitAnd | A::BitOr | A::BitXor => DataType::BIGINT_UNSIGNED,
        A::JsonArray | A::JsonObject => DataType::Json,
    }
}

fn wrong_use() -> SqlError {
    SqlError::new(1111, "HY000", "Invalid use of group function")
}

impl Binder<'_> {
    /// Binds an aggregate call, which may belong to a query further out.
    pub(crate) fn bind_aggregate(
        &mut self,
        kind: AggregateKind,
        function: &ast::Function,
    ) -> SqlResult<Expr> {
        let value = kind == AggregateKind::First;
        if !value && !self.frames.iter().any(|frame| frame.aggregates_allowed) {
            return Err(wrong_use());
        }
        let was_inside = std::mem::replace(&mut self.frame_mut()?.in_aggregate, true);
        let call = self.aggregate_call(kind, function);
        self.frame_mut()?.in_aggregate = was_inside;
        let mut call = call?;
        let level = self.aggregate_level(&call);
        let Some((level, depth)) = level.filter(|(at, _)| !self.frames[*at].in_aggregate) else {
            return first_argument(call);
        };
        if depth > 0 {
            self.reach = self.reach.min(level);
            call.for_each_expr_mut(&mut |expr| {
                walk::remap(expr, &mut |(d, index)| (d - depth, index));
            });
        }
        let (ty, nullable) = (call.ty.clone(), call.nullable());
        let calls = &mut self.frames[level].calls;
        let index = calls
            .iter()
            .position(|known| known.same(&call))
            .unwrap_or_else(|| {
                calls.push(call);
                calls.len() - 1
            });
        let result = column_expr(CALL_BASE + index, ty, nullable);
        Ok(seen_from(&result, depth))
    }

    /// The frame of the query that `call` belongs to, and how many queries further out it is: the
    /// innermost query whose columns its arguments read, if aggregates are legal in the clause of
    /// that query which is being bound; otherwise the innermost one between that query and its own
    /// that allows it, and last its own. Without columns it belongs to its own query where that
    /// allows it. `None`: no query can have it.
    fn aggregate_level(&self, call: &AggregateCall) -> Option<(usize, usize)> {
        let (mut columns, mut results) = (usize::MAX, usize::MAX);
        call.for_each_expr(&mut |expr| {
            walk::references(expr, &mut |(depth, index)| {
                let least = if index < CALL_BASE {
                    &mut columns
                } else {
                    &mut results
                };
                *least = depth.min(*least);
            });
        });
        let allows = |depth: &usize| {
            let frame = self.frames.iter().rev().nth(*depth);
            frame.is_some_and(|frame| frame.aggregates_allowed)
        };
        let own = || allows(&0).then_some(0);
        let depth = match columns {
            usize::MAX if allows(&0) => Some(0),
            _ if allows(&columns) => Some(columns),
            _ if call.kind == AggregateKind::First => None,
            _ => (1..columns.min(self.frames.len()))
                .find(allows)
                .or_else(own),
        };
        // The groups that its arguments read are complete before its own: those of queries around.
        let depth = depth.filter(|depth| *depth < results)?;
        let level = self.frames.len().checked_sub(depth + 1)?;
        Some((level, depth))
    }

    pub(crate) fn aggregate_call(
        &mut self,
        kind: AggregateKind,
        function: &ast::Function,
    ) -> SqlResult<AggregateCall> {
        let ast::FunctionArguments::List(list) = &function.args else {
            return Err(SqlError::syntax(format!("near '{function}'")));
        };
        let mut call = AggregateCall {
            kind,
            distinct: list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct),
            arguments: Vec::new(),
            order: Vec::new(),
            separator: ",".to_string(),
            ty: DataType::Null,
        };
        for argument in &list.args {
            match argument {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard)
                    if kind == AggregateKind::Count =>
                {
                    call.kind = AggregateKind::CountRows;
                }
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => {
                    if let (AggregateKind::Count, ast::Expr::Tuple(items)) = (kind, expr) {
                        for item in items {
                            call.arguments.push(self.bind_scalar(item)?);
                        }
                    } else {
                        call.arguments.push(self.bind_scalar(expr)?);
                    }
                }
                _ => return Err(SqlError::syntax(format!("near '{function}'"))),
            }
        }
        for clause in &list.clauses {
            self.aggregate_clause(&mut call, clause)?;
        }
        if kind.is_bitwise() {
            let arguments = std::mem::take(&mut call.arguments);
            call.arguments = arguments.into_iter().map(Expr::member_number).collect();
        }
        if kind.calculates() {
            let arguments = std::mem::take(&mut call.arguments);
            call.arguments = arguments.into_iter().map(Expr::calculated).collect();
        }
        let shown = match kind {
            AggregateKind::GroupConcat => Some(functions::shown_as_declared as fn(Expr) -> Expr),
            AggregateKind::JsonArray | AggregateKind::JsonObject => {
                Some(functions::json_truth as fn(Expr) -> Expr)
            }
            _ => None,
        };
        if let Some(shown) = shown {
            let arguments = std::mem::take(&mut call.arguments);
            call.arguments = arguments.into_iter().map(shown).collect();
        }
        simplify_count(&mut call);
        check_arity(&call, function)?;
        call.ty = result_type(call.kind, call.arguments.first(), self.context.collation);
        Ok(call)
    }

    fn aggregate_clause(
        &mut self,
        call: &mut AggregateCall,
        clause: &ast::FunctionArgumentClause,
    ) -> SqlResult<()> {
        match clause {
            ast::FunctionArgumentClause::OrderBy(keys) => {
                for key in keys {
                    let position = super::order::position(&key.expr);
                    let expr = match position.and_then(|p| p.checked_sub(1)) {
                        Some(p) if p < call.arguments.len() => call.arguments[p].clone(),
                        _ => self.bind_scalar(&key.expr)?,
                    };
                    call.order.push((expr, super::order::descending(key)));
                }
                Ok(())
            }
            ast::FunctionArgumentClause::Separator(value) => {
                call.separator = value.value.clone().into_string().unwrap_or_default();
                Ok(())
            }
            other => Err(SqlError::not_supported(other.to_string())),
        }
    }
}

/// `ANY_VALUE` where there are no groups to take a value of; 1111 for other aggregates.
fn first_argument(call: AggregateCall) -> SqlResult<Expr> {
    let is_value = call.kind == AggregateKind::First;
    let mut arguments = call.arguments.into_iter().filter(|_| is_value);
    arguments.next().ok_or_else(wrong_use)
}

/// COUNT(1) and COUNT of a NOT NULL literal count rows.
fn simplify_count(call: &mut AggregateCall) {
    if call.kind != AggregateKind::Count || call.distinct || call.arguments.len() != 1 {
        return;
    }
    if matches!(&call.arguments[0].kind, ExprKind::Literal(value) if *value != Value::Null) {
        call.kind = AggregateKind::CountRows;
        call.arguments.clear();
    }
}

/// GROUPING is asked of keys, and where some rows sum over them.
///
/// # Errors
/// 1111 without ROLLUP, 3592 for what is no key.
pub(super) fn check_grouping(
    calls: &[AggregateCall],
    keys: &[Expr],
    rollup: bool,
) -> SqlResult<()> {
    for call in calls.iter().filter(|c| c.kind == AggregateKind::Grouping) {
        if !rollup {
            return Err(wrong_use());
        }
        let is_key = |argument: &Expr| keys.iter().any(|key| walk::same(key, argument));
        if let Some(at) = call.arguments.iter().position(|a| !is_key(a)) {
            let message = format!("Argument #{at} of GROUPING function is not in GROUP BY");
            return Err(SqlError::new(3592, "HY000", message));
        }
    }
    Ok(())
}

fn check_arity(call: &AggregateCall, function: &ast::Function) -> SqlResult<()> {
    let count = call.arguments.len();
    let fits = match call.kind {
        AggregateKind::CountRows => count == 0,
        AggregateKind::GroupConcat => count >= 1,
        AggregateKind::Count => count == 1 || (count > 1 && call.distinct),
        AggregateKind::JsonObject => count == 2,
        AggregateKind::Grouping => (1..=GROUPING_ARGUMENTS_MAX).contains(&count),
        _ => count == 1,
    };
    if fits {
        return Ok(());
    }
    Err(SqlError::new(
        1582,
        "42000",
        format!(
            "Incorrect parameter count in the call to native function '{}'",
            function.name
        ),
    ))
}
