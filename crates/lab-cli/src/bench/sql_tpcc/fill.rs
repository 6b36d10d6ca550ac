//! The rows that the tables begin with (clause 4.3), in INSERTs of many rows.

use std::fmt::Write as _;

use manxdb_workloads::Random;
use manxdb_workloads::tpcc::Scale;
use mysql::Conn;
use mysql::prelude::Queryable as _;

use super::schema::{TABLES, last_name};
use crate::fault::Fault;

/// Bytes of an INSERT after which the next is begun.
const STATEMENT_BYTES: usize = 256 << 10;

/// Makes the tables and fills `warehouses` warehouses; tables that are there go first.
///
/// # Errors
/// The server's.
pub fn run(conn: &mut Conn, warehouses: u32, scale: Scale, seed: u64) -> Result<(), Fault> {
    for (name, columns) in TABLES {
        conn.query_drop(format!("DROP TABLE IF EXISTS {name}"))?;
        conn.query_drop(format!("CREATE TABLE {name} ({columns})"))?;
    }
    let mut fill = Fill {
        conn,
        random: Random::new(seed),
        scale,
    };
    fill.items()?;
    for w in 1..=warehouses {
        fill.warehouse(w)?;
        fill.stock(w)?;
        for d in 1..=scale.districts {
            fill.customers(w, d)?;
            fill.orders(w, d)?;
        }
        eprintln!("bench: warehouse {w} of {warehouses} filled");
    }
    Ok(())
}

struct Fill<'a> {
    conn: &'a mut Conn,
    random: Random,
    scale: Scale,
}

/// Rows of one table on their way.
struct Rows {
    table: &'static str,
    text: String,
}

impl Rows {
    fn of(table: &'static str) -> Self {
        Self {
            table,
            text: String::new(),
        }
    }

    /// Adds a row, written as SQL.
    fn add(&mut self, conn: &mut Conn, row: &str) -> Result<(), Fault> {
        if self.text.is_empty() {
            let _ = write!(self.text, "INSERT INTO {} VALUES ({row})", self.table);
        } else {
            let _ = write!(self.text, ",({row})");
        }
        if self.text.len() >= STATEMENT_BYTES {
            self.send(conn)?;
        }
        Ok(())
    }

    fn send(&mut self, conn: &mut Conn) -> Result<(), Fault> {
        if !self.text.is_empty() {
            conn.query_drop(std::mem::take(&mut self.text))?;
        }
        Ok(())
    }
}

impl Fill<'_> {
    fn uniform(&mut self, low: u64, high: u64) -> u64 {
        low + self.random.below(high - low + 1)
    }

    /// Letters, `low` to `high` of them, quoted.
    fn letters(&mut self, low: u64, high: u64) -> String {
        let length = self.uniform(low, high);
        let letter = |bits: u64| char::from(b'a' + u8::try_from(bits % 26).unwrap_or_default());
        let letters = (0..length).map(|_| letter(self.random.next_bits()));
        format!("'{}'", letters.collect::<String>())
    }

    fn address(&mut self) -> String {
        let [one, two, city] = [(10, 20); 3].map(|(low, high)| self.letters(low, high));
        let zip = self.uniform(0, 9_999);
        format!("{one},{two},{city},'CA','{zip:04}11111'")
    }

    fn items(&mut self) -> Result<(), Fault> {
        let mut rows = Rows::of("item");
        for i in 1..=self.scale.items {
            let (image, price) = (self.uniform(1, 10_000), self.uniform(100, 10_000));
            let (name, data) = (self.letters(14, 24), self.data());
            let row = format!("{i},{image},{name},{},{data}", hundredths(price));
            rows.add(self.conn, &row)?;
        }
        rows.send(self.conn)
    }

    /// One in ten has ORIGINAL in it.
    fn data(&mut self) -> String {
        let data = self.letters(26, 42);
        if self.random.below(10) == 0 {
            return format!("{}ORIGINAL'", &data[..data.len() - 1]);
        }
        data
    }

    fn warehouse(&mut self, w: u32) -> Result<(), Fault> {
        let mut rows = Rows::of("warehouse");
        let districts = u64::from(self.scale.districts);
        let ytd = hundredths(3_000_000 * districts);
        let (address, tax) = (self.address(), self.uniform(0, 2_000));
        rows.add(self.conn, &format!("{w},'ware',{address},0.{tax:04},{ytd}"))?;
        rows.send(self.conn)?;
        let mut rows = Rows::of("district");
        for d in 1..=self.scale.districts {
            let (address, tax) = (self.address(), self.uniform(0, 2_000));
            let next = self.scale.orders_per_district + 1;
            let row = format!("{d},{w},'dist',{address},0.{tax:04},30000.00,{next}");
            rows.add(self.conn, &row)?;
        }
        rows.send(self.conn)
    }

    fn stock(&mut self, w: u32) -> Result<(), Fault> {
        let mut rows = Rows::of("stock");
        for i in 1..=self.scale.items {
            let quantity = self.uniform(10, 100);
            let district = self.letters(24, 24);
            let districts = [district.as_str(); 10].join(",");
            let data = self.data();
            rows.add(
                self.conn,
                &format!("{i},{w},{quantity},{districts},0,0,0,{data}"),
            )?;
        }
        rows.send(self.conn)
    }

    fn customers(&mut self, w: u32, d: u8) -> Result<(), Fault> {
        let (mut rows, mut history) = (Rows::of("customer"), Rows::of("history"));
        let paid = 3_000_000 / u64::from(self.scale.customers_per_district);
        let rest = 3_000_000 % u64::from(self.scale.customers_per_district);
        for c in 1..=self.scale.customers_per_district {
            let last = self.last_name(c);
            let (first, address, data) =
                (self.letters(8, 16), self.address(), self.letters(300, 500));
            let credit = if self.random.below(10) == 0 {
                "BC"
            } else {
                "GC"
            };
            let discount = self.uniform(0, 5_000);
            let row = format!(
                "{c},{d},{w},{first},'OE','{last}',{address},'0123456789012345',NOW(),'{credit}',\
                 50000.00,0.{discount:04},-10.00,10.00,1,0,{data}"
            );
            rows.add(self.conn, &row)?;
            // The sums of a district are what its customers have paid, at any scale.
            let paid = if c == 1 { paid + rest } else { paid };
            let mut amount = paid;
            while amount > 0 {
                let part = amount.min(900_000);
                amount -= part;
                let note = self.letters(12, 24);
                let row = format!("{c},{d},{w},{d},{w},NOW(),{},{note}", hundredths(part));
                history.add(self.conn, &row)?;
            }
        }
        rows.send(self.conn)?;
        history.send(self.conn)
    }

    fn last_name(&mut self, customer: u32) -> String {
        let names = u32::from(self.scale.last_names());
        let number = if customer <= names {
            customer - 1
        } else {
            let mixed = self.uniform(0, 255) | self.uniform(0, 999);
            u32::try_from((mixed + 157) % 1_000).unwrap_or_default() % names
        };
        last_name(u16::try_from(number).unwrap_or_default())
    }

    fn orders(&mut self, w: u32, d: u8) -> Result<(), Fault> {
        let mut customers: Vec<u32> = (1..=self.scale.customers_per_district).collect();
        for at in (1..customers.len()).rev() {
            let other = self.random.below(at as u64 + 1);
            customers.swap(at, usize::try_from(other).unwrap_or_default());
        }
        let [mut orders, mut new, mut lines] = ["orders", "new_order", "order_line"].map(Rows::of);
        let of_order = customers.iter().cycle();
        for (o, c) in (1..=self.scale.orders_per_district).zip(of_order) {
            let is_delivered = o <= self.scale.delivered();
            let count = self.uniform(5, 15);
            let (carrier, date) = if is_delivered {
                (self.uniform(1, 10).to_string(), "NOW()")
            } else {
                new.add(self.conn, &format!("{o},{d},{w}"))?;
                ("NULL".to_owned(), "NULL")
            };
            orders.add(
                self.conn,
                &format!("{o},{d},{w},{c},NOW(),{carrier},{count},1"),
            )?;
            for number in 1..=count {
                let item = self.uniform(1, self.scale.items.into());
                let amount = if is_delivered {
                    0
                } else {
                    self.uniform(1, 999_999)
                };
                let note = self.letters(24, 24);
                let amount = hundredths(amount);
                let row = format!("{o},{d},{w},{number},{item},{w},{date},5,{amount},{note}");
                lines.add(self.conn, &row)?;
            }
        }
        orders.send(self.conn)?;
        new.send(self.conn)?;
        lines.send(self.conn)
    }
}

/// An amount of hundredths as SQL writes it.
pub fn hundredths(amount: u64) -> String {
    format!("{}.{:02}", amount / 100, amount % 100)
}
