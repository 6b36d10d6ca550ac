//! What operators did, for EXPLAIN ANALYZE.

use std::cell::RefCell;
use std::collections::HashMap;

use super::operator::{BoxedOperator, Operator, Run};
use crate::error::SqlResult;
use crate::plan::physical::Node;
use crate::types::{Row, Value};

/// Figures of one operator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeFigures {
    /// Rows given, in all loops.
    pub rows: u64,
    /// Times it was started.
    pub loops: u64,
    /// Microseconds until the first row, in all loops, inputs included.
    pub first_micros: i64,
    /// Microseconds in all, inputs included.
    pub micros: i64,
}

/// Figures of all operators of a run.
#[derive(Debug, Default)]
pub struct Analysis {
    figures: RefCell<HashMap<usize, NodeFigures>>,
}

impl Analysis {
    /// The figures of a node of the analysed plan; zero when it never ran.
    #[must_use]
    pub fn of(&self, node: &Node) -> NodeFigures {
        let address = std::ptr::from_ref(node).addr();
        self.figures
            .borrow()
            .get(&address)
            .copied()
            .unwrap_or_default()
    }

    fn note(&self, address: usize, change: impl FnOnce(&mut NodeFigures)) {
        change(self.figures.borrow_mut().entry(address).or_default());
    }
}

/// An operator that is watched.
pub(super) struct Measured<'p> {
    address: usize,
    inner: BoxedOperator<'p>,
    fresh: bool,
}

impl<'p> Measured<'p> {
    pub fn new(node: &Node, inner: BoxedOperator<'p>) -> Self {
        Self {
            address: std::ptr::from_ref(node).addr(),
            inner,
            fresh: false,
        }
    }
}

impl Operator for Measured<'_> {
    fn open(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<()> {
        let clock = run.context.eval.clock;
        let started = clock();
        let done = self.inner.open(run, base);
        let micros = clock() - started;
        self.fresh = true;
        if let Some(analysis) = run.analysis {
            analysis.note(self.address, |figures| {
                figures.loops += 1;
                figures.micros += micros;
                figures.first_micros += micros;
            });
        }
        done
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        let clock = run.context.eval.clock;
        let started = clock();
        let row = self.inner.next(run);
        let micros = clock() - started;
        let first = std::mem::replace(&mut self.fresh, false);
        if let Some(analysis) = run.analysis {
            analysis.note(self.address, |figures| {
                figures.micros += micros;
                if first {
                    figures.first_micros += micros;
                }
                if matches!(row, Ok(Some(_))) {
                    figures.rows += 1;
                }
            });
        }
        row
    }

    fn prepare(&mut self, run: &Run<'_>, bases: &[Row]) -> SqlResult<()> {
        let clock = run.context.eval.clock;
        let started = clock();
        let done = self.inner.prepare(run, bases);
        let micros = clock() - started;
        if let Some(analysis) = run.analysis {
            analysis.note(self.address, |figures| figures.micros += micros);
        }
        done
    }
}
