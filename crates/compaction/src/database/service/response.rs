//! Answers from the pool: whether their outputs are installed.

use std::sync::atomic::Ordering;
use std::time::Instant;

use manxdb_jobs::Ask;
use manxdb_jobs::job::{AttemptId, LocalReason};
use manxdb_jobs::message::OutputVerdict;

use super::{Accepted, Remote};
use crate::answer::Answer;
use crate::database::outputs::{Expected, Refusal, verify};
use crate::object_store::objects::{Moved, ObjectError};
use crate::object_store::view::Copies;
use crate::seal::unseal;

/// Why an answer is not installed.
pub(super) enum Turned {
    /// It is wrong.
    Wrong(Refusal),
    /// The outputs could not be had.
    Storage(ObjectError),
    /// They could not be checked, for a reason that is here.
    Unchecked(String),
}

pub(super) fn wrong(what: String) -> Turned {
    Turned::Wrong(Refusal::Wrong(what))
}

impl Remote {
    /// Fetches the outputs of an attempt and verifies them; returns the description for RocksDB.
    pub(super) fn accept(
        &self,
        attempt: AttemptId,
        result: &[u8],
        expected: &Expected,
        copies: Option<&Copies>,
    ) -> Result<(Vec<u8>, Accepted), Turned> {
        let damaged = || wrong("the answer is not what the worker sent".to_owned());
        let result = unseal(result).ok_or_else(damaged)?;
        let answer: Answer = postcard::from_bytes(result)
            .map_err(|error| wrong(format!("the answer cannot be read: {error}")))?;
        let directory = self.staging.directory(attempt);
        let mut moved = Moved::default();
        if let Some((uploads, copies)) = self.place.shared.uploads().zip(copies) {
            let fetched = uploads.fetch(copies, attempt, &answer.files, &directory);
            moved = fetched.map_err(|error| match error {
                // It said that it had put it there.
                ObjectError::Missing(_) | ObjectError::Differs { .. } | ObjectError::Name(_) => {
                    wrong(error.to_string())
                }
                other => Turned::Storage(other),
            })?;
        }
        self.counts
            .fetched
            .fetch_add(moved.fetched, Ordering::Relaxed);
        let began = Instant::now();
        let verified = verify(&answer, expected, &directory, &self.callbacks.tables());
        self.counts.verified(began.elapsed());
        let description = verified.map_err(|refusal| match refusal {
            Refusal::Unchecked(why) => Turned::Unchecked(why),
            refusal => Turned::Wrong(refusal),
        })?;
        let (fetched, worker) = (moved.fetched, answer.moved);
        let (worker_fetched, worker_put) = (worker.fetched, worker.put);
        tracing::info!(
            trace = %attempt.job, %attempt, fetched, worker_fetched, worker_put, "checked"
        );
        let output_bytes = answer.files.iter().map(|file| file.bytes).sum();
        let accepted = Accepted {
            attempt,
            output_bytes,
            notes: answer.notes,
        };
        Ok((description, accepted))
    }

    /// Outputs are not installed.
    pub(super) fn turn_down(&self, name: &str, attempt: AttemptId, why: Turned) {
        let trace = attempt.job;
        let (verdict, reason) = match why {
            Turned::Wrong(refusal) => {
                tracing::error!(%trace, %attempt, %refusal, "a worker's outputs are refused");
                (OutputVerdict::Refused, LocalReason::Refused)
            }
            Turned::Storage(error) => {
                tracing::warn!(%trace, %attempt, %error, "a worker's outputs cannot be fetched");
                (OutputVerdict::Unused, LocalReason::Storage)
            }
            Turned::Unchecked(why) => {
                tracing::error!(%trace, %attempt, why, "a worker's outputs cannot be checked");
                (OutputVerdict::Unused, LocalReason::Storage)
            }
        };
        self.core.tell(Ask::Settled { attempt, verdict });
        self.end(name);
        self.counts.stays_home(reason);
    }
}
