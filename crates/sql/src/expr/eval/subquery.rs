//! Subqueries: run for the current row, or asked for what is kept of their rows.

use super::compare::compare_values;
use super::missing;
use crate::error::{SqlError, SqlResult};
use crate::expr::EvalContext;
use crate::expr::members::rows_equal;
use crate::plan::{CompareOp, Expr, Plan};
use crate::types::{Collation, Row, Value};

/// Whether there is a row; the first one decides.
pub(super) fn exists(
    ctx: &EvalContext<'_>,
    row: &[Value],
    outer: &[&[Value]],
    plan: &Plan,
) -> SqlResult<bool> {
    let mut found = false;
    ctx.subqueries
        .run(ctx, plan, &stack(row, outer), &mut |_| {
            found = true;
            Ok(false)
        })?;
    Ok(found)
}

/// `(SELECT …)`: the value of its row, NULL without one.
pub(super) fn scalar_subquery(
    ctx: &EvalContext<'_>,
    row: &[Value],
    outer: &[&[Value]],
    plan: &Plan,
) -> SqlResult<Value> {
    let mut result = None;
    ctx.subqueries
        .run(ctx, plan, &stack(row, outer), &mut |mut found: Row| {
            if result.is_some() {
                return Err(SqlError::new(
                    1242,
                    "21000",
                    "Subquery returns more than 1 row",
                ));
            }
            if found.is_empty() {
                return Err(missing("subquery column", 0));
            }
            result = Some(found.swap_remove(0));
            Ok(true)
        })?;
    Ok(result.unwrap_or(Value::Null))
}

/// `values IN (SELECT …)`, by a set of the rows where they are the same for every outer row.
pub(super) fn in_subquery(
    ctx: &EvalContext<'_>,
    row: &[Value],
    outer: &[&[Value]],
    values: &[Expr],
    plan: &Plan,
    collations: &[Collation],
) -> SqlResult<Option<bool>> {
    let mut left = Vec::with_capacity(values.len());
    for value in values {
        left.push(value.eval_ref(ctx, row, outer)?);
    }
    let left: Vec<&Value> = left.iter().map(|value| &**value).collect();
    if let Some(set) = ctx.subqueries.row_set(ctx, plan, collations)? {
        return set.contains(ctx, &left);
    }
    let mut result = Some(false);
    ctx.subqueries
        .run(ctx, plan, &stack(row, outer), &mut |found: Row| {
            let equal = rows_equal(ctx, &left, &found, collations)?;
            if equal != Some(false) {
                result = equal;
            }
            Ok(equal != Some(true))
        })?;
    Ok(result)
}

/// `value op ANY (SELECT …)`, or ALL.
pub(super) fn quantified(
    ctx: &EvalContext<'_>,
    row: &[Value],
    outer: &[&[Value]],
    (op, all, collation): (CompareOp, bool, Collation),
    value: &Value,
    plan: &Plan,
) -> SqlResult<Option<bool>> {
    // ALL holds until something fails, ANY fails until something holds.
    let mut result = Some(all);
    ctx.subqueries
        .run(ctx, plan, &stack(row, outer), &mut |found: Row| {
            let other = found.first().ok_or_else(|| missing("subquery column", 0))?;
            match compare_values(ctx, op, value, other, collation)? {
                None => result = None,
                Some(holds) if holds != all => {
                    result = Some(holds);
                    return Ok(false);
                }
                Some(_) => {}
            }
            Ok(true)
        })?;
    Ok(result)
}

/// Rows for a subquery of the current one.
fn stack<'a>(row: &'a [Value], outer: &[&'a [Value]]) -> Vec<&'a [Value]> {
    let mut rows = Vec::with_capacity(outer.len() + 1);
    rows.push(row);
    rows.extend_from_slice(outer);
    rows
}
