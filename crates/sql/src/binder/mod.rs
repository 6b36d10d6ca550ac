//! Names and types resolved against one catalog snapshot.

use std::sync::Arc;

use sqlparser::ast;

use crate::catalog::{Catalog, Table};
use crate::error::SqlResult;
use crate::expr::{Expr, SqlMode};
use crate::types::{Collation, DataType, Row};

/// Tables whose rows are computed: information_schema, performance_schema, mysql.
pub trait VirtualTables {
    /// Shape of `database.name`; every name that is not stored, in any case.
    fn table(&self, database: &str, name: &str) -> Option<Arc<Table>>;
    /// Its rows, as the session may see them.
    ///
    /// # Errors
    /// Whatever computing them meets.
    fn rows(&self, database: &str, name: &str) -> SqlResult<Vec<Row>>;
}

/// What binding depends on.
#[derive(Clone, Copy)]
pub struct BindContext<'a> {
    /// Catalog snapshot.
    pub catalog: &'a Catalog,
    /// Current database.
    pub database: Option<&'a str>,
    /// `sql_mode`.
    pub sql_mode: SqlMode,
    /// Collation of literals and parameters (`collation_connection`).
    pub collation: Collation,
    /// Computed tables.
    pub virtual_tables: &'a dyn VirtualTables,
    /// Text of the statement, so that unnamed result columns are called as written.
    pub source: Option<&'a str>,
}

/// Columns that names may refer to, in row order; `outer` is the enclosing query's scope.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// One entry a column of the row.
    pub columns: Vec<ScopeColumn>,
    /// Enclosing query.
    pub outer: Option<Box<Scope>>,
}

/// A column in a scope.
#[derive(Debug, Clone)]
pub struct ScopeColumn {
    /// Database, when it is a base table.
    pub database: Option<String>,
    /// Table alias.
    pub table: Option<String>,
    /// Column name.
    pub name: String,
    /// Type.
    pub ty: DataType,
    /// May be NULL.
    pub nullable: bool,
}

impl Scope {
    /// The scope of one table under `alias`.
    #[must_use]
    pub fn of_table(table: &Table, alias: &str) -> Self {
        let columns = table
            .columns
            .iter()
            .map(|column| ScopeColumn {
                database: Some(table.database.clone()),
                table: Some(alias.to_string()),
                name: column.name.clone(),
                ty: column.ty.clone(),
                nullable: !column.not_null,
            })
            .collect();
        Self {
            columns,
            outer: None,
        }
    }
}

/// Binds a scalar expression (no aggregates). `place` is MySQL's word for error 1054:
/// "field list", "where clause", "on clause", "order clause"…
///
/// # Errors
/// 1054, 1052, 1235 and what typing meets.
pub fn bind_expr(
    _context: &BindContext<'_>,
    _scope: &Scope,
    _expr: &ast::Expr,
    _place: &str,
) -> SqlResult<Expr> {
    Err(crate::error::SqlError::not_supported("expressions"))
}
