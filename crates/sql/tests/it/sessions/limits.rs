//! Limits of time and memory, and what is kept of statements that took long.

use crate::sessions::shop;
use manxdb_fixtures::sql::{connect, instance, instance_with_memory};

#[test]
fn statements_run_out_of_time_and_can_be_killed() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    a.run("SET max_execution_time = 1000");
    assert_eq!(a.error("SELECT SLEEP(3)").code, 3024);
    let mut b = connect(&instance, "root");
    shop(&mut b);
    assert_eq!(b.error("KILL 4711").code, 1094);
    let id = a.value("SELECT CONNECTION_ID()");
    b.run(&format!("KILL {id}"));
    let control = a.session.control();
    assert!(
        control
            .kill_connection
            .load(std::sync::atomic::Ordering::SeqCst)
    );
    assert_eq!(a.value("SELECT SLEEP(0.5)"), "1");
    for more in [
        "SELECT SLEEP(0.5) FROM shop.t",
        "UPDATE shop.t SET n = SLEEP(0.5)",
    ] {
        assert_eq!(a.error(more).code, 1317, "{more}");
    }
    assert_eq!(b.value("SELECT SUM(n) FROM shop.t"), "30");
}

#[test]
fn a_hint_limits_the_time_of_its_select_alone() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    let error = a.error("SELECT /*+ MAX_EXECUTION_TIME(1000) */ SLEEP(3)");
    assert_eq!(error.code, 3024);
    assert_eq!(
        a.value("SELECT /*+ MAX_EXECUTION_TIME(5000) */ SLEEP(3)"),
        "0"
    );
    assert_eq!(a.value("SELECT SLEEP(3)"), "0");
}

#[test]
fn the_rows_a_statement_changes_count_against_its_memory() {
    let instance = instance_with_memory(16 << 10);
    let mut a = connect(&instance, "root");
    a.run("CREATE DATABASE shop; USE shop");
    a.run("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, word VARCHAR(1000))");
    for _ in 0..20 {
        a.run("INSERT INTO t (word) VALUES (REPEAT('x', 1000))");
    }
    for text in [
        "INSERT INTO t (word) SELECT word FROM t",
        "REPLACE INTO t SELECT * FROM t",
        "UPDATE t SET word = CONCAT(word, 'y')",
        "DELETE FROM t",
        "CREATE TABLE copy AS SELECT * FROM t",
    ] {
        assert_eq!(a.error(text).code, 1038, "{text}");
    }
    assert_eq!(
        a.value("SELECT COUNT(*) FROM t WHERE LENGTH(word) = 1000"),
        "20"
    );
    assert_eq!(a.error("SELECT * FROM copy").code, 1146);
    a.run("UPDATE t SET word = '' LIMIT 10");
    a.run("DELETE FROM t WHERE word <> '' LIMIT 10");
    a.run("INSERT INTO t (word) SELECT word FROM t");
    assert_eq!(a.value("SELECT COUNT(*) FROM t"), "20");
}

#[test]
fn a_slow_statement_is_kept_with_the_split_of_its_time() {
    let instance = instance();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    shop(&mut a);
    b.run("USE shop");
    b.run("SET long_query_time = 0.5, innodb_lock_wait_timeout = 2");
    a.run("BEGIN");
    a.run("UPDATE t SET n = 0 WHERE id = 1");
    b.error("UPDATE t SET n = 1 WHERE id = 1");
    let slow = instance.slow_statements();
    assert_eq!(slow.len(), 1);
    assert_eq!(slow[0].text, "UPDATE t SET n = 1 WHERE id = 1");
    assert_eq!((slow[0].error, slow[0].split.lock_wait), (1205, 2_000_000));
    assert_eq!(instance.metrics().errors[&1205], 1);
}
