//! Groups with aggregates from which rows can be taken away again.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_views::Unsuited;

use super::contents::ENTRY_BYTES;
use super::shape::Grouping;
use crate::error::SqlResult;
use crate::executor::{decode_kept, encode_kept, exact_result};
use crate::expr::DIV_INCREMENT;
use crate::plan::{AggregateCall, AggregateKind};
use crate::types::{self, Collation, Decimal, Row, Value};

/// Bytes that a group takes beside its key and its values, about.
const GROUP_BYTES: usize = 96;

/// Groups by the bytes of their keys.
#[derive(Debug, Clone)]
pub(crate) struct Groups {
    grouping: Arc<Grouping>,
    by_key: BTreeMap<Box<[u8]>, Group>,
    bytes: usize,
}

#[derive(Debug, Clone)]
struct Group {
    /// Rows in it.
    rows: u64,
    states: Vec<State>,
}

/// An aggregate of one group.
#[derive(Debug, Clone)]
enum State {
    Count(i64),
    /// As the executor sums: integers apart from decimals.
    Exact {
        whole: i128,
        decimal: Option<Decimal>,
        count: u64,
    },
    /// All values, for MIN and MAX.
    Values(BTreeMap<Ranked, u64>),
    /// All values as bytes, for COUNT of DISTINCT.
    Distinct(BTreeMap<Vec<u8>, u64>),
}

/// A value of a type of which equal values are the same.
#[derive(Debug, Clone)]
struct Ranked(Value);

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        types::sort_cmp(&self.0, &other.0, Collation::Binary)
    }
}

impl State {
    fn new(call: &AggregateCall) -> Self {
        use AggregateKind as A;
        match call.kind {
            A::Min | A::Max => State::Values(BTreeMap::new()),
            A::Count if call.distinct => State::Distinct(BTreeMap::new()),
            A::Sum | A::Avg => State::Exact {
                whole: 0,
                decimal: None,
                count: 0,
            },
            _ => State::Count(0),
        }
    }

    /// Adds the values of a call's arguments, or takes them away; by how many bytes it grew, or
    /// shrank.
    fn change(
        &mut self,
        call: &AggregateCall,
        values: &[Value],
        adds: bool,
    ) -> Result<isize, Unsuited> {
        if values.iter().any(Value::is_null) {
            return Ok(0);
        }
        match (self, values.last()) {
            (State::Count(count), _) => {
                *count += if adds { 1 } else { -1 };
                if *count < 0 { Err(Unsuited) } else { Ok(0) }
            }
            (
                State::Exact {
                    whole,
                    decimal,
                    count,
                },
                Some(value),
            ) => {
                add_exact(whole, decimal, value, adds)?;
                *count = if adds {
                    *count + 1
                } else {
                    count.checked_sub(1).ok_or(Unsuited)?
                };
                Ok(0)
            }
            (State::Values(known), Some(value)) => {
                let size = ENTRY_BYTES + crate::executor::value_bytes(value);
                change_count(known, Ranked(value.clone()), adds, size)
            }
            (State::Distinct(known), Some(_)) => {
                let mut key = Vec::new();
                for (value, argument) in values.iter().zip(&call.arguments) {
                    let collation = argument.ty.collation().unwrap_or(Collation::Binary);
                    types::group_key(value, collation, &mut key);
                }
                let size = ENTRY_BYTES + key.len();
                change_count(known, key, adds, size)
            }
            (_, None) => Err(Unsuited),
        }
    }

    fn result(&self, call: &AggregateCall) -> Value {
        match self {
            State::Count(count) => Value::Int(*count),
            State::Exact { count: 0, .. } => Value::Null,
            State::Exact {
                whole,
                decimal,
                count,
            } => exact_result(call, *whole, decimal.as_ref(), (*count, DIV_INCREMENT)),
            State::Values(known) => {
                let end = if call.kind == AggregateKind::Min {
                    known.keys().next()
                } else {
                    known.keys().next_back()
                };
                end.map_or(Value::Null, |ranked| ranked.0.clone())
            }
            State::Distinct(known) => Value::Int(i64::try_from(known.len()).unwrap_or(i64::MAX)),
        }
    }
}

/// Adds to a sum or takes away, integers and decimals each for themselves.
fn add_exact(
    whole: &mut i128,
    decimal: &mut Option<Decimal>,
    value: &Value,
    adds: bool,
) -> Result<(), Unsuited> {
    let integer = match value {
        Value::Int(number) => Some(i128::from(*number)),
        Value::UInt(number) => Some(i128::from(*number)),
        _ => None,
    };
    if let Some(number) = integer {
        let sum = if adds {
            whole.checked_add(number)
        } else {
            whole.checked_sub(number)
        };
        *whole = sum.ok_or(Unsuited)?;
        return Ok(());
    }
    let Some(number) = value.to_decimal() else {
        return Ok(());
    };
    let known = decimal.take().unwrap_or_default();
    *decimal = Some(if adds { known + number } else { known - number });
    Ok(())
}

fn change_count<K: Ord>(
    known: &mut BTreeMap<K, u64>,
    key: K,
    adds: bool,
    size: usize,
) -> Result<isize, Unsuited> {
    let size = isize::try_from(size).map_err(|_| Unsuited)?;
    if adds {
        let count = known.entry(key).or_default();
        *count += 1;
        return Ok(if *count == 1 { size } else { 0 });
    }
    let count = known.get_mut(&key).ok_or(Unsuited)?;
    assert!(*count > 0, "a value that is held is there at least once");
    *count -= 1;
    if *count > 0 {
        return Ok(0);
    }
    known.remove(&key);
    Ok(-size)
}

impl Groups {
    /// No groups; one of no rows, when there is no GROUP BY.
    pub fn new(grouping: Arc<Grouping>) -> Self {
        let mut groups = Self {
            grouping,
            by_key: BTreeMap::new(),
            bytes: 0,
        };
        if groups.grouping.global {
            let group = groups.group();
            groups.bytes += groups.group_bytes(0);
            groups.by_key.insert(Box::default(), group);
        }
        groups
    }

    fn group(&self) -> Group {
        Group {
            rows: 0,
            states: self.grouping.calls.iter().map(State::new).collect(),
        }
    }

    fn group_bytes(&self, key: usize) -> usize {
        GROUP_BYTES + key + self.grouping.calls.len() * 64
    }

    pub fn size_bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a row, or takes it away: the values of the keys, then those of all arguments.
    pub fn change(&mut self, row: &[Value], adds: bool) -> Result<(), Unsuited> {
        let width = self.grouping.keys.len();
        let (keys, mut values) = row.split_at_checked(width).ok_or(Unsuited)?;
        let key: Box<[u8]> = if self.grouping.global {
            Box::default()
        } else {
            encode_kept(keys).map_err(|_| Unsuited)?.into_boxed_slice()
        };
        let size = self.group_bytes(key.len());
        if adds && !self.by_key.contains_key(&key) {
            let group = self.group();
            self.bytes += size;
            self.by_key.insert(key.clone(), group);
        }
        let grouping = Arc::clone(&self.grouping);
        let group = self.by_key.get_mut(&key).ok_or(Unsuited)?;
        group.rows = if adds {
            group.rows + 1
        } else {
            group.rows.checked_sub(1).ok_or(Unsuited)?
        };
        for (state, call) in group.states.iter_mut().zip(&grouping.calls) {
            let (own, rest) = values
                .split_at_checked(call.arguments.len())
                .ok_or(Unsuited)?;
            values = rest;
            let grown = state.change(call, own, adds)?;
            self.bytes = self.bytes.checked_add_signed(grown).ok_or(Unsuited)?;
        }
        assert!(values.is_empty(), "a row has a value for each argument");
        if group.rows == 0 && !grouping.global {
            self.by_key.remove(&key);
            self.bytes = self.bytes.checked_sub(size).ok_or(Unsuited)?;
        }
        Ok(())
    }

    /// `keys ‖ aggregates` of each group.
    pub fn rows(&self) -> SqlResult<Vec<Row>> {
        let mut rows = Vec::with_capacity(self.by_key.len());
        for (key, group) in &self.by_key {
            let mut row = if self.grouping.global {
                Row::new()
            } else {
                decode_kept(key)?
            };
            let states = group.states.iter().zip(&self.grouping.calls);
            row.extend(states.map(|(state, call)| state.result(call)));
            rows.push(row);
        }
        Ok(rows)
    }
}
