//! What a session has seen.

use std::collections::BTreeSet;

use manxdb_core::check::ensure;
use serde::{Deserialize, Serialize};

use crate::timestamp::Timestamp;
use crate::topology::RegionId;

/// The newest place that each region has named a session in an answer. Which one it was matters when
/// that one is fenced: what it ran behind the end of its stream nobody else has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen(Vec<(RegionId, Timestamp)>);

impl Seen {
    /// By region.
    pub fn iter(&self) -> impl Iterator<Item = (RegionId, Timestamp)> + '_ {
        self.0.iter().copied()
    }

    /// The newest of all.
    #[must_use]
    pub fn newest(&self) -> Timestamp {
        self.iter().map(|(_, at)| at).max().unwrap_or_default()
    }

    /// That each region counts once.
    pub(crate) fn check(&self) -> Result<(), String> {
        let regions: BTreeSet<RegionId> = self.iter().map(|(region, _)| region).collect();
        ensure(regions.len() == self.0.len(), || {
            format!(
                "Q1: a session has seen two places of a region: {:?}",
                self.0
            )
        })
    }

    /// A region has named a place.
    pub fn note(&mut self, region: RegionId, at: Timestamp) {
        let mut known = self.0.iter_mut();
        match known.find(|(other, _)| *other == region) {
            Some((_, newest)) => *newest = at.max(*newest),
            None => self.0.push((region, at)),
        }
        assert!(self.newest() >= at, "what was seen is not forgotten");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_region_the_newest_is_kept() {
        let mut seen = Seen::default();
        assert_eq!(seen.newest(), Timestamp::ZERO);
        for (region, micros) in [(1, 30), (2, 20), (1, 10)] {
            seen.note(RegionId(region), Timestamp::at(micros, 0));
        }
        let of = |region, micros| (RegionId(region), Timestamp::at(micros, 0));
        assert!(seen.iter().eq([of(1, 30), of(2, 20)]));
        assert_eq!(seen.newest().micros, 30);
    }
}
