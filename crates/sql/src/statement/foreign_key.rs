//! Foreign keys: a child row needs its parent, a parent row takes its children along or stays.
//!
//! The parent row is read with [`ReadMode::Share`], so deleting it concurrently conflicts; the
//! children are found through the index every foreign key has. Checks run after the row itself
//! was written: a row that refers to itself finds itself.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::ReadMode;
use manxdb_txn::transaction::rest_behind;

use super::generated::Computed;
use super::rows::RowWriter;
use super::target::position;
use crate::binder::BindContext;
use crate::catalog::{Catalog, ForeignKey, ForeignKeyAction, Index, Table, TableId};
use crate::encoding;
use crate::error::{SqlError, SqlResult};
use crate::executor::ExecContext;
use crate::types::{Row, Value};

/// Cascades deeper than this are refused, as in MySQL.
const DEPTH_MAX: usize = 15;
/// Child entries read at a time.
const PAGE: usize = 256;

/// The foreign keys of one table, both ways.
#[derive(Debug, Clone)]
pub(super) struct Links {
    pub(super) table: Arc<Table>,
    /// Its generated columns: a cascade may change what they read.
    computed: Computed,
    /// Its own foreign keys.
    pub(super) parents: Vec<Parent>,
    /// Foreign keys of others, or of itself, that refer to it.
    children: Vec<Child>,
}

/// A foreign key seen from the child.
#[derive(Debug, Clone)]
pub(super) struct Parent {
    key: ForeignKey,
    /// `None`: created under `foreign_key_checks = 0` and never made.
    pub(super) table: Option<Arc<Table>>,
    /// Referenced positions in the parent.
    columns: Vec<usize>,
    access: Access,
}

/// A foreign key seen from the parent.
#[derive(Debug, Clone)]
struct Child {
    key: ForeignKey,
    table: TableId,
    /// Referenced positions in the parent.
    columns: Vec<usize>,
    access: Access,
}

/// How rows are found by the values of a foreign key.
#[derive(Debug, Clone)]
enum Access {
    /// The whole primary key: one row.
    Row,
    /// Leading columns of the primary key.
    RowPrefix,
    /// Leading columns of an index.
    Index(Box<Index>),
    /// No index: created without one under `foreign_key_checks = 0`.
    None,
}

fn access(table: &Table, columns: &[usize]) -> Access {
    if table.primary_key == columns {
        return Access::Row;
    }
    if table.primary_key.starts_with(columns) {
        return Access::RowPrefix;
    }
    table
        .indexes
        .iter()
        .find(|index| index.state.is_readable() && leads(index, columns))
        .map_or(Access::None, |index| Access::Index(Box::new(index.clone())))
}

/// Whether the first columns of `index` are exactly `columns`, whole.
pub(super) fn leads(index: &Index, columns: &[usize]) -> bool {
    index.columns.len() >= columns.len()
        && index
            .columns
            .iter()
            .zip(columns)
            .all(|(part, column)| part.column == *column && part.prefix.is_none())
}

/// Links of `table` and of every table its deletions and updates may reach.
///
/// # Errors
/// What binding generated columns meets.
pub(super) fn links(
    context: &BindContext<'_>,
    table: &Arc<Table>,
) -> SqlResult<BTreeMap<TableId, Links>> {
    let mut all = BTreeMap::new();
    // No foreign key leads to or from a temporary table, whatever name it hides.
    let catalog = context.catalog.stored();
    let mut open = vec![Arc::clone(table)];
    while let Some(next) = open.pop() {
        if all.contains_key(&next.id) {
            continue;
        }
        let children = children_of(catalog, &next);
        for (_, child) in &children {
            open.push(Arc::clone(child));
        }
        let links = Links {
            parents: parents_of(catalog, &next),
            children: children.into_iter().map(|(child, _)| child).collect(),
            computed: Computed::plan(context, &next)?,
            table: Arc::clone(&next),
        };
        all.insert(next.id, links);
    }
    Ok(all)
}

fn parents_of(catalog: &Catalog, table: &Arc<Table>) -> Vec<Parent> {
    table
        .foreign_keys
        .iter()
        .filter(|key| key.enforced)
        .map(|key| {
            let parent = catalog
                .table(&key.ref_database, &key.ref_table)
                .ok()
                .cloned();
            let columns: Vec<usize> = parent
                .iter()
                .flat_map(|parent| {
                    key.ref_columns
                        .iter()
                        .filter_map(|name| position(parent, name))
                })
                .collect();
            let access = parent
                .as_ref()
                .map_or(Access::None, |parent| access(parent, &columns));
            Parent {
                key: key.clone(),
                table: parent,
                columns,
                access,
            }
        })
        .collect()
}

fn children_of(catalog: &Catalog, table: &Arc<Table>) -> Vec<(Child, Arc<Table>)> {
    let refers = |key: &ForeignKey| {
        key.enforced
            && key.ref_database.eq_ignore_ascii_case(&table.database)
            && key.ref_table.to_lowercase() == table.name.to_lowercase()
    };
    let mut all = Vec::new();
    if table.temporary {
        return all;
    }
    for database in catalog.databases.values() {
        for child in database.tables.values() {
            for key in child.foreign_keys.iter().filter(|key| refers(key)) {
                let columns: Vec<usize> = key
                    .ref_columns
                    .iter()
                    .filter_map(|name| position(table, name))
                    .collect();
                let link = Child {
                    key: key.clone(),
                    table: child.id,
                    columns,
                    access: access(child, &key.columns),
                };
                all.push((link, Arc::clone(child)));
            }
        }
    }
    all
}

/// `CONSTRAINT … FOREIGN KEY …`, as SHOW CREATE TABLE and errors 1451 and 1452 word it.
pub(crate) fn describe(table: &Table, key: &ForeignKey) -> String {
    let quote = |name: &str| format!("`{}`", name.replace('`', "``"));
    let columns: Vec<String> = key
        .columns
        .iter()
        .filter_map(|&at| table.columns.get(at))
        .map(|column| quote(&column.name))
        .collect();
    let referenced: Vec<String> = key.ref_columns.iter().map(|name| quote(name)).collect();
    let parent = if key.ref_database.eq_ignore_ascii_case(&table.database) {
        quote(&key.ref_table)
    } else {
        format!("{}.{}", quote(&key.ref_database), quote(&key.ref_table))
    };
    let mut text = format!(
        "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {parent} ({})",
        quote(&key.name),
        columns.join(", "),
        referenced.join(", ")
    );
    for (event, action) in [("DELETE", key.on_delete), ("UPDATE", key.on_update)] {
        let word = match action {
            ForeignKeyAction::NoAction => continue,
            ForeignKeyAction::Restrict => "RESTRICT",
            ForeignKeyAction::Cascade => "CASCADE",
            ForeignKeyAction::SetNull => "SET NULL",
        };
        let _ = write!(text, " ON {event} {word}");
    }
    text
}

fn no_parent(table: &Table, key: &ForeignKey) -> SqlError {
    SqlError::new(
        1452,
        "23000",
        format!(
            "Cannot add or update a child row: a foreign key constraint fails (`{}`.`{}`, {})",
            table.database,
            table.name,
            describe(table, key)
        ),
    )
}

fn has_children(table: &Table, key: &ForeignKey) -> SqlError {
    SqlError::new(
        1451,
        "23000",
        format!(
            "Cannot delete or update a parent row: a foreign key constraint fails (`{}`.`{}`, {})",
            table.database,
            table.name,
            describe(table, key)
        ),
    )
}

/// The values of `columns`, or `None` when one is NULL.
fn values(row: &[Value], columns: &[usize]) -> Option<Vec<Value>> {
    columns
        .iter()
        .map(|&at| row.get(at).filter(|value| !value.is_null()).cloned())
        .collect()
}

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
                    let found =
                        self.find(parent_table, &parent.columns, &parent.access, &wanted, None)?;
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

    /// Row key suffixes of rows of `table` whose `columns` are `wanted`: the first one with
    /// [`ReadMode::Share`] when `after` is `None`, else a page of them behind `after`.
    fn find(
        &self,
        table: &Table,
        columns: &[usize],
        access: &Access,
        wanted: &[Value],
        all: Option<()>,
    ) -> SqlResult<Vec<Vec<u8>>> {
        let tz = &self.context.eval.time_zone;
        let mode = if all.is_some() {
            ReadMode::Update
        } else {
            ReadMode::Share
        };
        let mut prefix = match access {
            Access::Row | Access::RowPrefix => encoding::index_prefix(table, 0),
            Access::Index(index) => encoding::index_prefix(table, index.id.0),
            Access::None => {
                return Err(SqlError::not_supported("a foreign key without an index"));
            }
        };
        let row_prefix = matches!(access, Access::Row | Access::RowPrefix);
        let skipped = prefix.len();
        for (&at, value) in columns.iter().zip(wanted) {
            let column = table
                .columns
                .get(at)
                .ok_or_else(|| SqlError::internal("a foreign key names no column"))?;
            encoding::encode_key_column(value, &column.ty, None, tz, &mut prefix)?;
        }
        if matches!(access, Access::Row) {
            let found = self.context.txn.get(&prefix, mode)?;
            let suffix = prefix.get(skipped..).unwrap_or_default().to_vec();
            return Ok(found.map(|_| suffix).into_iter().collect());
        }
        let limit = if all.is_some() { PAGE } else { 1 };
        let mut range = KeyRange::prefix(&prefix);
        let mut found = Vec::new();
        loop {
            let page = self
                .context
                .txn
                .scan(&range, Direction::Forward, limit, mode)?;
            let last = page.last().map(|(key, _)| key.clone());
            let full = page.len() == limit;
            found.extend(page.into_iter().map(|(key, value)| {
                if row_prefix {
                    key.get(skipped..).unwrap_or_default().to_vec()
                } else {
                    value
                }
            }));
            match last {
                Some(last) if full && all.is_some() => {
                    self.context.waiter.check()?;
                    range = rest_behind(&range, &last, Direction::Forward);
                }
                _ => return Ok(found),
            }
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
                Some(()),
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
                let mut changed: Row = row.clone();
                for (place, &at) in child.key.columns.iter().enumerate() {
                    let value = match (action, new_values) {
                        (ForeignKeyAction::Cascade, Some(values)) => values.get(place).cloned(),
                        _ => None,
                    };
                    if let Some(slot) = changed.get_mut(at) {
                        *slot = value.unwrap_or(Value::Null);
                    }
                }
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
