//! How a computed table is described.

use std::sync::Arc;

use super::source::Source;
use crate::catalog::{Column, ColumnId, Table, TableId};
use crate::error::SqlResult;
use crate::types::{Collation, DataType, IntWidth, Row, TextSize, Value};

/// The types computed columns have.
#[derive(Debug, Clone, Copy)]
pub(super) enum C {
    /// VARCHAR.
    Text(u32),
    /// LONGTEXT.
    Long,
    /// INT.
    Int,
    /// BIGINT.
    Big,
    /// BIGINT UNSIGNED.
    BigU,
    /// TIMESTAMP.
    Time,
}

/// A name in the catalog.
pub(super) const NAME: C = C::Text(64);

/// A computed table.
pub(crate) struct Definition {
    /// Upper case in `information_schema`, lower elsewhere.
    pub(super) name: &'static str,
    /// Columns in MySQL 8's order.
    pub(super) columns: &'static [(&'static str, C)],
    /// Its rows.
    pub(super) rows: fn(&Source<'_>) -> SqlResult<Vec<Row>>,
}

impl Definition {
    /// Its shape as the binder wants it.
    pub(super) fn shape(&self, database: &str) -> Arc<Table> {
        let columns = (0u32..)
            .zip(self.columns)
            .map(|(id, (name, ty))| column(id, name, *ty))
            .collect();
        Arc::new(Table {
            id: TableId(u32::MAX),
            database: database.to_string(),
            name: self.name.to_string(),
            schema_version: 0,
            columns,
            primary_key: Vec::new(),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            collation: Collation::GeneralCi,
            comment: String::new(),
            data_subject: false,
            temporary: false,
            analyzed: None,
            blinding: crate::catalog::Blinding::default(),
            copying: None,
            sealing: crate::catalog::Sealing::default(),
            ownership_rules: Vec::new(),
            ownership: crate::catalog::Ownership::default(),
            next_column_id: 0,
            next_index_id: 0,
            created_at: 0,
        })
    }
}

fn column(id: u32, name: &str, ty: C) -> Column {
    let collation = Collation::GeneralCi;
    let int = |width, unsigned| DataType::Int {
        width,
        unsigned,
        display_width: None,
    };
    let ty = match ty {
        C::Text(length) => DataType::Varchar { length, collation },
        C::Long => DataType::Text {
            size: TextSize::Long,
            collation,
        },
        C::Int => int(IntWidth::Int, false),
        C::Big => int(IntWidth::Big, false),
        C::BigU => int(IntWidth::Big, true),
        C::Time => DataType::DateTime { fsp: 0 },
    };
    Column {
        id: ColumnId(id),
        name: name.to_string(),
        ty,
        not_null: false,
        default: None,
        on_update_now: false,
        auto_increment: false,
        comment: String::new(),
        absent_value: None,
        generated: None,
    }
}

/// A text value.
pub(super) fn text(value: impl Into<String>) -> Value {
    Value::Text(value.into())
}

/// A text value or NULL.
pub(super) fn text_or_null(value: Option<impl Into<String>>) -> Value {
    value.map_or(Value::Null, text)
}

/// A number.
pub(super) fn number(value: impl TryInto<i64>) -> Value {
    Value::Int(value.try_into().unwrap_or(i64::MAX))
}

/// `YES` or `NO`.
pub(super) fn yes_no(value: bool) -> Value {
    text(if value { "YES" } else { "NO" })
}

/// The catalog every row belongs to.
pub(super) fn def() -> Value {
    text("def")
}
