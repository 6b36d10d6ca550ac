//! What every append does: log, then memtable, then counters.

use std::sync::atomic::Ordering;

use super::RocksEngine;
use super::writer::Writer;
use crate::engine::Appended;
use crate::error::StorageError;
use crate::log::{LogPosition, Unsynced};
use crate::model::{Version, WriteBatch};

/// A batch that is in the log and not in a memtable.
pub(super) struct Logged {
    pub(super) end: LogPosition,
    pub(super) unsynced: Unsynced,
    /// Of keys and values.
    pub(super) bytes: usize,
}

impl RocksEngine {
    /// Logs a batch, once there is a memtable for it.
    pub(super) fn log(
        &self,
        writer: &mut Writer,
        batch: &WriteBatch,
    ) -> Result<Logged, StorageError> {
        if writer.filling.is_full(&self.store.layers().active) {
            self.freeze(writer)?;
        }
        // Before anything is written: a batch out of order must not reach the log.
        batch.assert_newer_than(Version(self.latest.load(Ordering::Acquire)));
        let end = writer.prepare(batch)?;
        let unsynced = writer.append()?;
        assert_eq!(
            writer.end(),
            Some(end),
            "a batch ends where room was reserved for it"
        );
        let bytes = size_bytes(batch);
        Ok(Logged {
            end,
            unsynced,
            bytes,
        })
    }

    /// A memtable has the batch, whose last version is `latest`.
    pub(super) fn applied(&self, writer: &mut Writer, logged: Logged, latest: Version) -> Appended {
        writer.filling.wrote(latest, logged.end);
        assert_eq!(
            writer.filling.progress().latest,
            latest,
            "a flush says of its file what readers were told"
        );
        let before = self.latest.swap(latest.0, Ordering::AcqRel);
        assert!(before < latest.0, "the newest version only grows");
        let written = &self.counters.written_bytes;
        written.fetch_add(logged.bytes as u64, Ordering::Relaxed);
        self.store.readers.written(logged.bytes);
        // The batch is written whatever this meets: the next segment asks again.
        if let Err(error) = writer.retire(&self.store.db, logged.end) {
            tracing::warn!(%error, "the commit log keeps files that may be done with");
        }
        let unsynced = Some(logged.unsynced);
        Appended { unsynced }
    }
}

/// Bytes of keys and values.
fn size_bytes(batch: &WriteBatch) -> usize {
    let value_bytes = |value: &Option<Vec<u8>>| value.as_ref().map_or(0, Vec::len);
    let sizes = batch.writes.iter();
    sizes
        .map(|(_, key, value)| key.len() + value_bytes(value))
        .sum()
}
