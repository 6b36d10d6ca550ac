//! CREATE TEMPORARY TABLE: tables that only one session sees.
//!
//! | what | where it is |
//! |---|---|
//! | the definition | in the session alone: [`TemporaryTables`], laid over the stored catalog |
//! | rows, indexes, counters | where all tables have theirs, under a table id of the common counter |
//! | the note that the id is temporary | `0x00 0x06 ‖ table`, written before the first row |
//!
//! Because rows are ordinary rows, DML on them is transactional like any other. Because the
//! definition is nobody else's, no catalog record is validated and nobody's plans are made anew.
//! The note turns into a garbage note when the table is dropped, when the session ends and when
//! the catalog is opened after a crash; the rows follow as those of dropped tables do. A table
//! dropped inside a transaction keeps its note until that has ended: rows the transaction wrote
//! would otherwise come after the garbage was collected, and stay for good.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_storage::{Direction, Durability, KeyRange};
use manxdb_txn::{ReadMode, Waiter};

use super::store::{CHUNK, Edit};
use super::{Catalog, CatalogStore, SequenceKind, Table, TableId, record};
use crate::error::SqlResult;

/// Catalog versions of sessions with temporary tables begin here: never those of stored ones.
const FIRST_VERSION: u64 = 1 << 63;

/// The temporary tables of one session.
#[derive(Debug, Default)]
pub struct TemporaryTables {
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By lower-case database and name.
    tables: BTreeMap<(String, String), Arc<Table>>,
    /// The stored version and what was made of it; empty after every change.
    merged: Option<(u64, Arc<Catalog>)>,
    versions: u64,
    /// No longer tables, still to be turned into garbage.
    dropped: Vec<TableId>,
}

fn place(database: &str, name: &str) -> (String, String) {
    (database.to_lowercase(), name.to_lowercase())
}

impl TemporaryTables {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.state.borrow().tables.is_empty()
    }

    /// The temporary table `database.name`.
    #[must_use]
    pub fn get(&self, database: &str, name: &str) -> Option<Arc<Table>> {
        let state = self.state.borrow();
        state.tables.get(&place(database, name)).cloned()
    }

    /// Whether `id` is one of them.
    #[must_use]
    pub fn has(&self, id: TableId) -> bool {
        self.state
            .borrow()
            .tables
            .values()
            .any(|table| table.id == id)
    }

    /// The catalog as the session sees it: its temporary tables hide stored relations of the same
    /// name. Has a version of its own unless there are none.
    #[must_use]
    pub fn over(&self, stored: Arc<Catalog>) -> Arc<Catalog> {
        let mut state = self.state.borrow_mut();
        if state.tables.is_empty() {
            return stored;
        }
        match &state.merged {
            Some((version, merged)) if *version == stored.version => return Arc::clone(merged),
            _ => {}
        }
        let mut merged = (*stored).clone();
        for ((database, name), table) in &state.tables {
            // A database dropped under its temporary tables takes them out of sight.
            if let Some(home) = merged.databases.get_mut(database) {
                let home = Arc::make_mut(home);
                home.views.remove(name);
                home.tables.insert(name.clone(), Arc::clone(table));
            }
        }
        state.versions += 1;
        merged.version = FIRST_VERSION + state.versions;
        let version = stored.version;
        merged.stored = Some(stored);
        let merged = Arc::new(merged);
        state.merged = Some((version, Arc::clone(&merged)));
        merged
    }

    /// Adds a table, or gives one another definition or identity.
    pub(crate) fn put(&self, table: Table) {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        state.merged = None;
        let id = table.id;
        let key = place(&table.database, &table.name);
        let before = state.tables.insert(key, Arc::new(table));
        state.dropped.extend(
            before
                .map(|before| before.id)
                .filter(|before| *before != id),
        );
    }

    /// Takes a table away; its rows go when [`CatalogStore::release_temporary`] is called next.
    pub(crate) fn remove(&self, database: &str, name: &str) {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        state.merged = None;
        let before = state.tables.remove(&place(database, name));
        state.dropped.extend(before.map(|table| table.id));
    }

    /// The tables there are, to come [`back_to`](Self::back_to).
    pub(crate) fn mark(&self) -> Vec<TableId> {
        let state = self.state.borrow();
        state.tables.values().map(|table| table.id).collect()
    }

    /// Takes away the tables that came after `mark`.
    pub(crate) fn back_to(&self, mark: &[TableId]) {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        state.merged = None;
        state.tables.retain(|_, table| {
            let stays = mark.contains(&table.id);
            if !stays {
                state.dropped.push(table.id);
            }
            stays
        });
    }

    /// Notes an id whose table was never finished.
    pub(crate) fn discard(&self, id: TableId) {
        self.state.borrow_mut().dropped.push(id);
    }

    /// Takes all tables away: the session ends or begins anew.
    pub(crate) fn clear(&self) {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        state.merged = None;
        let tables = std::mem::take(&mut state.tables);
        state.dropped.extend(tables.values().map(|table| table.id));
    }
}

impl CatalogStore {
    /// An identity for a temporary table, noted as such before anything is written under it. The
    /// note need not be synced: the log keeps order, so rows never outlive it.
    pub(crate) fn new_temporary_id(&self, waiter: &Arc<dyn Waiter>) -> SqlResult<TableId> {
        self.retrying(waiter, Durability::Async, &mut |txn| {
            let edit = Edit::new(txn, Catalog::default());
            let id = edit.next_table_id()?;
            txn.put(record::temporary_key(id), Vec::new())?;
            Ok(id)
        })
    }

    /// Turns the dropped tables of a session into garbage. Call when the
    /// session has no transaction open.
    ///
    /// # Errors
    /// Storage; what is left is found when the catalog is opened next.
    pub(crate) fn release_temporary(&self, tables: &TemporaryTables) -> SqlResult<()> {
        let dropped = std::mem::take(&mut tables.state.borrow_mut().dropped);
        self.end_temporary(&dropped)
    }

    fn end_temporary(&self, ids: &[TableId]) -> SqlResult<()> {
        if ids.is_empty() {
            return Ok(());
        }
        for id in ids {
            self.sequences().forget(*id);
        }
        self.retrying(self.waiter(), Durability::Async, &mut |txn| {
            let edit = Edit::new(txn, Catalog::default());
            for id in ids {
                for kind in [SequenceKind::AutoIncrement, SequenceKind::RowId] {
                    txn.delete(record::sequence_key(*id, kind as u8))?;
                }
                edit.add_garbage(&record::table_prefix(*id))?;
                txn.delete(record::temporary_key(*id))?;
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Ends the temporary tables of sessions that a crash ended, if those that are there by the time
    /// `is_left` is asked are of such.
    pub(super) fn end_left_temporary(
        &self,
        is_left: &dyn Fn() -> SqlResult<bool>,
    ) -> SqlResult<()> {
        loop {
            let txn = self.begin();
            txn.declare_read_only();
            let notes = KeyRange::prefix(record::TEMPORARY);
            let page = txn.scan(&notes, Direction::Forward, CHUNK, ReadMode::Plain)?;
            txn.rollback();
            if page.is_empty() || !is_left()? {
                return Ok(());
            }
            let ids = page
                .iter()
                .map(|(key, _)| record::temporary_id(key))
                .collect::<SqlResult<Vec<_>>>()?;
            self.end_temporary(&ids)?;
        }
    }
}
