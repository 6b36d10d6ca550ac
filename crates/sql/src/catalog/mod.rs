//! What exists: databases, tables, views, accounts. One immutable snapshot per version;
//! persisted as records in the same key space and the same transactions as the data.

mod blinding;
mod change;
pub(crate) mod copy_notes;
mod garbage;
pub(crate) mod name_locks;
pub(crate) mod ownership;
pub(crate) mod record;
mod schema;
mod sealing;
mod sequences;
mod shared;
mod statistics;
pub mod store;
mod temporary;
mod unfinished;
pub(crate) mod unowned;
mod virtual_tables;

pub use blinding::{Blinding, ROWS};
pub use ownership::Ownership;
pub(crate) use record::PROBE;
pub use sealing::Sealing;
pub(crate) use sealing::vault_error;
pub use sequences::{SequenceKind, Sequences};
pub(crate) use shared::Changing;
pub use statistics::{DistinctValues, KeyStatistics, TableStatistics};
pub use store::{CatalogStore, touch};
pub use temporary::TemporaryTables;
pub(crate) use virtual_tables::NoTables;
pub use virtual_tables::VirtualTables;

pub use schema::{
    CheckConstraint, Column, ColumnDefault, ColumnId, Database, ForeignKey, ForeignKeyAction,
    Generated, GeneratedKind, Index, IndexColumn, IndexId, IndexState, MaterializedView,
    OwnershipAnnotation, Table, TableId, View,
};

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{SqlError, SqlResult};

/// One version of everything that exists. Names compare without regard to case for databases
/// and tables (`lower_case_table_names` = 2 semantics: kept as written).
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    /// Databases by lower-case name.
    pub databases: BTreeMap<String, Arc<Database>>,
    /// Grows with every change: plans cached under another version are made anew.
    pub version: u64,
    /// Of a session with temporary tables: the catalog without them.
    pub stored: Option<Arc<Catalog>>,
}

impl Catalog {
    /// The catalog without temporary tables: what views and foreign keys speak of.
    #[must_use]
    pub fn stored(&self) -> &Catalog {
        self.stored.as_deref().unwrap_or(self)
    }

    /// The database called `name`.
    ///
    /// # Errors
    /// 1049 when there is none.
    pub fn database(&self, name: &str) -> SqlResult<&Arc<Database>> {
        self.databases
            .get(&name.to_lowercase())
            .ok_or_else(|| SqlError::new(1049, "42000", format!("Unknown database '{name}'")))
    }

    /// The table `database.name`.
    ///
    /// # Errors
    /// 1049 or 1146.
    pub fn table(&self, database: &str, name: &str) -> SqlResult<&Arc<Table>> {
        self.database(database)?
            .tables
            .get(&name.to_lowercase())
            .ok_or_else(|| SqlError::no_such_table(database, name))
    }

    /// The tables of all databases.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        let databases = self.databases.values();
        let tables = databases.flat_map(|database| database.tables.values());
        tables.map(AsRef::as_ref)
    }

    /// The materialized view `database.name`, if there is one.
    #[must_use]
    pub fn materialized(&self, database: &str, name: &str) -> Option<&Arc<MaterializedView>> {
        self.databases
            .get(&database.to_lowercase())?
            .materialized
            .get(&name.to_lowercase())
    }

    /// All materialized views.
    pub fn all_materialized(&self) -> impl Iterator<Item = &Arc<MaterializedView>> {
        let databases = self.databases.values();
        databases.flat_map(|database| database.materialized.values())
    }

    /// The view `database.name`, if there is one.
    #[must_use]
    pub fn view(&self, database: &str, name: &str) -> Option<&Arc<View>> {
        self.databases
            .get(&database.to_lowercase())?
            .views
            .get(&name.to_lowercase())
    }
}
