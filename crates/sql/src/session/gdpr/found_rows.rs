//! Rows that a walk has found, by table: what a row is known by, and what of it is needed to ask for
//! others, to lock it and to delete it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::tz::TimeZone;
use manxdb_ownership::{RuleAction, RuleEvent, TableShape};

use crate::catalog::{ROWS, Table};
use crate::encoding::encode_key_part;
use crate::error::{SqlError, SqlResult};
use crate::parser::quote_name;
use crate::statement::target::position;
use crate::types::{Row, Value};

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
    pub(super) known: BTreeMap<Vec<u8>, usize>,
}

/// A row with why it is the person's.
pub(super) struct FoundRow {
    /// Values of the visible columns.
    pub(super) values: Row,
    pub(super) reasons: Vec<Arc<Reason>>,
    pub(super) is_owned: bool,
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
    /// Where a link of the row itself leads: the number of the table, and its columns.
    pub(super) target: Option<(usize, Vec<usize>)>,
}

impl FoundTable {
    /// A table that was reached, no row of it yet.
    pub(super) fn new(table: Arc<Table>, shape: TableShape, visible: Vec<usize>) -> Self {
        Self {
            table,
            shape: Arc::new(shape),
            visible,
            rows: Vec::new(),
            known: BTreeMap::new(),
        }
    }

    pub(super) fn column(&self, at: usize) -> String {
        let column = self.table.columns.get(at);
        quote_name(column.map_or("", |column| column.name.as_str()))
    }

    pub(super) fn query(&self, condition: &str) -> String {
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

    /// The values that `rows` have in `columns`, each once; rows with a NULL among them lead nowhere.
    pub(super) fn distinct_values(&self, rows: &[usize], columns: &[usize]) -> Vec<Vec<Value>> {
        let mut all: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for row in rows.iter().filter_map(|row| self.rows.get(*row)) {
            if let Some(values) = self.key_of(&row.values, columns) {
                all.insert(format!("{values:?}"), values);
            }
        }
        all.into_values().collect()
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
    pub(super) fn key(&self, values: &Row, ordinal: usize) -> Vec<u8> {
        let mut key = Vec::new();
        if self.table.primary_key.is_empty() {
            key.extend(ordinal.to_be_bytes());
            for value in values {
                put_value(&mut key, value);
            }
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
    /// About what it takes in memory, in bytes.
    pub(super) fn size_bytes(values: &Row) -> usize {
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

    /// Whether it is the person's, not only shown to the person.
    pub(super) fn is_owned(&self) -> bool {
        self.is_owned
    }
}

/// Tells rows apart that have no key of their own by how many there are alike: whichever way one of
/// several is reached, all are.
#[derive(Default)]
pub(super) struct Alike(BTreeMap<Vec<u8>, usize>);

impl Alike {
    /// How many rows like this one came before; 0 for a row with a primary key.
    pub(super) fn ordinal(&mut self, table: &FoundTable, values: &Row) -> usize {
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

/// Columns of the primary key, of indexes, of foreign keys, those that foreign keys refer to, and
/// those that rules clear: a row is deleted, with its index entries, by these alone, unless an index
/// has a prefix of a column.
pub(super) fn key_columns(table: &Table, referring: &[(Arc<Table>, usize)]) -> Vec<usize> {
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
    for (child, number) in referring {
        let names = child.foreign_keys.get(*number).map(|key| &key.ref_columns);
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

/// Whether a column can be asked for by its name.
fn is_shown(table: &Table, at: usize) -> bool {
    table
        .columns
        .get(at)
        .is_some_and(|column| !column.is_hidden())
}

fn lost() -> SqlError {
    SqlError::internal("a row that was found is not as its table says")
}
