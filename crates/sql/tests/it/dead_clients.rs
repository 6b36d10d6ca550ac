//! A statement whose client has closed its connection ends, and leaves nothing half done.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use manxdb_fixtures::sql::{Client, connect, instance_of};
use manxdb_sql::session::{Host, Instance};
use manxdb_storage::MemoryEngine;
use manxdb_txn::{LocalOptions, LocalPath};

/// The clock moves with every look at it. A client is gone from a given question on.
#[derive(Default)]
struct Leaving {
    clock: AtomicI64,
    /// Questions until session 1's client is gone; 0: it stays.
    questions: AtomicU32,
}

impl Host for Leaving {
    fn wall_micros(&self) -> i64 {
        manxdb_fixtures::sql::START_MICROS
    }

    fn monotonic_micros(&self) -> i64 {
        self.clock.fetch_add(200_000, Ordering::SeqCst)
    }

    fn random(&self) -> u64 {
        7
    }

    fn park(&self, _: u64, _: u64) {}

    fn wake(&self, _: u64) {}

    fn client_is_gone(&self, session: u64) -> bool {
        let count = |left: u32| if left > 1 { Some(left - 1) } else { None };
        let counted = self
            .questions
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, count);
        session == 1 && counted == Err(1)
    }

    fn system_time_zone(&self) -> String {
        "UTC".to_string()
    }
}

fn filled() -> (Arc<Leaving>, Arc<Instance>, Client) {
    let host = Arc::new(Leaving::default());
    let path = LocalPath::open(Arc::new(MemoryEngine::new()), LocalOptions::default());
    let instance = instance_of(Arc::new(path.expect("it opens")), host.clone());
    let mut client = connect(&instance, "root");
    client.run("CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, n INT, KEY k (n))");
    for first in (0..9_000).step_by(1_000) {
        let rows: Vec<String> = (first..first + 1_000)
            .map(|id| format!("({id}, 1)"))
            .collect();
        client.run(&format!("INSERT INTO t VALUES {}", rows.join(",")));
    }
    (host, instance, client)
}

#[test]
fn every_long_statement_ends_with_its_client() {
    let statements = [
        "SELECT SUM(a.n * b.n) FROM t a, t b",
        "UPDATE t SET n = n + 1",
        "DELETE FROM t",
        "INSERT INTO t SELECT id + 100000, n FROM t",
        "ALTER TABLE t MODIFY n BIGINT",
        "ALTER TABLE t ADD INDEX other (n, id)",
        "CREATE TABLE u AS SELECT * FROM t",
        "SELECT GET_LOCK('taken', 100000000)",
    ];
    for statement in statements {
        let (host, instance, mut client) = filled();
        let mut other = connect(&instance, "root");
        other.run("USE d; DO GET_LOCK('taken', 0)");
        let before = other.rows("SHOW CREATE TABLE t");
        host.questions.store(2, Ordering::SeqCst);
        let error = client.error(statement);
        assert_eq!(error.code, 1317, "{statement}: {error}");
        // Also what it would send next is not run any more: the frontend closes.
        let control = client.session.control();
        assert!(
            control.kill_connection.load(Ordering::SeqCst),
            "{statement}"
        );
        drop(client);
        assert_eq!(other.rows("SHOW CREATE TABLE t"), before, "{statement}");
        assert_eq!(other.value("SELECT COUNT(*) FROM t"), "9000");
        assert_eq!(other.value("SELECT SUM(n) FROM t"), "9000", "{statement}");
        assert_eq!(other.error("SELECT * FROM u").code, 1146, "{statement}");
    }
}

#[test]
fn a_change_that_ends_before_it_began_costs_other_transactions_nothing() {
    let (host, instance, mut client) = filled();
    let mut other = connect(&instance, "root");
    other.run("USE d; BEGIN; UPDATE t SET n = 5 WHERE id = 7");
    // The change waits for the transaction that has written the table.
    host.questions.store(2, Ordering::SeqCst);
    assert_eq!(client.error("ALTER TABLE t MODIFY n BIGINT").code, 1317);
    other.run("COMMIT");
    assert_eq!(other.value("SELECT n FROM t WHERE id = 7"), "5");
}

#[test]
fn a_sleep_ends_with_its_client() {
    let (host, _, mut client) = filled();
    host.questions.store(2, Ordering::SeqCst);
    // Interrupted, it says 1, as in MySQL, to nobody.
    assert_eq!(client.value("SELECT SLEEP(100000000)"), "1");
    let control = client.session.control();
    assert!(control.kill_connection.load(Ordering::SeqCst));
}

#[test]
fn a_client_that_stays_is_asked_about_and_answered() {
    let (_, _, mut client) = filled();
    client.run("ALTER TABLE t MODIFY n BIGINT");
    assert_eq!(client.value("SELECT SUM(n) FROM t"), "9000");
}
