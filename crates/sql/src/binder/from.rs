//! FROM: tables, views, derived tables and joins.

use std::sync::Arc;

use sqlparser::ast;

use super::Binder;
use super::derived::alias_columns;
use super::generated::held_by_indexes;
use super::modify::ModifyTable;
use super::scope::{FrameColumn, column_expr, same_name};
use crate::catalog::Table;
use crate::error::{SqlError, SqlResult};
use crate::plan::TableRead;
use crate::plan::logical::{Group, Hints, Leaf, Source, Tree};

/// Tables of one join, MySQL's limit.
pub(super) const TABLES_MAX: usize = 61;
/// Slots and names handed out while a FROM clause is bound.
#[derive(Debug, Default)]
pub(crate) struct FromState {
    /// Next free slot.
    pub next: usize,
    /// Tables to be joined, those of merged views and derived tables counted singly.
    pub(super) leaves: usize,
    /// Aliases so far, with their database.
    names: Vec<(Option<String>, String)>,
    /// UPDATE and DELETE: every stored table gets a slot for its row key.
    pub with_keys: bool,
    /// Stored tables, for UPDATE and DELETE.
    pub tables: Vec<ModifyTable>,
    /// Columns that a LATERAL query may read: those of the tables before it, where there is one.
    pub(super) before: Vec<FrameColumn>,
}

/// A bound part of a FROM clause.
pub(super) struct Part {
    pub tree: Tree,
    pub columns: Vec<FrameColumn>,
}

impl Binder<'_> {
    /// Binds a FROM clause to a group and the columns it offers.
    pub(crate) fn bind_from(
        &mut self,
        from: &[ast::TableWithJoins],
        state: &mut FromState,
    ) -> SqlResult<(Group, Vec<FrameColumn>)> {
        let tables = from.iter().map(count_tables).sum::<usize>();
        if tables > TABLES_MAX {
            return Err(too_many_tables());
        }
        state.leaves += tables;
        let mut group = Group::default();
        let mut columns = Vec::new();
        let is_lateral = from.iter().any(joins_lateral);
        let before = state.before.len();
        for table in from {
            let part = self.bind_joined(table, state, false)?;
            group.absorb(part.tree);
            if is_lateral {
                state.before.extend_from_slice(&part.columns);
            }
            columns.extend(part.columns);
        }
        state.before.truncate(before);
        Ok((group, columns))
    }

    pub(super) fn bind_factor(
        &mut self,
        factor: &ast::TableFactor,
        state: &mut FromState,
        nullable: bool,
    ) -> SqlResult<Part> {
        match factor {
            ast::TableFactor::Table {
                name,
                alias,
                args: None,
                partitions,
                index_hints,
                ..
            } => {
                if !partitions.is_empty() {
                    return Err(SqlError::not_supported("PARTITION"));
                }
                let mut part = self.bind_table(name, alias.as_ref(), state, nullable)?;
                if let Tree::Leaf(leaf) = &mut part.tree {
                    leaf.hints = hints(index_hints);
                    check_hints(leaf)?;
                }
                Ok(part)
            }
            ast::TableFactor::Derived {
                lateral,
                subquery,
                alias,
                ..
            } => {
                let Some(alias) = alias else {
                    return Err(SqlError::new(
                        1248,
                        "42000",
                        "Every derived table must have its own alias",
                    ));
                };
                let names = alias_columns(alias);
                if *lateral {
                    return self.bind_lateral(subquery, &alias.name.value, &names, state);
                }
                let bound = self.bind_derived_query(subquery)?;
                state.claim(None, &alias.name.value)?;
                Self::add_derived(bound, &alias.name.value, &names, state, nullable)
            }
            ast::TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => self.bind_joined(table_with_joins, state, nullable),
            ast::TableFactor::JsonTable {
                json_expr,
                json_path,
                columns,
                alias,
            } => {
                let rows = (json_expr, &json_path.value);
                self.bind_json_table(rows, columns, alias.as_ref(), state)
            }
            other => Err(SqlError::not_supported(other.to_string())),
        }
    }

    fn bind_table(
        &mut self,
        name: &ast::ObjectName,
        alias: Option<&ast::TableAlias>,
        state: &mut FromState,
        nullable: bool,
    ) -> SqlResult<Part> {
        let (database, table) = split_name(name)?;
        let alias_name = alias.map_or(table.as_str(), |alias| alias.name.value.as_str());
        if database.is_none() {
            if let Some(part) = self.bind_cte(&table, alias_name, state, nullable)? {
                return Ok(part);
            }
            if table.eq_ignore_ascii_case("dual") {
                return Ok(Part {
                    tree: Tree::Group(Group::default()),
                    columns: Vec::new(),
                });
            }
        }
        let database = match &database {
            Some(database) => database.clone(),
            None => self.database()?.to_string(),
        };
        let catalog = match self.view_database {
            None => self.context.catalog,
            // The session's temporary tables mean nothing to a view.
            Some(_) => self.context.catalog.stored(),
        };
        state.claim(Some(&database), alias_name)?;
        if let Some(view) = catalog.view(&database, &table).cloned() {
            return self.bind_view(&view, alias_name, state, nullable);
        }
        match catalog.table(&database, &table) {
            Ok(found) => {
                let found = found.clone();
                self.add_stored(&found, alias_name, state)
            }
            Err(error) => match self.context.virtual_tables.table(&database, &table) {
                Some(found) => Ok(add_virtual(&found, &database, alias_name, state)),
                None if database.eq_ignore_ascii_case("information_schema") => Err(SqlError::new(
                    1109,
                    "42S02",
                    format!(
                        "Unknown table '{}' in information_schema",
                        table.to_uppercase()
                    ),
                )),
                None if is_computed(&database) => Err(SqlError::no_such_table(&database, &table)),
                None => Err(error),
            },
        }
    }

    /// Notes that the statement reads a stored table.
    pub(crate) fn note_table(&mut self, table: TableRead) {
        if !self.tables.iter().any(|(id, ..)| *id == table.0) {
            self.tables.push(table);
        }
    }

    fn add_stored(
        &mut self,
        table: &Arc<Table>,
        alias: &str,
        state: &mut FromState,
    ) -> SqlResult<Part> {
        if !state.with_keys {
            self.note_table((table.id, table.database.clone(), table.name.clone()));
        }
        let slots = state.take(table.columns.len());
        let key_slot = state.with_keys.then(|| state.take(1).start);
        if state.with_keys {
            state.tables.push(ModifyTable {
                id: table.id,
                database: table.database.clone(),
                table: table.name.clone(),
                alias: alias.to_string(),
                offset: slots.start,
                width: slots.len(),
            });
        }
        Ok(Part {
            columns: table_columns(table, &table.database, alias, slots.start),
            tree: Tree::Leaf(Leaf {
                source: Source::Stored(table.clone()),
                alias: alias.to_string(),
                slots,
                key_slot,
                hints: Hints::default(),
                held: held_by_indexes(self.context, table)?,
            }),
        })
    }

    /// The current database.
    pub(crate) fn database(&self) -> SqlResult<&str> {
        self.view_database
            .as_deref()
            .or(self.context.database)
            .ok_or_else(|| SqlError::new(1046, "3D000", "No database selected"))
    }
}

impl FromState {
    pub(super) fn take(&mut self, count: usize) -> std::ops::Range<usize> {
        let start = self.next;
        self.next += count;
        start..self.next
    }

    pub(super) fn claim(&mut self, database: Option<&str>, alias: &str) -> SqlResult<()> {
        let taken = self.names.iter().any(|(known_database, known)| {
            same_name(known, alias)
                && match (known_database, database) {
                    (Some(a), Some(b)) => same_name(a, b),
                    _ => true,
                }
        });
        if taken {
            return Err(SqlError::new(
                1066,
                "42000",
                format!("Not unique table/alias: '{alias}'"),
            ));
        }
        self.names
            .push((database.map(str::to_string), alias.to_string()));
        Ok(())
    }
}

/// Whether LATERAL stands in an item of a FROM clause.
fn joins_lateral(item: &ast::TableWithJoins) -> bool {
    let factors = item.joins.iter().map(|join| &join.relation);
    std::iter::once(&item.relation)
        .chain(factors)
        .any(is_lateral)
}

/// Whether LATERAL or JSON_TABLE stands in a part of a FROM clause.
pub(super) fn is_lateral(factor: &ast::TableFactor) -> bool {
    match factor {
        ast::TableFactor::Derived { lateral, .. } => *lateral,
        ast::TableFactor::JsonTable { .. } => true,
        ast::TableFactor::NestedJoin {
            table_with_joins, ..
        } => joins_lateral(table_with_joins),
        _ => false,
    }
}

/// Tables written in one item of a FROM clause; brackets are bounded by the parser.
fn count_tables(item: &ast::TableWithJoins) -> usize {
    let factors = item.joins.iter().map(|join| &join.relation);
    std::iter::once(&item.relation)
        .chain(factors)
        .map(|factor| match factor {
            ast::TableFactor::NestedJoin {
                table_with_joins, ..
            } => count_tables(table_with_joins),
            _ => 1,
        })
        .sum()
}

fn too_many_tables() -> SqlError {
    SqlError::new(
        1116,
        "HY000",
        format!("Too many tables; MySQL can only use {TABLES_MAX} tables in a join"),
    )
}

/// `table` or `database.table`.
pub(crate) fn split_name(name: &ast::ObjectName) -> SqlResult<(Option<String>, String)> {
    let mut parts = Vec::new();
    for part in &name.0 {
        match part.as_ident() {
            Some(ident) => parts.push(ident.value.clone()),
            None => return Err(SqlError::not_supported(name.to_string())),
        }
    }
    match (parts.pop(), parts.pop(), parts.is_empty()) {
        (Some(table), database, true) => Ok((database, table)),
        _ => Err(SqlError::syntax(format!("near '{name}'"))),
    }
}

fn hints(written: &[ast::TableIndexHints]) -> Hints {
    let mut hints = Hints::default();
    for hint in written {
        let names = hint.index_names.iter().map(|name| name.value.clone());
        match hint.hint_type {
            ast::TableIndexHintType::Use | ast::TableIndexHintType::Force => {
                hints.only.get_or_insert_default().extend(names);
            }
            ast::TableIndexHintType::Ignore => hints.never.extend(names),
        }
    }
    hints
}

/// Refuses hints that name an index which the table does not have.
fn check_hints(leaf: &Leaf) -> SqlResult<()> {
    let Source::Stored(table) = &leaf.source else {
        return Ok(());
    };
    let is_there = |name: &&String| {
        let has_primary_key = !table.primary_key.is_empty();
        (has_primary_key && name.eq_ignore_ascii_case("PRIMARY"))
            || table
                .indexes
                .iter()
                .any(|index| index.name.eq_ignore_ascii_case(name))
    };
    let mut named = leaf.hints.only.iter().flatten().chain(&leaf.hints.never);
    match named.find(|name| !is_there(name)) {
        Some(name) => Err(SqlError::no_such_key(name, &leaf.alias)),
        None => Ok(()),
    }
}

fn table_columns(
    table: &Arc<Table>,
    database: &str,
    alias: &str,
    start: usize,
) -> Vec<FrameColumn> {
    table
        .visible_columns()
        .map(|(at, column)| FrameColumn {
            database: Some(database.to_string()),
            table: Some(alias.to_string()),
            name: column.name.clone(),
            expr: column_expr(start + at, column.ty.clone(), !column.not_null),
            origin: Some((table.clone(), at)),
            hidden: false,
        })
        .collect()
}

fn add_virtual(table: &Arc<Table>, database: &str, alias: &str, state: &mut FromState) -> Part {
    let slots = state.take(table.columns.len());
    Part {
        columns: table_columns(table, database, alias, slots.start),
        tree: Tree::Leaf(Leaf {
            source: Source::Virtual(table.clone()),
            alias: alias.to_string(),
            slots,
            key_slot: None,
            hints: Hints::default(),
            held: Vec::new(),
        }),
    }
}

/// A database whose tables are all computed, and is there though the catalog does not know it.
fn is_computed(database: &str) -> bool {
    ["mysql", "performance_schema"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(database))
}
