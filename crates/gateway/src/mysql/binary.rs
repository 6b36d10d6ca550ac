//! Rows of the binary protocol.

use manxdb_sql::types::{DataType, Date, DateTime, Time, Value, write_text};
use mysql_common::constants::ColumnType;

use super::codec::put_lenenc_with;
use super::column::wire_type;

/// Writes one row: header, bitmap of NULLs, values in the form their column announced.
pub fn put_binary_row(out: &mut Vec<u8>, types: &[DataType], row: &[Value]) {
    out.push(0);
    let bitmap = out.len();
    out.resize(bitmap + (types.len() + 9) / 8, 0);
    for (index, ty) in types.iter().enumerate() {
        // A short row would be a defect above; NULLs keep the packet well-formed.
        let value = row.get(index).unwrap_or(&Value::Null);
        if value.is_null() || matches!(ty, DataType::Null) {
            let bit = index + 2;
            out[bitmap + bit / 8] |= 1 << (bit % 8); // sized above
        } else {
            put_binary_value(out, ty, value);
        }
    }
}

fn put_binary_value(out: &mut Vec<u8>, ty: &DataType, value: &Value) {
    match wire_type(ty).code {
        ColumnType::MYSQL_TYPE_TINY => out.extend_from_slice(&integer_bytes(value)[..1]),
        ColumnType::MYSQL_TYPE_SHORT | ColumnType::MYSQL_TYPE_YEAR => {
            out.extend_from_slice(&integer_bytes(value)[..2]);
        }
        ColumnType::MYSQL_TYPE_LONG | ColumnType::MYSQL_TYPE_INT24 => {
            out.extend_from_slice(&integer_bytes(value)[..4]);
        }
        ColumnType::MYSQL_TYPE_LONGLONG => out.extend_from_slice(&integer_bytes(value)),
        // FLOAT is the single-precision form of what was computed in double.
        #[allow(clippy::cast_possible_truncation)]
        ColumnType::MYSQL_TYPE_FLOAT => {
            out.extend_from_slice(&(double(value) as f32).to_le_bytes());
        }
        ColumnType::MYSQL_TYPE_DOUBLE => out.extend_from_slice(&double(value).to_le_bytes()),
        ColumnType::MYSQL_TYPE_DATE
        | ColumnType::MYSQL_TYPE_DATETIME
        | ColumnType::MYSQL_TYPE_TIMESTAMP => put_datetime(out, value),
        ColumnType::MYSQL_TYPE_TIME => put_time(out, value),
        _ => put_lenenc_with(out, |text| write_text(value, ty, text)),
    }
}

/// Two's complement of the integer a value is, or rounds to.
fn integer_bytes(value: &Value) -> [u8; 8] {
    use std::str::FromStr;
    match value {
        Value::Int(i) => i.to_le_bytes(),
        Value::UInt(u) => u.to_le_bytes(),
        // Saturates where an integer cannot hold the number.
        #[allow(clippy::cast_possible_truncation)]
        Value::Double(d) => (d.round() as i64).to_le_bytes(),
        Value::Decimal(d) => i64::from_str(&d.round(0).to_string())
            .unwrap_or_default()
            .to_le_bytes(),
        Value::Text(text) => i64::from_str(text).unwrap_or_default().to_le_bytes(),
        _ => [0; 8],
    }
}

fn double(value: &Value) -> f64 {
    match value {
        Value::Double(d) => *d,
        #[allow(clippy::cast_precision_loss)]
        Value::Int(i) => *i as f64,
        #[allow(clippy::cast_precision_loss)]
        Value::UInt(u) => *u as f64,
        Value::Decimal(d) => d.to_string().parse().unwrap_or_default(),
        Value::Text(text) => text.parse().unwrap_or_default(),
        _ => 0.0,
    }
}

fn put_datetime(out: &mut Vec<u8>, value: &Value) {
    let DateTime { date, micros } = match value {
        Value::DateTime(datetime) => *datetime,
        Value::Date(date) => DateTime {
            date: *date,
            micros: 0,
        },
        _ => DateTime {
            date: Date {
                year: 0,
                month: 0,
                day: 0,
            },
            micros: 0,
        },
    };
    let is_zero = date.year == 0 && date.month == 0 && date.day == 0;
    let length: u8 = match (is_zero, micros) {
        (true, 0) => 0,
        (false, 0) => 4,
        (_, micros) if micros % 1_000_000 == 0 => 7,
        _ => 11,
    };
    out.push(length);
    if length >= 4 {
        out.extend_from_slice(&date.year.to_le_bytes());
        out.extend_from_slice(&[date.month, date.day]);
    }
    if length >= 7 {
        put_clock(out, micros);
    }
    if length == 11 {
        put_fraction(out, micros);
    }
}

fn put_time(out: &mut Vec<u8>, value: &Value) {
    let Value::Time(Time { micros }) = value else {
        out.push(0);
        return;
    };
    let magnitude = micros.unsigned_abs();
    let length: u8 = match magnitude {
        0 => 0,
        whole if whole % 1_000_000 == 0 => 8,
        _ => 12,
    };
    out.push(length);
    if length == 0 {
        return;
    }
    out.push(u8::from(*micros < 0));
    let days = u32::try_from(magnitude / 86_400_000_000).unwrap_or(u32::MAX);
    out.extend_from_slice(&days.to_le_bytes());
    put_clock(out, magnitude % 86_400_000_000);
    if length == 12 {
        put_fraction(out, magnitude);
    }
}

/// Hour, minute and second of `micros` since midnight.
fn put_clock(out: &mut Vec<u8>, micros: u64) {
    let seconds = micros / 1_000_000;
    for part in [seconds / 3600, seconds / 60 % 60, seconds % 60] {
        out.push(u8::try_from(part).unwrap_or(u8::MAX));
    }
}

fn put_fraction(out: &mut Vec<u8>, micros: u64) {
    let fraction = u32::try_from(micros % 1_000_000).unwrap_or(0); // < 10^6
    out.extend_from_slice(&fraction.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use manxdb_sql::types::{Collation, IntWidth};

    fn encoded(ty: DataType, value: Value) -> Vec<u8> {
        let mut out = Vec::new();
        put_binary_row(&mut out, &[ty], &[value]);
        out
    }

    fn int(width: IntWidth) -> DataType {
        DataType::Int {
            width,
            unsigned: false,
            display_width: None,
        }
    }

    const DAY: Date = Date {
        year: 2026,
        month: 11,
        day: 21,
    };

    #[test]
    fn integers_take_the_width_of_their_column() {
        assert_eq!(encoded(int(IntWidth::Tiny), Value::Int(-1)), [0, 0, 0xFF]);
        assert_eq!(encoded(int(IntWidth::Small), Value::Int(258)), [0, 0, 2, 1]);
        assert_eq!(
            encoded(int(IntWidth::Medium), Value::Int(1)),
            [0, 0, 1, 0, 0, 0]
        );
        assert_eq!(
            encoded(int(IntWidth::Big), Value::UInt(u64::MAX)),
            [&[0, 0][..], &[0xFF; 8]].concat()
        );
        assert_eq!(encoded(DataType::Year, Value::Int(2026)), [0, 0, 0xEA, 7]);
    }

    #[test]
    fn nulls_live_in_a_bitmap_that_starts_at_bit_two() {
        let columns = vec![int(IntWidth::Tiny); 7];
        let mut row = vec![Value::Null; 7];
        row[1] = Value::Int(5);
        let mut out = Vec::new();
        put_binary_row(&mut out, &columns, &row);
        assert_eq!(out, [0, 0b1111_0100, 0b1, 5]);
    }

    #[test]
    fn dates_and_times_use_their_shortest_form() {
        let datetime = |micros| Value::DateTime(DateTime { date: DAY, micros });
        let ty = || DataType::DateTime { fsp: 6 };
        assert_eq!(encoded(ty(), datetime(0)), [0, 0, 4, 0xEA, 7, 11, 21]);
        assert_eq!(
            encoded(ty(), datetime(3_661_000_000)),
            [0, 0, 7, 0xEA, 7, 11, 21, 1, 1, 1]
        );
        assert_eq!(
            encoded(ty(), datetime(1)),
            [0, 0, 11, 0xEA, 7, 11, 21, 0, 0, 0, 1, 0, 0, 0]
        );
        assert_eq!(
            encoded(DataType::Date, Value::Date(DAY)),
            [0, 0, 4, 0xEA, 7, 11, 21]
        );
        let time = |micros| encoded(DataType::Time { fsp: 6 }, Value::Time(Time { micros }));
        assert_eq!(time(0), [0, 0, 0]);
        assert_eq!(
            time(-(25 * 3_600_000_000)),
            [0, 0, 8, 1, 1, 0, 0, 0, 1, 0, 0]
        );
        assert_eq!(time(1), [0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    }

    #[test]
    fn bits_are_bytes_the_greatest_first() {
        let ty = DataType::Bit { width: 12 };
        assert_eq!(encoded(ty, Value::UInt(0x5AB)), b"\0\0\x02\x05\xAB");
        let ty = DataType::Bit { width: 64 };
        assert_eq!(encoded(ty, Value::UInt(1)), b"\0\0\x08\0\0\0\0\0\0\0\x01");
    }

    #[test]
    fn everything_else_is_its_text() {
        let ty = DataType::Varchar {
            length: 5,
            collation: Collation::default(),
        };
        assert_eq!(encoded(ty, Value::Text("ab".into())), b"\0\0\x02ab");
        assert_eq!(
            encoded(DataType::DOUBLE, Value::Double(0.5)),
            [&[0, 0][..], &0.5_f64.to_le_bytes()].concat()
        );
    }
}
