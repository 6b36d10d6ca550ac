//! From the text of a definition to its shapes.

use sqlparser::ast::Statement;

use super::shape::Shape;
use crate::binder::{BindContext, plan_query};
use crate::catalog::{Catalog, MaterializedView, NoTables};
use crate::error::{SqlError, SqlResult};
use crate::parser::parse;
use crate::types::SqlMode;

/// The shapes of a definition under a catalog: one, or one for each SELECT of a UNION.
///
/// # Errors
/// Binding errors; 1235 for what cannot be held.
pub(crate) fn shapes_of(definition: &MaterializedView, catalog: &Catalog) -> SqlResult<Vec<Shape>> {
    let mode = SqlMode::from_bits(definition.sql_mode);
    let mut parsed = parse(&definition.query, mode)?;
    let one = parsed.pop().filter(|_| parsed.is_empty());
    let Some(Statement::Query(query)) = one.map(|parsed| parsed.statement) else {
        return Err(SqlError::syntax("a materialized view is one SELECT"));
    };
    let context = BindContext {
        catalog: catalog.stored(),
        database: Some(&definition.database),
        sql_mode: mode,
        collation: definition.collation,
        virtual_tables: &NoTables,
        source: None,
        constants: &[],
        with: None,
        for_view: true,
    };
    Shape::all_of(&plan_query(&context, &query)?)
}
