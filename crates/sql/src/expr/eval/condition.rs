//! Truth of conditions, three-valued: `None` stands for NULL.

use std::sync::Arc;

use super::compare::compare_values;
use super::subquery::{exists, in_subquery, quantified};
use crate::error::SqlResult;
use crate::expr::EvalContext;
use crate::expr::matching::{like, regexp};
use crate::plan::{CompareOp, Expr, ExprKind};
use crate::types::{Collation, DataType, Value};

impl Expr {
    /// Truth of the value: `None` for NULL.
    ///
    /// # Errors
    /// As [`Expr::eval`].
    pub fn eval_bool(
        &self,
        ctx: &EvalContext<'_>,
        row: &[Value],
        outer: &[&[Value]],
    ) -> SqlResult<Option<bool>> {
        match &self.kind {
            ExprKind::Compare(op, a, b, collation) => {
                let a = a.eval_ref(ctx, row, outer)?;
                let b = b.eval_ref(ctx, row, outer)?;
                compare_values(ctx, *op, &a, &b, *collation)
            }
            ExprKind::And(a, b) => match a.eval_bool(ctx, row, outer)? {
                Some(false) => Ok(Some(false)),
                left => Ok(match b.eval_bool(ctx, row, outer)? {
                    Some(false) => Some(false),
                    right => left.and(right),
                }),
            },
            ExprKind::Or(a, b) => match a.eval_bool(ctx, row, outer)? {
                Some(true) => Ok(Some(true)),
                left => Ok(match b.eval_bool(ctx, row, outer)? {
                    Some(true) => Some(true),
                    right => left.and(right),
                }),
            },
            ExprKind::Xor(a, b) => {
                let (a, b) = (a.eval_bool(ctx, row, outer)?, b.eval_bool(ctx, row, outer)?);
                Ok(a.zip(b).map(|(a, b)| a != b))
            }
            ExprKind::Not(a) => Ok(a.eval_bool(ctx, row, outer)?.map(|truth| !truth)),
            ExprKind::IsNull(a) => Ok(Some(a.eval_ref(ctx, row, outer)?.is_null())),
            ExprKind::IsBool(a, truth) => Ok(Some(a.eval_bool(ctx, row, outer)? == Some(*truth))),
            ExprKind::Like {
                value,
                pattern,
                escape,
                collation,
            } => {
                let value = value.eval_ref(ctx, row, outer)?;
                let pattern = pattern.eval_ref(ctx, row, outer)?;
                Ok(like(&value, &pattern, *escape, *collation))
            }
            ExprKind::Regexp {
                value,
                pattern,
                collation,
            } => {
                let value = value.eval_ref(ctx, row, outer)?;
                let pattern = pattern.eval_ref(ctx, row, outer)?;
                regexp(&value, &pattern, *collation)
            }
            ExprKind::InList {
                value,
                list,
                collation,
            } => in_list(ctx, row, outer, value, list, *collation),
            ExprKind::Exists(plan) => exists(ctx, row, outer, plan).map(Some),
            ExprKind::InSubquery {
                values,
                plan,
                collations,
            } => in_subquery(ctx, row, outer, values, plan, collations),
            ExprKind::Quantified {
                op,
                value,
                plan,
                all,
                collation,
            } => {
                let value = value.eval_ref(ctx, row, outer)?;
                quantified(ctx, row, outer, (*op, *all, *collation), &value, plan)
            }
            _ => {
                let value = self.eval_ref(ctx, row, outer)?;
                match self.ty {
                    // As among numbers: an ENUM's place in its list, a SET's bits.
                    DataType::Enum { .. } | DataType::Set { .. } => {
                        let number = value.into_owned().stored_from(&self.ty, &DataType::DOUBLE);
                        truth(ctx, &number)
                    }
                    // A hexadecimal literal counts as a number.
                    _ => match (&self.kind, &*value) {
                        (ExprKind::Literal(_), Value::Bytes(bytes)) => {
                            Ok(Some(bytes.iter().any(|byte| *byte != 0)))
                        }
                        _ => truth(ctx, &value),
                    },
                }
            }
        }
    }
}

/// `value IN (list)`, by a set of the list where its items are constants.
fn in_list(
    ctx: &EvalContext<'_>,
    row: &[Value],
    outer: &[&[Value]],
    value: &Expr,
    list: &Arc<Vec<Expr>>,
    collation: Collation,
) -> SqlResult<Option<bool>> {
    let value = value.eval_ref(ctx, row, outer)?;
    if value.is_null() {
        return Ok(None);
    }
    if let Some(set) = ctx.lists.set_of(ctx, list, collation)? {
        return set.contains(ctx, &[&value]);
    }
    let mut unknown = false;
    for item in list.iter() {
        let item = item.eval_ref(ctx, row, outer)?;
        match compare_values(ctx, CompareOp::Eq, &value, &item, collation)? {
            Some(true) => return Ok(Some(true)),
            None => unknown = true,
            Some(false) => {}
        }
    }
    Ok((!unknown).then_some(false))
}

/// Truth of a value, warning about text that is no number.
fn truth(ctx: &EvalContext<'_>, value: &Value) -> SqlResult<Option<bool>> {
    if let Value::Text(_) = value {
        let Some((number, complete)) = value.to_double_checked() else {
            return Ok(None);
        };
        if !complete {
            ctx.truncated("DOUBLE", value)?;
        }
        return Ok(Some(number != 0.0));
    }
    Ok(value.to_bool())
}
