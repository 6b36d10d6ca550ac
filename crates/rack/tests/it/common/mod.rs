//! Commits on a path that answers at once, and patience.
#![allow(dead_code)] // each test uses some of it
#![allow(clippy::disallowed_methods)] // clocks, and tests

use std::thread;
use std::time::{Duration, Instant};

use manxdb_storage::{Durability, Version};
use manxdb_txn::{CommitPath, Intent, IsolationLevel, ReadSet, Reply, TxnError, TxnId};

pub fn ready<T>(reply: Reply<T>) -> T {
    match reply {
        Reply::Ready(answer) => answer,
        Reply::Pending(_) => panic!("it answers at once"),
    }
}

/// Commits rows in one transaction; where there is none, what was under the key is deleted.
pub fn submit(
    path: &dyn CommitPath,
    reads: ReadSet,
    writes: &[(Vec<u8>, Option<Vec<u8>>)],
    durability: Durability,
) -> Result<Version, TxnError> {
    let mut writes = writes.to_vec();
    writes.sort();
    let intent = Intent {
        txn: TxnId(1),
        isolation: IsolationLevel::Serializable,
        reads,
        writes,
        durability,
        locks: Vec::new(),
    };
    ready(path.submit(intent))
}

pub fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(120), "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}
