//! The life of a job: waiting, leased, done, over.

use std::collections::BTreeSet;
use std::sync::Arc;

use manxdb_core::{Digest, LocalTime, NodeId};

use super::{Control, Step, leased_to};
use crate::job::{AttemptId, FailureClass, JobId, LocalReason, Spec, WorkerId};
use crate::message::{Ended, Message, OutputVerdict};
use crate::options::Policy;
use crate::record::{Record, Stored};

/// A job that is not over.
#[derive(Debug)]
pub(super) struct Job {
    pub spec: Spec,
    pub state: State,
    /// When it was taken, or when the control plane started.
    pub since: LocalTime,
    /// Not tried again before this.
    pub not_before: LocalTime,
    /// Attempts given out.
    pub attempts: u32,
    /// Attempts that were lost or failed for a reason that counts.
    pub failures: u32,
    /// Times it was put off (CaaS-LSM's policy counts them).
    pub deferred: u32,
    /// Workers that may not have it again.
    pub avoids: BTreeSet<WorkerId>,
    /// What went wrong deterministically, and where.
    pub causes: BTreeSet<(u64, WorkerId)>,
    /// Since when no worker fits.
    pub unfit_since: Option<LocalTime>,
}

/// How far it is.
#[derive(Debug)]
pub(super) enum State {
    Waiting,
    Leased {
        attempt: AttemptId,
        worker: WorkerId,
        until: LocalTime,
    },
    Done {
        attempt: AttemptId,
        worker: WorkerId,
        result: Arc<[u8]>,
    },
}

impl Job {
    fn new(spec: Spec, now: LocalTime) -> Self {
        Self {
            spec,
            state: State::Waiting,
            since: now,
            not_before: now,
            attempts: 0,
            failures: 0,
            deferred: 0,
            avoids: BTreeSet::new(),
            causes: BTreeSet::new(),
            unfit_since: None,
        }
    }

    /// A job that the store had. That earlier attempts failed is not written; each counts as one.
    pub fn restored(stored: Stored) -> Self {
        let mut job = Self::new(stored.spec, LocalTime::default());
        job.attempts = stored.attempts;
        job.state = stored.reached.into();
        let is_waiting = matches!(job.state, State::Waiting);
        job.failures = stored.attempts.saturating_sub(u32::from(!is_waiting));
        job
    }

    pub fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting)
    }

    pub fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        digest.number(u64::from(self.attempts));
        digest.number(match &self.state {
            State::Waiting => 0,
            State::Leased { attempt, .. } => attempt.token,
            State::Done { attempt, .. } => !attempt.token,
        });
        digest.value()
    }
}

impl Control {
    pub(super) fn hear_submit(&mut self, step: &mut Step<'_>, id: JobId, spec: Spec) {
        if !self.is_present(id) || self.is_over(id) {
            return; // a database says that it is there, and then submits again
        }
        let Some(job) = self.jobs.get(&id) else {
            if spec.input.len() > self.options.description_max {
                return self.decline(id, LocalReason::Unfit);
            }
            self.jobs.insert(id, Job::new(spec.clone(), step.now));
            self.has_news = true;
            self.record(Record::Job { job: id, spec });
            self.counts.taken += 1;
            self.tell_database(id.database, Message::Taken { job: id });
            self.send_home_what_is_too_much(step.now);
            return;
        };
        let word = match &job.state {
            State::Done {
                attempt, result, ..
            } => Message::Done {
                attempt: *attempt,
                result: Arc::clone(result),
            },
            State::Waiting => Message::Taken { job: id },
            State::Leased { .. } => Message::Begun { job: id },
        };
        self.tell_database(id.database, word);
    }

    /// A database says what became of a result; it may say so again.
    pub(super) fn settle(&mut self, attempt: AttemptId, verdict: OutputVerdict) {
        let Some(Job {
            state:
                State::Done {
                    attempt: present,
                    worker,
                    ..
                },
            ..
        }) = self.jobs.get(&attempt.job)
        else {
            return;
        };
        if *present != attempt {
            return;
        }
        let worker = *worker;
        // The ban is written first: while the job is there, the verdict is heard again.
        if verdict == OutputVerdict::Refused {
            self.counts.refused += 1;
            self.strike(worker);
        }
        self.end(attempt.job);
    }

    pub(super) fn hear_ended(
        &mut self,
        step: &mut Step<'_>,
        from: NodeId,
        worker: WorkerId,
        attempt: AttemptId,
        end: Ended,
    ) {
        let job = self.jobs.get(&attempt.job);
        let is_present = leased_to(job, attempt) == Some(worker);
        #[cfg(feature = "mutants")]
        let is_present =
            is_present || job.is_some() && self.is_mutant(crate::mutants::Mutant::TakesLateEnds);
        if !is_present {
            let is_known = matches!(
                job.map(|job| &job.state),
                Some(State::Done { attempt: present, .. }) if *present == attempt
            );
            self.counts.late += u64::from(!is_known);
            let word = if is_known {
                Message::Recorded { attempt }
            } else {
                Message::Stop { attempt }
            };
            self.outbox.send(from, word);
            return;
        }
        self.unlease(worker, attempt);
        self.outbox.send(from, Message::Recorded { attempt });
        match end {
            Ended::Finished(result) => self.finish(worker, attempt, result),
            Ended::Failed(class) => {
                self.counts.failed += 1;
                self.fail(step.now, attempt.job, worker, class);
            }
        }
    }

    fn finish(&mut self, worker: WorkerId, attempt: AttemptId, result: Arc<[u8]>) {
        if result.len() > self.options.description_max {
            return self.go_local(attempt.job, LocalReason::Unfit);
        }
        assert!(
            self.jobs.contains_key(&attempt.job),
            "a result that the worker may forget is that of a job: {attempt}"
        );
        let Some(job) = self.jobs.get_mut(&attempt.job) else {
            return;
        };
        job.state = State::Done {
            attempt,
            worker,
            result: Arc::clone(&result),
        };
        self.counts.done += 1;
        self.record(Record::Result {
            attempt,
            worker,
            result: Arc::clone(&result),
        });
        self.tell_database(attempt.job.database, Message::Done { attempt, result });
    }

    /// The present attempt failed and its worker knows; what next?
    fn fail(&mut self, now: LocalTime, id: JobId, worker: WorkerId, class: FailureClass) {
        let pause = self.options.pause;
        let attempts_max = self.options.attempts_max;
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        let mut reason = None;
        match class {
            FailureClass::Declined => {
                job.avoids.insert(worker);
            }
            FailureClass::Transient => job.failures += 1,
            FailureClass::Deterministic { cause } => {
                job.failures += 1;
                job.avoids.insert(worker);
                let elsewhere = |(seen, at): &(u64, WorkerId)| *seen == cause && *at != worker;
                if job.causes.iter().any(elsewhere) {
                    reason = Some(LocalReason::Poison);
                }
                job.causes.insert((cause, worker));
            }
        }
        job.not_before = now + pause * u64::from(job.failures);
        if self.options.policy == Policy::Static {
            reason = Some(LocalReason::Attempts); // a call that fails is not repeated
        }
        if job.failures >= attempts_max {
            reason = reason.or(Some(LocalReason::Attempts));
        }
        match reason {
            Some(reason) => self.go_local(id, reason),
            None => self.release(id),
        }
    }

    /// A leased attempt was not heard of in time.
    pub(super) fn lose(&mut self, now: LocalTime, worker: WorkerId, attempt: AttemptId) {
        if leased_to(self.jobs.get(&attempt.job), attempt) != Some(worker) {
            return;
        }
        self.counts.lost += 1;
        self.unlease(worker, attempt);
        self.tell_worker(worker, Message::Stop { attempt });
        self.fail(now, attempt.job, worker, FailureClass::Transient);
    }

    fn release(&mut self, id: JobId) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.state = State::Waiting;
            self.has_news = true;
            self.record(Record::Released { job: id });
            self.tell_database(id.database, Message::Taken { job: id });
        }
    }

    /// Forgets a job that no database waits for.
    pub(super) fn end(&mut self, id: JobId) {
        let Some(job) = self.jobs.remove(&id) else {
            return;
        };
        self.has_news = true;
        if let State::Leased {
            attempt, worker, ..
        } = job.state
        {
            self.tell_worker(worker, Message::Stop { attempt });
            self.unlease(worker, attempt);
        }
        self.record(Record::Over { job: id });
    }
}
