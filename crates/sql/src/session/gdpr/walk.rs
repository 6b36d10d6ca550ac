//! Breadth first from a person's row. Each edge is followed once from each row that is found: rows of
//! other tables by the index every link has, those that OWNS and ACCESSES lead to by their primary key.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use manxdb_ownership::{EdgeKind, Link, OwnershipGraph, TableName, TableShape};

use super::found_rows::{Alike, FoundRow, FoundTable, Reason, key_columns};
use super::{shown, unknown};
use crate::catalog::{Catalog, Table, ownership};
use crate::error::{SqlError, SqlResult};
use crate::parser::parse;
use crate::session::compiled::Compiled;
use crate::session::session::Session;
use crate::types::{Row, SqlMode, Value};

/// Values that one query asks for.
const BATCH: usize = 64;

/// A row to go on from: its table's and its own number, and what it is to the person there.
type Open = (usize, usize, bool);

/// What a walk reads, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct WalkOptions {
    /// Only the columns that rows are known, found and deleted by, not all that may be shown.
    pub(super) only_keys: bool,
    /// Rows are locked.
    pub(super) locks: bool,
    /// Rows it may find; the walk fails past that, and says so by [`Walk::is_over`].
    pub(super) rows_max: usize,
}

/// What has been found, and what is to be looked at.
pub(super) struct Walk<'a> {
    catalog: &'a Catalog,
    graph: &'a OwnershipGraph,
    tables: Vec<FoundTable>,
    open: VecDeque<Open>,
    memory_left: usize,
    options: WalkOptions,
    /// Rows as they were found: each behind the one that led to it.
    order: Vec<(usize, usize)>,
    compiled: RefCell<BTreeMap<String, Arc<Compiled>>>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        catalog: &'a Catalog,
        graph: &'a OwnershipGraph,
        memory: usize,
        options: WalkOptions,
    ) -> Self {
        Self {
            catalog,
            graph,
            tables: Vec::new(),
            open: VecDeque::new(),
            memory_left: memory,
            options,
            order: Vec::new(),
            compiled: RefCell::default(),
        }
    }

    /// Rows as they were found.
    pub(super) fn order(&self) -> &[(usize, usize)] {
        &self.order
    }

    /// What is found so far.
    pub(super) fn tables(&self) -> &[FoundTable] {
        &self.tables
    }

    /// Whether more rows were found than may be.
    pub(super) fn is_over(&self) -> bool {
        self.order.len() > self.options.rows_max
    }

    /// From now on rows that are asked for are locked.
    pub(super) fn lock_rows(&mut self) {
        self.options.locks = true;
    }

    pub(super) fn found_row(&self, (at, row): (usize, usize)) -> SqlResult<&FoundRow> {
        self.found(at)?.rows.get(row).ok_or_else(lost)
    }

    /// Whether there is such a table.
    pub(super) fn knows(&self, name: &TableName) -> bool {
        self.graph.table(name).is_some()
    }

    /// The number of a table.
    pub(super) fn table_of(&mut self, table: &Table) -> SqlResult<usize> {
        self.table(&ownership::name(table))
    }

    /// Links of `kind` that lead to the table called `name`, with the tables that have them.
    pub(super) fn links_to(
        &self,
        name: &TableName,
        kind: &dyn Fn(EdgeKind) -> bool,
    ) -> Vec<(TableName, Link)> {
        let mut links = Vec::new();
        for table in self.graph.tables() {
            let of_table = table.links.iter().filter(|link| {
                link.target == *name && link.edge.is_some_and(|edge| kind(edge.kind))
            });
            links.extend(of_table.map(|link| (table.name.clone(), link.clone())));
        }
        links
    }

    /// Tables with an enforced foreign key to `table`, and its number among theirs.
    pub(super) fn referring(&self, table: &Table) -> Vec<(Arc<Table>, usize)> {
        let mut found = Vec::new();
        let databases = self.catalog.stored().databases.values();
        for child in databases.flat_map(|database| database.tables.values()) {
            for (number, key) in child.foreign_keys.iter().enumerate() {
                if key.enforced
                    && key.ref_database.eq_ignore_ascii_case(&table.database)
                    && key.ref_table.to_lowercase() == table.name.to_lowercase()
                {
                    found.push((Arc::clone(child), number));
                }
            }
        }
        found
    }

    /// Rows of a table whose `columns` have the values `key`, as found ones; new ones are not followed.
    pub(super) fn ask_found(
        &mut self,
        session: &mut Session,
        at: usize,
        columns: &[usize],
        key: Vec<Value>,
    ) -> SqlResult<Vec<(usize, usize)>> {
        let mut alike = Alike::default();
        let mut all = Vec::new();
        for values in self.ask(session, at, columns, &[key])? {
            let found = self.found(at)?;
            let this = alike.ordinal(found, &values);
            let known = found.known.get(&found.key(&values, this)).copied();
            let row = match known {
                Some(row) => row,
                None => self.insert(at, values, this)?,
            };
            all.push((at, row));
        }
        Ok(all)
    }

    /// Runs a statement.
    pub(super) fn run(
        &self,
        session: &mut Session,
        text: &str,
        params: &[Value],
    ) -> SqlResult<Vec<Row>> {
        let known = self.compiled.borrow().get(text).cloned();
        let compiled = match known {
            Some(compiled) => compiled,
            None => {
                let compiled = Arc::new(session.compile_whole(text)?);
                let mut all = self.compiled.borrow_mut();
                all.insert(text.to_string(), Arc::clone(&compiled));
                compiled
            }
        };
        session.collect(&compiled, params)
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
        let reason = Arc::new(Reason {
            text: "DATA_SUBJECT".to_string(),
            columns: person.primary_key.clone(),
            via: None,
            target: None,
        });
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
                let keys = self.found(table)?.distinct_values(rows, &columns);
                let at = self.table(&child.name)?;
                let reason = Arc::new(Reason {
                    text: reason(child, link, kind),
                    columns: link.columns.clone(),
                    via: None,
                    target: Some((table, columns)),
                });
                self.add_all(session, at, &link.columns, &keys, &reason, is_owned)?;
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
        let shape = Arc::clone(&self.found(table)?.shape);
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
                let keys = self.found(table)?.distinct_values(&[*row], &link.columns);
                let reason = Arc::new(Reason {
                    text: text.clone(),
                    columns: link.columns.clone(),
                    via: Some((table, *row)),
                    target: None,
                });
                self.add_all(session, at, &columns, &keys, &reason, is_owned)?;
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
        reason: &Arc<Reason>,
        is_owned: bool,
    ) -> SqlResult<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut alike = Alike::default();
        for row in self.ask(session, at, columns, keys)? {
            let this = alike.ordinal(self.found(at)?, &row);
            self.add(at, row, this, reason, is_owned)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        at: usize,
        values: Row,
        ordinal: usize,
        reason: &Arc<Reason>,
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
                row.reasons.push(Arc::clone(reason));
            }
            return Ok(());
        }
        let row = self.insert_known(at, values, key, vec![Arc::clone(reason)], is_owned)?;
        self.open.push_back((at, row, is_owned));
        Ok(())
    }

    /// A row that nothing leads to from the person; its number.
    fn insert(&mut self, at: usize, values: Row, ordinal: usize) -> SqlResult<usize> {
        let key = self.found(at)?.key(&values, ordinal);
        self.insert_known(at, values, key, Vec::new(), false)
    }

    /// A row that is known by `key`, and was not found before; its number.
    fn insert_known(
        &mut self,
        at: usize,
        values: Row,
        key: Vec<u8>,
        reasons: Vec<Arc<Reason>>,
        is_owned: bool,
    ) -> SqlResult<usize> {
        let found = self.tables.get_mut(at).ok_or_else(lost)?;
        let size = FoundRow::size_bytes(&values) + key.len();
        self.memory_left = self.memory_left.checked_sub(size).ok_or_else(|| {
            let text = "Out of memory: a person's rows take more than a statement may hold; raise \
                        statement_memory_mb";
            SqlError::new(1038, "HY001", text)
        })?;
        let row = found.rows.len();
        found.known.insert(key, row);
        found.rows.push(FoundRow {
            values,
            reasons,
            is_owned,
        });
        self.order.push((at, row));
        if self.is_over() {
            return Err(SqlError::internal("more rows were found than may be"));
        }
        Ok(row)
    }

    /// The number of a table, reached now or before.
    pub(super) fn table(&mut self, name: &TableName) -> SqlResult<usize> {
        let mut known = self.tables.iter();
        if let Some(at) = known.position(|found| found.shape.name == *name) {
            return Ok(at);
        }
        let table = Arc::clone(self.catalog.table(&name.database, &name.name)?);
        let shape = self.graph.table(name).cloned().ok_or_else(lost)?;
        let visible = if self.options.only_keys {
            key_columns(&table, &self.referring(&table))
        } else {
            table.visible_columns().map(|(at, _)| at).collect()
        };
        self.tables.push(FoundTable::new(table, shape, visible));
        Ok(self.tables.len() - 1)
    }

    pub(super) fn found(&self, at: usize) -> SqlResult<&FoundTable> {
        self.tables.get(at).ok_or_else(lost)
    }

    /// The rows of a table whose `columns` have the values of one of `keys`.
    pub(super) fn ask(
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
                    rows.extend(self.run(session, &self.query(found, &condition), &keys)?);
                }
            }
            columns => {
                let condition: Vec<String> = columns
                    .iter()
                    .map(|column| format!("{column} = ?"))
                    .collect();
                let query = self.query(found, &condition.join(" AND "));
                for key in keys {
                    rows.extend(self.run(session, &query, key)?);
                }
            }
        }
        Ok(rows)
    }

    fn query(&self, found: &FoundTable, condition: &str) -> String {
        let locking = if self.options.locks {
            " FOR UPDATE"
        } else {
            ""
        };
        format!("{}{locking}", found.query(condition))
    }
}

impl Session {
    pub(super) fn compile_whole(&mut self, text: &str) -> SqlResult<Compiled> {
        let mut parsed = parse(text, SqlMode::default())?;
        let parsed = parsed.pop().ok_or_else(lost)?;
        let mut compiled = self.compile(parsed)?;
        // sql_select_limit is about what clients ask for.
        compiled.unlimited = true;
        Ok(compiled)
    }
}

/// `user_id OWNED_BY users`; `shares.file_id OWNS files`.
fn reason(shape: &TableShape, link: &Link, kind: EdgeKind) -> String {
    let columns = shape.columns_named(&link.columns);
    format!("{columns} {} {}", kind.word(), link.target)
}

fn lost() -> SqlError {
    SqlError::internal("a table of the ownership graph is not in the catalog")
}
