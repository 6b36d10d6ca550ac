//! Evaluation. Every row of every statement comes through here, so columns, parameters and
//! literals are lent, not copied.

mod call;
mod cast;
mod compare;
mod condition;
mod subquery;

pub use compare::compare_values;

use std::borrow::Cow;

use super::EvalContext;
use super::arithmetic::{binary, negate, quotient};
use super::build::DIV_INCREMENT;
use crate::error::{SqlError, SqlResult};
use crate::plan::{BinaryOp, Expr, ExprKind};
use crate::types::{DataType, MAX_DECIMAL_SCALE, Value, round_decimal};
use cast::cast_typed;
use subquery::scalar_subquery;

/// A lent or computed value.
pub type Held<'a> = Cow<'a, Value>;

impl Expr {
    /// The value for `row`; `outer` are the rows of enclosing queries, innermost first.
    ///
    /// # Errors
    /// 1690 out of range, 1242 a subquery with several rows, and what functions raise.
    pub fn eval(
        &self,
        ctx: &EvalContext<'_>,
        row: &[Value],
        outer: &[&[Value]],
    ) -> SqlResult<Value> {
        self.eval_ref(ctx, row, outer).map(Cow::into_owned)
    }

    /// As [`Expr::eval`], lending what is there already.
    ///
    /// # Errors
    /// As [`Expr::eval`].
    pub fn eval_ref<'a>(
        &'a self,
        ctx: &EvalContext<'a>,
        row: &'a [Value],
        outer: &[&'a [Value]],
    ) -> SqlResult<Held<'a>> {
        match &self.kind {
            ExprKind::Column(index) => row
                .get(*index)
                .map(Cow::Borrowed)
                .ok_or_else(|| missing("column", *index)),
            ExprKind::Literal(value) => Ok(Cow::Borrowed(value)),
            ExprKind::Param(index) => ctx
                .params
                .get(*index)
                .map(Cow::Borrowed)
                .ok_or_else(|| missing("parameter", *index)),
            ExprKind::Outer { depth, index } => {
                let outer_row = depth.checked_sub(1).and_then(|depth| outer.get(depth));
                outer_row
                    .and_then(|row| row.get(*index))
                    .map(Cow::Borrowed)
                    .ok_or_else(|| missing("outer column", *index))
            }
            _ => self.compute(ctx, row, outer).map(Cow::Owned),
        }
    }

    /// The value for something that calculates on: a quotient keeps digits beyond those it
    /// shows, so that `2 / 3 * 3` is 2 and not 2.0001.
    ///
    /// # Errors
    /// As [`Expr::eval`].
    pub fn eval_unrounded<'a>(
        &'a self,
        ctx: &EvalContext<'a>,
        row: &'a [Value],
        outer: &[&'a [Value]],
    ) -> SqlResult<Held<'a>> {
        let (ExprKind::Binary(op, a, b), DataType::Decimal { .. }) = (&self.kind, &self.ty) else {
            return self.eval_ref(ctx, row, outer);
        };
        let left = a.eval_unrounded(ctx, row, outer)?;
        let right = b.eval_unrounded(ctx, row, outer)?;
        let value = if *op == BinaryOp::Div {
            quotient(ctx, &left, &right)
        } else {
            binary(ctx, *op, &left, &right, &self.ty, &|| self.describe())
        };
        value.map(Cow::Owned)
    }

    /// Whether values of this have digits beyond the declared ones: quotients do, and times,
    /// which are kept in microseconds.
    fn brings_digits(&self) -> bool {
        match &self.kind {
            ExprKind::Binary(BinaryOp::Div, ..) => true,
            ExprKind::Binary(_, a, b) => a.brings_digits() || b.brings_digits(),
            _ => self.ty.fsp() > 0,
        }
    }

    /// `value` of an operation with operands `a` and `b`, at the declared scale.
    fn at_declared_scale(&self, ctx: &EvalContext<'_>, value: Value, a: &Expr, b: &Expr) -> Value {
        match (value, &self.ty) {
            (Value::Decimal(decimal), DataType::Decimal { scale, .. })
                if a.brings_digits() || b.brings_digits() =>
            {
                // Scales are declared for the default of `div_precision_increment`.
                let more = i64::from(ctx.div_precision_increment) - i64::from(DIV_INCREMENT);
                let scale = (i64::from(*scale) + more.max(0)).min(i64::from(MAX_DECIMAL_SCALE));
                Value::decimal(round_decimal(&decimal, scale))
            }
            (value, _) => value,
        }
    }

    /// The value of everything that is not lent.
    fn compute(
        &self,
        ctx: &EvalContext<'_>,
        row: &[Value],
        outer: &[&[Value]],
    ) -> SqlResult<Value> {
        match &self.kind {
            ExprKind::UserVariable(name) => Ok(ctx.session.user_variable(name)),
            ExprKind::SystemVariable(name, global) => ctx.session.system_variable(name, *global),
            ExprKind::AssignUserVariable(name, value) => {
                let value = value.eval(ctx, row, outer)?;
                ctx.session.set_user_variable(name, value.clone());
                Ok(value)
            }
            ExprKind::Binary(op, a, b) => self.arithmetic(ctx, row, outer, *op, [a, b]),
            ExprKind::Negate(a) => {
                let value = a.eval_ref(ctx, row, outer)?;
                negate(ctx, &value, &self.ty, &|| self.describe())
            }
            ExprKind::BitNot(a) => {
                let value = a.eval_ref(ctx, row, outer)?;
                Ok(value
                    .to_bits()
                    .map_or(Value::Null, |bits| Value::UInt(!bits)))
            }
            ExprKind::Case { whens, otherwise } => {
                for (when, result) in whens {
                    if when.eval_bool(ctx, row, outer)? == Some(true) {
                        return result.eval(ctx, row, outer);
                    }
                }
                match otherwise {
                    Some(result) => result.eval(ctx, row, outer),
                    None => Ok(Value::Null),
                }
            }
            ExprKind::Cast(inner) => self.cast_of(ctx, row, outer, inner),
            ExprKind::Call(function, args) => self.call_function(ctx, row, outer, *function, args),
            ExprKind::ScalarSubquery(plan) => scalar_subquery(ctx, row, outer, plan),
            ExprKind::Column(_)
            | ExprKind::Literal(_)
            | ExprKind::Param(_)
            | ExprKind::Outer { .. } => self.eval_ref(ctx, row, outer).map(Cow::into_owned),
            _ => Ok(Value::from_bool(self.eval_bool(ctx, row, outer)?)),
        }
    }

    /// `a op b`. This and its siblings are apart from `compute` because their locals would lie
    /// on the stack at every level of a deep expression.
    fn arithmetic(
        &self,
        ctx: &EvalContext<'_>,
        row: &[Value],
        outer: &[&[Value]],
        op: BinaryOp,
        [a, b]: [&Expr; 2],
    ) -> SqlResult<Value> {
        let left = a.eval_unrounded(ctx, row, outer)?;
        let right = b.eval_unrounded(ctx, row, outer)?;
        let result = binary(ctx, op, &left, &right, &self.ty, &|| self.describe())?;
        Ok(self.at_declared_scale(ctx, result, a, b))
    }

    fn cast_of(
        &self,
        ctx: &EvalContext<'_>,
        row: &[Value],
        outer: &[&[Value]],
        inner: &Expr,
    ) -> SqlResult<Value> {
        let value = if self.ty.is_number() {
            inner.eval_unrounded(ctx, row, outer)?
        } else {
            inner.eval_ref(ctx, row, outer)?
        };
        cast_typed(ctx, value, &inner.ty, &self.ty)
    }
}

/// What a plan refers to and nobody gave: a mistake of ours.
pub(super) fn missing(what: &str, index: usize) -> SqlError {
    SqlError::internal(format!("{what} {index} is not there at run time"))
}
