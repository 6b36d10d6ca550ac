//! The foreign keys of a table, both ways, with how the rows at the other end are found.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::binder::BindContext;
use crate::catalog::{Catalog, ForeignKey, Index, IndexId, ROWS, Table, TableId};
use crate::error::SqlResult;
use crate::statement::generated::Computed;
use crate::statement::target::position;

/// The foreign keys of one table, both ways.
#[derive(Debug, Clone)]
pub(in crate::statement) struct Links {
    pub(in crate::statement) table: Arc<Table>,
    /// Its generated columns: a cascade may change what they read.
    pub(super) computed: Computed,
    /// Its own foreign keys.
    pub(in crate::statement) parents: Vec<Parent>,
    /// Foreign keys of others, or of itself, that refer to it.
    pub(super) children: Vec<Child>,
}

/// A foreign key seen from the child.
#[derive(Debug, Clone)]
pub(in crate::statement) struct Parent {
    pub(super) key: ForeignKey,
    /// `None`: created under `foreign_key_checks = 0` and never made.
    pub(in crate::statement) table: Option<Arc<Table>>,
    /// Referenced positions in the parent.
    pub(super) columns: Vec<usize>,
    pub(super) access: Access,
}

/// A foreign key seen from the parent.
#[derive(Debug, Clone)]
pub(super) struct Child {
    pub(super) key: ForeignKey,
    pub(super) table: TableId,
    /// Referenced positions in the parent.
    pub(super) columns: Vec<usize>,
    pub(super) access: Access,
}

/// How rows are found by the values of a foreign key.
#[derive(Debug, Clone)]
pub(crate) enum Access {
    /// The whole primary key: one row.
    Row,
    /// Leading columns of the primary key.
    RowPrefix,
    /// Leading columns of an index.
    Index(Box<Index>),
    /// No index: created without one under `foreign_key_checks = 0`.
    None,
}

impl Access {
    /// The key of the table that rows are found by.
    pub(crate) fn key(&self) -> Option<IndexId> {
        match self {
            Access::Row | Access::RowPrefix => Some(ROWS),
            Access::Index(index) => Some(index.id),
            Access::None => None,
        }
    }
}

/// Links of `table` and of every table its deletions and updates may reach.
///
/// # Errors
/// What binding generated columns meets.
pub(in crate::statement) fn links(
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

/// How rows of `table` are found by the values of `columns`.
pub(crate) fn access(table: &Table, columns: &[usize]) -> Access {
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
pub(in crate::statement) fn leads(index: &Index, columns: &[usize]) -> bool {
    index.columns.len() >= columns.len()
        && index
            .columns
            .iter()
            .zip(columns)
            .all(|(part, column)| part.column == *column && part.prefix.is_none())
}
