//! Rows of queries, clause by clause.

use super::shop::{check, shop};
use crate::types::Value;

#[test]
fn plain_selections_give_their_rows() {
    check(&[
        ("SELECT 1", "1"),
        ("SELECT 1 + 1, 'a', NULL FROM DUAL", "2|a|NULL"),
        ("SELECT * FROM teams", "1|red / 2|blue / 3|green"),
        ("SELECT name FROM users WHERE id = 2", "Bob"),
        (
            "SELECT name FROM users WHERE id IN (3, 1, 3, 99)",
            "Ann / Cleo",
        ),
        ("SELECT name FROM users WHERE name = 'bob'", "Bob"),
        (
            "SELECT name FROM users WHERE id > 1 AND id <= 3",
            "Bob / Cleo",
        ),
        (
            "SELECT name FROM users WHERE id BETWEEN 2 AND 3",
            "Bob / Cleo",
        ),
        ("SELECT name FROM users WHERE age IS NULL", "Cleo"),
        ("SELECT name FROM users WHERE team <=> NULL", "Dan"),
        ("SELECT name FROM users WHERE team IS NULL", "Dan"),
        ("SELECT name FROM users WHERE id = '2'", "Bob"),
        ("SELECT name FROM users WHERE id = 1.5", ""),
        (
            "SELECT name FROM users WHERE id > 2.5 ORDER BY id",
            "Cleo / Dan",
        ),
        ("SELECT u.* FROM users u WHERE u.id = 4", "4|Dan|41|NULL"),
        ("SELECT note FROM pairs WHERE (a, b) = (2, 1)", "z"),
        (
            "SELECT note FROM pairs WHERE (a, b) IN ((1,2),(2,1)) ORDER BY note",
            "y / z",
        ),
        (
            "SELECT note FROM pairs WHERE a = 1 AND b IN (2, 1)",
            "x / y",
        ),
        ("SELECT DISTINCT a FROM pairs", "1 / 2"),
        ("SELECT id FROM orders WHERE at >= '2024-01-02'", "11 / 12"),
        ("SELECT @x := 5, @x + 1", "5|6"),
        (
            "SELECT CASE WHEN 1 > 2 THEN 'a' ELSE 'b' END, IF(1, 2, 3)",
            "b|2",
        ),
        ("SELECT DATE('2024-01-31') + INTERVAL 1 MONTH", "2024-02-29"),
        (
            "SELECT EXTRACT(YEAR FROM '2024-05-06'), TRIM(LEADING 'x' FROM 'xxa')",
            "2024|a",
        ),
        (
            "SELECT CAST('12' AS SIGNED) + 1, CONVERT('3', DECIMAL(5,2))",
            "13|3.00",
        ),
    ]);
}

#[test]
fn rows_come_in_the_order_asked_for() {
    check(&[
        ("SELECT id FROM users ORDER BY id DESC", "4 / 3 / 2 / 1"),
        ("SELECT id FROM users ORDER BY age, id", "3 / 2 / 1 / 4"),
        ("SELECT id FROM users ORDER BY age DESC", "4 / 1 / 2 / 3"),
        (
            "SELECT id, age AS a FROM users ORDER BY a IS NULL, a",
            "2|25 / 1|30 / 4|41 / 3|NULL",
        ),
        ("SELECT id FROM users ORDER BY 1 DESC LIMIT 2", "4 / 3"),
        ("SELECT id FROM users ORDER BY id LIMIT 1, 2", "2 / 3"),
        ("SELECT id FROM users ORDER BY id LIMIT 2 OFFSET 1", "2 / 3"),
        (
            "SELECT id FROM users WHERE team = 1 ORDER BY age DESC LIMIT 1",
            "1",
        ),
        (
            "SELECT a, b FROM pairs ORDER BY a DESC, b",
            "2|1 / 2|2 / 1|1 / 1|2",
        ),
        (
            "SELECT name FROM users ORDER BY CHAR_LENGTH(name) DESC, name DESC LIMIT 2",
            "Cleo / Dan",
        ),
        ("SELECT id FROM users LIMIT 0", ""),
        ("SELECT DISTINCT team FROM users ORDER BY age", "error 3065"),
    ]);
}

#[test]
fn joins_pair_rows() {
    check(&[
        (
            "SELECT u.name, t.title FROM users u JOIN teams t ON t.id = u.team ORDER BY u.id",
            "Ann|red / Bob|red / Cleo|blue",
        ),
        (
            "SELECT u.name, t.title FROM users u LEFT JOIN teams t ON t.id = u.team ORDER BY u.id",
            "Ann|red / Bob|red / Cleo|blue / Dan|NULL",
        ),
        (
            "SELECT t.title, u.name FROM users u RIGHT JOIN teams t ON t.id = u.team ORDER BY t.id, u.id",
            "red|Ann / red|Bob / blue|Cleo / green|NULL",
        ),
        (
            "SELECT u.name, o.id FROM users u LEFT JOIN orders o ON o.user_id = u.id AND o.total > 6 ORDER BY u.id, o.id",
            "Ann|10 / Ann|11 / Bob|NULL / Cleo|NULL / Dan|NULL",
        ),
        (
            "SELECT u.name FROM users u LEFT JOIN orders o ON o.user_id = u.id WHERE o.id IS NULL ORDER BY 1",
            "Cleo / Dan",
        ),
        ("SELECT COUNT(*) FROM users, teams", "12"),
        (
            "SELECT COUNT(*) FROM users CROSS JOIN teams CROSS JOIN pairs",
            "48",
        ),
        (
            "SELECT x.id, y.id FROM users x JOIN users y ON x.team = y.team AND x.id < y.id",
            "1|2",
        ),
        (
            "SELECT u.name, t.title, o.id FROM users u LEFT JOIN teams t ON t.id = u.team JOIN orders o ON o.user_id = u.id ORDER BY o.id",
            "Ann|red|10 / Ann|red|11 / Bob|red|12",
        ),
        (
            "SELECT * FROM teams JOIN (SELECT 1 AS id, 'q' AS q) d USING (id)",
            "1|red|q",
        ),
        ("SELECT id FROM teams NATURAL JOIN (SELECT 2 AS id) d", "2"),
        (
            "SELECT u.name FROM users u LEFT JOIN (orders o JOIN teams t ON t.id = 1) ON o.user_id = u.id WHERE o.id = 12",
            "Bob",
        ),
        (
            "SELECT a.id FROM users a STRAIGHT_JOIN teams b ON a.team = b.id ORDER BY 1",
            "1 / 2 / 3",
        ),
        ("SELECT 1 FROM users JOIN users", "error 1066"),
        ("SELECT id FROM users JOIN teams", "error 1052"),
    ]);
}

#[test]
fn groups_sum_up_their_rows() {
    check(&[
        (
            "SELECT COUNT(*), COUNT(age), SUM(age), AVG(age), MIN(name), MAX(age) FROM users",
            "4|3|96|32.0000|Ann|41",
        ),
        (
            "SELECT team, COUNT(*) FROM users GROUP BY team ORDER BY team",
            "NULL|1 / 1|2 / 2|1",
        ),
        (
            "SELECT team AS t, COUNT(*) c FROM users GROUP BY t HAVING c > 1",
            "1|2",
        ),
        ("SELECT COUNT(*) FROM users WHERE id > 100", "0"),
        ("SELECT SUM(age) FROM users WHERE id > 100", "NULL"),
        ("SELECT COUNT(DISTINCT team) FROM users", "2"),
        (
            "SELECT SUM(total), AVG(total) FROM orders",
            "35.75|8.937500",
        ),
        (
            "SELECT GROUP_CONCAT(name ORDER BY name DESC SEPARATOR '-') FROM users",
            "Dan-Cleo-Bob-Ann",
        ),
        (
            "SELECT u.id, u.name, COUNT(o.id) FROM users u LEFT JOIN orders o ON o.user_id = u.id GROUP BY u.id ORDER BY 3 DESC, 1",
            "1|Ann|2 / 2|Bob|1 / 3|Cleo|0 / 4|Dan|0",
        ),
        ("SELECT name FROM users GROUP BY team", "error 1055"),
        (
            "SELECT t.title FROM users u LEFT JOIN teams t ON t.id = u.team GROUP BY u.id ORDER BY u.id",
            "red / red / blue / NULL",
        ),
        (
            "SELECT u.age FROM users u LEFT JOIN teams t ON u.age = 30 GROUP BY t.id",
            "error 1055",
        ),
        ("SELECT name, COUNT(*) FROM users", "error 1140"),
        ("SELECT id FROM users WHERE COUNT(*) > 1", "error 1111"),
        ("SELECT SUM(COUNT(*)) FROM users", "error 1111"),
        (
            "SELECT team + 1, COUNT(*) FROM users WHERE team IS NOT NULL GROUP BY team + 1 ORDER BY team + 1",
            "2|2 / 3|1",
        ),
        (
            "SELECT team, SUM(age) FROM users GROUP BY team WITH ROLLUP",
            "NULL|41 / 1|55 / 2|NULL / NULL|96",
        ),
        (
            "SELECT BIT_OR(id), BIT_AND(id), BIT_XOR(id) FROM users",
            "7|0|4",
        ),
        ("SELECT MAX(id), MIN(id) FROM users WHERE team = 1", "2|1"),
        ("SELECT MIN(age) FROM users", "25"),
        (
            "SELECT (SELECT title FROM teams t WHERE t.id = u.team) x, COUNT(*) FROM users u GROUP BY u.team ORDER BY x",
            "NULL|1 / blue|1 / red|2",
        ),
        (
            "SELECT STD(id), VARIANCE(id) FROM users",
            "1.118033988749895|1.25",
        ),
        ("SELECT 1 FROM users HAVING 1 = 0", ""),
        ("SELECT JSON_ARRAYAGG(id) FROM teams", "[1, 2, 3]"),
    ]);
}

#[test]
fn subqueries_work_in_every_clause() {
    check(&[
        ("SELECT (SELECT MAX(id) FROM teams)", "3"),
        (
            "SELECT name FROM users WHERE id = (SELECT MIN(user_id) FROM orders)",
            "Ann",
        ),
        (
            "SELECT name FROM users WHERE id IN (SELECT user_id FROM orders) ORDER BY id",
            "Ann / Bob",
        ),
        (
            "SELECT name FROM users WHERE id NOT IN (SELECT user_id FROM orders) ORDER BY id",
            "",
        ),
        (
            "SELECT name FROM users WHERE id NOT IN (SELECT user_id FROM orders WHERE user_id IS NOT NULL) ORDER BY id",
            "Cleo / Dan",
        ),
        (
            "SELECT name FROM users u WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id AND o.total > 10)",
            "Ann",
        ),
        (
            "SELECT name FROM users u WHERE NOT EXISTS (SELECT * FROM orders o WHERE o.user_id = u.id) ORDER BY 1",
            "Cleo / Dan",
        ),
        (
            "SELECT name, (SELECT COUNT(*) FROM orders o WHERE o.user_id = u.id) n FROM users u ORDER BY n DESC, name LIMIT 2",
            "Ann|2 / Bob|1",
        ),
        (
            "SELECT name FROM users WHERE age > ALL (SELECT age FROM users WHERE team = 1)",
            "Dan",
        ),
        (
            "SELECT name FROM users WHERE age < ANY (SELECT age FROM users) ORDER BY 1",
            "Ann / Bob",
        ),
        (
            "SELECT name FROM users WHERE id = (SELECT id FROM teams)",
            "error 1242",
        ),
        ("SELECT (SELECT 1, 2)", "error 1241"),
        (
            "SELECT d.n FROM (SELECT name n FROM users WHERE age > 26) d WHERE d.n < 'B'",
            "Ann",
        ),
        (
            "SELECT x.c FROM (SELECT team, COUNT(*) c FROM users GROUP BY team) x WHERE x.team = 1",
            "2",
        ),
        ("SELECT 1 FROM (SELECT 1)", "error 1248"),
        (
            "SELECT id FROM users WHERE id IN (SELECT id FROM teams LIMIT 1)",
            "error 1235",
        ),
        (
            "SELECT a FROM pairs p WHERE (a, b) IN (SELECT id, id FROM teams)",
            "1 / 2",
        ),
        (
            "SELECT name FROM users u WHERE id IN (SELECT user_id FROM orders o WHERE o.total > (SELECT AVG(total) FROM orders WHERE user_id = u.id))",
            "Ann",
        ),
        (
            "SELECT id FROM teams t WHERE (SELECT COUNT(*) FROM users u WHERE u.team = t.id AND EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id AND o.total < t.id * 10)) > 0",
            "1",
        ),
    ]);
}

#[test]
fn set_operations_and_common_tables_combine_queries() {
    check(&[
        ("SELECT 1 UNION SELECT 1 UNION SELECT 2", "1 / 2"),
        ("SELECT 1 UNION ALL SELECT 1", "1 / 1"),
        (
            "SELECT id FROM users UNION SELECT id FROM teams ORDER BY id DESC LIMIT 2",
            "4 / 3",
        ),
        ("SELECT id FROM users EXCEPT SELECT id FROM teams", "4"),
        (
            "SELECT id FROM users INTERSECT SELECT user_id FROM orders",
            "1 / 2",
        ),
        ("SELECT 1, 2 UNION SELECT 1", "error 1222"),
        (
            "(SELECT id FROM users ORDER BY id DESC LIMIT 1) UNION ALL (SELECT 9)",
            "4 / 9",
        ),
        (
            "WITH a AS (SELECT id FROM users WHERE id < 3) SELECT x.id, y.id FROM a x JOIN a y ON x.id = y.id",
            "1|1 / 2|2",
        ),
        (
            "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT SUM(i) FROM n",
            "15",
        ),
        (
            "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n) SELECT * FROM n",
            "error 3636",
        ),
        ("SELECT who FROM adults WHERE id = 2", "Bob"),
        ("SELECT size FROM team_sizes WHERE team = 1", "2"),
        (
            "SELECT a.who, t.size FROM adults a LEFT JOIN team_sizes t ON t.team = 1 WHERE a.id = 1",
            "Ann|2",
        ),
        ("VALUES ROW(1, 'a'), ROW(2, 'b')", "1|a / 2|b"),
        (
            "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT u.id FROM users u STRAIGHT_JOIN t ON u.id = t.n + 1) SELECT SUM(n) FROM t",
            "10",
        ),
        (
            "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT u.id FROM users u STRAIGHT_JOIN t ON u.age > 0 AND u.id = t.n + 1) SELECT GROUP_CONCAT(n) FROM t",
            "1,2",
        ),
    ]);
}

#[test]
fn window_functions_see_their_partition() {
    check(&[
        (
            "SELECT id, ROW_NUMBER() OVER (ORDER BY id DESC) n FROM users ORDER BY id",
            "1|4 / 2|3 / 3|2 / 4|1",
        ),
        (
            "SELECT id, RANK() OVER (ORDER BY team) FROM users ORDER BY id",
            "1|2 / 2|2 / 3|4 / 4|1",
        ),
        (
            "SELECT id, SUM(id) OVER (PARTITION BY team) FROM users ORDER BY id",
            "1|3 / 2|3 / 3|3 / 4|4",
        ),
        (
            "SELECT id, SUM(id) OVER (ORDER BY id) FROM users ORDER BY id",
            "1|1 / 2|3 / 3|6 / 4|10",
        ),
        (
            "SELECT id, LAG(id) OVER (ORDER BY id), LEAD(id, 1, 0) OVER (ORDER BY id) FROM teams",
            "1|NULL|2 / 2|1|3 / 3|2|0",
        ),
        (
            "SELECT team, COUNT(*) c, RANK() OVER (ORDER BY COUNT(*) DESC) FROM users GROUP BY team HAVING team = 1",
            "1|2|1",
        ),
    ]);
}

#[test]
fn names_that_are_not_there_have_mysqls_numbers() {
    check(&[
        ("SELECT nope FROM users", "error 1054"),
        ("SELECT id FROM users WHERE nope = 1", "error 1054"),
        ("SELECT x.id FROM users", "error 1054"),
        ("SELECT 1 FROM nope", "error 1146"),
        ("SELECT 1 FROM elsewhere.nope", "error 1049"),
        ("SELECT x.* FROM users", "error 1051"),
        ("SELECT *", "error 1096"),
        ("SELECT NOPE(1)", "error 1305"),
        ("SELECT id FROM users ORDER BY 9", "error 1054"),
        ("SELECT * FROM (SELECT 1 AS a, 2 AS a) d", "error 1060"),
    ]);
}

#[test]
fn parameters_take_part_in_look_ups_and_limits() {
    let world = shop();
    let sql = "SELECT name FROM users WHERE id = ? OR name = ? ORDER BY id LIMIT ?";
    let shown = world.shown(
        sql,
        &[Value::Int(2), Value::Text("ann".into()), Value::Int(5)],
    );
    assert_eq!(shown, "Ann / Bob");
    let plan = world
        .plan("SELECT name FROM users WHERE id = ? LIMIT ?")
        .unwrap();
    assert_eq!(plan.param_types.len(), 2);
    assert!(plan.param_types[0].is_integer());
    let (rows, _) = world
        .run_plan(&plan, &[Value::Text("3".into()), Value::Int(1)], None)
        .unwrap();
    assert_eq!(rows, [[Value::Text("Cleo".into())]]);
}

#[test]
fn result_columns_are_called_as_written() {
    let world = shop();
    let plan = world
        .plan("SELECT u.ID, count( * ), 'x', age+1 AS next FROM users u GROUP BY id")
        .unwrap();
    let names: Vec<&str> = plan.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["ID", "count( * )", "x", "next"]);
    let plan = world.plan("SELECT u.id FROM users u").unwrap();
    let column = &plan.columns[0];
    assert_eq!(
        (
            column.table.as_str(),
            column.org_table.as_str(),
            column.org_name.as_str()
        ),
        ("u", "users", "id")
    );
    assert!(column.primary_key && column.not_null);
}

#[test]
fn a_statement_past_its_memory_is_refused() {
    let mut world = shop();
    world.memory_limit = 100;
    assert_eq!(
        world.shown("SELECT id FROM users ORDER BY name", &[]),
        "error 1038"
    );
}
