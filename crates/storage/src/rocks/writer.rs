//! What only the writer of a batch touches: the log, and how far the active memtable got.
//!
//! A batch finds room in the memtables and in the log first: only then may it be refused, while
//! nothing has happened yet. Then it is logged, then put into the active memtable, which cannot
//! fail. Nobody sees it there before the commit path publishes its version.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use rocksdb::{DB, ReadTier};

use super::progress::Progress;
use crate::error::StorageError;
use crate::log::{CommitLog, Counters, LogPosition, Unsynced};
use crate::memtable::Memtable;
use crate::model::{Version, WriteBatch};
use crate::sorted::SortedWrites;

/// Log behind the start of a memtable at which it is written out however little is in it, as a
/// multiple of the size of a full one: rows that are written again and again fill no memtable, but
/// the log, which is read again after a crash.
const LOG_FACTOR: u64 = 2;

/// Pause between tries while there is no room.
pub const PAUSE: Duration = Duration::from_millis(5);

/// Tries before a write gives up: a minute of pauses. Flushes and compactions that are only
/// behind catch up within seconds.
const TRIES: u32 = 12_000;
const _: () = assert!(
    PAUSE.as_millis() * TRIES as u128 == 60_000,
    "a write gives up after the minute that its error names"
);

/// Tries until there is a result other than a stop, which says why.
pub fn until_taken<T>(
    mut attempt: impl FnMut() -> Result<Result<T, String>, StorageError>,
    mut pause: impl FnMut(),
) -> Result<T, StorageError> {
    let mut why = String::new();
    for _ in 0..TRIES {
        match attempt()? {
            Ok(taken) => return Ok(taken),
            Err(stop) => why = stop,
        }
        pause();
    }
    Err(StorageError::Behind(format!(
        "flushes and compactions did not catch up within a minute, nothing was written: {why}"
    )))
}

/// When a memtable is full.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Its size in bytes.
    pub memtable_bytes: usize,
    /// Size of one file of the log in bytes.
    pub segment_bytes: u64,
}

/// How far the active memtable got.
#[derive(Debug)]
pub struct Filling {
    limits: Limits,
    progress: Progress,
    /// Where the log ended when it was begun.
    begun_at: Option<LogPosition>,
}

impl Filling {
    /// An empty memtable behind what `progress` says.
    pub fn new(limits: Limits, progress: Progress) -> Self {
        Self {
            limits,
            progress,
            begun_at: progress.applied,
        }
    }

    /// The memtable has a batch whose newest version is `latest`, and with which the log ends at
    /// `end`.
    pub fn wrote(&mut self, latest: Version, end: LogPosition) {
        assert!(self.progress.applied < Some(end), "the log only grows");
        self.progress.latest = self.progress.latest.max(latest);
        self.progress.applied = Some(end);
        self.begun_at.get_or_insert(end);
        assert!(
            self.begun_at <= self.progress.applied,
            "a memtable holds what was logged since it was begun"
        );
    }

    /// What the memtable ends with. The next one begins there.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// The memtable was frozen: a new one begins.
    pub fn begin(&mut self) {
        self.begun_at = self.progress.applied;
        assert_eq!(self.log_bytes(), 0, "a new memtable needs no log yet");
    }

    /// Whether `active` takes no further batch.
    pub fn is_full(&self, active: &Memtable) -> bool {
        let log_bytes_max = LOG_FACTOR * self.limits.memtable_bytes as u64;
        self.is_full_of_bytes(active) || (!active.is_empty() && self.log_bytes() >= log_bytes_max)
    }

    /// Whether `active` takes as much memory as it may.
    pub fn is_full_of_bytes(&self, active: &Memtable) -> bool {
        active.bytes() >= self.limits.memtable_bytes
    }

    /// Log since the memtable was begun, roughly: segments may be longer than usual.
    fn log_bytes(&self) -> u64 {
        let Some((begun, end)) = self.begun_at.zip(self.progress.applied) else {
            return 0;
        };
        let segments = end.segment.saturating_sub(begun.segment);
        let segments = segments.saturating_mul(self.limits.segment_bytes);
        (segments + end.offset).saturating_sub(begun.offset)
    }
}

/// The log, and how far the active memtable got.
pub struct Writer {
    log: CommitLog,
    /// The active memtable.
    pub filling: Filling,
    /// The segment at whose start the sorted files were last asked what they hold.
    asked_at: u64,
}

impl Writer {
    /// Over a log that was just opened.
    pub fn new(log: CommitLog, filling: Filling) -> Self {
        Self {
            log,
            filling,
            asked_at: 0,
        }
    }

    /// Reserves room in the log for `batch`; where it will end.
    ///
    /// # Errors
    /// As [`CommitLog::prepare`].
    pub fn prepare(&mut self, batch: &WriteBatch) -> Result<LogPosition, StorageError> {
        let end = self.log.prepare(batch)?;
        // Asked before the batch is logged: the log would be replayed with it at every start.
        assert!(
            self.filling.progress.applied < Some(end),
            "a batch is logged behind all that the memtables hold"
        );
        Ok(end)
    }

    /// Logs the prepared batch.
    ///
    /// # Errors
    /// [`StorageError::Io`]: whether the batch will be there after a restart is not known, and no
    /// write is taken until then.
    pub fn append(&mut self) -> Result<Unsynced, StorageError> {
        self.log.append()
    }

    /// Logs one record of `writes` at `version`; where it stands, and what to wait for.
    ///
    /// # Errors
    /// As [`CommitLog::append_sorted`].
    pub fn append_sorted(
        &mut self,
        version: Version,
        writes: &dyn SortedWrites,
    ) -> Result<(Range<LogPosition>, Unsynced), StorageError> {
        let (place, unsynced) = self.log.append_sorted(version, writes)?;
        assert!(
            self.filling.progress.applied <= Some(place.start),
            "a batch is logged behind all that the memtables hold"
        );
        Ok((place, unsynced))
    }

    /// Takes nothing more, because a wait for a batch failed.
    pub fn stop(&mut self, why: &StorageError) {
        self.log.stop(why);
    }

    /// Lets the log reuse what the sorted files hold, once a segment.
    pub fn retire(&mut self, db: &DB, end: LogPosition) -> Result<(), StorageError> {
        if self.asked_at == end.segment || !self.log.has_sealed() {
            return Ok(());
        }
        self.asked_at = end.segment;
        if let Some(applied) = Progress::read(db, ReadTier::Persisted)?.applied {
            self.log.retire(applied);
        }
        Ok(())
    }

    /// As [`CommitLog::begin_clean`].
    ///
    /// # Errors
    /// As [`CommitLog::begin_clean`].
    pub fn begin_clean(&mut self) -> Result<Option<LogPosition>, StorageError> {
        self.log.begin_clean()
    }

    /// As [`CommitLog::discard`], with what the sorted files hold now.
    ///
    /// # Errors
    /// As [`CommitLog::discard`]; what RocksDB says.
    pub fn discard(&mut self, db: &DB, before: LogPosition) -> Result<bool, StorageError> {
        match Progress::read(db, ReadTier::Persisted)?.applied {
            Some(applied) => self.log.discard(before, applied),
            None => Ok(false),
        }
    }

    /// What the log counts.
    pub fn log_counters(&self) -> Arc<Counters> {
        self.log.counters()
    }

    /// Where the log ends.
    pub fn end(&self) -> Option<LogPosition> {
        self.log.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_waits_while_there_is_no_room_but_not_for_ever() {
        let stopped = || Ok(Err::<u32, _>("Write stall".to_owned()));
        let mut pauses = 0;
        let error = until_taken(stopped, || pauses += 1).unwrap_err();
        assert!(matches!(error, StorageError::Behind(_)), "{error:?}");
        assert_eq!(pauses, TRIES);

        let mut stops = 7;
        let attempt = || {
            stops -= 1;
            Ok((stops == 0).then_some(3).ok_or_else(String::new))
        };
        assert_eq!(until_taken(attempt, || ()).unwrap(), 3);

        let mut stops = 3;
        let attempt = || {
            stops -= 1;
            match stops {
                0 => Err(StorageError::Full("no space".to_owned())),
                _ => Ok(Err::<(), _>(String::new())),
            }
        };
        let error = until_taken(attempt, || ()).unwrap_err();
        assert!(matches!(error, StorageError::Full(_)), "{error:?}");
    }

    #[test]
    fn a_memtable_is_full_of_bytes_or_of_log() {
        let limits = Limits {
            memtable_bytes: 1 << 20,
            segment_bytes: 1 << 20,
        };
        let place = |segment, offset| LogPosition { segment, offset };
        let memtable = Memtable::new(&Arc::default());
        let mut filling = Filling::new(limits, Progress::default());
        filling.wrote(Version(1), place(1, 500));
        assert!(!filling.is_full(&memtable));
        filling.wrote(Version(2), place(3, 499));
        memtable.write(Version(1), b"key", None, Version::ZERO);
        assert!(!filling.is_full(&memtable), "one byte less");
        let memtable = Memtable::new(&Arc::default());
        filling.wrote(Version(3), place(3, 500));
        assert!(!filling.is_full(&memtable), "an empty one is never full");
        memtable.write(Version(3), b"key", None, Version::ZERO);
        assert!(filling.is_full(&memtable), "of log");
        filling.begin();
        assert!(!filling.is_full(&memtable));
        let value = vec![0; 1 << 20];
        memtable.write(Version(4), b"key", Some(&value), Version::ZERO);
        assert!(filling.is_full(&memtable), "of bytes");
    }
}
