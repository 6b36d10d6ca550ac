//! Generated columns of a row about to be written.
//!
//! Whoever makes or changes a row fills them last: after defaults, AUTO_INCREMENT and ON UPDATE,
//! before CHECKs, keys and foreign keys look at the row. That is INSERT with all its kin, UPDATE,
//! cascades of foreign keys, and copying a table. See [`crate::catalog::Generated`] for why
//! VIRTUAL columns are among them.

use crate::binder::BindContext;
use crate::catalog::{Column, Index, Table};
use crate::error::{SqlError, SqlResult};
use crate::expr::{EvalContext, assign};
use crate::plan::Expr;
use crate::types::Value;

use super::warn;

/// The generated columns of one table, bound, in the order they are computed.
#[derive(Debug, Clone, Default)]
pub(super) struct Computed {
    columns: Vec<(usize, Expr)>,
}

impl Computed {
    /// Binds the generated columns of `table`.
    ///
    /// # Errors
    /// What binding meets.
    pub(super) fn plan(context: &BindContext<'_>, table: &Table) -> SqlResult<Self> {
        let mut columns = Vec::new();
        for (at, column) in table.columns.iter().enumerate() {
            if let Some(generated) = &column.generated {
                columns.push((at, generated.bind(context, table)?.stored_in(&column.ty)));
            }
        }
        // Key parts may read any column; the others only those before them.
        columns.sort_by_key(|(at, _)| table.columns.get(*at).is_some_and(Column::is_hidden));
        Ok(Self { columns })
    }

    /// Computes the generated columns of `row` from the others.
    ///
    /// # Errors
    /// What evaluating and storing meet, as for a value given by a client; 3751 and 3752 for the
    /// key part of an index.
    pub(super) fn fill(
        &self,
        eval: &EvalContext<'_>,
        table: &Table,
        row: &mut [Value],
        row_number: usize,
    ) -> SqlResult<()> {
        for (at, expr) in &self.columns {
            let column = table.columns.get(*at);
            let column = column.ok_or_else(|| SqlError::internal("no such generated column"))?;
            let before = eval.warnings.borrow().len();
            let value = expr.eval(eval, row, &[])?;
            let value =
                assign(eval, value, column, row_number).map_err(|error| {
                    match about_index(table, *at, error.code, row_number) {
                        Some((code, message)) => SqlError::new(code, error.sqlstate, message),
                        None => error,
                    }
                })?;
            for warning in eval.warnings.borrow_mut().iter_mut().skip(before) {
                if let Some((code, message)) = about_index(table, *at, warning.code, row_number) {
                    (warning.code, warning.message) = (code, message);
                }
            }
            if let Some(slot) = row.get_mut(*at) {
                *slot = value;
            }
        }
        Ok(())
    }
}

/// 1264, 1265 and 1406 about a hidden column, worded for the index that the client knows.
fn about_index(table: &Table, at: usize, code: u16, row: usize) -> Option<(u16, String)> {
    if !table.columns.get(at).is_some_and(Column::is_hidden) {
        return None;
    }
    let uses = |index: &&Index| index.columns.iter().any(|part| part.column == at);
    let index = &table.indexes.iter().find(uses)?.name;
    match code {
        1264 => Some((
            3752,
            format!("Value is out of range for functional index '{index}' at row {row}"),
        )),
        1265 | 1406 => Some((
            3751,
            format!("Data truncated for functional index '{index}' at row {row}"),
        )),
        _ => None,
    }
}

/// A client may give a generated column nothing but DEFAULT.
///
/// # Errors
/// 3105.
pub(super) fn refuse_value(table: &Table, at: usize) -> SqlResult<()> {
    match table.columns.get(at) {
        Some(column) if column.generated.is_some() => {
            Err(SqlError::new(3105, "HY000", not_allowed(column, table)))
        }
        _ => Ok(()),
    }
}

fn not_allowed(column: &Column, table: &Table) -> String {
    format!(
        "The value specified for generated column '{}' in table '{}' is not allowed.",
        column.name, table.name
    )
}

/// Whether the value of an INSERT for a column is passed over: mariadb-dump writes the values of
/// generated columns out and leaves strict mode to load them, where MariaDB computes them anew.
///
/// # Errors
/// 3105 in strict mode.
pub(super) fn passes_over(table: &Table, at: usize, strict: bool) -> SqlResult<bool> {
    match refuse_value(table, at) {
        Ok(()) => Ok(false),
        Err(error) if strict => Err(error),
        Err(_) => Ok(true),
    }
}

/// Says that the values given for `columns` were passed over.
pub(super) fn warn_passed_over(eval: &EvalContext<'_>, table: &Table, columns: &[usize]) {
    for column in columns.iter().filter_map(|at| table.columns.get(*at)) {
        warn(eval, 3105, not_allowed(column, table));
    }
}
