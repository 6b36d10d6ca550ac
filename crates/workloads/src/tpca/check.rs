//! What must be true of the rows after any number of transactions.

use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::rows::Rows;

use super::procedure::{Table, number};

/// The sum of each table's increments over the rows of all shards, one replica of each.
#[must_use]
pub fn totals<'a>(shards: impl IntoIterator<Item = &'a Rows>) -> [u64; 3] {
    let mut totals = [0; 3];
    for rows in shards {
        for (key, value) in rows.scan(&KeyRange::all(), Direction::Forward, usize::MAX) {
            if let (Some((table, _)), Some(count)) = (Table::of_key(&key), number(&value)) {
                totals[table as usize] += count;
            }
        }
    }
    totals
}

/// Says what is wrong: the three tables differ, or are not what clients were told. Between the
/// acknowledged and those that may have taken effect all numbers are right.
#[must_use]
pub fn check<'a>(
    shards: impl IntoIterator<Item = &'a Rows>,
    acknowledged: u64,
    unknown: u64,
) -> Vec<String> {
    check_totals(totals(shards), acknowledged, unknown)
}

/// The same of the sums themselves.
#[must_use]
pub fn check_totals(totals: [u64; 3], acknowledged: u64, unknown: u64) -> Vec<String> {
    let mut wrong = Vec::new();
    if totals[0] != totals[1] || totals[0] != totals[2] {
        wrong.push(format!("the tables have {totals:?} increments"));
    }
    for total in totals {
        if !(acknowledged..=acknowledged + unknown).contains(&total) {
            wrong.push(format!(
                "{total} increments of {acknowledged} acknowledged transactions and {unknown} unknown"
            ));
        }
    }
    wrong
}
