//! Aggregate functions, one row at a time.

use std::collections::HashSet;
use std::sync::Arc;

use super::memory::{row_bytes, value_bytes};
use super::operator::Run;
use crate::error::{SqlError, SqlResult};
use crate::expr::DIV_INCREMENT;
use crate::plan::{AggregateCall, AggregateKind, Expr};
use crate::types::{self, Collation, DataType, Decimal, Row, Value};

/// The state of one aggregate of one group.
pub(super) struct Accumulator {
    /// Argument values seen, for DISTINCT.
    seen: Option<HashSet<Vec<u8>>>,
    state: State,
}

enum State {
    Count(i64),
    /// Integers until one does not fit, decimals from there.
    Exact {
        whole: i128,
        decimal: Option<Decimal>,
        count: u64,
    },
    Double {
        sum: f64,
        count: u64,
    },
    Extreme(Option<Value>),
    /// Sort values and texts, and the bytes of these.
    Concat {
        parts: Vec<(Row, Vec<u8>)>,
        bytes: usize,
    },
    Variance {
        count: u64,
        mean: f64,
        squares: f64,
    },
    Bits(u64),
    Array(Option<Vec<serde_json::Value>>),
    Object(Option<serde_json::Map<String, serde_json::Value>>),
    First(Option<Value>),
}

impl Accumulator {
    pub fn new(call: &AggregateCall) -> Self {
        use AggregateKind as A;
        let exact = matches!(call.ty, DataType::Decimal { .. });
        let state = match call.kind {
            A::CountRows | A::Count | A::Grouping => State::Count(0),
            A::Sum | A::Avg if exact => State::Exact {
                whole: 0,
                decimal: None,
                count: 0,
            },
            A::Sum | A::Avg => State::Double { sum: 0.0, count: 0 },
            A::Min | A::Max => State::Extreme(None),
            A::GroupConcat => State::Concat {
                parts: Vec::new(),
                bytes: 0,
            },
            A::StdPop | A::StdSamp | A::VarPop | A::VarSamp => State::Variance {
                count: 0,
                mean: 0.0,
                squares: 0.0,
            },
            A::BitAnd => State::Bits(u64::MAX),
            A::BitOr | A::BitXor => State::Bits(0),
            A::JsonArray => State::Array(None),
            A::JsonObject => State::Object(None),
            A::First => State::First(None),
        };
        let idempotent = matches!(call.kind, A::Min | A::Max | A::First | A::BitAnd | A::BitOr);
        Self {
            seen: (call.distinct && !idempotent).then(HashSet::new),
            state,
        }
    }

    /// Takes one row of the group.
    pub fn add(&mut self, run: &Run<'_>, call: &AggregateCall, row: &[Value]) -> SqlResult<()> {
        if let State::First(first) = &mut self.state {
            if first.is_none()
                && let Some(argument) = call.arguments.first()
            {
                *first = Some(run.eval(argument, row)?);
            }
            return Ok(());
        }
        if call.kind == AggregateKind::Grouping {
            return Ok(()); // it says something of the group, not of its rows
        }
        let mut values = Vec::with_capacity(call.arguments.len());
        let sums = matches!(
            self.state,
            State::Exact { .. } | State::Double { .. } | State::Variance { .. }
        );
        for argument in &call.arguments {
            values.push(if sums {
                addend(run, argument, row)?
            } else {
                run.eval(argument, row)?
            });
        }
        let json = matches!(self.state, State::Array(_) | State::Object(_));
        if !json && values.iter().any(Value::is_null) {
            return Ok(());
        }
        if self.is_repeated(run, call, &values)? {
            return Ok(());
        }
        self.take(run, call, values, row)
    }

    fn is_repeated(
        &mut self,
        run: &Run<'_>,
        call: &AggregateCall,
        values: &[Value],
    ) -> SqlResult<bool> {
        let Some(seen) = &mut self.seen else {
            return Ok(false);
        };
        let mut key = Vec::new();
        for (value, argument) in values.iter().zip(&call.arguments) {
            let collation = argument.ty.collation().unwrap_or(Collation::Binary);
            types::group_key(value, collation, &mut key);
        }
        let bytes = key.len() + 48;
        let new = seen.insert(key);
        if new {
            run.memory.charge(bytes)?;
        }
        Ok(!new)
    }

    fn take(
        &mut self,
        run: &Run<'_>,
        call: &AggregateCall,
        mut values: Vec<Value>,
        row: &[Value],
    ) -> SqlResult<()> {
        if let State::Concat { parts, bytes } = &mut self.state {
            // Without an order nothing behind the cut can come before it.
            if !call.order.is_empty() || *bytes <= run.context.eval.group_concat_max_len {
                let part = concat_part(run, call, &values, row)?;
                *bytes = bytes.saturating_add(part.1.len());
                parts.push(part);
            }
            return Ok(());
        }
        let last = values.pop();
        match (&mut self.state, last) {
            (State::Count(count), _) => *count += 1,
            (State::Exact { .. } | State::Double { .. }, Some(value)) => self.sum(run, &value)?,
            (State::Extreme(extreme), Some(value)) => {
                let collation = call.ty.collation().unwrap_or(Collation::Binary);
                let better = extreme.as_ref().is_none_or(|known| {
                    let ordering = types::sort_cmp(&value, known, collation);
                    if call.kind == AggregateKind::Min {
                        ordering.is_lt()
                    } else {
                        ordering.is_gt()
                    }
                });
                if better {
                    *extreme = Some(value);
                }
            }
            (
                State::Variance {
                    count,
                    mean,
                    squares,
                },
                Some(value),
            ) => {
                let number = number(run, &value)?;
                *count += 1;
                let delta = number - *mean;
                #[allow(clippy::cast_precision_loss)]
                let n = *count as f64;
                *mean += delta / n;
                *squares += delta * (number - *mean);
            }
            (State::Bits(bits), Some(value)) => {
                let more = value.to_bits().unwrap_or(0);
                match call.kind {
                    AggregateKind::BitAnd => *bits &= more,
                    AggregateKind::BitOr => *bits |= more,
                    _ => *bits ^= more,
                }
            }
            (State::Array(array), Some(value)) => {
                run.memory.charge(64 + value_bytes(&value))?;
                array.get_or_insert_default().push(types::to_json(&value));
            }
            (State::Object(object), Some(value)) => {
                let Some(key) = values.first().and_then(Value::to_text) else {
                    return Err(SqlError::new(
                        3158,
                        "22032",
                        "JSON documents may not contain NULL member names.",
                    ));
                };
                run.memory.charge(64 + key.len() + value_bytes(&value))?;
                object
                    .get_or_insert_default()
                    .insert(key, types::to_json(&value));
            }
            _ => {}
        }
        Ok(())
    }

    fn sum(&mut self, run: &Run<'_>, value: &Value) -> SqlResult<()> {
        match &mut self.state {
            State::Exact {
                whole,
                decimal,
                count,
            } => {
                *count += 1;
                let integer = match value {
                    Value::Int(number) => Some(i128::from(*number)),
                    Value::UInt(number) => Some(i128::from(*number)),
                    _ => None,
                };
                match integer.and_then(|number| whole.checked_add(number)) {
                    Some(sum) => *whole = sum,
                    None => {
                        if let Some(number) = value.to_decimal() {
                            *decimal = Some(match decimal.take() {
                                Some(sum) => sum + number,
                                None => number,
                            });
                        }
                    }
                }
            }
            State::Double { sum, count } => {
                *count += 1;
                *sum += number(run, value)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// The result so far.
    pub fn result(&self, run: &Run<'_>, call: &AggregateCall) -> SqlResult<Value> {
        Ok(match &self.state {
            State::Count(count) => Value::Int(*count),
            State::Exact { count: 0, .. } | State::Double { count: 0, .. } => Value::Null,
            State::Exact {
                whole,
                decimal,
                count,
            } => {
                let increment = run.context.eval.div_precision_increment;
                exact_result(call, *whole, decimal.as_ref(), (*count, increment))
            }
            State::Double { sum, count } => {
                let result = if call.kind == AggregateKind::Avg {
                    #[allow(clippy::cast_precision_loss)]
                    let n = *count as f64;
                    sum / n
                } else {
                    *sum
                };
                if !result.is_finite() {
                    return Err(SqlError::new(
                        1690,
                        "22003",
                        "DOUBLE value is out of range in an aggregate",
                    ));
                }
                Value::Double(result)
            }
            State::Extreme(value) | State::First(value) => value.clone().unwrap_or(Value::Null),
            State::Concat { parts, .. } => concat_result(run, call, parts)?,
            State::Variance { count, squares, .. } => variance(call.kind, *count, *squares),
            State::Bits(bits) => Value::UInt(*bits),
            State::Array(None) | State::Object(None) => Value::Null,
            State::Array(Some(array)) => document(serde_json::Value::Array(array.clone()))?,
            State::Object(Some(object)) => document(serde_json::Value::Object(object.clone()))?,
        })
    }
}

/// What SUM and its kin add: quotients with all their digits, and the numbers of ENUM and SET.
fn addend(run: &Run<'_>, argument: &Expr, row: &[Value]) -> SqlResult<Value> {
    let eval = run.context.eval;
    let value = argument.eval_unrounded(eval, row, run.outer)?.into_owned();
    Ok(value.stored_from(&argument.ty, &DataType::DOUBLE))
}

fn number(run: &Run<'_>, value: &Value) -> SqlResult<f64> {
    let (number, complete) = value.to_double_checked().unwrap_or((0.0, false));
    if !complete && matches!(value, Value::Text(_)) {
        run.context.eval.truncated("DOUBLE", value)?;
    }
    Ok(number)
}

fn document(json: serde_json::Value) -> SqlResult<Value> {
    types::check_json(&json)?;
    Ok(Value::Json(Arc::new(types::normalise(json))))
}

/// SUM or AVG of integers and decimals: of so many, and with so many digits more than they have
/// (`div_precision_increment`).
pub(crate) fn exact_result(
    call: &AggregateCall,
    whole: i128,
    decimal: Option<&Decimal>,
    (count, increment): (u64, u8),
) -> Value {
    let scale = match call.ty {
        DataType::Decimal { scale, .. } => i64::from(scale),
        _ => 0,
    };
    let mut sum = Decimal::from(whole);
    if let Some(decimal) = decimal {
        sum += decimal;
    }
    if call.kind == AggregateKind::Avg {
        sum = sum / Decimal::from(count);
        // Types are declared for the default.
        let more = i64::from(increment) - i64::from(DIV_INCREMENT);
        let scale = (scale + more).clamp(0, types::MAX_DECIMAL_SCALE.into());
        return Value::decimal(types::round_decimal(&sum, scale));
    }
    Value::decimal(types::round_decimal(&sum, scale))
}

fn variance(kind: AggregateKind, count: u64, squares: f64) -> Value {
    use AggregateKind as A;
    let sample = matches!(kind, A::StdSamp | A::VarSamp);
    let divisor = if sample {
        count.saturating_sub(1)
    } else {
        count
    };
    if divisor == 0 {
        return Value::Null;
    }
    #[allow(clippy::cast_precision_loss)]
    let variance = squares / divisor as f64;
    Value::Double(if matches!(kind, A::StdPop | A::StdSamp) {
        variance.sqrt()
    } else {
        variance
    })
}

fn concat_part(
    run: &Run<'_>,
    call: &AggregateCall,
    values: &[Value],
    row: &[Value],
) -> SqlResult<(Row, Vec<u8>)> {
    let mut text = Vec::new();
    for (value, argument) in values.iter().zip(&call.arguments) {
        types::write_text(value, &argument.ty, &mut text);
    }
    let mut keys = Vec::with_capacity(call.order.len());
    for (key, _) in &call.order {
        keys.push(run.eval(key, row)?);
    }
    run.memory.charge(text.len() + row_bytes(&keys) + 24)?;
    Ok((keys, text))
}

fn concat_result(
    run: &Run<'_>,
    call: &AggregateCall,
    parts: &[(Row, Vec<u8>)],
) -> SqlResult<Value> {
    if parts.is_empty() {
        return Ok(Value::Null);
    }
    let mut order: Vec<&(Row, Vec<u8>)> = parts.iter().collect();
    order.sort_by(|(a, _), (b, _)| {
        let mut pairs = a.iter().zip(b).zip(&call.order);
        let ordering = pairs.find_map(|((a, b), (key, descending))| {
            let ordering = types::sort_cmp_typed(a, b, &key.ty);
            let ordering = if *descending {
                ordering.reverse()
            } else {
                ordering
            };
            ordering.is_ne().then_some(ordering)
        });
        ordering.unwrap_or(std::cmp::Ordering::Equal)
    });
    let most = run.context.eval.group_concat_max_len;
    let mut joined = Vec::new();
    for (at, (_, text)) in order.into_iter().enumerate() {
        if at > 0 {
            joined.extend_from_slice(call.separator.as_bytes());
        }
        joined.extend_from_slice(text);
        if joined.len() > most {
            let message = format!("Row {} was cut by GROUP_CONCAT()", at + 1);
            run.context.eval.problem(1260, "HY000", message)?;
            break;
        }
    }
    joined.truncate(most);
    let valid = match std::str::from_utf8(&joined) {
        Ok(_) => joined.len(),
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Err(_) => return Ok(Value::Bytes(joined)),
    };
    joined.truncate(valid);
    Ok(String::from_utf8(joined).map_or(Value::Null, Value::Text))
}
