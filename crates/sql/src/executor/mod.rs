//! Runs plans: pull operators over one transaction.
//!
//! [`operator::build`] makes an operator a plan node; rows are pulled through them one at a
//! time. Below a FROM rows are wide (see [`crate::plan::physical`]): an operator is opened
//! over a base row and fills its own slots of it.

mod accumulate;
mod aggregate;
mod ahead;
mod analyze;
mod bounds;
mod collected;
mod distinct;
mod fewest;
mod hash_join;
mod join;
mod json_table;
mod lateral;
mod memory;
mod operator;
mod page;
mod passing;
mod prefixes;
mod prepared;
mod project;
mod scan;
mod set_operation;
mod sort;
mod source;
mod spill;
mod subquery;
mod sweep;
mod used;
mod view;
mod window;

#[cfg(test)]
mod tests;

pub(crate) use accumulate::exact_result;
pub use analyze::{Analysis, NodeFigures};
pub(crate) use collected::collect;
pub(crate) use memory::{row_bytes, value_bytes};
pub use spill::{SpillFile, SpillSpace};
pub(crate) use spill::{decode_kept, encode_kept};
pub use subquery::SubqueryRunner;
pub(crate) use view::{Upkeep, upkeep_rows};

use manxdb_txn::{ReadMode, Transaction, Waiter};

use crate::catalog::VirtualTables;
use crate::error::SqlResult;
use crate::expr::EvalContext;
use crate::plan::Plan;
use crate::types::{Row, Value};
use operator::{Demand, Making, Run, build};

/// What reading depends on; one per statement execution.
pub struct Reading<'a> {
    /// The transaction, with its snapshot.
    pub txn: &'a Transaction,
    /// The state before a commit whose deltas are computed.
    pub(crate) before: Option<&'a Transaction>,
    /// Computed tables.
    pub virtual_tables: &'a dyn VirtualTables,
    /// Kill and time-out checks, made every few rows.
    pub waiter: &'a dyn Waiter,
    /// Parameters, time, variables, warnings. Its `subqueries` is a
    /// [`SubqueryRunner`].
    pub eval: &'a EvalContext<'a>,
    /// Bytes one statement may hold in sorts, hash tables and materialised results.
    pub memory_limit: usize,
    /// Where sorts and joins put what is more; `None`: nowhere.
    pub spill: Option<&'a dyn SpillSpace>,
}

/// Runs `plan`; `outer` are rows of enclosing queries, innermost first. Stops early when `each`
/// returns false. `mode` overrides the read mode of the plan's base tables for UPDATE and DELETE. How
/// many rows its operators have touched.
///
/// # Errors
/// Evaluation, storage, interruption; 1038 past the memory limit.
pub fn run(
    reading: &Reading<'_>,
    plan: &Plan,
    outer: &[&[Value]],
    mode: Option<ReadMode>,
    each: &mut dyn FnMut(Row) -> SqlResult<bool>,
) -> SqlResult<u64> {
    let run = Run::new(reading, outer, mode.unwrap_or(plan.read_mode), None);
    pull(&run, plan, Demand::All, each)?;
    Ok(run.touched())
}

/// As [`run`], measuring every operator; for EXPLAIN ANALYZE. Rows are dropped.
///
/// # Errors
/// As [`run`].
pub fn run_analyzed(reading: &Reading<'_>, plan: &Plan) -> SqlResult<Analysis> {
    let analysis = Analysis::default();
    let run = Run::new(reading, &[], plan.read_mode, Some(&analysis));
    pull(&run, plan, Demand::All, &mut |_| Ok(true))?;
    Ok(analysis)
}

fn pull(
    run: &Run<'_>,
    plan: &Plan,
    demand: Demand,
    each: &mut dyn FnMut(Row) -> SqlResult<bool>,
) -> SqlResult<()> {
    let measured = run.analysis.is_some();
    let mut root = build(&plan.root, Making { measured, demand });
    root.open(run, &[])?;
    while let Some(row) = root.next(run)? {
        if !each(row)? {
            break;
        }
    }
    Ok(())
}
