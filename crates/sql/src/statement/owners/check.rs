//! Whether rows have owners, from the facts that are stored of the rows they depend on.
//!
//! A row is looked at when it may have got or lost an owner. When that is so its key is written or
//! deleted, and the rows that are owned through it are looked at too, until nothing changes any more;
//! links of ownership make no cycle, so that comes to an end. Rows that were looked at and are
//! left without owner fail the commit.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::tz::TimeZone;
use manxdb_storage::{Direction, Durability, KeyRange};
use manxdb_txn::transaction::rest_behind;
use manxdb_txn::{ReadMode, Transaction, Waiter};

use super::graph::{OwnedTable, OwnerGraph, OwnerLink};
use super::keys::key_as_it_should_be;
use super::mutants::{OwnershipMutant, is_planted};
use super::notes::{OwnerNote, OwnerNotes};
use crate::catalog::copy_notes;
use crate::catalog::store::CHUNK;
use crate::catalog::unowned::{unowned_row_key, unowned_rows_prefix};
use crate::catalog::{CatalogStore, Table, TableId, touch};
use crate::encoding;
use crate::error::{SqlError, SqlResult};
use crate::types::{Value, to_text};

/// Rows that lead to a row read at a time, when one that is owned is looked for.
const PAGE: usize = 16;

/// A row: its table and its key suffix.
type Place = (TableId, Vec<u8>);

/// Looks at rows in one transaction.
pub(crate) struct OwnerCheck<'a> {
    txn: &'a Transaction,
    graph: Arc<OwnerGraph>,
    waiter: &'a dyn Waiter,
    tz: &'a TimeZone,
    open: VecDeque<Place>,
    notes: BTreeMap<Place, OwnerNote>,
    /// Foreign keys were checked by some statement: rows that depend on those noted must have owners.
    is_strict: bool,
    lets_wait: bool,
    /// Rows below one that is sealed under another key are looked at too.
    goes_down: bool,
    /// Rows that must not stay as they are, with what 51001 says of each.
    failed: BTreeMap<Place, String>,
    /// Tables whose definition the commit depends on.
    touched: BTreeSet<TableId>,
}

impl<'a> OwnerCheck<'a> {
    /// Nothing to be looked at yet.
    pub(crate) fn new(
        txn: &'a Transaction,
        graph: Arc<OwnerGraph>,
        waiter: &'a dyn Waiter,
        tz: &'a TimeZone,
    ) -> Self {
        Self {
            txn,
            graph,
            waiter,
            tz,
            open: VecDeque::new(),
            notes: BTreeMap::new(),
            is_strict: false,
            lets_wait: false,
            goes_down: true,
            failed: BTreeMap::new(),
            touched: BTreeSet::new(),
        }
    }

    /// Rows without owner are let through: they wait for one.
    pub(crate) fn let_wait(&mut self) {
        self.lets_wait = true;
    }

    /// Looks at what the transaction has noted.
    ///
    /// # Errors
    /// 51001 when a row is left without owner; 1412 when a table has changed; conflicts.
    pub(crate) fn check(mut self, notes: &OwnerNotes) -> SqlResult<()> {
        let taken = notes.take(Arc::clone(&self.graph));
        self.open.extend(taken.rows.keys().cloned());
        self.is_strict = taken.rows.values().any(|note| note.is_checked);
        self.notes = taken.rows;
        let graph = taken.graph;
        for (table, row) in &taken.gone {
            if let Some(owned) = graph.table(*table) {
                self.open_children(owned, row)?;
            }
        }
        self.run()?;
        match self.failed.into_values().next() {
            Some(message) => Err(SqlError::new(51001, "HY000", message)),
            None => Ok(()),
        }
    }

    /// Looks at the row `suffix` of `table`, which may stay without owner.
    pub(crate) fn add(&mut self, table: TableId, suffix: &[u8]) {
        self.open.push_back((table, suffix.to_vec()));
    }

    /// Looks at all that is open.
    ///
    /// # Errors
    /// As [`OwnerCheck::check`] but 51001.
    pub(crate) fn run(&mut self) -> SqlResult<()> {
        let graph = Arc::clone(&self.graph);
        while let Some(place) = self.open.pop_front() {
            self.waiter.check()?;
            let owned = graph.table(place.0);
            if let Some(owned) = owned.filter(|owned| owned.is_ownable() || owned.is_subject()) {
                self.look(owned, place)?;
            }
        }
        Ok(())
    }

    fn look(&mut self, owned: &OwnedTable, place: Place) -> SqlResult<()> {
        self.depend_on(&owned.table)?;
        let note = self.notes.get(&place).copied();
        let key = unowned_row_key(place.0, &place.1);
        let was_unowned = self.txn.get(&key, fact_mode())?.is_some();
        if note.is_some_and(|note| note.only_gains) && !was_unowned {
            return Ok(());
        }
        let row_key = encoding::row_key(&owned.table, &place.1);
        let Some(record) = self.txn.get(&row_key, ReadMode::Validate)? else {
            self.failed.remove(&place);
            if was_unowned {
                self.txn.delete(key)?;
            }
            return Ok(());
        };
        let row = encoding::decode_row(&owned.table, (&place.1, &record), self.tz)?;
        self.seal_as_it_should_be(owned, &place, &row, &record)?;
        if !owned.is_ownable() {
            return Ok(());
        }
        let is_owned = self.is_owned(owned, &row, note.is_some_and(|note| note.is_new))?;
        if is_owned == was_unowned {
            if is_owned {
                self.txn.delete(key)?;
            } else {
                self.txn.put(key, Vec::new())?;
            }
            self.open_dependents(owned, &row)?;
        }
        let is_checked = note.map_or(self.is_strict, |note| note.is_checked);
        let must_be = is_checked && !owned.unowned_allowed() && !self.lets_wait;
        let is_concern = self.txn.has_written(&row_key) || !was_unowned;
        if !is_owned && must_be && is_concern {
            self.failed.insert(place, unowned(owned, &row));
        } else if is_owned {
            self.failed.remove(&place);
        }
        Ok(())
    }

    /// Seals a row under the key that it should have, if it has another, or none.
    fn seal_as_it_should_be(
        &mut self,
        owned: &OwnedTable,
        place: &Place,
        row: &[Value],
        record: &[u8],
    ) -> SqlResult<()> {
        let table = &owned.table;
        if table.sealing.vault().is_none() {
            return Ok(());
        }
        let has = encoding::key_of(record);
        let key = key_as_it_should_be(self.txn, owned, row, has, self.tz)?;
        if key == has {
            return Ok(());
        }
        if let Some(copy) = table.copying {
            let note = copy_notes::changed_row_key(copy, &place.1);
            self.txn.put(note, Vec::new())?;
        }
        let plain = encoding::encode_row(table, row, self.tz);
        let record = match key {
            Some(key) => encoding::seal(table, &place.1, key, &plain)?,
            None => plain,
        };
        self.txn.put(encoding::row_key(table, &place.1), record)?;
        if self.goes_down {
            self.open_children(owned, row)?;
        }
        Ok(())
    }

    /// The commit depends on `table` being as it is.
    fn depend_on(&mut self, table: &Table) -> SqlResult<()> {
        if self.touched.insert(table.id) {
            touch(self.txn, table)?;
        }
        Ok(())
    }

    /// Whether a row is someone's. Of one that `is_new` foreign keys have found what its links lead to.
    fn is_owned(&mut self, owned: &OwnedTable, row: &[Value], is_new: bool) -> SqlResult<bool> {
        for link in &owned.owned_by {
            let Some((table, suffix)) = link.target_of(row, self.tz)? else {
                continue;
            };
            let Some(target) = &link.target else { continue };
            let key = encoding::row_key(target, &suffix);
            let is_there = is_new && !self.txn.has_written(&key)
                || self.txn.get(&key, ReadMode::Validate)?.is_some();
            if is_there && self.passes_on(table, &suffix)? {
                return Ok(true);
            }
        }
        for link in &owned.owned_through {
            self.depend_on(&link.from)?;
            if self.has_source(link, row)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a row that is there has owners to pass on.
    fn passes_on(&self, table: TableId, suffix: &[u8]) -> SqlResult<bool> {
        let Some(owned) = self.graph.table(table) else {
            return Ok(false);
        };
        if owned.is_subject() {
            return Ok(true);
        }
        if !owned.is_ownable() {
            return Ok(false);
        }
        let key = unowned_row_key(table, suffix);
        Ok(self.txn.get(&key, fact_mode())?.is_none())
    }

    /// Whether a row with owners leads to `row` by `link`.
    fn has_source(&self, link: &OwnerLink, row: &[Value]) -> SqlResult<bool> {
        let mut is_found = false;
        self.each_source(link, row, &mut |suffix| {
            is_found = self.passes_on(link.from.id, &suffix)?;
            Ok(!is_found)
        })?;
        Ok(is_found)
    }

    /// Hands `each` the key suffixes of rows that lead to `row` by `link`, until it answers false.
    fn each_source(
        &self,
        link: &OwnerLink,
        row: &[Value],
        each: &mut dyn FnMut(Vec<u8>) -> SqlResult<bool>,
    ) -> SqlResult<()> {
        let Some((mut range, head)) = link.sources_of(row, self.tz)? else {
            return Ok(());
        };
        loop {
            self.waiter.check()?;
            let page = self
                .txn
                .scan(&range, Direction::Forward, PAGE, ReadMode::Validate)?;
            let last = page.last().map(|(key, _)| key.clone());
            let is_full = page.len() == PAGE;
            for (key, value) in page {
                let suffix = match head {
                    Some(head) => key.get(head..).unwrap_or_default().to_vec(),
                    None => value,
                };
                if !each(suffix)? {
                    return Ok(());
                }
            }
            match last {
                Some(last) if is_full => range = rest_behind(&range, &last, Direction::Forward),
                _ => return Ok(()),
            }
        }
    }

    /// Rows that are owned through a row whose owners have changed.
    fn open_dependents(&mut self, owned: &OwnedTable, row: &[Value]) -> SqlResult<()> {
        self.open_children(owned, row)?;
        for link in &owned.owns {
            self.open.extend(link.target_of(row, self.tz)?);
        }
        Ok(())
    }

    fn open_children(&mut self, owned: &OwnedTable, row: &[Value]) -> SqlResult<()> {
        if is_planted(OwnershipMutant::SkippedDependents) {
            return Ok(());
        }
        for link in &owned.children {
            self.depend_on(&link.from)?;
            let mut found = Vec::new();
            self.each_source(link, row, &mut |suffix| {
                found.push((link.from.id, suffix));
                Ok(true)
            })?;
            self.open.extend(found);
        }
        Ok(())
    }
}

/// How facts of ownership are read: without a lock, and the commit depends on them.
fn fact_mode() -> ReadMode {
    if is_planted(OwnershipMutant::SkippedValidation) {
        return ReadMode::Plain;
    }
    ReadMode::Validate
}

/// 51001, in words.
fn unowned(owned: &OwnedTable, row: &[Value]) -> String {
    let table = &owned.table;
    let key: Vec<String> = table
        .primary_key
        .iter()
        .filter_map(|at| Some(to_text(row.get(*at)?, &table.columns.get(*at)?.ty)))
        .collect();
    let which = if key.is_empty() {
        "a row without primary key".to_string()
    } else {
        format!("the row with primary key ({})", key.join(", "))
    };
    format!(
        "Nobody owns {which} of table '{}.{}': give it an owner by {}, or say UNOWNED ALLOWED",
        table.database,
        table.name,
        owned.ways_to_own()
    )
}

/// Looks at rows that had no owner, all of the tables where one must be: their owners may have come.
///
/// # Errors
/// Storage, interruption.
pub(crate) fn place_waiting(
    store: &CatalogStore,
    graph: &Arc<OwnerGraph>,
    waiter: &Arc<dyn Waiter>,
    tz: &TimeZone,
) -> SqlResult<()> {
    for owned in graph.ownable().filter(|owned| !owned.unowned_allowed()) {
        let prefix = unowned_rows_prefix(owned.table.id);
        look_at_all(store, graph, waiter, tz, (&owned.table, &prefix))?;
    }
    Ok(())
}

/// Seals all rows of `tables`, given in the order in which keys go down from row to row, as they should be.
///
/// # Errors
/// As [`look_at_all`]; 51005.
pub(crate) fn seal_all(
    store: &CatalogStore,
    graph: &Arc<OwnerGraph>,
    waiter: &Arc<dyn Waiter>,
    tables: &[TableId],
) -> SqlResult<()> {
    for owned in tables.iter().filter_map(|id| graph.table(*id)) {
        let prefix = encoding::index_prefix(&owned.table, 0);
        let place = (owned.table.as_ref(), prefix.as_slice());
        look_at(store, graph, waiter, &TimeZone::UTC, place, false)?;
    }
    Ok(())
}

/// Looks at the row of each key of `table` that begins with `prefix`, in transactions of its own.
///
/// # Errors
/// Storage, interruption.
pub(crate) fn look_at_all(
    store: &CatalogStore,
    graph: &Arc<OwnerGraph>,
    waiter: &Arc<dyn Waiter>,
    tz: &TimeZone,
    place: (&Table, &[u8]),
) -> SqlResult<()> {
    look_at(store, graph, waiter, tz, place, true)
}

/// As [`look_at_all`]; `goes_down`: at rows below those that are sealed anew, too.
fn look_at(
    store: &CatalogStore,
    graph: &Arc<OwnerGraph>,
    waiter: &Arc<dyn Waiter>,
    tz: &TimeZone,
    (table, prefix): (&Table, &[u8]),
    goes_down: bool,
) -> SqlResult<()> {
    let mut range = KeyRange::prefix(prefix);
    loop {
        waiter.check()?;
        let last = store.retrying(waiter, Durability::Async, &mut |txn| {
            let page = txn.scan(&range, Direction::Forward, CHUNK, ReadMode::Validate)?;
            let mut check = OwnerCheck::new(txn, Arc::clone(graph), waiter.as_ref(), tz);
            check.goes_down = goes_down;
            for (key, _) in &page {
                check.add(table.id, key.get(prefix.len()..).unwrap_or_default());
            }
            check.run()?;
            let last = page.last().filter(|_| page.len() == CHUNK);
            Ok(last.map(|(key, _)| key.clone()))
        });
        match last {
            Ok(Some(last)) => range = rest_behind(&range, &last, Direction::Forward),
            Ok(None) => return Ok(()),
            // Another change of the table looks at its rows when it is made.
            Err(error) if error.code == 1412 => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}
