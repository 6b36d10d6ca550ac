//! The catalog's life: loaded at open, changed under locks on names, published after commit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use manxdb_storage::{Direction, Durability, KeyRange};
use manxdb_txn::transaction::rest_behind;
use manxdb_txn::{CommitPath, IsolationLevel, ReadMode, Transaction, TxnError, TxnId, Waiter};
use parking_lot::Mutex;

use super::change::CatalogChange;
use super::name_locks::NameLocks;
use super::record::{self, DatabaseRecord, Record};
use super::sequences::Sequences;
use super::shared::Heard;
use super::{
    Catalog, Database, IndexState, MaterializedView, Sealing, Table, TableId, TableStatistics, View,
};
use crate::error::{SqlError, SqlResult};
use crate::types::Collation;

/// Keys read or deleted in one internal transaction.
pub(crate) const CHUNK: usize = 1_000;
/// Conflicts of one internal transaction after which the DDL gives up with 1213.
const RETRIES_MAX: usize = 50;

/// The stored catalog and its current snapshot.
pub struct CatalogStore {
    pub(super) path: Arc<dyn CommitPath>,
    waiter: Arc<dyn Waiter>,
    pub(super) current: ArcSwap<Catalog>,
    /// Names that statements are changing.
    pub(super) names: NameLocks,
    /// Held while an edit commits and is published, so that edits are published in the order of
    /// their commits.
    publishing: Mutex<()>,
    /// Statements that change the catalog now; while there are any it is this server's turn.
    pub(super) turn_shares: Mutex<usize>,
    /// What it has heard of other servers' changes.
    pub(super) heard: Mutex<Heard>,
    ids: AtomicU64,
    /// What rows of owned tables are sealed by.
    pub(super) sealing: Sealing,
    sequences: Sequences,
}

/// Makes the commit of `txn` depend on `table` being as it was planned for.
///
/// # Errors
/// 1412 when it is another by now: plan again.
pub fn touch(txn: &Transaction, table: &Table) -> SqlResult<()> {
    if table.temporary {
        // Nobody else can change it.
        return Ok(());
    }
    let key = record::relation_key(&table.database, &table.name);
    let stored = txn.get(&key, ReadMode::Validate)?;
    let same =
        stored.is_some_and(|bytes| record::is_version(&bytes, table.schema_version, table.id.0));
    if same {
        return Ok(());
    }
    Err(SqlError::new(
        1412,
        "HY000",
        "Table definition has changed, please retry transaction",
    ))
}

impl CatalogStore {
    /// What seals rows and blinds keys.
    #[must_use]
    pub fn sealing(&self) -> &Sealing {
        &self.sealing
    }

    /// Loads the catalog of `path`, and cleans up behind changes that a crash cut short.
    /// `waiter` serves the store's own transactions; rows are opened by `sealing`.
    ///
    /// # Errors
    /// Storage; 1712 for damaged records.
    pub fn open(
        path: Arc<dyn CommitPath>,
        waiter: Arc<dyn Waiter>,
        sealing: Sealing,
    ) -> SqlResult<Self> {
        let store = Self {
            sequences: Sequences::new(Arc::clone(&path), Arc::clone(&waiter)),
            path,
            waiter,
            current: ArcSwap::default(),
            names: NameLocks::default(),
            publishing: Mutex::default(),
            turn_shares: Mutex::default(),
            heard: Mutex::default(),
            ids: AtomicU64::new(u64::MAX / 4 * 3),
            sealing,
        };
        if store.is_shared() {
            store.open_shared()?;
            return Ok(store);
        }
        let txn = store.begin();
        txn.declare_read_only();
        let mut catalog = Self::load(&txn)?;
        store.sealing.attach(&mut catalog);
        store.current.store(Arc::new(catalog));
        txn.rollback();
        store.take_back_unfinished()?;
        store.abandon_reserved_ids()?;
        store.drop_half_made_indexes()?;
        store.end_left_temporary(&|| Ok(true))?;
        Ok(store)
    }

    /// The current snapshot.
    #[must_use]
    pub fn current(&self) -> Arc<Catalog> {
        self.current.load_full()
    }

    /// Who waits for the store's own transactions.
    pub(crate) fn waiter(&self) -> &Arc<dyn Waiter> {
        &self.waiter
    }

    /// Counters.
    #[must_use]
    pub fn sequences(&self) -> &Sequences {
        &self.sequences
    }

    /// A transaction of the store's own.
    #[must_use]
    pub fn begin(&self) -> Transaction {
        self.begin_as(&self.waiter)
    }

    fn begin_as(&self, waiter: &Arc<dyn Waiter>) -> Transaction {
        self.begin_at(IsolationLevel::Serializable, waiter)
    }

    fn begin_at(&self, isolation: IsolationLevel, waiter: &Arc<dyn Waiter>) -> Transaction {
        let id = TxnId(self.ids.fetch_add(1, Ordering::Relaxed));
        Transaction::begin(Arc::clone(&self.path), id, isolation, Arc::clone(waiter))
    }

    /// Runs `change` in a transaction of its own until it commits, then publishes what it changed.
    /// Call under [`CatalogStore::lock`] of the names it changes.
    pub(crate) fn edit<T>(
        &self,
        waiter: &Arc<dyn Waiter>,
        durability: Durability,
        change: &mut dyn FnMut(&mut Edit<'_>) -> SqlResult<T>,
    ) -> SqlResult<T> {
        for _ in 0..RETRIES_MAX {
            let txn = self.begin_as(waiter);
            let mut edit = Edit::new(&txn, (*self.current()).clone());
            let answer = change(&mut edit)?;
            let changes = edit.changes;
            let _publishing = self.publishing.lock();
            let Some(count) = self.count_change(&txn)? else {
                continue;
            };
            match txn.commit(durability) {
                Ok(_) => {
                    self.publish_changes(&changes, count.others);
                    return Ok(answer);
                }
                Err(TxnError::Conflict { .. } | TxnError::Deadlock) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(SqlError::from(TxnError::Deadlock))
    }

    /// Runs `work` in transactions of its own until one commits.
    pub(crate) fn retrying<T>(
        &self,
        waiter: &Arc<dyn Waiter>,
        durability: Durability,
        work: &mut dyn FnMut(&Transaction) -> SqlResult<T>,
    ) -> SqlResult<T> {
        self.retrying_at(IsolationLevel::Serializable, waiter, durability, work)
    }

    /// As [`CatalogStore::retrying`] at a level.
    pub(crate) fn retrying_at<T>(
        &self,
        isolation: IsolationLevel,
        waiter: &Arc<dyn Waiter>,
        durability: Durability,
        work: &mut dyn FnMut(&Transaction) -> SqlResult<T>,
    ) -> SqlResult<T> {
        for _ in 0..RETRIES_MAX {
            let txn = self.begin_at(isolation, waiter);
            let answer = match work(&txn) {
                Ok(answer) => answer,
                // A row lock held for long delays a change; KILL ends it.
                Err(error) if [1205, 1213].contains(&error.code) => continue,
                Err(error) => return Err(error),
            };
            match txn.commit(durability) {
                Ok(_) => return Ok(answer),
                Err(TxnError::Conflict { .. } | TxnError::Deadlock) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(SqlError::from(TxnError::Deadlock))
    }

    /// The catalog as a transaction sees it.
    pub(super) fn load(txn: &Transaction) -> SqlResult<Catalog> {
        let mut catalog = Catalog {
            version: 1,
            ..Catalog::default()
        };
        for prefix in [
            record::DATABASES,
            record::RELATIONS,
            record::MATERIALIZED_VIEWS,
        ] {
            let mut range = KeyRange::prefix(prefix);
            loop {
                let page = txn.scan(&range, Direction::Forward, CHUNK, ReadMode::Plain)?;
                for (_, bytes) in &page {
                    insert(&mut catalog, Record::decode(bytes)?)?;
                }
                match page.last() {
                    Some((last, _)) if page.len() == CHUNK => {
                        range = rest_behind(&range, last, Direction::Forward);
                    }
                    _ => break,
                }
            }
        }
        attach_statistics(txn, &mut catalog)?;
        Ok(catalog)
    }

    /// Of releases that kept no note of what the table was before.
    pub(super) fn drop_half_made_indexes(&self) -> SqlResult<()> {
        let catalog = self.current();
        let half_made = |table: &&Arc<Table>| {
            table
                .indexes
                .iter()
                .any(|index| index.state == IndexState::WriteOnly)
        };
        let tables: Vec<Arc<Table>> = catalog
            .databases
            .values()
            .flat_map(|database| database.tables.values())
            .filter(half_made)
            .cloned()
            .collect();
        for table in tables {
            self.edit(&self.waiter, Durability::Sync, &mut |edit| {
                let mut cleaned = (*table).clone();
                cleaned.indexes.retain(|index| index.state.is_readable());
                cleaned.schema_version += 1;
                for index in &table.indexes {
                    if index.state == IndexState::WriteOnly {
                        edit.add_garbage(&record::index_prefix(table.id, index.id.0))?;
                    }
                }
                edit.put_table(cleaned)
            })?;
        }
        Ok(())
    }
}

/// Gives tables what is known of them. What is of no table any more, or cannot be read, is passed
/// over.
fn attach_statistics(txn: &Transaction, catalog: &mut Catalog) -> SqlResult<()> {
    let mut known = BTreeMap::new();
    let mut range = KeyRange::prefix(record::STATISTICS);
    loop {
        let page = txn.scan(&range, Direction::Forward, CHUNK, ReadMode::Plain)?;
        let read = |(key, bytes): &(Vec<u8>, Vec<u8>)| record::decode_statistics(key, bytes);
        known.extend(page.iter().filter_map(read));
        match page.last() {
            Some((last, _)) if page.len() == CHUNK => {
                range = rest_behind(&range, last, Direction::Forward);
            }
            _ => break,
        }
    }
    for database in catalog.databases.values_mut() {
        for table in Arc::make_mut(database).tables.values_mut() {
            if let Some(found) = known.remove(&table.id) {
                Arc::make_mut(table).analyzed = Some(Arc::new(found));
            }
        }
    }
    Ok(())
}

fn insert(catalog: &mut Catalog, record: Record) -> SqlResult<()> {
    let orphan = || SqlError::new(1712, "HY000", "a catalog record names no database");
    match record {
        Record::Database(record) => {
            let database = Database {
                name: record.name.clone(),
                collation: record.collation,
                ..Database::default()
            };
            catalog
                .databases
                .insert(record.name.to_lowercase(), Arc::new(database));
        }
        Record::Table(table) => {
            let database = catalog.databases.get_mut(&table.database.to_lowercase());
            let database = Arc::make_mut(database.ok_or_else(orphan)?);
            database
                .tables
                .insert(table.name.to_lowercase(), Arc::new(*table));
        }
        Record::View(view) => {
            let database = catalog.databases.get_mut(&view.database.to_lowercase());
            let database = Arc::make_mut(database.ok_or_else(orphan)?);
            database
                .views
                .insert(view.name.to_lowercase(), Arc::new(view));
        }
        Record::MaterializedView(view) => {
            // An older release that dropped the database knew nothing of its definitions.
            let home = catalog.databases.get_mut(&view.database.to_lowercase());
            if let Some(home) = home {
                let known = &mut Arc::make_mut(home).materialized;
                known.insert(view.name.to_lowercase(), Arc::new(view));
            }
        }
    }
    Ok(())
}

/// A change of the catalog in the making: the transaction and the snapshot that will be current.
pub(crate) struct Edit<'a> {
    /// The transaction that carries it.
    pub(crate) txn: &'a Transaction,
    /// The catalog as it will be.
    pub(crate) catalog: Catalog,
    changes: Vec<CatalogChange>,
}

impl<'a> Edit<'a> {
    /// A change of `catalog` that `txn` carries.
    pub(crate) fn new(txn: &'a Transaction, catalog: Catalog) -> Self {
        Self {
            txn,
            catalog,
            changes: Vec::new(),
        }
    }

    fn record(&mut self, change: CatalogChange) {
        change.apply(&mut self.catalog);
        self.changes.push(change);
    }

    /// A table id never used before.
    pub(crate) fn next_table_id(&self) -> SqlResult<TableId> {
        let stored = self.txn.get(record::NEXT_TABLE_ID, ReadMode::Validate)?;
        let id = match stored.as_deref().map(TryInto::<[u8; 4]>::try_into) {
            None => 1,
            Some(Ok(bytes)) => u32::from_be_bytes(bytes),
            // To begin anew would mix the rows of two tables.
            Some(Err(_)) => {
                return Err(SqlError::new(
                    1712,
                    "HY000",
                    "the counter of table ids is damaged",
                ));
            }
        };
        let next = id
            .checked_add(1)
            .ok_or_else(|| SqlError::internal("table ids are exhausted"))?;
        self.txn
            .put(record::NEXT_TABLE_ID.to_vec(), next.to_be_bytes().to_vec())?;
        Ok(TableId(id))
    }

    /// Creates or changes a database.
    pub(crate) fn put_database(&mut self, name: &str, collation: Collation) -> SqlResult<()> {
        let record = DatabaseRecord {
            name: name.to_string(),
            collation,
        };
        let bytes = Record::Database(record).encode()?;
        self.txn.put(record::database_key(name), bytes)?;
        let name = name.to_string();
        self.record(CatalogChange::PutDatabase { name, collation });
        Ok(())
    }

    /// Removes a database with all in it; the data becomes garbage.
    pub(crate) fn remove_database(&mut self, name: &str) -> SqlResult<Vec<TableId>> {
        let found = self.catalog.databases.get(&name.to_lowercase()).cloned();
        let Some(database) = found else {
            return Ok(Vec::new());
        };
        self.record(CatalogChange::RemoveDatabase {
            name: name.to_string(),
        });
        self.txn.delete(record::database_key(name))?;
        for table in database.tables.values() {
            self.txn
                .delete(record::relation_key(&table.database, &table.name))?;
            self.txn.delete(record::statistics_key(table.id))?;
            self.add_garbage(&record::table_prefix(table.id))?;
        }
        for view in database.views.values() {
            self.txn
                .delete(record::relation_key(&view.database, &view.name))?;
        }
        for view in database.materialized.values() {
            self.txn
                .delete(record::materialized_key(&view.database, &view.name))?;
        }
        Ok(database.tables.values().map(|table| table.id).collect())
    }

    /// Creates or changes a table. The database record becomes part of what is validated, so
    /// that no table outlives a concurrent DROP DATABASE of another node.
    pub(crate) fn put_table(&mut self, table: Table) -> SqlResult<()> {
        let key = record::relation_key(&table.database, &table.name);
        self.txn
            .get(&record::database_key(&table.database), ReadMode::Validate)?;
        let bytes = Record::Table(Box::new(table.clone())).encode()?;
        self.catalog.database(&table.database)?;
        self.txn.put(key, bytes)?;
        self.record(CatalogChange::PutTable(Arc::new(table)));
        Ok(())
    }

    /// Notes what was found out about a table, unless it is another by now.
    pub(crate) fn put_statistics(&mut self, of: &Table, found: &TableStatistics) -> SqlResult<()> {
        let Ok(stored) = self.catalog.table(&of.database, &of.name) else {
            return Ok(());
        };
        if stored.id != of.id {
            return Ok(());
        }
        let mut table = (**stored).clone();
        table.analyzed = Some(Arc::new(found.clone()));
        self.record(CatalogChange::PutTable(Arc::new(table)));
        let bytes = record::encode_statistics(of.id, found)?;
        self.txn.put(record::statistics_key(of.id), bytes)?;
        Ok(())
    }

    /// Removes a table's record; its data stays.
    pub(crate) fn remove_table_record(&mut self, database: &str, name: &str) -> SqlResult<()> {
        self.catalog.database(database)?;
        self.txn.delete(record::relation_key(database, name))?;
        self.record(CatalogChange::RemoveTable {
            database: database.to_string(),
            name: name.to_string(),
        });
        Ok(())
    }

    /// Removes a table; its data becomes garbage.
    pub(crate) fn remove_table(&mut self, table: &Table) -> SqlResult<()> {
        self.remove_table_record(&table.database, &table.name)?;
        self.txn.delete(record::statistics_key(table.id))?;
        self.add_garbage(&record::table_prefix(table.id))
    }

    /// Creates or changes a view.
    pub(crate) fn put_view(&mut self, view: View) -> SqlResult<()> {
        let key = record::relation_key(&view.database, &view.name);
        self.txn
            .get(&record::database_key(&view.database), ReadMode::Validate)?;
        self.catalog.database(&view.database)?;
        self.txn.put(key, Record::View(view.clone()).encode()?)?;
        self.record(CatalogChange::PutView(Arc::new(view)));
        Ok(())
    }

    /// Removes a view.
    pub(crate) fn remove_view(&mut self, database: &str, name: &str) -> SqlResult<()> {
        self.catalog.database(database)?;
        self.txn.delete(record::relation_key(database, name))?;
        self.record(CatalogChange::RemoveView {
            database: database.to_string(),
            name: name.to_string(),
        });
        Ok(())
    }

    /// Creates a materialized view.
    pub(crate) fn put_materialized(&mut self, view: MaterializedView) -> SqlResult<()> {
        let key = record::materialized_key(&view.database, &view.name);
        self.txn
            .get(&record::database_key(&view.database), ReadMode::Validate)?;
        self.catalog.database(&view.database)?;
        let bytes = Record::MaterializedView(view.clone()).encode()?;
        self.txn.put(key, bytes)?;
        self.record(CatalogChange::PutMaterialized(Arc::new(view)));
        Ok(())
    }

    /// Removes a materialized view.
    pub(crate) fn remove_materialized(&mut self, database: &str, name: &str) -> SqlResult<()> {
        self.catalog.database(database)?;
        self.txn.delete(record::materialized_key(database, name))?;
        self.record(CatalogChange::RemoveMaterialized {
            database: database.to_string(),
            name: name.to_string(),
        });
        Ok(())
    }

    /// Notes that everything under `prefix` is to be deleted.
    pub(crate) fn add_garbage(&self, prefix: &[u8]) -> SqlResult<()> {
        self.txn.put(record::garbage_key(prefix), Vec::new())?;
        Ok(())
    }
}
