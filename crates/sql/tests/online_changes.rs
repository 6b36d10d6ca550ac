//! What ALTER TABLE promises those who write while it works.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;

use common::{connect, instance_over};
use manxdb_sql::session::Instance;
use manxdb_storage::{Direction, KeyRange, MemoryEngine, Version};
use manxdb_txn::procedure::{Call, Values};
use manxdb_txn::{
    CommitPath, Intent, LocalOptions, LocalPath, LockTable, ReadSet, Reply, Snapshot, TxnError,
    Waiter,
};
use parking_lot::Mutex;

/// A commit path that lets somebody in between two transactions.
struct Interrupted {
    path: LocalPath,
    /// What to do when a transaction begins after so many commits.
    visitor: Mutex<Option<(u32, Visit)>>,
}

type Visit = Box<dyn FnOnce() + Send>;

impl CommitPath for Interrupted {
    fn snapshot(&self) -> Reply<Result<Snapshot, TxnError>> {
        let due = self.visitor.lock().take_if(|(commits, _)| *commits == 0);
        if let Some((_, visit)) = due {
            visit();
        }
        self.path.snapshot()
    }

    fn get(&self, at: Version, key: &[u8]) -> Reply<Result<Option<Vec<u8>>, TxnError>> {
        self.path.get(at, key)
    }

    fn submit(&self, intent: Intent) -> Reply<Result<Version, TxnError>> {
        if let Some((commits, _)) = self.visitor.lock().as_mut() {
            *commits = commits.saturating_sub(1);
        }
        self.path.submit(intent)
    }

    fn scan(
        &self,
        at: Version,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Reply<Result<Vec<(Vec<u8>, Vec<u8>)>, TxnError>> {
        self.path.scan(at, range, direction, limit)
    }

    fn changed_since(&self, range: &KeyRange, since: Version) -> Reply<Result<bool, TxnError>> {
        self.path.changed_since(range, since)
    }

    fn key_changed_since(&self, key: &[u8], since: Version) -> Reply<Result<bool, TxnError>> {
        self.path.key_changed_since(key, since)
    }

    fn refresh(&self, reads: &ReadSet) -> Reply<Result<Snapshot, TxnError>> {
        self.path.refresh(reads)
    }

    fn call(
        self: Arc<Self>,
        _call: Call,
        _waiter: Arc<dyn Waiter>,
    ) -> Reply<Result<Values, TxnError>> {
        Reply::Ready(Err(TxnError::Interrupted))
    }

    fn locks(&self) -> Option<&LockTable> {
        self.path.locks()
    }
}

fn interrupted() -> (Arc<Interrupted>, Arc<Instance>) {
    let engine = Arc::new(MemoryEngine::new());
    let path = LocalPath::open(engine, LocalOptions::default()).expect("an empty path opens");
    let path = Arc::new(Interrupted {
        path,
        visitor: Mutex::new(None),
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
    *path.visitor.lock() = Some((
        1,
        Box::new(move || {
            b.run("INSERT INTO d.t VALUES (3, 30, 6)");
        }),
    ));
    let error = a.error("ALTER TABLE d.t DROP INDEX by_n, ADD UNIQUE one_m (m)");
    assert_eq!(error.code, 1062);
    assert!(
        path.visitor.lock().is_none(),
        "the other session came in between"
    );
    let by_index = "SELECT id FROM d.t FORCE INDEX (by_n) WHERE n = 30";
    assert_eq!(a.value(by_index), "3");
}
