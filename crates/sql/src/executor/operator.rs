//! The operator interface and how operators are made from plan nodes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use manxdb_txn::{ReadMode, Transaction};

use super::Reading;
use super::aggregate::AggregateOp;
use super::analyze::{Analysis, Measured};
use super::distinct::Distinct;
use super::hash_join::HashJoin;
use super::join::LoopJoin;
use super::json_table::JsonTableOp;
use super::lateral::LateralOp;
use super::memory::Memory;
use super::project::{Cut, Filter, From, LimitOp, Project, Single, ValuesOp};
use super::scan::ScanOp;
use super::set_operation::SetOperationOp;
use super::sort::Sort;
use super::source::{CteOp, DerivedOp, RecursiveOp, VirtualOp};
use super::view::{Before, ViewOp, ViewRowsOp};
use super::window::WindowOp;
use crate::error::SqlResult;
use crate::plan::Expr;
use crate::plan::physical::{JoinKind, Node};
use crate::types::{Row, Value};

/// Rows between two looks at KILL and time-outs.
const CHECK_EVERY: u64 = 256;

/// One run of one plan.
pub(super) struct Run<'a> {
    pub context: &'a Reading<'a>,
    /// Rows of enclosing queries, innermost first.
    pub outer: &'a [&'a [Value]],
    pub mode: ReadMode,
    pub memory: Memory,
    /// Rows recursive CTEs show to their own step.
    pub ctes: RefCell<BTreeMap<usize, Rc<Vec<Row>>>>,
    /// What a materialized view holds for this run.
    pub view_rows: RefCell<Vec<Row>>,
    pub analysis: Option<&'a Analysis>,
    /// What is read now is read as before a commit: see [`Node::Before`].
    is_before: Cell<bool>,
    touched: Cell<u64>,
}

impl<'a> Run<'a> {
    pub fn new(
        context: &'a Reading<'a>,
        outer: &'a [&'a [Value]],
        mode: ReadMode,
        analysis: Option<&'a Analysis>,
    ) -> Self {
        Self {
            context,
            outer,
            mode,
            memory: Memory::new(context.memory_limit),
            ctes: RefCell::default(),
            view_rows: RefCell::default(),
            analysis,
            is_before: Cell::new(false),
            touched: Cell::new(0),
        }
    }

    /// Where stored tables are read.
    pub fn txn(&self) -> &'a Transaction {
        match self.context.before {
            Some(before) if self.is_before.get() => before,
            _ => self.context.txn,
        }
    }

    /// Runs `work`, whose reads see the state before the commit.
    pub fn before<T>(&self, work: impl FnOnce() -> T) -> T {
        let outside = self.is_before.replace(true);
        let done = work();
        self.is_before.set(outside);
        done
    }

    /// To be called for every row touched.
    pub fn tick(&self) -> SqlResult<()> {
        let touched = self.touched.get() + 1;
        self.touched.set(touched);
        if touched.is_multiple_of(CHECK_EVERY) {
            self.context.waiter.check()?;
        }
        Ok(())
    }

    /// Rows that were touched so far, by all operators.
    pub fn touched(&self) -> u64 {
        self.touched.get()
    }

    /// Whether reading before a row is asked for is harmless, when this many of them will be: a
    /// read that locks, or is validated at commit, takes what it must and no more.
    pub fn reads_ahead(&self, demand: Demand) -> bool {
        let is_wanted = demand == Demand::All || !self.txn().records(self.mode);
        is_wanted && !self.mode.locks()
    }

    pub fn eval(&self, expr: &Expr, row: &[Value]) -> SqlResult<Value> {
        expr.eval(self.context.eval, row, self.outer)
    }

    /// Whether all conditions are true for `row`.
    pub fn holds(&self, predicates: &[Expr], row: &[Value]) -> SqlResult<bool> {
        for predicate in predicates {
            if predicate.eval_bool(self.context.eval, row, self.outer)? != Some(true) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A source of rows that can be started over.
pub(super) trait Operator {
    /// Starts, or starts over, on `base`.
    fn open(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<()>;
    /// The next row.
    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>>;
    /// Tells which rows it will be opened over next, in this order, so that it may read what they
    /// need together; what it heard before is void.
    fn prepare(&mut self, _run: &Run<'_>, _bases: &[Row]) -> SqlResult<()> {
        Ok(())
    }
}

/// An operator over a plan node.
pub(super) type BoxedOperator<'p> = Box<dyn Operator + 'p>;

/// How many of its rows an operator will be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Demand {
    /// Perhaps not all.
    Some,
    /// All, unless something fails.
    All,
}

/// How operators are made.
#[derive(Clone, Copy)]
pub(super) struct Making {
    /// Each is to measure itself.
    pub measured: bool,
    pub demand: Demand,
}

impl Making {
    fn with(self, demand: Demand) -> Self {
        Self { demand, ..self }
    }

    /// For the right side of a join, which is asked anew for every left row.
    fn right(self, kind: JoinKind) -> Self {
        match kind {
            JoinKind::Inner | JoinKind::Left => self,
            JoinKind::Semi | JoinKind::Anti => self.with(Demand::Some),
        }
    }
}

/// Makes the operators of a plan.
pub(super) fn build(node: &Node, making: Making) -> BoxedOperator<'_> {
    let operator = build_plain(node, making);
    if making.measured {
        Box::new(Measured::new(node, operator))
    } else {
        operator
    }
}

fn build_plain<'p>(node: &'p Node, making: Making) -> BoxedOperator<'p> {
    let input = |node: &'p Node| build(node, making);
    let whole = |node: &'p Node| build(node, making.with(Demand::All));
    match node {
        Node::Single => Box::new(Single::default()),
        Node::Values(rows) => Box::new(ValuesOp::new(rows)),
        Node::From {
            width, input: from, ..
        } => Box::new(From::new(*width, input(from))),
        Node::Scan(scan) => Box::new(ScanOp::new(scan, making.demand)),
        Node::Virtual(source) => Box::new(VirtualOp::new(source)),
        Node::Derived(source) => Box::new(DerivedOp::new(source, input(&source.node))),
        Node::CteScan(source) => Box::new(CteOp::new(source)),
        Node::Lateral(source) => Box::new(LateralOp::new(source)),
        Node::JsonTable(table) => Box::new(JsonTableOp::new(table)),
        Node::Filter {
            input: from,
            predicates,
        } => Box::new(Filter::new(input(from), predicates)),
        Node::Join(join) => {
            let left = input(&join.left);
            match &join.hash {
                None => {
                    let right = build(&join.right, making.right(join.kind));
                    Box::new(LoopJoin::new(join, left, right, making.demand))
                }
                Some(keys) => Box::new(HashJoin::new(join, keys, left, whole(&join.right))),
            }
        }
        Node::Aggregate(aggregate) => {
            Box::new(AggregateOp::new(aggregate, whole(&aggregate.input)))
        }
        Node::Window(window) => Box::new(WindowOp::new(window, whole(&window.input))),
        Node::Project {
            input: from,
            expressions,
        } => Box::new(Project::new(input(from), expressions)),
        Node::Distinct {
            input: from,
            collations,
            keeps_order,
        } => Box::new(Distinct::new(input(from), collations, *keeps_order)),
        Node::Sort {
            input: from,
            keys,
            limit,
        } => Box::new(Sort::new(whole(from), keys, limit.as_ref())),
        Node::Limit { input: from, limit } => {
            let some = build(from, making.with(Demand::Some));
            Box::new(LimitOp::new(some, limit))
        }
        Node::Cut { input: from, width } => Box::new(Cut::new(input(from), *width)),
        Node::SetOperation(operation) => {
            let (left, right) = (input(&operation.left), input(&operation.right));
            let rows = Box::new(SetOperationOp::new(operation, left, right));
            if operation.all {
                rows
            } else {
                Box::new(Distinct::new(rows, &operation.collations, false))
            }
        }
        Node::Recursive(recursive) => Box::new(RecursiveOp::new(
            recursive,
            whole(&recursive.anchor),
            whole(&recursive.step),
        )),
        Node::View(lookup) => Box::new(ViewOp::new(lookup, making)),
        Node::ViewRows => Box::new(ViewRowsOp::default()),
        Node::Before(scan) => Box::new(Before(input(scan))),
    }
}
