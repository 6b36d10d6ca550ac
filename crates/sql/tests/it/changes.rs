//! DML and DDL through a session, as scripts: a statement behind `>`, what it answers below.
//!
//! `ok N` is N affected rows (with `id N` and `info` when there are any); rows are values joined
//! by `|`; errors are `error NUMBER text`.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use manxdb_fixtures::sql::{Answer, Client, connect, instance};

fn shown(client: &mut Client, text: &str) -> Vec<String> {
    let answers = match client.try_run(text) {
        Ok(answers) => answers,
        Err(error) => return vec![format!("error {} {error}", error.code)],
    };
    let mut lines = Vec::new();
    for answer in answers {
        match answer {
            Answer::Rows(_, rows) => lines.extend(rows.into_iter().map(|row| {
                let values = row.into_iter().map(|value| value.unwrap_or("NULL".into()));
                values.collect::<Vec<_>>().join("|").replace('\n', "\\n")
            })),
            Answer::Done(outcome, _) => {
                let mut line = format!("ok {}", outcome.affected_rows);
                if outcome.last_insert_id > 0 {
                    line.push_str(&format!(" id {}", outcome.last_insert_id));
                }
                if !outcome.info.is_empty() {
                    line.push_str(&format!(" {}", outcome.info));
                }
                lines.push(line);
            }
        }
    }
    lines
}

/// Runs a script; lists every statement that answered something else.
fn play(script: &str) {
    let instance = instance();
    let mut client = connect(&instance, "root");
    client.run("CREATE DATABASE d");
    client.run("USE d");
    let mut wrong = Vec::new();
    let mut lines = script.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(text) = line.strip_prefix("> ") else {
            continue;
        };
        let mut expected = Vec::new();
        while let Some(next) = lines.peek() {
            if next.starts_with("> ") || next.starts_with("# ") || next.is_empty() {
                break;
            }
            expected.push(lines.next().unwrap_or_default().to_string());
        }
        let got = shown(&mut client, text);
        if got != expected {
            wrong.push(format!(
                "> {text}\n  expected:\n{}\n  got:\n{}",
                expected.join("\n"),
                got.join("\n")
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
}

#[test]
fn inserts() {
    play(include_str!("../scripts/insert.txt"));
}

#[test]
fn updates_and_deletes() {
    play(include_str!("../scripts/update.txt"));
}

#[test]
fn foreign_keys() {
    play(include_str!("../scripts/foreign_key.txt"));
}

#[test]
fn definitions() {
    play(include_str!("../scripts/definition.txt"));
}

#[test]
fn alterations() {
    play(include_str!("../scripts/alter.txt"));
}

#[test]
fn ownership() {
    play(include_str!("../scripts/ownership.txt"));
}

mod restart {
    use manxdb_fixtures::sql::{connect, instance_on};
    use std::sync::Arc;

    use manxdb_storage::MemoryEngine;

    #[test]
    fn the_catalog_survives_a_crash_and_no_number_is_given_twice() {
        let engine = Arc::new(MemoryEngine::new());
        let first = instance_on(engine.clone());
        let mut client = connect(&first, "root");
        client.run("CREATE DATABASE d");
        client.run("CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, a INT, KEY ka (a))");
        client.run("CREATE TABLE d.h (a INT)");
        client.run("CREATE VIEW d.v AS SELECT a FROM d.t");
        client.run("INSERT INTO d.t (a) VALUES (1), (2), (3)");
        client.run("INSERT INTO d.h VALUES (1), (2)");
        let definition = client.rows("SHOW CREATE TABLE d.t")[0][1].clone();
        drop(client);

        let second = instance_on(engine.clone());
        let mut client = connect(&second, "root");
        let now = client.rows("SHOW CREATE TABLE d.t")[0][1].clone();
        let body = |text: &str| text.split(") ENGINE").next().map(ToString::to_string);
        assert_eq!(body(&now), body(&definition));
        client.run("INSERT INTO d.t (a) VALUES (4)");
        client.run("INSERT INTO d.h VALUES (3)");
        assert_eq!(client.value("SELECT COUNT(DISTINCT id) FROM d.t"), "4");
        assert_eq!(client.value("SELECT COUNT(*) FROM d.h"), "3");
        assert_eq!(client.value("SELECT SUM(a) FROM d.v"), "10");
        let highest: u64 = client.value("SELECT MAX(id) FROM d.t").parse().unwrap();
        second.shutdown().unwrap();
        drop(client);

        let third = instance_on(engine);
        let mut client = connect(&third, "root");
        client.run("INSERT INTO d.t (a) VALUES (5)");
        let next: u64 = client.value("SELECT MAX(id) FROM d.t").parse().unwrap();
        assert_eq!(next, highest + 1, "an orderly end leaves no gap");
    }
}

#[test]
fn statements_planned_before_a_change_do_not_commit_against_it() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    let mut b = connect(&instance, "root");
    a.run("CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, a INT)");
    b.run("USE d; BEGIN; INSERT INTO t VALUES (1, 1)");
    a.run("ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 7");
    let error = b.error("COMMIT");
    assert_eq!(error.code, 1213);
    b.run("INSERT INTO t (id, a) VALUES (2, 2)");
    assert_eq!(a.rows("SELECT * FROM t"), [["2", "2", "7"]]);
}

#[test]
fn a_parent_row_and_its_new_child_conflict() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    let mut b = connect(&instance, "root");
    a.run("CREATE DATABASE d; USE d; CREATE TABLE p (id INT PRIMARY KEY)");
    a.run("CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id))");
    a.run("INSERT INTO p VALUES (1)");
    b.run("USE d; BEGIN; INSERT INTO c VALUES (1, 1)");
    a.run("SET innodb_lock_wait_timeout = 1");
    let error = a.error("DELETE FROM p WHERE id = 1");
    assert!([1205, 1213, 1451].contains(&error.code), "{error}");
    b.run("COMMIT");
    assert_eq!(a.error("DELETE FROM p WHERE id = 1").code, 1451);
}

#[test]
fn an_index_over_many_rows_is_filled_in_chunks() {
    let instance = instance();
    let mut client = connect(&instance, "root");
    client.run("CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, a INT)");
    for chunk in 0..5 {
        let rows: Vec<String> = (0..500)
            .map(|row| chunk * 500 + row)
            .map(|id| format!("({id}, {})", id % 7))
            .collect();
        client.run(&format!("INSERT INTO t VALUES {}", rows.join(",")));
    }
    client.run("CREATE INDEX ka ON t (a)");
    assert_eq!(
        client.value("SELECT COUNT(*) FROM t FORCE INDEX (ka) WHERE a = 3"),
        "357"
    );
    client.run("ALTER TABLE t MODIFY a VARCHAR(5)");
    assert_eq!(client.value("SELECT COUNT(*) FROM t WHERE a = '3'"), "357");
    client.run("DROP TABLE t");
}

#[test]
fn long_chains_of_conditions_are_no_danger() {
    let instance = instance();
    let mut client = connect(&instance, "root");
    client.run("CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY)");
    let chain: Vec<String> = (0..1_000).map(|id| format!("id = {id}")).collect();
    client.run("INSERT INTO t VALUES (5), (5000)");
    let text = format!("SELECT COUNT(*) FROM t WHERE {}", chain.join(" OR "));
    assert_eq!(client.value(&text), "1");
    let chain = chain.join(" OR ").replace(" OR ", " AND NOT ");
    let text = format!("SELECT COUNT(*) FROM t WHERE NOT {chain}");
    assert_eq!(client.value(&text), "1");
    let sum = format!("SELECT 1{}", " + 1".repeat(240));
    assert_eq!(client.value(&sum), "241");
    let brackets = format!("SELECT {}1{}", "(".repeat(90), ")".repeat(90));
    assert_eq!(client.value(&brackets), "1");
    let calls = format!("SELECT {}1{}", "ABS(".repeat(90), ")".repeat(90));
    assert_eq!(client.value(&calls), "1");
    let queries = format!("SELECT {}1{}", "(SELECT ".repeat(28), ")".repeat(28));
    assert_eq!(client.value(&queries), "1");
    let unions = format!(
        "SELECT COUNT(*) FROM (SELECT 1{}) d",
        " UNION ALL SELECT 1".repeat(120)
    );
    assert_eq!(client.value(&unions), "121");
}

/// Writers go on while indexes are made and rows are copied; nothing they were told is lost.
#[test]
fn changes_under_writers_lose_nothing() {
    let instance = instance();
    let mut client = connect(&instance, "root");
    client.run("CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)");
    let rows: Vec<String> = (0..3_000).map(|id| format!("({id}, {id}, 0)")).collect();
    client.run(&format!("INSERT INTO t VALUES {}", rows.join(",")));
    let acknowledged = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let mut client = connect(&instance, "root");
                scope.spawn(move || {
                    client.run("USE d");
                    let mut done = 0;
                    for number in 0..300 {
                        let id = 10_000 * (writer + 1) + number;
                        let insert = format!("INSERT INTO t (id, a, b) VALUES ({id}, {id}, 1)");
                        let update = format!("UPDATE t SET a = a + 1 WHERE id = {number}");
                        if client.try_run(&insert).is_ok() {
                            done += 1;
                        }
                        let _ = client.try_run(&update);
                    }
                    done
                })
            })
            .collect();
        for change in [
            "CREATE INDEX ka ON t (a)",
            "ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 3",
            "CREATE UNIQUE INDEX kid ON t (id, a)",
            "ALTER TABLE t DROP INDEX ka",
            "ALTER TABLE t MODIFY b BIGINT",
        ] {
            // Under this clock a wait for a row lock is over at once.
            while let Err(error) = client.try_run(change) {
                assert!([1205, 1213].contains(&error.code), "{change}: {error}");
            }
        }
        writers
            .into_iter()
            .map(|writer| writer.join().expect("a writer"))
            .sum::<u64>()
    });
    assert!(acknowledged > 0);
    let written = client.value("SELECT COUNT(*) FROM t WHERE b = 1");
    assert_eq!(written, acknowledged.to_string());
    let by_index = client.value("SELECT COUNT(*) FROM t FORCE INDEX (kid) WHERE id >= 0");
    assert_eq!(by_index, client.value("SELECT COUNT(*) FROM t"));
    client.run("CREATE INDEX ka ON t (a)");
    let rows = client.rows("SELECT x.id FROM t x LEFT JOIN t y FORCE INDEX (ka) ON y.a = x.a AND y.id = x.id WHERE y.id IS NULL");
    assert!(rows.is_empty());
}

#[test]
fn gdpr_forget() {
    play(include_str!("../scripts/forget.txt"));
}
