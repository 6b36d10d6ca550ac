//! How commands were completed.

use manxdb_curp::{ClientAnswer, Completion};

/// Counts of a front since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrontCounts {
    /// Completed by all witnesses: one round trip.
    pub fast: u64,
    /// Answered by the master alone, without a change: one, or two when a key was not synced.
    pub reads: u64,
    /// Synced by the master before it answered, because of a conflict, or recorded nowhere: two.
    pub conflicts: u64,
    /// Synced because a witness refused or was slow: two or three.
    pub synced: u64,
    /// Commands whose outcome is unknown.
    pub unknown: u64,
    /// Attempts after the first, all commands together.
    pub retries: u64,
}

impl FrontCounts {
    pub(super) fn count(&mut self, answer: &ClientAnswer, is_read: bool) {
        assert!(answer.attempts > 0, "what was answered was asked");
        self.retries += u64::from(answer.attempts - 1);
        match answer.answer {
            Some((_, Completion::Fast)) => self.fast += 1,
            Some((_, Completion::AtMaster)) if is_read => self.reads += 1,
            Some((_, Completion::AtMaster)) => self.conflicts += 1,
            Some((_, Completion::Sync)) => self.synced += 1,
            None => self.unknown += 1,
        }
    }

    /// All of them by name.
    #[must_use]
    pub fn lines(&self) -> Vec<(String, String)> {
        let lines = [
            ("curp_fast", self.fast),
            ("curp_reads", self.reads),
            ("curp_conflicts", self.conflicts),
            ("curp_synced", self.synced),
            ("curp_unknown", self.unknown),
            ("curp_retries", self.retries),
        ];
        lines
            .map(|(name, count)| (name.to_owned(), count.to_string()))
            .into()
    }
}
