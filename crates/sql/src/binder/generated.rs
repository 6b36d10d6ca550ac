//! What generated columns compute, bound to the columns of their table.

use super::{BindContext, Scope, bind_definition};
use crate::catalog::{Generated, GeneratedKind, Table};
use crate::error::SqlResult;
use crate::parser::{parse_expression, stored_mode};
use crate::plan::{Expr, ExprKind, walk};
use crate::types::DataType;

/// Functions whose answer depends on the session's time zone whatever they are given.
const OF_THE_ZONE: [&str; 2] = ["FROM_UNIXTIME", "UNIX_TIMESTAMP"];

impl Generated {
    /// Binds the expression over a row of `table`. Its text literals have the table's collation,
    /// not the session's: every session computes the same.
    ///
    /// # Errors
    /// 1054 and what typing meets.
    pub(crate) fn bind(&self, context: &BindContext<'_>, table: &Table) -> SqlResult<Expr> {
        let place = match self.kind {
            GeneratedKind::KeyPart => "functional index",
            GeneratedKind::Virtual | GeneratedKind::Stored => "generated column function",
        };
        let parsed = parse_expression(&self.expression, stored_mode())?;
        let context = BindContext {
            collation: table.collation,
            source: None,
            ..*context
        };
        bind_definition(
            &context,
            &Scope::of_table(table, &table.name),
            &parsed,
            place,
        )
    }
}

/// Expressions that a generated column in some index of `table` holds: position and expression.
/// A query that computes one of them may read the column instead.
///
/// # Errors
/// What binding meets.
pub(super) fn held_by_indexes(
    context: &BindContext<'_>,
    table: &Table,
) -> SqlResult<Vec<(usize, Expr)>> {
    let mut held = Vec::new();
    for (at, column) in table.columns.iter().enumerate() {
        let Some(generated) = &column.generated else {
            continue;
        };
        let indexed = table.indexes.iter().any(|index| {
            index.state.is_readable() && index.columns.iter().any(|part| part.column == at)
        });
        if !indexed {
            continue;
        }
        let expr = generated.bind(context, table)?;
        if holds(&column.ty, &expr.ty) && !depends_on_zone(context, table, &expr)? {
            held.push((at, expr));
        }
    }
    Ok(held)
}

/// Whether a column of type `column` keeps what expressions of type `expr` give as it is. As in
/// MySQL an integer may be narrower: in strict mode what does not fit was refused.
fn holds(column: &DataType, expr: &DataType) -> bool {
    match (column, expr) {
        (DataType::Int { .. }, DataType::Int { .. }) => true,
        (
            DataType::Varchar { collation, .. } | DataType::Text { collation, .. },
            DataType::Char { .. } | DataType::Varchar { .. } | DataType::Text { .. },
        ) => expr.collation() == Some(*collation),
        (DataType::Varbinary { .. } | DataType::Blob { .. }, expr) => expr.is_bytes(),
        (
            DataType::Decimal { scale, .. },
            DataType::Decimal {
                scale: computed, ..
            },
        ) => scale >= computed,
        _ => column == expr,
    }
}

/// Whether another session would compute something else than the one that wrote the row.
fn depends_on_zone(context: &BindContext<'_>, table: &Table, expr: &Expr) -> SqlResult<bool> {
    let calls = |e: &Expr| match &e.kind {
        ExprKind::Call(function, _) => OF_THE_ZONE.contains(&function.name),
        _ => false,
    };
    if walk::any(expr, &calls) {
        return Ok(true);
    }
    let mut read = Vec::new();
    walk::references(expr, &mut |(_, at)| read.push(at));
    for column in read.into_iter().filter_map(|at| table.columns.get(at)) {
        if matches!(column.ty, DataType::Timestamp { .. }) {
            return Ok(true);
        }
        // Only columns before it: this ends.
        if let Some(generated) = &column.generated
            && depends_on_zone(context, table, &generated.bind(context, table)?)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}
