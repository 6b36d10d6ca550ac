//! The rows of a replica: what TPC-C has at the start, and everything else empty.

use std::sync::Arc;

use manxdb_txn::procedure::ShardId;
use manxdb_txn::rows::Rows;
use manxdb_workloads::Topology;
use manxdb_workloads::tpcc::{Template, Warehouses};

use super::file::ClusterFile;

/// Decides the initial rows of TPC-C: the same on all nodes.
const SEED: u64 = 1;

/// The rows of a shard at the start.
pub fn first_rows(file: &ClusterFile, topology: Topology, shard: ShardId) -> Rows {
    let template = Arc::new(Template::new(file.tpcc_scale.scale(), SEED));
    let count = topology.shards();
    Rows::new(Arc::new(Warehouses::of_shard(
        template, topology, count, shard,
    )))
}
