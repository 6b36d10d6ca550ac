//! Indexes and constraints.

use super::define::{C, Definition, NAME, def, number, text, text_or_null};
use super::relations;
use super::source::Source;
use crate::catalog::{Column, ForeignKey, ForeignKeyAction, Index, IndexId, Table};
use crate::error::SqlResult;
use crate::parser::displayed_definition;
use crate::types::{Row, Value};

/// STATISTICS, `KEY_COLUMN_USAGE`, `TABLE_CONSTRAINTS`, `REFERENTIAL_CONSTRAINTS`, `CHECK_CONSTRAINTS`.
pub(super) const TABLES: &[Definition] = &[
    Definition {
        name: "STATISTICS",
        columns: &[
            ("TABLE_CATALOG", NAME),
            ("TABLE_SCHEMA", NAME),
            ("TABLE_NAME", NAME),
            ("NON_UNIQUE", C::Int),
            ("INDEX_SCHEMA", NAME),
            ("INDEX_NAME", NAME),
            ("SEQ_IN_INDEX", C::Int),
            ("COLUMN_NAME", NAME),
            ("COLLATION", C::Text(1)),
            ("CARDINALITY", C::Big),
            ("SUB_PART", C::Big),
            ("PACKED", C::Text(10)),
            ("NULLABLE", C::Text(3)),
            ("INDEX_TYPE", C::Text(11)),
            ("COMMENT", C::Text(8)),
            ("INDEX_COMMENT", C::Text(2048)),
            ("IS_VISIBLE", C::Text(3)),
            ("EXPRESSION", C::Long),
        ],
        rows: statistics,
    },
    Definition {
        name: "KEY_COLUMN_USAGE",
        columns: &[
            ("CONSTRAINT_CATALOG", NAME),
            ("CONSTRAINT_SCHEMA", NAME),
            ("CONSTRAINT_NAME", NAME),
            ("TABLE_CATALOG", NAME),
            ("TABLE_SCHEMA", NAME),
            ("TABLE_NAME", NAME),
            ("COLUMN_NAME", NAME),
            ("ORDINAL_POSITION", C::Int),
            ("POSITION_IN_UNIQUE_CONSTRAINT", C::Int),
            ("REFERENCED_TABLE_SCHEMA", NAME),
            ("REFERENCED_TABLE_NAME", NAME),
            ("REFERENCED_COLUMN_NAME", NAME),
        ],
        rows: key_column_usage,
    },
    Definition {
        name: "TABLE_CONSTRAINTS",
        columns: &[
            ("CONSTRAINT_CATALOG", NAME),
            ("CONSTRAINT_SCHEMA", NAME),
            ("CONSTRAINT_NAME", NAME),
            ("TABLE_SCHEMA", NAME),
            ("TABLE_NAME", NAME),
            ("CONSTRAINT_TYPE", C::Text(11)),
            ("ENFORCED", C::Text(3)),
        ],
        rows: table_constraints,
    },
    Definition {
        name: "REFERENTIAL_CONSTRAINTS",
        columns: &[
            ("CONSTRAINT_CATALOG", NAME),
            ("CONSTRAINT_SCHEMA", NAME),
            ("CONSTRAINT_NAME", NAME),
            ("UNIQUE_CONSTRAINT_CATALOG", NAME),
            ("UNIQUE_CONSTRAINT_SCHEMA", NAME),
            ("UNIQUE_CONSTRAINT_NAME", NAME),
            ("MATCH_OPTION", NAME),
            ("UPDATE_RULE", NAME),
            ("DELETE_RULE", NAME),
            ("TABLE_NAME", NAME),
            ("REFERENCED_TABLE_NAME", NAME),
        ],
        rows: referential_constraints,
    },
    Definition {
        name: "CHECK_CONSTRAINTS",
        columns: &[
            ("CONSTRAINT_CATALOG", NAME),
            ("CONSTRAINT_SCHEMA", NAME),
            ("CONSTRAINT_NAME", NAME),
            ("CHECK_CLAUSE", C::Long),
        ],
        rows: check_constraints,
    },
];

/// One key column: position, prefix length, descending.
type KeyPart = (usize, Option<u32>, bool);

/// PRIMARY, then unique indexes, then the others: MySQL's order.
pub(crate) fn keys(table: &Table) -> Vec<(&str, bool, &str, Vec<KeyPart>)> {
    let mut keys = Vec::new();
    if !table.primary_key.is_empty() {
        let parts = table
            .primary_key
            .iter()
            .map(|at| (*at, None, false))
            .collect();
        keys.push(("PRIMARY", true, "", parts));
    }
    let mut indexes: Vec<&Index> = table
        .indexes
        .iter()
        .filter(|index| index.state.is_readable())
        .collect();
    indexes.sort_by_key(|index| !index.unique);
    for index in indexes {
        let parts = index
            .columns
            .iter()
            .map(|part| (part.column, part.prefix, part.descending))
            .collect();
        keys.push((
            index.name.as_str(),
            index.unique,
            index.comment.as_str(),
            parts,
        ));
    }
    keys
}

/// Foreign keys MySQL would have: those that are enforced.
pub(crate) fn enforced(table: &Table) -> impl Iterator<Item = &ForeignKey> {
    table.foreign_keys.iter().filter(|key| key.enforced)
}

/// How many values the first column of a key takes, the first two and so on; empty before ANALYZE
/// TABLE.
fn cardinalities<'t>(table: &'t Table, key: &str) -> &'t [u64] {
    let of_name = table.indexes.iter().find(|index| index.name == key);
    let id = of_name.map_or(IndexId(0), |index| index.id);
    let known = table.statistics().and_then(|known| known.key(id));
    known.map_or(&[], |known| known.distinct.as_slice())
}

#[allow(clippy::unnecessary_wraps)] // the shape of every rows function
fn statistics(source: &Source<'_>) -> SqlResult<Vec<Row>> {
    let mut rows = Vec::new();
    for table in source.tables() {
        for (name, unique, comment, parts) in keys(table) {
            let known = cardinalities(table, name);
            for (at, (column, prefix, descending)) in parts.iter().enumerate() {
                let Some(column) = table.columns.get(*column) else {
                    continue;
                };
                let (named, expression) = if column.is_hidden() {
                    let expression = relations::generation_expression(column);
                    (Value::Null, text(expression))
                } else {
                    (text(&*column.name), Value::Null)
                };
                let nullable = if column.not_null { "" } else { "YES" };
                rows.push(vec![
                    def(),
                    text(&*table.database),
                    text(&*table.name),
                    number(u8::from(!unique)),
                    text(&*table.database),
                    text(name),
                    number(at + 1),
                    named,
                    text(if *descending { "D" } else { "A" }),
                    number(known.get(at).copied().unwrap_or(0)),
                    prefix.map_or(Value::Null, number),
                    Value::Null,
                    text(nullable),
                    text("BTREE"),
                    text(""),
                    text(comment),
                    text("YES"),
                    expression,
                ]);
            }
        }
    }
    Ok(rows)
}

fn column_name(table: &Table, at: usize) -> &str {
    table
        .columns
        .get(at)
        .map_or("", |column| column.name.as_str())
}

#[allow(clippy::unnecessary_wraps)]
fn key_column_usage(source: &Source<'_>) -> SqlResult<Vec<Row>> {
    let mut rows = Vec::new();
    for table in source.tables() {
        let start = |name: &str| {
            vec![
                def(),
                text(&*table.database),
                text(name),
                def(),
                text(&*table.database),
                text(&*table.name),
            ]
        };
        for (name, unique, _, parts) in keys(table) {
            for (at, (column, ..)) in parts.iter().enumerate().filter(|_| unique) {
                // An expression is no column.
                if table.columns.get(*column).is_some_and(Column::is_hidden) {
                    continue;
                }
                let mut row = start(name);
                row.extend([text(column_name(table, *column)), number(at + 1)]);
                row.resize(12, Value::Null);
                rows.push(row);
            }
        }
        for key in enforced(table) {
            for (at, (column, referenced)) in key.columns.iter().zip(&key.ref_columns).enumerate() {
                let mut row = start(&key.name);
                row.extend([
                    text(column_name(table, *column)),
                    number(at + 1),
                    number(at + 1),
                    text(&*key.ref_database),
                    text(&*key.ref_table),
                    text(&**referenced),
                ]);
                rows.push(row);
            }
        }
    }
    Ok(rows)
}

#[allow(clippy::unnecessary_wraps)]
fn table_constraints(source: &Source<'_>) -> SqlResult<Vec<Row>> {
    let mut rows = Vec::new();
    for table in source.tables() {
        let mut add = |name: &str, kind: &str, enforced: bool| {
            rows.push(vec![
                def(),
                text(&*table.database),
                text(name),
                text(&*table.database),
                text(&*table.name),
                text(kind),
                super::define::yes_no(enforced),
            ]);
        };
        for (name, unique, ..) in keys(table) {
            if name == "PRIMARY" {
                add(name, "PRIMARY KEY", true);
            } else if unique {
                add(name, "UNIQUE", true);
            }
        }
        for key in enforced(table) {
            add(&key.name, "FOREIGN KEY", true);
        }
        for check in &table.checks {
            add(&check.name, "CHECK", check.enforced);
        }
    }
    Ok(rows)
}

/// MySQL's word for a rule.
pub(crate) fn rule(action: ForeignKeyAction) -> &'static str {
    match action {
        ForeignKeyAction::NoAction => "NO ACTION",
        ForeignKeyAction::Restrict => "RESTRICT",
        ForeignKeyAction::Cascade => "CASCADE",
        ForeignKeyAction::SetNull => "SET NULL",
    }
}

/// The unique key of the referenced table that a foreign key rests on.
fn referenced_key(source: &Source<'_>, key: &ForeignKey) -> Option<String> {
    let table = source
        .catalog
        .table(&key.ref_database, &key.ref_table)
        .ok()?;
    let found = keys(table).into_iter().find(|(_, unique, _, parts)| {
        *unique
            && parts.len() == key.ref_columns.len()
            && parts
                .iter()
                .zip(&key.ref_columns)
                .all(|((at, ..), wanted)| column_name(table, *at).eq_ignore_ascii_case(wanted))
    });
    found.map(|(name, ..)| name.to_string())
}

#[allow(clippy::unnecessary_wraps)]
fn referential_constraints(source: &Source<'_>) -> SqlResult<Vec<Row>> {
    let mut rows = Vec::new();
    for table in source.tables() {
        for key in enforced(table) {
            rows.push(vec![
                def(),
                text(&*table.database),
                text(&*key.name),
                def(),
                text(&*key.ref_database),
                text_or_null(referenced_key(source, key)),
                text("NONE"),
                text(rule(key.on_update)),
                text(rule(key.on_delete)),
                text(&*table.name),
                text(&*key.ref_table),
            ]);
        }
    }
    Ok(rows)
}

#[allow(clippy::unnecessary_wraps)]
fn check_constraints(source: &Source<'_>) -> SqlResult<Vec<Row>> {
    let row = |database: &str, name: &str, clause: &str| {
        vec![def(), text(database), text(name), text(clause)]
    };
    Ok(source
        .tables()
        .into_iter()
        .flat_map(|table| table.checks.iter().map(move |check| (table, check)))
        .map(|(table, check)| {
            row(
                &table.database,
                &check.name,
                &displayed_definition(&check.expression).replace('\'', "\\'"),
            )
        })
        .collect())
}
