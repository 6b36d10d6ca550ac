//! The conditions of consistency (clause 3.3.2), each as two sums that must agree.
//!
//! The sums are taken table by table, so that a check takes seconds on any plan.

use std::collections::BTreeMap;

use mysql::Conn;
use mysql::prelude::Queryable as _;

/// What both sides of a condition say of each warehouse and district (0: of the warehouse).
type Sums = BTreeMap<(i64, i64), i64>;

/// A condition: what it is called, and two queries of `(warehouse, district, sum)`.
struct Condition {
    name: &'static str,
    left: &'static str,
    right: &'static str,
}

const CONDITIONS: [Condition; 11] = [
    Condition {
        name: "1: w_ytd is the sum of d_ytd",
        left: "SELECT w_id, 0, CAST(w_ytd * 100 AS SIGNED) FROM warehouse",
        right: "SELECT d_w_id, 0, CAST(SUM(d_ytd) * 100 AS SIGNED) FROM district GROUP BY d_w_id",
    },
    Condition {
        name: "2: d_next_o_id is behind the last order",
        left: "SELECT d_w_id, d_id, d_next_o_id - 1 FROM district",
        right: "SELECT o_w_id, o_d_id, MAX(o_id) FROM orders GROUP BY o_w_id, o_d_id",
    },
    Condition {
        name: "3: new orders are without a gap",
        left: "SELECT no_w_id, no_d_id, MAX(no_o_id) - MIN(no_o_id) + 1 FROM new_order \
               GROUP BY no_w_id, no_d_id",
        right: "SELECT no_w_id, no_d_id, COUNT(*) FROM new_order GROUP BY no_w_id, no_d_id",
    },
    Condition {
        name: "4: o_ol_cnt are the lines",
        left: "SELECT o_w_id, o_d_id, CAST(SUM(o_ol_cnt) AS SIGNED) FROM orders \
               GROUP BY o_w_id, o_d_id",
        right: "SELECT ol_w_id, ol_d_id, COUNT(*) FROM order_line GROUP BY ol_w_id, ol_d_id",
    },
    Condition {
        name: "5: orders without carrier are new",
        left: "SELECT o_w_id, o_d_id, COUNT(*) FROM orders WHERE o_carrier_id IS NULL \
               GROUP BY o_w_id, o_d_id",
        right: "SELECT no_w_id, no_d_id, COUNT(*) FROM new_order GROUP BY no_w_id, no_d_id",
    },
    Condition {
        name: "5: new orders are those without carrier",
        left: "SELECT o_w_id, o_d_id, CAST(SUM(o_id) AS SIGNED) FROM orders \
               WHERE o_carrier_id IS NULL GROUP BY o_w_id, o_d_id",
        right: "SELECT no_w_id, no_d_id, CAST(SUM(no_o_id) AS SIGNED) FROM new_order \
                GROUP BY no_w_id, no_d_id",
    },
    Condition {
        name: "7: lines without date are those of orders without carrier",
        left: "SELECT o_w_id, o_d_id, CAST(SUM(o_ol_cnt) AS SIGNED) FROM orders \
               WHERE o_carrier_id IS NULL GROUP BY o_w_id, o_d_id",
        right: "SELECT ol_w_id, ol_d_id, COUNT(*) FROM order_line WHERE ol_delivery_d IS NULL \
                GROUP BY ol_w_id, ol_d_id",
    },
    Condition {
        name: "8: w_ytd is the sum of the history",
        left: "SELECT w_id, 0, CAST(w_ytd * 100 AS SIGNED) FROM warehouse",
        right: "SELECT h_w_id, 0, CAST(SUM(h_amount) * 100 AS SIGNED) FROM history \
                GROUP BY h_w_id",
    },
    Condition {
        name: "9: d_ytd is the sum of the history",
        left: "SELECT d_w_id, d_id, CAST(d_ytd * 100 AS SIGNED) FROM district",
        right: "SELECT h_w_id, h_d_id, CAST(SUM(h_amount) * 100 AS SIGNED) FROM history \
                GROUP BY h_w_id, h_d_id",
    },
    Condition {
        name: "12: balances and payments are what was delivered",
        left: "SELECT c_w_id, c_d_id, CAST(SUM(c_balance + c_ytd_payment) * 100 AS SIGNED) \
               FROM customer GROUP BY c_w_id, c_d_id",
        right: "SELECT ol_w_id, ol_d_id, CAST(SUM(ol_amount) * 100 AS SIGNED) FROM order_line \
                WHERE ol_delivery_d IS NOT NULL GROUP BY ol_w_id, ol_d_id",
    },
    Condition {
        name: "s_order_cnt are the lines of orders that were entered",
        left: "SELECT 0, 0, CAST(SUM(s_order_cnt) AS SIGNED) FROM stock",
        right: "SELECT 0, 0, COUNT(*) FROM order_line WHERE ol_o_id > @tpcc_filled",
    },
];

/// What does not hold, in words. `filled`: the orders that each district began with.
///
/// # Errors
/// The server's.
pub fn run(conn: &mut Conn, filled: u32) -> mysql::Result<Vec<String>> {
    conn.query_drop(format!("SET @tpcc_filled = {filled}"))?;
    let mut wrong = Vec::new();
    for condition in &CONDITIONS {
        let (left, right) = (sums(conn, condition.left)?, sums(conn, condition.right)?);
        wrong.extend(difference(condition.name, &left, &right));
    }
    Ok(wrong)
}

fn sums(conn: &mut Conn, query: &str) -> mysql::Result<Sums> {
    let rows: Vec<(i64, i64, Option<i64>)> = conn.query(query)?;
    let row = |(warehouse, district, sum): (i64, i64, Option<i64>)| {
        ((warehouse, district), sum.unwrap_or_default())
    };
    Ok(rows.into_iter().map(row).collect())
}

/// The first place where both sides differ; one that a side leaves out has a sum of nothing.
fn difference(name: &str, left: &Sums, right: &Sums) -> Option<String> {
    let places = left.keys().chain(right.keys());
    let at = |sums: &Sums, place| sums.get(place).copied().unwrap_or_default();
    places
        .map(|place| (place, at(left, place), at(right, place)))
        .find(|(_, left, right)| left != right)
        .map(|((warehouse, district), left, right)| {
            format!(
                "condition {name}: warehouse {warehouse}, district {district}: {left} and {right}"
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_that_differ_are_found_and_a_missing_one_is_nothing() {
        let one = Sums::from([((1, 1), 5), ((1, 2), 0)]);
        let two = Sums::from([((1, 1), 5)]);
        assert_eq!(difference("x", &one, &two), None);
        let three = Sums::from([((1, 1), 5), ((1, 3), 1)]);
        let found = difference("x", &two, &three);
        assert_eq!(
            found.as_deref(),
            Some("condition x: warehouse 1, district 3: 0 and 1")
        );
    }
}
