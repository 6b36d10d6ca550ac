//! What a manager shows to people who watch it: whether it leads its region, who takes part, and how far the
//! region is bound by the others.

use manxdb_core::{LocalTime, Nanos};
use manxdb_vr::Status;

use super::Manager;
use super::copies::Copies;
use crate::ledger::Membership;
use crate::timestamp::Timestamp;
use crate::topology::RegionId;

/// What the leader of a region knows of it.
#[derive(Debug, Clone)]
pub struct Leading<'m> {
    /// Who takes part.
    pub members: &'m Membership,
    /// Cross-region transactions that wait until the managers agree on their timestamps.
    pub at_ledger: usize,
    /// By how much the bound is ahead of the region's time, in microseconds; negative: clocks stretch.
    /// None unless transactions are ordered ahead.
    pub bound: Option<i64>,
    /// The region that is fenced, as this one knows: it may be this one.
    pub fenced: Option<RegionId>,
    /// How this region and each other one are ordered ahead; empty unless they are.
    pub pairs: Vec<Pair>,
}

/// How a region and another one are ordered ahead of each other, as the leader of the first one sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// The other region.
    pub region: RegionId,
    /// How far ahead of its time this region tells marks to the other one, in microseconds.
    pub lead: i64,
    /// By how much the last mark told is ahead of this region's time, in microseconds.
    pub told: Option<i64>,
    /// By how much the last mark heard of the other region is ahead of this one's time, in microseconds;
    /// negative: this region's order waits for the other one.
    pub heard: Option<i64>,
    /// What parts of the other region's stream take of late, in microseconds, by both regions' times.
    pub delay: Option<i64>,
    /// For how long the other region has been silent.
    pub silent: Nanos,
}

impl Manager {
    /// Records kept about transactions: bounded while everything is well.
    #[must_use]
    pub fn records(&self) -> usize {
        let lead = self.lead.as_ref();
        self.ledger().crts.len()
            + self.ledger().orders.len()
            + self.copies.as_ref().map_or(0, Copies::len)
            + lead.map_or(0, |lead| lead.crossing.len() + lead.waiting.len())
    }

    /// Whether it knows what its region has agreed on. A manager that starts again does not before a
    /// majority of its region's managers has told it: never, when a majority has lost its memory.
    #[must_use]
    pub fn has_memory(&self) -> bool {
        self.group.status() != Status::Recovering
    }

    /// The number of the group's view: how often its leader was replaced.
    #[must_use]
    pub fn view(&self) -> u64 {
        self.group.view()
    }

    /// What it knows of its region, while it leads.
    #[must_use]
    pub fn leading(&self, now: LocalTime) -> Option<Leading<'_>> {
        let lead = self.lead.as_ref()?;
        let reading = lead.clocks.reading(now);
        let bound = Some(self.bound()).filter(|bound| *bound < Timestamp::MAX);
        Some(Leading {
            members: &self.ledger().members,
            at_ledger: lead.untold.len(),
            bound: bound.map(|bound| ahead_by(bound, reading)),
            fenced: self.fenced(),
            pairs: self.pairs(reading, lead.clocks.ticks()),
        })
    }
}

/// By how much a timestamp is ahead of a reading, in microseconds.
pub(super) fn ahead_by(at: Timestamp, reading: u64) -> i64 {
    let signed = |micros: u64| i64::try_from(micros).unwrap_or(i64::MAX);
    signed(at.micros).saturating_sub(signed(reading))
}
