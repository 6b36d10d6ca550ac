//! What ALTER TABLE promises those who write while it works.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use manxdb_fixtures::sql::hooked::{Hooked, Hooks};
use manxdb_fixtures::sql::{Client, connect, instance_over};
use manxdb_sql::session::Instance;
use manxdb_storage::{MemoryEngine, Version};
use manxdb_txn::{CommitPath, Intent, LocalOptions, LocalPath, Reply, TxnError};
use parking_lot::Mutex;

/// Lets somebody in between two transactions.
struct Interrupted {
    /// What to do when a transaction begins after so many commits.
    visitor: Mutex<Option<(u32, Visit)>>,
    /// What to do before each commit of others.
    writer: Mutex<Option<Box<dyn FnMut() + Send>>>,
}

type Visit = Box<dyn FnOnce() + Send>;

impl Hooks for Interrupted {
    fn before_snapshot(&self) {
        let due = self.visitor.lock().take_if(|(commits, _)| *commits == 0);
        if let Some((_, visit)) = due {
            visit();
        }
    }

    fn submit(&self, path: &LocalPath, intent: Intent) -> Reply<Result<Version, TxnError>> {
        if let Some((commits, _)) = self.visitor.lock().as_mut() {
            *commits = commits.saturating_sub(1);
        }
        // Its own commits pass: the lock is taken then.
        if let Some(mut writer) = self.writer.try_lock()
            && let Some(write) = writer.as_mut()
        {
            write();
        }
        path.submit(intent)
    }
}

fn interrupted() -> (Arc<Hooked<Interrupted>>, Arc<Instance>) {
    let engine = Arc::new(MemoryEngine::new());
    let path = LocalPath::open(engine, LocalOptions::default()).expect("an empty path opens");
    let path = Arc::new(Hooked {
        path: Arc::new(path),
        hooks: Interrupted {
            visitor: Mutex::new(None),
            writer: Mutex::new(None),
        },
    });
    let instance = instance_over(Arc::clone(&path) as Arc<dyn CommitPath>);
    (path, instance)
}

#[test]
fn an_index_whose_replacement_fails_has_the_rows_written_meanwhile() {
    let (path, instance) = interrupted();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    a.run("CREATE DATABASE d");
    a.run("CREATE TABLE d.t (id INT PRIMARY KEY, n INT, m INT, KEY by_n (n))");
    a.run("INSERT INTO d.t VALUES (1, 10, 5), (2, 20, 5)");
    *path.hooks.visitor.lock() = Some((
        1,
        Box::new(move || {
            b.run("INSERT INTO d.t VALUES (3, 30, 6)");
        }),
    ));
    let error = a.error("ALTER TABLE d.t DROP INDEX by_n, ADD UNIQUE one_m (m)");
    assert_eq!(error.code, 1062);
    assert!(
        path.hooks.visitor.lock().is_none(),
        "the other session came in between"
    );
    let by_index = "SELECT id FROM d.t FORCE INDEX (by_n) WHERE n = 30";
    assert_eq!(a.value(by_index), "3");
}

/// A table `t` of so many rows, whose columns u and n are unique and 0.
fn fill(client: &mut Client, rows: u32) {
    client.run("CREATE DATABASE d; USE d; CREATE TABLE other (id INT)");
    client.run("CREATE TABLE t (id INT PRIMARY KEY, u INT, n INT, UNIQUE (u))");
    for first in (0..rows).step_by(1_000) {
        let rows: Vec<String> = (first..first + 1_000)
            .map(|id| format!("({id}, {id}, 0)"))
            .collect();
        client.run(&format!("INSERT INTO t VALUES {}", rows.join(",")));
    }
}

#[test]
fn ddl_of_other_tables_does_not_wait_for_a_copy() {
    let (path, instance) = interrupted();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    fill(&mut a, 5_000);
    b.run("USE d");
    *path.hooks.visitor.lock() = Some((
        3,
        Box::new(move || {
            b.run("DROP TABLE other");
            b.run("CREATE TABLE another (id INT PRIMARY KEY)");
            b.run("ALTER TABLE another ADD COLUMN n INT, ADD KEY (n)");
            b.run("CREATE DATABASE e");
            b.run("CREATE TABLE e.t AS SELECT 1 AS one");
            b.run("DROP DATABASE e");
        }),
    ));
    a.run("ALTER TABLE t MODIFY n BIGINT");
    assert!(path.hooks.visitor.lock().is_none(), "it came in between");
    let tables = a.rows("SHOW TABLES").concat();
    assert_eq!(tables, ["another", "t"]);
    assert_eq!(a.value("SELECT COUNT(*) FROM t"), "5000");
}

#[test]
fn a_copy_ends_however_much_is_written_meanwhile() {
    let (path, instance) = interrupted();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    fill(&mut a, 10_000);
    b.run("USE d");
    let written = Arc::new(Mutex::new(0_u32));
    let count = Arc::clone(&written);
    let mut next = 0;
    *path.hooks.writer.lock() = Some(Box::new(move || {
        // Values of a unique key change places between rows.
        let (one, two) = (next % 10_000, (next * 7 + 3) % 10_000);
        next += 1;
        let swap = format!(
            "UPDATE t SET u = -1 WHERE id = {one}; UPDATE t SET u = {one} WHERE u = {two}; \
             UPDATE t SET n = n + 1 WHERE id = {two}"
        );
        for statement in swap.split("; ") {
            if b.try_run(statement).is_ok() && statement.contains("n + 1") {
                *count.lock() += 1;
            }
        }
    }));
    let changed = a.try_run("ALTER TABLE t MODIFY n BIGINT, ADD COLUMN k INT AS (n + 1) STORED");
    *path.hooks.writer.lock() = None;
    changed.expect("the copy ends");
    let written = *written.lock();
    assert!(written > 10, "{written} writes are no test");
    assert_eq!(a.value("SELECT SUM(n) FROM t"), written.to_string());
    assert_eq!(
        a.value("SELECT SUM(k) FROM t"),
        (written + 10_000).to_string()
    );
    let by_index = "SELECT COUNT(*), SUM(n) FROM t FORCE INDEX (u) WHERE u >= -1";
    assert_eq!(
        a.rows(by_index)[0],
        ["10000".to_string(), written.to_string()]
    );
    while instance.collect_garbage().expect("memory can be written") {}
}

#[test]
fn numbers_given_while_a_table_is_copied_are_not_given_again() {
    let (path, instance) = interrupted();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    a.run("CREATE DATABASE d; USE d");
    a.run("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT)");
    a.run("INSERT INTO t (n) VALUES (1), (2)");
    b.run("USE d");
    *path.hooks.visitor.lock() = Some((
        3,
        Box::new(move || {
            b.run("INSERT INTO t (n) VALUES (3)");
            b.run("DELETE FROM t WHERE id = 3");
        }),
    ));
    a.run("ALTER TABLE t MODIFY n BIGINT");
    assert!(path.hooks.visitor.lock().is_none(), "it came in between");
    a.run("INSERT INTO t (n) VALUES (4)");
    assert_eq!(a.value("SELECT MAX(id) FROM t"), "4");
}
