//! The state of the pool, for operators.

use std::collections::BTreeMap;

use super::jobs::State;
use super::{Control, Counts};
use crate::election::Standing;
use crate::job::{AttemptId, DatabaseId, Facts, JobId, WorkerId};
use crate::message::{Ability, Progress};

/// A picture of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Jobs, in no order that matters.
    pub jobs: Vec<JobLine>,
    /// Workers.
    pub workers: Vec<WorkerLine>,
    /// Workers not to be trusted any more.
    pub banned: Vec<WorkerId>,
    /// Worker time that databases received, by the fair clock: milliseconds of one worker, by
    /// weight.
    pub shares: BTreeMap<DatabaseId, u64>,
    /// Counters since the start, or since this control plane leads.
    pub counts: Counts,
    /// Which control plane leads.
    pub standing: Standing,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobLine {
    /// Which.
    pub job: JobId,
    /// What scheduling goes by.
    pub facts: Facts,
    /// Attempts so far.
    pub attempts: u32,
    /// How far it is.
    pub phase: JobPhase,
}

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobPhase {
    /// It waits.
    Waiting,
    /// A worker has it, and is so far.
    Running(WorkerId, Progress),
    /// Its result waits for the database.
    Done(AttemptId),
}

/// A worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerLine {
    /// Which.
    pub worker: WorkerId,
    /// The worker's abilities.
    pub ability: Ability,
    /// Attempts it has.
    pub running: u32,
    /// What it has done since it started, by its own report.
    pub total: Progress,
}

pub(super) fn of(control: &Control) -> Report {
    let jobs = control.jobs.iter().map(|(id, job)| JobLine {
        job: *id,
        facts: job.spec.facts,
        attempts: job.attempts,
        phase: match &job.state {
            State::Waiting => JobPhase::Waiting,
            State::Leased {
                attempt, worker, ..
            } => {
                let one = control.workers.get(worker);
                let progress = one.and_then(|worker| worker.progress.get(attempt));
                JobPhase::Running(*worker, progress.copied().unwrap_or_default())
            }
            State::Done { attempt, .. } => JobPhase::Done(*attempt),
        },
    });
    let workers = control.workers.iter().map(|(id, worker)| WorkerLine {
        worker: *id,
        ability: worker.ability.clone(),
        running: u32::try_from(worker.leased.len()).unwrap_or(u32::MAX),
        total: worker.total,
    });
    let leased = control.workers.values().map(|one| one.leased.len());
    assert!(
        leased.sum::<usize>() <= control.jobs.len(),
        "a job is one worker's at a time"
    );
    let shares = control.sessions.iter().map(|(id, one)| (*id, one.used));
    Report {
        jobs: jobs.collect(),
        workers: workers.collect(),
        banned: control.banned.iter().copied().collect(),
        shares: shares.collect(),
        counts: control.counts.clone(),
        standing: Standing::default(),
    }
}
