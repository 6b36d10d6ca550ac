//! What every terminal of TPC-C can draw.

use manxdb_txn::procedure::ShardId;

use super::customer::Who;
use super::parameters::{Districts, PaymentSums};
use super::payment::{PAYMENT, PaymentArgs};
use super::scale::{self, Scale, nurand, uniform};
use crate::{Partition, Random, Reach, Request, Topology};

/// A terminal: where it is, and its random numbers. One warehouse a shard.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) topology: Topology,
    pub(crate) scale: Scale,
    pub(crate) home: ShardId,
    pub(crate) random: Random,
    number: u32,
    payments: u32,
    sums: PaymentSums,
}

impl Client {
    pub(crate) fn new(
        topology: Topology,
        scale: Scale,
        number: u32,
        home: ShardId,
        random: Random,
    ) -> Self {
        Self {
            topology,
            scale,
            home,
            random,
            number,
            payments: 0,
            sums: PaymentSums::default(),
        }
    }

    /// Its payments add to these sums.
    pub(crate) fn pays_into(&mut self, sums: PaymentSums) {
        self.sums = sums;
    }

    pub(crate) fn chance(&mut self, share: f64) -> bool {
        self.random.unit() < share
    }

    pub(crate) fn warehouse(&self) -> Partition {
        Partition(self.home.0)
    }

    fn any_district(&mut self) -> u8 {
        let number = uniform(&mut self.random, 1, self.scale.districts.into());
        u8::try_from(number).unwrap_or(1)
    }

    pub(crate) fn district(&mut self, districts: Districts) -> u8 {
        match districts {
            Districts::Any => self.any_district(),
            Districts::Own => {
                let own = self.number % u32::from(self.scale.districts);
                u8::try_from(own).unwrap_or_default() + 1
            }
        }
    }

    /// Another warehouse, all alike; home if there is none.
    pub(crate) fn other_warehouse(&mut self) -> Partition {
        let others = self.topology.shards() - 1;
        if others == 0 {
            return self.warehouse();
        }
        let other = uniform(&mut self.random, 0, others - 1);
        Partition(other + u32::from(other >= self.home.0))
    }

    /// Another warehouse of the region; home if there is none.
    pub(crate) fn warehouse_nearby(&mut self) -> Partition {
        let region = self.topology.region_of(self.home);
        let first = self.topology.first_shard_of(region).0;
        let others = self.topology.shards_per_region - 1;
        if others == 0 {
            return self.warehouse();
        }
        let other = first + uniform(&mut self.random, 0, others - 1);
        Partition(other + u32::from(other >= self.home.0))
    }

    /// A warehouse of another region, all alike; home if there is none.
    pub(crate) fn warehouse_far_away(&mut self) -> Partition {
        let region = self.topology.region_of(self.home);
        let first = self.topology.first_shard_of(region).0;
        let in_region = self.topology.shards_per_region;
        let outside = self.topology.shards() - in_region;
        if outside == 0 {
            return self.warehouse();
        }
        let other = uniform(&mut self.random, 0, outside - 1);
        let behind = if other < first { 0 } else { in_region };
        Partition(other + behind)
    }

    pub(crate) fn customer_number(&mut self) -> u32 {
        let most = self.scale.customers_per_district;
        nurand(&mut self.random, 1_023, scale::CUSTOMER, 1, most)
    }

    pub(crate) fn who(&mut self, by_name: f64) -> Who {
        if self.chance(by_name) {
            let name = scale::last_name(&mut self.random, scale::NAME_AT_RUN, self.scale);
            return Who::LastName(name);
        }
        Who::Number(self.customer_number())
    }

    /// A payment at home by a customer of a warehouse.
    pub(crate) fn payment(
        &mut self,
        at: Partition,
        by_name: f64,
        districts: Districts,
        now: u64,
    ) -> Request {
        let district = self.district(districts);
        let is_at_home = at == self.warehouse();
        let customer_district = if is_at_home {
            district
        } else {
            self.any_district()
        };
        let customer = self.who(by_name);
        self.payments += 1;
        let args = PaymentArgs {
            warehouse: self.warehouse(),
            district,
            customer_warehouse: at,
            customer_district,
            customer,
            amount: uniform(&mut self.random, 100, 500_000),
            date: now,
            client: self.number,
            number: self.payments,
            sums: self.sums,
        };
        let reach = self.topology.reach([self.home, self.topology.home_of(at)]);
        Request {
            procedure: PAYMENT,
            args: args.encode(),
            reach,
            pieces: if customer.is_name() { 6 } else { 5 },
            waits_across_regions: customer.is_name() && reach == Reach::Regions,
        }
    }
}
