//! Who is where: regions, shards, replicas, managers, and how they are numbered.

use manxdb_core::NodeId;
use manxdb_txn::procedure::ShardId;
use serde::{Deserialize, Serialize};

/// A region: a place within which messages are fast.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct RegionId(pub u32);

/// A cluster's shape. Every shard has its replicas, and every region its managers, in one region.
///
/// Nodes are numbered: the replicas of shard 0, of shard 1, …, then the managers of region 0, of
/// region 1, …; clients come behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// Regions.
    pub regions: u32,
    /// Shards in each.
    pub shards_per_region: u32,
}

/// Replicas of a shard, and managers of a region: one of them may fail.
pub const COPIES: u32 = 3;

/// How many of [`COPIES`] make a decision.
pub const MAJORITY: usize = 2;

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It stores a shard.
    Replica(ShardId),
    /// It is one of the managers of a region.
    Manager(RegionId),
    /// It asks.
    Client,
}

impl Topology {
    /// Shards in all.
    #[must_use]
    pub fn shards(&self) -> u32 {
        self.regions * self.shards_per_region
    }

    /// Replicas and managers in all: the number of the first client.
    #[must_use]
    pub fn servers(&self) -> u32 {
        (self.shards() + self.regions) * COPIES
    }

    /// What a node is.
    #[must_use]
    pub fn role(&self, node: NodeId) -> Role {
        let replicas = self.shards() * COPIES;
        if node.0 < replicas {
            return Role::Replica(ShardId(node.0 / COPIES));
        }
        if node.0 < self.servers() {
            return Role::Manager(RegionId((node.0 - replicas) / COPIES));
        }
        Role::Client
    }

    /// Where a shard is.
    #[must_use]
    pub fn region_of(&self, shard: ShardId) -> RegionId {
        RegionId(shard.0 / self.shards_per_region)
    }

    /// Where a server is.
    #[must_use]
    pub fn region_of_node(&self, node: NodeId) -> Option<RegionId> {
        match self.role(node) {
            Role::Replica(shard) => Some(self.region_of(shard)),
            Role::Manager(region) => Some(region),
            Role::Client => None,
        }
    }

    /// The nodes that store a shard.
    pub fn replicas(&self, shard: ShardId) -> impl Iterator<Item = NodeId> + use<> {
        let first = shard.0 * COPIES;
        (first..first + COPIES).map(NodeId)
    }

    /// The shards of a region.
    pub fn shards_of(&self, region: RegionId) -> impl Iterator<Item = ShardId> + use<> {
        let first = region.0 * self.shards_per_region;
        (first..first + self.shards_per_region).map(ShardId)
    }

    /// All nodes that store a shard of a region.
    pub fn nodes(&self, region: RegionId) -> impl Iterator<Item = NodeId> + use<> {
        let first = region.0 * self.shards_per_region * COPIES;
        (first..first + self.shards_per_region * COPIES).map(NodeId)
    }

    /// The managers of a region.
    pub fn managers(&self, region: RegionId) -> impl Iterator<Item = NodeId> + use<> {
        let first = (self.shards() + region.0) * COPIES;
        (first..first + COPIES).map(NodeId)
    }

    /// All regions.
    pub fn all_regions(&self) -> impl Iterator<Item = RegionId> + use<> {
        (0..self.regions).map(RegionId)
    }

    /// The site of a region's managers, whichever of them leads, in timestamps.
    #[must_use]
    pub fn manager_site(&self, region: RegionId) -> u32 {
        self.servers() + region.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_server_is_where_its_number_says() {
        let topology = Topology {
            regions: 3,
            shards_per_region: 2,
        };
        for region in topology.all_regions() {
            for shard in topology.shards_of(region) {
                assert_eq!(topology.region_of(shard), region);
                for node in topology.replicas(shard) {
                    assert_eq!(topology.role(node), Role::Replica(shard));
                    assert!(topology.nodes(region).any(|other| other == node));
                }
            }
            for manager in topology.managers(region) {
                assert_eq!(topology.role(manager), Role::Manager(region));
                assert_eq!(topology.region_of_node(manager), Some(region));
            }
        }
        assert_eq!(topology.servers(), 27);
        assert_eq!(topology.role(NodeId(27)), Role::Client);
    }
}
