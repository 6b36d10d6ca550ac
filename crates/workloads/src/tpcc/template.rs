//! The rows of one warehouse at the start.

use super::keys::{self, Key, Table};
use super::rows::{
    Customer, CustomerNumbers, Delivered, District, History, Item, Order, OrderLine, Paid, Row,
    Stock, Warehouse,
};
use super::scale::{self, Scale, uniform};
use crate::{Partition, Random};

/// Date of everything that happened before the start.
const BEFORE: u64 = 1;
/// The client of the payments before the start.
const NOBODY: u32 = u32::MAX;
/// What each customer has paid before the start, in hundredths.
pub(super) const PAID_BEFORE: i64 = 1_000;

/// The rows of one warehouse at the start, in key order, with a gap for its number.
#[derive(Debug)]
pub struct Template {
    scale: Scale,
    tables: Vec<Part>,
    rows: usize,
}

/// The rows of one table: all keys as long as each other, and all values.
#[derive(Debug)]
struct Part {
    table: Table,
    /// Rows of the tables before.
    before: usize,
    key_bytes: usize,
    row_bytes: usize,
    /// Key without partition, and value; row by row.
    bytes: Vec<u8>,
    /// The value begins with the warehouse's number.
    is_numbered: bool,
}

impl Part {
    fn len(&self) -> usize {
        self.bytes.len() / self.row_bytes
    }

    fn row(&self, index: usize) -> (&[u8], &[u8]) {
        let row = &self.bytes[index * self.row_bytes..][..self.row_bytes];
        row.split_at(self.key_bytes)
    }

    /// Rows whose key is below `suffix`, or up to it.
    fn position(&self, suffix: &[u8], with_it: bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            let (key, _) = self.row(middle);
            if key < suffix || (with_it && key == suffix) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn value(&self, value: &[u8], w: Partition) -> Vec<u8> {
        let mut value = value.to_vec();
        if self.is_numbered {
            value[..4].copy_from_slice(&w.0.to_le_bytes());
        }
        value
    }
}

impl Template {
    /// A warehouse of this size, random by `seed`.
    #[must_use]
    pub fn new(scale: Scale, seed: u64) -> Self {
        let mut template = Self {
            scale,
            tables: Vec::new(),
            rows: 0,
        };
        for table in fill(scale, &mut Random::new(seed)) {
            template.add(table);
        }
        template
    }

    /// Its size.
    #[must_use]
    pub fn scale(&self) -> Scale {
        self.scale
    }

    fn add(&mut self, (table, mut rows): (Table, Filled)) {
        rows.sort_unstable();
        let Some((key, value)) = rows.first() else {
            return;
        };
        let part = Part {
            table,
            before: self.rows,
            key_bytes: key.len(),
            row_bytes: key.len() + value.len(),
            bytes: rows
                .iter()
                .flat_map(|(key, value)| [key, value])
                .flatten()
                .copied()
                .collect(),
            is_numbered: matches!(table, Table::Warehouse | Table::History | Table::OrderLine),
        };
        assert_eq!(part.len(), rows.len(), "rows of one length");
        self.rows += part.len();
        self.tables.push(part);
    }

    pub(super) fn len(&self) -> usize {
        self.rows
    }

    fn part(&self, suffix: &[u8]) -> Option<&Part> {
        let table = *suffix.first()?;
        self.tables.iter().find(|part| part.table as u8 == table)
    }

    pub(super) fn get(&self, suffix: &[u8], w: Partition) -> Option<Vec<u8>> {
        let part = self.part(suffix)?;
        let guess = self.guess(part, suffix).filter(|index| *index < part.len());
        if let Some(index) = guess {
            let (key, value) = part.row(index);
            if key == suffix {
                return Some(part.value(value, w));
            }
        }
        let index = part.position(suffix, false);
        if index == part.len() {
            return None;
        }
        let (key, value) = part.row(index);
        (key == suffix).then(|| part.value(value, w))
    }

    /// Where a row is if its table numbers its rows from 1, in each district if it has districts.
    fn guess(&self, part: &Part, suffix: &[u8]) -> Option<usize> {
        let number = usize::try_from(keys::last_number(suffix))
            .ok()?
            .checked_sub(1)?;
        match suffix {
            [_, _, _, _, _] => Some(number),
            [_, district, _, _, _, _] => {
                let rows_each = part.len() / usize::from(self.scale.districts);
                Some(usize::from(*district).checked_sub(1)? * rows_each + number)
            }
            _ => None,
        }
    }

    /// Rows below `suffix`, or up to it.
    pub(super) fn position(&self, suffix: &[u8], with_it: bool) -> usize {
        let Some(table) = suffix.first() else {
            return 0;
        };
        let next = self.tables.iter().find(|part| part.table as u8 >= *table);
        next.map_or(self.rows, |part| {
            part.before + part.position(suffix, with_it)
        })
    }

    /// Key without partition, and the value for warehouse `w`.
    pub(super) fn row(&self, index: usize, w: Partition) -> Option<(&[u8], Vec<u8>)> {
        let after = self.tables.partition_point(|part| part.before <= index);
        let part = self.tables.get(after.checked_sub(1)?)?;
        let index = index - part.before;
        (index < part.len()).then(|| {
            let (key, value) = part.row(index);
            (key, part.value(value, w))
        })
    }
}

type Filled = Vec<(Vec<u8>, Vec<u8>)>;

const W: Partition = Partition(0);

fn add(rows: &mut Filled, key: Key, row: &impl Row) {
    add_bytes(rows, key, row.encode());
}

fn add_bytes(rows: &mut Filled, key: Key, value: Vec<u8>) {
    rows.push((key.as_slice()[Partition::KEY_BYTES..].to_vec(), value));
}

/// All tables in the order of their keys.
/// The sum of the payments at a warehouse before the first transaction.
pub(super) fn warehouse_paid_before(scale: Scale) -> i64 {
    let customers = i64::from(scale.customers_per_district) * i64::from(scale.districts);
    customers * PAID_BEFORE
}

fn fill(scale: Scale, random: &mut Random) -> Vec<(Table, Filled)> {
    let mut filled: Vec<(Table, Filled)> = Vec::new();
    let customers = i64::from(scale.customers_per_district);
    let district_ytd = customers * PAID_BEFORE;
    let mut warehouse = Filled::new();
    let row = Warehouse {
        name: 0,
        tax: tax(random),
    };
    add(&mut warehouse, keys::warehouse(W), &row);
    filled.push((Table::Warehouse, warehouse));
    let mut warehouse_paid = Filled::new();
    let ytd = warehouse_paid_before(scale);
    add(&mut warehouse_paid, keys::warehouse_paid(W), &Paid { ytd });
    filled.push((Table::WarehousePaid, warehouse_paid));
    let mut districts = Filled::new();
    let mut districts_paid = Filled::new();
    for d in 1..=scale.districts {
        let row = District {
            tax: tax(random),
            next_order: scale.orders_per_district + 1,
        };
        add(&mut districts, keys::district(W, d), &row);
        let paid = Paid { ytd: district_ytd };
        add(&mut districts_paid, keys::district_paid(W, d), &paid);
    }
    filled.push((Table::DistrictPaid, districts_paid));
    filled.push((Table::District, districts));
    fill_customers(scale, random, &mut filled);
    fill_orders(scale, random, &mut filled);
    fill_stock(scale, random, &mut filled);
    filled.sort_by_key(|(table, _)| *table);
    filled
}

fn tax(random: &mut Random) -> u16 {
    u16::try_from(uniform(random, 0, 2_000)).unwrap_or_default()
}

fn fill_customers(scale: Scale, random: &mut Random, filled: &mut Vec<(Table, Filled)>) {
    let (mut customers, mut names, mut history) = (Filled::new(), Filled::new(), Filled::new());
    for d in 1..=scale.districts {
        for c in 1..=scale.customers_per_district {
            // The first thousand have each name once.
            let last = match u16::try_from(c - 1) {
                Ok(name) if name < scale.last_names() => name,
                _ => scale::last_name(random, scale::NAME_AT_LOAD, scale),
            };
            let first = uniform(random, 0, u32::MAX - 1);
            let numbers = CustomerNumbers {
                balance: -PAID_BEFORE,
                paid: PAID_BEFORE,
                payments: 1,
                deliveries: 0,
                last,
                first,
                discount: u16::try_from(uniform(random, 0, 5_000)).unwrap_or_default(),
                bad_credit: u8::from(uniform(random, 1, 10) == 1),
            };
            let data = Vec::new();
            add(
                &mut customers,
                keys::customer(W, d, c),
                &Customer { numbers, data },
            );
            add_bytes(
                &mut names,
                keys::customer_by_name(W, d, last, first, c),
                Vec::new(),
            );
            let payment = History {
                warehouse: 0,
                district: d,
                customer: c,
                amount: PAID_BEFORE,
                date: BEFORE,
            };
            add(&mut history, keys::history(W, d, NOBODY, c), &payment);
        }
    }
    filled.push((Table::Customer, customers));
    filled.push((Table::CustomerByName, names));
    filled.push((Table::History, history));
}

fn fill_orders(scale: Scale, random: &mut Random, filled: &mut Vec<(Table, Filled)>) {
    let (mut orders, mut by_customer) = (Filled::new(), Filled::new());
    let (mut lines, mut new_orders, mut delivered) = (Filled::new(), Filled::new(), Filled::new());
    for d in 1..=scale.districts {
        let customers = shuffled(scale.customers_per_district, random);
        let last = scale.delivered();
        add(&mut delivered, keys::delivered(W, d), &Delivered { last });
        for o in 1..=scale.orders_per_district {
            let is_new = o > last;
            let at = (o - 1) % scale.customers_per_district;
            let customer = customers[at as usize];
            let count = u8::try_from(uniform(random, 5, 15)).unwrap_or(5);
            let order = Order {
                customer,
                date: BEFORE,
                carrier: if is_new { 0 } else { 1 + (o % 10) as u8 },
                lines: count,
                all_local: 1,
            };
            add(&mut orders, keys::order(W, d, o), &order);
            add_bytes(
                &mut by_customer,
                keys::order_by_customer(W, d, customer, o),
                Vec::new(),
            );
            if is_new {
                add_bytes(&mut new_orders, keys::new_order(W, d, o), Vec::new());
            }
            for number in 1..=count {
                let amount = if is_new {
                    uniform(random, 1, 999_999)
                } else {
                    0
                };
                let line = OrderLine {
                    supplier: 0,
                    item: uniform(random, 1, scale.items),
                    quantity: 5,
                    amount: amount.into(),
                    delivered: if is_new { 0 } else { BEFORE },
                };
                add(&mut lines, keys::order_line(W, d, o, number), &line);
            }
        }
    }
    filled.push((Table::Order, orders));
    filled.push((Table::OrderByCustomer, by_customer));
    filled.push((Table::OrderLine, lines));
    filled.push((Table::NewOrder, new_orders));
    filled.push((Table::Delivered, delivered));
}

fn shuffled(count: u32, random: &mut Random) -> Vec<u32> {
    let mut numbers: Vec<u32> = (1..=count).collect();
    for last in (1..numbers.len()).rev() {
        let other = random.below(last as u64 + 1);
        numbers.swap(last, usize::try_from(other).unwrap_or(last));
    }
    numbers
}

fn fill_stock(scale: Scale, random: &mut Random, filled: &mut Vec<(Table, Filled)>) {
    let (mut items, mut stock) = (Filled::new(), Filled::new());
    for i in 1..=scale.items {
        let original = |random: &mut Random| u8::from(uniform(random, 1, 10) == 1);
        let item = Item {
            price: uniform(random, 100, 10_000),
            original: original(random),
        };
        add(&mut items, keys::item(W, i), &item);
        let row = Stock {
            quantity: u16::try_from(uniform(random, 10, 100)).unwrap_or(10),
            ytd: 0,
            orders: 0,
            remote_orders: 0,
            original: original(random),
        };
        add(&mut stock, keys::stock(W, i), &row);
    }
    filled.push((Table::Item, items));
    filled.push((Table::Stock, stock));
}
