//! Window functions over materialised rows.

use std::cmp::Ordering;
use std::vec::IntoIter;

use super::accumulate::Accumulator;
use super::memory::{row_bytes, value_bytes};
use super::operator::{BoxedOperator, Operator, Run};
use super::project::collect;
use crate::error::{SqlError, SqlResult};
use crate::plan::physical::Window;
use crate::plan::window::{FrameBound, RangeBound, WindowCall, WindowKind, illegal_distance};
use crate::plan::{AggregateCall, AggregateKind, Expr};
use crate::types::{self, Collation, Row, Value};

/// Appends the results of window functions to each row.
pub(super) struct WindowOp<'p> {
    window: &'p Window,
    input: BoxedOperator<'p>,
    rows: IntoIter<Row>,
}

impl<'p> WindowOp<'p> {
    pub fn new(window: &'p Window, input: BoxedOperator<'p>) -> Self {
        Self {
            window,
            input,
            rows: Vec::new().into_iter(),
        }
    }
}

impl Operator for WindowOp<'_> {
    fn open(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<()> {
        self.input.open(run, base)?;
        let mut rows: Vec<Row> = collect(run, &mut self.input)?.collect();
        let mut columns = Vec::with_capacity(self.window.calls.len());
        for call in &self.window.calls {
            let column = evaluate(run, call, &rows)?;
            run.memory.charge(column.iter().map(value_bytes).sum())?;
            columns.push(column);
        }
        for column in columns {
            for (row, value) in rows.iter_mut().zip(column) {
                row.push(value);
            }
        }
        self.rows = rows.into_iter();
        Ok(())
    }

    fn next(&mut self, _run: &Run<'_>) -> SqlResult<Option<Row>> {
        Ok(self.rows.next())
    }
}

/// A row in window order.
struct Placed {
    /// Position in the input.
    at: usize,
    partition: Vec<u8>,
    order: Row,
}

fn evaluate(run: &Run<'_>, call: &WindowCall, rows: &[Row]) -> SqlResult<Vec<Value>> {
    let mut placed = Vec::with_capacity(rows.len());
    for (at, row) in rows.iter().enumerate() {
        let mut partition = Vec::new();
        for expr in &call.partition {
            let collation = expr.ty.collation().unwrap_or(Collation::Binary);
            types::group_key(&run.eval(expr, row)?, collation, &mut partition);
        }
        let order: SqlResult<Row> = call.order.iter().map(|(e, _)| run.eval(e, row)).collect();
        let order = order?;
        run.memory
            .charge(partition.len() + row_bytes(&order) + 48)?;
        placed.push(Placed {
            at,
            partition,
            order,
        });
    }
    placed.sort_by(|a, b| {
        let partitions = a.partition.cmp(&b.partition);
        partitions.then_with(|| compare_order(call, &a.order, &b.order))
    });
    let mut results = vec![Value::Null; rows.len()];
    let mut start = 0;
    while start < placed.len() {
        let same = |p: &Placed| p.partition == placed[start].partition;
        let end = start + placed[start..].iter().take_while(|p| same(p)).count();
        let partition = Partition {
            call,
            rows,
            placed: &placed[start..end],
        };
        partition.evaluate(run, &mut results)?;
        start = end;
    }
    Ok(results)
}

fn compare_order(call: &WindowCall, a: &[Value], b: &[Value]) -> Ordering {
    for ((left, right), (expr, descending)) in a.iter().zip(b).zip(&call.order) {
        let ordering = types::sort_cmp_typed(left, right, &expr.ty);
        let ordering = if *descending {
            ordering.reverse()
        } else {
            ordering
        };
        if ordering.is_ne() {
            return ordering;
        }
    }
    Ordering::Equal
}

struct Partition<'a> {
    call: &'a WindowCall,
    rows: &'a [Row],
    placed: &'a [Placed],
}

impl Partition<'_> {
    fn row(&self, at: usize) -> &Row {
        &self.rows[self.placed[at].at]
    }

    /// First and one-past-last position of the peers of each row.
    fn peers(&self) -> Vec<(usize, usize)> {
        let mut peers = Vec::with_capacity(self.placed.len());
        let mut start = 0;
        while start < self.placed.len() {
            let first = &self.placed[start].order;
            let same = |p: &&Placed| compare_order(self.call, first, &p.order).is_eq();
            let end = start + self.placed[start..].iter().take_while(same).count();
            peers.extend((start..end).map(|_| (start, end)));
            start = end;
        }
        peers
    }

    fn evaluate(&self, run: &Run<'_>, results: &mut [Value]) -> SqlResult<()> {
        let peers = self.peers();
        if let WindowKind::Aggregate(aggregate) = &self.call.kind {
            return self.aggregate(run, aggregate, &peers, results);
        }
        let mut dense = 0;
        for at in 0..self.placed.len() {
            run.tick()?;
            if peers[at].0 == at {
                dense += 1;
            }
            results[self.placed[at].at] = self.value(run, at, dense, &peers)?;
        }
        Ok(())
    }

    #[allow(clippy::cast_precision_loss)]
    fn value(
        &self,
        run: &Run<'_>,
        at: usize,
        dense: u64,
        peers: &[(usize, usize)],
    ) -> SqlResult<Value> {
        let count = self.placed.len();
        let number = |n: usize| Value::UInt(n as u64);
        Ok(match &self.call.kind {
            WindowKind::RowNumber => number(at + 1),
            WindowKind::Rank => number(peers[at].0 + 1),
            WindowKind::DenseRank => Value::UInt(dense),
            WindowKind::PercentRank if count < 2 => Value::Double(0.0),
            WindowKind::PercentRank => Value::Double(peers[at].0 as f64 / (count - 1) as f64),
            WindowKind::CumeDist => Value::Double(peers[at].1 as f64 / count as f64),
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
                self.framed_value(run, at, peers)?
            }
            WindowKind::Aggregate(_) => Value::Null,
        })
    }

    fn argument(&self, run: &Run<'_>, index: usize, at: usize) -> SqlResult<Value> {
        match self.call.arguments.get(index) {
            Some(expr) => run.eval(expr, self.row(at)),
            None => Ok(Value::Null),
        }
    }

    fn shifted(&self, run: &Run<'_>, at: usize, back: bool) -> SqlResult<Value> {
        let distance = match self.call.arguments.get(1) {
            None => 1,
            Some(expr) => {
                let distance = run.eval(expr, self.row(at))?.to_i64();
                let distance = distance.and_then(|n| usize::try_from(n).ok());
                distance.ok_or_else(|| wrong_argument(if back { "lag" } else { "lead" }))?
            }
        };
        let target = if back {
            at.checked_sub(distance)
        } else {
            at.checked_add(distance).filter(|t| *t < self.placed.len())
        };
        match target {
            Some(target) => self.argument(run, 0, target),
            None => self.argument(run, 2, at),
        }
    }

    fn framed_value(&self, run: &Run<'_>, at: usize, peers: &[(usize, usize)]) -> SqlResult<Value> {
        let (start, end) = self.frame(run, at, peers)?;
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
    fn frame(
        &self,
        run: &Run<'_>,
        at: usize,
        peers: &[(usize, usize)],
    ) -> SqlResult<(usize, usize)> {
        let frame = &self.call.frame;
        let distance = |expr: &Expr| -> SqlResult<usize> {
            let value = run.eval(expr, self.row(at))?.to_i64();
            let value = value.and_then(|n| usize::try_from(n).ok());
            value.ok_or_else(illegal_distance)
        };
        let start = match &frame.start {
            FrameBound::Unbounded => 0,
            FrameBound::Current if frame.rows => at,
            FrameBound::Current => peers[at].0,
            FrameBound::Preceding(expr) => at.saturating_sub(distance(expr)?),
            FrameBound::Following(expr) => at.saturating_add(distance(expr)?),
            FrameBound::Range(range) => match self.range_limit(run, at, range)? {
                Limit::Peers => peers[at].0,
                Limit::None => 0,
                Limit::At(limit) => self.count_before(&limit, Ordering::is_lt),
            },
        };
        let end = match &frame.end {
            FrameBound::Unbounded => self.placed.len(),
            FrameBound::Current if frame.rows => at + 1,
            FrameBound::Current => peers[at].1,
            FrameBound::Preceding(expr) => (at + 1).saturating_sub(distance(expr)?),
            FrameBound::Following(expr) => (at + 1).saturating_add(distance(expr)?),
            FrameBound::Range(range) => match self.range_limit(run, at, range)? {
                Limit::Peers => peers[at].1,
                Limit::None => self.placed.len(),
                Limit::At(limit) => self.count_before(&limit, Ordering::is_le),
            },
        };
        let end = end.min(self.placed.len());
        Ok((start.min(end), end))
    }

    /// Where the distance from row `at` ends.
    fn range_limit(&self, run: &Run<'_>, at: usize, range: &RangeBound) -> SqlResult<Limit> {
        let distance = run.eval(&range.distance, self.row(at))?;
        let negative = match &distance {
            Value::Null => true,
            Value::Text(text) => text.trim_start().starts_with('-'),
            number => number.to_double().is_some_and(|number| number < 0.0),
        };
        if negative {
            return Err(illegal_distance());
        }
        if self.placed[at].order.first().is_none_or(Value::is_null) {
            return Ok(Limit::Peers);
        }
        Ok(match run.eval(&range.limit, self.row(at))? {
            Value::Null => Limit::None,
            limit => Limit::At(limit),
        })
    }

    /// How many rows come before `limit`, by where each stands to it in the window's order.
    fn count_before(&self, limit: &Value, wanted: fn(Ordering) -> bool) -> usize {
        let before = |placed: &Placed| {
            let (Some(value), Some((expr, descending))) =
                (placed.order.first(), self.call.order.first())
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
        self.placed.partition_point(before)
    }

    /// As [`Self::aggregate`] for frames that reach to the end: from the last row to the first
    /// each frame only gains rows.
    fn aggregate_backwards(
        &self,
        run: &Run<'_>,
        aggregate: &AggregateCall,
        peers: &[(usize, usize)],
        results: &mut [Value],
    ) -> SqlResult<()> {
        let mut state = Accumulator::new(aggregate);
        let mut from = self.placed.len();
        for at in (0..self.placed.len()).rev() {
            run.tick()?;
            let (start, end) = self.frame(run, at, peers)?;
            if start > from {
                state = Accumulator::new(aggregate);
                from = end;
            }
            while from > start {
                from -= 1;
                run.tick()?;
                state.add(run, aggregate, self.row(from))?;
            }
            results[self.placed[at].at] = state.result(run, aggregate)?;
        }
        Ok(())
    }

    fn aggregate(
        &self,
        run: &Run<'_>,
        aggregate: &AggregateCall,
        peers: &[(usize, usize)],
        results: &mut [Value],
    ) -> SqlResult<()> {
        let grows = matches!(self.call.frame.start, FrameBound::Unbounded);
        let shrinks = matches!(self.call.frame.end, FrameBound::Unbounded);
        if shrinks && !grows && !depends_on_order(aggregate.kind) {
            return self.aggregate_backwards(run, aggregate, peers, results);
        }
        let mut state = Accumulator::new(aggregate);
        let mut taken = 0;
        let mut known: Option<(usize, Value)> = None;
        for at in 0..self.placed.len() {
            run.tick()?;
            let (start, end) = self.frame(run, at, peers)?;
            if !grows {
                state = Accumulator::new(aggregate);
                taken = start;
                known = None;
            }
            while taken < end {
                run.tick()?;
                state.add(run, aggregate, self.row(taken))?;
                taken += 1;
            }
            let value = match &known {
                Some((until, value)) if *until == end => value.clone(),
                _ => state.result(run, aggregate)?,
            };
            known = Some((end, value.clone()));
            results[self.placed[at].at] = value;
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
