//! The transactions of a terminal.

use manxdb_txn::procedure::ShardId;

use super::client::Client;
use super::delivery::{DELIVERY, DeliveryArgs};
use super::new_order::{Line, NEW_ORDER, NewOrderArgs};
use super::parameters::{Districts, Items, Parameters, PaymentSums};
use super::queries::{ORDER_STATUS, OrderStatusArgs, STOCK_LEVEL, StockLevelArgs};
use super::scale::{self, Scale, nurand, uniform};
use crate::{Random, Reach, Request, Topology};

/// Names the stream of random numbers.
const STREAM: u64 = 3;

/// The transactions of one client at a warehouse.
#[derive(Debug, Clone)]
pub struct Generator {
    client: Client,
    parameters: Parameters,
}

impl Generator {
    /// Client number `client`, unlike every other's, whose home warehouse is that of the shard.
    #[must_use]
    pub fn new(
        topology: Topology,
        scale: Scale,
        parameters: Parameters,
        client: u32,
        home: ShardId,
        seed: u64,
    ) -> Self {
        let random = Random::stream(seed, &[STREAM, client.into()]);
        Self {
            client: Client::new(topology, scale, client, home, random),
            parameters,
        }
    }

    /// The same with payments that add to these sums.
    #[must_use]
    pub fn paying_into(mut self, sums: PaymentSums) -> Self {
        self.client.pays_into(sums);
        self
    }

    /// The next transaction; `now` is the date on it, not 0.
    pub fn next_request(&mut self, now: u64) -> Request {
        let mix = self.parameters.mix;
        let mut point = uniform(&mut self.client.random, 0, 99);
        for (share, kind) in [
            (
                mix.new_order,
                Self::new_order as fn(&mut Self, u64) -> Request,
            ),
            (mix.payment, Self::payment),
            (mix.delivery, Self::delivery),
            (mix.order_status, Self::order_status),
        ] {
            match point.checked_sub(share.into()) {
                None => return kind(self, now),
                Some(rest) => point = rest,
            }
        }
        self.stock_level()
    }

    fn new_order(&mut self, now: u64) -> Request {
        let (fewest, most) = self.parameters.lines;
        let count = uniform(&mut self.client.random, fewest.into(), most.into());
        let lines: Vec<Line> = (0..count).map(|_| self.line()).collect();
        let topology = self.client.topology;
        let suppliers = lines.iter().map(|line| topology.home_of(line.supplier));
        let reach = topology.reach(std::iter::once(self.client.home).chain(suppliers));
        let args = NewOrderArgs {
            warehouse: self.client.warehouse(),
            district: self.client.district(self.parameters.districts),
            customer: self.client.customer_number(),
            date: now,
            lines,
        };
        Request {
            procedure: NEW_ORDER,
            args: args.encode(),
            reach,
            pieces: 5 + 4 * count,
            waits_across_regions: false,
        }
    }

    fn line(&mut self) -> Line {
        let supplier = if self.client.chance(self.parameters.remote_lines) {
            self.client.other_warehouse()
        } else {
            self.client.warehouse()
        };
        let quantity = uniform(&mut self.client.random, 1, 10);
        Line {
            supplier,
            item: self.item(),
            quantity: u8::try_from(quantity).unwrap_or(1),
        }
    }

    fn item(&mut self) -> u32 {
        let (shards, items) = (self.client.topology.shards(), self.client.scale.items);
        let random = &mut self.client.random;
        match self.parameters.items {
            Items::OfHome if items >= shards => {
                let step = uniform(random, 0, items / shards - 1);
                1 + step * shards + self.client.home.0
            }
            Items::OfHome => uniform(random, 1, items),
            Items::Skewed => nurand(random, 8_191, scale::ITEM, 1, items),
        }
    }

    fn payment(&mut self, now: u64) -> Request {
        let at = if self.client.chance(self.parameters.remote_payments) {
            self.client.other_warehouse()
        } else {
            self.client.warehouse()
        };
        let by_name = self.parameters.payments_by_name;
        self.client
            .payment(at, by_name, self.parameters.districts, now)
    }

    fn delivery(&mut self, now: u64) -> Request {
        let (first_district, districts) = match self.parameters.districts {
            Districts::Own => (self.client.district(Districts::Own), 1),
            Districts::Any => (1, self.client.scale.districts),
        };
        let carrier = uniform(&mut self.client.random, 1, 10);
        let args = DeliveryArgs {
            warehouse: self.client.warehouse(),
            first_district,
            districts,
            carrier: u8::try_from(carrier).unwrap_or(1),
            date: now,
        };
        local(DELIVERY, args.encode(), 4 * u32::from(districts))
    }

    fn order_status(&mut self, _now: u64) -> Request {
        let customer = self.client.who(self.parameters.status_by_name);
        let args = OrderStatusArgs {
            warehouse: self.client.warehouse(),
            district: self.client.district(self.parameters.districts),
            customer,
        };
        let pieces = if customer.is_name() { 4 } else { 3 };
        local(ORDER_STATUS, args.encode(), pieces)
    }

    fn stock_level(&mut self) -> Request {
        let threshold = uniform(&mut self.client.random, 10, 20);
        let args = StockLevelArgs {
            warehouse: self.client.warehouse(),
            district: self.client.district(self.parameters.districts),
            threshold: u16::try_from(threshold).unwrap_or(10),
        };
        local(STOCK_LEVEL, args.encode(), 2)
    }
}

/// A request of one shard.
fn local(procedure: &'static str, args: Vec<u8>, pieces: u32) -> Request {
    Request {
        procedure,
        args,
        reach: Reach::Shard,
        pieces,
        waits_across_regions: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOPOLOGY: Topology = Topology {
        regions: 10,
        shards_per_region: 10,
    };

    /// Shares of 200,000 requests in percent.
    fn share(requests: &[Request], is: impl Fn(&Request) -> bool) -> f64 {
        let count = requests.iter().filter(|request| is(request)).count();
        #[allow(clippy::cast_precision_loss)] // far below 2^53
        let share = count as f64 / requests.len() as f64;
        share * 100.0
    }

    fn draw(topology: Topology, parameters: Parameters) -> Vec<Request> {
        const DRAWS: u32 = 200_000;
        let scale = Scale::full();
        let shards = topology.shards();
        let clients = (0..shards)
            .map(|client| Generator::new(topology, scale, parameters, client, ShardId(client), 4));
        let draw = |mut client: Generator| -> Vec<Request> {
            (0..DRAWS / shards)
                .map(|_| client.next_request(9))
                .collect()
        };
        clients.flat_map(draw).collect()
    }

    fn assert_near(what: &str, share: f64, expected: f64, tolerance: f64) {
        let difference = (share - expected).abs();
        assert!(
            difference < tolerance,
            "{what}: {share} instead of {expected}"
        );
    }

    #[test]
    fn shares_are_those_published() {
        let requests = draw(TOPOLOGY, Parameters::as_published());
        let of = |name: &'static str| move |request: &Request| request.procedure == name;
        assert_near("new orders", share(&requests, of(NEW_ORDER)), 44.0, 0.5);
        assert_near("deliveries", share(&requests, of(DELIVERY)), 4.0, 0.2);
        assert_near("stock levels", share(&requests, of(STOCK_LEVEL)), 4.0, 0.2);
        let crossing = |request: &Request| !request.reach.is_local();
        assert_near("crossing", share(&requests, crossing), 10.0, 0.3);
        let waiting = |request: &Request| request.waits_across_regions;
        assert_near("waiting", share(&requests, waiting), 2.4, 0.15);
        for (name, crossing, in_region) in [(NEW_ORDER, 9.1, 0.9), ("tpcc.payment", 13.6, 1.4)] {
            let all: Vec<Request> = requests
                .iter()
                .filter(|at| at.procedure == name)
                .cloned()
                .collect();
            let reaches = |reach| share(&all, |request: &Request| request.reach == reach);
            assert_near(name, reaches(Reach::Regions), crossing, 0.5);
            assert_near(name, reaches(Reach::Region), in_region, 0.2);
        }
        let pieces: u32 = requests.iter().map(|request| request.pieces).sum();
        assert_near("pieces", f64::from(pieces) / 200_000.0, 23.6, 0.5);
    }

    #[test]
    fn shares_on_fewer_regions_are_those_published() {
        let topology = Topology {
            regions: 4,
            shards_per_region: 2,
        };
        let requests = draw(topology, Parameters::as_published());
        let crossing = |request: &Request| !request.reach.is_local();
        assert_near("crossing", share(&requests, crossing), 9.5, 0.3);
    }

    #[test]
    fn the_standard_has_more_names_and_all_districts() {
        let requests = draw(TOPOLOGY, Parameters::standard());
        let of = |name: &'static str| move |request: &Request| request.procedure == name;
        assert_near("new orders", share(&requests, of(NEW_ORDER)), 45.0, 0.5);
        assert_near("payments", share(&requests, of("tpcc.payment")), 43.0, 0.5);
        let waiting = |request: &Request| request.waits_across_regions;
        assert_near("waiting", share(&requests, waiting), 3.5, 0.2);
        let delivery = requests
            .iter()
            .find(|request| request.procedure == DELIVERY);
        let args = DeliveryArgs::decode(&delivery.unwrap().args).unwrap();
        assert_eq!((args.first_district, args.districts), (1, 10));
    }

    #[test]
    fn one_shard_never_leaves_home() {
        let topology = Topology {
            regions: 1,
            shards_per_region: 1,
        };
        let requests = draw(topology, Parameters::as_published());
        assert!(requests.iter().all(|request| request.reach == Reach::Shard));
    }

    #[test]
    fn orders_are_of_the_home_shards_items() {
        let requests = draw(TOPOLOGY, Parameters::as_published());
        let orders = requests
            .iter()
            .filter(|request| request.procedure == NEW_ORDER);
        for request in orders.take(1_000) {
            let order = NewOrderArgs::decode(&request.args).unwrap();
            assert!((6..=15).contains(&order.lines.len()));
            for line in order.lines {
                assert_eq!((line.item - 1) % TOPOLOGY.shards(), order.warehouse.0);
                assert!(line.item <= Scale::full().items);
            }
        }
    }
}
