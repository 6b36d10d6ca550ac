//! One view in use: its shape and its keys.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use manxdb_storage::KeyRange;
use manxdb_txn::Transaction;
use manxdb_views::{Fill, Lookup, Version, View};

use super::contents::{Held, RowChange};
use super::delta::{Changed, KeyChange, States};
use super::registry::Never;
use super::shape::{HeldTable, Shape};
use crate::catalog::{MaterializedView, TableId};
use crate::encoding::index_prefix;
use crate::error::SqlResult;
use crate::plan::{HeldView, ViewFill, ViewRead};
use crate::types::{Row, SqlMode, Value};

/// A materialized view in use, or one SELECT of its UNION.
pub struct Maintained {
    /// What it was defined as.
    pub(crate) definition: Arc<MaterializedView>,
    pub(crate) shape: Shape,
    pub(crate) keys: Arc<View<Held>>,
    /// Commits up to here it was not told of.
    since: AtomicU64,
    /// Rows that deltas have read: predecessors of changed rows, and what those are joined with.
    delta_rows: AtomicU64,
    /// Rows that fills have touched.
    fill_rows: AtomicU64,
    /// What all views share.
    shared: Arc<super::registry::Shared>,
}

impl std::fmt::Debug for Maintained {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.shown())
    }
}

impl Maintained {
    pub(super) fn new(
        definition: Arc<MaterializedView>,
        shape: Shape,
        shared: Arc<super::registry::Shared>,
    ) -> Self {
        Self {
            definition,
            shape,
            keys: Arc::new(View::new(Version::ZERO)),
            since: AtomicU64::new(u64::MAX),
            delta_rows: AtomicU64::new(0),
            fill_rows: AtomicU64::new(0),
            shared,
        }
    }

    /// Begins: commits up to `assigned` are not told to it. Nothing is filled below.
    pub(super) fn begin(&self, assigned: Version) {
        self.keys.empty(assigned);
        self.since.store(assigned.0, Ordering::SeqCst);
    }

    /// Rows that deltas have read since the view was taken into use.
    pub(super) fn delta_rows(&self) -> u64 {
        self.delta_rows.load(Ordering::Relaxed)
    }

    /// Rows that operators of fills have touched since the view was taken into use.
    pub(super) fn fill_rows(&self) -> u64 {
        self.fill_rows.load(Ordering::Relaxed)
    }

    fn mode(&self) -> SqlMode {
        SqlMode::from_bits(self.definition.sql_mode)
    }

    /// What is held of `rows`, which the fill's plan gave; `None`: the key cannot be held.
    fn held(&self, rows: Vec<Row>) -> Option<Held> {
        let rows = self.shape.held_rows(self.mode(), rows).ok()?;
        Held::filled(&self.shape, &rows).ok()
    }

    /// Whether a commit is one that the view is told of.
    pub(super) fn hears(&self, version: Version) -> bool {
        version.0 > self.since.load(Ordering::SeqCst)
    }

    /// Whether a table is one of the view's.
    pub(super) fn reads(&self, table: TableId) -> bool {
        let mut tables = self.shape.tables.iter();
        tables.any(|held| held.table.id == table)
    }

    /// What the changed rows of a commit are to the keys. `states` gives the states around it.
    pub(super) fn changes(
        &self,
        rows: &[Changed<'_>],
        states: &dyn Fn() -> SqlResult<(Transaction, Transaction)>,
    ) -> SqlResult<Vec<KeyChange>> {
        let read = rows.len() as u64; // the predecessor of each
        self.delta_rows.fetch_add(read, Ordering::Relaxed);
        if self.shape.steps.is_empty() {
            return self.shape.changes(self.mode(), rows);
        }
        let (before, after) = states()?;
        let touched = Cell::new(0);
        let states = States {
            before: &before,
            after: &after,
            waiter: &Never,
            touched: &touched,
        };
        let changes = self.shape.join_changes(self.mode(), &states, rows);
        self.delta_rows.fetch_add(touched.get(), Ordering::Relaxed);
        changes
    }

    /// Applies the changes of a commit.
    pub(super) fn apply(&self, version: Version, oldest: Version, changes: Vec<KeyChange>) {
        let mut by_key: Vec<(Vec<u8>, Vec<RowChange>)> = Vec::new();
        let mut places = std::collections::HashMap::new();
        for (key, change) in changes {
            let place = *places.entry(key.clone()).or_insert_with(|| {
                by_key.push((key, Vec::new()));
                by_key.len() - 1
            });
            if let Some((_, changes)) = by_key.get_mut(place) {
                changes.push(change);
            }
        }
        self.keys.apply(version, oldest, by_key);
    }
}

impl HeldView for Maintained {
    fn shown(&self) -> String {
        let names: Vec<&str> = self.shape.keys.iter().map(|key| &*key.name).collect();
        format!("{} ({})", self.definition.name, names.join(", "))
    }

    fn row_ranges(&self) -> Vec<KeyRange> {
        let rows_of = |held: &HeldTable| KeyRange::prefix(&index_prefix(&held.table, 0));
        self.shape.tables.iter().map(rows_of).collect()
    }

    fn key(&self, values: &[Value]) -> Option<Vec<u8>> {
        self.shape.reader_key(values)
    }

    fn key_bytes_max(&self) -> usize {
        self.shared.pool().limit_bytes() / 2
    }

    fn read(&self, key: &[u8], at: Version) -> SqlResult<ViewRead<'_>> {
        if self.since.load(Ordering::SeqCst) == u64::MAX {
            return Ok(ViewRead::Base);
        }
        let applied = self.shared.applied();
        Ok(match self.keys.lookup(key, at, applied, Held::rows) {
            Lookup::Hit(rows) => ViewRead::Hit(rows?),
            Lookup::Missing => match self.keys.begin_fill(key, at) {
                Some(fill) => ViewRead::Fill(Box::new(KeyFill { view: self, fill })),
                None => ViewRead::Base,
            },
            Lookup::Unable => ViewRead::Base,
        })
    }
}

/// A key of a view that a reader fills.
struct KeyFill<'v> {
    view: &'v Maintained,
    fill: Fill<Held>,
}

impl ViewFill for KeyFill<'_> {
    fn note_touched(&self, rows: u64) {
        self.view.fill_rows.fetch_add(rows, Ordering::Relaxed);
    }

    fn finish(self: Box<Self>, rows: Vec<Row>) -> SqlResult<Option<Vec<Row>>> {
        let Some(held) = self.view.held(rows) else {
            return Ok(None);
        };
        let rows = held.rows()?;
        self.fill.finish(held);
        // Makes room.
        self.view.shared.pool().keep_limit();
        Ok(Some(rows))
    }
}
