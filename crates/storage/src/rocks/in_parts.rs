//! A transaction of a million rows: one record of the log, and as many memtables as it fills.
//!
//! ```text
//! log      one record, in pieces, waited for           all or nothing, as of any batch
//! apply    active memtable full: frozen, a new one      what it holds: up to where the record begins
//! flush    parts of the batch in sorted files           nobody reads its version yet
//! crash    the log is replayed from the record on       the same versions are written once more
//! ```
//!
//! So memory is taken for two memtables, however large the batch. The wait comes before the first
//! part: sorted files with a part of a batch that the log had lost would never be whole again. A copy
//! of the sorted files has no such log, so it waits until the batch is whole ([`super::checkpoint`]).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::RocksEngine;
use super::append::Logged;
use super::progress::Progress;
use super::writer::{PAUSE, Writer, until_taken};
use crate::engine::Appended;
use crate::error::StorageError;
use crate::log::LogPosition;
use crate::model::Version;
use crate::sorted::SortedWrites;

impl RocksEngine {
    /// As [`crate::Engine::append_sorted`].
    pub(super) fn append_in_parts(
        &self,
        version: Version,
        writes: &dyn SortedWrites,
    ) -> Result<Appended, StorageError> {
        if writes.is_empty() {
            return Ok(Appended::default());
        }
        let _in_parts = self.in_parts.lock();
        let mut writer = self.writer.lock();
        if writer.filling.is_full(&self.store.layers().active) {
            self.freeze(&mut writer)?;
        }
        assert!(
            version > Version(self.latest.load(Ordering::Acquire)),
            "a batch is newer than all before it"
        );
        let (place, unsynced) = writer.append_sorted(version, writes)?;
        unsynced.wait().inspect_err(|error| writer.stop(error))?;
        let bytes = self.apply_in_parts(&mut writer, version, place.start, writes);
        let logged = Logged {
            end: place.end,
            unsynced,
            bytes,
        };
        Ok(self.applied(&mut writer, logged, version))
    }

    /// Puts writes into one memtable after the other; bytes of keys and values. Nothing is refused
    /// any more: where flushes do not succeed, memory is taken instead.
    fn apply_in_parts(
        &self,
        writer: &mut Writer,
        version: Version,
        logged_at: LogPosition,
        writes: &dyn SortedWrites,
    ) -> usize {
        let watermark = self.store.watermark();
        let mut active = Arc::clone(&self.store.layers().active);
        let (mut bytes, mut may_freeze) = (0, true);
        writes.each(&mut |key, value| {
            if may_freeze && writer.filling.is_full_of_bytes(&active) {
                may_freeze = self.freeze_within(writer, version, logged_at);
                active = Arc::clone(&self.store.layers().active);
            }
            active.write(version, key, value, watermark);
            bytes += key.len() + value.map_or(0, <[u8]>::len);
        });
        self.store.empty_ranges.written_sorted(writes);
        bytes
    }

    /// Begins a new memtable in the middle of a batch that the log has on disk from `logged_at` on;
    /// whether that may be tried again.
    fn freeze_within(&self, writer: &mut Writer, version: Version, logged_at: LogPosition) -> bool {
        let caught_up = until_taken(|| self.flusher.has_caught_up(), || self.flusher.wait(PAUSE));
        if let Err(error) = caught_up {
            tracing::warn!(%error, "a large commit stays in memory until memtables can be written out");
            return false;
        }
        let before = writer.filling.progress();
        let progress = Progress {
            latest: version,
            applied: Some(logged_at),
        };
        assert!(
            before.is_at_most(progress) && before.latest < version,
            "of a batch that is not whole the log is read again"
        );
        self.store.freeze(progress);
        writer.filling.begin();
        self.flusher.order();
        true
    }
}
