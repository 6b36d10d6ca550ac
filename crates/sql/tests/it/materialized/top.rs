//! First rows in an order, held with slack.

use manxdb_fixtures::sql::Client;

use super::{counts, fresh};

const QUERY: &str =
    "SELECT id, kind FROM item WHERE owner = 1EXTRA ORDER BY kind DESC, id LIMIT 3 OFFSET 2";

/// What the query answers, which is what the base plan does.
fn same(client: &mut Client, query: &str) -> Vec<Vec<String>> {
    let viewed = client.rows(&query.replace("EXTRA", ""));
    assert_eq!(
        viewed,
        client.rows(&query.replace("EXTRA", " AND id = id")),
        "{query}"
    );
    viewed
}

#[test]
fn first_rows_follow_what_comes_and_goes_before_and_behind_them() {
    let (_instance, mut client) = fresh();
    let mut rows = Vec::new();
    for id in 0..300 {
        rows.push(format!("({id}, {}, {}, 1, 'n', NULL)", id % 2, id % 100));
    }
    client.run(&format!("INSERT INTO item VALUES {}", rows.join(", ")));
    client.run("CREATE MATERIALIZED VIEW top AS SELECT id, kind, name FROM item WHERE owner = ? ORDER BY kind DESC, id LIMIT 5");
    assert_eq!(same(&mut client, QUERY).len(), 3);
    let bytes = |client: &mut Client| {
        client.rows("SHOW MATERIALIZED VIEWS")[0][4]
            .parse::<u64>()
            .unwrap()
    };
    assert!(bytes(&mut client) < 43 * 400, "not all 150 rows are held");
    let mut reads = 1;
    for text in [
        "INSERT INTO item VALUES (1000, 1, 999, 1, 'n', NULL)",
        "INSERT INTO item VALUES (1001, 1, -5, 1, 'n', NULL)",
        "UPDATE item SET kind = 500 WHERE id IN (1, 3, 5)",
        "UPDATE item SET kind = 0 WHERE id IN (1, 1000)",
        "DELETE FROM item WHERE kind < 20",
        "DELETE FROM item WHERE id = 99",
    ] {
        client.run(text);
        same(&mut client, QUERY);
        reads += 1;
    }
    assert_eq!(counts(&mut client, "top"), (reads - 1, 1), "filled once");
    // The slack is used up: filled anew.
    client.run("DELETE FROM item WHERE kind > 40");
    same(&mut client, QUERY);
    assert_eq!(counts(&mut client, "top"), (reads - 1, 2));
    for id in 2_000..2_150 {
        client.run(&format!(
            "INSERT INTO item VALUES ({id}, 1, {id}, 1, 'n', NULL)"
        ));
    }
    same(&mut client, QUERY);
    assert_eq!(counts(&mut client, "top"), (reads, 2));
    assert!(
        bytes(&mut client) < 90 * 400,
        "what is far behind is let go"
    );
}

#[test]
fn other_orders_and_more_rows_are_the_base_plans() {
    let (_instance, mut client) = fresh();
    client.run("CREATE MATERIALIZED VIEW top AS SELECT id, kind, name FROM item WHERE owner = ? ORDER BY kind DESC, id LIMIT 5");
    client.run("INSERT INTO item VALUES (1, 1, 1, 1, 'a', NULL), (2, 1, 2, 1, 'b', NULL)");
    for query in [
        "SELECT id FROM item WHERE owner = 1EXTRA ORDER BY kind, id LIMIT 3",
        "SELECT id FROM item WHERE owner = 1EXTRA ORDER BY kind DESC, id LIMIT 3 OFFSET 3",
        "SELECT id FROM item WHERE owner = 1EXTRA ORDER BY kind DESC, id",
        "SELECT COUNT(*) FROM item WHERE owner = 1EXTRA",
        "SELECT DISTINCT name FROM item WHERE owner = 1EXTRA ORDER BY name LIMIT 2",
    ] {
        same(&mut client, query);
        assert_eq!(counts(&mut client, "top"), (0, 0), "{query}");
    }
    for query in [
        "SELECT name FROM item WHERE owner = 1EXTRA ORDER BY kind DESC, id LIMIT 5",
        "SELECT name FROM item WHERE owner IN (1, 2)EXTRA ORDER BY kind DESC, id LIMIT 1 OFFSET 4",
    ] {
        same(&mut client, query);
    }
    assert_eq!(counts(&mut client, "top"), (1, 2));
}

#[test]
fn rows_that_are_equal_in_the_order_are_held_together_or_not_at_all() {
    let (_instance, mut client) = fresh();
    client.run("CREATE MATERIALIZED VIEW top AS SELECT kind FROM item WHERE owner = ? ORDER BY kind LIMIT 4");
    let mut rows = Vec::new();
    for id in 0..200 {
        rows.push(format!("({id}, 1, {}, 1, 'n', NULL)", id / 60));
    }
    client.run(&format!("INSERT INTO item VALUES {}", rows.join(", ")));
    let query = "SELECT kind FROM item WHERE owner = 1EXTRA ORDER BY kind LIMIT 4";
    for text in [
        "SELECT 1",
        "DELETE FROM item WHERE id < 58",
        "DELETE FROM item WHERE id < 90",
        "INSERT INTO item VALUES (500, 1, 0, 1, 'n', NULL)",
        "DELETE FROM item WHERE id BETWEEN 90 AND 180",
        "DELETE FROM item",
        "INSERT INTO item VALUES (500, 1, 0, 1, 'n', NULL)",
    ] {
        client.run(text);
        same(&mut client, query);
        same(&mut client, query);
    }
    assert!(counts(&mut client, "top").0 > 4);
}
