//! What FORGET does to each row that was found, from the rows alone; nothing is changed here.
//!
//! A row that only the person owns is deleted. A row that others own too, or that the person only has
//! access to, gets what its ON DEL rules say, and its links to rows that are deleted are cleared; where
//! a column may not be NULL the link stays and leads nowhere. Deletions by a rule or by
//! ON DELETE CASCADE take along what is owned through the row alone.

mod links;
mod put_off;
mod shared_rows;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use manxdb_ownership::proof::CountedRows;
use manxdb_ownership::{EdgeKind, Link, TableName};

use super::super::found_rows::FoundTable;
use super::super::walk::Walk;
use crate::catalog::{ForeignKeyAction, Table};
use crate::error::{SqlError, SqlResult};
use crate::session::session::Session;
use crate::types::{Row, Value};

pub(in crate::session::gdpr) use links::may_clear;
pub(super) use put_off::Kept;

/// A row that was found: its table's and its own number.
pub(super) type Found = (usize, usize);

/// A row by its key: its table's number, and its key suffix.
type Place = (usize, Vec<u8>);

/// What becomes of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// It goes.
    Delete(String),
    /// These columns become NULL.
    Clear(BTreeSet<usize>, String),
    /// It stays as it is.
    Keep(String),
    /// It stays for now: it is held, or to be kept.
    PutOff(String),
}

/// Fates of all rows.
#[derive(Debug, Default)]
pub(super) struct ForgetPlan {
    pub(super) fates: BTreeMap<Found, Fate>,
    removed: BTreeSet<Place>,
    /// When the first row that is put off may go, if a day is all that keeps it.
    pub(super) due_at_micros: Option<i64>,
}

/// Makes a plan, asking for rows that the walk has not found where they decide.
pub(super) struct ForgetPlanner<'w, 'a> {
    walk: &'w mut Walk<'a>,
    session: &'w mut Session,
    /// The person, and rows that go though others own them.
    removed: BTreeSet<Place>,
    /// Rows that somebody else owns, or nobody else, under `removed`.
    known: BTreeMap<Place, bool>,
    /// By table, the OWNS links that lead to it.
    owners: BTreeMap<usize, Arc<Vec<(TableName, Link)>>>,
    fates: BTreeMap<Found, Fate>,
    /// Links without meaning for ownership to rows that go, with these rows.
    cut: BTreeMap<Found, BTreeMap<usize, Found>>,
    kept: Kept,
    due_at_micros: Option<i64>,
    /// By table, the enforced foreign keys to it.
    referring: BTreeMap<usize, Referring>,
}

/// Tables with a foreign key to one, and its number among theirs.
type Referring = Arc<Vec<(Arc<Table>, usize)>>;

fn lost() -> SqlError {
    SqlError::internal("a row to forget is not where it was found")
}

impl<'w, 'a> ForgetPlanner<'w, 'a> {
    /// A plan for the person whose walk this is.
    pub(super) fn new(walk: &'w mut Walk<'a>, session: &'w mut Session) -> Self {
        Self {
            walk,
            session,
            removed: BTreeSet::new(),
            known: BTreeMap::new(),
            owners: BTreeMap::new(),
            fates: BTreeMap::new(),
            cut: BTreeMap::new(),
            kept: Kept::default(),
            due_at_micros: None,
            referring: BTreeMap::new(),
        }
    }

    /// With what keeps rows from going.
    pub(super) fn keeping(self, kept: Kept) -> Self {
        Self { kept, ..self }
    }

    /// As [`ForgetPlanner::new`], to look again at rows of a plan that was made.
    pub(super) fn again(
        walk: &'w mut Walk<'a>,
        session: &'w mut Session,
        plan: &ForgetPlan,
    ) -> Self {
        Self {
            removed: plan.removed.clone(),
            ..Self::new(walk, session)
        }
    }

    /// Whether what was decided of a row still is so: it is as it was, and nobody else has come to own
    /// one that goes because nobody else does.
    pub(super) fn still_holds(&mut self, row: Found, fate: &Fate) -> SqlResult<bool> {
        let found = self.walk.found(row.0)?;
        let values = self.values(row)?;
        let identity = found.identity();
        if !found.table.primary_key.is_empty() {
            let Some(key) = found.key_of(&values, &identity) else {
                return Ok(false);
            };
            let now = self.walk.ask(self.session, row.0, &identity, &[key])?;
            if now != [values.clone()] {
                return Ok(false);
            }
        }
        let goes_alone = matches!(fate, Fate::Delete(_))
            && self
                .place(row.0, &values)?
                .is_none_or(|place| !self.removed.contains(&place));
        Ok(!goes_alone || !self.others_own(row.0, &values)?)
    }

    /// Decides of every row.
    ///
    /// # Errors
    /// Those of asking for rows.
    pub(super) fn plan(mut self) -> SqlResult<ForgetPlan> {
        let order = self.walk.order().to_vec();
        let person = *order.first().ok_or_else(lost)?;
        self.remove(person, "DATA_SUBJECT".to_string())?;
        let mut open = VecDeque::new();
        for &row in order.iter().skip(1) {
            let values = self.values(row)?;
            if self.walk.found_row(row)?.is_owned() && !self.others_own(row.0, &values)? {
                let why = self.why(row)?;
                self.fates.insert(row, Fate::Delete(why));
            }
        }
        for &row in order
            .iter()
            .filter(|row| !self.fates.contains_key(row))
            .collect::<Vec<_>>()
        {
            if let Some(rule) = self.apply_rules(row)? {
                self.remove(row, rule)?;
                open.push_back((row, true));
            }
        }
        // Rows that go because the person alone owns them: all that is theirs was found.
        let owned = self
            .fates
            .iter()
            .filter(|(_, fate)| matches!(fate, Fate::Delete(_)));
        open.extend(owned.map(|(row, _)| (*row, false)).collect::<Vec<_>>());
        while let Some((row, by_rule)) = open.pop_front() {
            self.follow(row, by_rule, &mut open)?;
        }
        self.put_off()?;
        self.cut_links()?;
        Ok(ForgetPlan {
            due_at_micros: self.due_at_micros,
            fates: self.fates,
            removed: self.removed,
        })
    }

    fn values(&self, row: Found) -> SqlResult<Row> {
        Ok(self.walk.found_row(row)?.values.clone())
    }

    fn why(&self, row: Found) -> SqlResult<String> {
        let reasons = &self.walk.found_row(row)?.reasons;
        Ok(reasons
            .first()
            .map_or_else(String::new, |reason| reason.text.clone()))
    }

    fn place(&self, at: usize, values: &Row) -> SqlResult<Option<Place>> {
        let found = self.walk.found(at)?;
        let zone = self.session.state.settings().time_zone.clone();
        let suffix = found.suffix(values, &zone)?;
        Ok(suffix.map(|suffix| (at, suffix)))
    }

    /// A row goes, whoever owns it.
    fn remove(&mut self, row: Found, why: String) -> SqlResult<()> {
        let values = self.values(row)?;
        self.removed.extend(self.place(row.0, &values)?);
        // What was owned through it may be owned no longer.
        self.known.clear();
        self.fates.insert(row, Fate::Delete(why));
        Ok(())
    }

    fn referring(&mut self, at: usize) -> SqlResult<Referring> {
        if let Some(known) = self.referring.get(&at) {
            return Ok(Arc::clone(known));
        }
        let found = Arc::new(self.walk.referring(&self.walk.found(at)?.table));
        self.referring.insert(at, Arc::clone(&found));
        Ok(found)
    }

    /// Looks at rows that refer to one that goes. What is the person's was found before; what goes
    /// `by_rule` may take more along.
    fn follow(
        &mut self,
        row: Found,
        by_rule: bool,
        open: &mut VecDeque<(Found, bool)>,
    ) -> SqlResult<()> {
        let referring = self.referring(row.0)?;
        if referring.is_empty() && !by_rule {
            return Ok(());
        }
        let table = Arc::clone(&self.walk.found(row.0)?.table);
        let values = self.values(row)?;
        for (child, number) in referring.iter() {
            let number = *number;
            let key = child.foreign_keys.get(number).ok_or_else(lost)?;
            // Rows that are owned by it, or give access to it, were found on the walk.
            let is_walked = key.edge.is_some_and(|edge| !edge.kind.leads_to_target());
            if is_walked && !by_rule {
                continue;
            }
            let columns = self.walk.found(row.0)?.positions(&key.ref_columns)?;
            let Some(referred) = self.walk.found(row.0)?.key_of(&values, &columns) else {
                continue;
            };
            let at = self.walk.table_of(child)?;
            let rows = self
                .walk
                .ask_found(self.session, at, &key.columns, referred)?;
            for found in rows {
                let values = self.values(found)?;
                if matches!(self.fates.get(&found), Some(Fate::Delete(_))) {
                    continue;
                }
                let is_owner = key.edge.is_some_and(|edge| edge.kind == EdgeKind::OwnedBy);
                let cascades = key.edge.is_none() && key.on_delete == ForeignKeyAction::Cascade;
                if cascades || is_owner && !self.others_own(at, &values)? {
                    self.remove(found, goes_with(child, &table))?;
                    open.push_back((found, true));
                    continue;
                }
                if key.edge.is_none() {
                    self.cut.entry(found).or_default().insert(number, row);
                }
                let stays = Fate::Keep("is not the person's".to_string());
                self.fates.entry(found).or_insert(stays);
            }
        }
        if by_rule {
            self.follow_owned(row, &values, open)?;
        }
        Ok(())
    }

    /// Rows that a row which goes was an owner of.
    fn follow_owned(
        &mut self,
        row: Found,
        values: &Row,
        open: &mut VecDeque<(Found, bool)>,
    ) -> SqlResult<()> {
        let shape = Arc::clone(&self.walk.found(row.0)?.shape);
        for link in &shape.links {
            let owns = link.edge.is_some_and(|edge| edge.kind == EdgeKind::Owns);
            if !owns || !self.walk.knows(&link.target) {
                continue;
            }
            let Some(key) = self.walk.found(row.0)?.key_of(values, &link.columns) else {
                continue;
            };
            let at = self.walk.table(&link.target)?;
            let columns = self.walk.found(at)?.positions(&link.target_columns)?;
            for found in self.walk.ask_found(self.session, at, &columns, key)? {
                let values = self.values(found)?;
                let goes = matches!(self.fates.get(&found), Some(Fate::Delete(_)));
                if !goes && !self.others_own(at, &values)? {
                    let target = Arc::clone(&self.walk.found(at)?.table);
                    let table = Arc::clone(&self.walk.found(row.0)?.table);
                    self.remove(found, goes_with(&target, &table))?;
                    open.push_back((found, true));
                }
            }
        }
        Ok(())
    }
}

fn goes_with(table: &Table, with: &Table) -> String {
    format!("goes with its row of '{}' ({})", with.name, table.name)
}

impl ForgetPlan {
    /// Rows that are changed or go.
    pub(super) fn changes(&self) -> usize {
        let fates = self.fates.values();
        fates
            .filter(|fate| matches!(fate, Fate::Delete(_) | Fate::Clear(..)))
            .count()
    }

    /// Rows that stay for now.
    pub(super) fn put_off(&self) -> impl Iterator<Item = Found> {
        let fates = self.fates.iter();
        let put_off = fates.filter(|(_, fate)| matches!(fate, Fate::PutOff(_)));
        put_off.map(|(row, _)| *row)
    }

    /// By table and fate, how many rows; tables in the order in which they were reached.
    pub(super) fn summary(&self, tables: &[FoundTable]) -> Vec<Row> {
        let text = |text: String| Value::Text(text);
        let counts = counted(tables, self.fates.iter().map(|(row, fate)| (*row, fate)));
        let rows = counts.into_iter().map(|count| {
            let rows = i64::try_from(count.rows).unwrap_or(i64::MAX);
            vec![
                text(count.table),
                text(count.action),
                Value::Int(rows),
                text(count.why),
            ]
        });
        rows.collect()
    }
}

/// By table and fate, how many rows; tables in the order in which they were reached.
pub(super) fn counted<'f>(
    tables: &[FoundTable],
    rows: impl Iterator<Item = (Found, &'f Fate)>,
) -> Vec<CountedRows> {
    let mut counts: BTreeMap<(usize, &str, &str), u64> = BTreeMap::new();
    for ((at, _), fate) in rows {
        let (what, why) = match fate {
            Fate::Delete(why) => ("delete", why),
            Fate::Clear(_, why) => ("anonymise", why),
            Fate::Keep(why) => ("keep", why),
            Fate::PutOff(why) => ("hold", why),
        };
        *counts.entry((at, what, why)).or_default() += 1;
    }
    let count = |((at, what, why), rows): ((usize, &str, &str), u64)| CountedRows {
        table: tables
            .get(at)
            .map_or_else(String::new, |found| found.table.name.clone()),
        action: what.to_string(),
        rows,
        why: why.to_string(),
    };
    counts.into_iter().map(count).collect()
}
