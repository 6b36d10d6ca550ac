//! What conditions say about single columns of a table: the search arguments of its keys.

use super::logical::Leaf;
use super::walk;
use crate::catalog::Table;
use crate::expr::{CompareOp, Expr, ExprKind};
use crate::types::{Collation, DataType};

/// What a condition says about one column.
pub(super) struct Sarg<'e> {
    pub column: usize,
    pub bound: Bound<'e>,
}

pub(super) enum Bound<'e> {
    Points(Vec<&'e Expr>, bool),
    Low(&'e Expr),
    High(&'e Expr),
}

/// Adds what `condition` says.
pub(super) fn add_sargs<'e>(
    condition: &'e Expr,
    leaf: &Leaf,
    table: &Table,
    sargs: &mut Vec<Sarg<'e>>,
) {
    match &condition.kind {
        ExprKind::Compare(op, left, right, collation) => {
            let flipped = match op {
                CompareOp::Lt => CompareOp::Gt,
                CompareOp::Le => CompareOp::Ge,
                CompareOp::Gt => CompareOp::Lt,
                CompareOp::Ge => CompareOp::Le,
                other => *other,
            };
            add_comparison(*op, left, right, *collation, leaf, table, sargs);
            add_comparison(flipped, right, left, *collation, leaf, table, sargs);
        }
        ExprKind::InList {
            value,
            list,
            collation,
        } => {
            if let Some(column) = own_column(value, leaf)
                && list.iter().all(|item| usable(item, leaf))
                && list
                    .iter()
                    .all(|item| comparable(&table.columns[column].ty, &item.ty, *collation))
            {
                sargs.push(Sarg {
                    column,
                    bound: Bound::Points(list.iter().collect(), false),
                });
            }
        }
        ExprKind::IsNull(value) => {
            if let Some(column) = own_column(value, leaf)
                && !table.columns[column].not_null
            {
                sargs.push(Sarg {
                    column,
                    bound: Bound::Points(vec![null()], true),
                });
            }
        }
        ExprKind::Or(..) => add_alternatives(condition, leaf, table, sargs),
        ExprKind::And(left, right) => {
            add_sargs(left, leaf, table, sargs);
            add_sargs(right, leaf, table, sargs);
        }
        _ => {}
    }
}

/// `a = 1 OR a = 2`, and `(a, b) IN ((1, 2), (3, 4))` which is bound to an OR of ANDs: a column
/// that every branch fixes is one of the values of all branches.
fn add_alternatives<'e>(
    condition: &'e Expr,
    leaf: &Leaf,
    table: &Table,
    sargs: &mut Vec<Sarg<'e>>,
) {
    let mut branches = Vec::new();
    split_or(condition, &mut branches);
    let mut fixed: Option<Vec<(usize, Vec<&'e Expr>, bool)>> = None;
    for branch in branches {
        let mut own = Vec::new();
        add_sargs(branch, leaf, table, &mut own);
        let own: Vec<(usize, Vec<&Expr>, bool)> = own
            .into_iter()
            .filter_map(|sarg| match sarg.bound {
                Bound::Points(values, null) => Some((sarg.column, values, null)),
                Bound::Low(_) | Bound::High(_) => None,
            })
            .collect();
        fixed = Some(match fixed {
            None => own,
            Some(known) => known
                .into_iter()
                .filter_map(|(column, mut values, null)| {
                    let (_, more, more_null) = own.iter().find(|(c, ..)| *c == column)?;
                    values.extend(more);
                    Some((column, values, null || *more_null))
                })
                .collect(),
        });
    }
    for (column, values, null) in fixed.unwrap_or_default() {
        sargs.push(Sarg {
            column,
            bound: Bound::Points(values, null),
        });
    }
}

fn split_or<'e>(expr: &'e Expr, branches: &mut Vec<&'e Expr>) {
    match &expr.kind {
        ExprKind::Or(left, right) => {
            split_or(left, branches);
            split_or(right, branches);
        }
        _ => branches.push(expr),
    }
}

fn null() -> &'static Expr {
    static NULL: std::sync::LazyLock<Expr> =
        std::sync::LazyLock::new(|| Expr::literal(crate::types::Value::Null, DataType::Null));
    &NULL
}

fn add_comparison<'e>(
    op: CompareOp,
    column: &Expr,
    value: &'e Expr,
    collation: Collation,
    leaf: &Leaf,
    table: &Table,
    sargs: &mut Vec<Sarg<'e>>,
) {
    let Some(column) = own_column(column, leaf) else {
        return;
    };
    if !usable(value, leaf) || !comparable(&table.columns[column].ty, &value.ty, collation) {
        return;
    }
    let bound = match op {
        CompareOp::Eq => Bound::Points(vec![value], false),
        CompareOp::NullSafeEq => Bound::Points(vec![value], true),
        CompareOp::Lt | CompareOp::Le => Bound::High(value),
        CompareOp::Gt | CompareOp::Ge => Bound::Low(value),
        CompareOp::Ne => return,
    };
    sargs.push(Sarg { column, bound });
}

fn own_column(expr: &Expr, leaf: &Leaf) -> Option<usize> {
    match expr.kind {
        ExprKind::Column(slot) if leaf.slots.contains(&slot) => Some(slot - leaf.slots.start),
        _ => None,
    }
}

/// The value does not depend on the table itself and may be computed before it is read.
fn usable(expr: &Expr, leaf: &Leaf) -> bool {
    let mut own = false;
    walk::references(expr, &mut |(depth, index)| {
        own |= depth == 0 && leaf.slots.contains(&index);
    });
    !own && !walk::is_changing(expr)
}

/// Comparing a column of type `column` with a `value` can be narrowed to a key range.
fn comparable(column: &DataType, value: &DataType, collation: Collation) -> bool {
    let parameter = matches!(value, DataType::Null);
    match column {
        DataType::Int { .. }
        | DataType::Decimal { .. }
        | DataType::Double { .. }
        | DataType::Bit { .. }
        | DataType::Year => parameter || value.is_number() || value.is_text(),
        DataType::Char { collation: own, .. }
        | DataType::Varchar { collation: own, .. }
        | DataType::Text { collation: own, .. } => {
            *own == collation && (parameter || value.is_text())
        }
        DataType::Binary { .. } | DataType::Varbinary { .. } | DataType::Blob { .. } => {
            parameter || value.is_text() || value.is_bytes()
        }
        DataType::Date
        | DataType::Time { .. }
        | DataType::DateTime { .. }
        | DataType::Timestamp { .. } => parameter || value.is_temporal() || value.is_text(),
        DataType::Enum { .. }
        | DataType::Set { .. }
        | DataType::Json
        | DataType::Float { .. }
        | DataType::Null => false,
    }
}
