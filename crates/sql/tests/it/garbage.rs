//! What dropped tables and indexes leave behind goes, in portions, and only that.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use manxdb_fixtures::sql::{Client, connect, instance_on};
use manxdb_sql::session::Instance;
use manxdb_storage::{Direction, Engine, KeyRange, MemoryEngine, Version};

/// Rows and index entries of all tables.
const DATA: &[u8] = &[0x01];
/// Notes of what is to be deleted.
const NOTES: &[u8] = &[0x00, 0x03];
/// Notes of tables in the making.
const RESERVED: &[u8] = &[0x00, 0x0c];
/// Notes of changes in the making.
const UNFINISHED: &[u8] = &[0x00, 0x07];

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

fn open(engine: &Arc<MemoryEngine>) -> (Arc<Instance>, Client) {
    let engine: Arc<dyn Engine> = engine.clone();
    let instance = instance_on(engine);
    let client = connect(&instance, "root");
    (instance, client)
}

fn fill(client: &mut Client, table: &str, rows: u32) {
    client.run(&format!(
        "CREATE TABLE {table} (id INT PRIMARY KEY, a INT, KEY ka (a))"
    ));
    for chunk in 0..rows.div_ceil(500) {
        let first = chunk * 500;
        let values: Vec<String> = (first..rows.min(first + 500))
            .map(|id| format!("({id}, {})", id % 7))
            .collect();
        client.run(&format!("INSERT INTO {table} VALUES {}", values.join(",")));
    }
}

#[test]
fn a_dropped_table_goes_in_portions_and_its_neighbours_stay() {
    let engine = Arc::new(MemoryEngine::new());
    let (instance, mut client) = open(&engine);
    client.run("CREATE DATABASE d; USE d");
    fill(&mut client, "before", 3);
    fill(&mut client, "gone", 4_000);
    fill(&mut client, "after", 3);
    let kept = 2 * (3 + 3);
    assert_eq!(keys(&engine, DATA), 8_000 + kept);

    client.run("DROP TABLE gone");
    let left = keys(&engine, DATA);
    assert_eq!(left, 8_000 + kept, "DROP deletes none of it itself");
    let mut portions = 0;
    while instance.collect_garbage().expect("memory can be written") {
        portions += 1;
        assert!(portions < 20, "it ends");
    }
    assert!(portions > 0, "more was left than one portion");
    assert_eq!((keys(&engine, DATA), keys(&engine, NOTES)), (kept, 0));
    assert_eq!(client.value("SELECT COUNT(*) FROM after WHERE a >= 0"), "3");
    assert!(!instance.collect_garbage().expect("nothing to do"));
}

#[test]
fn what_a_dropped_index_left_goes_after_a_restart() {
    let engine = Arc::new(MemoryEngine::new());
    let (instance, mut client) = open(&engine);
    client.run("CREATE DATABASE d; USE d");
    fill(&mut client, "t", 6_000);
    client.run("ALTER TABLE t DROP INDEX ka");
    assert!(keys(&engine, DATA) > 6_000);
    drop(client);
    drop(instance);

    let (instance, mut client) = open(&engine);
    while instance.collect_garbage().expect("memory can be written") {}
    assert_eq!((keys(&engine, DATA), keys(&engine, NOTES)), (6_000, 0));
    assert_eq!(client.value("SELECT COUNT(*) FROM d.t"), "6000");
}

#[test]
fn a_row_that_another_has_locked_delays_the_cleaning_and_not_the_drop() {
    let engine = Arc::new(MemoryEngine::new());
    let (instance, mut client) = open(&engine);
    client.run("CREATE DATABASE d; USE d");
    fill(&mut client, "t", 10);
    let mut other = connect(&instance, "root");
    other.run("USE d; BEGIN; UPDATE t SET a = 70 WHERE id = 4");
    client.run("DROP TABLE t");
    assert_eq!(client.error("SELECT * FROM t").code, 1146);
    assert!(keys(&engine, DATA) > 0);
    assert_eq!(other.error("COMMIT").code, 1213);
    while instance.collect_garbage().expect("memory can be written") {}
    assert_eq!((keys(&engine, DATA), keys(&engine, NOTES)), (0, 0));
}

/// What a copy that does not come to its end has written goes without a restart.
fn leaves_no_copy(change: &str, code: u16) {
    let engine = Arc::new(MemoryEngine::new());
    let (instance, mut client) = open(&engine);
    client.run("CREATE DATABASE d; USE d");
    fill(&mut client, "t", 4_000);
    client.run("INSERT INTO t VALUES (100000, NULL)");
    let shown = client.rows("SHOW CREATE TABLE t");
    assert_eq!(client.error(change).code, code, "{change}");
    assert!(keys(&engine, DATA) > 2 * 4_001, "{change} has copied rows");
    while instance.collect_garbage().expect("memory can be written") {}
    let notes: usize = [NOTES, RESERVED, UNFINISHED]
        .iter()
        .map(|notes| keys(&engine, notes))
        .sum();
    assert_eq!((keys(&engine, DATA), notes), (2 * 4_001, 0), "{change}");
    assert_eq!(client.rows("SHOW CREATE TABLE t"), shown);
    client.run("INSERT INTO t VALUES (100001, 5)");
    assert_eq!(client.value("SELECT COUNT(*) FROM t WHERE a >= 0"), "4001");
}

#[test]
fn a_copy_that_fails_leaves_nothing() {
    leaves_no_copy("ALTER TABLE t MODIFY a BIGINT NOT NULL", 1138);
    leaves_no_copy("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (a)", 1062);
}
