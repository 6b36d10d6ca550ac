//! Breadth first from a person's row. Each edge is followed once from each row that is found: rows of
//! other tables by the index every link has, those that OWNS and ACCESSES lead to by their primary key.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use manxdb_ownership::{EdgeKind, Link, OwnershipGraph, TableName, TableShape};

use super::{shown, unknown};
use crate::catalog::{Catalog, Table, ownership};
use crate::error::{SqlError, SqlResult};
use crate::parser::{parse, quote_name};
use crate::session::session::Session;
use crate::types::{Row, SqlMode, Value};

/// Values that one query asks for.
const BATCH: usize = 64;
/// What a value takes beside its text, bytes, about.
const VALUE_BYTES: usize = 48;

/// Rows of one table.
pub(super) struct FoundTable {
    pub(super) table: Arc<Table>,
    pub(super) shape: TableShape,
    /// Positions, in the table, of the columns that rows here have.
    pub(super) visible: Vec<usize>,
    pub(super) rows: Vec<FoundRow>,
    /// Rows by what they are known by.
    known: BTreeMap<String, usize>,
}

/// A row with why it is the person's.
pub(super) struct FoundRow {
    /// Values of the visible columns.
    pub(super) values: Row,
    pub(super) reasons: Vec<Reason>,
    is_owned: bool,
}

/// One edge by which a row was reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reason {
    /// `user_id OWNED_BY users`.
    pub(super) text: String,
    /// Columns of the link, in the table that has it.
    pub(super) columns: Vec<usize>,
    /// The row of another table that has the link: its table's and its own number.
    pub(super) via: Option<(usize, usize)>,
}

/// A row to go on from: its table's and its own number, and what it is to the person there.
type Open = (usize, usize, bool);

/// What has been found, and what is to be looked at.
pub(super) struct Walk<'a> {
    catalog: &'a Catalog,
    graph: &'a OwnershipGraph,
    tables: Vec<FoundTable>,
    open: VecDeque<Open>,
    memory_left: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(catalog: &'a Catalog, graph: &'a OwnershipGraph, memory: usize) -> Self {
        Self {
            catalog,
            graph,
            tables: Vec::new(),
            open: VecDeque::new(),
            memory_left: memory,
        }
    }

    /// All that is found, the person first, then by the order in which tables were reached.
    pub(super) fn into_tables(self) -> Vec<FoundTable> {
        assert!(
            self.open.is_empty(),
            "a walk ends when nothing is left to look at"
        );
        self.tables
    }

    /// Finds the person, and everything from there: first what is owned, then what else there is
    /// access to.
    ///
    /// # Errors
    /// 51004 when there is no such row; 1038 when a person has more than a statement may hold.
    pub(super) fn walk_from_person(
        &mut self,
        session: &mut Session,
        person: &Table,
        id: &[Value],
    ) -> SqlResult<()> {
        let at = self.table(&ownership::name(person))?;
        let rows = self.ask(session, at, &person.primary_key, &[id.to_vec()])?;
        let [row] = <[Row; 1]>::try_from(rows).map_err(|_| {
            let name = &person.name;
            unknown(format!("'{name}' has no row with the key {}", shown(id)))
        })?;
        let reason = Reason {
            text: "DATA_SUBJECT".to_string(),
            columns: person.primary_key.clone(),
            via: None,
        };
        self.add(at, row, 0, &reason, true)?;
        self.follow(session, true)?;
        // Owned rows give access along other edges than ownership.
        for (table, found) in self.tables.iter().enumerate() {
            self.open
                .extend((0..found.rows.len()).map(|row| (table, row, true)));
        }
        self.follow(session, false)
    }

    /// Follows edges until nothing new is found. With `owning`, those of ownership only; else, of owned
    /// rows, the others, and of rows that there is access to, all.
    fn follow(&mut self, session: &mut Session, owning: bool) -> SqlResult<()> {
        while let Some((table, _, is_owned)) = self.open.front().copied() {
            // Rows of one table and standing go together.
            let mut rows = Vec::new();
            while let Some(&(other, row, standing)) = self.open.front() {
                if (other, standing) != (table, is_owned) || rows.len() == BATCH {
                    break;
                }
                rows.push(row);
                self.open.pop_front();
            }
            let wanted = |kind: EdgeKind| match (owning, is_owned) {
                (true, _) => kind.gives_ownership(),
                (false, true) => !kind.gives_ownership(),
                (false, false) => true,
            };
            self.walk_to_children(session, table, &rows, &wanted, owning)?;
            self.walk_to_targets(session, table, &rows, &wanted, owning)?;
        }
        Ok(())
    }

    /// Rows of tables whose OWNED_BY or ACCESSED_BY leads to `rows`.
    fn walk_to_children(
        &mut self,
        session: &mut Session,
        table: usize,
        rows: &[usize],
        wanted: &dyn Fn(EdgeKind) -> bool,
        is_owned: bool,
    ) -> SqlResult<()> {
        let name = self.found(table)?.shape.name.clone();
        let graph = self.graph;
        for child in graph.tables() {
            for link in &child.links {
                let Some(kind) = link.edge.map(|edge| edge.kind) else {
                    continue;
                };
                if link.target != name || kind.leads_to_target() || !wanted(kind) {
                    continue;
                }
                let columns = self.found(table)?.positions(&link.target_columns)?;
                let keys = self.values(table, rows, &columns)?;
                let at = self.table(&child.name)?;
                let reason = Reason {
                    text: reason(child, link, kind),
                    columns: link.columns.clone(),
                    via: None,
                };
                self.add_all(
                    session,
                    at,
                    &link.columns,
                    &keys,
                    &|_| reason.clone(),
                    is_owned,
                )?;
            }
        }
        Ok(())
    }

    /// Rows that OWNS or ACCESSES of `rows` leads to.
    fn walk_to_targets(
        &mut self,
        session: &mut Session,
        table: usize,
        rows: &[usize],
        wanted: &dyn Fn(EdgeKind) -> bool,
        is_owned: bool,
    ) -> SqlResult<()> {
        let shape = self.found(table)?.shape.clone();
        for link in &shape.links {
            let Some(kind) = link.edge.map(|edge| edge.kind) else {
                continue;
            };
            if !kind.leads_to_target() || !wanted(kind) || self.graph.table(&link.target).is_none()
            {
                continue;
            }
            let at = self.table(&link.target)?;
            let columns = self.found(at)?.positions(&link.target_columns)?;
            let text = reason(&shape, link, kind);
            for row in rows {
                let keys = self.values(table, &[*row], &link.columns)?;
                let reason = Reason {
                    text: text.clone(),
                    columns: link.columns.clone(),
                    via: Some((table, *row)),
                };
                self.add_all(session, at, &columns, &keys, &|_| reason.clone(), is_owned)?;
            }
        }
        Ok(())
    }

    /// Adds the rows of a table whose `columns` have the values of one of `keys`.
    fn add_all(
        &mut self,
        session: &mut Session,
        at: usize,
        columns: &[usize],
        keys: &[Vec<Value>],
        reason: &dyn Fn(&Row) -> Reason,
        is_owned: bool,
    ) -> SqlResult<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut alike: BTreeMap<String, usize> = BTreeMap::new();
        for row in self.ask(session, at, columns, keys)? {
            // Rows without a key of their own are told apart by how many there are: whichever way one
            // of several that are alike is reached, all are.
            let ordinal = alike.entry(format!("{row:?}")).or_default();
            let this = *ordinal;
            *ordinal += 1;
            let reason = reason(&row);
            self.add(at, row, this, &reason, is_owned)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        at: usize,
        values: Row,
        ordinal: usize,
        reason: &Reason,
        is_owned: bool,
    ) -> SqlResult<()> {
        let found = self.tables.get_mut(at).ok_or_else(lost)?;
        let key = found.key(&values, ordinal);
        if let Some(row) = found
            .known
            .get(&key)
            .and_then(|row| found.rows.get_mut(*row))
        {
            if !row.reasons.contains(reason) {
                row.reasons.push(reason.clone());
            }
            return Ok(());
        }
        let size = size(&values) + key.len();
        self.memory_left = self.memory_left.checked_sub(size).ok_or_else(|| {
            let text = "Out of memory: a person's rows take more than a statement may hold; raise \
                        statement_memory_mb";
            SqlError::new(1038, "HY001", text)
        })?;
        let row = found.rows.len();
        found.known.insert(key, row);
        found.rows.push(FoundRow {
            values,
            reasons: vec![reason.clone()],
            is_owned,
        });
        self.open.push_back((at, row, is_owned));
        Ok(())
    }

    /// The number of a table, reached now or before.
    fn table(&mut self, name: &TableName) -> SqlResult<usize> {
        let mut known = self.tables.iter();
        if let Some(at) = known.position(|found| found.shape.name == *name) {
            return Ok(at);
        }
        let table = Arc::clone(self.catalog.table(&name.database, &name.name)?);
        let shape = self.graph.table(name).cloned().ok_or_else(lost)?;
        self.tables.push(FoundTable {
            visible: table.visible_columns().map(|(at, _)| at).collect(),
            table,
            shape,
            rows: Vec::new(),
            known: BTreeMap::new(),
        });
        Ok(self.tables.len() - 1)
    }

    fn found(&self, at: usize) -> SqlResult<&FoundTable> {
        self.tables.get(at).ok_or_else(lost)
    }

    /// The values that `rows` have in `columns`, each once; rows with a NULL among them lead nowhere.
    fn values(&self, at: usize, rows: &[usize], columns: &[usize]) -> SqlResult<Vec<Vec<Value>>> {
        let found = self.found(at)?;
        let mut all: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for row in rows.iter().filter_map(|row| found.rows.get(*row)) {
            let values: Option<Vec<Value>> = columns
                .iter()
                .map(|column| {
                    found
                        .value(row, *column)
                        .filter(|value| !value.is_null())
                        .cloned()
                })
                .collect();
            if let Some(values) = values {
                all.insert(format!("{values:?}"), values);
            }
        }
        Ok(all.into_values().collect())
    }

    /// The rows of a table whose `columns` have the values of one of `keys`.
    fn ask(
        &self,
        session: &mut Session,
        at: usize,
        columns: &[usize],
        keys: &[Vec<Value>],
    ) -> SqlResult<Vec<Row>> {
        let found = self.found(at)?;
        let mut rows = Vec::new();
        let names: Vec<String> = columns.iter().map(|at| found.column(*at)).collect();
        match names.as_slice() {
            [column] => {
                for keys in keys.chunks(BATCH) {
                    let places = vec!["?"; keys.len()].join(", ");
                    let condition = format!("{column} IN ({places})");
                    let keys: Vec<Value> = keys.iter().flatten().cloned().collect();
                    rows.extend(session.rows_of(&found.query(&condition), &keys)?);
                }
            }
            columns => {
                let condition: Vec<String> = columns
                    .iter()
                    .map(|column| format!("{column} = ?"))
                    .collect();
                let query = found.query(&condition.join(" AND "));
                for key in keys {
                    rows.extend(session.rows_of(&query, key)?);
                }
            }
        }
        Ok(rows)
    }
}

impl Session {
    fn rows_of(&mut self, query: &str, params: &[Value]) -> SqlResult<Vec<Row>> {
        let mut parsed = parse(query, SqlMode::default())?;
        let parsed = parsed.pop().ok_or_else(lost)?;
        let mut compiled = self.compile(parsed)?;
        // sql_select_limit is about what clients ask for.
        compiled.unlimited = true;
        self.collect(&Arc::new(compiled), params)
    }
}

impl FoundTable {
    fn column(&self, at: usize) -> String {
        let column = self.table.columns.get(at);
        quote_name(column.map_or("", |column| column.name.as_str()))
    }

    fn query(&self, condition: &str) -> String {
        let columns: Vec<String> = self.visible.iter().map(|at| self.column(*at)).collect();
        format!(
            "SELECT {} FROM {}.{} WHERE {condition}",
            columns.join(", "),
            quote_name(&self.table.database),
            quote_name(&self.table.name)
        )
    }

    /// The value of a row in a column of the table.
    pub(super) fn value<'r>(&self, row: &'r FoundRow, column: usize) -> Option<&'r Value> {
        let place = self.visible.iter().position(|at| *at == column)?;
        row.values.get(place)
    }

    fn positions(&self, names: &[String]) -> SqlResult<Vec<usize>> {
        let places = names.iter().map(|name| self.shape.position(name));
        places.collect::<Option<Vec<_>>>().ok_or_else(lost)
    }

    /// What a row is known by: its primary key, or all of it with its number among those alike.
    fn key(&self, values: &Row, ordinal: usize) -> String {
        if self.table.primary_key.is_empty() {
            return format!("{ordinal} {values:?}");
        }
        let key: Vec<Option<&Value>> = self
            .table
            .primary_key
            .iter()
            .map(|column| {
                let place = self.visible.iter().position(|at| at == column)?;
                values.get(place)
            })
            .collect();
        format!("{key:?}")
    }
}

impl FoundRow {
    /// Whether it is the person's, not only shown to the person.
    pub(super) fn is_owned(&self) -> bool {
        self.is_owned
    }
}

/// `user_id OWNED_BY users`; `shares.file_id OWNS files`.
fn reason(shape: &TableShape, link: &Link, kind: EdgeKind) -> String {
    let columns = shape.columns_named(&link.columns);
    format!("{columns} {} {}", kind.word(), link.target)
}

/// About what a row takes.
fn size(values: &Row) -> usize {
    let each = values.iter().map(|value| {
        VALUE_BYTES
            + match value {
                Value::Text(text) => text.len(),
                Value::Bytes(bytes) => bytes.len(),
                Value::Json(json) => json.to_string().len(),
                _ => 0,
            }
    });
    each.sum()
}

fn lost() -> SqlError {
    SqlError::internal("a table of the ownership graph is not in the catalog")
}
