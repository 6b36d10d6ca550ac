//! The consistency conditions of TPC-C (clause 3.3.2), over the rows of all shards.

use std::collections::BTreeMap;

use manxdb_storage::Direction;
use manxdb_txn::rows::Rows;

use super::keys::{self, Key, Table};
use super::parameters::PaymentSums;
use super::rows::{
    Customer, CustomerNumbers, District, History, Order, OrderLine, Paid, Row, Stock, Warehouse,
};
use super::scale::Scale;
use super::template::warehouse_paid_before;
use crate::{Partition, Topology};

/// Says what is wrong with the warehouses, one on each shard; `shards` are one replica of each.
///
/// | condition | of the standard |
/// |---|---|
/// | w_ytd = Σ d_ytd, or as it was if no payment writes it, and each is the sum of its payments | 1, 8, 9 |
/// | d_next_o_id − 1 = the last order, and the last new order if there is one | 2 |
/// | the new orders are those without a carrier, without a gap | 3, 5 |
/// | each order has as many lines as it says, delivered if it is | 4, 6, 7 |
/// | balance = Σ delivered lines − Σ payments, and the sums and counts beside it | 10, 11, 12 |
/// | each stock row counts the lines it supplied, everywhere | – |
#[must_use]
pub fn check(shards: &[Rows], topology: Topology, scale: Scale, sums: PaymentSums) -> Vec<String> {
    let mut check = Check {
        scale,
        sums,
        supplied: BTreeMap::new(),
        paid: BTreeMap::new(),
        received: BTreeMap::new(),
        wrong: Vec::new(),
    };
    let warehouses = || (0..).map(Partition).zip(shards);
    debug_assert_eq!(shards.len(), topology.shards() as usize);
    for (w, rows) in warehouses() {
        check.sums(w, rows);
        for d in 1..=scale.districts {
            check.orders(w, d, rows);
        }
    }
    // Payments and lines of one warehouse may be about customers and stock of another.
    for (w, rows) in warehouses() {
        check.customers(w, rows);
        check.stock(w, rows);
    }
    check.wrong
}

/// A customer: warehouse, district, number.
type CustomerName = (u32, u8, u32);

struct Check {
    scale: Scale,
    sums: PaymentSums,
    /// By supplier and item: quantity, lines, lines from other warehouses.
    supplied: BTreeMap<(u32, u32), (u32, u32, u32)>,
    /// By customer: sum and number of payments.
    paid: BTreeMap<CustomerName, (i64, u32)>,
    /// By customer: sum of delivered lines and number of delivered orders.
    received: BTreeMap<CustomerName, (i64, u32)>,
    wrong: Vec<String>,
}

/// All rows whose keys begin with a key.
fn scan<R: Row>(rows: &Rows, prefix: Key) -> Vec<(Vec<u8>, R)> {
    let page = rows.scan(&prefix.range(), Direction::Forward, usize::MAX);
    let decoded = page.into_iter().map(|(key, value)| {
        let row = R::decode(&value);
        (key, row)
    });
    decoded.filter_map(|(key, row)| Some((key, row?))).collect()
}

fn numbers(rows: &Rows, prefix: Key) -> Vec<u32> {
    let page = rows.scan(&prefix.range(), Direction::Forward, usize::MAX);
    page.iter().map(|(key, _)| keys::last_number(key)).collect()
}

fn get<R: Row>(rows: &Rows, key: &Key) -> Option<R> {
    R::decode(&rows.get(key.as_slice())?)
}

impl Check {
    fn expect<T: PartialEq + std::fmt::Debug>(
        &mut self,
        what: &str,
        w: Partition,
        found: T,
        expected: T,
    ) {
        if found != expected {
            let w = w.0;
            self.wrong
                .push(format!("warehouse {w}: {what} {found:?}, not {expected:?}"));
        }
    }

    fn sums(&mut self, w: Partition, rows: &Rows) {
        let warehouse: Option<Warehouse> = get(rows, &keys::warehouse(w));
        let paid: Option<Paid> = get(rows, &keys::warehouse_paid(w));
        let districts: Vec<(_, Paid)> = scan(rows, keys::table(w, Table::DistrictPaid));
        let sum = match self.sums {
            PaymentSums::Tpcc => districts.iter().map(|(_, district)| district.ytd).sum(),
            PaymentSums::Published => warehouse_paid_before(self.scale),
        };
        self.expect("sum of the year", w, paid.map(|row| row.ytd), Some(sum));
        self.expect("number", w, warehouse.map(|row| row.name), Some(w.0));
        let count = u8::try_from(districts.len()).unwrap_or(u8::MAX);
        self.expect("districts", w, count, self.scale.districts);
        for (d, (_, district)) in (1..).zip(districts) {
            let mut paid_here = 0;
            let history = keys::table(w, Table::History).byte(d);
            for (_, payment) in scan::<History>(rows, history) {
                paid_here += payment.amount;
                let customer = (payment.warehouse, payment.district, payment.customer);
                let paid = self.paid.entry(customer).or_default();
                paid.0 += payment.amount;
                paid.1 += 1;
            }
            self.expect("sum of a district's year", w, district.ytd, paid_here);
        }
    }

    fn orders(&mut self, w: Partition, d: u8, rows: &Rows) {
        let district: Option<District> = get(rows, &keys::district(w, d));
        let next = district.map_or(0, |district| district.next_order);
        let orders: Vec<(_, Order)> = scan(rows, keys::orders(w, d));
        let count = u32::try_from(orders.len()).unwrap_or(u32::MAX);
        self.expect("orders", w, count, next.saturating_sub(1));
        let last = orders.last().map(|(key, _)| keys::last_number(key));
        self.expect(
            "last order",
            w,
            last,
            next.checked_sub(1).filter(|last| *last > 0),
        );
        let new = numbers(rows, keys::new_orders(w, d));
        let without_carrier = orders.iter().filter(|(_, order)| order.carrier == 0);
        let expected: Vec<u32> = without_carrier
            .map(|(key, _)| keys::last_number(key))
            .collect();
        self.expect("new orders", w, &new, &expected);
        if let (Some(first), Some(newest)) = (new.first(), new.last()) {
            self.expect("last new order", w, *newest + 1, next);
            let gapless = u32::try_from(new.len()).unwrap_or(u32::MAX);
            self.expect(
                "new orders from first to last",
                w,
                newest - first + 1,
                gapless,
            );
        }
        let by_customer = numbers(rows, keys::orders_by_customer(w, d)).len();
        self.expect("orders by customer", w, by_customer, orders.len());
        let mut lines: BTreeMap<u32, Vec<OrderLine>> = BTreeMap::new();
        for (key, line) in scan::<OrderLine>(rows, keys::order_lines(w, d)) {
            let of_order = key
                .split_last()
                .map_or(0, |(_, order)| keys::last_number(order));
            lines.entry(of_order).or_default().push(line);
        }
        for (key, order) in &orders {
            let number = keys::last_number(key);
            let lines = lines.remove(&number).unwrap_or_default();
            self.order((w, d, number), order, &lines);
        }
        self.expect("lines without an order", w, lines.len(), 0);
    }

    fn order(&mut self, (w, d, number): (Partition, u8, u32), order: &Order, lines: &[OrderLine]) {
        self.expect("lines of an order", w, lines.len(), order.lines.into());
        let is_delivered = order.carrier != 0;
        let as_order = lines
            .iter()
            .all(|line| (line.delivered != 0) == is_delivered);
        self.expect("lines as delivered as their order", w, as_order, true);
        let is_local = lines.iter().all(|line| line.supplier == w.0);
        self.expect("order of home only", w, order.all_local, u8::from(is_local));
        let is_initial = number <= self.scale.orders_per_district;
        if is_delivered {
            let received = self.received.entry((w.0, d, order.customer)).or_default();
            received.0 += lines.iter().map(|line| line.amount).sum::<i64>();
            // What was delivered before the start is in nobody's count.
            let was_before = number <= self.scale.delivered();
            received.1 += u32::from(!was_before);
        }
        for line in lines.iter().filter(|_| !is_initial) {
            let supplied = self.supplied.entry((line.supplier, line.item)).or_default();
            supplied.0 += u32::from(line.quantity);
            supplied.1 += 1;
            supplied.2 += u32::from(line.supplier != w.0);
        }
    }

    fn customers(&mut self, w: Partition, rows: &Rows) {
        for d in 1..=self.scale.districts {
            let customers: Vec<(_, Customer)> = scan(rows, keys::customers(w, d));
            let count = u32::try_from(customers.len()).unwrap_or(u32::MAX);
            self.expect("customers", w, count, self.scale.customers_per_district);
            for (key, customer) in customers {
                let name = (w.0, d, keys::last_number(&key));
                self.customer(w, name, customer.numbers);
            }
        }
    }

    fn customer(&mut self, w: Partition, name: CustomerName, row: CustomerNumbers) {
        let paid = self.paid.get(&name).copied().unwrap_or_default();
        let received = self.received.get(&name).copied().unwrap_or_default();
        self.expect("payments of a customer", w, (row.paid, row.payments), paid);
        self.expect("balance of a customer", w, row.balance, received.0 - paid.0);
        self.expect("deliveries to a customer", w, row.deliveries, received.1);
    }

    fn stock(&mut self, w: Partition, rows: &Rows) {
        let stock: Vec<(_, Stock)> = scan(rows, keys::table(w, Table::Stock));
        let count = u32::try_from(stock.len()).unwrap_or(u32::MAX);
        self.expect("stock rows", w, count, self.scale.items);
        for (key, row) in stock {
            let item = (w.0, keys::last_number(&key));
            let supplied = self.supplied.get(&item).copied().unwrap_or_default();
            let counted = (row.ytd, row.orders, row.remote_orders);
            self.expect("items taken from stock", w, counted, supplied);
            self.expect("stock at least ten", w, row.quantity >= 10, true);
        }
    }
}
