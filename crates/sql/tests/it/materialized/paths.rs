//! Every way in which a row comes to be, changes or goes.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};

use manxdb_fixtures::sql::hooked::{Hooked, Hooks};
use manxdb_fixtures::sql::{Client, connect, instance, instance_over};
use manxdb_sql::session::Instance;
use manxdb_storage::{MemoryEngine, Version};
use manxdb_txn::{CommitPath, Intent, LocalOptions, LocalPath, Reply, TxnError};

use super::{counts, fresh, sorted};

/// What the view answers for `owner`, and what the base plan does; they are the same.
fn check(client: &mut Client, owner: i64) -> Vec<Vec<String>> {
    let viewed = sorted(
        client,
        &format!("SELECT id, kind, name FROM item WHERE owner = {owner}"),
    );
    let base = format!("SELECT id, kind, name FROM item WHERE owner = {owner} AND id = id");
    assert_eq!(viewed, sorted(client, &base));
    viewed
}

fn viewed() -> (Arc<Instance>, Client) {
    let (instance, mut client) = fresh();
    client.run("CREATE MATERIALIZED VIEW v AS SELECT id, kind, name FROM item WHERE owner = ?");
    for owner in 0..4 {
        check(&mut client, owner);
    }
    (instance, client)
}

#[test]
fn statements_that_write_rows_in_any_way_reach_the_view() {
    let (_instance, mut client) = viewed();
    for text in [
        "INSERT INTO item VALUES (1, 1, 1, 1, 'a', NULL), (2, 1, 1, 1, 'b', NULL), (3, 2, 1, 1, 'c', NULL)",
        "INSERT INTO item VALUES (1, 1, 9, 1, 'z', NULL) ON DUPLICATE KEY UPDATE kind = 9, owner = 2",
        "REPLACE INTO item VALUES (2, 3, 4, 1, 'r', NULL)",
        "INSERT INTO item SELECT id + 10, owner, kind, price, name, made FROM item",
        "UPDATE item SET owner = owner + 1 WHERE id > 10",
        "UPDATE item SET id = id + 100 WHERE owner = 2",
        "UPDATE item AS a JOIN item AS b ON a.id = b.id SET a.name = CONCAT(b.name, 'x')",
        "DELETE FROM item WHERE kind = 9",
        "DELETE a FROM item AS a JOIN item AS b ON a.id = b.id WHERE a.owner = 2",
        "UPDATE item SET owner = NULL WHERE owner = 3",
        "UPDATE item SET owner = 3 WHERE owner IS NULL",
        "DELETE FROM item",
    ] {
        client.run(text);
        for owner in 0..4 {
            check(&mut client, owner);
        }
    }
    let (hits, misses) = counts(&mut client, "v");
    assert_eq!((hits, misses), (12 * 4, 4), "no key was filled twice");
}

#[test]
fn a_transaction_sees_its_own_writes_and_what_is_undone_never_was() {
    let (instance, mut client) = viewed();
    let mut other = connect(&instance, "root");
    other.run("USE d");
    client.run("BEGIN; INSERT INTO item VALUES (1, 1, 1, 1, 'a', NULL)");
    assert_eq!(check(&mut client, 1).len(), 1);
    assert_eq!(check(&mut other, 1).len(), 0);
    client.run("SAVEPOINT s; INSERT INTO item VALUES (2, 1, 1, 1, 'b', NULL); ROLLBACK TO s");
    assert_eq!(check(&mut client, 1).len(), 1);
    client.run("COMMIT");
    assert_eq!(check(&mut client, 1).len(), 1);
    assert_eq!(check(&mut other, 1).len(), 1);
    client.run("BEGIN; DELETE FROM item; ROLLBACK");
    assert_eq!(check(&mut other, 1).len(), 1);
    let duplicate = "INSERT INTO item VALUES (5, 1, 1, 1, 'x', NULL), (1, 1, 1, 1, 'y', NULL)";
    assert_eq!(client.error(duplicate).code, 1062);
    assert_eq!(check(&mut other, 1).len(), 1);
}

#[test]
fn readers_see_the_version_of_their_snapshot() {
    let (instance, mut client) = viewed();
    let mut old = connect(&instance, "root");
    old.run("USE d; SET SESSION transaction_isolation = 'REPEATABLE-READ'");
    let mut committed = connect(&instance, "root");
    committed.run("USE d; SET SESSION transaction_isolation = 'READ-COMMITTED'");
    client.run("INSERT INTO item VALUES (1, 1, 1, 1, 'a', NULL)");
    old.run("BEGIN");
    committed.run("BEGIN");
    assert_eq!(check(&mut old, 1).len(), 1);
    for id in 2..5 {
        client.run(&format!(
            "INSERT INTO item VALUES ({id}, 1, 1, 1, 'b', NULL)"
        ));
        assert_eq!(check(&mut old, 1).len(), 1);
        assert_eq!(check(&mut committed, 1).len(), id);
    }
    // A key that nobody had asked for is not filled from an old snapshot.
    client.run("INSERT INTO item VALUES (9, 77, 1, 1, 'b', NULL)");
    assert_eq!(check(&mut old, 77).len(), 0);
    assert_eq!(check(&mut client, 77).len(), 1);
    assert_eq!(check(&mut old, 77).len(), 0);
    old.run("COMMIT");
    assert_eq!(check(&mut old, 1).len(), 4);
}

#[test]
fn a_change_of_the_table_empties_the_view_and_shapes_it_anew() {
    let (_instance, mut client) = viewed();
    client.run("INSERT INTO item VALUES (1, 1, 1, 1, 'a', NULL), (2, 1, 2, 1, 'b', NULL)");
    for text in [
        "ALTER TABLE item ADD COLUMN extra INT FIRST",
        "ALTER TABLE item MODIFY COLUMN kind BIGINT NOT NULL",
        "ALTER TABLE item ADD INDEX by_kind (kind)",
        "ALTER TABLE item DROP PRIMARY KEY, ADD PRIMARY KEY (id, kind)",
        "RENAME TABLE item TO there",
        "RENAME TABLE there TO item",
        "TRUNCATE TABLE item",
        "ALTER TABLE item DROP COLUMN name",
        "ALTER TABLE item ADD COLUMN name VARCHAR(9) NOT NULL DEFAULT 'n'",
        "DROP TABLE item",
    ] {
        client.run(text);
        let known = client.rows("SHOW TABLES");
        let state = client.rows("SHOW MATERIALIZED VIEWS")[0][2].clone();
        let is_there = known == [["item"]] && !text.ends_with("DROP COLUMN name");
        assert_eq!(state == "usable", is_there, "{text}: {state}");
        if is_there {
            check(&mut client, 1);
            client.run("INSERT INTO item (id, owner, kind) VALUES (50, 1, 7)");
            check(&mut client, 1);
            client.run("DELETE FROM item WHERE id = 50");
            check(&mut client, 1);
        }
    }
}

#[test]
fn cascades_and_files_reach_the_view() {
    let (_instance, mut client) = fresh();
    client.run(
        "CREATE TABLE child (id INT PRIMARY KEY, item_id INT, kind INT, \
         FOREIGN KEY (item_id) REFERENCES item (id) ON DELETE CASCADE ON UPDATE CASCADE)",
    );
    client.run("CREATE MATERIALIZED VIEW v AS SELECT id, kind FROM child WHERE item_id = ?");
    client.run("INSERT INTO item VALUES (1, 1, 1, 1, 'a', NULL), (2, 1, 1, 1, 'a', NULL)");
    let look = |client: &mut Client, item: i64| {
        let viewed = sorted(
            client,
            &format!("SELECT id, kind FROM child WHERE item_id = {item}"),
        );
        let base = format!("SELECT id, kind FROM child WHERE item_id = {item} AND id = id");
        assert_eq!(viewed, sorted(client, &base));
        viewed.len()
    };
    assert_eq!((look(&mut client, 1), look(&mut client, 2)), (0, 0));
    client.run("SET GLOBAL local_infile = ON");
    let file = b"1,1,5\n2,1,5\n3,2,5\n";
    let load = "LOAD DATA LOCAL INFILE 'f' INTO TABLE child FIELDS TERMINATED BY ','";
    client.load(load, file).unwrap();
    assert_eq!((look(&mut client, 1), look(&mut client, 2)), (2, 1));
    client.run("UPDATE item SET id = 3 WHERE id = 2");
    assert_eq!((look(&mut client, 2), look(&mut client, 3)), (0, 1));
    client.run("DELETE FROM item WHERE id = 1");
    assert_eq!(look(&mut client, 1), 0);
    assert_eq!(counts(&mut client, "v"), (4, 3));
}

#[test]
fn what_is_forgotten_is_in_no_view() {
    let instance = instance();
    let mut client = connect(&instance, "root");
    client.run(
        "CREATE DATABASE d; USE d; \
         CREATE DATA_SUBJECT TABLE users (id INT PRIMARY KEY, name VARCHAR(20)); \
         CREATE TABLE posts (id INT PRIMARY KEY, user_id INT NOT NULL OWNED_BY users (id), tag INT)",
    );
    client.run("CREATE MATERIALIZED VIEW v AS SELECT id, user_id FROM posts WHERE tag = ?");
    client.run("INSERT INTO users VALUES (1, 'a'), (2, 'b')");
    client.run("INSERT INTO posts VALUES (1, 1, 5), (2, 1, 5), (3, 2, 5)");
    let query = "SELECT id, user_id FROM posts WHERE tag = 5";
    assert_eq!(client.rows(query).len(), 3);
    client.run("GDPR FORGET users 1");
    assert_eq!(client.rows("SHOW MATERIALIZED VIEWS")[0][4], "0");
    assert_eq!(client.rows(query), [["3", "2"]]);
    assert_eq!(client.rows(query), [["3", "2"]]);
}

/// Has another session read through a view at each commit, and without it.
#[derive(Default)]
struct Reading {
    instance: Mutex<Weak<Instance>>,
    /// How often the view and the base plan were compared.
    compared: AtomicU32,
}

impl Hooks for Reading {
    fn submit(&self, path: &LocalPath, intent: Intent) -> Reply<Result<Version, TxnError>> {
        let reply = path.submit(intent);
        // Commits of the reader's own are not watched.
        let Ok(instance) = self.instance.try_lock() else {
            return reply;
        };
        if let Some(instance) = instance.upgrade() {
            let mut reader = connect(&instance, "root");
            reader.run("USE d; BEGIN");
            let viewed = reader.rows("SELECT SUM(points), COUNT(*) FROM posts WHERE tag = 5");
            let base = "SELECT SUM(points), COUNT(*) FROM posts WHERE tag = 5 AND id = id";
            assert_eq!(viewed, reader.rows(base));
            reader.run("COMMIT");
            self.compared.fetch_add(1, Ordering::SeqCst);
        }
        reply
    }
}

#[test]
fn views_hear_of_whole_rows_while_a_person_is_forgotten() {
    let path = LocalPath::open(Arc::new(MemoryEngine::new()), LocalOptions::default()).unwrap();
    let path = Arc::new(Hooked {
        path: Arc::new(path),
        hooks: Reading::default(),
    });
    let instance = instance_over(Arc::clone(&path) as Arc<dyn CommitPath>);
    let mut client = connect(&instance, "root");
    client.run(
        "CREATE DATABASE d; USE d; \
         CREATE DATA_SUBJECT TABLE users (id INT PRIMARY KEY); \
         CREATE TABLE posts (id INT PRIMARY KEY, user_id INT NOT NULL OWNED_BY users (id), tag INT, points INT)",
    );
    // FORGET reads neither column of it: no key has them.
    client
        .run("CREATE MATERIALIZED VIEW v AS SELECT SUM(points), COUNT(*) FROM posts WHERE tag = ?");
    client.run("INSERT INTO users VALUES (1), (2)");
    client
        .run("INSERT INTO posts VALUES (1, 1, 5, 10), (2, 1, 5, 20), (3, 2, 5, 40), (4, 1, 6, 80)");
    let query = "SELECT SUM(points), COUNT(*) FROM posts WHERE tag = 5";
    assert_eq!(client.rows(query), [["70", "3"]]);
    let before = counts(&mut client, "v");
    *path.hooks.instance.lock().unwrap() = Arc::downgrade(&instance);
    client.run("SET gdpr_batch_rows = 1; GDPR FORGET users 1");
    *path.hooks.instance.lock().unwrap() = Weak::new();
    let compared = path.hooks.compared.load(Ordering::SeqCst);
    assert!(compared > 3, "{compared} commits");
    // The key was filled all the time: a change that does not fit would have dropped it.
    let after = counts(&mut client, "v");
    assert_eq!(after, (before.0 + u64::from(compared), before.1));
    assert_eq!(client.rows(query), [["40", "1"]]);
}

#[test]
fn a_session_that_computes_otherwise_is_answered_by_the_base_plan() {
    let (_instance, mut client) = fresh();
    client.run("CREATE MATERIALIZED VIEW a AS SELECT AVG(price) FROM item WHERE owner = ?");
    client.run("INSERT INTO item VALUES (1, 1, 1, 1, 'a', NULL), (2, 1, 1, 2, 'a', NULL)");
    let query = "SELECT AVG(price) FROM item WHERE owner = 1";
    assert_eq!(client.value(query), "1.500000");
    let before = counts(&mut client, "a");
    client.run("SET sql_mode = ''");
    client.rows(query);
    client.run("SET sql_mode = DEFAULT; SET div_precision_increment = 9");
    client.rows(query);
    assert_eq!(counts(&mut client, "a"), before);
    client.run(
        "SET div_precision_increment = DEFAULT; SET transaction_isolation = 'SERIALIZABLE'; BEGIN",
    );
    client.rows(query);
    assert_eq!(counts(&mut client, "a"), before, "its reads are validated");
    client.run("COMMIT");
    client.rows(query);
    assert_eq!(counts(&mut client, "a"), (before.0 + 1, before.1));
}
