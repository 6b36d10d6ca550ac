//! What an index entry says of its row, without the row: the values of key columns whose encoding
//! loses nothing.

use jiff::tz::TimeZone;

use manxdb_vault::MARK_BYTES;

use super::key::{KEY_HEAD, NULL_TAG, VALUE_TAG, unflip};
use crate::catalog::{Index, IndexId, ROWS, Table};
use crate::error::{SqlError, SqlResult};
use crate::types::{
    Collation, DataType, Date, DateTime, Time, Value, from_utc_micros, integer_value,
};

/// Whether all `wanted` columns, given by their positions, can be read from the entries of an
/// index.
#[must_use]
pub fn entry_holds(table: &Table, index: &Index, wanted: &[bool]) -> bool {
    let of_index = index
        .columns
        .iter()
        .map(|part| (part.column, part.prefix.is_some()));
    let of_row = table.primary_key.iter().map(|at| (*at, false));
    let mut held = vec![false; table.columns.len()];
    hold(table, index.id, of_index, &mut held);
    hold(table, ROWS, of_row, &mut held);
    let mut held = held.iter().chain(std::iter::repeat(&false));
    wanted.iter().all(|wanted| {
        let is_held = held.next().copied().unwrap_or(false);
        is_held || !wanted
    })
}

/// Marks the columns of a key up to the first one that cannot be read back; blinded ones are passed over.
fn hold(
    table: &Table,
    key: IndexId,
    parts: impl Iterator<Item = (usize, bool)>,
    held: &mut [bool],
) {
    for (at, is_prefix) in parts {
        if table.blinds(key, at) {
            continue;
        }
        let ty = table.columns.get(at).map(|column| &column.ty);
        if is_prefix || !ty.is_some_and(is_lossless) {
            return;
        }
        if let Some(held) = held.get_mut(at) {
            *held = true;
        }
    }
}

/// Whether a key column of this type gives its value back as the row has it. A key knows one zero
/// of a DOUBLE, and of text mostly what its collation tells apart.
fn is_lossless(ty: &DataType) -> bool {
    match ty {
        DataType::Int { .. }
        | DataType::Year
        | DataType::Bit { .. }
        | DataType::Date
        | DataType::Time { .. }
        | DataType::DateTime { .. }
        | DataType::Timestamp { .. }
        | DataType::Binary { .. }
        | DataType::Varbinary { .. }
        | DataType::Blob { .. } => true,
        DataType::Char { collation, .. }
        | DataType::Varchar { collation, .. }
        | DataType::Text { collation, .. } => {
            matches!(collation, Collation::Binary | Collation::Bin0900)
        }
        _ => false,
    }
}

/// Writes the `wanted` columns that an entry of `index` holds (see [`entry_holds`]) to their
/// places in `row`, whose other values stay. TIMESTAMPs come in the zone `tz`.
///
/// # Errors
/// 1712 when the entry is damaged.
pub fn decode_entry(
    table: &Table,
    index: &Index,
    (key, suffix): (&[u8], &[u8]),
    wanted: &[bool],
    tz: &TimeZone,
    row: &mut [Value],
) -> SqlResult<()> {
    let of_index = index.columns.iter().map(|part| part.column);
    let of_row = table.primary_key.iter().copied();
    let columns = key.get(KEY_HEAD..).unwrap_or_default();
    decode_key((table, index.id), of_index, columns, wanted, tz, row)
        .and_then(|()| decode_key((table, ROWS), of_row, suffix, wanted, tz, row))
        .ok_or_else(|| damaged(table, index))
}

fn damaged(table: &Table, index: &Index) -> SqlError {
    SqlError::new(
        1712,
        "HY000",
        format!(
            "Index '{}' of table '{}' is corrupt: an entry cannot be read; drop the index and create it again",
            index.name, table.name
        ),
    )
}

/// Reads columns up to the last wanted one or the first that cannot be read back; `None` when
/// bytes are missing or make no sense.
fn decode_key(
    (table, key): (&Table, IndexId),
    parts: impl Iterator<Item = usize>,
    mut bytes: &[u8],
    wanted: &[bool],
    tz: &TimeZone,
    row: &mut [Value],
) -> Option<()> {
    for at in parts {
        if table.blinds(key, at) {
            pass_mark(&mut bytes)?;
            continue;
        }
        let ty = &table.columns.get(at)?.ty;
        if !is_lossless(ty) {
            break;
        }
        let value = read_column(&mut bytes, ty, tz)?;
        if wanted.get(at).copied().unwrap_or(false) {
            *row.get_mut(at)? = value;
        }
    }
    Some(())
}

/// Passes over a blinded column.
fn pass_mark(bytes: &mut &[u8]) -> Option<()> {
    let (tag, rest) = bytes.split_first()?;
    *bytes = match *tag {
        NULL_TAG => rest,
        VALUE_TAG => rest.get(MARK_BYTES..)?,
        _ => return None,
    };
    Some(())
}

fn read_column(bytes: &mut &[u8], ty: &DataType, tz: &TimeZone) -> Option<Value> {
    let (tag, rest) = bytes.split_first()?;
    *bytes = rest;
    if *tag == NULL_TAG {
        return Some(Value::Null);
    }
    if *tag != VALUE_TAG {
        return None;
    }
    Some(match ty {
        DataType::Int {
            width, unsigned, ..
        } => {
            let shifted = i128::from(number(bytes, usize::from(width.bytes()))?);
            let (least, _) = width.range(*unsigned);
            integer_value(least + shifted, *width, *unsigned)
        }
        DataType::Year => Value::Int(i64::try_from(number(bytes, 2)?).ok()?),
        DataType::Bit { .. } => Value::UInt(number(bytes, 8)?),
        DataType::Date => {
            let packed = u32::try_from(number(bytes, 4)?).ok()?;
            Value::Date(Date::from_packed(packed)?)
        }
        DataType::Time { .. } => {
            let (time, cut) = Time::clamped(unflip(number(bytes, 8)?));
            Value::Time((!cut).then_some(time)?)
        }
        DataType::DateTime { .. } => Value::DateTime(DateTime::from_packed(number(bytes, 8)?)?),
        DataType::Timestamp { .. } => Value::DateTime(match unflip(number(bytes, 8)?) {
            i64::MIN => DateTime::ZERO,
            micros => from_utc_micros(micros, tz),
        }),
        ty if ty.is_bytes() => Value::Bytes(unescape(bytes)?),
        ty if ty.is_text() => Value::Text(String::from_utf8(unescape(bytes)?).ok()?),
        _ => return None,
    })
}

/// Takes `width` big-endian bytes.
fn number(bytes: &mut &[u8], width: usize) -> Option<u64> {
    let (head, rest) = bytes.split_at_checked(width)?;
    *bytes = rest;
    let number = head
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte));
    Some(number)
}

/// Back from [`crate::types::write_escaped`].
fn unescape(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let zero = bytes.iter().position(|byte| *byte == 0)?;
        let (head, rest) = bytes.split_at(zero);
        whole.extend_from_slice(head);
        let (mark, rest) = rest.get(1..)?.split_first()?;
        *bytes = rest;
        match mark {
            0 => return Some(whole),
            0xff => whole.push(0),
            _ => return None,
        }
    }
}
