//! A person's rows as a tree: each row below the one through which it was found, with the link that led to it.
//!
//! It is the walk of GDPR GET, and shows no value but primary keys, of tables that the account may read.
//! ON GET rules are about what the person is shown, and hide nothing here.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::kinds_of;
use crate::catalog::{Table, ownership};
use crate::error::{SqlError, SqlResult};
use crate::session::accounts::{Privileges, access};
use crate::session::gdpr::forget::Forgotten;
use crate::session::gdpr::walk::Walk;
use crate::session::gdpr::{no_kind, shown, unknown};
use crate::session::instance::Instance;
use crate::session::session::Session;
use crate::types::Value;

/// Rows that a person may have for the tree to be made.
const ROWS_MAX: usize = 100_000;
/// Rows that are shown one by one, of those found by one link through one row, and in all.
const SHOWN_OF_LINK: usize = 20;
const SHOWN_MAX: usize = 1_000;
/// Links from the person to a row that is shown.
const DEPTH_MAX: usize = 12;

/// A person's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonTree {
    /// `database.table` of the person.
    pub kind: String,
    /// By table, in the order in which they were reached.
    pub tables: Vec<TreeTable>,
    /// The person.
    pub person: TreeRow,
}

/// How many rows of a table were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeTable {
    /// `database.table`.
    pub name: String,
    /// Rows that are the person's.
    pub owned: u64,
    /// Rows that the person has access to.
    pub accessed: u64,
    /// The account may read the table, so keys of its rows are shown.
    pub is_readable: bool,
}

/// A row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeRow {
    /// `column = value` of its primary key; `None` where the account may not read the table, or it has none.
    pub key: Option<String>,
    /// What was found through it.
    pub links: Vec<TreeLink>,
}

/// Rows that were found through one row by one link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeLink {
    /// `database.table` of the rows.
    pub table: String,
    /// `user_id OWNED_BY users`.
    pub link: String,
    /// Whether they are the person's.
    pub is_owned: bool,
    /// How many.
    pub rows: u64,
    /// The first of them, and those through which more was found.
    pub shown: Vec<TreeRow>,
}

/// A row by its table's and its own number.
type Found = (usize, usize);

/// Rows by the one through which they were found, in the order in which they were.
type Children = BTreeMap<Found, Vec<Found>>;

impl Instance {
    /// Tables of people that the account `identity` may see, as `database.table`.
    ///
    /// # Errors
    /// 1044 when there are none that it might see.
    pub fn kinds_of_people(self: &Arc<Self>, identity: &str) -> SqlResult<Vec<String>> {
        let session = self.asked_by(identity)?;
        let catalog = self.store.current();
        let kinds = kinds_of(&session, &catalog);
        Ok(kinds.into_iter().map(|(name, _)| name).collect())
    }

    /// The rows of a person; `kind` is `database.table`, `id` the primary key, several values parted by commas.
    ///
    /// # Errors
    /// 1044 without the privilege GDPR; 51004 for an unknown kind, an id that nobody has, or had before being
    /// forgotten; 1038 for a person with too many rows.
    pub fn person_tree(
        self: &Arc<Self>,
        identity: &str,
        kind: &str,
        id: &str,
    ) -> SqlResult<PersonTree> {
        let mut session = self.asked_by(identity)?;
        let catalog = self.store.current();
        let kinds = kinds_of(&session, &catalog);
        let Some((_, table)) = kinds.iter().find(|(name, _)| name == kind) else {
            let known: Vec<&str> = kinds.iter().map(|(name, _)| name.as_str()).collect();
            return Err(no_kind(kind, "that you may see", &known));
        };
        let graph = ownership::graph(&catalog, None);
        let id = session.typed_id(table, parts_of(table, id)?)?;
        let whom = Forgotten::named(table, id, identity);
        let mut walk = session.forget_walk(&catalog, &graph, false, ROWS_MAX);
        session.at_one_snapshot(|session| {
            session.forgetting(
                |session| match walk.walk_from_person(session, table, &whom.id) {
                    Err(_) if walk.is_over() => Err(too_many()),
                    Err(error) if error.code == 51004 => {
                        Err(session.unknown_person(&mut walk, table, &whom, error))
                    }
                    walked => walked,
                },
            )
        })?;
        let mut maker = TreeMaker {
            children: children(&session, &walk)?,
            walk: &walk,
            readable: readable(&session, &walk),
            left: SHOWN_MAX,
        };
        let person = *walk.order().first().ok_or_else(lost)?;
        Ok(PersonTree {
            kind: kind.to_string(),
            tables: maker.tables(),
            person: maker.row(person, DEPTH_MAX)?,
        })
    }
}

/// The values of an id as it was entered.
fn parts_of(table: &Table, id: &str) -> SqlResult<Vec<Value>> {
    let wanted = table.primary_key.len();
    let parts: Vec<&str> = if wanted == 1 {
        vec![id]
    } else {
        id.split(',').map(str::trim).collect()
    };
    let values: Vec<Value> = parts
        .iter()
        .map(|part| Value::Text((*part).to_string()))
        .collect();
    if values.len() == wanted && !id.trim().is_empty() {
        return Ok(values);
    }
    let columns = table.primary_key.iter();
    let names = columns.filter_map(|at| Some(table.columns.get(*at)?.name.as_str()));
    let names: Vec<&str> = names.collect();
    Err(unknown(format!(
        "an id of '{}' is its primary key: {}",
        table.name,
        names.join(", ")
    )))
}

fn too_many() -> SqlError {
    let text = format!(
        "this person has more than {ROWS_MAX} rows, which no page shows: GDPR GET answers them all"
    );
    SqlError::new(1038, "HY001", text)
}

fn lost() -> SqlError {
    SqlError::internal("a person is not where it was found")
}

/// Whether the account may read the rows of each table that was reached.
fn readable(session: &Session, walk: &Walk<'_>) -> Vec<bool> {
    let account = session.state.account();
    let tables = walk.tables().iter();
    tables
        .map(|found| {
            let (database, name) = (&found.table.database, &found.table.name);
            let need = access::Need::table(Privileges::SELECT, "SELECT", database, name);
            access::check(&account, &need, &session.state.client.host).is_ok()
        })
        .collect()
}

/// Each row below the one that first led to it.
fn children(session: &Session, walk: &Walk<'_>) -> SqlResult<Children> {
    let zone = session.state.settings().time_zone.clone();
    let mut by_suffix: BTreeMap<(usize, Vec<u8>), usize> = BTreeMap::new();
    for &(at, row) in walk.order() {
        let found = walk.found(at)?;
        if let Some(suffix) = found.suffix(&walk.found_row((at, row))?.values, &zone)? {
            by_suffix.insert((at, suffix), row);
        }
    }
    let mut children = Children::new();
    let person = *walk.order().first().ok_or_else(lost)?;
    for &row in walk.order().iter().skip(1) {
        let found = walk.found(row.0)?;
        let values = &walk.found_row(row)?.values;
        let reason = walk.found_row(row)?.reasons.first();
        let through = match reason {
            Some(reason) => match (&reason.via, &reason.target) {
                (Some(via), _) => Some(*via),
                (None, Some((at, columns))) => {
                    let key = found.key_of(values, &reason.columns);
                    let suffix = key.map(|key| walk.found(*at)?.suffix_of(columns, &key, &zone));
                    let suffix = suffix.transpose()?.flatten();
                    let row = suffix.and_then(|suffix| by_suffix.get(&(*at, suffix)));
                    row.map(|row| (*at, *row))
                }
                (None, None) => None,
            },
            None => None,
        };
        children
            .entry(through.unwrap_or(person))
            .or_default()
            .push(row);
    }
    Ok(children)
}

struct TreeMaker<'w, 'a> {
    walk: &'w Walk<'a>,
    children: Children,
    readable: Vec<bool>,
    /// Rows that may still be shown.
    left: usize,
}

fn full_name(table: &Table) -> String {
    format!("{}.{}", table.database, table.name)
}

impl TreeMaker<'_, '_> {
    fn tables(&self) -> Vec<TreeTable> {
        let tables = self.walk.tables().iter().zip(&self.readable);
        let counted = tables.map(|(found, is_readable)| {
            let owned = found.rows.iter().filter(|row| row.is_owned()).count();
            TreeTable {
                name: full_name(&found.table),
                owned: owned as u64,
                accessed: (found.rows.len() - owned) as u64,
                is_readable: *is_readable,
            }
        });
        let with_rows = counted.filter(|table| table.owned + table.accessed > 0);
        with_rows.collect()
    }

    fn key(&self, row: Found) -> SqlResult<Option<String>> {
        let found = self.walk.found(row.0)?;
        let is_readable = self.readable.get(row.0).copied().unwrap_or(false);
        if !is_readable || found.table.primary_key.is_empty() {
            return Ok(None);
        }
        let columns = &found.table.primary_key;
        let values = found.key_of(&self.walk.found_row(row)?.values, columns);
        let parts = columns.iter().zip(values.into_iter().flatten());
        let parts = parts.map(|(at, value)| {
            let column = found.table.columns.get(*at);
            let name = column.map_or("", |column| column.name.as_str());
            format!("{name} = {}", shown(&[value]))
        });
        Ok(Some(parts.collect::<Vec<_>>().join(", ")))
    }

    /// A row with what was found through it, `depth` links further at most.
    fn row(&mut self, row: Found, depth: usize) -> SqlResult<TreeRow> {
        self.left = self.left.saturating_sub(1);
        let mut by_link: BTreeMap<(usize, String, bool), Vec<Found>> = BTreeMap::new();
        for child in self.children.get(&row).into_iter().flatten() {
            let found = self.walk.found_row(*child)?;
            let link = found.reasons.first();
            let link = link.map_or_else(String::new, |reason| reason.text.clone());
            let link = (child.0, link, found.is_owned());
            by_link.entry(link).or_default().push(*child);
        }
        let mut links = Vec::with_capacity(by_link.len());
        for ((at, link, is_owned), rows) in by_link {
            let mut shown = Vec::new();
            for child in &rows {
                let goes_on = self.children.contains_key(child);
                if depth == 0 || self.left == 0 || shown.len() >= SHOWN_OF_LINK && !goes_on {
                    continue;
                }
                shown.push(self.row(*child, depth - 1)?);
            }
            links.push(TreeLink {
                table: full_name(&self.walk.found(at)?.table),
                link,
                is_owned,
                rows: rows.len() as u64,
                shown,
            });
        }
        Ok(TreeRow {
            key: self.key(row)?,
            links,
        })
    }
}
