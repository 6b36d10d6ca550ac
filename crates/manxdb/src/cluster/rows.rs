//! The rows of a replica: what TPC-C has at the start, and everything else empty.

use std::sync::Arc;

use manxdb_dast::store::{Changes, Store};
use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::path::Page;
use manxdb_txn::procedure::ShardId;
use manxdb_txn::rows::{Base, Rows};
use manxdb_workloads::Topology;
use manxdb_workloads::tpcc::{Template, Warehouses};

use super::file::ClusterFile;

/// Decides the initial rows of TPC-C: the same on all nodes.
const SEED: u64 = 1;

/// Rows over rows that are never copied.
pub struct ReplicaRows {
    base: Arc<dyn Base>,
    rows: Rows,
}

impl ReplicaRows {
    /// The rows of a shard at the start.
    pub fn of_shard(file: &ClusterFile, topology: Topology, shard: ShardId) -> Self {
        let template = Arc::new(Template::new(file.tpcc_scale.scale(), SEED));
        let count = topology.shards();
        let base = Arc::new(Warehouses::of_shard(template, topology, count, shard));
        Self {
            rows: Rows::new(base.clone()),
            base,
        }
    }
}

impl Store for ReplicaRows {
    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.rows.get(key)
    }

    fn scan(&self, range: &KeyRange, direction: Direction, limit: usize) -> Page {
        self.rows.scan(range, direction, limit)
    }

    fn write(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let before = self.rows.get(&key);
        self.rows.write(key, value);
        before
    }

    fn export(&self) -> Changes {
        let changes = self.rows.changes();
        let owned = changes.map(|(key, value)| (key.to_vec(), value.map(<[u8]>::to_vec)));
        owned.collect()
    }

    fn import(&mut self, changes: Changes) {
        self.rows = Rows::new(Arc::clone(&self.base));
        for (key, value) in changes {
            self.rows.write(key, value);
        }
    }

    fn digest(&self) -> u64 {
        self.rows.digest()
    }
}
