//! What the store gives back as a row.

use jiff::tz::TimeZone;
use manxdb_sql::catalog::{Column, ColumnId, Table, TableId};
use manxdb_sql::encoding::{decode_columns, decode_row, encode_row};
use manxdb_sql::types::{Collation, DataType, IntWidth, TextSize, Value};

/// A stored row read as a row of a table with every type; what can be read is written again.
pub fn records(data: &[u8]) {
    let table = every_type();
    let zone = TimeZone::UTC;
    let wanted: Vec<bool> = (0..table.columns.len())
        .map(|position| position % 2 == 0)
        .collect();
    let mut row = vec![Value::Null; table.columns.len()];
    let _ = decode_columns(&table, (b"", data), &wanted, &zone, &mut row);
    if let Ok(row) = decode_row(&table, (b"", data), &zone) {
        assert_eq!(
            row.len(),
            table.columns.len(),
            "a row has a value for each column"
        );
        let again = encode_row(&table, &row, &zone);
        let second = decode_row(&table, (b"", &again), &zone);
        assert!(second.is_ok(), "what we write can be read: {second:?}");
    }
}

/// A stored row of [`every_type`] with NULLs, to mutate.
#[must_use]
pub fn sample_record() -> Vec<u8> {
    let table = every_type();
    let row = vec![Value::Null; table.columns.len()];
    encode_row(&table, &row, &TimeZone::UTC)
}

/// A table with a column of every type.
fn every_type() -> Table {
    let types = [
        DataType::Int {
            width: IntWidth::Big,
            unsigned: false,
            display_width: None,
        },
        DataType::Int {
            width: IntWidth::Tiny,
            unsigned: true,
            display_width: None,
        },
        DataType::Decimal {
            precision: 20,
            scale: 5,
            sign: DataType::SIGNED,
        },
        DataType::FLOAT,
        DataType::DOUBLE,
        DataType::Char {
            length: 5,
            collation: Collation::GeneralCi,
        },
        DataType::Varchar {
            length: 20,
            collation: Collation::Bin,
        },
        DataType::Text {
            size: TextSize::Normal,
            collation: Collation::Uca0900AiCi,
        },
        DataType::Binary { length: 4 },
        DataType::Varbinary { length: 9 },
        DataType::Blob {
            size: TextSize::Long,
        },
        DataType::Date,
        DataType::Time { fsp: 3 },
        DataType::DateTime { fsp: 6 },
        DataType::Timestamp { fsp: 0 },
        DataType::Year,
        DataType::Json,
        DataType::Enum {
            members: vec!["a".to_owned(), "b".to_owned()],
            collation: Collation::GeneralCi,
        },
        DataType::Set {
            members: vec!["a".to_owned(), "b".to_owned()],
            collation: Collation::Uca0900AsCs,
        },
        DataType::Bit { width: 64 },
    ];
    let columns: Vec<Column> = types
        .into_iter()
        .zip(0..)
        .map(|(ty, id)| column(id, ty))
        .collect();
    Table {
        id: TableId(1),
        database: "fuzz".to_owned(),
        name: "every_type".to_owned(),
        schema_version: 1,
        next_column_id: u32::try_from(columns.len()).unwrap_or(u32::MAX),
        columns,
        primary_key: vec![0],
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        collation: Collation::default(),
        comment: String::new(),
        data_subject: false,
        temporary: false,
        ownership_rules: Vec::new(),
        ownership: manxdb_sql::catalog::Ownership::default(),
        next_index_id: 1,
        created_at: 0,
        analyzed: None,
        copying: None,
        blinding: manxdb_sql::catalog::Blinding::default(),
        sealing: manxdb_sql::catalog::Sealing::default(),
    }
}

fn column(id: u32, ty: DataType) -> Column {
    Column {
        id: ColumnId(id),
        name: format!("c{id}"),
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
