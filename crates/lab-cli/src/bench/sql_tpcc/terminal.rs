//! A terminal: the five transactions as SQL, with prepared statements.
//!
//! What is asked for comes from the same generator as the one-shot transactions of
//! `manxdb-workloads`; the statements are those that tools for MySQL send. One NewOrder in a
//! hundred is rolled back (clause 2.4.1.4).

use manxdb_workloads::Random;
use manxdb_workloads::tpcc::{
    DELIVERY, DeliveryArgs, NEW_ORDER, NewOrderArgs, ORDER_STATUS, OrderStatusArgs, PAYMENT,
    PaymentArgs, STOCK_LEVEL, StockLevelArgs, Who,
};
use mysql::prelude::{FromRow, Queryable as _};
use mysql::{Conn, Params, Value};

use super::fill::hundredths;
use super::schema::last_name;
use crate::fault::Fault;

/// A transaction to be made.
#[derive(Debug, Clone)]
pub enum Job {
    /// Clause 2.4. `rolled_back`: its last item is not on sale.
    NewOrder {
        args: NewOrderArgs,
        rolled_back: bool,
    },
    /// Clause 2.5.
    Payment(PaymentArgs),
    /// Clause 2.6.
    OrderStatus(OrderStatusArgs),
    /// Clause 2.7.
    Delivery(DeliveryArgs),
    /// Clause 2.8.
    StockLevel(StockLevelArgs),
}

impl Job {
    /// What the generator's request asks for.
    ///
    /// # Errors
    /// Arguments that the generator does not make.
    pub fn of(procedure: &str, args: &[u8], random: &mut Random) -> Result<Self, Fault> {
        let job = match procedure {
            NEW_ORDER => NewOrderArgs::decode(args).map(|args| Self::NewOrder {
                args,
                rolled_back: random.below(100) == 0,
            }),
            PAYMENT => PaymentArgs::decode(args).map(Self::Payment),
            ORDER_STATUS => OrderStatusArgs::decode(args).map(Self::OrderStatus),
            DELIVERY => DeliveryArgs::decode(args).map(Self::Delivery),
            STOCK_LEVEL => StockLevelArgs::decode(args).map(Self::StockLevel),
            other => return Err(Fault::Other(format!("no transaction is called {other}"))),
        };
        job.map_err(|error| Fault::Other(error.to_string()))
    }

    /// Name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NewOrder { .. } => "NewOrder",
            Self::Payment(_) => "Payment",
            Self::OrderStatus(_) => "OrderStatus",
            Self::Delivery(_) => "Delivery",
            Self::StockLevel(_) => "StockLevel",
        }
    }
}

/// How a transaction ended that the server did not refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Committed.
    Committed,
    /// Rolled back, as the standard wants of one NewOrder in a hundred.
    RolledBack,
}

/// Runs a transaction to its end. After an error it is still open: roll it back.
///
/// # Errors
/// The server's.
pub fn run(conn: &mut Conn, job: &Job) -> mysql::Result<Ended> {
    conn.query_drop("BEGIN")?;
    let mut terminal = Terminal { conn };
    let is_done = match job {
        Job::NewOrder { args, rolled_back } => terminal.new_order(args, *rolled_back)?,
        Job::Payment(args) => terminal.payment(args)?,
        Job::OrderStatus(args) => terminal.order_status(args)?,
        Job::Delivery(args) => terminal.delivery(args)?,
        Job::StockLevel(args) => terminal.stock_level(*args)?,
    };
    if !is_done {
        conn.query_drop("ROLLBACK")?;
        return Ok(Ended::RolledBack);
    }
    conn.query_drop("COMMIT")?;
    Ok(Ended::Committed)
}

struct Terminal<'a> {
    conn: &'a mut Conn,
}

/// Positional parameters.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$(Value::from($value)),*] };
}

impl Terminal<'_> {
    fn change(&mut self, text: &str, values: Vec<Value>) -> mysql::Result<()> {
        self.conn.exec_drop(text, Params::Positional(values))
    }

    fn rows<T: FromRow>(&mut self, text: &str, values: Vec<Value>) -> mysql::Result<Vec<T>> {
        self.conn.exec(text, Params::Positional(values))
    }

    /// The one row that must be there.
    fn row<T: FromRow>(&mut self, text: &str, values: Vec<Value>) -> mysql::Result<T> {
        let row = self.conn.exec_first(text, Params::Positional(values))?;
        row.ok_or_else(|| missing(text))
    }

    fn new_order(&mut self, args: &NewOrderArgs, rolled_back: bool) -> mysql::Result<bool> {
        let (w, d, c) = (args.warehouse.0 + 1, args.district, args.customer);
        let _: (String, String, String, String) = self.row(
            "SELECT CAST(c_discount AS CHAR), c_last, c_credit, CAST(w_tax AS CHAR) \
             FROM customer, warehouse \
             WHERE w_id = ? AND c_w_id = w_id AND c_d_id = ? AND c_id = ?",
            values![w, d, c],
        )?;
        let (o,): (u32,) = self.row(
            "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE",
            values![w, d],
        )?;
        self.change(
            "UPDATE district SET d_next_o_id = ? + 1 WHERE d_w_id = ? AND d_id = ?",
            values![o, w, d],
        )?;
        let lines = u64::try_from(args.lines.len()).unwrap_or_default();
        let all_local = args
            .lines
            .iter()
            .all(|line| line.supplier == args.warehouse);
        self.change(
            "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
             VALUES (?, ?, ?, ?, NOW(), ?, ?)",
            values![o, d, w, c, lines, all_local],
        )?;
        self.change(
            "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)",
            values![o, d, w],
        )?;
        let mut items: Vec<u32> = args.lines.iter().map(|line| line.item).collect();
        items.sort_unstable();
        items.dedup();
        let wanted = items.len();
        if rolled_back && let Some(last) = items.last_mut() {
            *last = u32::MAX >> 1;
        }
        let prices = self.prices(&items)?;
        if prices.len() < wanted {
            return Ok(false);
        }
        self.order_lines(args, o, &prices)
    }

    /// Prices in hundredths.
    fn prices(&mut self, items: &[u32]) -> mysql::Result<Vec<(u32, u64)>> {
        let text = format!(
            "SELECT i_id, CAST(i_price * 100 AS UNSIGNED) FROM item WHERE i_id IN ({})",
            vec!["?"; items.len()].join(",")
        );
        self.rows(&text, items.iter().map(|item| Value::from(*item)).collect())
    }

    fn order_lines(
        &mut self,
        args: &NewOrderArgs,
        o: u32,
        prices: &[(u32, u64)],
    ) -> mysql::Result<bool> {
        let (w, d) = (args.warehouse.0 + 1, args.district);
        let mut stocks: Vec<(u32, u32)> = args
            .lines
            .iter()
            .map(|line| (line.supplier.0 + 1, line.item))
            .collect();
        stocks.sort_unstable();
        stocks.dedup();
        let text = format!(
            "SELECT s_w_id, s_i_id, s_quantity, s_dist_{d:02} FROM stock \
             WHERE (s_w_id, s_i_id) IN ({}) FOR UPDATE",
            vec!["(?,?)"; stocks.len()].join(",")
        );
        let keys = stocks.iter().flat_map(|(w, i)| values![*w, *i]).collect();
        let mut stocks: Vec<(u32, u32, i64, String)> = self.rows(&text, keys)?;
        let mut inserted = Vec::with_capacity(args.lines.len() * 9);
        for (number, line) in (1_u32..).zip(&args.lines) {
            let at = (line.supplier.0 + 1, line.item);
            let stock = stocks.iter_mut().find(|stock| (stock.0, stock.1) == at);
            let stock = stock.ok_or_else(|| missing(&text))?;
            let quantity = i64::from(line.quantity);
            let refill = if stock.2 - quantity < 10 { 91 } else { 0 };
            stock.2 += refill - quantity;
            let is_remote = line.supplier != args.warehouse;
            self.change(
                "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, \
                 s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ? \
                 WHERE s_w_id = ? AND s_i_id = ?",
                values![stock.2, quantity, is_remote, at.0, at.1],
            )?;
            let price = prices.iter().find(|(item, _)| *item == line.item);
            let price = price.map_or(0, |(_, price)| *price);
            let amount = hundredths(price * u64::from(line.quantity));
            let row = values![
                o,
                d,
                w,
                number,
                line.item,
                at.0,
                quantity,
                amount,
                stock.3.as_str()
            ];
            inserted.extend(row);
        }
        let text = format!(
            "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, \
             ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) VALUES {}",
            vec!["(?,?,?,?,?,?,?,?,?)"; args.lines.len()].join(",")
        );
        self.change(&text, inserted)?;
        Ok(true)
    }

    fn payment(&mut self, args: &PaymentArgs) -> mysql::Result<bool> {
        let (w, d) = (args.warehouse.0 + 1, args.district);
        let (cw, cd) = (args.customer_warehouse.0 + 1, args.customer_district);
        let amount = hundredths(args.amount.into());
        let paid = amount.as_str();
        self.change(
            "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?",
            values![paid, w],
        )?;
        let (ware,): (String,) = self
            .row(
                "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse \
             WHERE w_id = ?",
                values![w],
            )
            .map(|row: (String, String, String, String, String, String)| (row.0,))?;
        self.change(
            "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?",
            values![paid, w, d],
        )?;
        let (district,): (String,) = self
            .row(
                "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district \
             WHERE d_w_id = ? AND d_id = ?",
                values![w, d],
            )
            .map(|row: (String, String, String, String, String, String)| (row.0,))?;
        let c = self.customer(cw, cd, args.customer)?;
        let (credit, data): (String, String) = self.row(
            "SELECT c_credit, c_data FROM customer \
             WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE",
            values![cw, cd, c],
        )?;
        let data = if credit == "BC" {
            let entry = format!("{c} {cd} {cw} {d} {w} {paid}|{data}");
            Some(entry.chars().take(500).collect::<String>())
        } else {
            None
        };
        self.change(
            "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
             c_payment_cnt = c_payment_cnt + 1, c_data = COALESCE(?, c_data) \
             WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            values![paid, paid, data, cw, cd, c],
        )?;
        self.change(
            "INSERT INTO history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, \
             h_data) VALUES (?, ?, ?, ?, ?, NOW(), ?, ?)",
            values![cd, cw, c, d, w, paid, format!("{ware}    {district}")],
        )?;
        Ok(true)
    }

    /// The number of a customer; of several with one last name, the one in the middle.
    fn customer(&mut self, w: u32, d: u8, who: Who) -> mysql::Result<u32> {
        let last = match who {
            Who::Number(number) => return Ok(number),
            Who::LastName(last) => last_name(last),
        };
        let text = "SELECT c_id FROM customer \
                    WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first";
        let found: Vec<(u32,)> = self.rows(text, values![w, d, last])?;
        let middle = found.len().saturating_sub(1) / 2;
        let found = found.get(middle).map(|(number,)| *number);
        found.ok_or_else(|| missing(text))
    }

    fn order_status(&mut self, args: &OrderStatusArgs) -> mysql::Result<bool> {
        let (w, d) = (args.warehouse.0 + 1, args.district);
        let c = self.customer(w, d, args.customer)?;
        let _: (String, String, String) = self.row(
            "SELECT CAST(c_balance AS CHAR), c_first, c_last FROM customer \
             WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            values![w, d, c],
        )?;
        let last: Vec<(u32, Option<u32>)> = self.rows(
            "SELECT o_id, o_carrier_id FROM orders \
             WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1",
            values![w, d, c],
        )?;
        if let Some((o, _)) = last.first() {
            let _: Vec<(u32, u32, u32, String)> = self.rows(
                "SELECT ol_i_id, ol_supply_w_id, ol_quantity, CAST(ol_amount AS CHAR) \
                 FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
                values![w, d, *o],
            )?;
        }
        Ok(true)
    }

    /// In batches, as tools do: each statement names the orders of all districts.
    fn delivery(&mut self, args: &DeliveryArgs) -> mysql::Result<bool> {
        let w = args.warehouse.0 + 1;
        let mut orders = Vec::new();
        for d in args.first_district..args.first_district + args.districts {
            let oldest: Vec<(u32,)> = self.rows(
                "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? \
                 ORDER BY no_o_id ASC LIMIT 1 FOR UPDATE",
                values![w, d],
            )?;
            orders.extend(oldest.first().map(|(o,)| (d, *o)));
        }
        if orders.is_empty() {
            return Ok(true);
        }
        let list = vec!["(?,?,?)"; orders.len()].join(",");
        let keys: Vec<Value> = orders
            .iter()
            .flat_map(|(d, o)| values![w, *d, *o])
            .collect();
        let behind = |first: Value| [vec![first], keys.clone()].concat();
        self.change(
            &format!("DELETE FROM new_order WHERE (no_w_id, no_d_id, no_o_id) IN ({list})"),
            keys.clone(),
        )?;
        self.change(
            &format!("UPDATE orders SET o_carrier_id = ? WHERE (o_w_id, o_d_id, o_id) IN ({list})"),
            behind(args.carrier.into()),
        )?;
        let customers: Vec<(u32, u32)> = self.rows(
            &format!("SELECT o_d_id, o_c_id FROM orders WHERE (o_w_id, o_d_id, o_id) IN ({list})"),
            keys.clone(),
        )?;
        self.change(
            &format!(
                "UPDATE order_line SET ol_delivery_d = NOW() \
                 WHERE (ol_w_id, ol_d_id, ol_o_id) IN ({list})"
            ),
            keys.clone(),
        )?;
        let sums: Vec<(u32, String)> = self.rows(
            &format!(
                "SELECT ol_d_id, CAST(SUM(ol_amount) AS CHAR) FROM order_line \
                 WHERE (ol_w_id, ol_d_id, ol_o_id) IN ({list}) GROUP BY ol_d_id"
            ),
            keys.clone(),
        )?;
        for (d, c) in customers {
            let sum = sums.iter().find(|(of, _)| *of == d);
            let sum = sum.ok_or_else(|| missing("the sum of a district"))?;
            self.change(
                "UPDATE customer SET c_balance = c_balance + ?, \
                 c_delivery_cnt = c_delivery_cnt + 1 \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                values![sum.1.as_str(), w, d, c],
            )?;
        }
        Ok(true)
    }

    fn stock_level(&mut self, args: StockLevelArgs) -> mysql::Result<bool> {
        let (w, d) = (args.warehouse.0 + 1, args.district);
        let (next,): (u32,) = self.row(
            "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?",
            values![w, d],
        )?;
        let _: (u64,) = self.row(
            "SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock \
             WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id < ? AND ol_o_id >= ? \
             AND s_w_id = ? AND s_i_id = ol_i_id AND s_quantity < ?",
            values![w, d, next, next.saturating_sub(20), w, args.threshold],
        )?;
        Ok(true)
    }
}

/// A row that the tables must have is not there: they were not filled, or not at this scale.
fn missing(text: &str) -> mysql::Error {
    let what = format!("no row for: {text}");
    mysql::Error::IoError(std::io::Error::other(what))
}
