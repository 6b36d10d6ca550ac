//! TPC-C's Payment alone, with a share of customers of other regions to be chosen.
//!
//! All transactions are payments. The customer is of another region with the share asked for,
//! any warehouse there; else 15 % are of another shard of the region, and the rest of home.
//! Four in ten are known by last name, so that the history at home waits for the customer's shard.
//! Procedure and rows are those of [`tpcc`](crate::tpcc).

use manxdb_txn::procedure::ShardId;

use crate::tpcc::{Client, Districts, PaymentSums, Scale};
use crate::{Random, Request, Topology};

/// Names the stream of random numbers.
const STREAM: u64 = 4;

/// Share of the others that are of another shard of the region.
const NEARBY: f64 = 0.15;

/// Share of customers who are known by last name.
const BY_NAME: f64 = 0.4;

/// The payments of one client at a warehouse.
#[derive(Debug, Clone)]
pub struct Generator {
    client: Client,
    cross_region: f64,
}

impl Generator {
    /// Client number `client`, unlike every other's, at the warehouse of a shard; `cross_region`
    /// of its customers are of other regions, if there are any.
    #[must_use]
    pub fn new(
        topology: Topology,
        scale: Scale,
        cross_region: f64,
        client: u32,
        home: ShardId,
        seed: u64,
    ) -> Self {
        let random = Random::stream(seed, &[STREAM, client.into()]);
        Self {
            client: Client::new(topology, scale, client, home, random),
            cross_region,
        }
    }

    /// The same with payments that add to these sums.
    #[must_use]
    pub fn paying_into(mut self, sums: PaymentSums) -> Self {
        self.client.pays_into(sums);
        self
    }

    /// The next payment; `now` is the date on it.
    pub fn next_request(&mut self, now: u64) -> Request {
        let at = if self.client.chance(self.cross_region) {
            self.client.warehouse_far_away()
        } else if self.client.chance(NEARBY) {
            self.client.warehouse_nearby()
        } else {
            self.client.warehouse()
        };
        self.client.payment(at, BY_NAME, Districts::Own, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reach;

    #[test]
    fn shares_are_those_asked_for() {
        let topology = Topology {
            regions: 3,
            shards_per_region: 5,
        };
        for cross_region in [0.0, 0.1, 0.9, 1.0] {
            let home = ShardId(7);
            let scale = Scale::full();
            let mut generator = Generator::new(topology, scale, cross_region, 1, home, 1);
            let (mut far, mut near, mut waiting) = (0, 0, 0);
            for _ in 0..200_000 {
                let request = generator.next_request(1);
                far += u32::from(request.reach == Reach::Regions);
                near += u32::from(request.reach == Reach::Region);
                waiting += u32::from(request.waits_across_regions);
            }
            let expect = |count: u32, share: f64| {
                let share_drawn = f64::from(count) / 200_000.0;
                assert!(
                    (share_drawn - share).abs() < 0.005,
                    "{share_drawn} for {share}"
                );
            };
            expect(far, cross_region);
            expect(near, (1.0 - cross_region) * 0.15);
            expect(waiting, cross_region * 0.4);
        }
    }
}
