//! What has been found, as the client asked for it.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json};

use super::found_rows::{FoundRow, FoundTable};
use crate::catalog::{Column, Table};
use crate::error::SqlResult;
use crate::parser::GdprFormat;
use crate::parser::quote_name;
use crate::session::ResultSink;
use crate::session::session::Session;
use crate::statement::quote_text;
use crate::types::{ColumnMeta, DataType, Row, TextSize, Value, to_json, to_text};

/// The column that says why a row is among the person's.
const WHY: &str = "_why";

/// Sends `found`.
///
/// # Errors
/// The client went away.
pub(super) fn send(
    session: &mut Session,
    found: &[FoundTable],
    format: GdprFormat,
    sink: &mut dyn ResultSink,
    more: bool,
) -> SqlResult<()> {
    let found: Vec<&FoundTable> = found
        .iter()
        .filter(|table| !table.rows.is_empty())
        .collect();
    match format {
        GdprFormat::ResultSets => result_sets(session, &found, sink, more),
        GdprFormat::Json => {
            let text = Value::Text(json(&found).to_string());
            session.send_rows(&["json"], &[vec![text]], sink, more)
        }
        GdprFormat::Csv => {
            let rows: Vec<Row> = found
                .iter()
                .map(|table| {
                    vec![
                        Value::Text(full_name(&table.table)),
                        Value::Text(csv(table)),
                    ]
                })
                .collect();
            session.send_rows(&["table", "csv"], &rows, sink, more)
        }
        GdprFormat::Sql => {
            let rows: Vec<Row> = found
                .iter()
                .flat_map(|table| table.rows.iter().map(|row| insert(table, row)))
                .map(|statement| vec![Value::Text(statement)])
                .collect();
            session.send_rows(&["statement"], &rows, sink, more)
        }
    }
}

/// One result set a table, with the types of its columns. A rule may have hidden even the person: then
/// there is one without rows.
fn result_sets(
    session: &mut Session,
    found: &[&FoundTable],
    sink: &mut dyn ResultSink,
    more: bool,
) -> SqlResult<()> {
    if found.is_empty() {
        return session.send_rows(&[WHY], &[], sink, more);
    }
    for (number, table) in found.iter().enumerate() {
        let mut metas: Vec<ColumnMeta> = columns(table)
            .map(|column| meta(&table.table, column))
            .collect();
        metas.push(why_meta());
        sink.columns(&metas)?;
        for row in &table.rows {
            let mut values = row.values.clone();
            values.push(Value::Text(why(row)));
            sink.row(&values)?;
        }
        let status = session.status();
        sink.end(status, more || number + 1 < found.len())?;
    }
    Ok(())
}

fn columns(table: &FoundTable) -> impl Iterator<Item = &Column> {
    table
        .visible
        .iter()
        .filter_map(|at| table.table.columns.get(*at))
}

fn meta(table: &Table, column: &Column) -> ColumnMeta {
    ColumnMeta {
        schema: table.database.clone(),
        table: table.name.clone(),
        org_table: table.name.clone(),
        name: column.name.clone(),
        org_name: column.name.clone(),
        ty: column.ty.clone(),
        // A rule may have cleared it.
        not_null: false,
        primary_key: false,
        unique_key: false,
        multiple_key: false,
        auto_increment: false,
    }
}

fn why_meta() -> ColumnMeta {
    ColumnMeta {
        schema: String::new(),
        table: String::new(),
        org_table: String::new(),
        name: WHY.to_string(),
        org_name: String::new(),
        ty: DataType::Text {
            size: TextSize::Normal,
            collation: crate::types::Collation::default(),
        },
        not_null: true,
        primary_key: false,
        unique_key: false,
        multiple_key: false,
        auto_increment: false,
    }
}

/// The edges by which a row was reached, and whether it is only shown to the person.
fn why(row: &FoundRow) -> String {
    let mut reasons: Vec<&str> = row
        .reasons
        .iter()
        .map(|reason| reason.text.as_str())
        .collect();
    reasons.sort_unstable();
    reasons.dedup();
    let role = if row.is_owned() { "owner" } else { "access" };
    format!("{role}: {}", reasons.join(", "))
}

fn full_name(table: &Table) -> String {
    format!("{}.{}", table.database, table.name)
}

fn json(found: &[&FoundTable]) -> Json {
    let mut tables = Map::new();
    for table in found {
        let rows = table.rows.iter().map(|row| {
            let mut object = Map::new();
            for (column, value) in columns(table).zip(&row.values) {
                let value = match value {
                    Value::Null
                    | Value::Int(_)
                    | Value::UInt(_)
                    | Value::Double(_)
                    | Value::Json(_) => to_json(value),
                    other => Json::String(to_text(other, &column.ty)),
                };
                object.insert(column.name.clone(), value);
            }
            object.insert(WHY.to_string(), Json::String(why(row)));
            Json::Object(object)
        });
        tables.insert(full_name(&table.table), Json::Array(rows.collect()));
    }
    Json::Object(tables)
}

/// RFC 4180, with a line of names; NULL is empty, and an empty text is quoted.
fn csv(table: &FoundTable) -> String {
    let field = |text: &str| {
        let is_plain = !text.is_empty() && !text.contains(['"', ',', '\n', '\r']);
        if is_plain {
            text.to_string()
        } else {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
    };
    let mut names: Vec<String> = columns(table).map(|column| field(&column.name)).collect();
    names.push(WHY.to_string());
    let mut text = names.join(",");
    for row in &table.rows {
        let mut fields: Vec<String> = columns(table)
            .zip(&row.values)
            .map(|(column, value)| match value {
                Value::Null => String::new(),
                value => field(&to_text(value, &column.ty)),
            })
            .collect();
        fields.push(field(&why(row)));
        let _ = write!(text, "\r\n{}", fields.join(","));
    }
    text.push_str("\r\n");
    text
}

/// The INSERT that makes a row again; generated columns compute themselves.
fn insert(table: &FoundTable, row: &FoundRow) -> String {
    let written: Vec<(&Column, &Value)> = columns(table)
        .zip(&row.values)
        .filter(|(column, _)| column.generated.is_none())
        .collect();
    let names: Vec<String> = written
        .iter()
        .map(|(column, _)| quote_name(&column.name))
        .collect();
    let values: Vec<String> = written
        .iter()
        .map(|(column, value)| match value {
            Value::Null => "NULL".to_string(),
            Value::Int(_) | Value::UInt(_) | Value::Decimal(_) => to_text(value, &column.ty),
            Value::Bytes(bytes) => {
                let mut text = String::from("X'");
                for byte in bytes {
                    let _ = write!(text, "{byte:02X}");
                }
                text + "'"
            }
            value => quote_text(&to_text(value, &column.ty)),
        })
        .collect();
    format!(
        "INSERT INTO {} ({}) VALUES ({});",
        quote_name(&table.table.name),
        names.join(", "),
        values.join(", ")
    )
}
