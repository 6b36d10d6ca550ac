//! Two ways to run one-shot transactions one after another: in pieces on the rows of every
//! shard, and whole on the commit path `local`.
#![allow(clippy::unwrap_used, clippy::panic)]
#![allow(dead_code)] // Each test binary uses a part of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_storage::{Direction, Durability, KeyRange, MemoryEngine};
use manxdb_txn::procedure::{OneShard, Procedure, Values};
use manxdb_txn::rows::{Base, Rows, run_serially};
use manxdb_txn::run_procedure::run_whole;
use manxdb_txn::testing::PolledWaiter;
use manxdb_txn::{
    CommitPath, IsolationLevel, LocalOptions, LocalPath, ReadMode, Transaction, TxnId,
};
use manxdb_workloads::Topology;

pub const TOPOLOGY: Topology = Topology {
    regions: 3,
    shards_per_region: 2,
};

/// The rows of every shard of a topology, one replica each. Every piece is held to its touches.
pub struct Shards {
    pub topology: Topology,
    pub rows: Vec<Rows>,
}

impl Shards {
    pub fn new(topology: Topology, base: &Arc<dyn Base>) -> Self {
        let shards = 0..topology.shards();
        let rows = shards.map(|_| Rows::new(base.clone())).collect();
        Self { topology, rows }
    }

    pub fn run(&mut self, procedure: &dyn Procedure, args: &[u8]) -> Values {
        run_serially(procedure, &self.topology, args, &mut self.rows).unwrap()
    }

    /// What all shards together changed.
    pub fn changes(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let changes = self.rows.iter().flat_map(Rows::changes);
        let present = changes.filter_map(|(key, value)| Some((key.to_vec(), value?.to_vec())));
        present.collect()
    }
}

/// A database of one node that has everything, on the path `local`.
pub struct Whole {
    path: Arc<LocalPath>,
    next: u64,
}

impl Whole {
    pub fn new() -> Self {
        let engine = Arc::new(MemoryEngine::new());
        let path = LocalPath::open(engine, LocalOptions::default()).unwrap();
        let path = Arc::new(path);
        Self { path, next: 1 }
    }

    fn begin(&mut self) -> Transaction {
        self.next += 1;
        let path: Arc<dyn CommitPath> = self.path.clone();
        let level = IsolationLevel::Serializable;
        Transaction::begin(path, TxnId(self.next), level, Arc::new(PolledWaiter))
    }

    pub fn load(&mut self, rows: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) {
        let txn = self.begin();
        for (key, value) in rows {
            txn.put(key, value).unwrap();
        }
        txn.commit(Durability::Async).unwrap();
    }

    pub fn run(&mut self, procedure: &dyn Procedure, args: &[u8]) -> Values {
        let txn = self.begin();
        let values = run_whole(procedure, &OneShard, args, &txn).unwrap();
        txn.commit(Durability::Async).unwrap();
        values
    }

    pub fn rows(&mut self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let txn = self.begin();
        let all = KeyRange::all();
        let page = txn.scan(&all, Direction::Forward, usize::MAX, ReadMode::Plain);
        page.unwrap().into_iter().collect()
    }
}
