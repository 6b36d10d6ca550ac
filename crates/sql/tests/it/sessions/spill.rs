//! Statements whose rows do not fit into their memory.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use manxdb_storage::MemoryEngine;

use manxdb_fixtures::sql::{connect, instance_on, instance_that_spills};

/// What a statement may hold: about a tenth of either table.
const MEMORY: usize = 128 << 10;

/// Two tables of 4,000 rows, some of whose keys are NULL, others in one table only.
fn filled() -> Arc<MemoryEngine> {
    let engine = Arc::new(MemoryEngine::new());
    let instance = instance_on(engine.clone());
    let mut a = connect(&instance, "root");
    a.run("CREATE DATABASE d; USE d; CREATE TABLE digit (d INT PRIMARY KEY)");
    a.run("INSERT INTO digit VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)");
    for (table, step) in [("l", 3), ("r", 2)] {
        a.run(&format!(
            "CREATE TABLE {table} (id INT PRIMARY KEY, code INT, word VARCHAR(80) COLLATE utf8mb4_bin)"
        ));
        a.run(&format!(
            "INSERT INTO {table} SELECT n, IF(n % 50 = 7, NULL, n * {step} % 9000), REPEAT(CHAR(97 + n % 26), 60) \
             FROM (SELECT a.d * 1000 + b.d * 100 + c.d * 10 + e.d AS n \
                   FROM digit a, digit b, digit c, digit e WHERE a.d < 4) AS numbers"
        ));
    }
    engine
}

const QUERIES: [&str; 32] = [
    "SELECT l.id, r.id, r.word FROM l JOIN r ON l.code = r.code",
    "SELECT l.id, r.id, r.word FROM l LEFT JOIN r ON l.code = r.code AND r.id % 3 = 0",
    "SELECT l.id, r.id FROM r RIGHT JOIN l ON l.code = r.code AND l.word < r.word",
    "SELECT l.id FROM l WHERE l.code IN (SELECT r.code FROM r WHERE r.word > 'c')",
    "SELECT l.id FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.code = l.code)",
    "SELECT COUNT(*), SUM(l.id), SUM(r.id) FROM l JOIN r ON l.code = r.code",
    "SELECT id, code, word FROM l ORDER BY word DESC, code, id",
    "SELECT code, COUNT(*), SUM(id), MAX(word), COUNT(DISTINCT id % 3) FROM l GROUP BY code",
    "SELECT id, word, ANY_VALUE(code), GROUP_CONCAT(code) FROM r GROUP BY id, word",
    "SELECT l.id, COUNT(r.id) AS n FROM l LEFT JOIN r ON l.code = r.code GROUP BY l.id ORDER BY n, l.id",
    "SELECT DISTINCT word, id FROM l",
    "SELECT DISTINCT code FROM r ORDER BY code",
    "SELECT COUNT(*), SUM(n) FROM (SELECT id, COUNT(*) AS n FROM r GROUP BY id) AS grouped",
    "SELECT l.id FROM l WHERE l.code IN (SELECT DISTINCT r.code FROM r WHERE r.id > 10)",
    "SELECT id, word FROM l ORDER BY word, id DESC LIMIT 2500, 100",
    "SELECT id, word FROM l UNION SELECT id, word FROM r UNION SELECT -1, 'a'",
    "SELECT code, id FROM l UNION SELECT code, id FROM r UNION ALL SELECT code, id FROM r ORDER BY 1, 2",
    "SELECT id, RANK() OVER (ORDER BY word), DENSE_RANK() OVER (ORDER BY code DESC) FROM l",
    "SELECT id, word, ROW_NUMBER() OVER (PARTITION BY word ORDER BY code, id), NTILE(7) OVER (PARTITION BY word ORDER BY id DESC) FROM l",
    "SELECT id, SUM(code) OVER (PARTITION BY word), COUNT(*) OVER (ORDER BY code), CUME_DIST() OVER (ORDER BY code) FROM l",
    "SELECT id, LAG(word, 3, 'none') OVER (ORDER BY id), LEAD(id) OVER (PARTITION BY word ORDER BY id) FROM l",
    "SELECT id, SUM(id) OVER (ORDER BY id ROWS BETWEEN 5 PRECEDING AND 2 FOLLOWING), MAX(word) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM l",
    "SELECT id, COUNT(*) OVER (PARTITION BY id % 40 ORDER BY code RANGE BETWEEN 300 PRECEDING AND 100 FOLLOWING), NTH_VALUE(id, 4) OVER (PARTITION BY id % 9 ORDER BY code, id) FROM l",
    "SELECT id, PERCENT_RANK() OVER w, FIRST_VALUE(id) OVER w, LAST_VALUE(word) OVER w FROM l WINDOW w AS (PARTITION BY id % 3 ORDER BY word, id) ORDER BY 2, 1",
    "SELECT id, word FROM l EXCEPT SELECT id, word FROM r WHERE id > 10 AND id % 7 > 0",
    "SELECT id, word FROM l INTERSECT SELECT id, word FROM r WHERE id > 10",
    "SELECT word, code FROM r EXCEPT SELECT word, code FROM l WHERE id < 3000",
    "SELECT id % 50, code % 90 FROM l INTERSECT ALL SELECT id % 50, code % 90 FROM r ORDER BY 1, 2",
    "SELECT word, id % 1500 FROM l EXCEPT ALL SELECT word, id % 1500 FROM r WHERE id > 3500",
    "SELECT id, word FROM l EXCEPT SELECT id, word FROM r WHERE id < 10",
    "SELECT COUNT(*), (SELECT MAX(n) FROM (SELECT id, word, COUNT(*) AS n FROM r GROUP BY id, word ORDER BY word) AS g) FROM l",
    "SELECT COUNT(*), SUM(id) FROM (SELECT id, word FROM l UNION SELECT id + 2000, word FROM r) AS both_sides",
];

#[test]
fn joins_sorts_groups_and_distinct_rows_answer_the_same_from_files() {
    let engine = filled();
    let whole = instance_on(engine.clone());
    let (spilling, host) = instance_that_spills(engine, MEMORY);
    let (mut whole, mut spilling) = (connect(&whole, "root"), connect(&spilling, "root"));
    whole.run("USE d");
    spilling.run("USE d");
    let mut spilled = 0;
    for query in QUERIES {
        let (mut wanted, mut found) = (whole.rows(query), spilling.rows(query));
        assert!(!wanted.is_empty(), "{query}");
        if !query.contains("ORDER BY") {
            wanted.sort();
            found.sort();
        }
        assert!(wanted == found, "{query}");
        let files = host.files.load(Ordering::SeqCst);
        spilled += usize::from(files > 0);
        host.files.store(0, Ordering::SeqCst);
    }
    assert!(spilled >= 27, "{spilled} queries took files");
}

#[test]
fn a_damaged_file_is_an_error_and_no_answer() {
    let (instance, host) = instance_that_spills(filled(), MEMORY);
    let mut a = connect(&instance, "root");
    a.run("USE d");
    host.damages_files.store(true, Ordering::SeqCst);
    for query in [QUERIES[0], QUERIES[6]] {
        assert_eq!(a.error(query).code, 1024, "{query}");
    }
    host.damages_files.store(false, Ordering::SeqCst);
    assert_eq!(a.rows(QUERIES[6]).len(), 4_000);
}

#[test]
fn one_key_with_too_many_rows_ends_in_an_error() {
    let engine = filled();
    let instance = instance_on(engine.clone());
    let mut a = connect(&instance, "root");
    a.run("USE d");
    a.run("UPDATE r SET code = 1");
    drop((a, instance));
    let (instance, _) = instance_that_spills(engine, MEMORY);
    let mut a = connect(&instance, "root");
    a.run("USE d");
    assert_eq!(a.error(QUERIES[0]).code, 1038);
    assert_eq!(a.value("SELECT COUNT(*) FROM r"), "4000");
}

#[test]
fn what_does_not_go_on_in_files_ends_in_an_error_and_the_session_goes_on() {
    let (instance, _) = instance_that_spills(filled(), MEMORY);
    let mut a = connect(&instance, "root");
    a.run("USE d");
    for query in [
        "SELECT COUNT(*) FROM l WHERE word IN (SELECT CONCAT(word, id) FROM r) OR id = 1",
        "SELECT COUNT(*) FROM JSON_TABLE(CONCAT('[0', REPEAT(',0', 9999), ']'), '$[*]' COLUMNS (n INT PATH '$')) AS t",
    ] {
        assert_eq!(a.error(query).code, 1038, "{query}");
        assert_eq!(a.value("SELECT COUNT(*) FROM r"), "4000");
    }
}

#[test]
fn statistics_are_there_after_a_restart() {
    let engine = filled();
    let instance = instance_on(engine.clone());
    let mut a = connect(&instance, "root");
    a.run("USE d");
    a.run("ANALYZE TABLE l");
    drop((a, instance));
    let instance = instance_on(engine);
    let mut a = connect(&instance, "root");
    let cardinality = "SELECT CARDINALITY FROM information_schema.STATISTICS WHERE TABLE_NAME = ";
    let of_l: u64 = a.value(&format!("{cardinality}'l'")).parse().unwrap();
    assert!((3_600..=4_000).contains(&of_l), "about 4000: {of_l}");
    assert_eq!(a.value(&format!("{cardinality}'r'")), "0");
    let explained = a.rows("EXPLAIN SELECT * FROM d.l");
    assert_eq!(explained[0][9], "4000");
}

#[test]
fn statements_that_write_many_rows_keep_them_in_a_file() {
    let (instance, host) = instance_that_spills(filled(), MEMORY);
    let mut a = connect(&instance, "root");
    a.run("USE d");
    a.run("CREATE TABLE copy LIKE l");
    for (text, check, wanted) in [
        (
            "INSERT INTO copy SELECT * FROM l",
            "SELECT COUNT(*), MIN(id), MAX(id) FROM copy",
            "4000 0 3999",
        ),
        (
            "UPDATE copy SET id = id + 1",
            "SELECT COUNT(*), MIN(id), MAX(id) FROM copy",
            "4000 1 4000",
        ),
        (
            "UPDATE copy JOIN r ON r.id = copy.id SET copy.code = r.id",
            "SELECT COUNT(*) FROM copy WHERE code = id",
            "3999",
        ),
        (
            "DELETE FROM copy WHERE id % 2 = 0",
            "SELECT COUNT(*) FROM copy",
            "2000",
        ),
    ] {
        if text.contains("id + 1") {
            // From the last on, or each row would meet the next one.
            a.run(&format!("{text} ORDER BY id DESC"));
        } else {
            a.run(text);
        }
        assert!(host.files.swap(0, Ordering::SeqCst) > 0, "{text}");
        assert_eq!(a.rows(check)[0].join(" "), wanted, "{text}");
    }
}
