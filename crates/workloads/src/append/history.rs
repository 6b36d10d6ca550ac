//! What clients saw, as the checker judges it.

use manxdb_checker::append::{Outcome, Transaction};
use manxdb_txn::procedure::{ProcedureError, Slot, Values};

use super::procedure::{observe, sent};

/// A call as its client saw it.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// For messages of the checker.
    pub name: u64,
    /// The client.
    pub session: u64,
    /// Its arguments.
    pub args: &'a [u8],
    /// When it was made.
    pub asked: u64,
    /// When it ended, if it did.
    pub answered: Option<u64>,
    /// What its pieces gave; none: it was refused, or did not end.
    pub given: Option<&'a [(u32, Vec<u8>)]>,
}

/// The call as a transaction of a history.
///
/// # Errors
/// Arguments, or values given, that are not this workload's.
pub fn transaction(seen: Seen<'_>) -> Result<Transaction, ProcedureError> {
    let (outcome, operations) = match (seen.answered, seen.given) {
        (Some(_), Some(given)) => {
            let given = given.iter().cloned();
            let values: Values = given.map(|(slot, value)| (Slot(slot), value)).collect();
            (Outcome::Ok, observe(seen.args, &values)?)
        }
        (Some(_), None) => (Outcome::Failed, sent(seen.args)?),
        (None, _) => (Outcome::Unknown, sent(seen.args)?),
    };
    Ok(Transaction {
        name: seen.name,
        session: seen.session,
        invoked: seen.asked,
        completed: seen.answered.unwrap_or(u64::MAX),
        outcome,
        operations,
    })
}
