//! Links of rows that stay to rows that go: cleared where that harms nothing, else they lead nowhere.

use std::collections::BTreeSet;
use std::sync::Arc;

use manxdb_ownership::TableName;

use super::{Fate, ForgetPlanner, Found, Place};
use crate::catalog::Table;
use crate::error::SqlResult;
use crate::types::{Row, Value};

impl ForgetPlanner<'_, '_> {
    /// Rows that stay cease to refer to rows that go.
    pub(super) fn cut_links(&mut self) -> SqlResult<()> {
        let stays = |fate: &Fate| matches!(fate, Fate::Clear(..) | Fate::Keep(_));
        let fates = self.fates.iter();
        let staying: Vec<Found> = fates
            .filter(|(_, fate)| stays(fate))
            .map(|(row, _)| *row)
            .collect();
        if staying.is_empty() {
            return Ok(());
        }
        let mut gone: BTreeSet<Place> = BTreeSet::new();
        for (row, fate) in &self.fates {
            if matches!(fate, Fate::Delete(_)) {
                gone.extend(self.place(row.0, &self.values(*row)?)?);
            }
        }
        for row in staying {
            let table = Arc::clone(&self.walk.found(row.0)?.table);
            let values = self.values(row)?;
            let goes = |row: &Found| matches!(self.fates.get(row), Some(Fate::Delete(_)));
            let cut = self.cut.get(&row).into_iter().flatten();
            let cut = cut.filter(|(_, cause)| goes(cause));
            let mut cut: BTreeSet<usize> = cut.map(|(number, _)| *number).collect();
            for (number, key) in table.foreign_keys.iter().enumerate() {
                let name = TableName::new(&key.ref_database, &key.ref_table);
                if key.edge.is_none() || !self.walk.knows(&name) {
                    continue;
                }
                let Some(referred) = self.walk.found(row.0)?.key_of(&values, &key.columns) else {
                    continue;
                };
                let target = self.walk.table(&name)?;
                let columns = self.walk.found(target)?.positions(&key.ref_columns)?;
                let zone = self.session.state.settings().time_zone.clone();
                let suffix = self
                    .walk
                    .found(target)?
                    .suffix_of(&columns, &referred, &zone)?;
                if suffix.is_some_and(|suffix| gone.contains(&(target, suffix))) {
                    cut.insert(number);
                }
            }
            if !cut.is_empty() {
                self.cut_row(row, &table, &values, &cut);
            }
        }
        Ok(())
    }

    fn cut_row(&mut self, row: Found, table: &Table, values: &Row, cut: &BTreeSet<usize>) {
        let (mut columns, mut why) = match self.fates.remove(&row) {
            Some(Fate::Clear(columns, why)) => (columns, why),
            Some(Fate::Keep(why) | Fate::PutOff(why)) => (BTreeSet::new(), why),
            Some(Fate::Delete(why)) => (BTreeSet::new(), why),
            None => (BTreeSet::new(), String::new()),
        };
        let visible = self.walk.found(row.0).map(|found| found.visible.clone());
        let is_null = |at: usize| {
            let place = visible.iter().flatten().position(|column| *column == at);
            place
                .and_then(|place| values.get(place))
                .is_none_or(Value::is_null)
        };
        for number in cut {
            let Some(key) = table.foreign_keys.get(*number) else {
                continue;
            };
            // A rule has done it.
            if key
                .columns
                .iter()
                .any(|at| columns.contains(at) || is_null(*at))
            {
                continue;
            }
            let clearable: Vec<usize> = key
                .columns
                .iter()
                .copied()
                .filter(|at| may_clear(table, *number, *at))
                .collect();
            let names = named(table, &key.columns);
            if clearable.is_empty() {
                why = format!(
                    "{why}; {names} goes on naming a row of '{}' that goes",
                    key.ref_table
                );
            } else {
                why = format!(
                    "clears {}, a row of '{}' goes; {why}",
                    named(table, &clearable),
                    key.ref_table
                );
                columns.extend(clearable);
            }
        }
        let fate = if columns.is_empty() {
            Fate::Keep(why)
        } else {
            Fate::Clear(columns, why)
        };
        self.fates.insert(row, fate);
    }
}

fn named(table: &Table, columns: &[usize]) -> String {
    let names = columns.iter().filter_map(|at| table.columns.get(*at));
    names
        .map(|column| column.name.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

/// Whether a column of a foreign key may be NULL without harm to anything else.
pub(in crate::session::gdpr) fn may_clear(table: &Table, key: usize, at: usize) -> bool {
    let is_free = table
        .columns
        .get(at)
        .is_some_and(|column| !column.not_null && column.generated.is_none());
    let others = table.foreign_keys.iter().enumerate();
    let mut others = others.filter(|(number, other)| *number != key && other.enforced);
    is_free
        && !table.primary_key.contains(&at)
        && !others.any(|(_, other)| other.columns.contains(&at))
}
