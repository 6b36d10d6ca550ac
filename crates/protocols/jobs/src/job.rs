//! Jobs, and the identity of attempts at them.

use std::fmt::{self, Display};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A database, for all its life.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct DatabaseId(pub u64);

/// One time that a database is open: drawn at random, so that the jobs of a database that was
/// killed are never taken for those of the one that opened after it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct SessionId(pub u64);

/// One time that a worker runs, drawn at random.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct WorkerId(pub u64);

/// Where a machine is. Bytes between two zones cost time and money.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Zone(pub u16);

/// What must be equal on both sides for a compaction to have the same result: engine version,
/// comparator, merge operator, compaction filter. A job goes only to workers that offer its
/// fingerprint.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Fingerprint(pub u64);

/// A compaction that a database wants done. Unique for ever: numbers begin again with a session.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct JobId {
    /// The database.
    pub database: DatabaseId,
    /// Asked while it was open this time.
    pub session: SessionId,
    /// Counted from 1 by the database.
    pub number: u64,
}

impl Display for JobId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (database, session) = (self.database.0, self.session.0);
        write!(formatter, "{database:x}-{session:x}-{}", self.number)
    }
}

/// One attempt at a job. Its name is the directory that it alone writes to.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct AttemptId {
    /// At what.
    pub job: JobId,
    /// Counted from 1 by the control plane.
    pub number: u32,
    /// Drawn at random: a control plane that lost its disk and counts from 1 again gives no two
    /// attempts one name.
    pub token: u64,
}

impl Display for AttemptId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}-{:x}", self.job, self.number, self.token)
    }
}

/// What scheduling goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Facts {
    /// Lowest level of the inputs: 0 relieves a database whose writes are about to stall.
    pub start_level: u8,
    /// Where the outputs go.
    pub output_level: u8,
    /// Size of the inputs in bytes.
    pub bytes: u64,
    /// Compaction score × 1,000, negative for manual compactions: what CaaS-LSM orders by.
    pub score: i64,
    /// The fingerprint that a worker must offer.
    pub fingerprint: Fingerprint,
    /// Where the inputs are.
    pub zone: Zone,
}

/// A job: the facts that scheduling uses, and the description for the worker, which no process in
/// between reads.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Spec {
    /// For the control plane.
    pub facts: Facts,
    /// For the worker.
    pub input: Arc<[u8]>,
}

/// Why an attempt failed, as far as it matters for what to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum FailureClass {
    /// This worker may not do it (another engine, an older view of the files): another may.
    Declined,
    /// It may work the next time: storage was away, the disk was full.
    Transient,
    /// It will fail again. `cause` is equal for equal failures: seen on two workers, it is the
    /// job's own.
    Deterministic {
        /// A hash of what went wrong.
        cause: u64,
    },
}

/// Why a database is told to compact locally.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LocalReason {
    /// No worker that fits has been there for a while.
    NoWorker,
    /// More jobs wait than the pool can run, and this one was chosen to run locally.
    Overloaded,
    /// Too many attempts failed.
    Attempts,
    /// It failed in the same way on two workers.
    Poison,
    /// The control plane does not answer.
    Away,
    /// It took too long for its size.
    Deadline,
    /// The database stalls: it compacts itself rather than wait.
    Hedge,
    /// The database is closing.
    Closing,
    /// A worker's outputs failed the verification.
    Refused,
    /// It is too small to be worth the way.
    Small,
    /// A worker cannot run it.
    Unfit,
    /// The storage that both sides share does not answer, or is full.
    Storage,
}

impl LocalReason {
    /// All of them, for tables of counts.
    pub const ALL: [LocalReason; 12] = [
        LocalReason::NoWorker,
        LocalReason::Overloaded,
        LocalReason::Attempts,
        LocalReason::Poison,
        LocalReason::Away,
        LocalReason::Deadline,
        LocalReason::Hedge,
        LocalReason::Closing,
        LocalReason::Refused,
        LocalReason::Small,
        LocalReason::Unfit,
        LocalReason::Storage,
    ];

    const ALL_LISTED: () = assert!(
        Self::ALL.len() == Self::Storage as usize + 1,
        "a reason that is not listed would be counted nowhere"
    );

    /// One word, for metrics and logs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        let () = Self::ALL_LISTED;
        match self {
            Self::NoWorker => "no_worker",
            Self::Overloaded => "overloaded",
            Self::Attempts => "attempts",
            Self::Poison => "poison",
            Self::Away => "away",
            Self::Deadline => "deadline",
            Self::Hedge => "hedge",
            Self::Closing => "closing",
            Self::Refused => "refused",
            Self::Small => "small",
            Self::Unfit => "unfit",
            Self::Storage => "storage",
        }
    }
}

/// How near a database is to stopping its writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Pressure {
    /// Files on level 0.
    pub files: u32,
    /// Files on level 0 at which writes are slowed down or stopped.
    pub files_stall: u32,
    /// Files that arrive on level 0 each hour.
    pub files_hour: u32,
}

impl Pressure {
    /// Milliseconds until writes stall if nothing is compacted; none when nothing is written.
    #[must_use]
    pub fn stalls_in_millis(&self) -> Option<u64> {
        let room = u64::from(self.files_stall.saturating_sub(self.files));
        if room == 0 && self.files_stall > 0 {
            return Some(0);
        }
        (room * 3_600_000).checked_div(u64::from(self.files_hour))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_stalls_when_its_files_reach_the_limit() {
        let pressure = |files, files_hour| Pressure {
            files,
            files_stall: 20,
            files_hour,
        };
        assert_eq!(pressure(20, 0).stalls_in_millis(), Some(0));
        assert_eq!(pressure(30, 9).stalls_in_millis(), Some(0));
        assert_eq!(pressure(10, 3_600).stalls_in_millis(), Some(10_000));
        assert_eq!(pressure(10, 0).stalls_in_millis(), None);
        assert_eq!(Pressure::default().stalls_in_millis(), None);
    }

    #[test]
    fn names_of_attempts_are_file_names_and_tell_attempts_apart() {
        let job = JobId {
            database: DatabaseId(10),
            session: SessionId(255),
            number: 7,
        };
        let attempt = AttemptId {
            job,
            number: 2,
            token: 0xabc,
        };
        assert_eq!(attempt.to_string(), "a-ff-7-2-abc");
        assert_ne!(
            AttemptId {
                token: 1,
                ..attempt
            }
            .to_string(),
            attempt.to_string()
        );
    }
}
