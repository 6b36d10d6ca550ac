//! Tables that are computed: `information_schema`, `performance_schema`, mysql.
//!
//! A computed table is a [`define::Definition`]: a name, columns, and a function from what the
//! session may see ([`source::Source`]) to rows. The lists are by subject: [`relations`],
//! [`keys`], [`server`], [`variables`], [`privileges`], [`empty`].

mod define;
mod empty;
pub(crate) mod keys;
mod privileges;
pub(crate) mod relations;
mod server;
mod source;
pub(crate) mod status;
mod variables;

use std::sync::{Arc, OnceLock};

use super::state::SessionState;
use crate::catalog::{Catalog, Table, VirtualTables};
use crate::error::{SqlError, SqlResult};
use crate::types::{Collation, DataType, Row};

use define::Definition;
pub(crate) use source::Source;

/// The computed databases.
pub(crate) const DATABASES: [&str; 3] = ["information_schema", "mysql", "performance_schema"];

/// The computed tables as one session sees them.
pub(crate) struct SessionTables<'a> {
    source: Source<'a>,
}

impl<'a> SessionTables<'a> {
    /// For one statement.
    pub(crate) fn new(state: &'a SessionState, catalog: &'a Catalog) -> Self {
        Self {
            source: Source::new(state, catalog),
        }
    }
}

impl VirtualTables for SessionTables<'_> {
    fn table(&self, database: &str, name: &str) -> Option<Arc<Table>> {
        find(database, name).map(|entry| Arc::clone(&entry.table))
    }

    fn rows(&self, database: &str, name: &str) -> SqlResult<Vec<Row>> {
        let entry = find(database, name).ok_or_else(|| SqlError::no_such_table(database, name))?;
        (entry.definition.rows)(&self.source)
    }

    fn variable_type(&self, name: &str, collation: Collation) -> DataType {
        crate::session::variables::type_of(name, collation)
    }

    fn user_variable_type(&self, name: &str, collation: Collation) -> DataType {
        self.source.state.bind_user_variable(name, collation)
    }
}

/// A computed table with its shape.
pub(crate) struct Entry {
    definition: &'static Definition,
    pub(crate) table: Arc<Table>,
}

/// All computed tables of one of [`DATABASES`], in any case, by name.
pub(crate) fn tables(database: &str) -> &'static [Entry] {
    static ALL: OnceLock<[Vec<Entry>; 3]> = OnceLock::new();
    let all = ALL.get_or_init(|| DATABASES.map(entries));
    DATABASES
        .iter()
        .position(|known| known.eq_ignore_ascii_case(database))
        .map_or(&[], |at| all[at].as_slice())
}

fn entries(database: &'static str) -> Vec<Entry> {
    let lists: &[&'static [Definition]] = match database {
        "information_schema" => &[
            relations::TABLES,
            keys::TABLES,
            server::TABLES,
            privileges::INFORMATION,
            empty::TABLES,
        ],
        "mysql" => &[privileges::MYSQL, empty::MYSQL],
        _ => &[variables::TABLES],
    };
    let mut entries: Vec<Entry> = lists
        .iter()
        .flat_map(|list| list.iter())
        .map(|definition| Entry {
            definition,
            table: definition.shape(database),
        })
        .collect();
    entries.sort_by_key(|entry| entry.definition.name);
    entries
}

fn find(database: &str, name: &str) -> Option<&'static Entry> {
    tables(database)
        .iter()
        .find(|entry| entry.definition.name.eq_ignore_ascii_case(name))
}

/// The canonical name of a computed database.
pub(crate) fn virtual_database(name: &str) -> Option<&'static str> {
    DATABASES
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(name))
}
