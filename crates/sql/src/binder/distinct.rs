//! What ORDER BY may read of a SELECT DISTINCT.

use super::scope::FrameColumn;
use crate::error::{SqlError, SqlResult};
use crate::plan::select::SelectParts;
use crate::plan::{AggregateKind, Expr, ExprKind, walk};

/// What DISTINCT drops cannot decide the order: sort keys are made of what is selected.
///
/// # Errors
/// 3065 for a column that is not selected, 3066 for an aggregate that is not.
pub(super) fn check_order(parts: &SelectParts, columns: &[FrameColumn]) -> SqlResult<()> {
    for (at, (key, _)) in parts.order.iter().enumerate() {
        let Some(slot) = first_unselected(key, parts) else {
            continue;
        };
        let number = at + 1;
        if is_aggregate(slot, parts) {
            return Err(SqlError::new(
                3066,
                "HY000",
                format!(
                    "Expression #{number} of ORDER BY clause is not in SELECT list, contains \
                     aggregate function; this is incompatible with DISTINCT"
                ),
            ));
        }
        return Err(SqlError::new(
            3065,
            "HY000",
            format!(
                "Expression #{number} of ORDER BY clause is not in SELECT list, references column \
                 '{}' which is not in SELECT list; this is incompatible with DISTINCT",
                name_of(slot, parts, columns)
            ),
        ));
    }
    Ok(())
}

/// The first slot that `key` reads outside everything that is selected.
fn first_unselected(key: &Expr, parts: &SelectParts) -> Option<usize> {
    let is_selected = |expr: &Expr| parts.outputs.iter().any(|o| walk::same(&o.expr, expr));
    if is_selected(key) {
        return None;
    }
    if let ExprKind::Column(slot) = key.kind {
        return Some(slot);
    }
    let mut found = None;
    walk::for_each_child(key, &mut |child| {
        found = found.or_else(|| first_unselected(child, parts));
    });
    if walk::plan_of(key).is_some() {
        let selected = |slot: usize| {
            let is_it = |expr: &Expr| matches!(expr.kind, ExprKind::Column(at) if at == slot);
            parts.outputs.iter().any(|output| is_it(&output.expr))
        };
        walk::references(key, &mut |(depth, slot)| {
            if depth == 0 && !selected(slot) {
                found = found.or(Some(slot));
            }
        });
    }
    found
}

/// Whether a slot of a grouped row is an aggregate's result.
fn is_aggregate(slot: usize, parts: &SelectParts) -> bool {
    let call = slot.checked_sub(parts.keys.len());
    let call = call.and_then(|at| parts.calls.get(at));
    parts.aggregated && call.is_some_and(|call| call.kind != AggregateKind::First)
}

/// What error messages call a slot.
fn name_of(slot: usize, parts: &SelectParts, columns: &[FrameColumn]) -> String {
    let grouped = || {
        let call = |at: usize| parts.calls.get(at)?.arguments.first();
        let behind_keys = slot.checked_sub(parts.keys.len());
        parts.keys.get(slot).or_else(|| behind_keys.and_then(call))
    };
    let slot = match (parts.aggregated, grouped()) {
        (
            true,
            Some(Expr {
                kind: ExprKind::Column(slot),
                ..
            }),
        ) => *slot,
        _ => slot,
    };
    let column = columns
        .iter()
        .find(|column| matches!(column.expr.kind, ExprKind::Column(at) if at == slot));
    column.map_or_else(String::new, FrameColumn::full_name)
}
