//! JSON_TABLE: a table made of a JSON document.

use std::sync::Arc;

use super::Expr;
use crate::types::{DataType, JsonPath};

/// The rows of a document. The table has the columns of all its levels, numbered from 0.
#[derive(Debug, Clone)]
pub struct JsonTable {
    /// The document; NULL has no rows.
    pub document: Expr,
    /// Its rows.
    pub rows: JsonRows,
    /// Columns of all levels.
    pub width: usize,
}

/// A row for each value that a path leads to.
#[derive(Debug, Clone)]
pub struct JsonRows {
    /// The path, from the value of the enclosing level.
    pub path: JsonPath,
    /// Columns of this level.
    pub columns: Vec<JsonColumn>,
    /// NESTED PATH: each has rows of its own for a row of this level, where the columns of the
    /// others are NULL.
    pub nested: Vec<JsonRows>,
}

/// A column.
#[derive(Debug, Clone)]
pub struct JsonColumn {
    /// Its number in the table.
    pub at: usize,
    /// Its name, for errors.
    pub name: String,
    /// Its type.
    pub ty: DataType,
    /// What it holds.
    pub kind: JsonColumnKind,
}

/// What a column holds.
#[derive(Debug, Clone)]
pub enum JsonColumnKind {
    /// FOR ORDINALITY: the number of the row among those of its path, from 1.
    Ordinality,
    /// EXISTS PATH: whether the path leads to anything.
    Exists(JsonPath),
    /// PATH: what the path leads to.
    Value {
        /// From the value of the row.
        path: JsonPath,
        /// ON EMPTY: where the path leads to nothing.
        on_empty: JsonFallback,
        /// ON ERROR: where the column cannot hold what the path leads to.
        on_error: JsonFallback,
    },
}

/// What stands in a column that has no value.
#[derive(Debug, Clone)]
pub enum JsonFallback {
    /// NULL.
    Null,
    /// DEFAULT.
    Default(Arc<serde_json::Value>),
    /// ERROR.
    Error,
}
