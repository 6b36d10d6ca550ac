//! The timestamp that a region gives a cross-region transaction: when its decision is expected.

use manxdb_core::LocalTime;

use crate::manager::Manager;
use crate::manager::estimate::Estimate;
use crate::timestamp::Timestamp;
use crate::topology::RegionId;

impl Manager {
    /// About when the decision will arrive: later than anything promised to anybody.
    pub(super) fn anticipate(&self, now: LocalTime, home: RegionId, after: Timestamp) -> Timestamp {
        let first = self.shared.options.first_estimate;
        let estimate = self.estimates.get(&home).map_or(first, Estimate::span);
        let estimate = estimate.max(self.shared.options.least_estimate);
        let site = self.shared.topology.manager_site(self.region);
        let Some(lead) = &self.lead else {
            return Timestamp::MAX;
        };
        let expected = lead.clocks.reading(now) + estimate.as_micros();
        #[cfg(feature = "mutants")]
        if self.shared.options.mutant == Some(crate::mutants::Mutant::NoPromise) {
            let early = expected.saturating_sub(2 * estimate.as_micros());
            return Timestamp::at(early.max(lead.assigned.micros + 1), site);
        }
        let behind = [lead.assigned, lead.clocks.told(), after];
        let behind = behind.iter().map(|at| at.micros + 1).max().unwrap_or(0);
        let at = Timestamp::at(expected.max(behind), site);
        assert!(at > lead.assigned, "timestamps of one leader grow");
        assert!(
            at > lead.clocks.told() && at > after,
            "a timestamp is behind all promised"
        );
        at
    }
}
