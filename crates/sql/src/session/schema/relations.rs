//! Databases, tables, columns, views.

use super::define::{C, Definition, NAME, def, number, text, text_or_null, yes_no};
use super::source::Source;
use crate::catalog::{Column, ColumnDefault, GeneratedKind, Table};
use crate::error::SqlResult;
use crate::parser::{displayed, displayed_definition};
use crate::session::accounts::{Account, Privileges};
use crate::types::{Collation, DataType, Date, DateTime, Row, Value};

/// SCHEMATA, TABLES, COLUMNS, VIEWS.
pub(super) const TABLES: &[Definition] = &[
    Definition {
        name: "SCHEMATA",
        columns: &[
            ("CATALOG_NAME", NAME),
            ("SCHEMA_NAME", NAME),
            ("DEFAULT_CHARACTER_SET_NAME", NAME),
            ("DEFAULT_COLLATION_NAME", NAME),
            ("SQL_PATH", NAME),
            ("DEFAULT_ENCRYPTION", C::Text(3)),
        ],
        rows: schemata,
    },
    Definition {
        name: "TABLES",
        columns: &[
            ("TABLE_CATALOG", NAME),
            ("TABLE_SCHEMA", NAME),
            ("TABLE_NAME", NAME),
            ("TABLE_TYPE", NAME),
            ("ENGINE", NAME),
            ("VERSION", C::Int),
            ("ROW_FORMAT", C::Text(10)),
            ("TABLE_ROWS", C::BigU),
            ("AVG_ROW_LENGTH", C::BigU),
            ("DATA_LENGTH", C::BigU),
            ("MAX_DATA_LENGTH", C::BigU),
            ("INDEX_LENGTH", C::BigU),
            ("DATA_FREE", C::BigU),
            ("AUTO_INCREMENT", C::BigU),
            ("CREATE_TIME", C::Time),
            ("UPDATE_TIME", C::Time),
            ("CHECK_TIME", C::Time),
            ("TABLE_COLLATION", NAME),
            ("CHECKSUM", C::Big),
            ("CREATE_OPTIONS", C::Text(256)),
            ("TABLE_COMMENT", C::Long),
        ],
        rows: tables,
    },
    Definition {
        name: "COLUMNS",
        columns: &[
            ("TABLE_CATALOG", NAME),
            ("TABLE_SCHEMA", NAME),
            ("TABLE_NAME", NAME),
            ("COLUMN_NAME", NAME),
            ("ORDINAL_POSITION", C::Int),
            ("COLUMN_DEFAULT", C::Long),
            ("IS_NULLABLE", C::Text(3)),
            ("DATA_TYPE", C::Long),
            ("CHARACTER_MAXIMUM_LENGTH", C::Big),
            ("CHARACTER_OCTET_LENGTH", C::Big),
            ("NUMERIC_PRECISION", C::BigU),
            ("NUMERIC_SCALE", C::BigU),
            ("DATETIME_PRECISION", C::Int),
            ("CHARACTER_SET_NAME", NAME),
            ("COLLATION_NAME", NAME),
            ("COLUMN_TYPE", C::Long),
            ("COLUMN_KEY", C::Text(3)),
            ("EXTRA", C::Text(256)),
            ("PRIVILEGES", C::Text(154)),
            ("COLUMN_COMMENT", C::Long),
            ("GENERATION_EXPRESSION", C::Long),
            ("SRS_ID", C::Int),
        ],
        rows: columns,
    },
    Definition {
        name: "VIEWS",
        columns: &[
            ("TABLE_CATALOG", NAME),
            ("TABLE_SCHEMA", NAME),
            ("TABLE_NAME", NAME),
            ("VIEW_DEFINITION", C::Long),
            ("CHECK_OPTION", C::Text(8)),
            ("IS_UPDATABLE", C::Text(3)),
            ("DEFINER", C::Text(288)),
            ("SECURITY_TYPE", C::Text(7)),
            ("CHARACTER_SET_CLIENT", NAME),
            ("COLLATION_CONNECTION", NAME),
        ],
        rows: views,
    },
];

#[allow(clippy::unnecessary_wraps)] // the shape of every rows function
fn schemata(source: &Source<'_>) -> SqlResult<Vec<Row>> {
    let row = |name: &str, charset: &str, collation: &str| {
        vec![
            def(),
            text(name),
            text(charset),
            text(collation),
            Value::Null,
            text("NO"),
        ]
    };
    let mut rows: Vec<Row> = super::DATABASES
        .iter()
        .filter(|name| **name != "mysql" || source.account().global.has_any(Privileges::SELECT))
        .map(|name| row(name, "utf8mb3", "utf8mb3_general_ci"))
        .collect();
    for database in source.databases() {
        let collation = database.collation;
        rows.push(row(&database.name, collation.charset(), collation.name()));
    }
    rows.sort_by(|a, b| name_of(a).cmp(name_of(b)));
    Ok(rows)
}

fn name_of(row: &Row) -> &str {
    match row.get(1) {
        Some(Value::Text(name)) => name,
        _ => "",
    }
}

fn tables(source: &Source<'_>) -> SqlResult<Vec<Row>> {
    let mut rows = Vec::new();
    for database in super::DATABASES {
        for entry in super::tables(database) {
            let kind = if database == "information_schema" {
                "SYSTEM VIEW"
            } else {
                "BASE TABLE"
            };
            rows.push(bare_row(database, &entry.table.name, kind, ""));
        }
    }
    let mut budget = COUNTED_MAX;
    for table in source.tables() {
        rows.push(table_row(source, table, &mut budget)?);
    }
    for view in source.views() {
        rows.push(bare_row(&view.database, &view.name, "VIEW", "VIEW"));
    }
    Ok(rows)
}

fn bare_row(database: &str, name: &str, kind: &str, comment: &str) -> Row {
    let mut row = vec![def(), text(database), text(name), text(kind)];
    row.resize(20, Value::Null);
    row.push(text(comment));
    row
}

/// Rows of one table that are counted when it is shown, and of all tables together.
const COUNTED_OF_TABLE_MAX: usize = 10_000;
const COUNTED_MAX: usize = 200_000;

/// How many rows a table has: counted when they are few, otherwise as ANALYZE TABLE found them.
fn table_rows(source: &Source<'_>, table: &Table, budget: &mut usize) -> SqlResult<u64> {
    let known = table.statistics().map_or(0, |known| known.rows);
    let limit = COUNTED_OF_TABLE_MAX.min(*budget);
    let counted = source.state.instance.count_rows(table, limit)?;
    *budget -= counted;
    let counted_all = counted < limit;
    let counted = counted as u64;
    Ok(if counted_all {
        counted
    } else {
        counted.max(known)
    })
}

fn table_row(source: &Source<'_>, table: &Table, budget: &mut usize) -> SqlResult<Row> {
    let next = source.state.instance.next_auto_increment(table);
    let zero = || number(0);
    let rows = table_rows(source, table, budget)?;
    let length = match table.statistics() {
        Some(known) if known.rows > 0 => known.bytes / known.rows,
        _ => 0,
    };
    Ok(vec![
        def(),
        text(&*table.database),
        text(&*table.name),
        text("BASE TABLE"),
        text("InnoDB"),
        number(10),
        text("Dynamic"),
        number(rows),
        number(length),
        number(length.saturating_mul(rows)),
        zero(),
        zero(),
        zero(),
        next.map_or(Value::Null, number),
        created(table.created_at),
        Value::Null,
        Value::Null,
        text(table.collation.name()),
        Value::Null,
        text(""),
        text(&*table.comment),
    ])
}

fn created(micros: i64) -> Value {
    let seconds = micros.div_euclid(1_000_000);
    let days = seconds.div_euclid(86_400);
    let Some(date) = Date::from_day_number(days + EPOCH_DAY) else {
        return Value::Null;
    };
    let of_day = seconds.rem_euclid(86_400).unsigned_abs() * 1_000_000;
    Value::DateTime(DateTime {
        date,
        micros: of_day,
    })
}

/// Day number of 1970-01-01 as `TO_DAYS()` counts.
const EPOCH_DAY: i64 = 719_528;

#[allow(clippy::unnecessary_wraps)]
fn columns(source: &Source<'_>) -> SqlResult<Vec<Row>> {
    let account = source.account();
    let mut rows = Vec::new();
    for database in super::DATABASES {
        for entry in super::tables(database) {
            table_columns(&entry.table, &account, &mut rows);
        }
    }
    for table in source.tables() {
        table_columns(table, &account, &mut rows);
    }
    for view in source.views() {
        for (at, column) in source.view_columns(view).iter().enumerate() {
            let mut row = vec![def(), text(&*view.database), text(&*view.name)];
            row.extend([
                text(&*column.name),
                number(at + 1),
                Value::Null,
                yes_no(!column.not_null),
            ]);
            type_columns(&column.ty, &mut row);
            row.extend([
                text(""),
                text(""),
                text(privileges(&account, &view.database, &view.name)),
            ]);
            row.extend([text(""), text(""), Value::Null]);
            rows.push(row);
        }
    }
    Ok(rows)
}

fn table_columns(table: &Table, account: &Account, rows: &mut Vec<Row>) {
    let granted = privileges(account, &table.database, &table.name);
    for (place, (at, column)) in table.visible_columns().enumerate() {
        let mut row = vec![def(), text(&*table.database), text(&*table.name)];
        row.extend([
            text(&*column.name),
            number(place + 1),
            text_or_null(default_text(column)),
            yes_no(!column.not_null),
        ]);
        type_columns(&column.ty, &mut row);
        row.extend([
            text(column_key(table, at)),
            text(extra(column)),
            text(&*granted),
            text(&*column.comment),
            text(generation_expression(column)),
            Value::Null,
        ]);
        rows.push(row);
    }
}

/// `DATA_TYPE` to `COLUMN_TYPE`.
fn type_columns(ty: &DataType, row: &mut Row) {
    let is_string = ty.is_text() || ty.is_bytes();
    let characters = i64::from(ty.char_length());
    let octets = octet_length(ty);
    let shown_length = match ty {
        DataType::Text { size, .. } | DataType::Blob { size } => i64::from(size.bytes()),
        _ => characters,
    };
    let number_or_null = |wanted: bool, value: i64| {
        if wanted {
            Value::Int(value)
        } else {
            Value::Null
        }
    };
    let (precision, scale) = ty.precision_scale();
    let is_float = ty.is_float();
    let digits = ty.shown_digits().map(|(_, digits)| digits);
    let scale = digits.unwrap_or(scale);
    let is_bit = matches!(ty, DataType::Bit { .. });
    let precision = match ty {
        DataType::Bit { width } => i64::from(*width),
        _ if is_float => characters,
        _ => i64::from(precision),
    };
    let is_number = ty.is_number() && *ty != DataType::Year;
    let has_scale = is_number && !is_bit && (!is_float || digits.is_some());
    let has_time = matches!(
        ty,
        DataType::Time { .. } | DataType::DateTime { .. } | DataType::Timestamp { .. }
    );
    let collation = ty.collation().filter(|_| ty.is_text());
    row.extend([
        text(ty.base_name()),
        number_or_null(is_string, shown_length),
        number_or_null(is_string, octets),
        number_or_null(is_number, precision),
        number_or_null(has_scale, i64::from(scale)),
        number_or_null(has_time, i64::from(ty.fsp())),
        text_or_null(collation.map(Collation::charset)),
        text_or_null(collation.map(Collation::name)),
        text(ty.sql_name()),
    ]);
}

fn octet_length(ty: &DataType) -> i64 {
    match ty {
        DataType::Text { size, .. } | DataType::Blob { size } => i64::from(size.bytes()),
        DataType::Char { length, .. } | DataType::Varchar { length, .. } => i64::from(*length) * 4,
        DataType::Enum { .. } | DataType::Set { .. } => i64::from(ty.char_length()) * 4,
        _ => i64::from(ty.char_length()),
    }
}

/// `PRI`, `UNI`, `MUL` or nothing.
pub(crate) fn column_key(table: &Table, at: usize) -> &'static str {
    let first_of = |unique: bool| {
        table
            .indexes
            .iter()
            .filter(move |index| index.unique == unique)
            .filter(move |index| {
                index
                    .columns
                    .first()
                    .is_some_and(|first| first.column == at)
            })
    };
    if table.shows_as_primary(at) {
        "PRI"
    } else if first_of(true).any(|index| index.columns.len() == 1) {
        "UNI"
    } else if first_of(true).next().is_some() || first_of(false).next().is_some() {
        "MUL"
    } else {
        ""
    }
}

/// The Extra column.
pub(crate) fn extra(column: &Column) -> String {
    let mut words = Vec::new();
    if let Some(generated) = &column.generated {
        words.push(format!("{} GENERATED", generated_kind(generated.kind)));
    }
    if column.auto_increment {
        words.push("auto_increment".to_string());
    }
    if matches!(
        column.default,
        Some(ColumnDefault::Now | ColumnDefault::Expression(_))
    ) {
        words.push("DEFAULT_GENERATED".to_string());
    }
    if column.on_update_now {
        words.push(format!("on update {}", now_text(&column.ty)));
    }
    words.join(" ")
}

/// `VIRTUAL` or `STORED`.
pub(crate) fn generated_kind(kind: GeneratedKind) -> &'static str {
    match kind {
        GeneratedKind::Stored => "STORED",
        GeneratedKind::Virtual | GeneratedKind::KeyPart => "VIRTUAL",
    }
}

/// The expression of a generated column, its quotes escaped as in MySQL; empty for others.
pub(crate) fn generation_expression(column: &Column) -> String {
    let generated = column.generated.as_ref();
    generated.map_or_else(String::new, |generated| {
        displayed(&generated.expression).replace('\'', "\\'")
    })
}

/// `CURRENT_TIMESTAMP` with the column's fraction.
pub(crate) fn now_text(ty: &DataType) -> String {
    match ty.fsp() {
        0 => "CURRENT_TIMESTAMP".to_string(),
        fsp => format!("CURRENT_TIMESTAMP({fsp})"),
    }
}

/// The default as `information_schema` shows it: literals without quotes; NULL for none.
pub(crate) fn default_text(column: &Column) -> Option<String> {
    match column.default.as_ref()? {
        ColumnDefault::Now => Some(now_text(&column.ty)),
        ColumnDefault::Expression(text) => Some(displayed_definition(text).replace('\'', "\\'")),
        ColumnDefault::Literal(text) if text.eq_ignore_ascii_case("NULL") => None,
        ColumnDefault::Literal(text) => Some(unquoted(text)),
    }
}

fn unquoted(text: &str) -> String {
    let inside = text
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''));
    match inside {
        Some(inside) => inside.replace("''", "'").replace("\\\\", "\\"),
        None => text.to_string(),
    }
}

fn privileges(account: &Account, database: &str, table: &str) -> String {
    let column_level = Privileges::SELECT
        .with(Privileges::INSERT)
        .with(Privileges::UPDATE)
        .with(Privileges::REFERENCES);
    let held = account.on_table(database, table);
    let names: Vec<String> = held
        .names()
        .into_iter()
        .filter(|name| column_level.names().contains(name))
        .map(str::to_lowercase)
        .collect();
    names.join(",")
}

#[allow(clippy::unnecessary_wraps)]
fn views(source: &Source<'_>) -> SqlResult<Vec<Row>> {
    let account = source.account();
    let row = |view: &std::sync::Arc<crate::catalog::View>| {
        let held = account.on_table(&view.database, &view.name);
        let shown = held.has(Privileges::SHOW_VIEW);
        vec![
            def(),
            text(&*view.database),
            text(&*view.name),
            text(if shown { view.query.as_str() } else { "" }),
            text("NONE"),
            text("NO"),
            text(&*view.definer),
            text("DEFINER"),
            text("utf8mb4"),
            text("utf8mb4_0900_ai_ci"),
        ]
    };
    Ok(source.views().into_iter().map(row).collect())
}
