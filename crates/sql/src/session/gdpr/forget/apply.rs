//! A plan carried out in the open transaction. Rows that the walk has read and locked are deleted with
//! what it knows of them, each without being read again; columns are cleared, and rows without a primary
//! key are deleted, by statements.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::super::found_rows::FoundTable;
use super::super::walk::Walk;
use super::plan::{Fate, Found};
use crate::error::SqlResult;
use crate::parser::quote_name;
use crate::session::session::Session;
use crate::statement;
use crate::types::{Row, Value};

/// Rows that one statement changes.
const BATCH: usize = 64;

/// What is done to rows alike: nothing but going, or columns that become NULL.
type Change = Option<BTreeSet<usize>>;

/// Changes `rows` as their fates say; how many.
///
/// # Errors
/// Those of the statements.
pub(super) fn apply<'f>(
    session: &mut Session,
    walk: &mut Walk<'_>,
    rows: impl Iterator<Item = (Found, &'f Fate)>,
) -> SqlResult<u64> {
    let mut changes: BTreeMap<(usize, Change), Vec<usize>> = BTreeMap::new();
    for ((at, row), fate) in rows {
        let change = match fate {
            Fate::Delete(_) => None,
            Fate::Clear(columns, _) => Some(columns.clone()),
            Fate::Keep(_) | Fate::PutOff(_) => continue,
        };
        changes.entry((at, change)).or_default().push(row);
    }
    let mut done = 0;
    // Deletions come first: rows without a key are told apart by the values that are cleared.
    for ((at, change), rows) in changes {
        done += rows.len() as u64;
        let found = walk.found(at)?;
        if change.is_none() && remove(session, walk, at, &rows)? {
            continue;
        }
        let head = head(found, change.as_ref());
        let mut statements = Vec::new();
        let key = found.identity();
        let keys: Vec<Row> = rows
            .iter()
            .filter_map(|row| found.rows.get(*row))
            .map(|row| {
                key.iter()
                    .map(|at| found.value(row, *at).cloned().unwrap_or(Value::Null))
                    .collect()
            })
            .collect();
        if let ([column], false) = (key.as_slice(), found.table.primary_key.is_empty()) {
            for keys in keys.chunks(BATCH) {
                let places = vec!["?"; keys.len()].join(", ");
                let text = format!("{head} WHERE {} IN ({places})", found.column(*column));
                statements.push((text, keys.iter().flatten().cloned().collect::<Row>()));
            }
        } else {
            let distinct: BTreeMap<String, Row> = keys
                .into_iter()
                .map(|key| (format!("{key:?}"), key))
                .collect();
            statements.extend(distinct.into_values().map(|values| {
                let conditions = key.iter().zip(&values).map(|(at, value)| {
                    let test = if value.is_null() { "IS NULL" } else { "= ?" };
                    format!("{} {test}", found.column(*at))
                });
                let conditions: Vec<String> = conditions.collect();
                let text = format!("{head} WHERE {}", conditions.join(" AND "));
                (
                    text,
                    values
                        .into_iter()
                        .filter(|value| !value.is_null())
                        .collect(),
                )
            }));
        }
        for (text, params) in statements {
            walk.run(session, &text, &params)?;
        }
    }
    Ok(done)
}

/// Deletes rows by what was found of them; false where that is not all that it takes.
fn remove(session: &Session, walk: &Walk<'_>, at: usize, rows: &[usize]) -> SqlResult<bool> {
    let found = walk.found(at)?;
    let zone = session.state.settings().time_zone.clone();
    let mut whole = Vec::with_capacity(rows.len());
    for row in rows {
        match found.whole(walk.found_row((at, *row))?, &zone)? {
            Some(row) => whole.push(row),
            None => return Ok(false),
        }
    }
    let children = walk.referring(&found.table);
    let txn = session.open_transaction()?;
    txn.start_statement()?;
    let warnings = RefCell::default();
    session.with_context(txn, &[], &warnings, true, |context| {
        let children = children.iter().map(|(child, _)| child.as_ref());
        statement::delete_known(context, &found.table, children, &whole)
    })?;
    Ok(true)
}

fn head(found: &FoundTable, change: Option<&BTreeSet<usize>>) -> String {
    let table = format!(
        "{}.{}",
        quote_name(&found.table.database),
        quote_name(&found.table.name)
    );
    match change {
        None => format!("DELETE FROM {table}"),
        Some(columns) => {
            let set = columns
                .iter()
                .map(|at| format!("{} = NULL", found.column(*at)));
            format!("UPDATE {table} SET {}", set.collect::<Vec<_>>().join(", "))
        }
    }
}
