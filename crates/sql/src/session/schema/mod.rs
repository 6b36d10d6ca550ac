//! Tables that are computed: information_schema, performance_schema, mysql.

pub(crate) mod status;

use std::sync::Arc;

use super::facts::Facts;
use crate::binder::VirtualTables;
use crate::catalog::{Catalog, Table};
use crate::error::{SqlError, SqlResult};
use crate::types::Row;

/// The computed tables as one session sees them.
pub(crate) struct SessionTables<'a> {
    facts: &'a Facts,
    catalog: &'a Catalog,
}

impl<'a> SessionTables<'a> {
    /// For one statement.
    pub(crate) fn new(facts: &'a Facts, catalog: &'a Catalog) -> Self {
        Self { facts, catalog }
    }
}

impl VirtualTables for SessionTables<'_> {
    fn table(&self, _database: &str, _name: &str) -> Option<Arc<Table>> {
        let _ = (self.facts, self.catalog);
        None
    }

    fn rows(&self, database: &str, name: &str) -> SqlResult<Vec<Row>> {
        Err(SqlError::no_such_table(database, name))
    }
}

/// The canonical name of a computed database.
pub(crate) fn virtual_database(name: &str) -> Option<&'static str> {
    ["information_schema", "performance_schema", "mysql"]
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(name))
}
