//! Statistics of tables are made anew when a tenth of their rows has changed, as InnoDB's
//! `innodb_stats_auto_recalc` has it: a table that nobody analyzes has plans by its real size.
//!
//! Statements count the rows they change, in memory; a thread of the server asks for what is due.
//! Counts are lost with the process, which costs at most a later analysis. Rows that a foreign key
//! changes in other tables, and statements that are rolled back, are not told apart: the counts say
//! when to look, never what is there.

use std::collections::HashMap;
use std::sync::Arc;

use manxdb_txn::{TxnError, Waiter};
use parking_lot::Mutex;

use super::instance::Instance;
use crate::catalog::{Catalog, Table, TableId};
use crate::error::SqlResult;
use crate::statement::ddl;
use crate::statement::{Access, ModifyStatement};

/// A table is analyzed when one row in this many has changed since.
const ONE_IN: u64 = 10;
/// Microseconds from one analysis of a table to its next at least, as InnoDB waits.
const PAUSE_MICROS: i64 = 10_000_000;
/// Tables whose changes are counted at most; those of further ones are not.
const TABLES_MAX: usize = 100_000;

/// Rows changed since the last analysis, by table.
#[derive(Default)]
pub(super) struct ChangedRows {
    tables: Mutex<HashMap<TableId, Changes>>,
}

#[derive(Default, Clone, Copy)]
struct Changes {
    rows: u64,
    /// Monotonic microseconds of the last analysis.
    analyzed_at: Option<i64>,
}

impl ChangedRows {
    fn note(&self, table: TableId, rows: u64) {
        let mut tables = self.tables.lock();
        if tables.len() >= TABLES_MAX && !tables.contains_key(&table) {
            return;
        }
        let changes = tables.entry(table).or_default();
        changes.rows = changes.rows.saturating_add(rows);
    }

    /// Tables of `catalog` that are due at `now`; those that are gone are forgotten.
    fn due<'a>(&self, catalog: &'a Catalog, now: i64) -> Vec<&'a Table> {
        let mut tables = self.tables.lock();
        if !tables.values().any(|changes| changes.may_be_due(now)) {
            return Vec::new(); // the common case, asked ten times a second
        }
        let known: HashMap<TableId, &Table> = catalog
            .tables()
            .filter(|table| tables.contains_key(&table.id))
            .map(|table| (table.id, table))
            .collect();
        tables.retain(|id, _| known.contains_key(id));
        let due = known.into_values().filter(|table| {
            let changes = tables.get(&table.id).copied().unwrap_or_default();
            changes.is_due(table, now)
        });
        due.collect()
    }

    /// Begins to count anew: what changes from here on is not in the analysis that begins now. The
    /// rows counted before.
    fn begin(&self, table: TableId, now: i64) -> u64 {
        let changes = Changes {
            rows: 0,
            analyzed_at: Some(now),
        };
        let before = self.tables.lock().insert(table, changes);
        before.map_or(0, |changes| changes.rows)
    }
}

impl Changes {
    /// Whether it is, if the table is small enough.
    fn may_be_due(self, now: i64) -> bool {
        let rested = self
            .analyzed_at
            .is_none_or(|at| now.saturating_sub(at) >= PAUSE_MICROS);
        rested && self.rows > 0
    }

    fn is_due(self, table: &Table, now: i64) -> bool {
        let rows = table.statistics().map_or(0, |known| known.rows);
        self.may_be_due(now) && self.rows.saturating_mul(ONE_IN) >= rows
    }
}

/// Waits for no lock, and ends an analysis when the server stops.
struct WhileServing<F>(F);

impl<F: Fn() -> bool + Send + Sync> Waiter for WhileServing<F> {
    fn wait(&self, ready: &dyn Fn() -> bool) -> Result<(), TxnError> {
        if ready() {
            Ok(())
        } else {
            Err(TxnError::LockTimeout)
        }
    }

    fn wake(&self) {}

    fn check(&self) -> Result<(), TxnError> {
        if (self.0)() {
            Err(TxnError::Interrupted)
        } else {
            Ok(())
        }
    }
}

impl Instance {
    /// Counts what a statement has changed.
    pub(super) fn note_changes(&self, catalog: &Catalog, plan: &ModifyStatement, rows: u64) {
        if rows == 0 {
            return;
        }
        for (database, name, access) in &plan.access {
            if *access == Access::Select {
                continue;
            }
            if let Ok(table) = catalog.table(database, name)
                && !table.temporary
            {
                self.changed_rows.note(table.id, rows);
                if self.candidates.counts() {
                    self.candidates.note_written(table.id, rows);
                }
            }
        }
    }

    fn recalculates_statistics(&self) -> bool {
        self.globals.read().integer("innodb_stats_auto_recalc") != 0
    }

    /// Analyzes the tables of which a tenth has changed since their last analysis, unless
    /// `innodb_stats_auto_recalc` is off; how many it was. A thread of the process calls it now and
    /// then; `stopping` ends it within a page of rows.
    ///
    /// # Errors
    /// Storage, damaged rows, interruption. A table that is being changed by a DDL statement is
    /// left for a later call, after the pause.
    pub fn analyze_changed_tables(
        &self,
        stopping: impl Fn() -> bool + Send + Sync + 'static,
    ) -> SqlResult<usize> {
        if !self.recalculates_statistics() {
            return Ok(0);
        }
        let waiter: Arc<dyn Waiter> = Arc::new(WhileServing(stopping));
        let catalog = self.store.current();
        let mut analyzed = 0;
        for table in self
            .changed_rows
            .due(&catalog, self.host.monotonic_micros())
        {
            let now = self.host.monotonic_micros();
            let counted = self.changed_rows.begin(table.id, now);
            let done = ddl::analyze_again(&self.store, &waiter, table);
            if done.is_err() {
                self.changed_rows.note(table.id, counted);
            }
            match done {
                Ok(()) => analyzed += 1,
                Err(error) if error.code == 1205 => {}
                Err(error) => return Err(error),
            }
        }
        Ok(analyzed)
    }
}
