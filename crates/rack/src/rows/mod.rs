//! Rows in the memory of servers, and one-shot procedures on them: TPC-C, and every other workload
//! whose transactions are [`manxdb_txn::procedure::Procedure`]s.
//!
//! [`RowsPlan`] says where everything is, [`Caller`] runs calls; who loads the rows at the start
//! is a caller as well.

pub(crate) mod bounds;
mod caller;
mod plan;

pub use self::caller::{CallError, CallOutcome, Caller};
pub use self::plan::{RowsPlan, RowsPlanError};
