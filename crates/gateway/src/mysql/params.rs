//! Parameters of COM_STMT_EXECUTE.

use std::collections::BTreeMap;
use std::str::FromStr;

use manxdb_sql::types::{Date, DateTime, Decimal, Time, Value};
use mysql_common::constants::ColumnType;

use super::codec::{Malformed, PayloadReader};

/// Type of a bound parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParamType {
    /// Type code.
    pub code: ColumnType,
    /// Integers are unsigned.
    pub unsigned: bool,
}

/// Reads the values behind the fixed part of COM_STMT_EXECUTE. `types` are those bound by an
/// earlier execution, and replaced when this one binds new ones; `long_data` holds values sent
/// in pieces before.
///
/// # Errors
/// [`Malformed`], also when no types were ever bound.
pub fn read_params(
    reader: &mut PayloadReader<'_>,
    count: usize,
    types: &mut Vec<ParamType>,
    long_data: &BTreeMap<u16, Vec<u8>>,
) -> Result<Vec<Value>, Malformed> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let nulls = reader.bytes(count.div_ceil(8))?;
    if reader.u8()? == 1 {
        types.clear();
        for _ in 0..count {
            types.push(read_type(reader)?);
        }
    }
    if types.len() != count {
        return Err(Malformed);
    }
    let mut values = Vec::with_capacity(count);
    for (index, ty) in types.iter().enumerate() {
        let is_null = nulls[index / 8] & (1 << (index % 8)) != 0; // index < count
        let long = u16::try_from(index).ok().and_then(|i| long_data.get(&i));
        values.push(match long {
            Some(bytes) => string_value(ty.code, bytes)?,
            None if is_null => Value::Null,
            None => read_value(reader, *ty)?,
        });
    }
    Ok(values)
}

fn read_type(reader: &mut PayloadReader<'_>) -> Result<ParamType, Malformed> {
    let code = ColumnType::try_from(reader.u8()?).map_err(|_| Malformed)?;
    let unsigned = reader.u8()? & 0x80 != 0;
    Ok(ParamType { code, unsigned })
}

fn read_value(reader: &mut PayloadReader<'_>, ty: ParamType) -> Result<Value, Malformed> {
    let unsigned = ty.unsigned;
    Ok(match ty.code {
        ColumnType::MYSQL_TYPE_NULL => Value::Null,
        ColumnType::MYSQL_TYPE_TINY => {
            let byte = reader.u8()?;
            Value::Int(if unsigned {
                i64::from(byte)
            } else {
                i64::from(byte.cast_signed())
            })
        }
        ColumnType::MYSQL_TYPE_SHORT | ColumnType::MYSQL_TYPE_YEAR => {
            let word = reader.u16()?;
            Value::Int(if unsigned {
                i64::from(word)
            } else {
                i64::from(word.cast_signed())
            })
        }
        ColumnType::MYSQL_TYPE_LONG | ColumnType::MYSQL_TYPE_INT24 => {
            let word = reader.u32()?;
            Value::Int(if unsigned {
                i64::from(word)
            } else {
                i64::from(word.cast_signed())
            })
        }
        ColumnType::MYSQL_TYPE_LONGLONG => {
            let word = reader.u64()?;
            match i64::try_from(word) {
                Ok(small) => Value::Int(small),
                Err(_) if unsigned => Value::UInt(word),
                Err(_) => Value::Int(word.cast_signed()),
            }
        }
        ColumnType::MYSQL_TYPE_FLOAT => Value::Double(f64::from(f32::from_bits(reader.u32()?))),
        ColumnType::MYSQL_TYPE_DOUBLE => Value::Double(f64::from_bits(reader.u64()?)),
        ColumnType::MYSQL_TYPE_DATE => Value::Date(read_datetime(reader)?.date),
        ColumnType::MYSQL_TYPE_DATETIME | ColumnType::MYSQL_TYPE_TIMESTAMP => {
            Value::DateTime(read_datetime(reader)?)
        }
        ColumnType::MYSQL_TYPE_TIME => read_time(reader)?,
        _ => string_value(ty.code, reader.lenenc_bytes()?)?,
    })
}

/// A value sent as a string of bytes.
fn string_value(code: ColumnType, bytes: &[u8]) -> Result<Value, Malformed> {
    match code {
        ColumnType::MYSQL_TYPE_DECIMAL | ColumnType::MYSQL_TYPE_NEWDECIMAL => {
            let text = std::str::from_utf8(bytes).map_err(|_| Malformed)?;
            // A number too long for DECIMAL stays text and meets the column's own check.
            Ok(match Decimal::from_str(text) {
                Ok(number) if text.len() <= 100 => Value::Decimal(Box::new(number)),
                _ => Value::Text(text.to_owned()),
            })
        }
        ColumnType::MYSQL_TYPE_TINY_BLOB
        | ColumnType::MYSQL_TYPE_BLOB
        | ColumnType::MYSQL_TYPE_MEDIUM_BLOB
        | ColumnType::MYSQL_TYPE_LONG_BLOB
        | ColumnType::MYSQL_TYPE_BIT
        | ColumnType::MYSQL_TYPE_GEOMETRY => Ok(Value::Bytes(bytes.to_vec())),
        ColumnType::MYSQL_TYPE_VARCHAR
        | ColumnType::MYSQL_TYPE_VAR_STRING
        | ColumnType::MYSQL_TYPE_STRING
        | ColumnType::MYSQL_TYPE_ENUM
        | ColumnType::MYSQL_TYPE_SET
        | ColumnType::MYSQL_TYPE_JSON => Ok(match std::str::from_utf8(bytes) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => Value::Bytes(bytes.to_vec()),
        }),
        _ => Err(Malformed),
    }
}

fn read_datetime(reader: &mut PayloadReader<'_>) -> Result<DateTime, Malformed> {
    let length = reader.u8()?;
    if !matches!(length, 0 | 4 | 7 | 11) {
        return Err(Malformed);
    }
    let mut date = Date {
        year: 0,
        month: 0,
        day: 0,
    };
    if length >= 4 {
        date = Date {
            year: reader.u16()?,
            month: reader.u8()?,
            day: reader.u8()?,
        };
    }
    let mut micros = 0;
    if length >= 7 {
        micros = read_clock(reader)?;
    }
    if length == 11 {
        micros += read_fraction(reader)?;
    }
    if date.year > 9999 || date.month > 12 || date.day > 31 {
        return Err(Malformed);
    }
    Ok(DateTime { date, micros })
}

fn read_time(reader: &mut PayloadReader<'_>) -> Result<Value, Malformed> {
    let length = reader.u8()?;
    if !matches!(length, 0 | 8 | 12) {
        return Err(Malformed);
    }
    if length == 0 {
        return Ok(Value::Time(Time { micros: 0 }));
    }
    let negative = reader.u8()? != 0;
    let days = u64::from(reader.u32()?);
    let mut clock = read_clock(reader)?;
    if length == 12 {
        clock += read_fraction(reader)?;
    }
    let magnitude = days.saturating_mul(86_400_000_000).saturating_add(clock);
    // MySQL's range of TIME; what is longer is cut to it.
    let limit = ((838 * 60 + 59) * 60 + 59) * 1_000_000;
    let micros = i64::try_from(magnitude).unwrap_or(limit).min(limit);
    Ok(Value::Time(Time {
        micros: if negative { -micros } else { micros },
    }))
}

/// Hour, minute, second as microseconds since midnight.
fn read_clock(reader: &mut PayloadReader<'_>) -> Result<u64, Malformed> {
    let (hour, minute, second) = (reader.u8()?, reader.u8()?, reader.u8()?);
    if hour > 23 || minute > 59 || second > 59 {
        return Err(Malformed);
    }
    Ok(((u64::from(hour) * 60 + u64::from(minute)) * 60 + u64::from(second)) * 1_000_000)
}

fn read_fraction(reader: &mut PayloadReader<'_>) -> Result<u64, Malformed> {
    let fraction = u64::from(reader.u32()?);
    if fraction >= 1_000_000 {
        return Err(Malformed);
    }
    Ok(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(
        body: &[u8],
        count: usize,
        types: &mut Vec<ParamType>,
    ) -> Result<Vec<Value>, Malformed> {
        read_params(
            &mut PayloadReader::new(body),
            count,
            types,
            &BTreeMap::new(),
        )
    }

    #[test]
    fn values_are_read_by_their_bound_types() {
        let mut body = vec![0b10, 1]; // second is NULL, new types follow
        body.extend_from_slice(&[3, 0, 253, 0, 8, 0x80]);
        body.extend_from_slice(&(-5_i32).to_le_bytes());
        body.extend_from_slice(&u64::MAX.to_le_bytes());
        let mut types = Vec::new();
        assert_eq!(
            read(&body, 3, &mut types),
            Ok(vec![Value::Int(-5), Value::Null, Value::UInt(u64::MAX)])
        );
        assert_eq!(types.len(), 3);
    }

    #[test]
    fn a_second_execution_may_reuse_the_types() {
        let mut types = Vec::new();
        assert_eq!(read(&[0, 0, 7], 1, &mut types), Err(Malformed));
        assert_eq!(
            read(&[0, 1, 1, 0, 7], 1, &mut types),
            Ok(vec![Value::Int(7)])
        );
        assert_eq!(read(&[0, 0, 9], 1, &mut types), Ok(vec![Value::Int(9)]));
    }

    #[test]
    fn long_data_takes_the_place_of_a_value() {
        let long = BTreeMap::from([(0, b"piece by piece".to_vec())]);
        let mut types = Vec::new();
        let body = [0, 1, 252, 0, 1, 0, 7];
        let values = read_params(&mut PayloadReader::new(&body), 2, &mut types, &long);
        assert_eq!(
            values,
            Ok(vec![
                Value::Bytes(b"piece by piece".to_vec()),
                Value::Int(7)
            ])
        );
    }

    #[test]
    fn dates_and_times_are_read_in_every_length() {
        let mut types = Vec::new();
        let datetime = [0, 1, 12, 0, 11, 0xEA, 7, 11, 21, 1, 2, 3, 4, 0, 0, 0];
        assert_eq!(
            read(&datetime, 1, &mut types),
            Ok(vec![Value::DateTime(DateTime {
                date: Date {
                    year: 2026,
                    month: 11,
                    day: 21
                },
                micros: 3_723_000_004,
            })])
        );
        let time = [0, 1, 11, 0, 8, 1, 1, 0, 0, 0, 1, 0, 0];
        assert_eq!(
            read(&time, 1, &mut types),
            Ok(vec![Value::Time(Time {
                micros: -25 * 3_600_000_000
            })])
        );
        assert_eq!(
            read(&[0, 1, 12, 0, 5, 0, 0, 0, 0, 0], 1, &mut types),
            Err(Malformed)
        );
    }

    #[test]
    fn a_time_of_more_days_than_there_are_is_the_greatest_time() {
        for days in [35_u32, 1 << 31, u32::MAX] {
            let mut body = vec![0, 1, 11, 0, 8, 0];
            body.extend_from_slice(&days.to_le_bytes());
            body.extend_from_slice(&[23, 59, 59]);
            let greatest = ((838 * 60 + 59) * 60 + 59) * 1_000_000;
            assert_eq!(
                read(&body, 1, &mut Vec::new()),
                Ok(vec![Value::Time(Time { micros: greatest })]),
                "{days} days"
            );
        }
    }

    #[test]
    fn text_that_is_no_utf8_stays_bytes() {
        let mut types = Vec::new();
        assert_eq!(
            read(&[0, 1, 254, 0, 2, 0xC3, 0x28], 1, &mut types),
            Ok(vec![Value::Bytes(vec![0xC3, 0x28])])
        );
    }

    proptest! {
        #[test]
        fn garbage_never_panics(body in proptest::collection::vec(any::<u8>(), 0..100), count in 0_usize..20) {
            let _ = read(&body, count, &mut Vec::new());
        }
    }
}
