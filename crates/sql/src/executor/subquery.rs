//! Subqueries of expressions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use manxdb_txn::{Transaction, Waiter};

use super::memory::{Memory, row_bytes};
use super::operator::{Demand, Reading, Run};
use super::pull;
use crate::binder::VirtualTables;
use crate::catalog::Catalog;
use crate::error::SqlResult;
use crate::expr::{EvalContext, Subqueries};
use crate::planner::Plan;
use crate::types::{Row, Value};

/// Runs the subqueries of one statement execution: what [`EvalContext::subqueries`] points to.
/// Made before the [`EvalContext`], which it is handed back on every call.
pub struct SubqueryRunner<'a> {
    txn: &'a Transaction,
    virtual_tables: &'a dyn VirtualTables,
    waiter: &'a dyn Waiter,
    memory_limit: usize,
    /// Rows of uncorrelated subqueries, by the address of their plan, which outlives the run.
    answers: RefCell<HashMap<usize, Answer>>,
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
        _catalog: &'a Catalog,
        virtual_tables: &'a dyn VirtualTables,
        waiter: &'a dyn Waiter,
        memory_limit: usize,
    ) -> Self {
        Self {
            txn,
            virtual_tables,
            waiter,
            memory_limit,
            answers: RefCell::default(),
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
            virtual_tables: self.virtual_tables,
            waiter: self.waiter,
            eval,
            memory_limit: self.memory_limit,
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
        let address = std::ptr::from_ref(plan).addr();
        self.answers.borrow_mut().insert(address, answer);
        Ok(())
    }
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
        let address = std::ptr::from_ref(plan).addr();
        let known = self.answers.borrow().get(&address).cloned();
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
        // This reader wants more than the last one: run again, past what it has seen.
        let mut skip = answer.rows.len();
        self.learn(eval, plan, &mut |row| {
            if skip > 0 {
                skip -= 1;
                return Ok(true);
            }
            each(row)
        })
    }
}
