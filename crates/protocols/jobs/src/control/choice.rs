//! Which job next, on which worker: four policies over the same state.
//!
//! The policy `manxdb` serves databases that received little of the pool before those that received
//! much ([`shares`](super::shares)). Among databases of equal rank it puts every waiting job on one
//! scale, milliseconds of one worker's time. A job's position is the time that its database
//! received so far by the fair clock (start-time fair queueing: a database with twice the weight is
//! charged half), minus a credit for starting on level 0 (larger the sooner the database stalls)
//! and for waiting. So no database gets ahead of its equals by more than the credit. Positions
//! within a second of each other count as equal, and the shortest job goes first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use manxdb_core::{LocalTime, Nanos};

use super::Control;
use super::assignments::Assigned;
use super::jobs::Job;
use super::shares::{Crowd, deep_slots, relieves, weight_of};
use super::workers::Worker;
use crate::job::{DatabaseId, JobId, LocalReason, WorkerId};
use crate::options::Policy;

/// What to do with a waiting job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// Give it to a worker.
    Run(JobId, WorkerId),
    /// Send it home.
    GoLocal(JobId, LocalReason),
    /// Put it off, and do nothing until then.
    Later(JobId, Nanos),
}

/// Credit of a job that starts on level 0, in milliseconds of one worker.
const LEVEL_0_CREDIT: u64 = 5_000;
/// Most credit for a database that is about to stall, in milliseconds of one worker.
const STALL_CREDIT: u64 = 20_000;
/// Places this near to each other count as equal, in milliseconds of one worker.
const SAME_PLACE: u64 = 1_000;
const _: () = assert!(
    SAME_PLACE < LEVEL_0_CREDIT && LEVEL_0_CREDIT < STALL_CREDIT && STALL_CREDIT < NO_PLACE,
    "a credit makes a difference, and no place negative"
);
/// Where a database stands that has received nothing: places do not become negative by credits.
const NO_PLACE: u64 = 1 << 40;
/// Bytes a second of a worker that has measured nothing yet.
const SPEED_UNKNOWN: u64 = 64 << 20;

/// CaaS-LSM's constants (procp_server.cc): jobs that may wait behind the one popped, times that a
/// job is put off, tasks of a worker, and how long its one thread sleeps when the best worker is
/// full. Its rule that a worker whose memory is used as a cache counts as full is left out.
const CAAS_WAITING_MAX: usize = 5;
const CAAS_DEFERRED_MAX: u32 = 5;
const CAAS_TASKS_MAX: usize = 5;
const CAAS_PAUSE: Nanos = Nanos::from_secs(1);

/// The next decision; `None`: every waiting job keeps waiting.
pub(super) fn next(control: &Control, now: LocalTime) -> Option<Choice> {
    match control.options.policy {
        Policy::Manxdb => manxdb(control, now),
        Policy::CaasLevel => caas_level(control, now),
        Policy::Random => random(control, now),
        Policy::Static => fixed(control, now),
    }
}

fn ready(control: &Control, now: LocalTime) -> impl Iterator<Item = (JobId, &Job)> {
    let jobs = control.jobs.iter();
    jobs.filter(move |(_, job)| job.is_waiting() && job.not_before <= now)
        .map(|(id, job)| (*id, job))
}

fn suits(job: &Job, (id, worker): &(&WorkerId, &Worker)) -> bool {
    worker.free() > 0 && worker.fits(&job.spec.facts) && !job.avoids.contains(*id)
}

fn manxdb(control: &Control, now: LocalTime) -> Option<Choice> {
    let has_room = control.workers.values().any(|worker| worker.free() > 0);
    if !has_room || ready(control, now).next().is_none() {
        return None;
    }
    let crowd = Crowd::of(control);
    let mut candidates: Vec<_> = ready(control, now)
        .filter_map(|(id, job)| {
            let rank = crowd.rank(control, id.database);
            crowd.has_room(job, rank).then(|| {
                let over = crowd.is_over_share(control, id);
                let place = place_of(control, now, id, job) / SAME_PLACE;
                ((rank, over, place, job.spec.facts.bytes, id), job)
            })
        })
        .collect();
    candidates.sort_unstable_by_key(|(order, _)| *order);
    // Where one job finds no worker, none does that needs the same: most wait for such a worker.
    let mut hopeless = BTreeSet::new();
    candidates.into_iter().find_map(|((.., id), job)| {
        let needs = (relieves(job), job.spec.facts.fingerprint);
        if hopeless.contains(&needs) {
            return None;
        }
        let worker = best_worker(control, job);
        if worker.is_none() && job.avoids.is_empty() {
            hopeless.insert(needs);
        }
        worker.map(|worker| Choice::Run(id, worker))
    })
}

/// Where a job stands: smaller is sooner. Shifted so that credits do not make it negative.
fn place_of(control: &Control, now: LocalTime, id: JobId, job: &Job) -> u64 {
    let session = control.sessions.get(&id.database);
    let used = session.map_or(0, |session| session.used);
    #[cfg(feature = "mutants")]
    let used = if control.is_mutant(crate::mutants::Mutant::NoFairShares) {
        0
    } else {
        used
    };
    let waited = now.since(job.since).0 / 1_000_000;
    let mut credit = waited;
    if relieves(job) {
        credit += LEVEL_0_CREDIT;
        let stalls_in = session.and_then(|session| session.pressure.stalls_in_millis());
        credit += stalls_in.map_or(0, |millis| STALL_CREDIT.saturating_sub(millis));
    }
    used.saturating_add(NO_PLACE).saturating_sub(credit)
}

/// Where a job would end first.
fn best_worker(control: &Control, job: &Job) -> Option<WorkerId> {
    let facts = &job.spec.facts;
    let has_room = |(_, worker): &(&WorkerId, &Worker)| {
        let is_reserved = facts.start_level > 0 && is_full_of_others(control, worker);
        let jobs = worker.leased.len() as u64 + 1;
        !is_reserved && worker.ability.memory >= control.options.job_memory.saturating_mul(jobs)
    };
    control
        .workers
        .iter()
        .filter(|one| suits(job, one) && has_room(one))
        .min_by_key(|(id, worker)| (predicted_millis(control, job, worker), **id))
        .map(|(id, _)| *id)
}

/// Whether a worker with several slots has only one left that is not taken by what does not
/// relieve level 0. That one is for what does.
fn is_full_of_others(control: &Control, worker: &Worker) -> bool {
    let jobs = worker
        .leased
        .keys()
        .filter_map(|attempt| control.jobs.get(&attempt.job));
    let others = jobs.filter(|job| !relieves(job)).count() as u64;
    others >= deep_slots(worker.slots())
}

/// Milliseconds that a job would take on a worker.
pub(super) fn predicted_millis(control: &Control, job: &Job, worker: &Worker) -> u64 {
    let (facts, ability) = (&job.spec.facts, &worker.ability);
    let is_near = ability.zone == facts.zone;
    let millis = |speed: u64| facts.bytes.saturating_mul(1_000) / speed.max(1);
    let slots = u64::from(worker.slots()).max(1);
    let busy = worker.leased.len() as u64;
    // A busy worker's slots share its processors and its disk.
    let shared = |own: u64| own.saturating_add(own.saturating_mul(busy) / slots);
    match ability.far_bytes_second {
        // The measured speed includes the network: its bandwidth and its latency.
        far if far > 0 && !is_near => shared(millis(far)),
        _ => {
            let speed = match ability.bytes_second {
                0 => SPEED_UNKNOWN,
                speed => speed,
            };
            let way = millis(control.options.zone_bytes_second).saturating_mul(2);
            shared(millis(speed)).saturating_add(if is_near { 0 } else { way })
        }
    }
}

/// The waiting job to send back when more than `limit` wait: a job of a database that has more than
/// its share of the queue, because no database may suffer from another's load; one that relieves
/// level 0 only if there is no other; and of the database with the most waiting jobs.
pub(super) fn least_urgent(control: &Control, limit: usize) -> Option<JobId> {
    let mut waits: BTreeMap<DatabaseId, u64> = BTreeMap::new();
    for (id, _) in control.jobs.iter().filter(|(_, job)| job.is_waiting()) {
        *waits.entry(id.database).or_default() += 1;
    }
    let weight = |database: &DatabaseId| weight_of(control, *database);
    let weights: u64 = waits.keys().map(weight).sum();
    assert!(
        weights >= waits.len() as u64,
        "each database that waits has a share of the queue"
    );
    let has_too_many = |database: &DatabaseId| {
        let has = waits.get(database).copied().unwrap_or(0);
        has * weights > limit as u64 * weight(database)
    };
    control
        .jobs
        .iter()
        .filter(|(_, job)| job.is_waiting())
        .max_by_key(|(id, job)| {
            let facts = &job.spec.facts;
            let crowd = waits.get(&id.database);
            (
                has_too_many(&id.database),
                facts.start_level > 0,
                crowd,
                Reverse(job.attempts),
                facts.bytes,
                **id,
            )
        })
        .map(|(id, _)| *id)
}

/// `start_level` ascending, then negative scores, then the higher score, then the older.
fn caas_level(control: &Control, now: LocalTime) -> Option<Choice> {
    if now < control.rests_until {
        return None;
    }
    let order = |(id, job): &(JobId, &Job)| {
        let facts = &job.spec.facts;
        (
            facts.start_level,
            facts.score >= 0,
            Reverse(facts.score),
            job.since,
            *id,
        )
    };
    let (id, job) = ready(control, now).min_by_key(order)?;
    let waiting = control.jobs.values().filter(|job| job.is_waiting()).count();
    let is_overloaded = waiting > CAAS_WAITING_MAX + 1;
    if is_overloaded || job.deferred > CAAS_DEFERRED_MAX || control.workers.is_empty() {
        return Some(Choice::GoLocal(id, LocalReason::Overloaded));
    }
    let fewest = control
        .workers
        .iter()
        .filter(|(_, worker)| worker.fits(&job.spec.facts))
        .min_by_key(|(id, worker)| (worker.leased.len(), **id));
    let limit = |worker: &Worker| CAAS_TASKS_MAX.min(worker.slots() as usize);
    match fewest {
        // Only the best by count is looked at.
        Some((worker, one)) if one.leased.len() < limit(one) => Some(Choice::Run(id, *worker)),
        _ => Some(Choice::Later(id, CAAS_PAUSE)),
    }
}

fn oldest(control: &Control, now: LocalTime) -> impl Iterator<Item = (JobId, &Job)> {
    let mut jobs: Vec<_> = ready(control, now).collect();
    jobs.sort_unstable_by_key(|(id, job)| (job.since, *id));
    jobs.into_iter()
}

/// A worker drawn by the job's name, whatever it does; its queue is the wait for its slot.
fn random(control: &Control, now: LocalTime) -> Option<Choice> {
    oldest(control, now).find_map(|(id, job)| {
        let fits: Vec<_> = control
            .workers
            .iter()
            .filter(|(_, worker)| worker.fits(&job.spec.facts))
            .collect();
        let draw = spread(id.database.0 ^ id.number << 20 ^ u64::from(job.attempts));
        let (worker, one) = pick(&fits, draw)?;
        (one.free() > 0).then_some(Choice::Run(id, **worker))
    })
}

/// The worker at the database's address, at once, however busy it is: a call to a fixed address
/// waits in no queue, and the database compacts the job itself if there is no worker at the
/// address.
fn fixed(control: &Control, now: LocalTime) -> Option<Choice> {
    oldest(control, now).find_map(
        |(id, job)| match control.assignments.worker_of(id.database) {
            Assigned::NoAddress => None,
            Assigned::Worker(worker) if is_able(control, worker, job) => {
                Some(Choice::Run(id, worker))
            }
            Assigned::Worker(_) | Assigned::Nobody => {
                Some(Choice::GoLocal(id, LocalReason::NoWorker))
            }
        },
    )
}

fn is_able(control: &Control, worker: WorkerId, job: &Job) -> bool {
    let worker = control.workers.get(&worker);
    worker.is_some_and(|worker| worker.fits(&job.spec.facts))
}

fn pick<T>(list: &[T], draw: u64) -> Option<&T> {
    let length = list.len() as u64;
    let place = draw.checked_rem(length)?;
    list.get(usize::try_from(place).ok()?)
}

/// A number that tells nothing about its neighbours'.
fn spread(number: u64) -> u64 {
    manxdb_core::Random::new(number).next_bits()
}
