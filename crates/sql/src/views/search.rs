//! Rows of tables as views hold them, for who looks for rows that must not be there.

use std::sync::Arc;

use manxdb_views::{HeldKey, Version};

use super::contents::Held;
use super::maintained::Maintained;
use super::registry::Views;
use super::shape::HeldTable;
use crate::catalog::TableId;
use crate::error::SqlResult;
use crate::plan::ExprKind;
use crate::types::Value;

/// A row of a table in a view.
pub(crate) struct HeldRow<'a> {
    /// The key that it is held under.
    pub key: &'a [u8],
    /// The number of its table among the view's.
    pub table: usize,
    /// What is known of its columns, by position: the view has not all of them.
    pub values: &'a [Option<Value>],
    /// A reader of now is not given it: it is kept for older snapshots, or for the end of a fill.
    pub is_kept: bool,
}

/// For each column of a table, its place in the rows that a view holds.
type Places = Vec<Option<usize>>;

/// Takes a row.
pub(crate) type EachHeld<'e> = dyn FnMut(&HeldRow<'_>) + 'e;

impl Views {
    /// Views in use over one of `tables`.
    pub fn over(&self, tables: &dyn Fn(TableId) -> bool) -> Vec<Arc<Maintained>> {
        let mut views = self.in_use_now();
        views.retain(|view| {
            let mut held = view.shape.tables.iter();
            held.any(|held| tables(held.table.id))
        });
        views
    }
}

impl Maintained {
    /// Columns, by position, whose values the view has of each row of one of its tables.
    pub(crate) fn known_columns(&self, held: &HeldTable) -> Vec<bool> {
        self.places(held).iter().map(Option::is_some).collect()
    }

    /// For each column of one of its tables, by position, its place in the rows that are held; `None`: they do
    /// not have it.
    fn places(&self, held: &HeldTable) -> Places {
        let Some(grouping) = &self.shape.grouping else {
            let columns = held.slots.clone().zip(&held.wanted);
            return columns
                .map(|(slot, wanted)| wanted.then_some(slot))
                .collect();
        };
        let mut places = vec![None; held.wanted.len()];
        for (place, key) in grouping.keys.iter().enumerate() {
            if let ExprKind::Column(slot) = key.kind
                && held.slots.contains(&slot)
                && let Some(to) = places.get_mut(slot - held.slots.start)
            {
                *to = Some(place);
            }
        }
        places
    }

    /// Shows `each` the rows of all its tables that it holds.
    ///
    /// # Errors
    /// 1105 when what is held cannot be read back, which is a defect.
    pub(crate) fn for_each_row(&self, each: &mut EachHeld<'_>) -> SqlResult<()> {
        let tables = self.shape.tables.iter();
        let tables: Vec<Places> = tables.map(|held| self.places(held)).collect();
        let mut result = Ok(());
        self.keys.for_each_key(&mut |held| {
            if result.is_ok() {
                result = rows_of_key(&tables, &held, each);
            }
        });
        result
    }

    /// Keys that are filled.
    pub(crate) fn filled_keys(&self) -> u64 {
        self.keys.statistics().keys as u64
    }

    /// Lets go of all keys; readers fill them again.
    pub(crate) fn drop_keys(&self) {
        self.keys.empty(Version::ZERO);
    }
}

/// Shows `each` what is held under one key, of tables whose columns are at these places.
fn rows_of_key(
    tables: &[Places],
    held: &HeldKey<'_, Held>,
    each: &mut EachHeld<'_>,
) -> SqlResult<()> {
    for row in held.contents.map(Held::rows).transpose()?.iter().flatten() {
        parts(tables, (held.key, row), false, each);
    }
    for change in held.changes.iter().copied().flatten() {
        parts(tables, (held.key, &change.row), true, each);
    }
    Ok(())
}

/// What a row that is held under a key has of the rows of each table.
fn parts(tables: &[Places], (key, row): (&[u8], &[Value]), is_kept: bool, each: &mut EachHeld<'_>) {
    for (table, places) in tables.iter().enumerate() {
        let values = places.iter().map(|place| row.get((*place)?).cloned());
        let values: Vec<Option<Value>> = values.collect();
        each(&HeldRow {
            key,
            table,
            values: &values,
            is_kept,
        });
    }
}
