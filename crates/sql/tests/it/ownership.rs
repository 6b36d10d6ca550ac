//! Ownership in the catalog: what SHOW CREATE TABLE writes makes the same graph again, in whatever order
//! it is loaded, and what was decided survives the server.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use manxdb_fixtures::sql::{Client, connect, instance, instance_on};
use manxdb_storage::{Engine, MemoryEngine};
use proptest::prelude::*;

const WORDS: [&str; 6] = [
    "OWNED_BY",
    "OWNS",
    "ACCESSED_BY",
    "ACCESSES",
    "REFERENCES",
    "REFERENCES ONLY",
];

/// The chains of all tables, whether said or inferred: a dump says what was inferred.
fn chains(client: &mut Client) -> Vec<Vec<String>> {
    let rows = client.rows("EXPLAIN COMPLIANCE");
    rows.into_iter()
        .filter(|row| row[2] != "NULL")
        .map(|row| row[..3].to_vec())
        .collect()
}

/// Errors that EXPLAIN COMPLIANCE finds.
fn errors(client: &mut Client) -> Vec<Vec<String>> {
    let rows = client.rows("EXPLAIN COMPLIANCE");
    rows.into_iter().filter(|row| row[4] == "error").collect()
}

/// What a dump program writes: all tables by name, checks off.
fn dump(client: &mut Client) -> Vec<String> {
    let tables = client.rows("SHOW TABLES");
    tables
        .into_iter()
        .map(|row| client.rows(&format!("SHOW CREATE TABLE `{}`", row[0]))[0][1].clone())
        .collect()
}

/// Statements that make random tables, each from those before it; some are refused.
fn random() -> impl Strategy<Value = Vec<String>> {
    let link = (0..100_usize, 0..WORDS.len(), any::<bool>(), any::<bool>());
    let table = (
        prop::bool::weighted(0.3),
        prop::collection::vec(link, 0..3),
        0..3_u8,
    );
    prop::collection::vec(table, 2..8).prop_map(|tables| {
        // Names fall, so that a dump loads children before parents.
        let name = |at: usize| format!("t{}", 9 - at);
        let mut statements = Vec::new();
        for (at, (is_subject, links, rule)) in tables.into_iter().enumerate() {
            let mut items = vec!["id INT PRIMARY KEY".to_string()];
            let mut keys = Vec::new();
            for (number, (target, word, in_column, not_null)) in links.into_iter().enumerate() {
                let link = format!("{} {} (id)", WORDS[word], name(target % (at + 1)));
                let null = if not_null { " NOT NULL" } else { "" };
                if in_column {
                    items.push(format!("c{number} INT{null} {link}"));
                } else {
                    items.push(format!("c{number} INT{null}"));
                    keys.push(format!("FOREIGN KEY (c{number}) {link}"));
                }
            }
            items.extend(keys);
            if rule > 0 && items.len() > 1 {
                let action = if rule == 1 { "DELETE_ROW" } else { "ANON (c0)" };
                items.push(format!("ON DEL c0 {action}"));
            }
            let subject = if is_subject { "DATA_SUBJECT " } else { "" };
            let items = items.join(", ");
            statements.push(format!("CREATE {subject}TABLE {} ({items})", name(at)));
        }
        statements
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_dump_makes_the_same_graph_again(statements in random()) {
        let instance = instance();
        let mut client = connect(&instance, "root");
        client.run("CREATE DATABASE a; CREATE DATABASE b; USE a");
        for statement in &statements {
            if let Err(error) = client.try_run(statement) {
                prop_assert!([51003, 1824].contains(&error.code), "{statement}: {error}");
            }
        }
        prop_assert!(errors(&mut client).is_empty(), "what is let in has owners");
        let (before, dumped) = (chains(&mut client), dump(&mut client));
        client.run("USE b; SET foreign_key_checks = 0");
        for statement in &dumped {
            client.run(statement);
        }
        prop_assert_eq!(chains(&mut client), before);
        prop_assert!(errors(&mut client).is_empty());
        prop_assert_eq!(dump(&mut client), dumped);
    }
}

#[test]
fn what_was_decided_survives_the_server_and_later_tables() {
    let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new());
    let before = {
        let instance = instance_on(Arc::clone(&engine));
        let mut client = connect(&instance, "root");
        client.run("CREATE DATABASE d; USE d");
        client.run("CREATE DATA_SUBJECT TABLE users (id INT PRIMARY KEY)");
        client.run("CREATE TABLE logs (id INT PRIMARY KEY, who INT, FOREIGN KEY (who) REFERENCES users (id))");
        client.run("CREATE DATA_SUBJECT TABLE guests (id INT PRIMARY KEY)");
        // A second candidate comes later: what was inferred is decided, and the second means nothing.
        client.run(
            "ALTER TABLE logs ADD COLUMN guest INT, ADD FOREIGN KEY (guest) REFERENCES guests (id)",
        );
        client.run("ALTER TABLE logs ADD ON DEL who ANON (who), UNOWNED ALLOWED");
        client.rows("EXPLAIN COMPLIANCE")
    };
    assert_eq!(before[1][2], "logs.who -> users");
    assert!(
        before[2][5].starts_with("logs.guest refers to 'guests'"),
        "{before:?}"
    );
    let instance = instance_on(engine);
    let mut client = connect(&instance, "root");
    client.run("USE d");
    assert_eq!(client.rows("EXPLAIN COMPLIANCE"), before);
}

#[test]
fn a_noted_reference_that_becomes_an_owner_is_checked_against_the_rows() {
    let instance = instance();
    let mut client = connect(&instance, "root");
    client.run("CREATE DATABASE d; USE d");
    client.run("CREATE TABLE users (id INT PRIMARY KEY)");
    client.run("CREATE TABLE logs (id INT PRIMARY KEY, who INT REFERENCES users (id))");
    client.run("INSERT INTO logs VALUES (1, 7)");
    client.run("ALTER TABLE users SET DATA_SUBJECT");
    let link = "ALTER TABLE logs ADD OWNED_BY (who) users (id)";
    assert_eq!(client.error(link).code, 1452);
    client.run("INSERT INTO users VALUES (7)");
    client.run(link);
    assert_eq!(client.error("INSERT INTO logs VALUES (2, 8)").code, 1452);
    assert_eq!(client.error("DELETE FROM users").code, 1451);
    let plan = client.rows("EXPLAIN SELECT * FROM logs WHERE who = 7");
    assert!(
        plan[0].iter().any(|column| column == "who"),
        "the link has an index: {plan:?}"
    );
}

#[test]
fn accounts_see_the_tables_they_may_see() {
    let instance = instance();
    let mut root = connect(&instance, "root");
    root.run("CREATE DATABASE d; USE d; CREATE TABLE a (id INT); CREATE TABLE b (id INT)");
    root.run("CREATE USER eve; GRANT SELECT ON d.b TO eve");
    let mut eve = connect(&instance, "eve");
    assert_eq!(eve.error("EXPLAIN COMPLIANCE").code, 1046);
    eve.run("USE d");
    let seen: Vec<String> = eve
        .rows("EXPLAIN COMPLIANCE")
        .into_iter()
        .map(|row| row[0].clone())
        .collect();
    assert_eq!(seen, ["b"]);
    assert!(eve.try_run("EXPLAIN COMPLIANCE FOR a").is_err());
}
