//! Rows that FORGET puts off: they are held, or their table is to keep them for some time yet, or one
//! that stays for these reasons names them.
//!
//! What a row that is put off refers to stays with it, up to the person: an invoice without its customer is no
//! evidence, its key of encryption is the customer's, and a later walk finds it by the same links.

use jiff::tz::TimeZone;
use manxdb_ownership::{Retention, RetentionUnit, TableName};

use super::{Fate, ForgetPlanner, Found};
use crate::error::SqlResult;
use crate::session::gdpr::found_rows::FoundTable;
use crate::statement::owners::mutants::{OwnershipMutant, is_planted};
use crate::statement::owners::requests::Hold;
use crate::statement::target::position;
use crate::types::{MICROS_PER_DAY, Row, Value};

/// What keeps rows of a person from going.
#[derive(Debug, Default)]
pub(in crate::session::gdpr::forget) struct Kept {
    /// Holds on the person, by number.
    pub(in crate::session::gdpr::forget) holds: Vec<(u64, Hold)>,
    /// Now, microseconds since 1970.
    pub(in crate::session::gdpr::forget) now_micros: i64,
}

impl Kept {
    /// The hold on all of the person's rows.
    pub(in crate::session::gdpr::forget) fn whole(&self) -> Option<&(u64, Hold)> {
        self.holds.iter().find(|(_, hold)| hold.table.is_none())
    }

    /// The hold on a row of the table with this id.
    fn hold_on(&self, table: u32) -> Option<u64> {
        let is_on = |hold: &Hold| hold.table.as_ref().is_none_or(|(id, _)| *id == table);
        let mut holds = self.holds.iter();
        holds
            .find(|(_, hold)| is_on(hold))
            .map(|(number, _)| *number)
    }
}

impl ForgetPlanner<'_, '_> {
    /// Puts off what is held or to be kept, with all that it refers to.
    pub(super) fn put_off(&mut self) -> SqlResult<()> {
        let changing = |fate: &Fate| matches!(fate, Fate::Delete(_) | Fate::Clear(..));
        let rows: Vec<Found> = self
            .fates
            .iter()
            .filter(|(_, fate)| changing(fate))
            .map(|(row, _)| *row)
            .collect();
        let mut open = Vec::new();
        for row in rows {
            if let Some(why) = self.why_kept(row)? {
                self.fates.insert(row, Fate::PutOff(why));
                open.push(row);
            }
        }
        while let Some(row) = open.pop() {
            for other in self.referred(row)? {
                if !matches!(self.fates.get(&other), Some(Fate::Delete(_))) {
                    continue;
                }
                let table = &self.walk.found(row.0)?.table.name;
                let why = format!("a row of '{table}' that is put off needs it");
                self.fates.insert(other, Fate::PutOff(why));
                open.push(other);
            }
        }
        Ok(())
    }

    /// Why a row must stay for now.
    fn why_kept(&mut self, row: Found) -> SqlResult<Option<String>> {
        let found = self.walk.found(row.0)?;
        if let Some(hold) = self.kept.hold_on(found.table.id.0) {
            return Ok(Some(format!("held by hold {hold}")));
        }
        let Some(retention) = &found.table.ownership.retention else {
            return Ok(None);
        };
        let zone = self.session.state.settings().time_zone.clone();
        let mut until = kept_until(found, &self.values(row)?, retention, &zone);
        if is_planted(OwnershipMutant::IgnoredRetention) {
            until = Some(i64::MIN);
        } else if is_planted(OwnershipMutant::RetentionOfADayLess) {
            until = until.map(|until| until.saturating_sub(MICROS_PER_DAY));
        }
        match until {
            // The day is not known: the period has not begun.
            None => Ok(Some(format!("{retention}, which is NULL"))),
            Some(until) if until > self.kept.now_micros => {
                let first = self.due_at_micros.unwrap_or(i64::MAX);
                self.due_at_micros = Some(first.min(until));
                Ok(Some(retention.to_string()))
            }
            Some(_) => Ok(None),
        }
    }

    /// Rows that were found which a row refers to, and those by whose link it was found.
    fn referred(&mut self, row: Found) -> SqlResult<Vec<Found>> {
        let found = self.walk.found(row.0)?;
        let table = std::sync::Arc::clone(&found.table);
        let values = self.values(row)?;
        let reasons = &self.walk.found_row(row)?.reasons;
        let mut rows: Vec<Found> = reasons.iter().filter_map(|reason| reason.via).collect();
        for key in table.foreign_keys.iter().filter(|key| key.enforced) {
            let name = TableName::new(&key.ref_database, &key.ref_table);
            if !self.walk.knows(&name) {
                continue;
            }
            let Some(referred) = self.walk.found(row.0)?.key_of(&values, &key.columns) else {
                continue;
            };
            let at = self.walk.table(&name)?;
            let columns = self.walk.found(at)?.positions(&key.ref_columns)?;
            rows.extend(self.walk.ask_found(self.session, at, &columns, referred)?);
        }
        Ok(rows)
    }
}

/// When a row's period is over, microseconds since 1970; `None` when the day it begins is not known.
fn kept_until(
    found: &FoundTable,
    values: &Row,
    retention: &Retention,
    zone: &TimeZone,
) -> Option<i64> {
    let column = position(&found.table, &retention.after)?;
    let place = found.visible.iter().position(|at| *at == column)?;
    let (date, micros) = match values.get(place)? {
        Value::Date(date) => (*date, 0),
        Value::DateTime(at) => (at.date, at.micros),
        _ => return None,
    };
    let year = i16::try_from(date.year).ok()?;
    let month = i8::try_from(date.month).ok()?;
    let day = i8::try_from(date.day).ok()?;
    let begins = jiff::civil::Date::new(year, month, day).ok()?;
    let span = jiff::Span::new();
    let count = i64::from(retention.count);
    let span = match retention.unit {
        RetentionUnit::Day => span.try_days(count),
        RetentionUnit::Month => span.try_months(count),
        RetentionUnit::Year => span.try_years(count),
    };
    // What ends behind the last year of the calendar ends never.
    let Some(ends) = span.ok().and_then(|span| begins.checked_add(span).ok()) else {
        return Some(i64::MAX);
    };
    let ends = ends
        .to_zoned(zone.clone())
        .ok()?
        .timestamp()
        .as_microsecond();
    ends.checked_add(i64::try_from(micros).ok()?)
}
