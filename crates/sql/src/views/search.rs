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
        let Some(grouping) = &self.shape.grouping else {
            return held.wanted.clone();
        };
        let mut known = vec![false; held.wanted.len()];
        for key in &grouping.keys {
            if let ExprKind::Column(slot) = key.kind
                && held.slots.contains(&slot)
                && let Some(known) = known.get_mut(slot - held.slots.start)
            {
                *known = true;
            }
        }
        known
    }

    /// Shows `each` the rows of all its tables that it holds.
    ///
    /// # Errors
    /// 1105 when what is held cannot be read back, which is a defect.
    pub(crate) fn for_each_row(&self, each: &mut EachHeld<'_>) -> SqlResult<()> {
        let mut result = Ok(());
        self.keys.for_each_key(&mut |held| {
            if result.is_ok() {
                result = self.rows_of_key(&held, each);
            }
        });
        result
    }

    fn rows_of_key(&self, held: &HeldKey<'_, Held>, each: &mut EachHeld<'_>) -> SqlResult<()> {
        for row in held.contents.map(Held::rows).transpose()?.iter().flatten() {
            self.parts(held.key, row, false, each);
        }
        for change in held.changes.iter().copied().flatten() {
            self.parts(held.key, &change.row, true, each);
        }
        Ok(())
    }

    /// What a row that is held has of the rows of each table.
    fn parts(&self, key: &[u8], row: &[Value], is_kept: bool, each: &mut EachHeld<'_>) {
        for (table, held) in self.shape.tables.iter().enumerate() {
            let mut values = vec![None; held.wanted.len()];
            match &self.shape.grouping {
                None => {
                    let own = row.get(held.slots.clone()).unwrap_or_default();
                    let known = values.iter_mut().zip(own).zip(&held.wanted);
                    for ((to, value), _) in known.filter(|(_, wanted)| **wanted) {
                        *to = Some(value.clone());
                    }
                }
                Some(grouping) => {
                    for (expr, value) in grouping.keys.iter().zip(row) {
                        if let ExprKind::Column(slot) = expr.kind
                            && held.slots.contains(&slot)
                            && let Some(to) = values.get_mut(slot - held.slots.start)
                        {
                            *to = Some(value.clone());
                        }
                    }
                }
            }
            each(&HeldRow {
                key,
                table,
                values: &values,
                is_kept,
            });
        }
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
