//! A plan carried out: rows deleted and columns cleared by statements, in the open transaction.

use std::collections::{BTreeMap, BTreeSet};

use super::super::walk::{FoundTable, Walk};
use super::plan::{Fate, Found};
use crate::error::SqlResult;
use crate::parser::quote_name;
use crate::session::session::Session;
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
