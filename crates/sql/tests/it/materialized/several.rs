//! Several look-ups for one query: IN over the key, and the SELECTs of a UNION.

use manxdb_fixtures::sql::Client;

use super::{counts, fresh, sorted};

fn filled() -> (std::sync::Arc<manxdb_sql::session::Instance>, Client) {
    let (instance, mut client) = fresh();
    client.run(
        "INSERT INTO item VALUES (1, 1, 1, 1, 'a', NULL), (2, 1, 2, 2, 'A', NULL), \
         (3, 2, 1, 3, 'b', NULL), (4, 3, 1, 4, NULL, NULL), (5, NULL, 1, 5, 'c', NULL)",
    );
    (instance, client)
}

/// What the query answers, which is what the base plan does.
fn same(client: &mut Client, query: &str) -> Vec<Vec<String>> {
    let viewed = sorted(client, &query.replace("EXTRA", ""));
    assert_eq!(
        viewed,
        sorted(client, &query.replace("EXTRA", " AND id = id")),
        "{query}"
    );
    viewed
}

#[test]
fn each_value_of_in_is_a_look_up() {
    let (_instance, mut client) = filled();
    client.run("CREATE MATERIALIZED VIEW v AS SELECT id, name FROM item WHERE owner = ?");
    let query = "SELECT id, name FROM item WHERE owner IN (1, 3, 1, 9)EXTRA";
    assert_eq!(same(&mut client, query).len(), 3);
    assert_eq!(counts(&mut client, "v"), (0, 3), "each key is filled once");
    client.run("UPDATE item SET owner = 3 WHERE id = 1");
    client.run("INSERT INTO item VALUES (6, 9, 1, 1, 'n', NULL)");
    assert_eq!(same(&mut client, query).len(), 4);
    assert_eq!(counts(&mut client, "v"), (3, 3));
    // What is above runs over the rows of all keys.
    for query in [
        "SELECT COUNT(*), MAX(name) FROM item WHERE owner IN (1, 3)EXTRA",
        "SELECT DISTINCT owner FROM item WHERE owner IN (1, NULL, 3)EXTRA",
        "SELECT name FROM item WHERE owner IN (3, 1)EXTRA ORDER BY id DESC LIMIT 2",
        "SELECT id FROM item WHERE owner IN (NULL, NULL)EXTRA",
    ] {
        let (hits, misses) = counts(&mut client, "v");
        same(&mut client, query);
        let after = counts(&mut client, "v");
        assert_eq!(after.1, misses, "{query}");
        assert!(after.0 > hits || query.contains("(NULL, NULL)"), "{query}");
    }
    let shown = client.rows("EXPLAIN FORMAT=TREE SELECT id FROM item WHERE owner IN (1, 2)");
    assert!(
        shown[0][0].contains("View lookup on v (owner), 2 keys, else:"),
        "{shown:?}"
    );
    same(
        &mut client,
        "SELECT id FROM item WHERE owner IN (1, '3')EXTRA",
    );
    // A list that is not one of values: the base plan.
    let before = counts(&mut client, "v");
    same(
        &mut client,
        "SELECT id FROM item WHERE owner IN (1, id)EXTRA",
    );
    same(
        &mut client,
        "SELECT id FROM item WHERE owner NOT IN (1, 2)EXTRA",
    );
    assert_eq!(counts(&mut client, "v"), before);
}

#[test]
fn in_over_groups_needs_the_key_among_them() {
    let (_instance, mut client) = filled();
    client.run("CREATE MATERIALIZED VIEW one AS SELECT COUNT(*) FROM item WHERE owner = ?");
    client.run("CREATE MATERIALIZED VIEW each AS SELECT owner, kind, SUM(price) FROM item WHERE owner IN (?) GROUP BY owner, kind");
    let whole = "SELECT COUNT(*) FROM item WHERE owner IN (1, 2)EXTRA";
    assert_eq!(same(&mut client, whole), [["3"]]);
    assert_eq!(counts(&mut client, "one"), (0, 0), "one group of two keys");
    let groups = "SELECT owner, kind, SUM(price) FROM item WHERE owner IN (2, 1)EXTRA GROUP BY owner, kind HAVING SUM(price) > 1";
    assert_eq!(same(&mut client, groups).len(), 2);
    client.run("DELETE FROM item WHERE id = 2");
    assert_eq!(same(&mut client, groups).len(), 1);
    assert_eq!(counts(&mut client, "each"), (2, 2));
}

#[test]
fn in_is_prepared_with_any_number_of_values_and_several_columns() {
    let (_instance, mut client) = filled();
    client.run(
        "CREATE MATERIALIZED VIEW v AS SELECT id, price FROM item WHERE owner = ? AND kind = ?",
    );
    client.run(
        "PREPARE p FROM 'SELECT id, price FROM item WHERE kind IN (?, ?) AND owner IN (?, ?, ?)'",
    );
    client.run("SET @a = 1, @b = 2, @c = 3");
    let base = sorted(
        &mut client,
        "SELECT id, price FROM item WHERE kind IN (1, 2) AND owner IN (1, 2, 3) AND id = id",
    );
    for _ in 0..2 {
        let viewed = sorted(&mut client, "EXECUTE p USING @a, @b, @a, @b, @c");
        assert_eq!(viewed, base);
    }
    assert_eq!(counts(&mut client, "v"), (6, 6));
    let many = (0..1_001)
        .map(|n| n.to_string())
        .collect::<Vec<_>>()
        .join(", ");
    same(
        &mut client,
        &format!("SELECT id FROM item WHERE kind = 1 AND owner IN ({many})EXTRA"),
    );
    assert_eq!(
        counts(&mut client, "v"),
        (6, 6),
        "with so many the base plan answers"
    );
}

#[test]
fn a_union_is_answered_select_by_select() {
    let (_instance, mut client) = filled();
    client.run("CREATE TABLE tag (id INT PRIMARY KEY, word VARCHAR(9), item_id INT, KEY by_item (item_id))");
    client.run("INSERT INTO tag VALUES (1, 'x', 1), (2, 'y', 1), (3, 'z', 2)");
    client.run(
        "CREATE MATERIALIZED VIEW u AS SELECT id, name FROM item WHERE owner = ? UNION ALL \
         SELECT id, word FROM tag WHERE item_id = ? ORDER BY 1 LIMIT 9",
    );
    let query = "SELECT id, name FROM item WHERE owner = 1EXTRA UNION SELECT id, word FROM tag WHERE item_id = 1EXTRA ORDER BY 2 DESC LIMIT 3";
    assert_eq!(same(&mut client, query).len(), 3);
    client.run("DELETE FROM tag WHERE id = 1; INSERT INTO item VALUES (9, 1, 1, 1, 'zz', NULL)");
    assert_eq!(same(&mut client, query).len(), 3);
    assert_eq!(counts(&mut client, "u"), (2, 2));
    // One of its SELECTs alone, and one of them beside another that it does not hold.
    same(&mut client, "SELECT word FROM tag WHERE item_id = 1EXTRA");
    same(
        &mut client,
        "SELECT word FROM tag WHERE item_id IN (1)EXTRA EXCEPT SELECT name FROM item WHERE kind = 1EXTRA",
    );
    assert_eq!(counts(&mut client, "u"), (4, 2));
    let shown = client.rows("EXPLAIN FORMAT=TREE SELECT id, name FROM item WHERE owner = 1 UNION SELECT id, word FROM tag WHERE item_id = 1");
    assert_eq!(
        shown[0][0].matches("View lookup on u").count(),
        2,
        "{shown:?}"
    );
    let rows = client.rows("SHOW MATERIALIZED VIEWS");
    assert_eq!(
        (rows.len(), rows[0][2].as_str(), rows[0][3].as_str()),
        (1, "usable", "2")
    );
    client.run("ALTER TABLE tag ADD INDEX by_word (word)");
    assert_eq!(same(&mut client, query).len(), 3);
    client.run("DROP MATERIALIZED VIEW u");
    assert_eq!(same(&mut client, query).len(), 3);
}
