//! What a view does not hold is refused by its name.

use super::fresh;

#[test]
fn what_cannot_be_held_is_1235_with_its_name() {
    let (_instance, mut client) = fresh();
    client.run("CREATE TABLE other (id INT PRIMARY KEY, at TIMESTAMP NULL, weight DOUBLE)");
    let cases = [
        (
            "SELECT item.id FROM item JOIN other ON other.id = item.kind WHERE owner = ?",
            "index on item (kind)",
        ),
        (
            "SELECT item.id FROM item LEFT JOIN (other JOIN item AS b ON b.id = other.id) ON other.id = item.id WHERE item.owner = ?",
            "brackets",
        ),
        (
            "SELECT id FROM item WHERE owner = ? AND id > (SELECT MIN(id) FROM other)",
            "a subquery",
        ),
        (
            "SELECT id FROM item WHERE owner = ? UNION SELECT 1",
            "a SELECT without table",
        ),
        (
            "SELECT id FROM (SELECT id FROM item LIMIT 3) AS x WHERE id = ?",
            "a subquery in FROM",
        ),
        (
            "SELECT id FROM item WHERE owner = ? AND kind > ?",
            "a parameter elsewhere",
        ),
        (
            "SELECT id FROM item WHERE owner = ? AND made < NOW()",
            "NOW",
        ),
        (
            "SELECT id FROM item WHERE owner = ? AND price < RAND()",
            "RAND",
        ),
        (
            "SELECT id FROM item WHERE owner = ? AND kind = @k",
            "the variable @k",
        ),
        (
            "SELECT id, at FROM other WHERE id = ?",
            "TIMESTAMP column at",
        ),
        ("SELECT SUM(weight) FROM other WHERE id = ?", "DOUBLE"),
        ("SELECT id FROM other WHERE weight = ?", "key column weight"),
        (
            "SELECT name, COUNT(*) FROM item WHERE owner = ? GROUP BY name",
            "GROUP BY",
        ),
        (
            "SELECT GROUP_CONCAT(name) FROM item WHERE owner = ?",
            "GROUP_CONCAT",
        ),
        ("SELECT MAX(name) FROM item WHERE owner = ?", "MIN or MAX"),
        (
            "SELECT kind, COUNT(*) FROM item WHERE owner = ? GROUP BY kind WITH ROLLUP",
            "ROLLUP",
        ),
        (
            "SELECT id, RANK() OVER (ORDER BY id) FROM item WHERE owner = ?",
            "window",
        ),
        (
            "SELECT table_name FROM information_schema.tables WHERE table_name = ?",
            "a computed table",
        ),
    ];
    for (query, name) in cases {
        let error = client.error(&format!("CREATE MATERIALIZED VIEW v AS {query}"));
        assert!(
            error.message.contains(name) && error.code == 1235,
            "{query}: {} {}",
            error.code,
            error.message
        );
    }
    assert!(client.rows("SHOW MATERIALIZED VIEWS").is_empty());
}

#[test]
fn names_are_taken_once() {
    let (_instance, mut client) = fresh();
    let view = "AS SELECT COUNT(*) FROM item WHERE owner = ?";
    assert_eq!(
        client
            .error(&format!("CREATE MATERIALIZED VIEW item {view}"))
            .code,
        1050
    );
    client.run(&format!("CREATE MATERIALIZED VIEW v {view}"));
    assert_eq!(
        client
            .error(&format!("CREATE MATERIALIZED VIEW v {view}"))
            .code,
        1050
    );
    client.run(&format!("CREATE MATERIALIZED VIEW IF NOT EXISTS v {view}"));
    assert_eq!(client.error("CREATE TABLE v (id INT)").code, 1050);
    assert_eq!(client.error("CREATE VIEW v AS SELECT 1").code, 1050);
    assert_eq!(client.error("DROP MATERIALIZED VIEW w").code, 1051);
    assert_eq!(client.error("SELECT * FROM v").code, 1146);
    client.run("DROP MATERIALIZED VIEW v; DROP MATERIALIZED VIEW IF EXISTS v");
}
