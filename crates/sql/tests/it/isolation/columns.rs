//! At SERIALIZABLE a transaction goes on when another wrote columns of a row that it did not use,
//! and is told to retry when it used them, in whatever part of a query.

use crate::isolation::stage::Stage;

/// A shop whose sums change all the time while others read its tax, and the shop's counter.
const SCHEMA: &str = "CREATE TABLE shop (id INT PRIMARY KEY, code INT NOT NULL, tax INT NOT NULL, \
     total INT NOT NULL, name VARCHAR(20) NOT NULL, UNIQUE KEY (code)); \
     INSERT INTO shop VALUES (1, 71, 5, 0, 'one'), (2, 72, 6, 0, 'two'); \
     CREATE TABLE counter (id INT PRIMARY KEY, next INT NOT NULL); \
     INSERT INTO counter VALUES (1, 10); \
     CREATE TABLE orders (id INT PRIMARY KEY, tax INT NOT NULL)";

fn stage() -> Stage {
    let stage = Stage::new(2, SCHEMA);
    let level = "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE";
    for actor in 0..2 {
        stage.finish(actor, level).unwrap();
    }
    stage
}

/// Runs `query` and writes an order, while another changes the shop; the code of the COMMIT, or
/// of a locking read that comes before it.
fn order(stage: &Stage, query: &str, change: &str, locks: bool) -> u16 {
    stage.finish(0, "BEGIN").unwrap();
    stage.finish(0, query).unwrap();
    stage.finish(1, change).unwrap();
    if locks {
        stage
            .finish(1, "UPDATE counter SET next = next + 1")
            .unwrap();
        let read = "SELECT next FROM counter WHERE id = 1 FOR UPDATE";
        if let Err(error) = stage.finish(0, read) {
            return error.code;
        }
    }
    stage
        .finish(0, "REPLACE INTO orders VALUES (1, 5)")
        .unwrap();
    stage
        .finish(0, "COMMIT")
        .map_or_else(|error| error.code, |_| 0)
}

const PAID: &str = "UPDATE shop SET total = total + 7 WHERE id = 1";

#[test]
fn a_write_of_other_columns_does_not_end_a_transaction() {
    for query in [
        "SELECT tax FROM shop WHERE id = 1",
        "SELECT tax, name FROM shop WHERE id IN (1, 2)",
        "SELECT tax FROM shop WHERE code = 71",
        "SELECT tax FROM counter JOIN shop ON shop.id = counter.id WHERE counter.id = 1",
        "SELECT COUNT(*) FROM shop WHERE id = 1",
        "SELECT (SELECT tax FROM shop WHERE id = 1)",
    ] {
        for locks in [false, true] {
            assert_eq!(order(&stage(), query, PAID, locks), 0, "{query} {locks}");
        }
    }
}

#[test]
fn a_write_of_a_column_that_was_used_ends_it() {
    for query in [
        "SELECT total FROM shop WHERE id = 1",
        "SELECT * FROM shop WHERE id = 1",
        "SELECT tax FROM shop WHERE id = 1 AND total < 100",
        "SELECT tax FROM shop WHERE id IN (1, 2) ORDER BY total",
        "SELECT tax FROM shop WHERE code = 71 AND total = 0",
        "SELECT 1 FROM counter JOIN shop ON shop.id = counter.id AND shop.total = 0",
        "SELECT CASE WHEN total > 0 THEN 1 END FROM shop WHERE id = 1",
        "SELECT MAX(total) FROM shop WHERE id IN (1, 2)",
        "SELECT 1 FROM counter WHERE EXISTS (SELECT 1 FROM shop WHERE shop.id = counter.id \
         AND total = 0)",
        "SELECT COUNT(*) FROM shop WHERE id IN (1, 2) GROUP BY total",
    ] {
        for locks in [false, true] {
            assert_eq!(order(&stage(), query, PAID, locks), 1213, "{query} {locks}");
        }
    }
}

#[test]
fn a_row_that_goes_or_moves_ends_it_whatever_was_used() {
    for change in [
        "DELETE FROM shop WHERE id = 1",
        "UPDATE shop SET id = 3 WHERE id = 1",
    ] {
        for query in [
            "SELECT tax FROM shop WHERE id = 1",
            "SELECT COUNT(*) FROM shop WHERE id = 1",
            "SELECT tax FROM shop WHERE code = 71",
        ] {
            assert_eq!(
                order(&stage(), query, change, false),
                1213,
                "{query}, {change}"
            );
        }
    }
}

#[test]
fn a_value_written_over_itself_does_not_end_it() {
    let change = "UPDATE shop SET tax = 9 WHERE id = 1; UPDATE shop SET tax = 5 WHERE id = 1";
    let query = "SELECT tax FROM shop WHERE id = 1";
    assert_eq!(order(&stage(), query, change, false), 0);
    // Equal under the collation is not the same.
    let change = "UPDATE shop SET name = 'ONE' WHERE id = 1";
    let query = "SELECT name FROM shop WHERE id = 1";
    assert_eq!(order(&stage(), query, change, false), 1213);
}
