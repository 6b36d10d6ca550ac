//! CREATE TEMPORARY TABLE: who sees it, what it does to transactions, what it leaves behind.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use manxdb_fixtures::sql::{Client, TestHost, connect, instance};
use manxdb_sql::session::{Instance, InstanceOptions};
use manxdb_sql::types::Value;
use manxdb_storage::{Direction, Durability, KeyRange, MemoryEngine};
use manxdb_txn::{
    CommitPath, IsolationLevel, LocalOptions, LocalPath, ReadMode, Transaction, TxnError, TxnId,
    Waiter,
};

fn shop(client: &mut Client) {
    client.run("CREATE DATABASE shop");
    client.run("USE shop");
    client.run("CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    client.run("INSERT INTO t VALUES (1, 10), (2, 20)");
}

#[test]
fn a_temporary_table_hides_the_stored_one_from_its_session_only() {
    let instance = instance();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    shop(&mut a);
    b.run("USE shop");
    // The same text, planned by both before and after: no plan may be shared.
    assert_eq!(a.value("SELECT COUNT(*) FROM t"), "2");
    a.run("CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, other TEXT)");
    assert_eq!(a.value("SELECT COUNT(*) FROM t"), "0");
    assert_eq!(b.value("SELECT COUNT(*) FROM t"), "2");
    a.run("INSERT INTO t VALUES (7, 'mine')");
    assert_eq!(a.value("SELECT other FROM t"), "mine");
    assert_eq!(b.error("SELECT other FROM t").code, 1054);
    b.run("CREATE TEMPORARY TABLE t (id INT)");
    b.run("INSERT INTO t VALUES (1), (2), (3)");
    assert_eq!(a.value("SELECT COUNT(*) FROM t"), "1");
    a.run("DROP TABLE t");
    assert_eq!(a.value("SELECT n FROM t WHERE id = 2"), "20");
    assert_eq!(b.value("SELECT COUNT(*) FROM t"), "3");
    b.session.reset();
    assert_eq!(b.value("SELECT COUNT(*) FROM t"), "2");
}

#[test]
fn views_and_foreign_keys_do_not_see_what_a_temporary_table_hides() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    shop(&mut a);
    a.run("CREATE VIEW v AS SELECT n FROM t");
    a.run("CREATE TABLE child (t_id INT, FOREIGN KEY (t_id) REFERENCES t (id))");
    a.run("CREATE TEMPORARY TABLE t (id INT PRIMARY KEY)");
    a.run("INSERT INTO t VALUES (5)");
    assert_eq!(a.value("SELECT SUM(n) FROM v"), "30");
    assert_eq!(a.error("INSERT INTO child VALUES (5)").code, 1452);
    a.run("INSERT INTO child VALUES (1)");
    a.run("DELETE FROM t");
    assert_eq!(a.error("CREATE VIEW w AS SELECT * FROM t").code, 1352);
    a.run("DROP TEMPORARY TABLE t");
    assert_eq!(a.error("DELETE FROM t").code, 1451);
}

#[test]
fn creating_and_dropping_leaves_the_transaction_open() {
    let instance = instance();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    shop(&mut a);
    b.run("USE shop");
    a.run("BEGIN");
    a.run("UPDATE t SET n = 11 WHERE id = 1");
    a.run("CREATE TEMPORARY TABLE copy AS SELECT * FROM t");
    a.run("CREATE TEMPORARY TABLE other (id INT)");
    a.run("DROP TEMPORARY TABLE other");
    assert!(a.session.status().in_transaction);
    assert_eq!(a.value("SELECT SUM(n) FROM copy"), "31");
    assert_eq!(b.value("SELECT n FROM t WHERE id = 1"), "10");
    a.run("ROLLBACK");
    // The table stays, its rows were the transaction's.
    assert_eq!(a.value("SELECT COUNT(*) FROM copy"), "0");
    assert_eq!(a.value("SELECT n FROM t WHERE id = 1"), "10");
}

#[test]
fn create_select_may_read_the_table_it_hides_and_fails_as_a_whole() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    shop(&mut a);
    a.run("CREATE TEMPORARY TABLE t AS SELECT id + 100 AS id FROM t");
    assert_eq!(a.value("SELECT SUM(id) FROM t"), "203");
    let error = a.error("CREATE TEMPORARY TABLE u (n INT PRIMARY KEY) SELECT 1 AS n FROM t");
    assert_eq!(error.code, 1062);
    assert_eq!(a.error("SELECT * FROM u").code, 1146);
}

#[test]
fn prepared_statements_follow_the_tables_that_come_and_go() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    shop(&mut a);
    let id = a
        .session
        .prepare("SELECT COUNT(*) FROM t")
        .expect("prepared")
        .id;
    let count = |client: &mut Client| {
        let mut sink = Count::default();
        let done = client.session.execute(id, &[], &mut sink);
        done.expect("executed");
        sink.0
    };
    assert_eq!(count(&mut a), 2);
    a.run("CREATE TEMPORARY TABLE t (id INT)");
    assert_eq!(count(&mut a), 0);
    a.run("DROP TABLE t");
    assert_eq!(count(&mut a), 2);
}

#[derive(Default)]
struct Count(i64);

impl manxdb_sql::session::ResultSink for Count {
    fn columns(&mut self, _: &[manxdb_sql::types::ColumnMeta]) -> manxdb_sql::error::SqlResult<()> {
        Ok(())
    }
    fn row(&mut self, row: &[Value]) -> manxdb_sql::error::SqlResult<()> {
        if let [Value::Int(count)] = row {
            self.0 = *count;
        }
        Ok(())
    }
    fn end(&mut self, _: manxdb_sql::session::Status, _: bool) -> manxdb_sql::error::SqlResult<()> {
        Ok(())
    }
    fn done(
        &mut self,
        _: &manxdb_sql::statement::StatementOutcome,
        _: manxdb_sql::session::Status,
        _: bool,
    ) -> manxdb_sql::error::SqlResult<()> {
        Ok(())
    }
}

#[test]
fn temporary_tables_need_one_privilege_and_their_use_none() {
    let instance = instance();
    let mut root = connect(&instance, "root");
    shop(&mut root);
    root.run("CREATE USER guest@localhost");
    root.run("GRANT CREATE TEMPORARY TABLES ON shop.* TO guest@localhost");
    let mut guest = connect(&instance, "guest");
    guest.run("CREATE TEMPORARY TABLE shop.mine (id INT)");
    guest.run("INSERT INTO shop.mine VALUES (1)");
    assert_eq!(guest.value("SELECT id FROM shop.mine"), "1");
    assert_eq!(guest.error("SELECT * FROM shop.t").code, 1142);
    assert_eq!(guest.error("CREATE TABLE shop.theirs (id INT)").code, 1142);
    for kind in ["TEMPORARY TABLE", "TABLE"] {
        root.run("GRANT CREATE ON shop.copy TO guest@localhost");
        let error = guest.error(&format!("CREATE {kind} shop.copy SELECT * FROM shop.t"));
        assert_eq!((error.code, kind), (1142, kind));
    }
    guest.run("UPDATE shop.mine SET id = id + (SELECT COUNT(*) FROM shop.mine)");
    guest.run("DROP TABLE shop.mine");
    // A temporary table gives no right to what it hides.
    root.run("CREATE VIEW shop.v AS SELECT id FROM shop.t");
    guest.run("CREATE TEMPORARY TABLE shop.t (id INT)");
    assert_eq!(guest.error("SELECT * FROM shop.v").code, 1142);
    let error = guest.error("INSERT INTO shop.t SELECT id FROM shop.v");
    assert_eq!(error.code, 1142);
}

fn open(path: &Arc<dyn CommitPath>) -> Arc<Instance> {
    let options = InstanceOptions {
        secure_file_priv: None,
        durability: Durability::Sync,
        isolation: IsolationLevel::RepeatableRead,
        max_connections: 151,
        max_allowed_packet: 64 << 20,
        long_query_micros: 10_000_000,
        statement_memory_bytes: 256 << 20,
        port: 3306,
        hostname: "test".to_string(),
        data_directory: "/data".to_string(),
    };
    Instance::open(Arc::clone(path), Arc::new(TestHost::default()), options).expect("it opens")
}

/// Nobody to wait for.
struct Alone;

impl Waiter for Alone {
    fn wait(&self, _: &dyn Fn() -> bool) -> Result<(), TxnError> {
        Err(TxnError::LockTimeout)
    }
    fn wake(&self) {}
    fn check(&self) -> Result<(), TxnError> {
        Ok(())
    }
}

/// Everything stored of tables: rows, notes of temporary and of dropped tables, counters.
fn stored(path: &Arc<dyn CommitPath>) -> usize {
    let txn = Transaction::begin(
        Arc::clone(path),
        TxnId(1 << 60),
        IsolationLevel::Serializable,
        Arc::new(Alone),
    );
    [&[1][..], &[0, 3], &[0, 5], &[0, 6]]
        .iter()
        .map(|prefix| {
            let range = KeyRange::prefix(prefix);
            let page = txn.scan(&range, Direction::Forward, 10_000, ReadMode::Plain);
            page.expect("a scan").len()
        })
        .sum()
}

/// A path with an instance that has an empty database.
fn empty() -> (Arc<dyn CommitPath>, Arc<Instance>) {
    let engine = Arc::new(MemoryEngine::new());
    let path = LocalPath::open(engine, LocalOptions::default()).expect("an empty path opens");
    let path: Arc<dyn CommitPath> = Arc::new(path);
    let instance = open(&path);
    instance.initialise(None).expect("root can be made");
    connect(&instance, "root").run("CREATE DATABASE d");
    (path, instance)
}

fn fill(client: &mut Client) {
    client.run("USE d");
    client.run("CREATE TEMPORARY TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT, KEY (n))");
    client.run("INSERT INTO t (n) VALUES (1), (2), (3)");
}

/// What the background does with what was dropped.
fn collect(instance: &Instance) {
    while instance.collect_garbage().expect("memory can be written") {}
}

#[test]
fn nothing_is_left_of_dropped_tables_and_ended_sessions() {
    let (path, instance) = empty();
    let before = stored(&path);
    let mut a = connect(&instance, "root");
    fill(&mut a);
    assert!(stored(&path) > before);
    a.run("TRUNCATE TABLE t");
    a.run("INSERT INTO t (n) VALUES (1)");
    a.run("CREATE INDEX other ON t (n, id)");
    assert_eq!(a.value("SELECT COUNT(*) FROM t WHERE n = 1"), "1");
    a.run("DROP TABLE t");
    collect(&instance);
    assert_eq!(stored(&path), before);
    fill(&mut a);
    a.run("BEGIN");
    a.run("INSERT INTO t (n) VALUES (4)");
    a.run("DROP TEMPORARY TABLE t");
    a.run("COMMIT");
    collect(&instance);
    assert_eq!(
        stored(&path),
        before,
        "rows committed after the drop go too"
    );
    fill(&mut a);
    drop(a);
    collect(&instance);
    assert_eq!(stored(&path), before);
}

#[test]
fn nothing_is_left_after_a_crash() {
    let (path, instance) = empty();
    let before = stored(&path);
    let mut a = connect(&instance, "root");
    fill(&mut a);
    std::mem::forget(a);
    let instance = open(&path);
    collect(&instance);
    assert_eq!(stored(&path), before);
    let mut b = connect(&instance, "root");
    b.run("USE d");
    assert_eq!(b.error("SELECT * FROM t").code, 1146);
}
