//! How a replica votes on a transaction that is to commit.

use manxdb_common::CallId;

use super::Validation;
use super::message::{ReadWriteSet, Timestamp, Vote};
use super::replica::{Record, Replica};

impl Replica {
    /// TAPIR's validation (section 6.1 of the paper): what was read is still the newest, no prepared
    /// transaction is in the way, and none that has committed is behind.
    pub(super) fn vote(
        &self,
        timestamp: Timestamp,
        sets: &ReadWriteSet,
        clashing: &[CallId],
    ) -> Vote {
        if self.looks_at_versions() && self.store.is_stale(sets) {
            return Vote::Abort;
        }
        if sets.newest_seen() >= timestamp {
            return Vote::Retry(sets.newest_seen());
        }
        for other in clashing {
            let Some(other) = self.records.get(other) else {
                continue;
            };
            if let Some(vote) = self.in_the_way(timestamp, sets, other) {
                return vote;
            }
        }
        match self.store.newest_access(sets) {
            newest if newest > timestamp => Vote::Retry(newest),
            _ => Vote::Ok,
        }
    }

    /// What a prepared transaction makes of a vote, which it clashes with.
    fn in_the_way(&self, at: Timestamp, sets: &ReadWriteSet, other: &Record) -> Option<Vote> {
        if self.shared.options.validation == Validation::Strict {
            return Some(Vote::Abstain);
        }
        let meets = |reads: &ReadWriteSet, writes: &ReadWriteSet| {
            let mut keys = writes.writes.keys();
            keys.any(|key| reads.reads.iter().any(|read| read.range.contains(key)))
        };
        let is_behind = other.timestamp > at;
        if meets(sets, &other.sets) || (is_behind && meets(&other.sets, sets)) {
            return Some(Vote::Abstain);
        }
        let mut keys = sets.writes.keys();
        let both_write = keys.any(|key| other.sets.writes.contains_key(key));
        (is_behind && both_write).then_some(Vote::Retry(other.timestamp))
    }

    #[allow(clippy::unused_self)] // a planted defect asks
    fn looks_at_versions(&self) -> bool {
        #[cfg(feature = "mutants")]
        return self.shared.options.mutant != Some(super::TapirMutant::VersionsUnchecked);
        #[cfg(not(feature = "mutants"))]
        true
    }
}
