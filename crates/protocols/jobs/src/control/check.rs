//! What is true of a control plane between two steps, beside what each part says of itself.

use manxdb_core::LocalTime;
use manxdb_core::check::ensure;

use super::Control;
use super::jobs::{Job, State};
use crate::job::JobId;
use crate::options::Policy;

impl Job {
    /// What is true of a job, whatever it has met.
    pub(super) fn check(&self, id: JobId, policy: Policy) -> Result<(), String> {
        ensure(self.failures <= self.attempts, || {
            let (failures, attempts) = (self.failures, self.attempts);
            format!("job {id} failed {failures} times in {attempts} attempts")
        })?;
        let mut failed_at = self.causes.iter().map(|(_, worker)| worker);
        ensure(failed_at.all(|worker| self.avoids.contains(worker)), || {
            format!("job {id} may go where it fails again")
        })?;
        ensure(self.causes.len() <= self.failures as usize, || {
            let (causes, failures) = (self.causes.len(), self.failures);
            format!("job {id} failed {failures} times, for {causes} causes")
        })?;
        ensure(self.avoids.len() <= self.attempts as usize, || {
            let (avoids, attempts) = (self.avoids.len(), self.attempts);
            format!("job {id} was tried {attempts} times, and avoids {avoids} workers")
        })?;
        ensure(self.deferred == 0 || policy == Policy::CaasLevel, || {
            format!("job {id} was put off, which only CaaS-LSM's policy does")
        })?;
        ensure(self.unfit_since.is_none() || self.is_waiting(), || {
            format!("job {id} waits for a worker that fits, and has one")
        })?;
        let (State::Leased { attempt, .. } | State::Done { attempt, .. }) = &self.state else {
            return Ok(());
        };
        ensure(attempt.job == id, || {
            format!("job {id} is leased as {attempt}, of another job")
        })?;
        ensure((1..=self.attempts).contains(&attempt.number), || {
            format!("{attempt} is one of {} attempts", self.attempts)
        })
    }
}

impl Control {
    /// How what is counted and what is waited for relate to jobs.
    pub(super) fn check_counts(&self) -> Result<(), String> {
        let policy = self.options.policy;
        ensure(!self.has_news, || {
            "a step ends when all that can have places have them".to_owned()
        })?;
        let (beat, lease, session) = (self.options.beat, self.options.lease, self.options.session);
        ensure(beat < lease && beat < session, || {
            format!("whoever beats every {beat:?} is not there for {lease:?} and {session:?}")
        })?;
        let waiting = || self.jobs.values().filter(|job| job.is_waiting());
        let is_due = |job: &Job| job.not_before == self.due;
        ensure(
            self.due == LocalTime(u64::MAX) || waiting().any(is_due),
            || format!("nothing waits until {:?}", self.due),
        )?;
        ensure(
            policy == Policy::CaasLevel || self.rests_until == LocalTime::default(),
            || format!("the policy {} rests for nobody", policy.name()),
        )?;
        ensure(
            policy == Policy::Static || self.assignments.is_empty(),
            || format!("the policy {} gives no database a worker", policy.name()),
        )?;
        let strikes: u64 = self.strikes.values().copied().map(u64::from).sum();
        ensure(strikes <= self.counts.refused, || {
            let refused = self.counts.refused;
            format!("{refused} results were refused, and {strikes} count against workers")
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use manxdb_core::{Actions, Core, Event};

    use super::*;
    use crate::job::{AttemptId, WorkerId};
    use crate::options::Options;
    use crate::record::{Durable, Reached, Stored};

    const ID: JobId = JobId {
        database: crate::job::DatabaseId(1),
        session: crate::job::SessionId(2),
        number: 3,
    };

    /// A control plane that goes on with one leased job.
    fn leasing() -> Control {
        let attempt = AttemptId {
            job: ID,
            number: 1,
            token: 5,
        };
        let stored = Stored {
            spec: crate::job::Spec::default(),
            attempts: 1,
            reached: Reached::Leased(attempt, WorkerId(4)),
        };
        let mut durable = Durable::default();
        durable.jobs.insert(ID, stored);
        let mut control = Control::new(Options::default(), 7, durable);
        let now = LocalTime(1_000_000_000);
        control.step(now, Event::Start, &mut Actions::default());
        control
    }

    /// What the check says of a control plane whose state a defect has changed.
    fn broken(defect: impl FnOnce(&mut Control)) -> String {
        let mut control = leasing();
        assert_eq!(control.check(), Ok(()));
        defect(&mut control);
        control.check().expect_err("the defect is found")
    }

    fn broken_job(defect: impl FnOnce(&mut Job)) -> String {
        broken(|control| defect(control.jobs.get_mut(&ID).unwrap()))
    }

    #[test]
    fn each_defect_of_a_control_plane_is_found() {
        let late = LocalTime(9);
        assert!(broken_job(|job| job.attempts = 0).contains("is one of 0 attempts"));
        assert!(broken_job(|job| job.deferred = 1).contains("was put off"));
        assert!(broken_job(|job| job.unfit_since = Some(late)).contains("and has one"));
        let avoids = BTreeSet::from([WorkerId(1), WorkerId(2)]);
        assert!(broken_job(|job| job.avoids = avoids).contains("avoids 2 workers"));
        assert!(broken(|control| control.has_news = true).contains("have them"));
        assert!(broken(|control| control.due = late).contains("nothing waits"));
        assert!(broken(|control| control.rests_until = late).contains("rests for nobody"));
        let banned = |control: &mut Control| {
            control.banned.insert(WorkerId(4));
        };
        assert!(broken(banned).contains("of a worker that is banned"));
        let struck = |control: &mut Control| {
            control.strikes.insert(WorkerId(9), 1);
            control.options.strikes_max = 3;
        };
        assert!(broken(struck).contains("count against workers"));
        let owed = |control: &mut Control| {
            let session = control.sessions.get_mut(&ID.database).unwrap();
            (session.lately, session.used) = (5, 5);
        };
        assert!(broken(owed).contains("no store knows"));
    }
}
