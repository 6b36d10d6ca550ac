//! EXPLAIN of INSERT, REPLACE, UPDATE and DELETE: how the rows to change are found.

use super::table::{self, ACCESS, EXTRA, SELECT_TYPE, TABLE, no_table, text};
use super::{ExplainFormat, json, tree};
use crate::binder::ModifyPlan;
use crate::plan::Plan;
use crate::types::{Row, Value};

/// A changing statement to be explained.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// INSERT, REPLACE, UPDATE or DELETE.
    pub verb: &'static str,
    /// The tables it changes, by the names the statement gives them.
    pub targets: &'a [&'a str],
    /// Where its rows come from; `None` for VALUES.
    pub rows: Option<&'a Plan>,
}

/// What the statement will do.
#[must_use]
pub fn explain_change(change: Change<'_>, format: ExplainFormat) -> Vec<Row> {
    match format {
        ExplainFormat::Traditional => rows_of(change),
        ExplainFormat::Json => {
            let document = json::document(&rows_of(change));
            vec![vec![Value::Text(format!("{document:#}"))]]
        }
        ExplainFormat::Tree => {
            let targets = change.targets.join(", ");
            let head = match change.verb {
                "INSERT" => format!("-> Insert into {targets}"),
                "REPLACE" => format!("-> Replace into {targets}"),
                "DELETE" => format!("-> Delete from {targets}"),
                _ => format!("-> Update {targets}"),
            };
            let below = match change.rows {
                Some(plan) => tree::lines(&plan.root, 1, None),
                None => "    -> Rows fetched before execution".to_string(),
            };
            vec![vec![Value::Text(format!("{head}\n{below}"))]]
        }
    }
}

/// What an UPDATE or DELETE will do to the tables of `plan` whose columns start at `offsets`.
#[must_use]
pub fn explain_modify(
    plan: &ModifyPlan,
    verb: &'static str,
    offsets: impl Iterator<Item = usize>,
    format: ExplainFormat,
) -> Vec<Row> {
    let targets: Vec<&str> = offsets
        .filter_map(|offset| plan.tables.iter().find(|table| table.offset == offset))
        .map(|table| table.alias.as_str())
        .collect();
    let change = Change {
        verb,
        targets: &targets,
        rows: Some(&plan.plan),
    };
    explain_change(change, format)
}

/// MySQL gives the table of an INSERT a row of its own, and tells the tables that UPDATE and
/// DELETE change by their `select_type`.
fn rows_of(change: Change<'_>) -> Vec<Row> {
    let mut rows = change.rows.map(table::rows).unwrap_or_default();
    if matches!(change.verb, "INSERT" | "REPLACE") {
        let target = change.targets.first().copied().unwrap_or_default();
        let mut row = no_table(1, change.verb);
        row[TABLE] = text(target);
        row[ACCESS] = text("ALL");
        row[EXTRA] = Value::Null;
        rows.insert(0, row);
        return rows;
    }
    for row in &mut rows {
        let changed = matches!(row.get(TABLE), Some(Value::Text(name)) if change.targets.contains(&name.as_str()));
        if changed && row.get(SELECT_TYPE) == Some(&text("SIMPLE")) {
            row[SELECT_TYPE] = text(change.verb);
        }
    }
    rows
}
