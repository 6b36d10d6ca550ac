//! Rows of owned tables are sealed: what files hold, what FORGET leaves, what a missing key answers.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod blinding;
mod keys;
mod views;

use std::path::Path;
use std::sync::Arc;

use manxdb_fixtures::sql::{Client, connect, instance_on, instance_sealed};
use manxdb_sql::statement::ownership_mutants::{OwnershipMutant, plant};
use manxdb_storage::{Direction, Engine, KeyRange, MemoryEngine, Options, RocksEngine};
use manxdb_vault::{MemoryDisk, Place};

const OLD: &str = "1111111111111111111111111111111111111111111111111111111111111111";
const NEW: &str = "2222222222222222222222222222222222222222222222222222222222222222";

/// People, what is theirs alone through one and two links, what two own, what a group owns, and a table
/// that is nobody's.
const SCHEMA: &str = "CREATE DATABASE d; USE d;
    CREATE DATA_SUBJECT TABLE users (id INT PRIMARY KEY, bio TEXT, karma INT NOT NULL DEFAULT 0);
    CREATE TABLE posts (id INT PRIMARY KEY, user_id INT NOT NULL OWNED_BY users (id), body TEXT);
    CREATE TABLE notes (post_id INT NOT NULL OWNED_BY posts (id), note VARCHAR(99));
    CREATE TABLE mails (id INT PRIMARY KEY, sender INT OWNED_BY users (id),
        receiver INT OWNED_BY users (id), body TEXT, ON DEL sender ANON (body));
    CREATE TABLE files (id INT PRIMARY KEY, name TEXT);
    CREATE TABLE shares (id INT PRIMARY KEY, user_id INT OWNED_BY users (id), file_id INT OWNS files (id));
    CREATE TABLE lines (id INT PRIMARY KEY, file_id INT OWNED_BY files (id), line TEXT);
    CREATE TABLE carts (id INT PRIMARY KEY, user_id INT OWNED_BY users (id), note TEXT) UNOWNED ALLOWED;
    CREATE TABLE tags (id INT PRIMARY KEY, tag TEXT)";

const ROWS: &str =
    "BEGIN; INSERT INTO users (id, bio) VALUES (1, 'canary-ann-bio'), (2, 'canary-bob-bio');
    INSERT INTO posts VALUES (1, 1, 'canary-ann-post'), (2, 2, 'canary-bob-post');
    INSERT INTO notes VALUES (1, 'canary-ann-note'), (2, 'canary-bob-note');
    INSERT INTO mails VALUES (1, 1, 2, 'canary-both-ann-wrote'), (2, 2, 1, 'canary-both-bob-wrote');
    INSERT INTO files VALUES (1, 'canary-ann-file'), (2, 'canary-both-file');
    INSERT INTO shares VALUES (1, 1, 1), (2, 1, 2), (3, 2, 2);
    INSERT INTO lines VALUES (1, 1, 'canary-ann-line'), (2, 2, 'canary-both-line');
    INSERT INTO carts VALUES (1, 1, 'canary-ann-cart'), (2, NULL, 'plain-guest-cart');
    INSERT INTO tags VALUES (1, 'plain-tag'); COMMIT;
    UPDATE users SET karma = karma + 1; UPDATE posts SET body = CONCAT(body, '!')";

const CANARY: &[u8] = b"canary-";

/// How often bytes are found in the files of a folder.
fn found_in(folder: &Path, wanted: &[u8]) -> usize {
    let mut found = 0;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found += found_in(&path, wanted);
            continue;
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        found += bytes
            .windows(wanted.len())
            .filter(|at| *at == wanted)
            .count();
    }
    found
}

fn shown(client: &mut Client) -> String {
    let tables = [
        "users", "posts", "notes", "mails", "files", "shares", "lines", "carts", "tags",
    ];
    let rows =
        tables.map(|table| format!("{:?}", client.rows(&format!("SELECT * FROM d.{table}"))));
    rows.join("\n")
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder is made");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            std::fs::copy(&path, &target).expect("a file is copied");
        }
    }
}

fn durable(folder: &Path) -> Arc<RocksEngine> {
    Arc::new(RocksEngine::open(folder, &Options::default()).expect("the engine opens"))
}

#[test]
fn no_file_holds_a_personal_value_and_an_old_copy_shows_nothing_of_the_forgotten() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    let disk: Arc<MemoryDisk> = Arc::default();
    let engine = durable(&data);
    let instance = instance_sealed(engine.clone(), disk.clone(), OLD);
    let mut client = connect(&instance, "root");
    client.run(SCHEMA);
    client.run(ROWS);
    let before = shown(&mut client);
    assert!(before.contains("canary-ann-post!") && before.contains("canary-both-line"));
    assert_eq!(
        found_in(&data, CANARY),
        0,
        "a personal value lies in a file"
    );
    assert!(
        found_in(&data, b"plain-") > 0,
        "this test sees values that are plain"
    );
    drop((client, instance));
    drop(engine);
    copy_folder(&data, &copy);
    let engine = durable(&data);
    let instance = instance_sealed(engine.clone(), disk.clone(), OLD);
    let mut client = connect(&instance, "root");
    client.run("USE d");
    assert_eq!(shown(&mut client), before, "rows open after a restart");
    client.run("GDPR FORGET users 1");
    let after = shown(&mut client);
    assert!(!after.contains("ann"), "{after}");
    assert!(
        after.contains("canary-bob-note") && after.contains("canary-both-line"),
        "{after}"
    );
    assert!(after.contains("canary-both-bob-wrote"), "{after}");
    drop((client, instance));
    drop(engine);
    assert_eq!(
        found_in(&data, CANARY),
        0,
        "a personal value lies in a file"
    );
    // The old data directory with the vault as it is now.
    let old = instance_sealed(durable(&copy), disk, OLD);
    let mut client = connect(&old, "root");
    client.run("USE d");
    for (table, id) in [
        ("users", 1),
        ("posts", 1),
        ("files", 1),
        ("lines", 1),
        ("mails", 1),
    ] {
        let error = client.error(&format!("SELECT * FROM {table} WHERE id = {id}"));
        assert_eq!(error.code, 51006, "{table}: {}", error.message);
    }
    assert_eq!(client.error("SELECT * FROM notes").code, 51006);
    for (table, id) in [("users", 2), ("posts", 2), ("files", 2), ("lines", 2)] {
        client.run(&format!("SELECT * FROM {table} WHERE id = {id}"));
    }
}

/// The world in memory.
struct World {
    engine: Arc<dyn Engine>,
    disk: Arc<MemoryDisk>,
}

impl World {
    fn new() -> Self {
        Self {
            engine: Arc::new(MemoryEngine::new()),
            disk: Arc::default(),
        }
    }

    fn client(&self, keys: &str) -> Client {
        let instance = instance_sealed(Arc::clone(&self.engine), self.disk.clone(), keys);
        let mut client = connect(&instance, "root");
        // The database may not be there yet.
        let _ = client.try_run("USE d");
        client
    }
}

#[test]
fn without_its_master_key_only_sealed_rows_answer_51005() {
    let world = World::new();
    let mut client = world.client(OLD);
    client.run(SCHEMA);
    client.run(ROWS);
    let whole = shown(&mut client);
    for keys in ["", NEW] {
        let mut client = world.client(keys);
        assert_eq!(client.value("SELECT tag FROM tags"), "plain-tag");
        assert_eq!(
            client.value("SELECT note FROM carts WHERE id = 2"),
            "plain-guest-cart"
        );
        for refused in [
            "SELECT bio FROM users",
            "SELECT * FROM carts",
            "INSERT INTO users (id) VALUES (9)",
            "UPDATE posts SET body = ''",
            "GDPR FORGET users 1",
        ] {
            assert_eq!(client.error(refused).code, 51005, "{refused}");
        }
    }
    // Nor may a server without a vault write what would be plain.
    let mut bare = connect(&instance_on(Arc::clone(&world.engine)), "root");
    assert_eq!(bare.error("SELECT bio FROM d.users").code, 51005);
    assert_eq!(
        bare.error("INSERT INTO d.users (id) VALUES (9)").code,
        51005
    );
    bare.run("INSERT INTO d.tags VALUES (2, 'x'); DELETE FROM d.tags WHERE id = 2");
    assert_eq!(shown(&mut world.client(OLD)), whole);
}

#[test]
fn a_damaged_slot_costs_its_own_rows_and_no_others() {
    let world = World::new();
    let mut client = world.client(OLD);
    client.run(SCHEMA);
    client.run(ROWS);
    let mut bytes = Place::BOTH.map(|place| world.disk.bytes(place));
    // The first key is the first person's.
    for place in &mut bytes {
        place[8192 + 40] ^= 1;
    }
    let [first, mirror] = bytes;
    let damaged = World {
        engine: Arc::clone(&world.engine),
        disk: Arc::new(MemoryDisk::holding(first, mirror)),
    };
    let mut client = damaged.client(OLD);
    assert_eq!(client.error("SELECT * FROM users WHERE id = 1").code, 51005);
    assert_eq!(client.error("SELECT * FROM posts").code, 51005);
    client.run("SELECT * FROM users WHERE id = 2; SELECT * FROM posts WHERE id = 2");
    client.run("SELECT * FROM files; INSERT INTO posts VALUES (3, 2, 'more')");
}

#[test]
fn a_table_without_annotations_is_stored_byte_for_byte_as_without_a_vault() {
    let plain: Arc<dyn Engine> = Arc::new(MemoryEngine::new());
    let world = World::new();
    let statements = "CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, a TEXT, KEY (a(9)));
        INSERT INTO t VALUES (1, 'x'), (2, 'y'); UPDATE t SET a = 'z' WHERE id = 2; DELETE FROM t WHERE id = 1";
    connect(&instance_on(Arc::clone(&plain)), "root").run(statements);
    world.client(OLD).run(statements);
    assert!(!stored(plain.as_ref()).is_empty());
    assert_eq!(stored(plain.as_ref()), stored(world.engine.as_ref()));
}

#[test]
fn rows_that_are_not_sealed_are_found() {
    plant(Some(OwnershipMutant::PlainRow));
    let world = World::new();
    let mut client = world.client(OLD);
    client.run(SCHEMA);
    client.run(ROWS);
    plant(None);
    assert!(!plain_rows(world.engine.as_ref()).is_empty());
}

/// Rows change hands, and the one who had them is forgotten; whether the others' are whole.
fn rows_that_changed_hands_are_whole() -> bool {
    let world = World::new();
    let mut client = world.client(OLD);
    client.run(SCHEMA);
    client.run(ROWS);
    client.run("UPDATE posts SET user_id = 2 WHERE id = 1; GDPR FORGET users 1");
    client.try_run("SELECT note FROM notes").is_ok()
}

#[test]
fn a_row_whose_key_did_not_follow_is_found() {
    assert!(rows_that_changed_hands_are_whole());
    plant(Some(OwnershipMutant::KeptBelow));
    let found = !rows_that_changed_hands_are_whole();
    plant(None);
    assert!(found, "a note under its old key is not found");
}

#[test]
fn rows_follow_their_owner_under_another_key() {
    let world = World::new();
    let mut client = world.client(OLD);
    client.run(SCHEMA);
    client.run(ROWS);
    // Post 1 with its note becomes bob's, and the guest's cart ann's.
    client.run(
        "UPDATE posts SET user_id = 2 WHERE id = 1; UPDATE carts SET user_id = 2 WHERE id = 1",
    );
    client.run("UPDATE carts SET user_id = 1 WHERE id = 2");
    client.run("UPDATE shares SET user_id = 2 WHERE id = 1");
    client.run("GDPR FORGET users 1");
    let left = client.rows("SELECT body FROM posts ORDER BY id");
    assert_eq!(left, [["canary-ann-post!"], ["canary-bob-post!"]]);
    let left = client.rows("SELECT note FROM notes ORDER BY post_id");
    assert_eq!(left, [["canary-ann-note"], ["canary-bob-note"]]);
    assert_eq!(client.rows("SELECT note FROM carts"), [["canary-ann-cart"]]);
    assert_eq!(
        client.rows("SELECT id FROM files ORDER BY id"),
        [["1"], ["2"]]
    );
    assert_eq!(client.rows("SELECT line FROM lines ORDER BY id").len(), 2);
}

#[test]
fn rows_that_came_before_their_owners_and_before_the_vault_are_sealed_as_the_others() {
    for comes_late in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        let disk: Arc<MemoryDisk> = Arc::default();
        let engine: Arc<dyn Engine> = durable(&data);
        if comes_late {
            let instance = instance_on(Arc::clone(&engine));
            let mut client = connect(&instance, "root");
            client.run(SCHEMA);
            client.run(ROWS);
        }
        let instance = instance_sealed(Arc::clone(&engine), disk.clone(), OLD);
        let mut client = connect(&instance, "root");
        if comes_late {
            client.run("USE d");
            instance.tend_vault().expect("rows are sealed");
        } else {
            client.run(SCHEMA);
            let reversed: Vec<&str> = ROWS.lines().map(str::trim).collect();
            client.run("SET foreign_key_checks = 0");
            for line in reversed[1..8].iter().rev() {
                client.run(line);
            }
            client.run(&reversed[0]["BEGIN; ".len()..]);
            client.run("SET foreign_key_checks = 1");
            assert_eq!(
                found_in(&data, CANARY),
                0,
                "a personal value lies in a file"
            );
        }
        client.run("GDPR FORGET users 1");
        let after = shown(&mut client);
        assert!(!after.contains("ann"), "{after}");
        assert!(after.contains("canary-bob-note"), "{after}");
        assert_eq!(plain_rows(engine.as_ref()), Vec::<Vec<u8>>::new());
    }
}

/// All data of tables as it is stored.
fn stored(engine: &dyn Engine) -> Vec<(Vec<u8>, Vec<u8>)> {
    let at = engine.latest().expect("a version");
    let range = KeyRange::prefix(&[1]);
    let mut cursor = engine
        .scan(&range, at, Direction::Forward)
        .expect("a cursor");
    let mut all = Vec::new();
    while let Some(entry) = cursor.next().expect("an entry") {
        all.push((entry.key.to_vec(), entry.value.to_vec()));
    }
    all
}

/// Rows that are stored plain though they are somebody's: all but the guest's cart and the tags.
fn plain_rows(engine: &dyn Engine) -> Vec<Vec<u8>> {
    let has = |wanted: &[u8], value: &[u8]| value.windows(wanted.len()).any(|at| at == wanted);
    let rows = stored(engine).into_iter();
    let rows = rows
        .filter(|(key, _)| key.get(5..9) == Some(&[0; 4]))
        .map(|(_, value)| value);
    rows.filter(|value| value.first() != Some(&2) && !has(b"plain-", value))
        .collect()
}

#[test]
fn alter_table_keeps_rows_sealed_and_seals_what_becomes_somebodys() {
    let world = World::new();
    let mut client = world.client(OLD);
    client.run(SCHEMA);
    client.run(ROWS);
    // A copy of the table, a column in place, and a table that was nobody's.
    client
        .run("ALTER TABLE posts MODIFY id BIGINT NOT NULL; ALTER TABLE users ADD COLUMN nick TEXT");
    client.run("ALTER TABLE notes ADD COLUMN id INT AUTO_INCREMENT PRIMARY KEY");
    client.run(
        "CREATE TABLE logs (id INT PRIMARY KEY, user_id INT, entry TEXT, KEY (user_id));
        INSERT INTO logs VALUES (1, 1, 'canary-ann-log'), (2, 2, 'canary-bob-log');
        ALTER TABLE logs ADD OWNED_BY (user_id) users (id)",
    );
    assert_eq!(plain_rows(world.engine.as_ref()), Vec::<Vec<u8>>::new());
    assert_eq!(client.rows("SELECT nick FROM users"), [["NULL"], ["NULL"]]);
    client.run("GDPR FORGET users 1");
    assert!(!shown(&mut client).contains("ann"));
    assert_eq!(client.rows("SELECT entry FROM logs"), [["canary-bob-log"]]);
    assert_eq!(client.rows("SELECT note FROM notes"), [["canary-bob-note"]]);
}

/// Whether an old copy of the rows shows something of a person who was forgotten.
fn an_old_copy_shows_the_forgotten() -> bool {
    let world = World::new();
    let instance = instance_sealed(Arc::clone(&world.engine), world.disk.clone(), OLD);
    let mut client = connect(&instance, "root");
    client.run(SCHEMA);
    client.run(ROWS);
    // What files hold of old versions: a snapshot from before sees the same.
    let mut reader = connect(&instance, "root");
    reader.run("USE d; START TRANSACTION WITH CONSISTENT SNAPSHOT");
    client.run("GDPR FORGET users 1");
    let tables = ["users", "posts", "notes", "files", "lines"];
    let first = |table: &str| match table {
        "notes" => "SELECT * FROM notes WHERE post_id = 1".to_string(),
        _ => format!("SELECT * FROM {table} WHERE id = 1"),
    };
    let shows = |sql: String| reader.try_run(&sql).is_ok();
    tables.map(first).into_iter().any(shows)
}

#[test]
fn a_snapshot_from_before_shows_nothing_of_the_forgotten() {
    assert!(!an_old_copy_shows_the_forgotten());
    plant(Some(OwnershipMutant::KeptKey));
    let found = an_old_copy_shows_the_forgotten();
    plant(None);
    assert!(found, "a kept key is not found");
}
