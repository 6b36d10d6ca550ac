//! GDPR FORGET: what it does and refuses, over random schemas against a naive oracle, in one
//! transaction, in batches, and cut short by a crash.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod crash;
mod holds;
mod proof;
mod random;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use manxdb_fixtures::sql::hooked::{Hooked, Hooks};
use manxdb_fixtures::sql::{Client, connect, instance, instance_on, instance_over};
use manxdb_storage::{Engine, MemoryEngine, Version};
use manxdb_txn::{CommitPath, Intent, LocalOptions, LocalPath, Reply, TxnError};

const SCHEMA: &str = "CREATE DATABASE d; USE d;
    CREATE DATA_SUBJECT TABLE users (id INT PRIMARY KEY, name VARCHAR(20));
    CREATE TABLE posts (id INT PRIMARY KEY, user_id INT NOT NULL OWNED_BY users (id));
    CREATE TABLE tags (post_id INT NOT NULL OWNED_BY posts (id), tag VARCHAR(9));
    CREATE TABLE files (id INT PRIMARY KEY);
    CREATE TABLE shares (id INT PRIMARY KEY, user_id INT OWNED_BY users (id), file_id INT OWNS files (id));
    CREATE TABLE lines (id INT PRIMARY KEY, file_id INT OWNED_BY files (id))";

/// A person with 12 posts, a tag each, and files, one of them shared with another person.
fn fill(client: &mut Client) {
    client.run(SCHEMA);
    client.run("BEGIN; INSERT INTO users VALUES (1, 'a'), (2, 'b')");
    for n in 1..13 {
        client.run(&format!(
            "INSERT INTO posts VALUES ({n}, 1); INSERT INTO tags VALUES ({n}, 'x'), ({n}, 'x')"
        ));
    }
    client.run("INSERT INTO files VALUES (1), (2), (3); INSERT INTO shares VALUES (1, 1, 1), (2, 1, 2), (3, 2, 2), (4, 2, 3)");
    client.run("INSERT INTO lines VALUES (1, 1), (2, 2), (3, 3); COMMIT");
}

/// All rows of all tables.
fn shown(client: &mut Client) -> String {
    let tables = ["users", "posts", "tags", "files", "shares", "lines"];
    let rows = tables.map(|table| {
        format!(
            "{table} {:?}",
            client.rows(&format!("SELECT * FROM d.{table}"))
        )
    });
    rows.join("\n")
}

const LEFT: &str = "users [[\"2\", \"b\"]]\nposts []\ntags []\nfiles [[\"2\"], [\"3\"]]\n\
    shares [[\"3\", \"2\", \"2\"], [\"4\", \"2\", \"3\"]]\nlines [[\"2\", \"2\"], [\"3\", \"3\"]]";

#[test]
fn batches_do_what_one_transaction_does() {
    for batch in [1, 2, 7, 1000] {
        let instance = instance();
        let mut client = connect(&instance, "root");
        fill(&mut client);
        client.run(&format!("SET gdpr_batch_rows = {batch}"));
        let answer = client.run("GDPR FORGET users 1");
        // A person, 12 posts, 24 tags, a file with its line, two shares.
        assert!(
            format!("{answer:?}").contains("affected_rows: 41"),
            "{batch}: {answer:?}"
        );
        assert_eq!(shown(&mut client), LEFT, "{batch}");
        assert_eq!(client.rows("SHOW GDPR REQUESTS")[0][3..5], ["done", "41"]);
    }
}

/// Dies after some commits: whatever comes later is not done.
struct Mortal {
    left: AtomicU32,
}

impl Hooks for Mortal {
    fn submit(&self, path: &LocalPath, intent: Intent) -> Reply<Result<Version, TxnError>> {
        let alive = |left: u32| left.checked_sub(1);
        match self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, alive)
        {
            Ok(_) => path.submit(intent),
            Err(_) => Reply::Ready(Err(TxnError::Interrupted)),
        }
    }
}

#[test]
fn a_request_that_a_crash_cuts_short_comes_to_its_end() {
    let mut crashes = 0;
    for commits in 0..40 {
        let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new());
        let path = LocalPath::open(Arc::clone(&engine), LocalOptions::default());
        let path = Arc::new(Hooked {
            path: Arc::new(path.expect("an empty path opens")),
            hooks: Mortal {
                left: AtomicU32::new(u32::MAX),
            },
        });
        let dying = instance_over(Arc::clone(&path) as Arc<dyn CommitPath>);
        let mut client = connect(&dying, "root");
        fill(&mut client);
        client.run("SET gdpr_batch_rows = 6");
        // What signs is made when it is asked for first.
        client.error("GDPR CERTIFICATE 1");
        path.hooks.left.store(commits, Ordering::SeqCst);
        let survived = client.try_run("GDPR FORGET users 1").is_ok();
        path.hooks.left.store(0, Ordering::SeqCst);
        drop((client, dying));
        let instance = instance_on(engine);
        let mut client = connect(&instance, "root");
        client.run("USE d");
        let is_fenced = !client.rows("SHOW GDPR REQUESTS").is_empty();
        assert_eq!(is_fenced, commits > 0, "the first commit is the fence");
        if is_fenced && !survived {
            crashes += 1;
            assert_eq!(client.error("INSERT INTO posts VALUES (90, 1)").code, 51002);
            instance.resume_requests().expect("it goes on");
        }
        if is_fenced {
            assert_eq!(shown(&mut client), LEFT, "after {commits} commits");
            assert_eq!(client.rows("SHOW GDPR REQUESTS")[0][3], "done");
            assert_eq!(client.error("INSERT INTO posts VALUES (90, 1)").code, 51002);
        }
        if survived {
            assert!(crashes > 5, "it takes several commits");
            return;
        }
    }
    panic!("it never came to its end");
}

#[test]
fn it_needs_its_privilege_and_no_other() {
    let instance = instance();
    let mut root = connect(&instance, "root");
    fill(&mut root);
    root.run("CREATE USER eve; GRANT SELECT, DELETE, UPDATE ON d.* TO eve; CREATE USER dpo; GRANT GDPR ON d.* TO dpo");
    assert_eq!(
        connect(&instance, "eve")
            .error("GDPR FORGET d.users 1")
            .code,
        1044
    );
    let mut dpo = connect(&instance, "dpo");
    dpo.run("EXPLAIN GDPR FORGET d.users 1");
    dpo.run("GDPR FORGET d.users 1 REASON 'ticket 7'");
    assert_eq!(dpo.error("DELETE FROM d.users").code, 1142);
    assert_eq!(dpo.error("SHOW GDPR REQUESTS").code, 1227);
    let request = root.rows("SHOW GDPR REQUESTS").swap_remove(0);
    assert_eq!([&request[5], &request[7]], ["dpo@%", "ticket 7"]);
    assert_eq!(
        root.rows("SHOW GRANTS FOR dpo")[1][0],
        "GRANT GDPR ON `d`.* TO `dpo`@`%`"
    );
}

#[test]
fn a_row_that_comes_while_it_runs_makes_it_run_again() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    fill(&mut a);
    let mut b = connect(&instance, "root");
    b.run("USE d; BEGIN; SELECT * FROM users; INSERT INTO tags VALUES (1, 'late')");
    a.run("SET innodb_lock_wait_timeout = 1");
    // The post that the new row is below is locked: FORGET waits, and gives up.
    assert_eq!(a.error("GDPR FORGET users 1").code, 1205);
    b.run("COMMIT");
    a.run("GDPR FORGET users 1");
    assert_eq!(shown(&mut a), LEFT);
    assert_eq!(b.error("INSERT INTO tags VALUES (1, 'later')").code, 1452);
}
