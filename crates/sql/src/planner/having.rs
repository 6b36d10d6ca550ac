//! HAVING conditions that speak of a group's keys alone choose rows before they are grouped, where
//! an index may find them.
//!
//! A condition moves when it gives the same answer for every row of a group. Rows of a group have
//! keys that are equal, which for text under a collation is less than the same: `'a' = 'A'`. Such
//! keys may only be compared under the collation that they are grouped by.

use crate::plan::select::SelectParts;
use crate::plan::{Expr, ExprKind, walk};
use crate::types::{Collation, DataType};

/// Moves what may move from HAVING to the conditions of the joined rows. With ROLLUP the rows of
/// subtotals have NULL keys that no joined row has: nothing moves.
pub(super) fn push_down(parts: &mut SelectParts) {
    if !parts.aggregated || parts.rollup {
        return;
    }
    let (keys, group) = (&parts.keys, &mut parts.group);
    parts.having.retain_mut(|condition| {
        let moves = reads_a_key(condition) && is_of_keys(condition, keys);
        if moves {
            over_rows(condition, keys);
            group.conjuncts.push(condition.clone());
        }
        !moves
    });
}

fn reads_a_key(condition: &Expr) -> bool {
    walk::any(condition, &|inner| {
        matches!(inner.kind, ExprKind::Column(_))
    })
}

/// Whether `expr`, over `keys ‖ calls`, is the same for all rows with these keys.
fn is_of_keys(expr: &Expr, keys: &[Expr]) -> bool {
    if walk::plan_of(expr).is_some() || walk::is_changing(expr) {
        return false;
    }
    match &expr.kind {
        ExprKind::Column(at) => keys.get(*at).is_some_and(is_exact),
        ExprKind::Compare(_, left, right, collation) => [left, right]
            .into_iter()
            .all(|side| is_grouped_by(side, keys, *collation) || is_of_keys(side, keys)),
        _ => {
            let mut all = true;
            walk::for_each_child(expr, &mut |child| all &= is_of_keys(child, keys));
            all
        }
    }
}

/// Whether equal keys are the same bytes.
fn is_exact(key: &Expr) -> bool {
    let exact = matches!(
        key.ty,
        DataType::Int { .. } | DataType::Decimal { .. } | DataType::Date | DataType::Binary { .. }
    );
    exact && is_movable(key)
}

/// Whether a side of a comparison is a text key that is grouped as it is compared.
fn is_grouped_by(side: &Expr, keys: &[Expr], collation: Collation) -> bool {
    let ExprKind::Column(at) = side.kind else {
        return false;
    };
    keys.get(at)
        .is_some_and(|key| key.ty.collation() == Some(collation) && is_movable(key))
}

/// Whether the key can be computed once more for each row.
fn is_movable(key: &Expr) -> bool {
    !walk::has_subquery(key) && !walk::is_changing(key)
}

/// Puts the keys' expressions in the place of their columns.
fn over_rows(expr: &mut Expr, keys: &[Expr]) {
    if let ExprKind::Column(at) = expr.kind {
        if let Some(key) = keys.get(at) {
            *expr = key.clone();
        }
        return;
    }
    walk::for_each_child_mut(expr, &mut |child| over_rows(child, keys));
}
