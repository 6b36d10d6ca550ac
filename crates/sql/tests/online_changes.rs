//! What ALTER TABLE promises those who write while it works.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;

use common::hooked::{Hooked, Hooks};
use common::{connect, instance_over};
use manxdb_sql::session::Instance;
use manxdb_storage::{MemoryEngine, Version};
use manxdb_txn::{CommitPath, Intent, LocalOptions, LocalPath, Reply, TxnError};
use parking_lot::Mutex;

/// Lets somebody in between two transactions.
struct Interrupted {
    /// What to do when a transaction begins after so many commits.
    visitor: Mutex<Option<(u32, Visit)>>,
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
