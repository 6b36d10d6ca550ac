//! What dropped tables and indexes leave behind: ranges noted in the transaction that drops, deleted
//! in the background. No statement waits for it, and it locks nothing that a statement needs: keys
//! of a range that is noted are reached through no definition, and a transaction that began under
//! an older one does not commit.

use manxdb_storage::{Direction, Durability, KeyRange};
use manxdb_txn::ReadMode;

use super::CatalogStore;
use super::record;
use super::store::CHUNK;
use crate::error::SqlResult;

impl CatalogStore {
    /// Deletes data of dropped tables and indexes, at most `chunks` × 1000 keys; whether more is
    /// left. Safe to call at any time, and again after a crash.
    ///
    /// # Errors
    /// Storage.
    pub fn collect_garbage(&self, chunks: usize) -> SqlResult<bool> {
        for _ in 0..chunks {
            if !self.collect_chunk()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn collect_chunk(&self) -> SqlResult<bool> {
        self.retrying(self.waiter(), Durability::Async, &mut |txn| {
            let notes = KeyRange::prefix(record::GARBAGE);
            let page = txn.scan(&notes, Direction::Forward, 1, ReadMode::Plain)?;
            let Some((note, _)) = page.first() else {
                return Ok(false);
            };
            let prefix = record::garbage_prefix(note)?;
            let range = KeyRange::prefix(prefix);
            let dead = txn.scan(&range, Direction::Forward, CHUNK, ReadMode::Plain)?;
            let is_last = dead.len() < CHUNK;
            for (key, _) in dead {
                txn.delete(key)?;
            }
            if is_last {
                txn.delete(note.clone())?;
            }
            Ok(true)
        })
    }
}
