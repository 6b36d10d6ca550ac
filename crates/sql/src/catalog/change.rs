//! What an edit does to the catalog, apart from the rest: edits of different names are made side by
//! side, and each is published over what the others have made meanwhile.

use std::sync::Arc;

use super::{Catalog, Database, MaterializedView, Table, View};
use crate::types::Collation;

/// One change of the catalog.
#[derive(Debug, Clone)]
pub(super) enum CatalogChange {
    PutDatabase { name: String, collation: Collation },
    RemoveDatabase { name: String },
    PutTable(Arc<Table>),
    RemoveTable { database: String, name: String },
    PutView(Arc<View>),
    RemoveView { database: String, name: String },
    PutMaterialized(Arc<MaterializedView>),
    RemoveMaterialized { database: String, name: String },
}

impl CatalogChange {
    /// Makes the change. One in a database that is not there does nothing: whoever removed the
    /// database removed what is in it.
    pub(super) fn apply(&self, catalog: &mut Catalog) {
        match self {
            CatalogChange::PutDatabase { name, collation } => {
                let entry = catalog.databases.entry(name.to_lowercase());
                let database = Arc::make_mut(entry.or_default());
                database.name.clone_from(name);
                database.collation = *collation;
            }
            CatalogChange::RemoveDatabase { name } => {
                catalog.databases.remove(&name.to_lowercase());
            }
            CatalogChange::PutTable(table) => within(catalog, &table.database, |database| {
                let name = table.name.to_lowercase();
                database.tables.insert(name, Arc::clone(table));
            }),
            CatalogChange::RemoveTable { database, name } => {
                within(catalog, database, |database| {
                    database.tables.remove(&name.to_lowercase());
                });
            }
            CatalogChange::PutView(view) => within(catalog, &view.database, |database| {
                let name = view.name.to_lowercase();
                database.views.insert(name, Arc::clone(view));
            }),
            CatalogChange::RemoveView { database, name } => {
                within(catalog, database, |database| {
                    database.views.remove(&name.to_lowercase());
                });
            }
            CatalogChange::PutMaterialized(view) => within(catalog, &view.database, |database| {
                let name = view.name.to_lowercase();
                database.materialized.insert(name, Arc::clone(view));
            }),
            CatalogChange::RemoveMaterialized { database, name } => {
                within(catalog, database, |database| {
                    database.materialized.remove(&name.to_lowercase());
                });
            }
        }
    }
}

fn within(catalog: &mut Catalog, database: &str, change: impl FnOnce(&mut Database)) {
    if let Some(database) = catalog.databases.get_mut(&database.to_lowercase()) {
        change(Arc::make_mut(database));
    }
}
