//! Which expressions give the same for every session at every time.

use crate::plan::{Expr, ExprKind, walk};
use crate::types::DataType;

/// Functions of their arguments alone.
const FUNCTIONS: [&str; 30] = [
    "ABS",
    "CEILING",
    "CHAR_LENGTH",
    "COALESCE",
    "CONCAT",
    "CONCAT_WS",
    "DATE",
    "DAYOFMONTH",
    "FIELD",
    "FLOOR",
    "GREATEST",
    "HOUR",
    "IF",
    "IFNULL",
    "LEAST",
    "LEFT",
    "LENGTH",
    "LOWER",
    "MINUTE",
    "MOD",
    "MONTH",
    "NULLIF",
    "REPLACE",
    "RIGHT",
    "ROUND",
    "SECOND",
    "SIGN",
    "SUBSTRING",
    "UPPER",
    "YEAR",
];

/// Why an expression may not decide what a view holds; `None`: it may.
pub(super) fn objection(expr: &Expr) -> Option<String> {
    let mut found = None;
    look(expr, &mut found);
    found
}

fn look(expr: &Expr, found: &mut Option<String>) {
    if found.is_some() {
        return;
    }
    *found = match &expr.kind {
        ExprKind::Param(_) => Some("a parameter elsewhere than in column = ?".to_string()),
        ExprKind::Outer { .. }
        | ExprKind::ScalarSubquery(_)
        | ExprKind::Exists(_)
        | ExprKind::InSubquery { .. }
        | ExprKind::Quantified { .. } => Some("a subquery".to_string()),
        ExprKind::UserVariable(name) | ExprKind::AssignUserVariable(name, _) => {
            Some(format!("the variable @{name}"))
        }
        ExprKind::SystemVariable(name, _) => Some(format!("the variable @@{name}")),
        ExprKind::Call(function, _) if !FUNCTIONS.contains(&function.name) => {
            Some(format!("the function {}()", function.name))
        }
        ExprKind::Column(_) if matches!(expr.ty, DataType::Timestamp { .. }) => {
            Some("a TIMESTAMP column, which each session shows in its time zone".to_string())
        }
        _ => None,
    };
    walk::for_each_child(expr, &mut |child| look(child, found));
}

/// Whether an expression computes with a text that is no column's own: what it gives may depend on the
/// collation of the session that asks.
pub(super) fn has_text_of_session(expr: &Expr) -> bool {
    let is_column = matches!(expr.kind, ExprKind::Column(_));
    let mut found = !is_column && expr.ty.collation().is_some();
    walk::for_each_child(expr, &mut |child| {
        found = found || has_text_of_session(child);
    });
    found
}

/// Whether values of the type that are equal are the same: `1.0` and `1.00` are not, nor `a` and `A`
/// under a collation that ignores case.
pub(super) fn is_exact(expr: &Expr) -> bool {
    match &expr.ty {
        DataType::Int { .. }
        | DataType::Date
        | DataType::DateTime { .. }
        | DataType::Time { .. }
        | DataType::Year
        | DataType::Binary { .. }
        | DataType::Varbinary { .. }
        | DataType::Blob { .. } => true,
        DataType::Decimal { .. } => matches!(expr.kind, ExprKind::Column(_)),
        _ => false,
    }
}
