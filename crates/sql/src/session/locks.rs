//! LOCK TABLES and UNLOCK TABLES.

use super::session::Session;
use crate::error::{SqlError, SqlResult};
use crate::parser::TableLock;

impl Session {
    pub(super) fn lock_tables(&mut self, _locks: &[TableLock]) -> SqlResult<()> {
        Err(SqlError::not_supported("LOCK TABLES"))
    }

    /// Nothing is ever locked, so there is nothing to undo; dumps send it.
    pub(super) fn unlock_tables(&mut self) -> SqlResult<()> {
        Ok(())
    }
}
