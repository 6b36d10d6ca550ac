//! Whether the store serves reads, and takes writes: asked by the process, the latter when statements
//! were refused.

use manxdb_txn::{ReadMode, Transaction};

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

    /// Reads a record of no meaning, as any statement reads rows.
    ///
    /// # Errors
    /// Why no statement is served.
    pub fn try_read(&self) -> SqlResult<()> {
        self.in_transaction(|txn: &Transaction| {
            txn.get(PROBE, ReadMode::Plain)?;
            Ok(())
        })
    }

    /// Commits a record of no meaning, as durably as any other.
    ///
    /// # Errors
    /// Why the store takes no writes.
    pub fn try_write(&self) -> SqlResult<()> {
        self.in_transaction(|txn: &Transaction| Ok(txn.put(PROBE.to_vec(), Vec::new())?))
    }
}
