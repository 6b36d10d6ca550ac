//! A crash at any commit of a change leaves the old table or the new one, and nothing else.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use manxdb_fixtures::sql::hooked::{Hooked, Hooks};
use manxdb_fixtures::sql::{Client, connect, instance_on, instance_over};
use manxdb_storage::{Direction, Engine, KeyRange, MemoryEngine, Version};
use manxdb_txn::{CommitPath, Intent, LocalOptions, LocalPath, Reply, TxnError};

/// Commits a change may take at most; each of ours takes fewer.
const COMMITS_MAX: u32 = 40;
/// Rows and index entries of all tables.
const DATA: &[u8] = &[0x01];
/// Notes of garbage, of unfinished changes and of tables in the making.
const NOTES: [&[u8]; 3] = [&[0x00, 0x03], &[0x00, 0x07], &[0x00, 0x0c]];

/// Dies after some commits: whatever comes later is not done.
struct Mortal {
    left: AtomicU32,
}

impl Hooks for Mortal {
    fn submit(&self, path: &LocalPath, intent: Intent) -> Reply<Result<Version, TxnError>> {
        let alive = |left: u32| left.checked_sub(1);
        let was = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, alive);
        match was {
            Ok(_) => path.submit(intent),
            Err(_) => Reply::Ready(Err(TxnError::Interrupted)),
        }
    }
}

fn keys(engine: &MemoryEngine, prefix: &[u8]) -> usize {
    let range = KeyRange::prefix(prefix);
    let mut cursor = engine
        .scan(&range, Version::MAX, Direction::Forward)
        .expect("a cursor");
    let mut count = 0;
    while cursor.next().expect("memory can be read").is_some() {
        count += 1;
    }
    count
}

/// What a client sees of all tables.
fn shown(client: &mut Client) -> Vec<String> {
    let mut shown = Vec::new();
    for table in client.rows("SHOW TABLES FROM d").concat() {
        shown.extend(
            client
                .rows(&format!("SHOW CREATE TABLE d.{table}"))
                .concat(),
        );
        let rows = client.rows(&format!("SELECT * FROM d.{table}"));
        shown.push(format!("{rows:?}"));
    }
    shown
}

/// Runs `change` so that it dies after `commits` commits and, after the restart, what is seen and
/// how many keys of data there are. The bool tells whether the change came to its end.
fn crashed(change: &str, commits: u32) -> (bool, Vec<String>, usize) {
    let engine = Arc::new(MemoryEngine::new());
    let path = LocalPath::open(
        Arc::clone(&engine) as Arc<dyn Engine>,
        LocalOptions::default(),
    )
    .expect("an empty path opens");
    let path = Arc::new(Hooked {
        path: Arc::new(path),
        hooks: Mortal {
            left: AtomicU32::new(u32::MAX),
        },
    });
    let instance = instance_over(Arc::clone(&path) as Arc<dyn CommitPath>);
    let mut client = connect(&instance, "root");
    client.run("CREATE DATABASE d; USE d");
    client.run("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT, KEY by_n (n))");
    client.run("INSERT INTO t (n) VALUES (10), (20), (30)");
    path.hooks.left.store(commits, Ordering::SeqCst);
    let ended = client.try_run(change).is_ok();
    path.hooks.left.store(0, Ordering::SeqCst);
    drop(client);
    drop(instance);

    let instance = instance_on(Arc::clone(&engine) as Arc<dyn Engine>);
    while instance.collect_garbage().expect("memory can be written") {}
    let notes: usize = NOTES.iter().map(|prefix| keys(&engine, prefix)).sum();
    assert_eq!(notes, 0, "{change} after {commits}");
    let shown = shown(&mut connect(&instance, "root"));
    (ended, shown, keys(&engine, DATA))
}

fn leaves_the_old_or_the_new(change: &str) {
    let before = crashed("DO 1", 0);
    let after = crashed(change, COMMITS_MAX);
    assert!(after.0, "{change} takes at most {COMMITS_MAX} commits");
    assert_ne!(before.1, after.1, "{change} changes something");
    let mut ended = false;
    let mut commits = 0;
    while !ended {
        let (done, shown, keys) = crashed(change, commits);
        let state = (&shown, keys);
        let is_old = state == (&before.1, before.2);
        let is_new = state == (&after.1, after.2);
        assert!(is_old || is_new, "{change} after {commits}: {shown:#?}");
        assert!(is_new || !done, "{change} was answered after {commits}");
        ended = done;
        commits += 1;
    }
    assert!(commits > 1, "{change} was cut short at least once");
}

#[test]
fn create_table_select_comes_with_its_rows() {
    leaves_the_old_or_the_new(
        "CREATE TABLE copy (k INT AUTO_INCREMENT PRIMARY KEY) SELECT n FROM t",
    );
    leaves_the_old_or_the_new("CREATE TABLE copy AS SELECT * FROM t");
}

#[test]
fn a_counter_is_there_with_its_table() {
    leaves_the_old_or_the_new(
        "CREATE TABLE other (id INT AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT = 500",
    );
}

#[test]
fn a_copied_table_is_switched_at_once() {
    leaves_the_old_or_the_new("ALTER TABLE t MODIFY n VARCHAR(20), AUTO_INCREMENT = 500");
    leaves_the_old_or_the_new("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)");
    leaves_the_old_or_the_new("ALTER TABLE t MODIFY n BIGINT NOT NULL, RENAME TO u");
}

#[test]
fn a_column_added_with_an_index_is_there_with_it_or_not_at_all() {
    leaves_the_old_or_the_new("ALTER TABLE t ADD COLUMN m INT DEFAULT 7, ADD KEY by_m (m)");
    leaves_the_old_or_the_new("ALTER TABLE t DROP INDEX by_n, ADD UNIQUE by_both (n, id)");
    leaves_the_old_or_the_new("CREATE INDEX by_both ON t (n, id)");
}
