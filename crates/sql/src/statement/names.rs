//! Names of tables and columns in statements.

use std::sync::Arc;

use sqlparser::ast::{Expr, ObjectName, TableFactor, TableWithJoins};

use crate::binder::BindContext;
use crate::catalog::Table;
use crate::error::{SqlError, SqlResult};

/// The identifiers of a dotted name.
pub(crate) fn parts(name: &ObjectName) -> Vec<String> {
    name.0
        .iter()
        .filter_map(|part| part.as_ident())
        .map(|ident| ident.value.clone())
        .collect()
}

/// Database and name of a relation; the current database when none is said.
///
/// # Errors
/// 1046 without either; 1064 for more parts than two.
pub(crate) fn relation(database: Option<&str>, name: &ObjectName) -> SqlResult<(String, String)> {
    match parts(name).as_slice() {
        [table] => database
            .map(|database| (database.to_string(), table.clone()))
            .ok_or_else(|| SqlError::new(1046, "3D000", "No database selected")),
        [database, table] => Ok((database.clone(), table.clone())),
        _ => Err(SqlError::syntax(format!("'{name}' is no table name"))),
    }
}

/// The base table a statement writes.
///
/// # Errors
/// 1046, 1049, 1146; 1235 for views; 1044 for computed tables.
pub(super) fn writable(
    context: &BindContext<'_>,
    name: &ObjectName,
    verb: &str,
) -> SqlResult<Arc<Table>> {
    let (database, table) = relation(context.database, name)?;
    if context.catalog.view(&database, &table).is_some() {
        return Err(SqlError::not_supported(format!("{verb} through a view")));
    }
    if context.virtual_tables.table(&database, &table).is_some() {
        return Err(SqlError::new(
            1044,
            "42000",
            format!("Access denied: '{database}.{table}' is computed and cannot be written"),
        ));
    }
    context.catalog.table(&database, &table).cloned()
}

/// Refuses to change the rows of the one relation in `from` when that is a view.
///
/// # Errors
/// 1235; those of [`relation`].
pub(super) fn refuse_view(
    context: &BindContext<'_>,
    from: &[TableWithJoins],
    verb: &str,
) -> SqlResult<()> {
    let [only] = from else {
        return Ok(());
    };
    let TableFactor::Table { name, .. } = &only.relation else {
        return Ok(());
    };
    if !only.joins.is_empty() {
        return Ok(());
    }
    let (database, table) = relation(context.database, name)?;
    match context.catalog.view(&database, &table) {
        Some(_) => Err(SqlError::not_supported(format!("{verb} through a view"))),
        None => Ok(()),
    }
}

/// Whether an expression is the bare word DEFAULT.
pub(super) fn is_default(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(ident)
        if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("DEFAULT"))
}
