//! The places where bytes from outside become structure: packets, SQL text, stored records.
//!
//! Each function here takes any bytes and must return, whatever they are. `cargo fuzz` drives
//! them with coverage (`targets/`), and `tests/short.rs` drives them in every `cargo test` with
//! a seeded generator, because a nightly compiler is not everywhere.
#![forbid(unsafe_code)]

mod inputs;

pub use inputs::{Source, mutated};

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use jiff::tz::TimeZone;
use manxdb_gateway::mysql::codec::PayloadReader;
use manxdb_gateway::mysql::framing::Channel;
use manxdb_gateway::mysql::handshake::{
    parse_change_user, parse_first_packet, server_capabilities,
};
use manxdb_gateway::mysql::params::read_params;
use manxdb_gateway::mysql::query_text::query_text;
use manxdb_sql::catalog::{Column, ColumnId, Table, TableId};
use manxdb_sql::encoding::{decode_columns, decode_row, encode_row};
use manxdb_sql::expr::SqlMode;
use manxdb_sql::parser::{parse, parse_expression};
use manxdb_sql::types::{Collation, DataType, IntWidth, TextSize};

/// Largest packet the fuzzed channel takes, bytes.
const PACKET_MAX: usize = 1 << 16;
/// Packets read from one input.
const PACKETS_MAX: usize = 64;

/// A client's bytes, in the framing and in each parser behind it.
pub fn packets(data: &[u8]) {
    let mut channel = Channel::new(Wire { input: data });
    let mut payload = Vec::new();
    for _ in 0..PACKETS_MAX {
        if channel.read_packet(&mut payload, PACKET_MAX).is_err() {
            break;
        }
        payloads(&payload);
    }
    payloads(data);
}

fn payloads(payload: &[u8]) {
    for tls in [false, true] {
        let capabilities = server_capabilities(tls);
        let _ = parse_first_packet(payload, capabilities);
        let _ = parse_change_user(payload, capabilities, 45);
    }
    let mut types = Vec::new();
    let long_data = BTreeMap::from([(0, b"long".to_vec())]);
    for count in [0, 1, 3, 9, 70] {
        let _ = read_params(
            &mut PayloadReader::new(payload),
            count,
            &mut types,
            &long_data,
        );
    }
    let _ = query_text(payload, false);
    let _ = query_text(payload, true);
}

/// SQL text: the pre-pass, the parser, the parser of stored expressions.
pub fn sql_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    for mode in [
        SqlMode::default(),
        SqlMode {
            pipes_as_concat: true,
            ..SqlMode::default()
        },
    ] {
        let _ = parse(text, mode);
        let _ = parse_expression(text, mode);
    }
}

/// A stored row read as a row of a table with every type; what can be read is written again.
pub fn records(data: &[u8]) {
    let table = every_type();
    let zone = TimeZone::UTC;
    let wanted: Vec<bool> = (0..table.columns.len())
        .map(|position| position % 2 == 0)
        .collect();
    let _ = decode_columns(&table, data, &wanted, &zone);
    if let Ok(row) = decode_row(&table, data, &zone) {
        assert_eq!(
            row.len(),
            table.columns.len(),
            "a row has a value for each column"
        );
        let again = encode_row(&table, &row, &zone);
        let second = decode_row(&table, &again, &zone);
        assert!(second.is_ok(), "what we write can be read: {second:?}");
    }
}

/// A stored row of [`every_type`] with NULLs, to mutate.
#[must_use]
pub fn sample_record() -> Vec<u8> {
    let table = every_type();
    let row = vec![manxdb_sql::types::Value::Null; table.columns.len()];
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
            unsigned: false,
        },
        DataType::Float { unsigned: false },
        DataType::Double { unsigned: false },
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
        next_index_id: 1,
        created_at: 0,
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

/// Bytes as a socket: reads them, then the end; takes every write.
struct Wire<'a> {
    input: &'a [u8],
}

impl Read for Wire<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.input.read(out)
    }
}

impl Write for Wire<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
