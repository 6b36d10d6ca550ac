//! Locks of names and of whole tables.

use crate::sessions::shop;
use manxdb_fixtures::sql::{connect, instance};

#[test]
fn named_locks_belong_to_one_session() {
    let instance = instance();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    assert_eq!(a.value("SELECT GET_LOCK('x', 0)"), "1");
    assert_eq!(b.value("SELECT GET_LOCK('x', 1)"), "0");
    drop(a);
    assert_eq!(b.value("SELECT GET_LOCK('x', 0)"), "1");
    assert_eq!(b.value("SELECT RELEASE_LOCK('x')"), "1");
    assert_eq!(b.value("SELECT RELEASE_LOCK('x')"), "NULL");
}

#[test]
fn a_locked_table_keeps_other_sessions_out() {
    let instance = instance();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    shop(&mut a);
    a.run("CREATE TABLE other (id INT PRIMARY KEY)");
    b.run("USE shop");
    b.run("SET innodb_lock_wait_timeout = 1");
    a.run("LOCK TABLES t READ");
    assert_eq!(b.value("SELECT COUNT(*) FROM t"), "2");
    assert_eq!(b.error("DELETE FROM t").code, 1205);
    assert_eq!(a.error("DELETE FROM t").code, 1099);
    assert_eq!(a.error("SELECT * FROM other").code, 1100);
    a.run("LOCK TABLES t WRITE");
    assert_eq!(b.error("SELECT COUNT(*) FROM t").code, 1205);
    a.run("DELETE FROM t WHERE id = 1");
    a.run("UNLOCK TABLES");
    assert_eq!(b.value("SELECT COUNT(*) FROM t"), "1");
    b.run("LOCK TABLES t WRITE");
    drop(b);
    assert_eq!(a.value("SELECT COUNT(*) FROM t"), "1");
}

#[test]
fn locking_a_view_locks_the_tables_it_reads() {
    let instance = instance();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    shop(&mut a);
    a.run("CREATE VIEW inner_v AS SELECT id, n FROM t");
    a.run("CREATE VIEW v AS SELECT n FROM inner_v WHERE id = 1");
    b.run("USE shop; SET innodb_lock_wait_timeout = 1");
    a.run("LOCK TABLES v READ");
    assert_eq!(a.value("SELECT n FROM v"), "10");
    assert_eq!(b.value("SELECT n FROM v"), "10");
    assert_eq!(b.error("UPDATE t SET n = 11").code, 1205);
    a.run("LOCK TABLES v WRITE");
    assert_eq!(b.error("SELECT * FROM t").code, 1205);
    a.run("UNLOCK TABLES");
    a.run("CREATE USER ann; CREATE DATABASE open");
    a.run("CREATE VIEW open.v AS SELECT n FROM shop.t");
    a.run("GRANT SELECT, LOCK TABLES ON open.* TO ann");
    let mut ann = connect(&instance, "ann");
    assert_eq!(ann.error("LOCK TABLES open.v WRITE").code, 1044);
    a.run("GRANT SELECT, LOCK TABLES ON shop.* TO ann");
    ann.run("LOCK TABLES open.v WRITE");
}

#[test]
fn lock_tables_waits_for_transactions_that_use_the_table() {
    let instance = instance();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    shop(&mut a);
    b.run("USE shop");
    a.run("SET innodb_lock_wait_timeout = 1");
    b.run("BEGIN");
    b.run("SELECT * FROM t WHERE id = 1");
    a.run("LOCK TABLES t READ");
    assert_eq!(a.error("LOCK TABLES t WRITE").code, 1205);
    // Given up, it keeps nobody out.
    b.run("UPDATE t SET n = 11 WHERE id = 1");
    assert_eq!(a.error("LOCK TABLES t READ").code, 1205);
    b.run("COMMIT");
    a.run("LOCK TABLES t WRITE");
    assert_eq!(a.value("SELECT n FROM t WHERE id = 1"), "11");
    a.run("UNLOCK TABLES");
    // What a transaction has used before its end is used no more.
    for end in [
        "ROLLBACK",
        "BEGIN",
        "COMMIT AND CHAIN",
        "CREATE TABLE end (id INT)",
    ] {
        b.run("BEGIN");
        b.run("UPDATE t SET n = 12 WHERE id = 1");
        b.run(end);
        a.run("LOCK TABLES t WRITE");
        a.run("UNLOCK TABLES");
    }
    b.run("UPDATE t SET n = 13 WHERE id = 1");
    drop(b);
    a.run("LOCK TABLES t WRITE");
}

#[test]
fn a_transaction_that_a_table_lock_waits_for_goes_on() {
    let instance = instance();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    shop(&mut a);
    a.run("CREATE TABLE other (id INT PRIMARY KEY)");
    b.run("USE shop");
    b.run("BEGIN");
    b.run("SELECT * FROM t");
    // Waiting takes no time here, so there must be much of it.
    a.run("SET innodb_lock_wait_timeout = 1073741824");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            a.run("LOCK TABLES other WRITE, t WRITE");
            a.value("SELECT n FROM t WHERE id = 1")
        });
        // Whether the other waits by now or not: this transaction may use both tables.
        b.run("INSERT INTO other VALUES (1)");
        b.run("UPDATE t SET n = 11 WHERE id = 1");
        b.run("COMMIT");
        assert_eq!(waiting.join().expect("it ends"), "11");
    });
}
