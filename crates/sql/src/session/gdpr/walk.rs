//! Breadth first from a person's row. Each edge is followed once from each row that is found: rows of
//! other tables by the index every link has, those that OWNS and ACCESSES lead to by their primary key.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::tz::TimeZone;
use manxdb_ownership::{
    EdgeKind, Link, OwnershipGraph, RuleAction, RuleEvent, TableName, TableShape,
};

use super::{shown, unknown};
use crate::catalog::{Catalog, ROWS, Table, ownership};
use crate::encoding::encode_key_part;
use crate::error::{SqlError, SqlResult};
use crate::parser::{parse, quote_name};
use crate::session::compiled::Compiled;
use crate::session::session::Session;
use crate::statement::target::position;
use crate::types::{Row, SqlMode, Value};

/// Values that one query asks for.
const BATCH: usize = 64;
/// What a value takes beside its text, bytes, about.
const VALUE_BYTES: usize = 48;

/// Rows of one table.
pub(super) struct FoundTable {
    pub(super) table: Arc<Table>,
    pub(super) shape: Arc<TableShape>,
    /// Positions, in the table, of the columns that rows here have.
    pub(super) visible: Vec<usize>,
    pub(super) rows: Vec<FoundRow>,
    /// Rows by what they are known by.
    known: BTreeMap<Vec<u8>, usize>,
}

/// A row with why it is the person's.
pub(super) struct FoundRow {
    /// Values of the visible columns.
    pub(super) values: Row,
    pub(super) reasons: Vec<Arc<Reason>>,
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
                let keys = self.values(table, rows, &columns)?;
                let at = self.table(&child.name)?;
                let reason = Arc::new(Reason {
                    text: reason(child, link, kind),
                    columns: link.columns.clone(),
                    via: None,
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
                let keys = self.values(table, &[*row], &link.columns)?;
                let reason = Arc::new(Reason {
                    text: text.clone(),
                    columns: link.columns.clone(),
                    via: Some((table, *row)),
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
            self.key_columns(&table)
        } else {
            table.visible_columns().map(|(at, _)| at).collect()
        };
        self.tables.push(FoundTable {
            visible,
            table,
            shape: Arc::new(shape),
            rows: Vec::new(),
            known: BTreeMap::new(),
        });
        Ok(self.tables.len() - 1)
    }

    /// Columns of the primary key, of indexes, of foreign keys, those that foreign keys refer to, and
    /// those that rules clear: a row is deleted, with its index entries, by these alone, unless an index
    /// has a prefix of a column.
    fn key_columns(&self, table: &Table) -> Vec<usize> {
        let mut columns: BTreeSet<usize> = table.primary_key.iter().copied().collect();
        let indexed = table.indexes.iter().flat_map(|index| &index.columns);
        // Not whole texts for the sake of an index of their beginnings: they may take much memory.
        let short = indexed.filter(|part| part.prefix.is_none());
        columns.extend(
            short
                .map(|part| part.column)
                .filter(|at| is_shown(table, *at)),
        );
        let own = table.foreign_keys.iter().filter(|key| key.enforced);
        columns.extend(own.flat_map(|key| key.columns.iter().copied()));
        for (child, number) in self.referring(table) {
            let names = child.foreign_keys.get(number).map(|key| &key.ref_columns);
            let names = names.into_iter().flatten();
            columns.extend(names.filter_map(|name| position(table, name)));
        }
        // What ON DEL rules clear: whether there is anything left to be cleared.
        for rule in table
            .ownership
            .rules
            .iter()
            .filter(|rule| rule.event == RuleEvent::Del)
        {
            if let RuleAction::Anonymise(names) = &rule.action {
                columns.extend(names.iter().filter_map(|name| position(table, name)));
            }
        }
        // How long rows are kept.
        let retention = table.ownership.retention.as_ref();
        columns.extend(retention.and_then(|retention| position(table, &retention.after)));
        columns.into_iter().collect()
    }

    pub(super) fn found(&self, at: usize) -> SqlResult<&FoundTable> {
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

impl FoundTable {
    pub(super) fn column(&self, at: usize) -> String {
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

    /// Values of columns, unless one is NULL.
    pub(super) fn key_of(&self, values: &Row, columns: &[usize]) -> Option<Vec<Value>> {
        let value = |column: &usize| {
            let place = self.visible.iter().position(|at| at == column)?;
            values.get(place).filter(|value| !value.is_null()).cloned()
        };
        columns.iter().map(value).collect()
    }

    /// The key suffix of a row; `None` of one without primary key.
    pub(super) fn suffix(&self, values: &Row, zone: &TimeZone) -> SqlResult<Option<Vec<u8>>> {
        let columns = self.table.primary_key.clone();
        match self.key_of(values, &columns) {
            Some(key) => self.suffix_of(&columns, &key, zone),
            None => Ok(None),
        }
    }

    /// The key suffix of the row whose `columns` have the values `key`; `None` unless these are the
    /// primary key.
    pub(super) fn suffix_of(
        &self,
        columns: &[usize],
        key: &[Value],
        zone: &TimeZone,
    ) -> SqlResult<Option<Vec<u8>>> {
        let primary = &self.table.primary_key;
        if primary.is_empty() || primary.len() != columns.len() {
            return Ok(None);
        }
        let mut suffix = Vec::new();
        for at in primary {
            let place = columns.iter().position(|column| column == at);
            let value = place.and_then(|place| key.get(place));
            let Some(value) = value else {
                return Ok(None);
            };
            encode_key_part(&self.table, ROWS, (*at, None), value, zone, &mut suffix)?;
        }
        Ok(Some(suffix))
    }

    /// Columns that tell a row from those that something else becomes of: the primary key, or, of a
    /// table without, those of its links.
    pub(super) fn identity(&self) -> Vec<usize> {
        if !self.table.primary_key.is_empty() {
            return self.table.primary_key.clone();
        }
        let links = self.table.foreign_keys.iter().filter(|key| key.enforced);
        let columns: BTreeSet<usize> = links.flat_map(|key| key.columns.iter().copied()).collect();
        columns.into_iter().collect()
    }

    pub(super) fn positions(&self, names: &[String]) -> SqlResult<Vec<usize>> {
        let places = names.iter().map(|name| self.shape.position(name));
        places.collect::<Option<Vec<_>>>().ok_or_else(lost)
    }

    /// What a row is known by: its primary key, or all of it with its number among those alike.
    fn key(&self, values: &Row, ordinal: usize) -> Vec<u8> {
        let mut key = Vec::new();
        if self.table.primary_key.is_empty() {
            key.extend(ordinal.to_be_bytes());
            values.iter().for_each(|value| put_value(&mut key, value));
            return key;
        }
        for column in &self.table.primary_key {
            let place = self.visible.iter().position(|at| at == column);
            let value = place.and_then(|place| values.get(place));
            put_value(&mut key, value.unwrap_or(&Value::Null));
        }
        key
    }

    /// The row as its table has it, to be deleted: all that an index has is there, other columns are
    /// NULL. `None` where that is not known, or the row has no key to be found by.
    pub(super) fn whole(
        &self,
        row: &FoundRow,
        zone: &TimeZone,
    ) -> SqlResult<Option<(Row, Vec<u8>)>> {
        let indexed = self.table.indexes.iter().flat_map(|index| &index.columns);
        if !indexed
            .into_iter()
            .all(|part| self.visible.contains(&part.column))
        {
            return Ok(None);
        }
        let Some(suffix) = self.suffix(&row.values, zone)? else {
            return Ok(None);
        };
        let mut whole = vec![Value::Null; self.table.columns.len()];
        for (at, value) in self.visible.iter().zip(&row.values) {
            *whole.get_mut(*at).ok_or_else(lost)? = value.clone();
        }
        Ok(Some((whole, suffix)))
    }
}

impl FoundRow {
    /// Whether it is the person's, not only shown to the person.
    pub(super) fn is_owned(&self) -> bool {
        self.is_owned
    }
}

/// Tells rows apart that have no key of their own by how many there are alike: whichever way one of
/// several is reached, all are.
#[derive(Default)]
struct Alike(BTreeMap<Vec<u8>, usize>);

impl Alike {
    /// How many rows like this one came before; 0 for a row with a primary key.
    fn ordinal(&mut self, table: &FoundTable, values: &Row) -> usize {
        if !table.table.primary_key.is_empty() {
            return 0;
        }
        let next = self.0.entry(table.key(values, 0)).or_default();
        let this = *next;
        *next += 1;
        this
    }
}

/// Adds a value so that different lists of values are different bytes.
fn put_value(bytes: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => bytes.push(0),
        Value::Int(number) => {
            bytes.push(1);
            bytes.extend(number.to_be_bytes());
        }
        Value::UInt(number) => {
            bytes.push(2);
            bytes.extend(number.to_be_bytes());
        }
        other => {
            let text = format!("{other:?}");
            bytes.push(3);
            bytes.extend(text.len().to_be_bytes());
            bytes.extend(text.into_bytes());
        }
    }
}

/// Whether a column can be asked for by its name.
fn is_shown(table: &Table, at: usize) -> bool {
    table
        .columns
        .get(at)
        .is_some_and(|column| !column.is_hidden())
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
