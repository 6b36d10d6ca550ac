//! What materialized views hold of a person, in memory.
//!
//! A view has not all columns of a row, so how its rows are told apart depends on what it has: a link to the
//! person, or the key it is asked by; else the primary key, of a row that is not in its table any more. Keys
//! of a view that has neither are dropped: nobody could say whose rows they have.

use std::collections::BTreeSet;
use std::sync::Arc;

use manxdb_txn::ReadMode;

use super::Search;
use crate::catalog::Table;
use crate::encoding;
use crate::error::SqlResult;
use crate::session::session::Session;
use crate::types::{Row, Value, group_key};
use crate::views::{HeldRow, HeldTable, Maintained};

/// By what the rows of one of a view's tables are told apart.
enum Mark {
    /// It is no table of people or of what is theirs.
    Nobodys,
    /// Columns that name the person.
    Links,
    /// The key of the view, which for the person would be this.
    Key(Vec<u8>),
    /// The primary key.
    Row,
    /// Nothing.
    Nothing,
}

/// A row by the key of the view that it is held under, the number of its table and its key suffix.
type HeldPlace = (Vec<u8>, usize, Vec<u8>);

/// The row of a table, NULL where the view does not know a column.
fn row_of(held: &HeldRow<'_>) -> Row {
    let values = held.values.iter();
    values
        .map(|value| value.clone().unwrap_or(Value::Null))
        .collect()
}

impl Session {
    /// Views over tables of the person, and of what is theirs.
    pub(super) fn views_left(&self, search: &mut Search<'_>) -> SqlResult<()> {
        let mut tables: Vec<Arc<Table>> = search.referring();
        for name in search.below() {
            tables.extend(search.catalog.table(&name.database, &name.name).cloned());
        }
        let ids: BTreeSet<_> = tables.iter().map(|table| table.id).collect();
        for view in self.instance().views.over(&|id| ids.contains(&id)) {
            let marks = view.shape.tables.iter().map(|held| {
                if !ids.contains(&held.table.id) {
                    return Mark::Nobodys;
                }
                search.mark(&view, held)
            });
            let marks: Vec<Mark> = marks.collect();
            let name = &view.definition.name;
            if marks.iter().any(|mark| matches!(mark, Mark::Nothing)) {
                let keys = view.filled_keys();
                view.drop_keys();
                let what =
                    format!("{name}: {keys} keys that do not say whose rows they have, dropped");
                search.findings.add("views", what, 0);
                continue;
            }
            let says = |mark: &Mark| matches!(mark, Mark::Links | Mark::Key(_));
            if marks.iter().any(says) {
                let named = search.named_in(&view, &marks)?;
                let what = format!("{name}: rows of the person");
                search.findings.add("views", what, named);
            }
            if marks.iter().any(|mark| matches!(mark, Mark::Row)) {
                let gone = self.gone_in(search, &view, &marks)?;
                let what = format!("{name}: rows that are in their table no more");
                search.findings.add("views", what, gone);
            }
        }
        Ok(())
    }

    /// How many rows a view holds whose table has them no more.
    fn gone_in(&self, search: &Search<'_>, view: &Maintained, marks: &[Mark]) -> SqlResult<u64> {
        let held = search.places_in(view, marks)?;
        // All commits that this sees have been applied to the view. What it misses was deleted, and is in
        // the view no more, unless that was missed, or it came just now.
        let txn = self.instance().store.begin();
        txn.declare_read_only();
        let mut gone = BTreeSet::new();
        for place in held {
            let table = view.shape.tables.get(place.1);
            let row = table.map(|held| encoding::row_key(&held.table, &place.2));
            let is_there = match row {
                Some(row) => txn.get(&row, ReadMode::Plain)?.is_some(),
                None => true,
            };
            if !is_there {
                gone.insert(place);
            }
        }
        if gone.is_empty() {
            return Ok(0);
        }
        let now = search.places_in(view, marks)?;
        Ok(now.intersection(&gone).count() as u64)
    }
}

impl Search<'_> {
    /// By what rows of one of a view's tables are told apart.
    fn mark(&self, view: &Maintained, held: &HeldTable) -> Mark {
        let (table, known) = (&held.table, view.known_columns(held));
        let has = |columns: &[usize]| {
            let mut columns = columns.iter();
            columns.all(|at| known.get(*at).copied().unwrap_or(false))
        };
        let is_person = table.id == self.person.id;
        let links: Vec<&[usize]> = if is_person {
            vec![&self.person.primary_key]
        } else {
            let links = self.links_here(table);
            links.map(|link| link.columns.as_slice()).collect()
        };
        if !links.is_empty() && links.iter().all(|columns| has(columns)) {
            return Mark::Links;
        }
        if let ([[column]], [key], [id]) = (
            links.as_slice(),
            view.shape.keys.as_slice(),
            self.id.as_slice(),
        ) && held.slots.start + column == key.slot
        {
            let mut bytes = Vec::new();
            group_key(id, key.collation, &mut bytes);
            return Mark::Key(bytes);
        }
        if !table.primary_key.is_empty() && has(&table.primary_key) {
            Mark::Row
        } else {
            Mark::Nothing
        }
    }

    /// How many rows a view holds that name the person; a key that is the person's counts as one.
    fn named_in(&self, view: &Maintained, marks: &[Mark]) -> SqlResult<u64> {
        let (mut named, mut keys) = (0, BTreeSet::new());
        view.for_each_row(&mut |held| match marks.get(held.table) {
            Some(Mark::Links) => {
                let table = view.shape.tables.get(held.table);
                named += u64::from(table.is_some_and(|own| self.is_named(&own.table, held)));
            }
            Some(Mark::Key(key)) if key.as_slice() == held.key => {
                keys.insert(held.key.to_vec());
            }
            _ => {}
        })?;
        Ok(named + keys.len() as u64)
    }

    fn is_named(&self, table: &Table, held: &HeldRow<'_>) -> bool {
        let row = row_of(held);
        let suffix = Some(&self.suffix);
        if table.id == self.person.id {
            return self.suffix_in(table, &row).as_ref() == suffix;
        }
        let mut links = self.links_here(table);
        links.any(|link| self.target(link, &row).as_ref() == suffix)
    }

    /// The key suffix of a row, if all of its primary key is known.
    fn suffix_in(&self, table: &Table, row: &[Value]) -> Option<Vec<u8>> {
        let mut key = table.primary_key.iter();
        if key.any(|at| row.get(*at).is_none_or(Value::is_null)) {
            return None;
        }
        encoding::row_key_suffix(table, row, 0, &self.zone).ok()
    }

    /// Rows that a view holds for readers of now, of tables whose rows are told apart by their primary key.
    fn places_in(&self, view: &Maintained, marks: &[Mark]) -> SqlResult<BTreeSet<HeldPlace>> {
        let mut places = BTreeSet::new();
        view.for_each_row(&mut |held| {
            let is_told = matches!(marks.get(held.table), Some(Mark::Row)) && !held.is_kept;
            let Some(own) = view.shape.tables.get(held.table).filter(|_| is_told) else {
                return;
            };
            if let Some(suffix) = self.suffix_in(&own.table, &row_of(held)) {
                places.insert((held.key.to_vec(), held.table, suffix));
            }
        })?;
        Ok(places)
    }
}
