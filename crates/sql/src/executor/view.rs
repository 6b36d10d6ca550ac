//! Reading from a materialized view: a hit, a fill, or the base plan.

use std::cell::Cell;
use std::collections::HashSet;
use std::rc::Rc;
use std::vec::IntoIter;

use manxdb_txn::{ReadMode, Transaction, Waiter};

use super::Reading;
use super::memory::row_bytes;
use super::operator::{BoxedOperator, Demand, Making, Operator, Run, build};
use crate::catalog::NoTables;
use crate::error::SqlResult;
use crate::expr::{DIV_INCREMENT, EvalContext};
use crate::plan::physical::{CHANGED, Node, ViewLookup};
use crate::plan::{Expr, ExprKind, ViewRead, walk};
use crate::types::{Row, Value};

/// A key that a reader asks for.
struct AskedKey<'p> {
    /// What its columns are equal to.
    expressions: Vec<&'p Expr>,
    /// As the view has it.
    bytes: Vec<u8>,
}

/// The answer of a view, or of the base plan.
pub(super) struct ViewOp<'p> {
    lookup: &'p ViewLookup,
    making: Making,
    /// What gives the rows: the tail over what the view holds, or the base plan.
    source: Option<BoxedOperator<'p>>,
}

impl<'p> ViewOp<'p> {
    pub fn new(lookup: &'p ViewLookup, making: Making) -> Self {
        Self {
            lookup,
            making,
            source: None,
        }
    }

    /// What the view holds for this reader; `None`: the base plan answers.
    fn held(&self, run: &Run<'_>) -> SqlResult<Option<Vec<Row>>> {
        let eval = run.context.eval;
        let is_guarded = |(param, value): &(usize, Value)| eval.params.get(*param) == Some(value);
        if run.mode != ReadMode::Plain
            || eval.div_precision_increment != DIV_INCREMENT
            || !self.lookup.guards.iter().all(is_guarded)
            || !self.is_within(run)?
        {
            return Ok(None);
        }
        let ranges = self.lookup.view.row_ranges();
        let Some(at) = run.context.txn.unwritten_version(&ranges)? else {
            return Ok(None);
        };
        let Some(keys) = self.keys(run)? else {
            return Ok(None);
        };
        let (mut all, mut bytes) = (Vec::new(), 0);
        for key in &keys {
            let Some(rows) = self.held_under(run, key, at)? else {
                return Ok(None);
            };
            if keys.len() > 1 {
                bytes += rows.iter().map(row_bytes).sum::<usize>();
                if bytes > self.bytes_max(run) {
                    return Ok(None);
                }
            }
            all.extend(rows);
        }
        Ok(Some(all))
    }

    /// Whether no more rows are asked for than the view holds of each key.
    fn is_within(&self, run: &Run<'_>) -> SqlResult<bool> {
        let Some((limit, held)) = &self.lookup.first else {
            return Ok(true);
        };
        let mut wanted = 0_usize;
        for part in [limit.count.as_ref(), limit.offset.as_ref()]
            .into_iter()
            .flatten()
        {
            let rows = match run.eval(part, &[])? {
                Value::Int(number) => usize::try_from(number).ok(),
                Value::UInt(number) => usize::try_from(number).ok(),
                _ => None,
            };
            match rows.and_then(|rows| wanted.checked_add(rows)) {
                Some(sum) => wanted = sum,
                None => return Ok(false),
            }
        }
        Ok(limit.count.is_some() && wanted <= *held)
    }

    /// The keys that are asked for, each once; `None` when the view cannot tell one of them.
    fn keys(&self, run: &Run<'_>) -> SqlResult<Option<Vec<AskedKey<'p>>>> {
        let mut combined: Vec<(Vec<&'p Expr>, Row)> = vec![(Vec::new(), Row::new())];
        for choices in &self.lookup.keys {
            let mut values = Vec::new();
            for choice in choices {
                let value = run.eval(choice, &[])?;
                // IN is true for no row because of a NULL; alone the base plan has to say so.
                if choices.len() == 1 || !value.is_null() {
                    values.push((choice, value));
                }
            }
            let extended = combined.iter().flat_map(|(expressions, row)| {
                values.iter().map(move |(expression, value)| {
                    let (mut expressions, mut row) = (expressions.clone(), row.clone());
                    expressions.push(*expression);
                    row.push(value.clone());
                    (expressions, row)
                })
            });
            combined = extended.collect();
        }
        let mut seen = HashSet::new();
        let mut keys = Vec::new();
        for (expressions, values) in combined {
            let Some(bytes) = self.lookup.view.key(&values) else {
                return Ok(None);
            };
            if seen.insert(bytes.clone()) {
                keys.push(AskedKey { expressions, bytes });
            }
        }
        Ok(Some(keys))
    }

    /// What the view holds under a key, which is filled if it was not.
    fn held_under(
        &self,
        run: &Run<'_>,
        key: &AskedKey<'_>,
        at: manxdb_storage::Version,
    ) -> SqlResult<Option<Vec<Row>>> {
        let view = &self.lookup.view;
        match view.read(&key.bytes, at)? {
            ViewRead::Hit(rows) => Ok(Some(rows)),
            ViewRead::Base => Ok(None),
            ViewRead::Fill(fill) => {
                let plan = fill_of(self.lookup, &key.expressions);
                let before = run.touched();
                let filled = self.fill_rows(run, &plan);
                fill.note_touched(run.touched().saturating_sub(before));
                match filled? {
                    Some(rows) => fill.finish(rows),
                    None => Ok(None),
                }
            }
        }
    }

    /// Bytes of rows that the reader may be given.
    fn bytes_max(&self, run: &Run<'_>) -> usize {
        let view = &self.lookup.view;
        view.key_bytes_max().min(run.context.memory_limit / 4)
    }

    /// The rows of a key by the fill's plan; `None` when they are too many to be held, or a
    /// condition warned, which later readers would not hear of.
    fn fill_rows(&self, run: &Run<'_>, plan: &Node) -> SqlResult<Option<Vec<Row>>> {
        let whole = Making {
            measured: false,
            demand: Demand::All,
        };
        let warned = run.context.eval.warnings.borrow().len();
        let mut source = build(plan, whole);
        source.open(run, &[])?;
        let (mut rows, mut bytes) = (Vec::new(), 0);
        let most = self.bytes_max(run);
        while let Some(row) = source.next(run)? {
            run.tick()?;
            bytes += row_bytes(&row);
            if bytes > most {
                return Ok(None);
            }
            rows.push(row);
        }
        if run.context.eval.warnings.borrow().len() > warned {
            run.context.eval.warnings.borrow_mut().truncate(warned);
            return Ok(None);
        }
        Ok(Some(rows))
    }
}

impl Operator for ViewOp<'_> {
    fn open(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<()> {
        let node = match self.held(run)? {
            Some(rows) => {
                *run.view_rows.borrow_mut() = rows;
                &self.lookup.tail
            }
            None => &self.lookup.base,
        };
        let source = self.source.insert(build(node, self.making));
        source.open(run, base)
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        match &mut self.source {
            Some(source) => source.next(run),
            None => Ok(None),
        }
    }
}

/// The plan that gives the rows of a key whose columns have these values.
fn fill_of(lookup: &ViewLookup, keys: &[&Expr]) -> Node {
    let params = &lookup.key_params;
    assert_eq!(keys.len(), params.len(), "a value for each key column");
    let mut fill = lookup.fill.clone();
    walk::node_exprs_mut(&mut fill, &mut |expr| put_into(expr, params, keys));
    fill
}

fn put_into(expr: &mut Expr, params: &[usize], keys: &[&Expr]) {
    if let ExprKind::Param(param) = expr.kind {
        let mut columns = params.iter().zip(keys);
        if let Some((_, key)) = columns.find(|(column, _)| **column == param) {
            *expr = (*key).clone();
        }
        return;
    }
    walk::for_each_child_mut(expr, &mut |child| put_into(child, params, keys));
}

/// Reads as before a commit.
pub(super) struct Before<'p>(pub BoxedOperator<'p>);

impl Operator for Before<'_> {
    fn open(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<()> {
        run.before(|| self.0.open(run, base))
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        run.before(|| self.0.next(run))
    }

    fn prepare(&mut self, run: &Run<'_>, bases: &[Row]) -> SqlResult<()> {
        run.before(|| self.0.prepare(run, bases))
    }
}

/// What a view holds under the key that was read.
#[derive(Default)]
pub(super) struct ViewRowsOp {
    rows: IntoIter<Row>,
}

impl Operator for ViewRowsOp {
    fn open(&mut self, run: &Run<'_>, _base: &[Value]) -> SqlResult<()> {
        self.rows = std::mem::take(&mut *run.view_rows.borrow_mut()).into_iter();
        Ok(())
    }

    fn next(&mut self, _run: &Run<'_>) -> SqlResult<Option<Row>> {
        Ok(self.rows.next())
    }
}

/// What deltas are computed with.
pub(crate) struct Upkeep<'a> {
    /// The state after the commit.
    pub after: &'a Transaction,
    /// The state before it.
    pub before: &'a Transaction,
    pub waiter: &'a dyn Waiter,
    pub eval: &'a EvalContext<'a>,
    /// Counts rows that deltas touch.
    pub touched: &'a Cell<u64>,
}

/// Bytes that the deltas of one commit may take in sorts and hash tables.
const UPKEEP_BYTES: usize = 64 << 20;

/// The rows of a plan of a delta, opened over `base`, where `changed` are the changed rows.
///
/// # Errors
/// Evaluation and storage.
pub(crate) fn upkeep_rows(
    upkeep: &Upkeep<'_>,
    node: &Node,
    changed: Vec<Row>,
    base: &[Value],
) -> SqlResult<Vec<Row>> {
    let reading = Reading {
        txn: upkeep.after,
        before: Some(upkeep.before),
        virtual_tables: &NoTables,
        waiter: upkeep.waiter,
        eval: upkeep.eval,
        memory_limit: UPKEEP_BYTES,
        spill: None,
    };
    let run = Run::new(&reading, &[], ReadMode::Plain, None);
    run.ctes.borrow_mut().insert(CHANGED, Rc::new(changed));
    let whole = Making {
        measured: false,
        demand: Demand::All,
    };
    let mut source = build(node, whole);
    source.open(&run, base)?;
    let mut rows = Vec::new();
    while let Some(row) = source.next(&run)? {
        rows.push(row);
    }
    upkeep.touched.set(upkeep.touched.get() + run.touched());
    Ok(rows)
}
