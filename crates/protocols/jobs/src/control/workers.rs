//! Workers: which are connected, what they run, whether they are banned.

use manxdb_core::check::ensure;
use std::collections::{BTreeMap, BTreeSet};

use manxdb_core::{LocalTime, NodeId};

use super::jobs::{Job, State};
use super::{Control, Step, leased_to};
use crate::job::{AttemptId, Facts, JobId, WorkerId};
use crate::message::{Ability, Beat, Message, Progress};
use crate::options::Policy;
use crate::record::Record;

/// A worker that is there.
#[derive(Debug)]
pub(super) struct Worker {
    /// Where it was last heard from.
    pub peer: NodeId,
    heard: LocalTime,
    beat: u64,
    pub ability: Ability,
    drains: bool,
    /// Attempts it has, each with the number of the order by which it was told.
    pub leased: BTreeMap<AttemptId, u64>,
    orders: u64,
    /// How far its running attempts are, as it says.
    pub progress: BTreeMap<AttemptId, Progress>,
    /// What all its attempts have done, by its own report.
    pub total: Progress,
}

impl Worker {
    /// Jobs it runs at a time.
    pub fn slots(&self) -> u32 {
        if self.drains { 0 } else { self.ability.slots }
    }

    /// Slots that nothing runs in.
    pub fn free(&self) -> u32 {
        let leased = u32::try_from(self.leased.len()).unwrap_or(u32::MAX);
        self.slots().saturating_sub(leased)
    }

    /// Whether it may ever be given such a job.
    pub fn fits(&self, facts: &Facts) -> bool {
        self.slots() > 0 && self.ability.fingerprints.contains(&facts.fingerprint)
    }

    /// Checks that the worker's attempts agree with the jobs.
    pub fn check(&self, id: WorkerId, jobs: &BTreeMap<JobId, Job>) -> Result<(), String> {
        for (attempt, order) in &self.leased {
            ensure(
                leased_to(jobs.get(&attempt.job), *attempt) == Some(id),
                || format!("a worker has {attempt}, whose job says otherwise"),
            )?;
            ensure(*order <= self.orders, || {
                format!("{attempt} was given by order {order} of {}", self.orders)
            })?;
        }
        // What it had before this control plane began was ordered by another one; and a worker may
        // claim the highest number, behind which there is none.
        let own = self.leased.values();
        let own: Vec<u64> = own
            .copied()
            .filter(|order| (1..u64::MAX).contains(order))
            .collect();
        let distinct: BTreeSet<u64> = own.iter().copied().collect();
        ensure(distinct.len() == own.len(), || {
            format!("worker {} has two attempts by one order: {own:?}", id.0)
        })
    }
}

impl Control {
    pub(super) fn hear_beat(&mut self, step: &mut Step<'_>, from: NodeId, beat: &Beat) {
        if self.banned.contains(&beat.worker) {
            let running = beat.running.iter().map(|(attempt, _)| *attempt);
            for attempt in running.chain(beat.ended.iter().copied()) {
                self.outbox.send(from, Message::Stop { attempt });
            }
            return;
        }
        if !self.workers.contains_key(&beat.worker) {
            let worker = self.newcomer(from, beat);
            self.workers.insert(beat.worker, worker);
            self.has_news = true;
        }
        let lease = self.options.lease;
        let Some(worker) = self.workers.get_mut(&beat.worker) else {
            return; // just inserted
        };
        if beat.beat <= worker.beat {
            return; // an old one
        }
        worker.peer = from;
        worker.heard = step.now;
        worker.beat = beat.beat;
        if (&worker.ability, worker.drains) != (&beat.ability, beat.drains) {
            worker.ability = beat.ability.clone();
            worker.drains = beat.drains;
            self.has_news = true;
        }
        worker.progress = beat.running.iter().copied().collect();
        worker.total = beat.total;
        self.mend_missing(step, beat);
        let attempts = self.keep(step.now, beat);
        let kept = Message::Kept {
            beat: beat.beat,
            attempts,
            lease,
        };
        self.outbox.send(from, kept);
    }

    /// A worker heard for the first time, perhaps only since a restart: it has what jobs say.
    fn newcomer(&self, peer: NodeId, beat: &Beat) -> Worker {
        let mut leased = BTreeMap::new();
        for job in self.jobs.values() {
            if let State::Leased {
                attempt, worker, ..
            } = &job.state
                && *worker == beat.worker
            {
                leased.insert(*attempt, 0);
            }
        }
        Worker {
            peer,
            heard: LocalTime::default(),
            beat: 0,
            ability: beat.ability.clone(),
            drains: beat.drains,
            leased,
            orders: beat.seen,
            progress: BTreeMap::new(),
            total: beat.total,
        }
    }

    /// Attempts that the worker was told to run and does not report: the message is under way or
    /// lost, or the attempt is.
    fn mend_missing(&mut self, step: &mut Step<'_>, beat: &Beat) {
        let Some(worker) = self.workers.get(&beat.worker) else {
            return;
        };
        let has = |attempt: &AttemptId| {
            beat.running.iter().any(|(one, _)| one == attempt) || beat.ended.contains(attempt)
        };
        let missing = worker.leased.iter().filter(|(attempt, _)| !has(attempt));
        let missing: Vec<_> = missing.map(|(attempt, order)| (*attempt, *order)).collect();
        for (attempt, order) in missing {
            if order > beat.seen {
                self.send_run(beat.worker, attempt, order);
            } else {
                self.lose(step.now, beat.worker, attempt);
            }
        }
    }

    /// Renews the leases of the worker's current attempts; returns the other attempts, which it
    /// must stop.
    fn keep(&mut self, now: LocalTime, beat: &Beat) -> Vec<AttemptId> {
        let lease = self.options.lease;
        let mut kept = Vec::new();
        let ended = beat.ended.iter().copied();
        for attempt in beat
            .running
            .iter()
            .map(|(attempt, _)| *attempt)
            .chain(ended)
        {
            let job = self.jobs.get_mut(&attempt.job);
            match job.map(|job| &mut job.state) {
                Some(State::Leased {
                    attempt: present,
                    worker,
                    until,
                }) if *present == attempt && *worker == beat.worker => {
                    *until = now + lease;
                    kept.push(attempt);
                }
                Some(State::Done {
                    attempt: present, ..
                }) if *present == attempt => {
                    self.tell_worker(beat.worker, Message::Recorded { attempt });
                }
                _ => self.tell_worker(beat.worker, Message::Stop { attempt }),
            }
        }
        kept
    }

    /// Gives a waiting job to a worker.
    pub(super) fn lease(&mut self, now: LocalTime, id: JobId, to: WorkerId) {
        let until = now + self.options.lease;
        let token = self.random.next_bits();
        #[cfg(feature = "mutants")]
        let token = if self.is_mutant(crate::mutants::Mutant::NoTokens) {
            0
        } else {
            token
        };
        assert!(
            self.jobs.contains_key(&id) && self.workers.contains_key(&to),
            "what is chosen is there, or it would be chosen for ever: {id} for worker {}",
            to.0
        );
        let (Some(job), Some(worker)) = (self.jobs.get_mut(&id), self.workers.get_mut(&to)) else {
            return; // chosen from what there is
        };
        assert!(
            job.is_waiting(),
            "only a job that waits is given to a worker: {id}"
        );
        assert!(
            worker.fits(&job.spec.facts),
            "a job goes to a worker that offers its fingerprint: {id}"
        );
        assert!(
            worker.free() > 0 || self.options.policy == Policy::Static,
            "a worker gets no more than it has slots for: {id}"
        );
        assert!(
            !self.banned.contains(&to),
            "a worker that is banned gets nothing: {id}"
        );
        job.attempts += 1;
        let attempt = AttemptId {
            job: id,
            number: job.attempts,
            token,
        };
        job.state = State::Leased {
            attempt,
            worker: to,
            until,
        };
        job.unfit_since = None; // and if it waits again, its patience begins anew
        worker.orders = worker.orders.saturating_add(1); // it begins with what the worker says
        let order = worker.orders;
        let other = worker.leased.insert(attempt, order);
        assert!(other.is_none(), "an attempt is given once: {attempt}");
        let account = self.charge(id, to);
        self.record(Record::Leased {
            attempt,
            worker: to,
            account,
        });
        self.send_run(to, attempt, order);
        self.tell_database(id.database, Message::Begun { job: id });
    }

    fn send_run(&mut self, worker: WorkerId, attempt: AttemptId, order: u64) {
        let Some(job) = self.jobs.get(&attempt.job) else {
            return;
        };
        let run = Message::Run {
            worker,
            order,
            attempt,
            spec: job.spec.clone(),
            lease: self.options.lease,
        };
        self.tell_worker(worker, run);
    }

    /// A worker has an attempt no more.
    pub(super) fn unlease(&mut self, worker: WorkerId, attempt: AttemptId) {
        self.has_news = true;
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.leased.remove(&attempt);
            worker.progress.remove(&attempt);
        }
    }

    /// Attempts and workers not heard of in time.
    pub(super) fn expire_leases(&mut self, step: &mut Step<'_>) {
        #[cfg(feature = "mutants")]
        if self.is_mutant(crate::mutants::Mutant::LeasesForEver) {
            return;
        }
        let now = step.now;
        let mut lapsed = Vec::new();
        for job in self.jobs.values() {
            if let State::Leased {
                attempt,
                worker,
                until,
            } = &job.state
                && *until < now
            {
                lapsed.push((*worker, *attempt));
            }
        }
        for (worker, attempt) in lapsed {
            self.lose(now, worker, attempt);
        }
        let lease = self.options.lease;
        let is_there = |worker: &Worker| now.since(worker.heard) <= lease;
        self.workers
            .retain(|_, worker| is_there(worker) || !worker.leased.is_empty());
    }

    /// A database refused the worker's outputs. The worker may be unknown: it ended, or sent no
    /// beat since the control plane restarted.
    pub(super) fn strike(&mut self, id: WorkerId) {
        if self.banned.contains(&id) {
            return; // for another result: there may be several of one worker
        }
        let strikes = self.strikes.entry(id).or_default();
        *strikes += 1;
        if *strikes < self.options.strikes_max {
            return;
        }
        self.strikes.remove(&id);
        self.banned.insert(id);
        self.record(Record::Banned { worker: id });
        self.lose_all(LocalTime::default(), id);
        self.workers.remove(&id);
    }

    /// Whatever a worker has is lost. Jobs say what that is: of a worker that has not been heard of
    /// since the control plane began nobody else does.
    pub(super) fn lose_all(&mut self, now: LocalTime, id: WorkerId) {
        let leased = self.jobs.values().filter_map(|job| match &job.state {
            State::Leased {
                attempt, worker, ..
            } if *worker == id => Some(*attempt),
            _ => None,
        });
        let leased: Vec<AttemptId> = leased.collect();
        for attempt in leased {
            self.lose(now, id, attempt);
        }
    }
}
