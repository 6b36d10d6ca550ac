//! Window functions over the rows of one partition.

use std::cell::Cell;
use std::cmp::Ordering;

use super::compare_order;
use crate::error::{SqlError, SqlResult};
use crate::executor::accumulate::Accumulator;
use crate::executor::operator::Run;
use crate::plan::window::{FrameBound, RangeBound, WindowCall, WindowKind, illegal_distance};
use crate::plan::{AggregateCall, AggregateKind, Expr};
use crate::types::{self, Value};

/// Rows of one partition in the order of the window, wherever they are.
pub(super) trait Ordered {
    fn len(&self) -> usize;

    /// Shows a row and its values of ORDER BY.
    ///
    /// # Errors
    /// What `look` says; 1024 when a file cannot be read.
    fn with<T>(
        &self,
        at: usize,
        look: impl FnOnce(&[Value], &[Value]) -> SqlResult<T>,
    ) -> SqlResult<T>;
}

/// Takes the result of the row at a position of the partition.
pub(super) type Give<'g> = dyn FnMut(usize, Value) -> SqlResult<()> + 'g;

pub(super) struct Partition<'a, R> {
    call: &'a WindowCall,
    rows: R,
    /// The peers that were asked for last: those of one row are those of its neighbours.
    peers: Cell<(usize, usize)>,
}

impl<'a, R: Ordered> Partition<'a, R> {
    pub fn new(call: &'a WindowCall, rows: R) -> Self {
        Self {
            call,
            rows,
            peers: Cell::default(),
        }
    }

    fn eval(&self, run: &Run<'_>, expr: &Expr, at: usize) -> SqlResult<Value> {
        self.rows.with(at, |row, _| run.eval(expr, row))
    }

    fn are_peers(&self, one: usize, other: usize) -> SqlResult<bool> {
        self.rows.with(one, |_, one| {
            self.rows.with(other, |_, other| {
                Ok(compare_order(self.call, one, other).is_eq())
            })
        })
    }

    /// First and one-past-last position of the peers of a row.
    fn peers(&self, at: usize) -> SqlResult<(usize, usize)> {
        let (mut start, mut end) = self.peers.get();
        if !(start..end).contains(&at) {
            (start, end) = (at, at + 1);
            while start > 0 && self.are_peers(start - 1, at)? {
                start -= 1;
            }
            while end < self.rows.len() && self.are_peers(end, at)? {
                end += 1;
            }
            self.peers.set((start, end));
        }
        assert!(
            (start..end).contains(&at) && end <= self.rows.len(),
            "a row is its own peer"
        );
        Ok((start, end))
    }

    /// Gives the result of each row, in any order.
    pub fn evaluate(&self, run: &Run<'_>, give: &mut Give<'_>) -> SqlResult<()> {
        if let WindowKind::Aggregate(aggregate) = &self.call.kind {
            return self.aggregate(run, aggregate, give);
        }
        let mut dense = 0;
        for at in 0..self.rows.len() {
            run.tick()?;
            if self.peers(at)?.0 == at {
                dense += 1;
            }
            give(at, self.value(run, at, dense)?)?;
        }
        Ok(())
    }

    #[allow(clippy::cast_precision_loss)]
    fn value(&self, run: &Run<'_>, at: usize, dense: u64) -> SqlResult<Value> {
        let count = self.rows.len();
        let number = |n: usize| Value::UInt(n as u64);
        Ok(match &self.call.kind {
            WindowKind::RowNumber => number(at + 1),
            WindowKind::Rank => number(self.peers(at)?.0 + 1),
            WindowKind::DenseRank => Value::UInt(dense),
            WindowKind::PercentRank if count < 2 => Value::Double(0.0),
            WindowKind::PercentRank => Value::Double(self.peers(at)?.0 as f64 / (count - 1) as f64),
            WindowKind::CumeDist => Value::Double(self.peers(at)?.1 as f64 / count as f64),
            WindowKind::Ntile => {
                let tiles = self.argument(run, 0, at)?;
                let tiles = usize::try_from(tiles.to_i64().unwrap_or(0)).unwrap_or(0);
                if tiles == 0 {
                    return Err(wrong_argument("ntile"));
                }
                number(tile(at, count, tiles))
            }
            WindowKind::Lag => self.shifted(run, at, true)?,
            WindowKind::Lead => self.shifted(run, at, false)?,
            WindowKind::FirstValue | WindowKind::LastValue | WindowKind::NthValue => {
                self.framed_value(run, at)?
            }
            WindowKind::Aggregate(_) => Value::Null,
        })
    }

    fn argument(&self, run: &Run<'_>, index: usize, at: usize) -> SqlResult<Value> {
        match self.call.arguments.get(index) {
            Some(expr) => self.eval(run, expr, at),
            None => Ok(Value::Null),
        }
    }

    fn shifted(&self, run: &Run<'_>, at: usize, back: bool) -> SqlResult<Value> {
        let distance = match self.call.arguments.get(1) {
            None => 1,
            Some(expr) => {
                let distance = self.eval(run, expr, at)?.to_i64();
                let distance = distance.and_then(|n| usize::try_from(n).ok());
                distance.ok_or_else(|| wrong_argument(if back { "lag" } else { "lead" }))?
            }
        };
        let target = if back {
            at.checked_sub(distance)
        } else {
            at.checked_add(distance).filter(|t| *t < self.rows.len())
        };
        match target {
            Some(target) => self.argument(run, 0, target),
            None => self.argument(run, 2, at),
        }
    }

    fn framed_value(&self, run: &Run<'_>, at: usize) -> SqlResult<Value> {
        let (start, end) = self.frame(run, at)?;
        let target = match self.call.kind {
            WindowKind::FirstValue => Some(start),
            WindowKind::LastValue => end.checked_sub(1),
            _ => {
                let nth = self.argument(run, 1, at)?.to_i64().unwrap_or(0);
                let nth = usize::try_from(nth).ok().and_then(|n| n.checked_sub(1));
                Some(start + nth.ok_or_else(|| wrong_argument("nth_value"))?)
            }
        };
        match target.filter(|target| (start..end).contains(target)) {
            Some(target) => self.argument(run, 0, target),
            None => Ok(Value::Null),
        }
    }

    /// The rows of the frame of row `at`: first and one past the last.
    fn frame(&self, run: &Run<'_>, at: usize) -> SqlResult<(usize, usize)> {
        let frame = &self.call.frame;
        let distance = |expr: &Expr| -> SqlResult<usize> {
            let value = self.eval(run, expr, at)?.to_i64();
            let value = value.and_then(|n| usize::try_from(n).ok());
            value.ok_or_else(illegal_distance)
        };
        let start = match &frame.start {
            FrameBound::Unbounded => 0,
            FrameBound::Current if frame.rows => at,
            FrameBound::Current => self.peers(at)?.0,
            FrameBound::Preceding(expr) => at.saturating_sub(distance(expr)?),
            FrameBound::Following(expr) => at.saturating_add(distance(expr)?),
            FrameBound::Range(range) => match self.range_limit(run, at, range)? {
                Limit::Peers => self.peers(at)?.0,
                Limit::None => 0,
                Limit::At(limit) => self.count_before(&limit, Ordering::is_lt)?,
            },
        };
        let end = match &frame.end {
            FrameBound::Unbounded => self.rows.len(),
            FrameBound::Current if frame.rows => at + 1,
            FrameBound::Current => self.peers(at)?.1,
            FrameBound::Preceding(expr) => (at + 1).saturating_sub(distance(expr)?),
            FrameBound::Following(expr) => (at + 1).saturating_add(distance(expr)?),
            FrameBound::Range(range) => match self.range_limit(run, at, range)? {
                Limit::Peers => self.peers(at)?.1,
                Limit::None => self.rows.len(),
                Limit::At(limit) => self.count_before(&limit, Ordering::is_le)?,
            },
        };
        let end = end.min(self.rows.len());
        Ok((start.min(end), end))
    }

    /// Where the distance from row `at` ends.
    fn range_limit(&self, run: &Run<'_>, at: usize, range: &RangeBound) -> SqlResult<Limit> {
        let distance = self.eval(run, &range.distance, at)?;
        let negative = match &distance {
            Value::Null => true,
            Value::Text(text) => text.trim_start().starts_with('-'),
            number => number.to_double().is_some_and(|number| number < 0.0),
        };
        if negative {
            return Err(illegal_distance());
        }
        let has_place = |order: &[Value]| order.first().is_some_and(|value| !value.is_null());
        if !self.rows.with(at, |_, order| Ok(has_place(order)))? {
            return Ok(Limit::Peers);
        }
        Ok(match self.eval(run, &range.limit, at)? {
            Value::Null => Limit::None,
            limit => Limit::At(limit),
        })
    }

    /// How many rows come before `limit`, by where each stands to it in the window's order.
    fn count_before(&self, limit: &Value, wanted: fn(Ordering) -> bool) -> SqlResult<usize> {
        let is_before = |order: &[Value]| {
            let (Some(value), Some((expr, descending))) = (order.first(), self.call.order.first())
            else {
                return false;
            };
            let ordering = types::sort_cmp_typed(value, limit, &expr.ty);
            wanted(if *descending {
                ordering.reverse()
            } else {
                ordering
            })
        };
        let (mut low, mut high) = (0, self.rows.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.rows.with(middle, |_, order| Ok(is_before(order)))? {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// As [`Self::aggregate`] for frames that reach to the end: from the last row to the first
    /// each frame only gains rows.
    fn aggregate_backwards(
        &self,
        run: &Run<'_>,
        aggregate: &AggregateCall,
        give: &mut Give<'_>,
    ) -> SqlResult<()> {
        let mut state = Accumulator::new(aggregate);
        let mut from = self.rows.len();
        for at in (0..self.rows.len()).rev() {
            run.tick()?;
            let (start, end) = self.frame(run, at)?;
            if start > from {
                state = Accumulator::new(aggregate);
                from = end;
            }
            while from > start {
                from -= 1;
                run.tick()?;
                self.rows
                    .with(from, |row, _| state.add(run, aggregate, row))?;
            }
            give(at, state.result(run, aggregate)?)?;
        }
        Ok(())
    }

    fn aggregate(
        &self,
        run: &Run<'_>,
        aggregate: &AggregateCall,
        give: &mut Give<'_>,
    ) -> SqlResult<()> {
        let grows = matches!(self.call.frame.start, FrameBound::Unbounded);
        let shrinks = matches!(self.call.frame.end, FrameBound::Unbounded);
        if shrinks && !grows && !depends_on_order(aggregate.kind) {
            return self.aggregate_backwards(run, aggregate, give);
        }
        let mut state = Accumulator::new(aggregate);
        let mut taken = 0;
        let mut known: Option<(usize, Value)> = None;
        for at in 0..self.rows.len() {
            run.tick()?;
            let (start, end) = self.frame(run, at)?;
            if !grows {
                state = Accumulator::new(aggregate);
                taken = start;
                known = None;
            }
            while taken < end {
                run.tick()?;
                self.rows
                    .with(taken, |row, _| state.add(run, aggregate, row))?;
                taken += 1;
            }
            let value = match &known {
                Some((until, value)) if *until == end => value.clone(),
                _ => state.result(run, aggregate)?,
            };
            known = Some((end, value.clone()));
            give(at, value)?;
        }
        Ok(())
    }
}

/// Where a frame with a distance ends.
enum Limit {
    /// NULL has no distance to anything: only other NULLs are near.
    Peers,
    /// Beyond what the type can hold.
    None,
    /// At this value of the ORDER BY expression.
    At(Value),
}

/// Whether the result tells in which order the rows came.
fn depends_on_order(kind: AggregateKind) -> bool {
    use AggregateKind::{First, GroupConcat, JsonArray, JsonObject};
    matches!(kind, First | GroupConcat | JsonArray | JsonObject)
}

fn wrong_argument(function: &str) -> SqlError {
    SqlError::new(1210, "HY000", format!("Incorrect arguments to {function}"))
}

/// The tile of row `at` of `count` rows: the first tiles are one larger when it does not divide.
fn tile(at: usize, count: usize, tiles: usize) -> usize {
    let (size, larger) = (count / tiles, count % tiles);
    let edge = larger * (size + 1);
    if at < edge {
        at / (size + 1) + 1
    } else {
        larger + (at - edge) / size.max(1) + 1
    }
}
