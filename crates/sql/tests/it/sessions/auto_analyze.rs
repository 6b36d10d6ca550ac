//! A table that nobody analyzes is analyzed when a tenth of its rows has changed.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use manxdb_sql::error::SqlError;
use manxdb_sql::session::Instance;

use manxdb_fixtures::sql::{Client, connect, instance};

fn numbered(rows: usize) -> (Arc<Instance>, Client) {
    let instance = instance();
    let mut client = connect(&instance, "root");
    client.run("CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    insert(&mut client, 0, rows);
    (instance, client)
}

fn insert(client: &mut Client, first: usize, rows: usize) {
    let values: Vec<String> = (first..first + rows)
        .map(|id| format!("({id}, 0)"))
        .collect();
    client.run(&format!("INSERT INTO t VALUES {}", values.join(", ")));
}

fn analyzed(instance: &Arc<Instance>) -> Result<usize, SqlError> {
    instance.analyze_changed_tables(|| false)
}

/// Rows that the planner takes the table to have; 1000 when it knows nothing.
fn planned_rows(client: &mut Client) -> String {
    let plan = client.value("EXPLAIN FORMAT=TREE SELECT * FROM t");
    let (_, rows) = plan.rsplit_once("rows=").expect("a plan tells its rows");
    rows.trim_end_matches(')').to_string()
}

/// Longer than the pause between two analyses of a table.
fn rest(client: &mut Client) {
    client.run("DO SLEEP(11)");
}

#[test]
fn a_new_table_is_analyzed_and_again_when_a_tenth_of_it_has_changed() {
    let (instance, mut client) = numbered(100);
    assert_eq!(analyzed(&instance), Ok(1));
    assert_eq!(planned_rows(&mut client), "100");
    rest(&mut client);
    insert(&mut client, 100, 9);
    assert_eq!(analyzed(&instance), Ok(0), "9 of 100 rows");
    client.run("DELETE FROM t WHERE id < 30; UPDATE t SET n = 1 WHERE id = 50");
    assert_eq!(analyzed(&instance), Ok(1));
    assert_eq!(planned_rows(&mut client), "79");
    assert_eq!(analyzed(&instance), Ok(0), "nothing has changed since");
}

#[test]
fn a_busy_table_is_left_alone_for_a_while() {
    let (instance, mut client) = numbered(10);
    assert_eq!(analyzed(&instance), Ok(1));
    insert(&mut client, 10, 50);
    assert_eq!(analyzed(&instance), Ok(0), "it was analyzed just now");
    rest(&mut client);
    assert_eq!(analyzed(&instance), Ok(1));
    assert_eq!(planned_rows(&mut client), "60");
}

#[test]
fn what_hardly_differs_does_not_have_every_session_plan_anew() {
    let (instance, mut client) = numbered(100);
    assert_eq!(analyzed(&instance), Ok(1));
    rest(&mut client);
    insert(&mut client, 100, 5);
    client.run("UPDATE t SET n = n + 1 WHERE id < 20");
    assert_eq!(analyzed(&instance), Ok(1));
    assert_eq!(planned_rows(&mut client), "100", "105 is near enough");
}

#[test]
fn it_can_be_switched_off_and_a_stopping_server_ends_it() {
    let (instance, mut client) = numbered(100);
    client.run("SET GLOBAL innodb_stats_auto_recalc = OFF");
    assert_eq!(analyzed(&instance), Ok(0));
    client.run("SET GLOBAL innodb_stats_auto_recalc = ON");
    let stopped = instance.analyze_changed_tables(|| true);
    assert_eq!(stopped.map_err(|error| error.code), Err(1317));
    assert_eq!(planned_rows(&mut client), "1000");
    rest(&mut client);
    assert_eq!(analyzed(&instance), Ok(1), "what was counted is not lost");
}

#[test]
fn temporary_and_dropped_tables_are_passed_over() {
    let (instance, mut client) = numbered(100);
    client.run("CREATE TEMPORARY TABLE own (id INT PRIMARY KEY); INSERT INTO own VALUES (1), (2)");
    client.run("DROP TABLE t");
    assert_eq!(analyzed(&instance), Ok(0));
}
