//! Keys of a table's definition in the making: the primary one and indexes.

use sqlparser::ast;

use super::blinding::is_ordered;
use super::define::{Builder, check_name, duplicate_column};
use super::generated;
use super::key_expression::{self, Part};
use crate::catalog::{ColumnDefault, Index, IndexColumn, IndexId, IndexState};
use crate::error::{SqlError, SqlResult};
use crate::statement::target::position;
use crate::types::DataType;

/// Columns a key may have.
const KEY_PARTS_MAX: usize = 16;
/// Indexes a table may have.
const INDEXES_MAX: usize = 64;
/// Bytes a key may have, counting four a character.
const KEY_BYTES_MAX: u64 = 3_072;

impl Builder<'_> {
    /// Key parts as written, of the index called `index`.
    ///
    /// # Errors
    /// 1072 for unknown columns, 1060 for one named twice; those of [`Builder::add_key_expression`].
    pub(super) fn key_parts(
        &mut self,
        columns: &[ast::IndexColumn],
        index: Option<&str>,
    ) -> SqlResult<Vec<IndexColumn>> {
        let mut parts: Vec<IndexColumn> = Vec::new();
        for column in columns {
            let descending = matches!(column.column.options.sort, Some(ast::OrderBySort::Desc));
            let (at, prefix) = match key_expression::part(&column.column.expr)? {
                Part::Column(name, prefix) => (self.key_part_column(&name, &parts)?, prefix),
                Part::Expression(expr) => {
                    let label = index.map_or_else(
                        || self.free_index_name(key_expression::UNNAMED),
                        str::to_string,
                    );
                    (self.add_key_expression(expr, &label)?, None)
                }
            };
            parts.push(self.key_column(at, prefix, descending)?);
        }
        if parts.len() > KEY_PARTS_MAX {
            let text = format!("Too many key parts specified; max {KEY_PARTS_MAX} parts allowed");
            return Err(SqlError::new(1070, "42000", text));
        }
        Ok(parts)
    }

    fn key_part_column(&self, name: &str, parts: &[IndexColumn]) -> SqlResult<usize> {
        let at = position(&self.table, name).ok_or_else(|| {
            SqlError::new(
                1072,
                "42000",
                format!("Key column '{name}' doesn't exist in table"),
            )
        })?;
        if parts.iter().any(|part| part.column == at) {
            return Err(duplicate_column(name));
        }
        Ok(at)
    }

    pub(super) fn key_column(
        &self,
        at: usize,
        prefix: Option<u32>,
        descending: bool,
    ) -> SqlResult<IndexColumn> {
        let column = &self.table.columns[at];
        let length = match &column.ty {
            DataType::Char { length, .. } | DataType::Varchar { length, .. } => Some(*length),
            DataType::Binary { length } | DataType::Varbinary { length } => Some(*length),
            DataType::Text { .. } | DataType::Blob { .. } => {
                if prefix.is_none() {
                    let text = format!(
                        "BLOB/TEXT column '{}' used in key specification without a key length",
                        column.name
                    );
                    return Err(SqlError::new(1170, "42000", text));
                }
                None
            }
            DataType::Json => {
                let text = format!(
                    "JSON column '{}' supports indexing only via generated columns on a specified JSON path.",
                    column.name
                );
                return Err(SqlError::new(3152, "42000", text));
            }
            _ if prefix.is_some() => return Err(bad_prefix()),
            _ => None,
        };
        if prefix == Some(0) || matches!((prefix, length), (Some(p), Some(l)) if p > l) {
            return Err(bad_prefix());
        }
        Ok(IndexColumn {
            column: at,
            prefix: prefix.filter(|prefix| length != Some(*prefix)),
            descending,
        })
    }

    /// PRIMARY KEY.
    ///
    /// # Errors
    /// 1068 when there is one.
    pub(super) fn set_primary_key(&mut self, parts: Vec<IndexColumn>) -> SqlResult<()> {
        if !self.table.primary_key.is_empty() {
            return Err(SqlError::new(1068, "42000", "Multiple primary key defined"));
        }
        if parts.iter().any(|part| part.prefix.is_some()) {
            return Err(SqlError::not_supported("PRIMARY KEY over a prefix"));
        }
        self.check_key_bytes(&parts)?;
        for part in &parts {
            if generated::is_virtual(&self.table, part.column) {
                return Err(generated::unsupported(
                    "Defining a virtual generated column as primary key",
                ));
            }
            let column = &mut self.table.columns[part.column];
            if self.said_null.contains(&column.id) {
                return Err(null_in_primary_key());
            }
            column.not_null = true;
            if column.default == Some(ColumnDefault::Literal("NULL".into())) {
                column.default = None;
            }
        }
        self.replace_implicit(&parts);
        self.table.primary_key = parts.iter().map(|part| part.column).collect();
        Ok(())
    }

    /// Removes the indexes that foreign keys made for themselves and that one of `columns` makes
    /// superfluous.
    fn replace_implicit(&mut self, columns: &[IndexColumn]) {
        let serves = |index: &Index| {
            index.columns.len() <= columns.len()
                && index.columns.iter().zip(columns).all(|(own, other)| {
                    own.column == other.column
                        && other.prefix.is_none()
                        && own.descending == other.descending
                })
        };
        self.table
            .indexes
            .retain(|index| index.state != IndexState::Implicit || !serves(index));
    }

    /// Adds an index; its identity.
    ///
    /// # Errors
    /// 1061 when the name is taken.
    pub(super) fn add_index(
        &mut self,
        name: Option<&str>,
        columns: Vec<IndexColumn>,
        unique: bool,
        comment: String,
    ) -> SqlResult<IndexId> {
        self.check_key_bytes(&columns)?;
        self.replace_implicit(&columns);
        if self.table.indexes.len() >= INDEXES_MAX {
            let text = format!("Too many keys specified; max {INDEXES_MAX} keys allowed");
            return Err(SqlError::new(1069, "42000", text));
        }
        let name = match name {
            Some(name) => {
                check_name(name)?;
                if name.eq_ignore_ascii_case("PRIMARY") {
                    let text = format!("Incorrect index name '{name}'");
                    return Err(SqlError::new(1280, "42000", text));
                }
                if self.has_index(name) {
                    return Err(SqlError::new(
                        1061,
                        "42000",
                        format!("Duplicate key name '{name}'"),
                    ));
                }
                name.to_string()
            }
            None if self.has_expression(&columns) => self.free_index_name(key_expression::UNNAMED),
            None => self.free_index_name(&self.first_name(&columns)),
        };
        let id = IndexId(self.table.next_index_id.max(1));
        self.table.next_index_id = id.0 + 1;
        self.table.indexes.push(Index {
            id,
            name,
            columns,
            unique,
            state: IndexState::Public,
            comment,
        });
        Ok(id)
    }

    /// Notes whether the options of a key say ORDERED.
    pub(super) fn note_order(&mut self, key: IndexId, options: &[ast::IndexOption]) {
        let ordered = &mut self.table.blinding.ordered;
        ordered.retain(|known| *known != key);
        if is_ordered(options) {
            ordered.push(key);
        }
    }

    fn has_index(&self, name: &str) -> bool {
        let lower = name.to_lowercase();
        self.table
            .indexes
            .iter()
            .any(|index| index.name.to_lowercase() == lower)
    }

    /// The first column's name.
    fn first_name(&self, columns: &[IndexColumn]) -> String {
        columns
            .first()
            .and_then(|part| self.table.columns.get(part.column))
            .map(|column| column.name.clone())
            .unwrap_or_default()
    }

    /// `first`, with `_2`, `_3`, … when taken.
    pub(super) fn free_index_name(&self, first: &str) -> String {
        let mut name = first.to_string();
        let mut number = 2;
        while self.has_index(&name) || name.eq_ignore_ascii_case("PRIMARY") {
            name = format!("{first}_{number}");
            number += 1;
        }
        name
    }

    pub(super) fn check_key_bytes(&self, parts: &[IndexColumn]) -> SqlResult<()> {
        let bytes: u64 = parts
            .iter()
            .filter_map(|part| Some((part, self.table.columns.get(part.column)?)))
            .map(|(part, column)| match &column.ty {
                DataType::Char { length, .. } | DataType::Varchar { length, .. } => {
                    4 * u64::from(part.prefix.unwrap_or(*length))
                }
                DataType::Text { .. } => 4 * u64::from(part.prefix.unwrap_or(0)),
                DataType::Binary { length } | DataType::Varbinary { length } => {
                    u64::from(part.prefix.unwrap_or(*length))
                }
                DataType::Blob { .. } => u64::from(part.prefix.unwrap_or(0)),
                _ => 8,
            })
            .sum();
        if bytes > KEY_BYTES_MAX {
            return Err(SqlError::new(
                1071,
                "42000",
                format!("Specified key was too long; max key length is {KEY_BYTES_MAX} bytes"),
            ));
        }
        Ok(())
    }
}

/// A key part a foreign key can do with: neither a prefix nor descending, as MySQL wants it.
pub(super) fn is_whole(part: &IndexColumn) -> bool {
    part.prefix.is_none() && !part.descending
}

pub(super) fn index_comment(options: &[ast::IndexOption]) -> String {
    options
        .iter()
        .find_map(|option| match option {
            ast::IndexOption::Comment(text) => Some(text.clone()),
            ast::IndexOption::Using(_) => None,
        })
        .unwrap_or_default()
}

fn bad_prefix() -> SqlError {
    SqlError::new(
        1089,
        "HY000",
        "Incorrect prefix key; the used key part isn't a string, the used length is longer than the key part, or the storage engine doesn't support unique prefix keys",
    )
}

pub(super) fn null_in_primary_key() -> SqlError {
    SqlError::new(
        1171,
        "42000",
        "All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, use UNIQUE instead",
    )
}
