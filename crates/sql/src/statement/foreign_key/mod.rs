//! Foreign keys: a child row needs its parent, a parent row takes its children along or stays.
//!
//! The parent row is read with [`ReadMode::Share`], so deleting it concurrently conflicts; the
//! children are found through the index every foreign key has. Checks run after the row itself
//! was written: a row that refers to itself finds itself.

mod describe;
mod find;
mod links;

pub(crate) use describe::describe;
pub(crate) use links::{Access, access};
pub(super) use links::{Links, leads, links};

use std::collections::BTreeMap;

use manxdb_txn::ReadMode;

use super::owners::subjects;
use super::rows::RowWriter;
use crate::catalog::{ForeignKeyAction, ROWS, Table, TableId};
use crate::error::{SqlError, SqlResult};
use crate::statement::ExecContext;
use crate::types::{Row, Value};
use describe::{has_children, no_parent};
use find::Wanted;
use links::{Child, Parent};

/// Cascades deeper than this are refused, as in MySQL.
const DEPTH_MAX: usize = 15;

/// Checks and cascades of one statement.
pub(super) struct ForeignKeys<'a> {
    pub(super) context: &'a ExecContext<'a>,
    pub(super) links: &'a BTreeMap<TableId, Links>,
}

impl ForeignKeys<'_> {
    fn links(&self, table: TableId) -> Option<&Links> {
        self.links
            .get(&table)
            .filter(|_| self.context.foreign_key_checks)
    }

    /// Whether some table here refers to itself, so that a cascade may reach the rows of the
    /// statement.
    pub(super) fn refers_to_itself(&self) -> bool {
        self.links.values().any(|links| {
            links
                .children
                .iter()
                .any(|child| child.table == links.table.id)
        })
    }

    /// Whether a foreign key refers to `table`, checked now or not.
    pub(super) fn is_parent(&self, table: TableId) -> bool {
        self.links
            .get(&table)
            .is_some_and(|links| !links.children.is_empty())
    }

    fn writer<'b>(&'b self, table: &'b Table) -> RowWriter<'b> {
        RowWriter {
            txn: self.context.txn,
            table,
            tz: &self.context.eval.time_zone,
            owners: self.context.owners,
        }
    }

    /// Every parent of `row` exists. With `old`, only foreign keys whose values changed.
    ///
    /// # Errors
    /// 1452.
    pub(super) fn check_parents(
        &self,
        table: TableId,
        old: Option<&[Value]>,
        row: &[Value],
    ) -> SqlResult<()> {
        let Some(links) = self.links(table) else {
            return Ok(());
        };
        for parent in &links.parents {
            let Some(wanted) = values(row, &parent.key.columns) else {
                continue;
            };
            let before = old.and_then(|old| values(old, &parent.key.columns));
            if before.as_ref() == Some(&wanted) {
                continue;
            }
            let found = match &parent.table {
                Some(parent_table) => {
                    let found = self.find(
                        parent_table,
                        &parent.columns,
                        &parent.access,
                        &wanted,
                        Wanted::One,
                    )?;
                    self.refuse_forgotten(parent, parent_table, &wanted, &found)?;
                    !found.is_empty()
                }
                None => false,
            };
            if !found {
                return Err(no_parent(&links.table, &parent.key));
            }
        }
        Ok(())
    }

    /// Nothing new becomes the row of a person who is being forgotten.
    fn refuse_forgotten(
        &self,
        parent: &Parent,
        table: &Table,
        wanted: &[Value],
        found: &[Vec<u8>],
    ) -> SqlResult<()> {
        if !table.data_subject || parent.key.edge.is_none() {
            return Ok(());
        }
        let txn = self.context.txn;
        match found {
            [suffix] => subjects::may_gain(txn, table, suffix, true),
            _ if parent.columns == table.primary_key => {
                let mut suffix = Vec::new();
                self.encode((table, ROWS), &parent.columns, wanted, &mut suffix)?;
                subjects::may_gain(txn, table, &suffix, false)
            }
            _ => Ok(()),
        }
    }

    /// What a deleted row means for rows that refer to it. Call after deleting it.
    ///
    /// # Errors
    /// 1451; 3008 past the depth limit.
    pub(super) fn after_delete(
        &self,
        table: TableId,
        row: &[Value],
        depth: usize,
    ) -> SqlResult<()> {
        self.after_change(table, row, None, depth)
    }

    /// What a changed row means for rows that refer to it. Call after writing it.
    ///
    /// # Errors
    /// As [`ForeignKeys::after_delete`].
    pub(super) fn after_update(
        &self,
        table: TableId,
        old: &[Value],
        new: &[Value],
        depth: usize,
    ) -> SqlResult<()> {
        self.after_change(table, old, Some(new), depth)
    }

    /// `new` is the changed row, or nothing for a deleted one.
    fn after_change(
        &self,
        table: TableId,
        old: &[Value],
        new: Option<&[Value]>,
        depth: usize,
    ) -> SqlResult<()> {
        let Some(links) = self.links(table) else {
            return Ok(());
        };
        for child in &links.children {
            let Some(referenced) = values(old, &child.columns) else {
                continue;
            };
            let now = new.and_then(|new| values(new, &child.columns));
            if now.as_ref() == Some(&referenced) {
                continue;
            }
            let Some(child_links) = self.links(child.table) else {
                continue;
            };
            let child_table = &child_links.table;
            let found = self.find(
                child_table,
                &child.key.columns,
                &child.access,
                &referenced,
                Wanted::All,
            )?;
            if found.is_empty() {
                continue;
            }
            if depth >= DEPTH_MAX {
                return Err(SqlError::new(
                    3008,
                    "HY000",
                    format!("Foreign key cascade delete/update exceeds max depth of {DEPTH_MAX}."),
                ));
            }
            for suffix in found {
                self.act(child, child_links, &suffix, new, now.as_deref(), depth + 1)?;
            }
        }
        Ok(())
    }

    /// Does to one child row what its foreign key says.
    fn act(
        &self,
        child: &Child,
        links: &Links,
        suffix: &[u8],
        new_parent: Option<&[Value]>,
        new_values: Option<&[Value]>,
        depth: usize,
    ) -> SqlResult<()> {
        let table: &Table = &links.table;
        let writer = self.writer(table);
        let Some(row) = writer.read(suffix, ReadMode::Update)? else {
            return Ok(());
        };
        let action = if new_parent.is_some() {
            child.key.on_update
        } else {
            child.key.on_delete
        };
        match action {
            ForeignKeyAction::NoAction | ForeignKeyAction::Restrict => {
                Err(has_children(table, &child.key))
            }
            ForeignKeyAction::Cascade if new_parent.is_none() => {
                writer.delete(&row, suffix)?;
                self.after_delete(table.id, &row, depth)
            }
            ForeignKeyAction::Cascade | ForeignKeyAction::SetNull => {
                let follows = action == ForeignKeyAction::Cascade;
                let mut changed = row.clone();
                refer_to(&mut changed, child, new_values.filter(|_| follows));
                let eval = self.context.eval;
                links.computed.fill(eval, table, &mut changed, 1)?;
                writer.update(&row, suffix, &changed)?;
                // Another foreign key may share a column: its parent must be there too.
                self.check_parents(table.id, Some(&row), &changed)?;
                self.after_update(table.id, &row, &changed, depth)
            }
        }
    }
}

/// The values of `columns`, or `None` when one is NULL.
fn values(row: &[Value], columns: &[usize]) -> Option<Vec<Value>> {
    columns
        .iter()
        .map(|&at| row.get(at).filter(|value| !value.is_null()).cloned())
        .collect()
}

/// Makes a child row refer to the parent with these `values`, or to none.
fn refer_to(row: &mut Row, child: &Child, values: Option<&[Value]>) {
    for (place, &at) in child.key.columns.iter().enumerate() {
        let value = values.and_then(|values| values.get(place)).cloned();
        if let Some(slot) = row.get_mut(at) {
            *slot = value.unwrap_or(Value::Null);
        }
    }
}
