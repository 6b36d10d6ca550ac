//! What a statement runs with.

use manxdb_txn::{Transaction, Waiter};

use super::owners::OwnerNotes;
use crate::catalog::{Catalog, Sequences, VirtualTables};
use crate::executor::{Reading, SpillSpace};
use crate::expr::EvalContext;

/// What running a statement depends on; one per statement execution.
pub struct ExecContext<'a> {
    /// The transaction, with its snapshot.
    pub txn: &'a Transaction,
    /// The catalog snapshot the plan was made under.
    pub catalog: &'a Catalog,
    /// Computed tables.
    pub virtual_tables: &'a dyn VirtualTables,
    /// Kill and time-out checks, made every few rows.
    pub waiter: &'a dyn Waiter,
    /// Parameters, time, variables, warnings. Its `subqueries` is a
    /// [`crate::executor::SubqueryRunner`].
    pub eval: &'a EvalContext<'a>,
    /// Bytes one statement may hold in sorts, hash tables and materialised results.
    pub memory_limit: usize,
    /// Where sorts and joins put what is more; `None`: nowhere.
    pub spill: Option<&'a dyn SpillSpace>,
    /// `AUTO_INCREMENT` counters and hidden row ids.
    pub sequences: &'a Sequences,
    /// `foreign_key_checks`.
    pub foreign_key_checks: bool,
    /// `unique_checks`; unique keys are checked in any case.
    pub unique_checks: bool,
    /// What the transaction does to the owners of rows; `None` where no table has owners.
    pub(crate) owners: Option<&'a OwnerNotes>,
}

impl ExecContext<'_> {
    /// The part of it that reading needs.
    pub(crate) fn reading(&self) -> Reading<'_> {
        Reading {
            txn: self.txn,
            before: None,
            virtual_tables: self.virtual_tables,
            waiter: self.waiter,
            eval: self.eval,
            memory_limit: self.memory_limit,
            spill: self.spill,
        }
    }
}
