//! Tables that are not stored: computed ones, derived ones, common table expressions.

use std::collections::HashSet;
use std::ops::Range;
use std::rc::Rc;
use std::vec::IntoIter;

use super::memory::row_bytes;
use super::operator::{BoxedOperator, Operator, Run};
use super::project::{collect, row_key};
use crate::error::{SqlError, SqlResult};
use crate::expr::{EvalContext, assign};
use crate::plan::Expr;
use crate::plan::physical::{CteScan, Derived, Recursive, Virtual};
use crate::types::{Row, Value};

/// Rounds a recursive CTE may take where `cte_max_recursion_depth` is not known.
const ROUNDS_MAX: u64 = 1000;

/// Rounds a recursive CTE may take: `cte_max_recursion_depth`.
fn rounds_max(run: &Run<'_>) -> SqlResult<u64> {
    let session = run.context.eval.session;
    Ok(
        match session.system_variable("cte_max_recursion_depth", false)? {
            Value::Int(rounds) => u64::try_from(rounds).unwrap_or(0),
            Value::UInt(rounds) => rounds,
            _ => ROUNDS_MAX,
        },
    )
}

/// Puts `values` into `slots` of `base`; the row if the conditions hold.
fn place(
    run: &Run<'_>,
    base: &[Value],
    slots: &Range<usize>,
    values: impl IntoIterator<Item = Value>,
    predicates: &[Expr],
) -> SqlResult<Option<Row>> {
    let mut row = base.to_vec();
    for (slot, value) in slots.clone().zip(values) {
        row[slot] = value;
    }
    Ok(run.holds(predicates, &row)?.then_some(row))
}

/// Rows in memory, shown over a base row.
#[derive(Default)]
struct Shown {
    base: Row,
    rows: Rc<Vec<Row>>,
    at: usize,
}

impl Shown {
    fn open(&mut self, base: &[Value], rows: Rc<Vec<Row>>) {
        self.base = base.to_vec();
        self.rows = rows;
        self.at = 0;
    }

    fn next(
        &mut self,
        run: &Run<'_>,
        slots: &Range<usize>,
        predicates: &[Expr],
    ) -> SqlResult<Option<Row>> {
        while let Some(values) = self.rows.get(self.at) {
            self.at += 1;
            run.tick()?;
            let values = values.iter().cloned();
            if let Some(row) = place(run, &self.base, slots, values, predicates)? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}

/// A computed table.
pub(super) struct VirtualOp<'p> {
    source: &'p Virtual,
    rows: Option<Rc<Vec<Row>>>,
    shown: Shown,
}

impl<'p> VirtualOp<'p> {
    pub fn new(source: &'p Virtual) -> Self {
        Self {
            source,
            rows: None,
            shown: Shown::default(),
        }
    }
}

impl Operator for VirtualOp<'_> {
    fn open(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<()> {
        let rows = if let Some(rows) = &self.rows {
            Rc::clone(rows)
        } else {
            let (table, tables) = (&self.source.table, run.context.virtual_tables);
            Rc::new(tables.rows(&table.database, &table.name)?)
        };
        self.rows = Some(Rc::clone(&rows));
        self.shown.open(base, rows);
        Ok(())
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        let source = self.source;
        self.shown.next(run, &source.slots, &source.predicates)
    }
}

/// A subquery in FROM.
pub(super) struct DerivedOp<'p> {
    source: &'p Derived,
    input: BoxedOperator<'p>,
    base: Row,
    /// The rows change between openings: they come from a recursive CTE.
    changing: bool,
    /// All rows, when they are asked for again.
    kept: Option<Rc<Vec<Row>>>,
    at: usize,
}

impl<'p> DerivedOp<'p> {
    pub fn new(source: &'p Derived, input: BoxedOperator<'p>) -> Self {
        Self {
            source,
            input,
            base: Vec::new(),
            changing: crate::plan::walk::reads_cte(&source.node, None),
            kept: None,
            at: 0,
        }
    }

    fn next_values(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        match &self.kept {
            Some(rows) => {
                let row = rows.get(self.at).cloned();
                self.at += 1;
                Ok(row)
            }
            None => self.input.next(run),
        }
    }
}

impl Operator for DerivedOp<'_> {
    fn open(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<()> {
        self.base = base.to_vec();
        self.at = 0;
        if self.kept.is_some() && !self.changing {
            return Ok(());
        }
        self.input.open(run, &[])?;
        if self.source.keep {
            let rows = collect(run, &mut self.input)?;
            self.kept = Some(Rc::new(rows.collect()));
        }
        Ok(())
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        while let Some(values) = self.next_values(run)? {
            run.tick()?;
            let (slots, predicates) = (&self.source.slots, &self.source.predicates);
            if let Some(row) = place(run, &self.base, slots, values, predicates)? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}

/// The rows a recursive CTE shows to its own step.
pub(super) struct CteOp<'p> {
    source: &'p CteScan,
    shown: Shown,
}

impl<'p> CteOp<'p> {
    pub fn new(source: &'p CteScan) -> Self {
        Self {
            source,
            shown: Shown::default(),
        }
    }
}

impl Operator for CteOp<'_> {
    fn open(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<()> {
        let Some(rows) = run.ctes.borrow().get(&self.source.id).cloned() else {
            return Err(SqlError::not_supported(
                "a recursive common table expression inside a subquery of itself",
            ));
        };
        self.shown.open(base, rows);
        Ok(())
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        let source = self.source;
        self.shown.next(run, &source.slots, &source.predicates)
    }
}

/// `WITH RECURSIVE`: rounds of the step until one adds nothing.
pub(super) struct RecursiveOp<'p> {
    recursive: &'p Recursive,
    anchor: BoxedOperator<'p>,
    step: BoxedOperator<'p>,
    rows: IntoIter<Row>,
}

impl<'p> RecursiveOp<'p> {
    pub fn new(
        recursive: &'p Recursive,
        anchor: BoxedOperator<'p>,
        step: BoxedOperator<'p>,
    ) -> Self {
        Self {
            recursive,
            anchor,
            step,
            rows: Vec::new().into_iter(),
        }
    }

    /// A row of the step as one of the columns: what does not fit is an error in strict mode, as
    /// if it were written.
    fn stored(&self, store: &EvalContext<'_>, row: Row) -> SqlResult<Row> {
        let columns = &self.recursive.columns;
        row.into_iter()
            .zip(columns.iter().zip(&self.recursive.step_types))
            .map(|(value, (column, from))| {
                assign(store, value.stored_from(from, &column.ty), column, 1)
            })
            .collect()
    }

    fn new_rows(
        &self,
        run: &Run<'_>,
        rows: IntoIter<Row>,
        seen: &mut HashSet<Vec<u8>>,
    ) -> SqlResult<Vec<Row>> {
        if !self.recursive.distinct {
            return Ok(rows.collect());
        }
        let mut fresh = Vec::new();
        for row in rows {
            let mut key = Vec::new();
            row_key(&row, &self.recursive.collations, &mut key);
            run.memory.charge(key.len() + 48)?;
            if seen.insert(key) {
                fresh.push(row);
            }
        }
        Ok(fresh)
    }
}

impl Operator for RecursiveOp<'_> {
    fn open(&mut self, run: &Run<'_>, _base: &[Value]) -> SqlResult<()> {
        let mut seen = HashSet::new();
        self.anchor.open(run, &[])?;
        let first = collect(run, &mut self.anchor)?;
        let mut latest = self.new_rows(run, first, &mut seen)?;
        let mut all: Vec<Row> = Vec::new();
        let mut rounds = 0u64;
        let most = rounds_max(run)?;
        let eval = run.context.eval;
        let store = eval.writing(eval.sql_mode.strict);
        while !latest.is_empty() {
            rounds += 1;
            if rounds > most.saturating_add(1) {
                return Err(SqlError::new(
                    3636,
                    "HY000",
                    format!(
                        "Recursive query aborted after {rounds} iterations. Try increasing \
                         @@cte_max_recursion_depth to a larger value."
                    ),
                ));
            }
            run.memory.charge(latest.iter().map(row_bytes).sum())?;
            all.extend(latest.iter().cloned());
            let shown = Rc::new(latest);
            run.ctes.borrow_mut().insert(self.recursive.id, shown);
            self.step.open(run, &[])?;
            let made = collect(run, &mut self.step)?
                .map(|row| self.stored(&store, row))
                .collect::<SqlResult<Vec<Row>>>()?;
            latest = self.new_rows(run, made.into_iter(), &mut seen)?;
        }
        run.ctes.borrow_mut().remove(&self.recursive.id);
        self.rows = all.into_iter();
        Ok(())
    }

    fn next(&mut self, _run: &Run<'_>) -> SqlResult<Option<Row>> {
        Ok(self.rows.next())
    }
}
