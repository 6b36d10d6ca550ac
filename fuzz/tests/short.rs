//! A short run of every fuzz target: seeded, the same on every machine, part of `cargo test`.

use manxdb_fuzz::{Source, mutated, packets, records, sample_record, sql_text};

/// Inputs a target gets; seconds, not minutes, in a debug build.
const ROUNDS: usize = 20_000;

const STATEMENTS: &[&str] = &[
    "SELECT a, COUNT(*) AS n FROM t AS x LEFT JOIN u ON x.id = u.id WHERE a IN (1, 2, NULL) AND b LIKE 'x%' \
     GROUP BY a HAVING n > 1 ORDER BY n DESC, a LIMIT 5 OFFSET 2",
    "INSERT INTO `t` (a, b) VALUES (1, 'it''s'), (DEFAULT, \"x\\n\") ON DUPLICATE KEY UPDATE a = VALUES(a) + 1",
    "CREATE TABLE IF NOT EXISTS t (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, v VARCHAR(10) COLLATE utf8mb4_bin \
     DEFAULT 'x' COMMENT 'c', d DECIMAL(10,2) CHECK (d > 0), KEY k (v, d DESC), FOREIGN KEY (id) REFERENCES p (id) \
     ON DELETE CASCADE) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4",
    "CREATE DATA_SUBJECT TABLE users (id INT PRIMARY KEY, name TEXT, PII name)",
    "CREATE TABLE s (id INT PRIMARY KEY, author INT OWNED_BY users(id), ON DEL author ANON (author))",
    "UPDATE t SET a = CASE WHEN b IS NULL THEN 0 ELSE a + INTERVAL 1 DAY END WHERE NOT (a BETWEEN 1 AND 2) ORDER BY a LIMIT 1",
    "DELETE x FROM t x JOIN u USING (id) WHERE EXISTS (SELECT 1 FROM v WHERE v.id = x.id)",
    "ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 7 AFTER b, DROP INDEX k, RENAME COLUMN a TO z",
    "/*!40101 SET @@session.sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES'), NAMES utf8mb4 */; SELECT @x, @@global.y",
    "SHOW FULL TABLES FROM `db` LIKE 'a\\_%'; EXPLAIN ANALYZE SELECT 1; KILL QUERY 5; BEGIN; SAVEPOINT s",
    "GRANT SELECT, INSERT ON db.* TO 'user'@'%' WITH GRANT OPTION",
    "SELECT x'4D', b'01', _utf8mb4'a' COLLATE utf8mb4_bin, -1e308, .5, 0x, 'a' 'b', \"q\" -- end",
];

#[test]
fn packets_of_any_bytes_are_taken_or_refused() {
    let mut login = vec![0x8D, 0xA6, 0x0F, 0x00, 0, 0, 0, 1, 45];
    login.extend([0; 23]);
    login.extend(b"root\0\x14abcdefghijklmnopqrstdb\0caching_sha2_password\0\x07\x03key\x03val");
    let mut framed = vec![u8::try_from(login.len()).expect("short"), 0, 0, 1];
    framed.extend(&login);
    let execute = [
        0b0000_0000,
        1,
        8,
        0,
        253,
        0,
        7,
        0,
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        3,
        b'a',
        b'b',
        b'c',
        4,
        1,
        2,
        3,
        4,
    ];
    let mut source = Source::new(1);
    for _ in 0..ROUNDS {
        packets(&source.bytes(80));
        packets(&mutated(&mut source, &framed, &execute));
        packets(&mutated(&mut source, &login, &framed));
        packets(&mutated(&mut source, &execute, &login));
    }
}

#[test]
fn text_of_any_kind_is_parsed_or_refused() {
    let mut source = Source::new(2);
    for round in 0..ROUNDS / 4 {
        let good = STATEMENTS[round % STATEMENTS.len()].as_bytes();
        let other = STATEMENTS[source.below(STATEMENTS.len())].as_bytes();
        sql_text(good);
        sql_text(&mutated(&mut source, good, other));
        sql_text(&source.bytes(60));
    }
}

#[test]
fn deep_nesting_is_refused_not_overflown() {
    for piece in [
        "(",
        "NOT ",
        "- ",
        "SELECT * FROM (",
        "CASE WHEN ",
        "a AND ",
        "EXISTS (SELECT ",
        "1 + ",
        "[",
        "{",
    ] {
        sql_text(format!("SELECT {}", piece.repeat(20_000)).as_bytes());
        sql_text(format!("SELECT {}1{}", piece.repeat(5_000), ")".repeat(5_000)).as_bytes());
    }
}

#[test]
fn stored_records_of_any_bytes_are_read_or_called_damaged() {
    let good = sample_record();
    let mut source = Source::new(3);
    for _ in 0..ROUNDS {
        let noise = source.bytes(80);
        records(&noise);
        records(&mutated(&mut source, &good, &noise));
        let mut started = good.clone();
        started.extend(noise);
        records(&started);
    }
}
