//! Regions, their shards, and which shard a key lives on.

use std::ops::Bound;

use manxdb_storage::KeyRange;
use manxdb_txn::procedure::{Placement, ShardId};

/// A place far from the other places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub u32);

/// A part of a workload's rows that stays together: in TPC-C a warehouse. Every key begins with
/// it, so partition by partition the key space is in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(pub u32);

impl Partition {
    /// Bytes of a key that tell its partition.
    pub const KEY_BYTES: usize = 4;

    /// The partition of a key; bytes that a short key lacks count as zero.
    #[must_use]
    pub fn of(key: &[u8]) -> Self {
        if let Some(first) = key.first_chunk::<{ Self::KEY_BYTES }>() {
            return Self(u32::from_be_bytes(*first));
        }
        let mut padded = [0; Self::KEY_BYTES];
        padded[..key.len()].copy_from_slice(key);
        Self(u32::from_be_bytes(padded))
    }

    /// How keys of this partition begin.
    #[must_use]
    pub fn prefix(self) -> [u8; Self::KEY_BYTES] {
        self.0.to_be_bytes()
    }
}

/// Regions of equally many shards: shards 0 to N − 1 are in region 0, the next N in region 1.
///
/// As a [`Placement`] it puts partition `p` on shard `p` mod the number of shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Topology {
    /// R, at least 1.
    pub regions: u32,
    /// N, at least 1.
    pub shards_per_region: u32,
}

impl Topology {
    /// Number of shards of all regions.
    #[must_use]
    pub fn shards(self) -> u32 {
        self.regions * self.shards_per_region
    }

    /// Where a shard is.
    #[must_use]
    pub fn region_of(self, shard: ShardId) -> RegionId {
        RegionId(shard.0 / self.shards_per_region)
    }

    /// The first shard of a region.
    #[must_use]
    pub fn first_shard_of(self, region: RegionId) -> ShardId {
        ShardId(region.0 * self.shards_per_region)
    }

    /// The shard of a partition.
    #[must_use]
    pub fn home_of(self, partition: Partition) -> ShardId {
        ShardId(partition.0 % self.shards())
    }

    /// How far a transaction reaches that touches these shards.
    #[must_use]
    pub fn reach(self, shards: impl IntoIterator<Item = ShardId>) -> Reach {
        let mut shards = shards.into_iter();
        let Some(first) = shards.next() else {
            return Reach::Shard;
        };
        let mut reach = Reach::Shard;
        for shard in shards {
            if self.region_of(shard) != self.region_of(first) {
                return Reach::Regions;
            }
            if shard != first {
                reach = Reach::Region;
            }
        }
        reach
    }
}

impl Placement for Topology {
    fn shard_of(&self, key: &[u8]) -> ShardId {
        self.home_of(Partition::of(key))
    }

    fn shards_of(&self, range: &KeyRange) -> Vec<ShardId> {
        let first = match &range.start {
            Bound::Included(key) | Bound::Excluded(key) => Partition::of(key).0,
            Bound::Unbounded => 0,
        };
        let last = match &range.end {
            // The end of a whole partition is the beginning of the next.
            Bound::Excluded(key) if key.len() <= Partition::KEY_BYTES => {
                let Some(last) = Partition::of(key).0.checked_sub(1) else {
                    return Vec::new();
                };
                last
            }
            Bound::Included(key) | Bound::Excluded(key) => Partition::of(key).0,
            Bound::Unbounded => u32::MAX,
        };
        let Some(more) = last.checked_sub(first) else {
            return Vec::new();
        };
        if more >= self.shards() - 1 {
            return (0..self.shards()).map(ShardId).collect();
        }
        let partitions = (first..=last).map(Partition);
        let mut shards: Vec<ShardId> = partitions.map(|at| self.home_of(at)).collect();
        shards.sort_unstable();
        shards
    }
}

/// How far a transaction reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reach {
    /// One shard.
    Shard,
    /// Several shards of one region.
    Region,
    /// Several regions: a cross-region transaction (CRT).
    Regions,
}

impl Reach {
    /// Whether it stays in a region: an intra-region transaction (IRT).
    #[must_use]
    pub fn is_local(self) -> bool {
        self != Reach::Regions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOPOLOGY: Topology = Topology {
        regions: 3,
        shards_per_region: 2,
    };

    fn shards(range: &KeyRange) -> Vec<u32> {
        let shards = TOPOLOGY.shards_of(range);
        shards.into_iter().map(|shard| shard.0).collect()
    }

    #[test]
    fn keys_live_where_their_partition_does() {
        let key = [0, 0, 0, 8, 1, 2, 3];
        assert_eq!(TOPOLOGY.shard_of(&key), ShardId(2));
        assert_eq!(TOPOLOGY.region_of(ShardId(2)), RegionId(1));
        assert_eq!(TOPOLOGY.first_shard_of(RegionId(2)), ShardId(4));
    }

    #[test]
    fn ranges_live_where_their_keys_may() {
        assert_eq!(shards(&KeyRange::prefix(&Partition(8).prefix())), [2]);
        assert_eq!(shards(&KeyRange::prefix(&[0, 0, 0, 5, 7])), [5]);
        assert_eq!(shards(&KeyRange::all()), [0, 1, 2, 3, 4, 5]);
        let some = KeyRange {
            start: Bound::Included(vec![0, 0, 0, 5, 9]),
            end: Bound::Excluded(vec![0, 0, 0, 7]),
        };
        assert_eq!(shards(&some), [0, 5]);
        let none = KeyRange {
            start: Bound::Included(vec![0, 0, 0, 7]),
            end: Bound::Excluded(vec![0, 0, 0, 5]),
        };
        assert_eq!(shards(&none), [0_u32; 0]);
    }

    #[test]
    fn reach_is_the_widest_step_between_shards() {
        let reach = |shards: &[u32]| TOPOLOGY.reach(shards.iter().copied().map(ShardId));
        assert_eq!(reach(&[]), Reach::Shard);
        assert_eq!(reach(&[3, 3]), Reach::Shard);
        assert_eq!(reach(&[2, 3, 2]), Reach::Region);
        assert_eq!(reach(&[2, 3, 4]), Reach::Regions);
        assert!(Reach::Region.is_local() && !Reach::Regions.is_local());
    }
}
