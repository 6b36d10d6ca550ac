//! Subqueries of expressions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use manxdb_txn::{Transaction, Waiter};

use super::memory::{Memory, row_bytes};
use super::operator::{Demand, Run};
use super::spill::SpillSpace;
use super::{Reading, pull};
use crate::catalog::VirtualTables;
use crate::error::{SqlError, SqlResult};
use crate::expr::{EvalContext, RowSet, Subqueries};
use crate::plan::Plan;
use crate::types::{Collation, Row, Value};

/// A reader that was satisfied after so many rows leaves the subquery incomplete only for now:
/// looking through them for every row costs more than reading the rest once.
const LEFT_MAX: usize = 32;

/// Runs the subqueries of one statement execution: what [`EvalContext::subqueries`] points to.
/// Made before the [`EvalContext`], which it is handed back on every call.
pub struct SubqueryRunner<'a> {
    txn: &'a Transaction,
    virtual_tables: &'a dyn VirtualTables,
    waiter: &'a dyn Waiter,
    memory_limit: usize,
    /// Where sorts and joins of subqueries put what is more.
    spill: Option<&'a dyn SpillSpace>,
    /// Rows of uncorrelated subqueries, by the address of their plan, which outlives the run.
    answers: RefCell<HashMap<usize, Answer>>,
    /// The same as sets, for IN.
    sets: RefCell<HashMap<usize, Rc<RowSet>>>,
    memory: Memory,
}

/// What is known of an uncorrelated subquery.
#[derive(Clone)]
struct Answer {
    rows: Rc<Vec<Row>>,
    /// These are all rows; otherwise the reader stopped after them.
    complete: bool,
}

impl<'a> SubqueryRunner<'a> {
    /// One per statement execution: it remembers the rows of uncorrelated subqueries.
    #[must_use]
    pub fn new(
        txn: &'a Transaction,
        virtual_tables: &'a dyn VirtualTables,
        waiter: &'a dyn Waiter,
        memory_limit: usize,
        spill: Option<&'a dyn SpillSpace>,
    ) -> Self {
        Self {
            txn,
            virtual_tables,
            waiter,
            memory_limit,
            spill,
            answers: RefCell::default(),
            sets: RefCell::default(),
            memory: Memory::new(memory_limit),
        }
    }

    fn execute(
        &self,
        eval: &EvalContext<'_>,
        plan: &Plan,
        outer: &[&[Value]],
        each: &mut dyn FnMut(Row) -> SqlResult<bool>,
    ) -> SqlResult<()> {
        crate::stack::check(crate::stack::RUNNING_BYTES)?;
        let reading = Reading {
            txn: self.txn,
            before: None,
            virtual_tables: self.virtual_tables,
            waiter: self.waiter,
            eval,
            memory_limit: self.memory_limit,
            spill: self.spill,
        };
        let run = Run::new(&reading, outer, plan.read_mode, None);
        // EXISTS, IN and scalar subqueries stop once they know.
        pull(&run, plan, Demand::Some, each)
    }

    /// Runs and remembers.
    fn learn(
        &self,
        eval: &EvalContext<'_>,
        plan: &Plan,
        each: &mut dyn FnMut(Row) -> SqlResult<bool>,
    ) -> SqlResult<()> {
        let mut rows = Vec::new();
        let mut complete = true;
        self.execute(eval, plan, &[], &mut |row| {
            self.memory.charge(row_bytes(&row))?;
            rows.push(row.clone());
            complete = each(row)?;
            Ok(complete)
        })?;
        let answer = Answer {
            rows: Rc::new(rows),
            complete,
        };
        self.answers.borrow_mut().insert(address(plan), answer);
        Ok(())
    }

    /// Runs again, to the end, what was left before it.
    fn complete(
        &self,
        eval: &EvalContext<'_>,
        plan: &Plan,
        known: &Answer,
    ) -> SqlResult<Rc<Vec<Row>>> {
        self.memory.release(known.rows.iter().map(row_bytes).sum());
        self.learn(eval, plan, &mut |_| Ok(true))?;
        let answers = self.answers.borrow();
        let answer = answers.get(&address(plan));
        let answer = answer.ok_or_else(|| SqlError::internal("a subquery forgot its rows"))?;
        Ok(Rc::clone(&answer.rows))
    }
}

/// What tells plans apart: they outlive the run.
fn address(plan: &Plan) -> usize {
    std::ptr::from_ref(plan).addr()
}

impl Subqueries for SubqueryRunner<'_> {
    fn run(
        &self,
        eval: &EvalContext<'_>,
        plan: &Plan,
        outer: &[&[Value]],
        each: &mut dyn FnMut(Row) -> SqlResult<bool>,
    ) -> SqlResult<()> {
        if plan.correlated {
            return self.execute(eval, plan, outer, each);
        }
        let known = self.answers.borrow().get(&address(plan)).cloned();
        let Some(answer) = known else {
            return self.learn(eval, plan, each);
        };
        for row in answer.rows.iter() {
            if !each(row.clone())? {
                return Ok(());
            }
        }
        if answer.complete {
            return Ok(());
        }
        // This reader wants more than the one before, so the next may want all.
        let rows = self.complete(eval, plan, &answer)?;
        for row in rows.iter().skip(answer.rows.len()) {
            if !each(row.clone())? {
                break;
            }
        }
        Ok(())
    }

    fn row_set(
        &self,
        eval: &EvalContext<'_>,
        plan: &Plan,
        collations: &[Collation],
    ) -> SqlResult<Option<Rc<RowSet>>> {
        if let Some(set) = self.sets.borrow().get(&address(plan)) {
            return Ok(Some(Rc::clone(set)));
        }
        let known = self.answers.borrow().get(&address(plan)).cloned();
        let rows = match known {
            Some(answer) if answer.complete => answer.rows,
            Some(answer) if answer.rows.len() >= LEFT_MAX => self.complete(eval, plan, &answer)?,
            _ => return Ok(None),
        };
        let set = Rc::new(RowSet::new(rows, collations));
        self.memory.charge(set.bytes())?;
        self.sets
            .borrow_mut()
            .insert(address(plan), Rc::clone(&set));
        Ok(Some(set))
    }
}
