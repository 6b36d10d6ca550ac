//! Key columns: bodies whose byte order is the order of the values.

use jiff::tz::TimeZone;

use crate::catalog::{Index, IndexId, ROWS, Table, TableId};
use crate::error::{SqlError, SqlResult};
use crate::types::{
    Collation, DataType, Decimal, IntWidth, Value, round_decimal, set_bits, sort_key,
    to_utc_micros, write_escaped,
};

pub(super) const NULL_TAG: u8 = 0;
pub(super) const VALUE_TAG: u8 = 1;
/// First byte of everything that belongs to a table.
const TABLE_SPACE: u8 = 1;
/// Bytes of a key before its columns: space, table, index.
pub const KEY_HEAD: usize = 9;

/// Appends one key column; `prefix` is in characters, or bytes for byte strings.
///
/// # Errors
/// 1105 when the value is not of the column's type (a defect: values are coerced before);
/// 3152 for JSON, which cannot be a key.
pub fn encode_key_column(
    value: &Value,
    ty: &DataType,
    prefix: Option<u32>,
    tz: &TimeZone,
    out: &mut Vec<u8>,
) -> SqlResult<()> {
    if value.is_null() {
        out.push(NULL_TAG);
        return Ok(());
    }
    out.push(VALUE_TAG);
    match (value, ty) {
        (
            _,
            DataType::Int {
                width, unsigned, ..
            },
        ) => encode_integer(value, *width, *unsigned, out),
        (Value::Int(year), DataType::Year) => {
            let year = u16::try_from(*year).map_err(|_| mismatch(value, ty))?;
            out.extend_from_slice(&year.to_be_bytes());
            Ok(())
        }
        (Value::Decimal(decimal), DataType::Decimal { scale, .. }) => {
            encode_decimal(decimal, *scale, out);
            Ok(())
        }
        (Value::Double(double), DataType::Float { .. } | DataType::Double { .. }) => {
            out.extend_from_slice(&ordered_bits(*double).to_be_bytes());
            Ok(())
        }
        (Value::Text(text), DataType::Enum { members, .. }) => {
            let place = members
                .iter()
                .position(|member| member == text)
                .map_or(0, |at| at + 1);
            out.extend_from_slice(&u16::try_from(place).unwrap_or(u16::MAX).to_be_bytes());
            Ok(())
        }
        (Value::Text(text), DataType::Set { members, .. }) => {
            out.extend_from_slice(&set_bits(members, text).to_be_bytes());
            Ok(())
        }
        (Value::UInt(bits), DataType::Bit { .. }) => {
            out.extend_from_slice(&bits.to_be_bytes());
            Ok(())
        }
        (Value::Text(text), _) if ty.is_text() => {
            let collation = ty.collation().unwrap_or(Collation::Bin);
            sort_key(collation, text_prefix(text, prefix), out);
            Ok(())
        }
        (Value::Bytes(bytes), _) if ty.is_bytes() => {
            let length = prefix.map_or(bytes.len(), |prefix| bytes.len().min(prefix as usize));
            write_escaped(&bytes[..length], out);
            Ok(())
        }
        (Value::Json(_), _) => Err(SqlError::new(
            3152,
            "42000",
            "JSON column supports indexing only via generated columns on a specified JSON path.",
        )),
        _ => encode_temporal(value, ty, tz, out),
    }
}

/// Appends the column at `part`'s position in `table` to a key of it: blinded, where it is in that key.
/// The other half of `part` is the prefix, as in [`encode_key_column`].
///
/// # Errors
/// As [`encode_key_column`]; 51005 when the key that blinds is not to be had.
pub fn encode_key_part(
    table: &Table,
    key: IndexId,
    (at, prefix): (usize, Option<u32>),
    value: &Value,
    tz: &TimeZone,
    out: &mut Vec<u8>,
) -> SqlResult<()> {
    let column = table.columns.get(at).ok_or_else(|| {
        SqlError::internal(format!(
            "table '{}' has no column at position {at}",
            table.name
        ))
    })?;
    if value.is_null() || !table.blinds(key, at) {
        return encode_key_column(value, &column.ty, prefix, tz, out);
    }
    // With the column's identity, so that equal values of two columns show nothing.
    let mut plain = Vec::with_capacity(40);
    plain.extend_from_slice(&column.id.0.to_be_bytes());
    encode_key_column(value, &column.ty, prefix, tz, &mut plain)?;
    out.push(VALUE_TAG);
    out.extend_from_slice(&table.mark(&plain)?);
    Ok(())
}

fn mismatch(value: &Value, ty: &DataType) -> SqlError {
    SqlError::internal(format!(
        "a key of type {} cannot hold {value:?}",
        ty.sql_name()
    ))
}

fn text_prefix(text: &str, prefix: Option<u32>) -> &str {
    let Some(prefix) = prefix else { return text };
    match text.char_indices().nth(prefix as usize) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// Big-endian in the width of the type, the sign bit flipped for signed types.
fn encode_integer(
    value: &Value,
    width: IntWidth,
    unsigned: bool,
    out: &mut Vec<u8>,
) -> SqlResult<()> {
    let ty = || DataType::Int {
        width,
        unsigned,
        display_width: None,
    };
    let number = match value {
        Value::Int(number) => i128::from(*number),
        Value::UInt(number) => i128::from(*number),
        _ => return Err(mismatch(value, &ty())),
    };
    let (least, greatest) = width.range(unsigned);
    if !(least..=greatest).contains(&number) {
        return Err(mismatch(value, &ty()));
    }
    let shifted = u64::try_from(number - least).map_err(|_| mismatch(value, &ty()))?;
    let bytes = shifted.to_be_bytes();
    out.extend_from_slice(&bytes[8 - usize::from(width.bytes())..]);
    Ok(())
}

/// 0x80 ± length of the magnitude, then the magnitude (complemented for negative numbers), in
/// units of the column's scale.
fn encode_decimal(decimal: &Decimal, scale: u8, out: &mut Vec<u8>) {
    let (digits, _) = round_decimal(decimal, i64::from(scale)).into_bigint_and_scale();
    let (sign, magnitude) = digits.to_bytes_be();
    // 65 digits are 27 bytes: the length always fits beside the sign.
    let length = u8::try_from(magnitude.len()).unwrap_or(0x7f);
    match sign {
        bigdecimal::num_bigint::Sign::NoSign => out.push(0x80),
        bigdecimal::num_bigint::Sign::Plus => {
            out.push(0x80 + length);
            out.extend_from_slice(&magnitude);
        }
        bigdecimal::num_bigint::Sign::Minus => {
            out.push(0x80 - length);
            out.extend(magnitude.iter().map(|byte| !byte));
        }
    }
}

fn ordered_bits(value: f64) -> u64 {
    let value = if value == 0.0 { 0.0 } else { value };
    let bits = value.to_bits();
    if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

fn encode_temporal(
    value: &Value,
    ty: &DataType,
    tz: &TimeZone,
    out: &mut Vec<u8>,
) -> SqlResult<()> {
    match (value, ty) {
        (Value::Date(date), DataType::Date) => out.extend_from_slice(&date.packed().to_be_bytes()),
        (Value::Time(time), DataType::Time { .. }) => {
            out.extend_from_slice(&flip(time.micros).to_be_bytes());
        }
        (Value::DateTime(value), DataType::DateTime { .. }) => {
            out.extend_from_slice(&value.packed().to_be_bytes());
        }
        (Value::DateTime(value), DataType::Timestamp { .. }) => {
            // The zero timestamp is no instant; it sorts below all.
            let micros = to_utc_micros(*value, tz).unwrap_or(i64::MIN);
            out.extend_from_slice(&flip(micros).to_be_bytes());
        }
        _ => return Err(mismatch(value, ty)),
    }
    Ok(())
}

/// Unsigned number in the order of the signed one.
fn flip(value: i64) -> u64 {
    value.cast_unsigned() ^ 1 << 63
}

/// Back from [`flip`].
pub(super) fn unflip(value: u64) -> i64 {
    (value ^ 1 << 63).cast_signed()
}

/// `0x01 ‖ table ‖ index`; index 0 is the row store.
#[must_use]
pub fn index_prefix(table: &Table, index: u32) -> Vec<u8> {
    let mut key = Vec::with_capacity(40);
    key.push(TABLE_SPACE);
    key.extend_from_slice(&table.id.0.to_be_bytes());
    key.extend_from_slice(&index.to_be_bytes());
    key
}

/// Table and index of a key as [`index_prefix`] lays them out, and the columns behind; `None` of a key that is
/// no table's.
#[must_use]
pub fn split_key(key: &[u8]) -> Option<(TableId, u32, &[u8])> {
    let (head, columns) = key.split_first_chunk::<KEY_HEAD>()?;
    let [space, t0, t1, t2, t3, i0, i1, i2, i3] = *head;
    let table = TableId(u32::from_be_bytes([t0, t1, t2, t3]));
    let index = u32::from_be_bytes([i0, i1, i2, i3]);
    (space == TABLE_SPACE).then_some((table, index, columns))
}

/// Full key of a row from its suffix.
#[must_use]
pub fn row_key(table: &Table, suffix: &[u8]) -> Vec<u8> {
    let mut key = index_prefix(table, 0);
    key.extend_from_slice(suffix);
    key
}

/// Encoded primary key of a row (tables without one pass the hidden row id).
///
/// # Errors
/// As [`encode_key_column`].
pub fn row_key_suffix(
    table: &Table,
    row: &[Value],
    hidden_row_id: u64,
    tz: &TimeZone,
) -> SqlResult<Vec<u8>> {
    if table.primary_key.is_empty() {
        return Ok(hidden_row_id.to_be_bytes().to_vec());
    }
    let mut suffix = Vec::with_capacity(16);
    for &position in &table.primary_key {
        let value = column(table, row, position)?;
        encode_key_part(table, ROWS, (position, None), value, tz, &mut suffix)?;
    }
    Ok(suffix)
}

/// Full key of an index entry; its value is always the row key suffix.
///
/// # Errors
/// As [`encode_key_column`].
pub fn index_key(
    table: &Table,
    index: &Index,
    row: &[Value],
    suffix: &[u8],
    tz: &TimeZone,
) -> SqlResult<Vec<u8>> {
    let mut key = index_prefix(table, index.id.0);
    let mut has_null = false;
    for part in &index.columns {
        let value = column(table, row, part.column)?;
        has_null |= value.is_null();
        let place = (part.column, part.prefix);
        encode_key_part(table, index.id, place, value, tz, &mut key)?;
    }
    if !index.unique || has_null {
        key.extend_from_slice(suffix);
    }
    Ok(key)
}

fn column<'a>(table: &Table, row: &'a [Value], position: usize) -> SqlResult<&'a Value> {
    row.get(position).ok_or_else(|| {
        SqlError::internal(format!(
            "table '{}' has no column at position {position}",
            table.name
        ))
    })
}
