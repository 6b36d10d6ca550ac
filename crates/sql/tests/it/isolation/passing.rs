//! What locking statements leave to others: rows that they only pass by, and rows behind a LIMIT.

use crate::isolation::stage::{Stage, affected, rows_of};

const SCHEMA: &str = "\
    CREATE TABLE orders (w INT, d INT, o INT, c INT, carrier INT, PRIMARY KEY (w, d, o), \
        KEY by_customer (w, d, c, o)); \
    INSERT INTO orders VALUES (1, 1, 1, 5, 0), (1, 1, 2, 6, 0), (1, 1, 3, 7, 0), (1, 2, 1, 5, 0), \
        (1, 2, 2, 6, 0), (1, 2, 3, 7, 0); \
    CREATE TABLE queue (d INT, o INT, state INT, PRIMARY KEY (d, o), KEY (state)); \
    INSERT INTO queue VALUES (1, 1, 0), (1, 2, 0), (1, 3, 1), (2, 4, 1), (2, 5, 0)";

const WEAKER: [&str; 2] = ["READ COMMITTED", "REPEATABLE READ"];

fn stage(level: &str) -> Stage {
    let stage = Stage::new(2, SCHEMA);
    for actor in 0..2 {
        let text = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
        stage.finish(actor, &text).unwrap();
        stage.finish(actor, "BEGIN").unwrap();
    }
    stage
}

/// The first session does `first`; the second does not wait with each of `free` and commits, but
/// waits with `taken`; the first commits none the less.
fn is_free(level: &str, first: &str, free: &[&str], taken: &str) {
    let stage = stage(level);
    stage.finish(0, first).unwrap();
    for text in free {
        let answer = stage.start(1, text);
        let answer = answer.unwrap_or_else(|| panic!("{level}: {first}: {text} waits"));
        answer.unwrap_or_else(|error| panic!("{level}: {first}: {text}: {error}"));
    }
    stage.finish(1, "COMMIT").unwrap();
    stage.finish(1, "BEGIN").unwrap();
    let waits = stage.start(1, taken);
    assert!(waits.is_none(), "{level}: {first}: {taken} does not wait");
    let ended = stage.finish(0, "COMMIT");
    assert!(ended.is_ok(), "{level}: {first}: {ended:?}");
    let answer = stage.resume(1).expect("it goes on");
    assert!(answer.is_ok(), "{level}: {first}: {taken}: {answer:?}");
    stage.finish(1, "COMMIT").unwrap();
}

#[test]
fn rows_of_values_lock_these_rows_and_no_others() {
    for level in WEAKER.into_iter().chain(["SERIALIZABLE"]) {
        is_free(
            level,
            "UPDATE orders SET carrier = 9 WHERE (w, d, o) IN ((1, 1, 1), (1, 2, 2))",
            &[
                "UPDATE orders SET carrier = 8 WHERE w = 1 AND d = 1 AND o = 2",
                "SELECT * FROM orders WHERE w = 1 AND d = 2 AND o = 3 FOR UPDATE",
                "INSERT INTO orders VALUES (1, 1, 4, 5, 0)",
            ],
            "SELECT carrier FROM orders WHERE w = 1 AND d = 2 AND o = 2 FOR SHARE",
        );
    }
}

#[test]
fn the_first_row_in_an_order_is_locked_and_none_behind_it() {
    for level in WEAKER.into_iter().chain(["SERIALIZABLE"]) {
        is_free(
            level,
            "SELECT o FROM queue WHERE d = 1 ORDER BY o LIMIT 1 FOR UPDATE",
            &[
                "UPDATE queue SET state = 5 WHERE d = 1 AND o = 2",
                "DELETE FROM queue WHERE d = 1 AND o = 3",
            ],
            "DELETE FROM queue WHERE d = 1 AND o = 1",
        );
        is_free(
            level,
            "DELETE FROM queue WHERE d = 1 ORDER BY o DESC LIMIT 2",
            &["UPDATE queue SET state = 5 WHERE d = 1 AND o = 1"],
            "UPDATE queue SET state = 5 WHERE d = 1 AND o = 2",
        );
    }
}

#[test]
fn rows_that_a_condition_refuses_stay_free() {
    for level in WEAKER {
        for first in [
            "UPDATE queue SET state = 7 WHERE d + 0 = 1 AND o + 0 = 3",
            "SELECT * FROM queue WHERE d = 1 AND state > 0 FOR UPDATE",
            "SELECT * FROM queue WHERE d = 1 AND state + 0 = 1 ORDER BY o LIMIT 1 FOR UPDATE",
            "DELETE FROM queue WHERE state = 1 AND d * 2 = 2",
            "UPDATE queue JOIN orders ON orders.o = queue.o SET state = 7 \
             WHERE queue.d = 1 AND state + 0 = 1 AND orders.w = 1 AND orders.d = 2",
        ] {
            is_free(
                level,
                first,
                &[
                    "UPDATE queue SET state = state + 5 WHERE d = 1 AND o = 1",
                    "UPDATE queue SET state = state + 5 WHERE d = 2 AND o = 4",
                    "DELETE FROM queue WHERE d = 2 AND o = 5",
                ],
                "SELECT state FROM queue WHERE d = 1 AND o = 3 FOR UPDATE",
            );
        }
    }
}

#[test]
fn a_row_that_is_changed_until_its_lock_is_granted_is_looked_at_again() {
    for level in WEAKER {
        let stage = stage(level);
        let take = "UPDATE queue SET state = 9 WHERE d = 1 AND state + 0 = 1";
        stage
            .finish(0, "UPDATE queue SET state = 3 WHERE d = 1 AND o = 3")
            .unwrap();
        assert!(stage.start(1, take).is_none(), "{level}: it waits");
        stage.finish(0, "COMMIT").unwrap();
        let answer = stage.resume(1).expect("it goes on").unwrap();
        assert_eq!(affected(&answer), 0, "{level}");
        stage.finish(1, "COMMIT").unwrap();
        let rows = stage.rows(0, "SELECT state FROM queue WHERE d = 1 AND o = 3");
        assert_eq!(rows, [["3"]], "{level}");
    }
}

#[test]
fn rows_added_between_those_that_were_passed_by_are_seen_at_repeatable_read() {
    let stage = stage("REPEATABLE READ");
    let first = "SELECT o FROM queue WHERE d = 1 AND state + 0 = 0 FOR UPDATE";
    assert_eq!(rows_of(&stage.finish(0, first).unwrap()), [["1"], ["2"]]);
    stage
        .finish(1, "INSERT INTO queue VALUES (1, 4, 0)")
        .unwrap();
    stage.finish(1, "COMMIT").unwrap();
    stage
        .finish(0, "UPDATE queue SET state = 5 WHERE d = 2 AND o = 5")
        .unwrap();
    let ended = stage.finish(0, "COMMIT").unwrap_err();
    assert_eq!(ended.code, 1213);
}

#[test]
fn the_row_at_the_end_that_a_bound_leaves_out_stays_free() {
    for level in WEAKER {
        let stage = stage(level);
        stage
            .finish(0, "UPDATE queue SET state = 5 WHERE d = 1 AND o = 2")
            .unwrap();
        for text in [
            "SELECT o FROM queue WHERE d = 1 AND o > 2 ORDER BY o LIMIT 1 FOR UPDATE",
            "SELECT o FROM queue WHERE d = 1 AND o < 2 ORDER BY o DESC LIMIT 1 FOR UPDATE",
        ] {
            let answer = stage.start(1, text);
            let answer = answer.unwrap_or_else(|| panic!("{level}: {text} waits"));
            assert_eq!(rows_of(&answer.unwrap()).len(), 1, "{level}: {text}");
        }
        stage.finish(0, "COMMIT").unwrap();
        stage.finish(1, "COMMIT").unwrap();
    }
}
