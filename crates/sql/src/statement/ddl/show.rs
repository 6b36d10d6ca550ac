//! SHOW CREATE TABLE and SHOW CREATE VIEW, letter by letter as MySQL 8 prints them: clients parse it.

use std::fmt::Write as _;

use crate::catalog::{Column, ColumnDefault, Index, IndexState, Table, View};
use crate::statement::foreign_key::describe;
use crate::types::{Collation, DataType};

/// A name in back-quotes.
pub(crate) fn quote_name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// The text of SHOW CREATE TABLE; `next` is the next AUTO_INCREMENT value.
#[must_use]
pub fn show_create_table(table: &Table, next: u64) -> String {
    let mut lines: Vec<String> = table
        .columns
        .iter()
        .map(|column| column_line(table, column))
        .collect();
    if !table.primary_key.is_empty() {
        let columns: Vec<String> = table
            .primary_key
            .iter()
            .filter_map(|at| table.columns.get(*at))
            .map(|column| quote_name(&column.name))
            .collect();
        lines.push(format!("PRIMARY KEY ({})", columns.join(",")));
    }
    let public = |index: &&Index| index.state == IndexState::Public;
    lines.extend(
        table
            .indexes
            .iter()
            .filter(public)
            .map(|index| index_line(table, index)),
    );
    let enforced = table.foreign_keys.iter().filter(|key| key.enforced);
    lines.extend(enforced.map(|key| describe(table, key)));
    for check in &table.checks {
        let mut line = format!(
            "CONSTRAINT {} CHECK (({}))",
            quote_name(&check.name),
            check.expression
        );
        if !check.enforced {
            line.push_str(" /*!80016 NOT ENFORCED */");
        }
        lines.push(line);
    }
    let mut text = format!(
        "CREATE TABLE {} (\n  {}\n) ENGINE=InnoDB",
        quote_name(&table.name),
        lines.join(",\n  ")
    );
    if next > 1 && table.columns.iter().any(|column| column.auto_increment) {
        let _ = write!(text, " AUTO_INCREMENT={next}");
    }
    let _ = write!(
        text,
        " DEFAULT CHARSET={} COLLATE={}",
        table.collation.charset(),
        table.collation.name()
    );
    if !table.comment.is_empty() {
        let _ = write!(text, " COMMENT={}", super::default::quote(&table.comment));
    }
    text
}

fn column_line(table: &Table, column: &Column) -> String {
    let mut line = format!("{} {}", quote_name(&column.name), type_name(column));
    if let Some(collation) = column.ty.collation().filter(|_| !column.ty.is_bytes()) {
        if collation != table.collation {
            let _ = write!(line, " CHARACTER SET {}", collation.charset());
        }
        if collation != Collation::Uca0900AiCi || collation != table.collation {
            let _ = write!(line, " COLLATE {}", collation.name());
        }
    }
    if column.not_null {
        line.push_str(" NOT NULL");
    } else if matches!(column.ty, DataType::Timestamp { .. }) {
        line.push_str(" NULL");
    }
    let stamp = match column.ty.fsp() {
        0 => "CURRENT_TIMESTAMP".to_string(),
        fsp => format!("CURRENT_TIMESTAMP({fsp})"),
    };
    let heavy = matches!(column.ty, DataType::Text { .. } | DataType::Blob { .. });
    match &column.default {
        Some(ColumnDefault::Now) => {
            let _ = write!(line, " DEFAULT {stamp}");
        }
        Some(ColumnDefault::Expression(text)) => {
            let _ = write!(line, " DEFAULT ({text})");
        }
        Some(ColumnDefault::Literal(text)) if text.starts_with('\'') => {
            let _ = write!(line, " DEFAULT {text}");
        }
        Some(ColumnDefault::Literal(text)) => {
            let _ = write!(line, " DEFAULT '{text}'");
        }
        None if !column.not_null && !heavy => line.push_str(" DEFAULT NULL"),
        None => {}
    }
    if column.on_update_now {
        let _ = write!(line, " ON UPDATE {stamp}");
    }
    if column.auto_increment {
        line.push_str(" AUTO_INCREMENT");
    }
    if !column.comment.is_empty() {
        let _ = write!(line, " COMMENT {}", super::default::quote(&column.comment));
    }
    line
}

/// The declared type without its collation.
fn type_name(column: &Column) -> String {
    column.ty.sql_name()
}

fn index_line(table: &Table, index: &Index) -> String {
    let columns: Vec<String> = index
        .columns
        .iter()
        .filter_map(|part| Some((part, table.columns.get(part.column)?)))
        .map(|(part, column)| {
            let mut text = quote_name(&column.name);
            if let Some(prefix) = part.prefix {
                let _ = write!(text, "({prefix})");
            }
            if part.descending {
                text.push_str(" DESC");
            }
            text
        })
        .collect();
    let unique = if index.unique { "UNIQUE KEY" } else { "KEY" };
    let mut line = format!(
        "{unique} {} ({})",
        quote_name(&index.name),
        columns.join(",")
    );
    if !index.comment.is_empty() {
        let _ = write!(line, " COMMENT {}", super::default::quote(&index.comment));
    }
    line
}

/// The text of SHOW CREATE VIEW.
#[must_use]
pub fn show_create_view(view: &View) -> String {
    let (user, host) = view
        .definer
        .rsplit_once('@')
        .unwrap_or((&view.definer, "%"));
    let mut text = format!(
        "CREATE ALGORITHM=UNDEFINED DEFINER={}@{} SQL SECURITY DEFINER VIEW {}",
        quote_name(user),
        quote_name(host),
        quote_name(&view.name)
    );
    if !view.columns.is_empty() {
        let columns: Vec<String> = view.columns.iter().map(|name| quote_name(name)).collect();
        let _ = write!(text, " ({})", columns.join(","));
    }
    let _ = write!(text, " AS {}", view.query);
    text
}
