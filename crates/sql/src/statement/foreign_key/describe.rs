//! A foreign key in words, and the errors that show them.

use std::fmt::Write as _;

use crate::catalog::{ForeignKey, ForeignKeyAction, Table};
use crate::error::SqlError;

/// `CONSTRAINT … FOREIGN KEY …`, as SHOW CREATE TABLE and errors 1451 and 1452 word it.
pub(crate) fn describe(table: &Table, key: &ForeignKey) -> String {
    let quote = |name: &str| format!("`{}`", name.replace('`', "``"));
    let columns: Vec<String> = key
        .columns
        .iter()
        .filter_map(|&at| table.columns.get(at))
        .map(|column| quote(&column.name))
        .collect();
    let referenced: Vec<String> = key.ref_columns.iter().map(|name| quote(name)).collect();
    let parent = if key.ref_database.eq_ignore_ascii_case(&table.database) {
        quote(&key.ref_table)
    } else {
        format!("{}.{}", quote(&key.ref_database), quote(&key.ref_table))
    };
    let mut text = format!(
        "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {parent} ({})",
        quote(&key.name),
        columns.join(", "),
        referenced.join(", ")
    );
    for (event, action) in [("DELETE", key.on_delete), ("UPDATE", key.on_update)] {
        let word = match action {
            ForeignKeyAction::NoAction => continue,
            ForeignKeyAction::Restrict => "RESTRICT",
            ForeignKeyAction::Cascade => "CASCADE",
            ForeignKeyAction::SetNull => "SET NULL",
        };
        let _ = write!(text, " ON {event} {word}");
    }
    text
}

pub(super) fn no_parent(table: &Table, key: &ForeignKey) -> SqlError {
    SqlError::new(
        1452,
        "23000",
        format!(
            "Cannot add or update a child row: a foreign key constraint fails (`{}`.`{}`, {})",
            table.database,
            table.name,
            describe(table, key)
        ),
    )
}

pub(super) fn has_children(table: &Table, key: &ForeignKey) -> SqlError {
    SqlError::new(
        1451,
        "23000",
        format!(
            "Cannot delete or update a parent row: a foreign key constraint fails (`{}`.`{}`, {})",
            table.database,
            table.name,
            describe(table, key)
        ),
    )
}
