//! What holds between any two steps of a control plane.

use std::collections::{BTreeMap, BTreeSet};

use manxdb_core::check::ensure;

use super::jobs::{Job, State};
use super::workers::Worker;
use super::{Control, leased_to};
use crate::job::{AttemptId, JobId, WorkerId};
use crate::options::Policy;
use crate::record::{Durable, Reached};

impl Control {
    /// Checks jobs, workers and databases against each other, and all of them against the store.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub(super) fn check_all(&self) -> Result<(), String> {
        for (id, job) in &self.jobs {
            ensure(self.sessions.contains_key(&id.database), || {
                format!("the database of job {id} is there")
            })?;
            job.check(*id, self.options.policy)?;
            if let State::Leased {
                attempt, worker, ..
            } = &job.state
            {
                let knows = |worker: &Worker| worker.leased.contains_key(attempt);
                ensure(self.workers.get(worker).is_none_or(knows), || {
                    format!("attempt {attempt} is missing at its worker")
                })?;
            }
        }
        self.check_workers()?;
        self.check_sessions()?;
        self.assignments.check()?;
        self.outbox.check()?;
        self.stored
            .as_ref()
            .map_or(Ok(()), |it| self.check_stored(it))
    }

    fn check_workers(&self) -> Result<(), String> {
        for (id, worker) in &self.workers {
            ensure(!self.banned.contains(id), || {
                format!("worker {} is banned, and gets jobs", id.0)
            })?;
            worker.check(*id, &self.jobs)?;
        }
        for (id, strikes) in &self.strikes {
            let strikes_max = self.options.strikes_max;
            ensure(*strikes < strikes_max, || {
                format!(
                    "{strikes_max} refusals ban a worker, {} has {strikes}",
                    id.0
                )
            })?;
            ensure(!self.banned.contains(id), || {
                format!("refusals of worker {} are counted, which is banned", id.0)
            })?;
        }
        Ok(())
    }

    fn check_sessions(&self) -> Result<(), String> {
        for (id, session) in &self.sessions {
            ensure(session.weight > 0, || {
                format!("database {} counts for nothing", id.0)
            })?;
            ensure(session.lately <= session.used, || {
                let (lately, used) = (session.lately, session.used);
                format!("a database received {lately} lately, of {used} in all")
            })?;
            ensure(session.former() != Some(session.id), || {
                format!(
                    "messages of the present session of database {} are dropped",
                    id.0
                )
            })?;
        }
        Ok(())
    }

    /// What another control plane would find that starts with all records.
    fn check_stored(&self, stored: &Durable) -> Result<(), String> {
        ensure(stored.jobs.len() == self.jobs.len(), || {
            let (kept, has) = (stored.jobs.len(), self.jobs.len());
            format!("the store has {kept} jobs of {has}")
        })?;
        for (id, job) in &self.jobs {
            let kept = stored.jobs.get(id);
            ensure(
                kept.is_some_and(|kept| kept.attempts == job.attempts),
                || format!("the store counts {} attempts at job {id}", job.attempts),
            )?;
            ensure(kept.is_some_and(|kept| job.state.is(&kept.reached)), || {
                format!(
                    "the store has another state of job {id} than {:?}",
                    job.state
                )
            })?;
        }
        ensure(stored.banned == self.banned, || {
            format!("the store bans {:?}, not {:?}", stored.banned, self.banned)
        })?;
        #[cfg(feature = "mutants")]
        if self.is_mutant(crate::mutants::Mutant::ForgetsAccounts) {
            return Ok(());
        }
        let with_account = self.sessions.iter().filter(|(_, one)| one.has_account);
        ensure(
            with_account.map(|(id, _)| id).eq(stored.accounts.keys()),
            || format!("the store has accounts of {:?}", stored.accounts.keys()),
        )
    }
}

impl Job {
    fn check(&self, id: JobId, policy: Policy) -> Result<(), String> {
        let (failures, attempts) = (self.failures, self.attempts);
        ensure(failures <= attempts, || {
            format!("job {id} failed {failures} times in {attempts} attempts")
        })?;
        let mut failed_at = self.causes.iter().map(|(_, worker)| worker);
        ensure(failed_at.all(|worker| self.avoids.contains(worker)), || {
            format!("job {id} may go where it fails again")
        })?;
        ensure(self.avoids.len() <= attempts as usize, || {
            format!(
                "job {id} avoids workers that never had it: {:?}",
                self.avoids
            )
        })?;
        ensure(self.causes.len() <= failures as usize, || {
            format!("job {id} has {failures} failures, for {:?}", self.causes)
        })?;
        ensure(policy == Policy::CaasLevel || self.deferred == 0, || {
            format!("job {id} was put off under a policy that puts off none")
        })?;
        ensure(policy != Policy::Static || failures == 0, || {
            format!("job {id} failed and is tried again, under a policy that does not")
        })?;
        let Some(attempt) = self.state.attempt() else {
            return Ok(());
        };
        ensure(attempt.job == id, || {
            format!("job {id} is leased as {attempt}, of another job")
        })?;
        ensure(attempt.number == attempts, || {
            format!("{attempt} is the present one of {attempts} attempts")
        })?;
        ensure(failures < attempts, || {
            format!("{attempt} has failed, and is the present one")
        })
    }
}

impl State {
    /// The attempt that it is about.
    fn attempt(&self) -> Option<AttemptId> {
        match self {
            Self::Waiting => None,
            Self::Leased { attempt, .. } | Self::Done { attempt, .. } => Some(*attempt),
        }
    }

    /// Whether the store says the same.
    fn is(&self, reached: &Reached) -> bool {
        match (self, reached) {
            (Self::Waiting, Reached::Waiting) => true,
            (
                Self::Leased {
                    attempt, worker, ..
                },
                Reached::Leased(kept, at),
            ) => (attempt, worker) == (kept, at),
            (
                Self::Done {
                    attempt,
                    worker,
                    result,
                },
                Reached::Result(kept, at, bytes),
            ) => (attempt, worker, result) == (kept, at, bytes),
            _ => false,
        }
    }
}

impl Worker {
    /// Checks that the worker's attempts agree with the jobs.
    fn check(&self, id: WorkerId, jobs: &BTreeMap<JobId, Job>) -> Result<(), String> {
        let mut orders = BTreeSet::new();
        for (attempt, order) in &self.leased {
            ensure(
                leased_to(jobs.get(&attempt.job), *attempt) == Some(id),
                || format!("a worker has {attempt}, whose job says otherwise"),
            )?;
            ensure(*order <= self.orders(), || {
                format!("{attempt} was given by order {order} of {}", self.orders())
            })?;
            // What it had before this control plane began was given by none of its orders.
            ensure(*order == 0 || orders.insert(*order), || {
                format!("order {order} gave {attempt} and another one")
            })?;
        }
        Ok(())
    }
}
