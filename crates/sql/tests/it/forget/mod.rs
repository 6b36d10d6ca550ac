//! GDPR FORGET: what it does and refuses, over random schemas against a naive oracle, in one
//! transaction, in batches, and cut short by a crash.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod console;
mod crash;
mod holds;
mod proof;
mod random;
mod random_holds;
mod verify;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};

use manxdb_fixtures::sql::hooked::{Hooked, Hooks};
use manxdb_fixtures::sql::{
    Client, connect, instance, instance_on, instance_over, instance_sealed,
};
use manxdb_sql::session::Instance;
use manxdb_storage::{Direction, Engine, KeyRange, MemoryEngine, Version};
use manxdb_txn::{CommitPath, Intent, LocalOptions, LocalPath, Reply, TxnError};
use manxdb_vault::MemoryDisk;

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

/// Counts what is read.
#[derive(Default)]
struct Counting {
    reads: AtomicU32,
}

impl Hooks for Counting {
    fn before_read(&self, _one_key: bool) {
        self.reads.fetch_add(1, Ordering::SeqCst);
    }
}

/// Reads of keys and ranges that `statements` take, a post, of a person with posts under two indexes.
fn reads_a_post(statements: &str) -> u32 {
    const FEW: u32 = 20;
    const MANY: u32 = 148;
    let path = LocalPath::open(Arc::new(MemoryEngine::new()), LocalOptions::default());
    let path = Arc::new(Hooked {
        path: Arc::new(path.expect("an empty path opens")),
        hooks: Counting::default(),
    });
    let instance = instance_over(Arc::clone(&path) as Arc<dyn CommitPath>);
    let mut client = connect(&instance, "root");
    client.run("CREATE DATABASE d; USE d; CREATE DATA_SUBJECT TABLE users (id INT PRIMARY KEY)");
    client.run(
        "CREATE TABLE posts (id INT AUTO_INCREMENT PRIMARY KEY, user_id INT NOT NULL OWNED_BY users (id),
         title VARCHAR(20), body VARCHAR(20), KEY (title))",
    );
    client.error("GDPR CERTIFICATE 1");
    let mut counts = Vec::new();
    for (person, posts) in [(1, FEW), (2, MANY)] {
        client.run(&format!("INSERT INTO users VALUES ({person})"));
        let rows: Vec<String> = (0..posts)
            .map(|post| format!("({person}, 'title {post}', 'body')"))
            .collect();
        let rows = rows.join(", ");
        client.run(&format!(
            "INSERT INTO posts (user_id, title, body) VALUES {rows}"
        ));
        path.hooks.reads.store(0, Ordering::SeqCst);
        client.run(&statements.replace("PERSON", &person.to_string()));
        counts.push(path.hooks.reads.load(Ordering::SeqCst));
        assert_eq!(client.rows("SELECT COUNT(*) FROM posts"), [["0"]]);
    }
    (counts[1] - counts[0]).div_ceil(MANY - FEW)
}

#[test]
fn forget_reads_no_more_for_a_row_than_delete() {
    let delete = reads_a_post(
        "BEGIN; DELETE FROM posts WHERE user_id = PERSON; DELETE FROM users WHERE id = PERSON; COMMIT",
    );
    let forget = reads_a_post("GDPR FORGET users PERSON");
    // The row, and whether it is noted as one without owner.
    assert_eq!((forget, delete), (2, 2), "reads for each row");
}

/// All data of tables as it is stored.
fn stored(engine: &dyn Engine) -> Vec<Vec<u8>> {
    let at = engine.latest().expect("a version");
    let range = KeyRange::prefix(&[1]);
    let mut cursor = engine
        .scan(&range, at, Direction::Forward)
        .expect("a cursor");
    let mut all = Vec::new();
    while let Some(entry) = cursor.next().expect("an entry") {
        all.push(entry.key.to_vec());
    }
    all
}

const OF_ALL_TYPES: &str = "CREATE DATABASE d; USE d;
    CREATE DATA_SUBJECT TABLE users (id VARCHAR(9) PRIMARY KEY);
    CREATE TABLE things (id BIGINT UNSIGNED PRIMARY KEY, user_id VARCHAR(9) NOT NULL OWNED_BY users (id),
        c CHAR(9), v VARCHAR(9), b VARBINARY(9), fixed BINARY(4), d DECIMAL(8,3), f FLOAT, g DOUBLE,
        y YEAR, day DATE, at DATETIME(3), stamp TIMESTAMP NULL, tm TIME, e ENUM('x','y'), s SET('p','q'),
        bits BIT(5), flag TINYINT, twice INT AS (flag * 2), kept INT AS (flag * 3) STORED, note INT,
        KEY (c), KEY (v DESC, c), UNIQUE KEY (b), KEY (fixed), KEY (d), KEY (f), KEY (g), KEY (y),
        KEY (day), KEY (at), KEY (stamp), KEY (tm), KEY (e), KEY (s), KEY (bits), KEY (twice), KEY (kept));
    CREATE TABLE texts (id BIGINT UNSIGNED PRIMARY KEY, user_id VARCHAR(9) NOT NULL OWNED_BY users (id), t TEXT, KEY (t(3)))";

#[test]
fn no_index_of_any_type_keeps_an_entry_of_a_row_that_went() {
    let values = |id: u64, whose: &str| {
        format!(
            "INSERT INTO things (id, user_id, c, v, b, fixed, d, f, g, y, day, at, stamp, tm, e, s, bits, flag, note)
             VALUES ({id}, '{whose}', 'a  ', 'B ', X'0{:03}', 'x', 1.5, 0.1, -0.1, 2024, '2024-02-29',
             '2024-02-29 01:02:03.456', '2024-02-29 01:02:03', '-10:11:12', 'y', 'q,p', b'101', 7, 1);
             INSERT INTO things (id, user_id) VALUES ({}, '{whose}'); INSERT INTO texts VALUES ({id}, '{whose}', 'text')",
            id % 1000, id + 1
        )
    };
    for is_sealed in [false, true] {
        let engine = Arc::new(MemoryEngine::new());
        let instance = if is_sealed {
            instance_sealed(engine.clone(), Arc::<MemoryDisk>::default(), holds::MASTER)
        } else {
            instance_on(engine.clone())
        };
        let mut client = connect(&instance, "root");
        client.run(OF_ALL_TYPES);
        client.run("INSERT INTO users VALUES ('Bob')");
        client.run(&values(1, "bob"));
        let before = stored(engine.as_ref());
        assert!(before.len() > 30, "rows and entries: {}", before.len());
        client.run("INSERT INTO users VALUES ('Ann')");
        client.run(&values(18_446_744_073_709_551_000, "ann"));
        client.run("SET time_zone = '-05:30', sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'");
        client.run("GDPR FORGET users 'ANN'");
        assert_eq!(stored(engine.as_ref()), before, "sealed: {is_sealed}");
    }
}

/// Has another session change rows of later batches when the first batch is committed.
#[derive(Default)]
struct Meddling {
    instance: Mutex<Weak<Instance>>,
    commits: AtomicU32,
    is_done: AtomicBool,
}

impl Hooks for Meddling {
    fn submit(&self, path: &LocalPath, intent: Intent) -> Reply<Result<Version, TxnError>> {
        // The other session's own commits are not counted.
        if let Ok(instance) = self.instance.try_lock()
            && let Some(instance) = instance.upgrade()
            && self.commits.fetch_add(1, Ordering::SeqCst) == 1
        {
            let mut other = connect(&instance, "root");
            other.run("UPDATE d.posts SET title = 'new' WHERE id <= 6");
            let changed = other.rows("SELECT COUNT(*) FROM d.posts WHERE title = 'new'");
            assert_eq!(changed, [["6"]]);
            self.is_done.store(true, Ordering::SeqCst);
        }
        path.submit(intent)
    }
}

#[test]
fn a_row_that_changes_between_walk_and_batch_is_deleted_as_it_is_then() {
    let engine = Arc::new(MemoryEngine::new());
    let path = LocalPath::open(engine.clone(), LocalOptions::default());
    let path = Arc::new(Hooked {
        path: Arc::new(path.expect("an empty path opens")),
        hooks: Meddling::default(),
    });
    let instance = instance_over(Arc::clone(&path) as Arc<dyn CommitPath>);
    let mut client = connect(&instance, "root");
    client.run(
        "CREATE DATABASE d; USE d; CREATE DATA_SUBJECT TABLE users (id INT PRIMARY KEY);
         CREATE TABLE posts (id INT PRIMARY KEY, user_id INT NOT NULL OWNED_BY users (id), title VARCHAR(9), KEY (title));
         INSERT INTO users VALUES (2); INSERT INTO posts VALUES (90, 2, 'old')",
    );
    client.error("GDPR CERTIFICATE 1");
    let before = stored(engine.as_ref());
    client.run("INSERT INTO users VALUES (1)");
    for post in 1..13 {
        client.run(&format!("INSERT INTO posts VALUES ({post}, 1, 'old')"));
    }
    *path.hooks.instance.lock().expect("no panic before") = Arc::downgrade(&instance);
    client.run("SET gdpr_batch_rows = 2; GDPR FORGET users 1");
    *path.hooks.instance.lock().expect("no panic before") = Weak::new();
    assert!(path.hooks.is_done.load(Ordering::SeqCst));
    assert_eq!(stored(engine.as_ref()), before);
}
