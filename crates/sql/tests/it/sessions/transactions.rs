//! Transactions: autocommit, savepoints, conflicts, time-outs, isolation.

use crate::sessions::shop;
use manxdb_fixtures::sql::{connect, instance};

#[test]
fn autocommit_off_keeps_changes_to_oneself_until_commit() {
    let instance = instance();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    shop(&mut a);
    b.run("USE shop");
    a.run("SET autocommit = 0");
    a.run("UPDATE t SET n = 11 WHERE id = 1");
    assert!(a.session.status().in_transaction);
    assert_eq!(b.value("SELECT n FROM t WHERE id = 1"), "10");
    a.run("COMMIT");
    assert!(!a.session.status().in_transaction);
    assert_eq!(b.value("SELECT n FROM t WHERE id = 1"), "11");
    a.run("UPDATE t SET n = 12 WHERE id = 1");
    a.run("SET autocommit = 1");
    assert_eq!(b.value("SELECT n FROM t WHERE id = 1"), "12");
}

#[test]
fn savepoints_undo_what_came_after_them() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    shop(&mut a);
    a.run("BEGIN");
    a.run("UPDATE t SET n = 1 WHERE id = 1");
    a.run("SAVEPOINT s");
    a.run("DELETE FROM t");
    a.run("SAVEPOINT later");
    a.run("ROLLBACK TO s");
    assert_eq!(a.error("ROLLBACK TO later").code, 1305);
    assert_eq!(a.value("SELECT COUNT(*) FROM t"), "2");
    a.run("RELEASE SAVEPOINT s");
    assert_eq!(a.error("RELEASE SAVEPOINT s").code, 1305);
    a.run("COMMIT");
    assert_eq!(a.value("SELECT n FROM t WHERE id = 1"), "1");
}

#[test]
fn a_failed_statement_leaves_the_transaction_as_it_was() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    shop(&mut a);
    a.run("BEGIN");
    a.run("INSERT INTO t VALUES (3, 30)");
    assert_eq!(a.error("INSERT INTO t VALUES (4, 40), (1, 0)").code, 1062);
    assert!(a.session.status().in_transaction);
    a.run("COMMIT");
    assert_eq!(
        a.value("SELECT GROUP_CONCAT(id ORDER BY id) FROM t"),
        "1,2,3"
    );
}

#[test]
fn a_lost_conflict_is_1213_and_ends_the_transaction() {
    let instance = instance();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    shop(&mut a);
    b.run("USE shop");
    a.run("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE");
    a.run("BEGIN");
    let n = a.value("SELECT SUM(n) FROM t");
    b.run("UPDATE t SET n = 99 WHERE id = 2");
    let error = match a.try_run(&format!("UPDATE t SET n = {n} WHERE id = 1")) {
        Err(error) => error,
        Ok(_) => a.error("COMMIT"),
    };
    assert_eq!((error.code, error.sqlstate), (1213, "40001"));
    assert!(!a.session.status().in_transaction);
    assert_eq!(a.value("SELECT n FROM t WHERE id = 1"), "10");
}

#[test]
fn a_lock_wait_that_times_out_keeps_the_transaction() {
    let instance = instance();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    shop(&mut a);
    b.run("USE shop");
    b.run("SET innodb_lock_wait_timeout = 1");
    a.run("BEGIN");
    a.run("UPDATE t SET n = 0 WHERE id = 1");
    b.run("BEGIN");
    b.run("UPDATE t SET n = 21 WHERE id = 2");
    assert_eq!(b.error("UPDATE t SET n = 1 WHERE id = 1").code, 1205);
    assert!(b.session.status().in_transaction);
    b.run("COMMIT");
    assert_eq!(b.value("SELECT n FROM t WHERE id = 2"), "21");
}

#[test]
fn ddl_commits_what_is_open() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    shop(&mut a);
    a.run("BEGIN");
    a.run("INSERT INTO t VALUES (3, 30)");
    a.run("CREATE TABLE other (id INT PRIMARY KEY)");
    assert!(!a.session.status().in_transaction);
    a.run("ROLLBACK");
    assert_eq!(a.value("SELECT COUNT(*) FROM t"), "3");
}

#[test]
fn read_only_transactions_refuse_writes() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    shop(&mut a);
    a.run("START TRANSACTION READ ONLY");
    assert!(a.session.status().read_only_transaction);
    assert_eq!(a.error("DELETE FROM t").code, 1792);
    a.run("COMMIT AND CHAIN");
    assert!(a.session.status().in_transaction);
    a.run("ROLLBACK AND NO CHAIN");
    assert!(!a.session.status().in_transaction);
}

#[test]
fn the_isolation_variables_tell_the_truth() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    assert_eq!(a.value("SELECT @@transaction_isolation"), "REPEATABLE-READ");
    assert_eq!(
        a.value("SELECT @@global.transaction_isolation"),
        "REPEATABLE-READ"
    );
    a.run("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED");
    assert_eq!(a.value("SELECT @@tx_isolation"), "READ-UNCOMMITTED");
    a.run("BEGIN");
    assert_eq!(a.error("SET TRANSACTION READ ONLY").code, 1568);
}

#[test]
fn an_insert_into_a_locked_range_goes_on_and_the_locker_is_told_to_retry() {
    for (level, code) in [
        ("SERIALIZABLE", Some(1213)),
        ("REPEATABLE READ", Some(1213)),
        ("READ COMMITTED", None),
    ] {
        let instance = instance();
        let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
        shop(&mut a);
        b.run("USE shop");
        a.run(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"));
        a.run("BEGIN");
        assert!(a.rows("SELECT * FROM t WHERE id > 5 FOR UPDATE").is_empty());
        a.run("UPDATE t SET n = 11 WHERE id = 1");
        b.run("INSERT INTO t VALUES (7, 70)");
        let ended = a.try_run("COMMIT").err().map(|error| error.code);
        assert_eq!(ended, code, "{level}");
        let kept = if code.is_some() { "10" } else { "11" };
        assert_eq!(b.value("SELECT n FROM t WHERE id = 1"), kept, "{level}");
    }
}
