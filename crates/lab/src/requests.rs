//! What clients ask, whatever system answers.

use manxdb_txn::procedure::ShardId;
use manxdb_workloads::tpcc::{PaymentSums, Scale};
use manxdb_workloads::{Calls, Request, Topology, Workload};

/// The requests of every client of a cluster, each in its own stream of random numbers.
pub struct Requests {
    calls: Calls,
    asked: u64,
}

impl Requests {
    /// Clients of a cluster of this shape, with warehouses of this size.
    #[must_use]
    pub fn new(topology: Topology, scale: Scale, workload: Workload, seed: u64) -> Self {
        Self {
            calls: Calls::new(workload, topology, scale, seed),
            asked: 0,
        }
    }

    /// The same with payments that add to these sums.
    #[must_use]
    pub fn paying_into(mut self, sums: PaymentSums) -> Self {
        self.calls = self.calls.paying_into(sums);
        self
    }

    /// The next request of a client, counted from 0, of a home shard.
    pub fn next(&mut self, client: u32, home: ShardId) -> Request {
        self.asked += 1;
        // Dates need only differ.
        self.calls.next(client as usize, client, home, self.asked)
    }
}
