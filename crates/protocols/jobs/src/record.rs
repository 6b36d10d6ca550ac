//! Durable records of the control plane: each is written before any message about it is sent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::job::{AttemptId, DatabaseId, JobId, SessionId, Spec, WorkerId};

/// A change of the durable state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// A job was taken.
    Job {
        /// Which.
        job: JobId,
        /// What.
        spec: Spec,
    },
    /// An attempt was given to a worker.
    Leased {
        /// Which.
        attempt: AttemptId,
        /// The worker.
        worker: WorkerId,
        /// What its database has been given with it. Written here, so that accounts cost no write
        /// of their own.
        account: Account,
    },
    /// An attempt failed or was lost, and the job waits again.
    Released {
        /// Which job.
        job: JobId,
    },
    /// An attempt succeeded; the database is to hear of it.
    Result {
        /// Which.
        attempt: AttemptId,
        /// The worker that ran it.
        worker: WorkerId,
        /// RocksDB's description of the result.
        result: Arc<[u8]>,
    },
    /// The job is over.
    Over {
        /// Which.
        job: JobId,
    },
    /// A database is gone, and its account with it.
    Gone {
        /// Which.
        database: DatabaseId,
    },
    /// A worker is not to be trusted any more.
    Banned {
        /// Which.
        worker: WorkerId,
    },
}

impl Record {
    /// The job it is about.
    #[must_use]
    pub fn job(&self) -> Option<JobId> {
        match self {
            Self::Job { job, .. } | Self::Released { job } | Self::Over { job } => Some(*job),
            Self::Leased { attempt, .. } | Self::Result { attempt, .. } => Some(attempt.job),
            Self::Banned { .. } | Self::Gone { .. } => None,
        }
    }

    /// The database whose account it changes.
    #[must_use]
    pub fn account_of(&self) -> Option<DatabaseId> {
        match self {
            Self::Leased { attempt, .. } => Some(attempt.job.database),
            Self::Gone { database } => Some(*database),
            Self::Job { .. }
            | Self::Released { .. }
            | Self::Result { .. }
            | Self::Over { .. }
            | Self::Banned { .. } => None,
        }
    }
}

/// What a database received of the pool, as of its last lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Account {
    /// The database was open this time.
    pub session: SessionId,
    /// By the fair clock: milliseconds of one worker, by weight.
    pub used: u64,
    /// The same with exponential decay.
    pub lately: u64,
    /// The fair clock at that time,
    pub clock: u64,
    /// and by how many beats memories had faded, counted over all control planes.
    pub beats: u64,
}

/// How far a job got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reached {
    /// It waits for a worker.
    Waiting,
    /// A worker has it.
    Leased(AttemptId, WorkerId),
    /// It has a result.
    Result(AttemptId, WorkerId, Arc<[u8]>),
}

/// A job as it is on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// What.
    pub spec: Spec,
    /// Attempts so far.
    pub attempts: u32,
    /// How far it got.
    pub reached: Reached,
}

/// All records, folded: what a store must keep, and the state that a control plane starts with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Durable {
    /// Jobs that are not over.
    pub jobs: BTreeMap<JobId, Stored>,
    /// Workers not to be trusted.
    pub banned: BTreeSet<WorkerId>,
    /// Accounts of databases that are not gone.
    pub accounts: BTreeMap<DatabaseId, Account>,
}

impl Durable {
    /// Folds records, oldest first. A record of a job that is not there changes nothing: its end
    /// was written before it.
    #[must_use]
    pub fn of(records: impl IntoIterator<Item = Record>) -> Self {
        let mut durable = Self::default();
        for record in records {
            durable.apply(record);
        }
        durable
    }

    /// The jobs, accounts and bans that `records` change: what a store has to write. A job that is
    /// missing from the result is over, and an account that is missing is gone.
    #[must_use]
    pub fn changed_by(&self, records: &[Record]) -> Self {
        let mut changed = Self::default();
        for job in records.iter().filter_map(Record::job) {
            if let Some(stored) = self.jobs.get(&job) {
                changed.jobs.insert(job, stored.clone());
            }
        }
        for record in records {
            changed.apply(record.clone());
        }
        changed
    }

    /// Folds one more.
    pub fn apply(&mut self, record: Record) {
        match record {
            Record::Job { job, spec } => {
                self.jobs.entry(job).or_insert(Stored {
                    spec,
                    attempts: 0,
                    reached: Reached::Waiting,
                });
            }
            Record::Over { job } => {
                self.jobs.remove(&job);
            }
            Record::Banned { worker } => {
                self.banned.insert(worker);
            }
            Record::Gone { database } => {
                self.accounts.remove(&database);
            }
            Record::Leased {
                attempt,
                worker,
                account,
            } => {
                self.accounts.insert(attempt.job.database, account);
                if let Some(stored) = self.jobs.get_mut(&attempt.job) {
                    stored.attempts = attempt.number;
                    stored.reached = Reached::Leased(attempt, worker);
                }
            }
            Record::Released { job } => {
                if let Some(stored) = self.jobs.get_mut(&job) {
                    stored.reached = Reached::Waiting;
                }
            }
            Record::Result {
                attempt,
                worker,
                result,
            } => {
                if let Some(stored) = self.jobs.get_mut(&attempt.job) {
                    stored.reached = Reached::Result(attempt, worker, result);
                }
            }
        }
    }
}
