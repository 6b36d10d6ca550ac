//! A replica and a region that is fenced: what it does not run where it is, and for which sessions the
//! region's return has to come first.

use manxdb_core::LocalTime;

use super::Replica;
use crate::call::Call;
use crate::fence::Span;
use crate::message::Seen;
use crate::timestamp::Timestamp;
use crate::topology::RegionId;
use crate::wanted::Out;

/// A call that a session may not have run yet.
pub(super) struct EarlyCall {
    pub(super) call: Call,
    pub(super) is_local: bool,
    /// What it has to come behind.
    seen: Seen,
}

impl Replica {
    /// A fence, or the return of a fenced region. What does not run at its place comes again at
    /// another one.
    pub(super) fn on_fences(&mut self, spans: Vec<Span>) {
        let topology = self.shared.topology;
        self.fences = spans;
        let (fences, runs_on) = (&self.fences, self.runs_behind_fences());
        self.execution.set_aside(|at, planned| {
            let is_own = |span: &Span| at.site == topology.manager_site(span.region);
            let mut spans = fences.iter().filter(|span| !runs_on || is_own(span));
            spans.any(|span| span.sets_aside(topology, planned, at))
        });
        let (execution, turn) = (&self.execution, self.execution.turn());
        self.placed
            .retain(|at| *at <= turn || execution.is_known(*at));
    }

    #[allow(clippy::unused_self)] // a planted defect asks
    fn runs_behind_fences(&self) -> bool {
        #[cfg(feature = "mutants")]
        if self.is_mutant(crate::mutants::Mutant::RunsBehindTheFence) {
            return true;
        }
        false
    }

    /// Whether what this node does now comes behind all that a session has seen: a local transaction
    /// by its stamp. What another region has shown it must be passed here, where that has moved
    /// transactions; while the other one is fenced nothing is, behind the end of its stream.
    pub(super) fn comes_behind(&self, now: LocalTime, is_local: bool, seen: &Seen) -> bool {
        let is_late = !is_local || self.clock.peek(now) > seen.newest();
        is_late && (!self.shared.options.has_whole_streams() || self.has_passed(seen))
    }

    fn has_passed(&self, seen: &Seen) -> bool {
        #[cfg(feature = "mutants")]
        if self.is_mutant(crate::mutants::Mutant::SessionForgetsRegion) {
            return true;
        }
        let mut elsewhere = seen.iter().filter(|(region, _)| *region != self.region);
        elsewhere.all(|(region, at)| {
            let passed = self.passed_once(region, at);
            passed.is_some_and(|passed| self.cuts.safe() >= passed)
        })
    }

    /// Once this region has passed the answer, it has run what led to `at` in another one; none: not
    /// before that one is back.
    fn passed_once(&self, region: RegionId, at: Timestamp) -> Option<Timestamp> {
        let mut passed = at;
        let spans = self.fences.iter().filter(|span| span.region == region);
        for span in spans.filter(|span| span.end <= at) {
            let over = span.over()?;
            if at < over {
                passed = passed.max(over);
            }
        }
        assert!(passed >= at, "what was moved runs behind where it was");
        Some(passed)
    }

    /// A call that comes too early is looked at again when the next report is due.
    pub(super) fn keep_early(&mut self, call: Call, is_local: bool, seen: &Seen) {
        let is_kept = self.early_calls.iter().any(|it| it.call.id == call.id);
        if !is_kept {
            let seen = seen.clone();
            self.early_calls.push(EarlyCall {
                call,
                is_local,
                seen,
            });
        }
    }

    /// Calls that had to wait for the clock or for cuts, once those are there.
    pub(super) fn retry_early_calls(&mut self, now: LocalTime, out: &mut Out) {
        let early = std::mem::take(&mut self.early_calls).into_iter();
        let (due, early): (Vec<_>, Vec<_>) =
            early.partition(|it| self.comes_behind(now, it.is_local, &it.seen));
        self.early_calls = early;
        for EarlyCall { call, seen, .. } in due {
            self.on_submit(now, call, &seen, out);
        }
    }
}
