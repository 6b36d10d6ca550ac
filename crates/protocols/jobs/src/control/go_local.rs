//! Which jobs their databases do themselves, and why: no worker fits ([`LocalReason::NoWorker`]), too many
//! wait ([`LocalReason::Overloaded`]), or the reason that [`jobs`](super::jobs) found when an attempt ended.
//! When no control plane answers, the database's [`client`](crate::client) decides.

use manxdb_core::LocalTime;

use super::jobs::Job;
use super::{Control, Step};
use crate::job::{JobId, LocalReason, WorkerId};
use crate::message::Message;
use crate::options::Policy;

impl Control {
    /// The database is told to compact it itself.
    pub(super) fn go_local(&mut self, id: JobId, reason: LocalReason) {
        self.end(id);
        self.decline(id, reason);
    }

    /// As [`Control::go_local`] for a job that was never taken: there is no record of it.
    pub(super) fn decline(&mut self, id: JobId, reason: LocalReason) {
        *self.counts.local.entry(reason).or_default() += 1;
        self.tell_database(id.database, Message::GoLocal { job: id, reason });
    }

    /// Sends back what has waited too long for a worker that fits.
    pub(super) fn send_home_what_fits_nowhere(&mut self, step: &mut Step<'_>) {
        let now = step.now;
        let patience = self.options.patience;
        let mut hopeless = Vec::new();
        for (id, job) in &mut self.jobs {
            if !job.is_waiting() {
                continue;
            }
            let fits = |(worker, one): (&WorkerId, &super::Worker)| {
                !job.avoids.contains(worker) && one.fits(&job.spec.facts)
            };
            if self.workers.iter().any(fits) {
                job.unfit_since = None;
            } else if now.since(*job.unfit_since.get_or_insert(now)) >= patience {
                hopeless.push(*id);
            }
        }
        for id in hopeless {
            self.go_local(id, LocalReason::NoWorker);
        }
    }

    /// When more jobs wait than the limit, sends back those whose local execution hurts least. Not
    /// right after a start: no worker has sent a beat yet, so the limit is not known.
    pub(super) fn send_home_what_is_too_much(&mut self, now: LocalTime) {
        if self.options.policy != Policy::Manxdb {
            return; // CaaS-LSM's has a rule of its own, the others have none
        }
        if now.since(self.began) < self.options.patience {
            return;
        }
        let slots: usize = self.workers.values().map(|one| one.slots() as usize).sum();
        let limit = slots.max(1) * self.options.waiting_each_slot;
        let mut waiting = self.jobs.values().filter(|job| job.is_waiting()).count();
        while waiting > limit {
            let Some(id) = super::choice::least_urgent(self, limit) else {
                return;
            };
            assert!(
                self.jobs.get(&id).is_some_and(Job::is_waiting),
                "what runs is not sent home for what waits: {id}"
            );
            self.go_local(id, LocalReason::Overloaded);
            waiting -= 1;
        }
    }
}
