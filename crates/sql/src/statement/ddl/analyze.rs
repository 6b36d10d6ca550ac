//! ANALYZE TABLE: one walk over the rows of a table, in a snapshot and bounded memory.

use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use manxdb_storage::{Direction, Durability, KeyRange};
use manxdb_txn::transaction::rest_behind;
use manxdb_txn::{ReadMode, Waiter};

use crate::catalog::name_locks::LockedNames;
use crate::catalog::store::CHUNK;
use crate::catalog::{
    CatalogStore, DistinctValues, IndexId, KeyStatistics, Table, TableStatistics,
};
use crate::encoding;
use crate::error::SqlResult;
use crate::types::{Row, Value};

/// Finds out how many rows `table` has and how many values its keys, and stores it for the planner
/// of every session. Rows are read as they were when it began; nobody waits for it.
///
/// # Errors
/// Storage, damaged rows, interruption.
pub(crate) fn analyze(
    store: &CatalogStore,
    waiter: &Arc<dyn Waiter>,
    tz: &jiff::tz::TimeZone,
    table: &Table,
) -> SqlResult<()> {
    let found = measure(store, waiter, tz, table)?;
    keep(store, waiter, table, &found)
}

/// As [`analyze`], but what says nearly what is known already is not stored: a change of the catalog
/// has all sessions plan anew.
///
/// # Errors
/// As [`analyze`].
pub(crate) fn analyze_again(
    store: &CatalogStore,
    waiter: &Arc<dyn Waiter>,
    table: &Table,
) -> SqlResult<()> {
    let found = measure(store, waiter, &jiff::tz::TimeZone::UTC, table)?;
    match table.statistics() {
        Some(known) if known.is_near(&found) => Ok(()),
        _ => keep(store, waiter, table, &found),
    }
}

fn keep(
    store: &CatalogStore,
    waiter: &Arc<dyn Waiter>,
    table: &Table,
    found: &TableStatistics,
) -> SqlResult<()> {
    let mut names = LockedNames::default();
    names.change(&table.database, &table.name);
    let _changing = store.lock(&names, waiter)?;
    store.edit(waiter, Durability::Async, &mut |edit| {
        edit.put_statistics(table, found)
    })
}

fn measure(
    store: &CatalogStore,
    waiter: &Arc<dyn Waiter>,
    tz: &jiff::tz::TimeZone,
    table: &Table,
) -> SqlResult<TableStatistics> {
    let mut keys = sketches(table);
    let mut wanted = vec![false; table.columns.len()];
    for (column, _) in keys.iter().flat_map(|key| &key.parts) {
        wanted[*column] = true;
    }
    let (mut rows, mut bytes) = (0, 0);
    let txn = store.begin();
    txn.declare_read_only();
    let mut range = KeyRange::prefix(&encoding::index_prefix(table, 0));
    let mut row: Row = vec![Value::Null; table.columns.len()];
    loop {
        waiter.check()?;
        let page = txn.scan(&range, Direction::Forward, CHUNK, ReadMode::Plain)?;
        for (key, record) in &page {
            rows += 1;
            bytes += (key.len() + record.len()) as u64;
            let suffix = key.get(encoding::KEY_HEAD..).unwrap_or_default();
            encoding::decode_columns(table, (suffix, record), &wanted, tz, &mut row)?;
            for key in &mut keys {
                key.note(table, &row, tz)?;
            }
        }
        match page.last() {
            Some((last, _)) if page.len() == CHUNK => {
                range = rest_behind(&range, last, Direction::Forward);
            }
            _ => break,
        }
    }
    txn.rollback();
    Ok(TableStatistics {
        table: table.id,
        rows,
        bytes,
        keys: keys.into_iter().map(|key| key.finish(rows)).collect(),
    })
}

/// A key being measured.
struct KeySketch {
    index: IndexId,
    /// Column and the length of the prefix of it that is in the key.
    parts: Vec<(usize, Option<u32>)>,
    distinct: Vec<DistinctValues>,
    nulls: Vec<u64>,
    buffer: Vec<u8>,
}

fn sketches(table: &Table) -> Vec<KeySketch> {
    let primary = table.primary_key.iter().map(|column| (*column, None));
    let mut keys = vec![KeySketch::new(IndexId(0), primary.collect())];
    for index in &table.indexes {
        let parts = index.columns.iter().map(|part| (part.column, part.prefix));
        keys.push(KeySketch::new(index.id, parts.collect()));
    }
    keys.retain(|key| !key.parts.is_empty());
    keys
}

impl KeySketch {
    fn new(index: IndexId, parts: Vec<(usize, Option<u32>)>) -> Self {
        Self {
            index,
            distinct: parts.iter().map(|_| DistinctValues::default()).collect(),
            nulls: vec![0; parts.len()],
            parts,
            buffer: Vec::new(),
        }
    }

    fn note(&mut self, table: &Table, row: &[Value], tz: &jiff::tz::TimeZone) -> SqlResult<()> {
        self.buffer.clear();
        for (at, (column, prefix)) in self.parts.iter().enumerate() {
            let value = &row[*column];
            self.nulls[at] += u64::from(value.is_null());
            let ty = &table.columns[*column].ty;
            encoding::encode_key_column(value, ty, *prefix, tz, &mut self.buffer)?;
            let mut hasher = DefaultHasher::new();
            hasher.write(&self.buffer);
            self.distinct[at].note(hasher.finish());
        }
        Ok(())
    }

    fn finish(self, rows: u64) -> KeyStatistics {
        let mut distinct: Vec<u64> = self.distinct.iter().map(DistinctValues::count).collect();
        // An estimate may say more than can be.
        for count in &mut distinct {
            *count = (*count).min(rows);
        }
        KeyStatistics {
            index: self.index,
            distinct,
            nulls: self.nulls,
        }
    }
}
