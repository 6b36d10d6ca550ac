//! What seals and opens rows of a table: no part of its definition, and the same for all tables.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use manxdb_vault::{Blinder, KeyId, Vault, VaultError};
use parking_lot::{Mutex, RwLock};

use super::{Catalog, Table};
use crate::error::SqlError;

/// Tables whose blinders are kept at most.
const BLINDERS_MAX: usize = 4_096;

/// The vault of the instance, if it has one. Rows of owned tables are sealed then.
#[derive(Clone, Default)]
pub struct Sealing(Option<Arc<Keys>>);

struct Keys {
    vault: Arc<Vault>,
    /// The key of rows that came before their owners, made when one does.
    transit: Mutex<Option<KeyId>>,
    /// What blinds keys of tables, one a table that is in use.
    blinders: RwLock<HashMap<KeyId, Arc<Blinder>>>,
}

impl fmt::Debug for Sealing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_on = self.0.is_some();
        formatter.debug_tuple("Sealing").field(&is_on).finish()
    }
}

/// Tables that differ in nothing else are the same.
impl PartialEq for Sealing {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Sealing {}

impl Sealing {
    /// By the keys of `vault`; without one rows stay plain.
    #[must_use]
    pub fn by(vault: Option<Arc<Vault>>) -> Self {
        Self(vault.map(|vault| {
            Arc::new(Keys {
                vault,
                transit: Mutex::default(),
                blinders: RwLock::default(),
            })
        }))
    }

    /// The vault.
    #[must_use]
    pub fn vault(&self) -> Option<&Arc<Vault>> {
        self.0.as_ref().map(|keys| &keys.vault)
    }

    /// What blinds values under a key; `None` without a vault.
    pub(crate) fn blinder(&self, id: KeyId) -> Option<Result<Arc<Blinder>, VaultError>> {
        let keys = self.0.as_ref()?;
        if let Some(known) = keys.blinders.read().get(&id) {
            return Some(Ok(Arc::clone(known)));
        }
        let made = keys.vault.blinder(id).map(Arc::new);
        if let Ok(made) = &made {
            let mut blinders = keys.blinders.write();
            if blinders.len() >= BLINDERS_MAX {
                blinders.clear();
            }
            blinders.insert(id, Arc::clone(made));
        }
        Some(made)
    }

    /// The key of rows that wait for their owners.
    ///
    /// # Errors
    /// Those of making a key.
    pub(crate) fn transit_key(&self) -> Result<Option<KeyId>, VaultError> {
        let Some(keys) = &self.0 else {
            return Ok(None);
        };
        let mut transit = keys.transit.lock();
        if transit.is_none() {
            *transit = Some(keys.vault.take_key()?);
        }
        Ok(*transit)
    }

    /// Gives it to all tables of a catalog that have none.
    pub(crate) fn attach(&self, catalog: &mut Catalog) {
        if self.0.is_none() {
            return;
        }
        for database in catalog.databases.values_mut() {
            let mut tables = database.tables.values();
            if tables.all(|table| table.sealing.0.is_some()) {
                continue;
            }
            for table in Arc::make_mut(database).tables.values_mut() {
                if table.sealing.0.is_none() {
                    Arc::make_mut(table).sealing = self.clone();
                }
            }
        }
    }
}

/// 51005 or 51006 for what a vault says of a row.
pub(crate) fn vault_error(table: &Table, error: VaultError) -> SqlError {
    let place = format!("'{}.{}'", table.database, table.name);
    if let VaultError::Erased(_) = error {
        let text = format!(
            "A row of {place} was erased with its person since this transaction began: begin anew"
        );
        return SqlError::new(51006, "HY000", text);
    }
    let text = format!("Rows of {place} are sealed, and a key is not to be had: {error}");
    SqlError::new(51005, "HY000", text)
}
