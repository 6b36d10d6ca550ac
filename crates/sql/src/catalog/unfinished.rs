//! What a crash cuts short, and how it is put right when the catalog is opened.
//!
//! | change | noted while it lasts | after a crash |
//! |---|---|---|
//! | rows written for a table that is not there yet: a copy, CREATE TABLE … SELECT | its id, as reserved | the rows become garbage, the old table stays |
//! | indexes filled chunk by chunk | the table's old record | the old definition is back, the entries are deleted |
//!
//! Both notes are taken away by the transaction that publishes the new table, so that at any
//! moment a crash leaves the old table or the new one.

use std::sync::Arc;

use manxdb_storage::{Direction, Durability, KeyRange};
use manxdb_txn::{ReadMode, Waiter};

use super::record::{self, Record};
use super::store::{CHUNK, Edit};
use super::{Catalog, CatalogStore, IndexState, Table, TableId};
use crate::error::{SqlError, SqlResult};

impl CatalogStore {
    /// An id for a table whose rows are written before it is published. Until the publishing
    /// transaction calls [`Edit::keep_reserved`], a crash makes garbage of what is under it; a
    /// statement that fails does so by [`CatalogStore::abandon_reserved`].
    ///
    /// # Errors
    /// Storage.
    pub(crate) fn reserve_table_id(&self, waiter: &Arc<dyn Waiter>) -> SqlResult<TableId> {
        self.retrying(waiter, Durability::Async, &mut |txn| {
            let id = Edit::new(txn, Catalog::default()).next_table_id()?;
            txn.put(record::reserved_key(id), Vec::new())?;
            Ok(id)
        })
    }

    /// What was written under a reserved id becomes garbage.
    ///
    /// # Errors
    /// Storage; the next start tries again.
    pub(crate) fn abandon_reserved(&self, id: TableId) -> SqlResult<()> {
        self.sequences().forget(id);
        self.retrying(self.waiter(), Durability::Async, &mut |txn| {
            let edit = Edit::new(txn, Catalog::default());
            edit.keep_reserved(id)?;
            edit.add_garbage(&record::table_prefix(id))
        })
    }

    /// As [`CatalogStore::abandon_reserved`] for all there are: no statement that reserved any of
    /// them runs any more.
    ///
    /// # Errors
    /// Storage; 1712 for a damaged note.
    pub(super) fn abandon_reserved_ids(&self) -> SqlResult<()> {
        loop {
            let txn = self.begin();
            txn.declare_read_only();
            let notes = KeyRange::prefix(record::RESERVED);
            let page = txn.scan(&notes, Direction::Forward, CHUNK, ReadMode::Plain)?;
            txn.rollback();
            if page.is_empty() {
                return Ok(());
            }
            for (key, _) in &page {
                self.abandon_reserved(record::reserved_id(key)?)?;
            }
        }
    }

    /// Puts back the definitions of tables whose change did not come to its end.
    ///
    /// # Errors
    /// Storage; 1712 for a damaged note.
    pub(super) fn take_back_unfinished(&self) -> SqlResult<()> {
        for old in self.unfinished()? {
            self.edit(self.waiter(), Durability::Sync, &mut |edit| {
                edit.take_back(&old)
            })?;
        }
        Ok(())
    }

    fn unfinished(&self) -> SqlResult<Vec<Table>> {
        let txn = self.begin();
        txn.declare_read_only();
        let notes = KeyRange::prefix(record::UNFINISHED);
        let mut old = Vec::new();
        // One a statement: a page holds more than there can be.
        for (_, bytes) in txn.scan(&notes, Direction::Forward, CHUNK, ReadMode::Plain)? {
            match Record::decode(&bytes)? {
                Record::Table(table) => old.push(*table),
                _ => {
                    let text = "a note of an unfinished change is no table";
                    return Err(SqlError::new(1712, "HY000", text));
                }
            }
        }
        Ok(old)
    }
}

impl Edit<'_> {
    /// The table of a reserved id is there from this edit on.
    pub(crate) fn keep_reserved(&self, id: TableId) -> SqlResult<()> {
        self.txn.delete(record::reserved_key(id))?;
        Ok(())
    }

    /// Notes what `old` is to become again when its change does not come to its end.
    pub(crate) fn begin_unfinished(&self, old: &Table) -> SqlResult<()> {
        let bytes = Record::Table(Box::new(old.clone())).encode()?;
        self.txn.put(record::unfinished_key(old.id), bytes)?;
        Ok(())
    }

    /// The change of the table has come to its end.
    pub(crate) fn end_unfinished(&self, id: TableId) -> SqlResult<()> {
        self.txn.delete(record::unfinished_key(id))?;
        Ok(())
    }

    /// Makes `old` the definition again, if its change has begun; indexes that were being filled
    /// become garbage.
    pub(crate) fn take_back(&mut self, old: &Table) -> SqlResult<()> {
        let note = record::unfinished_key(old.id);
        if self.txn.get(&note, ReadMode::Validate)?.is_none() {
            // Transactions that use the table go on with the version that it has.
            return Ok(());
        }
        self.end_unfinished(old.id)?;
        let Ok(stored) = self.catalog.table(&old.database, &old.name).cloned() else {
            return Ok(());
        };
        if stored.id != old.id {
            return Ok(());
        }
        let mut table = old.clone();
        table.schema_version = stored.schema_version + 1;
        table.next_index_id = stored.next_index_id.max(table.next_index_id);
        table.next_column_id = stored.next_column_id.max(table.next_column_id);
        let filling = |state| state == IndexState::WriteOnly;
        for index in stored.indexes.iter().filter(|index| filling(index.state)) {
            self.add_garbage(&record::index_prefix(old.id, index.id.0))?;
        }
        self.put_table(table)
    }
}
