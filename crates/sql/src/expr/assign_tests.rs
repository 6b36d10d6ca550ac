//! Storing: what fits, what is an error in strict mode, what is a warning otherwise.

use super::assign;
use super::testing::with_context;
use crate::catalog::{Column, ColumnId};
use crate::types::{Collation, DataType, IntWidth, TextSize, Value, parse_decimal, to_text};

fn column(ty: DataType, not_null: bool) -> Column {
    Column {
        id: ColumnId(1),
        name: "c".to_string(),
        ty,
        not_null,
        default: None,
        on_update_now: false,
        auto_increment: false,
        comment: String::new(),
        absent_value: None,
        generated: None,
    }
}

/// The stored text with `!N` for warnings, or `error N`.
fn stored(value: &Value, ty: &DataType, strict: bool) -> String {
    let column = column(ty.clone(), false);
    let (result, warnings) = with_context(strict, |ctx| assign(ctx, value.clone(), &column, 1));
    match result {
        Err(error) => format!("error {}", error.code),
        Ok(value) => warnings.iter().fold(to_text(&value, ty), |text, warning| {
            format!("{text} !{}", warning.code)
        }),
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_string())
}

fn decimal(digits: &str) -> Value {
    Value::decimal(parse_decimal(digits).0)
}

#[test]
#[allow(clippy::too_many_lines)] // a table of cases
fn values_are_fitted_or_refused() {
    let int = |width, unsigned| DataType::Int {
        width,
        unsigned,
        display_width: None,
    };
    let tiny = int(IntWidth::Tiny, false);
    let money = DataType::Decimal {
        precision: 5,
        scale: 2,
        sign: DataType::SIGNED,
    };
    let word = |length| DataType::Varchar {
        length,
        collation: Collation::default(),
    };
    let members = vec!["red".to_string(), "green".to_string()];
    let colour = DataType::Enum {
        members,
        collation: Collation::default(),
    };
    // value, type, strict, lenient
    let table = [
        (Value::Int(127), tiny.clone(), "127", "127"),
        (Value::Int(128), tiny.clone(), "error 1264", "127 !1264"),
        (
            Value::Int(-1),
            int(IntWidth::Int, true),
            "error 1264",
            "0 !1264",
        ),
        (
            Value::UInt(u64::MAX),
            int(IntWidth::Big, true),
            "18446744073709551615",
            "18446744073709551615",
        ),
        (text("12"), tiny.clone(), "12", "12"),
        (text("12abc"), tiny.clone(), "error 1265", "12 !1265"),
        (text("abc"), tiny.clone(), "error 1366", "0 !1366"),
        (text(""), tiny.clone(), "error 1366", "0 !1366"),
        (decimal("1.5"), tiny, "2", "2"),
        (decimal("1.234"), money.clone(), "1.23 !1265", "1.23 !1265"),
        (decimal("1.235"), money.clone(), "1.24 !1265", "1.24 !1265"),
        (decimal("1000"), money.clone(), "error 1264", "999.99 !1264"),
        (text("x"), money, "error 1366", "0.00 !1366"),
        (text("abc"), word(3), "abc", "abc"),
        (text("héé"), word(3), "héé", "héé"),
        (text("abcd"), word(3), "error 1406", "abc !1265"),
        (text("abc  "), word(3), "abc !1265", "abc !1265"),
        (
            text("ab  "),
            DataType::Char {
                length: 5,
                collation: Collation::default(),
            },
            "ab",
            "ab",
        ),
        (
            text(&"x".repeat(300)),
            DataType::Text {
                size: TextSize::Tiny,
                collation: Collation::default(),
            },
            "error 1406",
            &("x".repeat(255) + " !1265"),
        ),
        (Value::Bytes(vec![0xff]), word(3), "error 1366", " !1366"),
        (
            text("2024-02-29"),
            DataType::Date,
            "2024-02-29",
            "2024-02-29",
        ),
        (
            text("2024-02-30"),
            DataType::Date,
            "error 1292",
            "0000-00-00 !1292",
        ),
        (
            text("0000-00-00"),
            DataType::Date,
            "error 1292",
            "0000-00-00 !1292",
        ),
        (
            text("2024-02-29 10:00:00"),
            DataType::Date,
            "2024-02-29 !1265",
            "2024-02-29 !1265",
        ),
        (
            text("2024-02-29 10:00:00.6"),
            DataType::DateTime { fsp: 0 },
            "2024-02-29 10:00:01",
            "2024-02-29 10:00:01",
        ),
        (
            text("2024-02-29T10:00:00+01:00"),
            DataType::DateTime { fsp: 0 },
            "2024-02-29 09:00:00",
            "2024-02-29 09:00:00",
        ),
        (
            text("1969-12-31 00:00:00"),
            DataType::Timestamp { fsp: 0 },
            "error 1292",
            "0000-00-00 00:00:00 !1292",
        ),
        (
            text("900:00:00"),
            DataType::Time { fsp: 0 },
            "error 1264",
            "838:59:59 !1264",
        ),
        (Value::Int(24), DataType::Year, "2024", "2024"),
        (Value::Int(1800), DataType::Year, "error 1264", "0000 !1264"),
        (text("GREEN"), colour.clone(), "green", "green"),
        (Value::Int(1), colour.clone(), "red", "red"),
        (text("blue"), colour, "error 1265", " !1265"),
        (
            text("{\"a\":1}"),
            DataType::Json,
            "{\"a\": 1}",
            "{\"a\": 1}",
        ),
        (text("{"), DataType::Json, "error 3140", "error 3140"),
        (
            Value::Double(1e300),
            DataType::FLOAT,
            "error 1264",
            "3.40282e38 !1264",
        ),
    ];
    let mut wrong = Vec::new();
    for (value, ty, strict, lenient) in table {
        for (expected, mode) in [(strict, true), (lenient, false)] {
            let found = stored(&value, &ty, mode);
            if found != expected {
                wrong.push(format!(
                    "{value:?} as {} strict={mode}: {found}, not {expected}",
                    ty.sql_name()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn null_needs_a_nullable_column() {
    let column = column(DataType::BIGINT, true);
    let (strict, _) = with_context(true, |ctx| assign(ctx, Value::Null, &column, 1));
    assert_eq!(strict.unwrap_err().code, 1048);
    let (ignored, warnings) = with_context(false, |ctx| assign(ctx, Value::Null, &column, 1));
    assert_eq!(ignored.unwrap(), Value::Int(0));
    assert_eq!(warnings[0].code, 1048);
}

#[test]
fn messages_name_the_column_the_value_and_the_row() {
    let column = column(DataType::Date, false);
    let (result, _) = with_context(true, |ctx| assign(ctx, text("x"), &column, 3));
    assert_eq!(
        result.unwrap_err().message,
        "Incorrect date value: 'x' for column 'c' at row 3"
    );
}
