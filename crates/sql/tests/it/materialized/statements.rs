//! What a client says and sees.

use manxdb_fixtures::sql::{connect, instance_on};
use manxdb_sql::types::Value;
use manxdb_storage::MemoryEngine;

use super::{SCHEMA, counts, fresh};

#[test]
fn a_key_is_filled_once_and_follows_commits() {
    let (_instance, mut client) = fresh();
    client.run("CREATE MATERIALIZED VIEW held AS SELECT kind, COUNT(*), SUM(price), AVG(price), MIN(price), MAX(made) FROM item WHERE owner = ? GROUP BY kind");
    client.run("INSERT INTO item VALUES (1, 7, 1, 2.50, 'a', '2024-01-01'), (2, 7, 1, 3.25, 'b', '2024-01-02'), (3, 8, 1, 9, 'c', NULL)");
    let query = "SELECT kind, COUNT(*), SUM(price), AVG(price), MIN(price), MAX(made) FROM item WHERE owner = 7 GROUP BY kind";
    let first = client.rows(query);
    assert_eq!(
        first,
        [["1", "2", "5.75", "2.875000", "2.50", "2024-01-02 00:00:00"]]
    );
    assert_eq!(counts(&mut client, "held"), (0, 1));
    client.run("UPDATE item SET price = 1.00 WHERE id = 1");
    client.run("DELETE FROM item WHERE id = 2; INSERT INTO item VALUES (4, 7, 2, NULL, 'd', NULL)");
    assert_eq!(
        super::sorted(&mut client, query),
        [
            ["1", "1", "1.00", "1.000000", "1.00", "2024-01-01 00:00:00"],
            ["2", "1", "NULL", "NULL", "NULL", "NULL"]
        ]
    );
    assert_eq!(counts(&mut client, "held"), (1, 1));
}

#[test]
fn rows_are_held_for_any_order_and_limit_of_the_reader() {
    let (_instance, mut client) = fresh();
    client.run("CREATE MATERIALIZED VIEW newest AS SELECT id, name FROM item WHERE owner = ? AND kind = 1 ORDER BY id DESC");
    for id in 1..6 {
        client.run(&format!(
            "INSERT INTO item VALUES ({id}, 7, {}, 1, 'n{id}', NULL)",
            id % 2
        ));
    }
    let query = "SELECT id, name FROM item WHERE owner = 7 AND kind = 1 ORDER BY id DESC LIMIT 2";
    assert_eq!(client.rows(query), [["5", "n5"], ["3", "n3"]]);
    client.run("UPDATE item SET kind = 1 WHERE id = 4");
    assert_eq!(client.rows(query), [["5", "n5"], ["4", "n4"]]);
    let other = "SELECT COUNT(*), MAX(name) FROM item WHERE owner = 7 AND kind = 1";
    assert_eq!(client.rows(other), [["4", "n5"]]);
    assert_eq!(counts(&mut client, "newest"), (2, 1));
    // Another kind is another question.
    let other = "SELECT id, name FROM item WHERE owner = 7 AND kind = 0 ORDER BY id DESC LIMIT 2";
    assert_eq!(client.rows(other), [["2", "n2"]]);
    assert_eq!(counts(&mut client, "newest"), (2, 1));
}

#[test]
fn a_session_of_another_collation_uses_views_without_texts_of_their_own() {
    let (_instance, mut client) = fresh();
    client.run("SET collation_connection = utf8mb4_general_ci");
    client.run("CREATE MATERIALIZED VIEW n AS SELECT COUNT(*), MIN(id) FROM item WHERE owner = ? AND price > 1");
    client.run("CREATE MATERIALIZED VIEW named AS SELECT COUNT(*) FROM item WHERE kind = ? AND CONCAT(id, 'x') <> '2X'");
    client.run("INSERT INTO item VALUES (1, 7, 1, 2, 'a', NULL), (2, 7, 1, 2, 'B', NULL)");
    let (plain, of_text) = (
        "SELECT COUNT(*), MIN(id) FROM item WHERE owner = 7 AND price > 1",
        "SELECT COUNT(*) FROM item WHERE kind = 1 AND CONCAT(id, 'x') <> '2X'",
    );
    assert_eq!(client.rows(of_text), [["1"]]);
    client.run("SET collation_connection = utf8mb4_bin");
    assert_eq!(client.rows(plain), [["2", "1"]]);
    assert_eq!(client.rows(of_text), [["2"]], "2x and 2X are two texts");
    assert_eq!(counts(&mut client, "n"), (0, 1), "it was filled");
    assert_eq!(
        counts(&mut client, "named"),
        (0, 1),
        "for the first session"
    );
}

#[test]
fn prepared_statements_and_other_values_of_the_key_use_the_view() {
    let (_instance, mut client) = fresh();
    client.run("CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) FROM item WHERE owner = ?");
    client.run("INSERT INTO item VALUES (1, 7, 1, 1, 'a', NULL)");
    let query = "SELECT COUNT(*) FROM item WHERE owner = ?";
    for owner in [7, 7, 9, 9] {
        client.execute(query, &[Value::Int(owner)]).unwrap();
    }
    assert_eq!(counts(&mut client, "n"), (2, 2));
    client.run("INSERT INTO item VALUES (2, 9, 1, 1, 'a', NULL)");
    assert_eq!(
        client.value("SELECT COUNT(*) FROM item WHERE owner = 9"),
        "1"
    );
    // NULL equals nothing; a constant of text becomes a number where the column is one.
    client.execute(query, &[Value::Null]).unwrap();
    let text = client.rows("SELECT COUNT(*) FROM item WHERE owner = '7'");
    assert_eq!(text, [["1"]]);
    assert_eq!(counts(&mut client, "n").0, 4);
}

#[test]
fn explain_shows_the_view_before_the_base_plan() {
    let (_instance, mut client) = fresh();
    client.run("CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) FROM item WHERE owner = ?");
    let shown = client.value("EXPLAIN FORMAT=TREE SELECT COUNT(*) FROM item WHERE owner = 7");
    let mut lines = shown.lines();
    assert_eq!(lines.next(), Some("-> View lookup on n (owner), else:"));
    assert!(shown.contains("using by_owner"), "{shown}");
    let analyze = "EXPLAIN ANALYZE SELECT COUNT(*) FROM item WHERE owner = 7";
    client.value(analyze);
    let shown = client.value(analyze);
    assert!(shown.contains("never executed"), "it was a hit: {shown}");
    client.run("DROP MATERIALIZED VIEW n");
    let shown = client.value("EXPLAIN FORMAT=TREE SELECT COUNT(*) FROM item WHERE owner = 7");
    assert!(!shown.contains("View lookup"), "{shown}");
}

#[test]
fn a_definition_outlives_the_server_and_what_it_holds_does_not() {
    let engine = std::sync::Arc::new(MemoryEngine::new());
    let query = "SELECT COUNT(*) FROM item WHERE owner = 7";
    {
        let instance = instance_on(engine.clone());
        let mut client = connect(&instance, "root");
        client.run(SCHEMA);
        client.run("CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) FROM item WHERE owner = ?");
        client.run("INSERT INTO item VALUES (1, 7, 1, 1, 'a', NULL)");
        assert_eq!(client.value(query), "1");
    }
    let instance = instance_on(engine);
    let mut client = connect(&instance, "root");
    client.run("USE d");
    assert_eq!(counts(&mut client, "n"), (0, 0));
    assert_eq!(client.value(query), "1");
    client.run("INSERT INTO item VALUES (2, 7, 1, 1, 'a', NULL)");
    assert_eq!(client.value(query), "2");
    assert_eq!(counts(&mut client, "n"), (1, 1));
    client.run("DROP DATABASE d");
    assert!(client.rows("SHOW MATERIALIZED VIEWS").is_empty());
}

#[test]
fn keys_are_evicted_to_keep_the_bound() {
    let (_instance, mut client) = fresh();
    client.run("SET GLOBAL views_memory = 20000");
    client.run("CREATE MATERIALIZED VIEW n AS SELECT id, name FROM item WHERE owner = ?");
    for id in 0..200 {
        client.run(&format!(
            "INSERT INTO item VALUES ({id}, {id}, 1, 1, 'somebody', NULL)"
        ));
    }
    for owner in 0..200 {
        let rows = client.rows(&format!("SELECT id, name FROM item WHERE owner = {owner}"));
        assert_eq!(rows.len(), 1);
    }
    let rows = client.rows("SHOW MATERIALIZED VIEWS");
    let figure = |at: usize| rows[0][at].parse::<u64>().unwrap();
    assert!(
        figure(4) <= 20_000 && figure(3) > 10 && figure(7) > 10,
        "{rows:?}"
    );
    client.run("SET GLOBAL views_memory = 0");
    assert_eq!(client.rows("SHOW MATERIALIZED VIEWS")[0][4], "0");
    assert_eq!(
        client
            .rows("SELECT id, name FROM item WHERE owner = 3")
            .len(),
        1
    );
}

#[test]
fn views_come_and_go_between_commits() {
    let (_instance, mut client) = fresh();
    let query = "SELECT COUNT(*) FROM item WHERE owner = 7";
    for round in 0..6 {
        client.run("CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) FROM item WHERE owner = ?");
        client.run(&format!(
            "INSERT INTO item VALUES ({round}, 7, 1, 1, 'a', NULL)"
        ));
        assert_eq!(client.value(query), (round + 1).to_string());
        assert_eq!(client.value(query), (round + 1).to_string());
        client.run("DROP MATERIALIZED VIEW n");
        assert_eq!(client.value(query), (round + 1).to_string());
        client.run("UPDATE item SET kind = kind + 1");
    }
}
