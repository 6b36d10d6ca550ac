//! Whether the store takes writes: asked by the process when statements were refused.

use manxdb_txn::Transaction;

use super::instance::Instance;
use crate::catalog::PROBE;
use crate::error::SqlResult;

/// Errors of a store that took no write: disk full, read-only, commit failed, not in time.
const REFUSED: [u16; 4] = [1021, 1290, 1180, 1030];

impl Instance {
    /// Statements so far that the store did not write for.
    #[must_use]
    pub fn refused_writes(&self) -> u64 {
        self.metrics.errors_of(&REFUSED)
    }

    /// Commits a record of no meaning, as durably as any other.
    ///
    /// # Errors
    /// Why the store takes no writes.
    pub fn try_write(&self) -> SqlResult<()> {
        self.in_transaction(|txn: &Transaction| Ok(txn.put(PROBE.to_vec(), Vec::new())?))
    }
}
