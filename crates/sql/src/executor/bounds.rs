//! Key ranges from the bounds of an access path. A range may admit more rows than its condition,
//! never fewer: values that a key column cannot hold are rounded outwards or not used at all.

use std::ops::Bound;

use manxdb_storage::KeyRange;

use super::operator::Run;
use super::prefixes::Prefixes;
use super::sweep::Sweep;
use crate::catalog::{IndexId, ROWS, Table};
use crate::encoding;
use crate::error::SqlResult;
use crate::plan::Expr;
use crate::plan::physical::{Access, KeyPart};
use crate::types::{self, DataType, Value};

/// Where to look.
pub(super) enum Places {
    /// Complete keys, in key order.
    Points(Vec<Vec<u8>>),
    /// Ranges that do not overlap, in key order.
    Ranges(Vec<KeyRange>),
    /// Either, close together, to be read as one from the front.
    Near(Sweep),
}

/// Which way a value that does not fit is rounded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Low,
    High,
}

/// A column in a key.
struct Place<'t> {
    table: &'t Table,
    key: IndexId,
    column: usize,
    prefix: Option<u32>,
}

impl Place<'_> {
    fn ty(&self) -> &DataType {
        &self.table.columns[self.column].ty
    }

    fn encode(&self, run: &Run<'_>, value: &Value) -> SqlResult<Vec<u8>> {
        let mut key = Vec::with_capacity(17);
        let part = (self.column, self.prefix);
        let zone = &run.context.eval.time_zone;
        encoding::encode_key_part(self.table, self.key, part, value, zone, &mut key)?;
        Ok(key)
    }
}

/// Evaluates the bounds of a way into `table` over the row `base`; `may_sweep` when reading more
/// than is wanted is harmless.
pub(super) fn places(
    run: &Run<'_>,
    table: &Table,
    access: &Access,
    base: &[Value],
    may_sweep: bool,
) -> SqlResult<Places> {
    let (id, columns) = match access.index {
        None => (ROWS, None),
        Some(at) => (table.indexes[at].id, Some(&table.indexes[at].columns)),
    };
    let is_tied = |part: &KeyPart| matches!(part, KeyPart::Points { tied: Some(_), .. });
    let has_ties = access.parts.iter().any(is_tied);
    let mut prefixes = Prefixes::of(encoding::index_prefix(table, id.0), has_ties);
    let mut exact = true;
    let mut ends_in_integer = false;
    for (at, part) in access.parts.iter().enumerate() {
        let (column, prefix) = match columns {
            None => (table.primary_key[at], None),
            Some(columns) => (columns[at].column, columns[at].prefix),
        };
        let ty = &table.columns[column].ty;
        let place = Place {
            table,
            key: id,
            column,
            prefix,
        };
        match part {
            KeyPart::Points {
                values,
                null_matches,
                tied,
            } => {
                let keys = point_keys(run, values, *null_matches, &place, base)?;
                let is_extended = keys.is_some_and(|keys| match tied {
                    Some(part) => prefixes.tie(*part, &keys),
                    None => prefixes.cross(&keys),
                });
                if !is_extended {
                    exact = false;
                    break;
                }
                ends_in_integer = matches!(ty, DataType::Int { .. }) && !table.blinds(id, column);
            }
            KeyPart::Span { low, high } => {
                assert!(
                    !table.blinds(id, column),
                    "the order of a blinded column is unknown"
                );
                let low = end_key(run, low.as_ref(), End::Low, &place, base)?;
                let high = end_key(run, high.as_ref(), End::High, &place, base)?;
                let Some((low, high)) = low.zip(high) else {
                    return Ok(Places::Ranges(Vec::new()));
                };
                return Ok(Places::Ranges(spans(
                    &prefixes.in_order(),
                    low.as_deref(),
                    high.as_deref(),
                )));
            }
        }
    }
    let prefixes = prefixes.in_order();
    if access.unique && exact {
        return Ok(Places::Points(prefixes));
    }
    if may_sweep
        && ends_in_integer
        && let Some(sweep) = Sweep::over(&prefixes)
    {
        return Ok(Places::Near(sweep));
    }
    Ok(Places::Ranges(
        prefixes
            .iter()
            .map(|prefix| KeyRange::prefix(prefix))
            .collect(),
    ))
}

/// Encoded candidates of one column, `None` for one that matches nothing; altogether `None` when
/// one of them cannot be encoded.
fn point_keys(
    run: &Run<'_>,
    values: &[Expr],
    null_matches: bool,
    place: &Place<'_>,
    base: &[Value],
) -> SqlResult<Option<Vec<Option<Vec<u8>>>>> {
    let mut keys = Vec::with_capacity(values.len());
    for expr in values {
        let value = run.eval(expr, base)?;
        if value.is_null() && !null_matches {
            keys.push(None);
            continue;
        }
        let Some(value) = key_value(run, value, place.ty(), End::Low) else {
            return Ok(None);
        };
        keys.push(Some(place.encode(run, &value)?));
    }
    Ok(Some(keys))
}

/// One end of a span: outer `None` when nothing can match, inner `None` when the end is open.
#[allow(clippy::option_option)]
fn end_key(
    run: &Run<'_>,
    expr: Option<&Expr>,
    end: End,
    place: &Place<'_>,
    base: &[Value],
) -> SqlResult<Option<Option<Vec<u8>>>> {
    let Some(expr) = expr else {
        return Ok(Some(None));
    };
    let value = run.eval(expr, base)?;
    if value.is_null() {
        return Ok(None);
    }
    let Some(value) = key_value(run, value, place.ty(), end) else {
        return Ok(Some(None));
    };
    Ok(Some(Some(place.encode(run, &value)?)))
}

fn spans(prefixes: &[Vec<u8>], low: Option<&[u8]>, high: Option<&[u8]>) -> Vec<KeyRange> {
    let mut ranges = Vec::with_capacity(prefixes.len());
    for prefix in prefixes {
        // Without a lower end the span begins behind NULL, whose tag is 0.
        let mut start = prefix.clone();
        start.extend_from_slice(low.unwrap_or(&[1]));
        let mut last = prefix.clone();
        last.extend_from_slice(high.unwrap_or(&[]));
        let end = KeyRange::prefix(&last).end;
        if let Bound::Excluded(end) = &end
            && *end <= start
        {
            continue;
        }
        ranges.push(KeyRange {
            start: Bound::Included(start),
            end,
        });
    }
    ranges
}

/// `value` as the key column would hold it, rounded towards `end`; `None` when that is unknown.
fn key_value(run: &Run<'_>, value: Value, ty: &DataType, end: End) -> Option<Value> {
    if value.is_null() {
        return Some(value);
    }
    match ty {
        DataType::Int {
            width, unsigned, ..
        } => {
            let (least, greatest) = width.range(*unsigned);
            integer(&value, end).map(|number| {
                types::integer_value(number.clamp(least, greatest), *width, *unsigned)
            })
        }
        DataType::Bit { width } => {
            let greatest = (1i128 << u32::from(*width)) - 1;
            let number = integer(&value, end)?.clamp(0, greatest);
            u64::try_from(number).ok().map(Value::UInt)
        }
        DataType::Year => match value {
            Value::Int(year) if (1901..=2155).contains(&year) || year == 0 => Some(value),
            _ => None,
        },
        DataType::Decimal { .. } => match value {
            Value::Decimal(_) => Some(value),
            Value::Int(_) | Value::UInt(_) => {
                value.to_decimal().map(|d| Value::Decimal(Box::new(d)))
            }
            _ => None,
        },
        DataType::Double { .. } => match value {
            Value::Double(number) if !number.is_nan() => Some(value),
            Value::Int(_) | Value::UInt(_) | Value::Decimal(_) => {
                value.to_double().map(Value::Double)
            }
            _ => None,
        },
        DataType::Char { .. } | DataType::Varchar { .. } | DataType::Text { .. } => {
            matches!(value, Value::Text(_)).then_some(value)
        }
        DataType::Binary { .. } | DataType::Varbinary { .. } | DataType::Blob { .. } => match value
        {
            Value::Bytes(_) => Some(value),
            Value::Text(text) => Some(Value::Bytes(text.into_bytes())),
            _ => None,
        },
        DataType::Date
        | DataType::Time { .. }
        | DataType::DateTime { .. }
        | DataType::Timestamp { .. } => temporal(run, &value, ty),
        _ => None,
    }
}

/// A number rounded outwards to a whole one; text counts as the DOUBLE it is compared as.
fn integer(value: &Value, end: End) -> Option<i128> {
    let double = match value {
        Value::Int(number) => return Some(i128::from(*number)),
        Value::UInt(number) => return Some(i128::from(*number)),
        Value::Decimal(_) | Value::Double(_) | Value::Text(_) => value.to_double()?,
        _ => return None,
    };
    if !double.is_finite() || double.abs() >= 9.0e15 {
        return None;
    }
    let rounded = if end == End::Low {
        double.floor()
    } else {
        double.ceil()
    };
    #[allow(clippy::cast_possible_truncation)]
    Some(rounded as i128)
}

fn temporal(run: &Run<'_>, value: &Value, ty: &DataType) -> Option<Value> {
    let exact = match (value, ty) {
        (Value::Date(_), DataType::Date)
        | (Value::Time(_), DataType::Time { .. })
        | (Value::DateTime(_), DataType::DateTime { .. } | DataType::Timestamp { .. }) => {
            return Some(value.clone());
        }
        (Value::Date(date), DataType::DateTime { .. } | DataType::Timestamp { .. }) => {
            return Some(Value::DateTime(types::DateTime::midnight(*date)));
        }
        (Value::DateTime(both), DataType::Date) => return Some(Value::Date(both.date)),
        (Value::Text(text), _) => text,
        _ => return None,
    };
    let eval = run.context.eval;
    if matches!(ty, DataType::Time { .. }) {
        return types::parse_time(exact).map(|p| Value::Time(p.value));
    }
    let today = types::today(eval.now_micros, &eval.time_zone);
    let full = Value::Text(exact.clone()).to_datetime(today)?;
    Some(match ty {
        DataType::Date => Value::Date(full.date),
        _ => Value::DateTime(full),
    })
}
