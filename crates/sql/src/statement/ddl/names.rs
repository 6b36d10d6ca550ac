//! Which names a statement locks before it changes the catalog.
//!
//! Who changes a table also locks the tables with foreign keys to it, whose records follow a
//! renaming and which it must not leave without a parent; who makes a foreign key also locks the
//! parent, which gets another version. What these are is read from the catalog, which may change
//! until they are locked: then they are locked anew, all at once, so that no statement waits while
//! it holds some of what it needs.

use super::DdlContext;
use super::foreign::referring;
use crate::catalog::name_locks::LockedNames;
use crate::catalog::{Catalog, Changing, Table};
use crate::error::SqlResult;

/// The right to change tables, and what it covers.
pub(super) struct Locked<'a> {
    names: LockedNames,
    /// Given back on drop.
    _changing: Changing<'a>,
}

impl Locked<'_> {
    /// Whether `names` are locked.
    pub(super) fn covers(&self, names: &LockedNames) -> bool {
        self.names.covers(names)
    }
}

/// Locks `names` as they are.
///
/// # Errors
/// 1205, 1317; storage.
pub(super) fn lock<'a>(context: &DdlContext<'a>, names: LockedNames) -> SqlResult<Locked<'a>> {
    Ok(Locked {
        _changing: context.store.lock(&names, context.waiter)?,
        names,
    })
}

/// Locks tables that are to be changed with the tables that refer to them, and `more`.
///
/// # Errors
/// As [`lock`].
pub(super) fn lock_tables<'a>(
    context: &DdlContext<'a>,
    tables: &[(String, String)],
    more: &LockedNames,
) -> SqlResult<Locked<'a>> {
    let needed = || {
        let mut names = more.clone();
        let catalog = context.store.current();
        for (database, name) in tables {
            names.change(database, name);
            for (child, _) in referring(&catalog, database, name) {
                names.change(&child.database, &child.name);
            }
            // Their rules may name the table, and follow a renaming.
            let table = catalog.table(database, name).ok();
            for key in table.iter().flat_map(|table| &table.foreign_keys) {
                if key.edge.is_some_and(|edge| edge.kind.leads_to_target()) {
                    names.change(&key.ref_database, &key.ref_table);
                }
            }
        }
        names
    };
    loop {
        let locked = lock(context, needed())?;
        if locked.covers(&needed()) {
            return Ok(locked);
        }
    }
}

/// The parents of foreign keys of `table` that `before` does not have.
pub(super) fn new_parents(catalog: &Catalog, table: &Table, before: Option<&Table>) -> LockedNames {
    let mut names = LockedNames::default();
    let is_known = |name: &str| {
        let mut keys = before.iter().flat_map(|table| &table.foreign_keys);
        keys.any(|key| key.name == name && key.enforced)
    };
    for key in table.foreign_keys.iter().filter(|key| key.enforced) {
        let is_there = catalog.table(&key.ref_database, &key.ref_table).is_ok();
        if !is_known(&key.name) && is_there {
            names.change(&key.ref_database, &key.ref_table);
        }
    }
    names
}
