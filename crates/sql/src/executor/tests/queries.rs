use super::world::World;
use crate::types::Value;

fn shop() -> World {
    let mut world = World::new();
    world.table(
        "users",
        "id int!, name text, age int, team int",
        "id",
        &["+name", "team,age"],
    );
    world.fill(
        "users",
        "(1,'Ann',30,1),(2,'Bob',25,1),(3,'Cleo',NULL,2),(4,'Dan',41,NULL)",
    );
    world.table("teams", "id int!, title text", "id", &[]);
    world.fill("teams", "(1,'red'),(2,'blue'),(3,'green')");
    world.table(
        "orders",
        "id int!, user_id int, total decimal, at datetime",
        "id",
        &["user_id"],
    );
    world.fill(
        "orders",
        "(10,1,9.50,'2024-01-01 10:00:00'),(11,1,20.00,'2024-01-02 11:00:00'),(12,2,5.25,'2024-01-03 12:00:00'),(13,NULL,1.00,NULL)",
    );
    world.table("pairs", "a int!, b int!, note text", "a,b", &[]);
    world.fill("pairs", "(1,1,'x'),(1,2,'y'),(2,1,'z'),(2,2,NULL)");
    world.view(
        "adults",
        "SELECT id, name AS who, age FROM users WHERE age >= 18",
    );
    world.view(
        "team_sizes",
        "SELECT team, COUNT(*) AS size FROM users GROUP BY team",
    );
    world
}

/// Each case is a query and what it shows.
fn check(cases: &[(&str, &str)]) {
    let world = shop();
    let mut wrong = Vec::new();
    for (sql, expected) in cases {
        let shown = world.shown(sql, &[]);
        if shown != *expected {
            let message = match world.plan(sql).err().map(|e| e.message) {
                Some(message) => message,
                None => world.tree(sql),
            };
            wrong.push(format!(
                "{sql}\n  gives    {shown}\n  expected {expected}\n{message}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

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
fn plans_use_keys_and_orders() {
    let world = shop();
    for (sql, part) in [
        (
            "SELECT * FROM users WHERE id = 1",
            "Single-row index lookup on users using PRIMARY",
        ),
        (
            "SELECT * FROM users WHERE name = 'x'",
            "Single-row index lookup on users using i_name",
        ),
        (
            "SELECT * FROM users WHERE team = 1",
            "Index lookup on users using i_team_age",
        ),
        (
            "SELECT * FROM users WHERE team = 1 AND age > 3",
            "Index range scan on users using i_team_age",
        ),
        (
            "SELECT * FROM users WHERE id IN (1, 2)",
            "Index range scan on users using PRIMARY",
        ),
        (
            "SELECT * FROM users ORDER BY id DESC LIMIT 1",
            "Table scan on users (reverse)",
        ),
        (
            "SELECT * FROM users u JOIN teams t ON t.id = u.team",
            "Single-row index lookup on t using PRIMARY",
        ),
        (
            "SELECT COUNT(*) FROM orders",
            "Covering index scan on orders using i_user_id",
        ),
        (
            "SELECT who FROM adults WHERE id = 2",
            "Single-row index lookup on users using PRIMARY",
        ),
        ("SELECT MAX(id) FROM orders", "Limit: 1 row(s)"),
        (
            "SELECT * FROM users WHERE id = 1 OR id = 3",
            "Index range scan on users using PRIMARY",
        ),
        (
            "SELECT * FROM pairs WHERE (a, b) IN ((1,2),(2,1))",
            "Index range scan on pairs using PRIMARY",
        ),
        (
            "SELECT * FROM users WHERE id IN (SELECT user_id FROM orders WHERE id = 12)",
            "Single-row index lookup on users using PRIMARY",
        ),
    ] {
        let tree = world.tree(sql);
        assert!(tree.contains(part), "{sql}\n{tree}");
    }
    let tree = world.tree("SELECT * FROM users WHERE team = 1 ORDER BY age DESC LIMIT 1");
    assert!(!tree.contains("Sort"), "{tree}");
}

#[test]
fn a_long_list_is_looked_up_and_never_reads_the_whole_table() {
    let world = shop();
    let list = |values: usize| vec!["?"; values].join(",");
    for values in [2, 51, 1_000] {
        let sql = format!("SELECT * FROM orders WHERE user_id IN ({})", list(values));
        let tree = world.tree(&sql);
        assert!(
            tree.contains("Index range scan on orders using i_user_id"),
            "{values}: {tree}"
        );
    }
}

#[test]
fn of_two_keys_the_one_that_bounds_more_columns_is_read() {
    let mut world = World::new();
    let indexes = ["user", "user,comment", "user,story"];
    let columns = "id int!, user int, comment int, story int";
    world.table("votes", columns, "id", &indexes);
    for (condition, index) in [
        ("story IN (1,2,3)", "i_user_story"),
        ("story = 4 AND comment IS NULL", "i_user_story"),
        ("comment IS NULL", "i_user_comment"),
    ] {
        let sql = format!("SELECT * FROM votes WHERE user = 1 AND {condition}");
        let tree = world.tree(&sql);
        assert!(tree.contains(&format!("using {index} ")), "{tree}");
    }
}

#[test]
fn a_limit_in_an_index_order_stops_early_instead_of_sorting_all_that_is_null() {
    let mut world = World::new();
    let columns = "id int!, merged int, expired int!, hotness int!";
    world.table("stories", columns, "id", &["merged", "hotness"]);
    let tree = world.tree(
        "SELECT * FROM stories WHERE merged IS NULL AND expired = 0 ORDER BY hotness LIMIT 51",
    );
    assert!(tree.contains("using i_hotness"), "{tree}");
    assert!(!tree.contains("Sort"), "{tree}");
    let newest = world.tree(
        "SELECT * FROM stories WHERE merged IS NULL AND expired = 0 ORDER BY id DESC LIMIT 51",
    );
    assert!(
        newest.contains("Table scan on stories (reverse)"),
        "{newest}"
    );
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

#[test]
fn explain_analyze_counts_rows_and_loops() {
    let world = shop();
    let sql = "SELECT u.name, t.title FROM users u JOIN teams t ON t.id = u.team";
    let plan = world.plan(sql).unwrap();
    let analysis = crate::executor::Analysis::default();
    world.run_plan(&plan, &[], Some(&analysis)).unwrap();
    let rows = crate::planner::explain(&plan, crate::planner::ExplainFormat::Tree, Some(&analysis));
    let Value::Text(text) = &rows[0][0] else {
        panic!("no text")
    };
    assert!(text.contains("rows=4.000 loops=1"), "{text}");
    assert!(text.contains("loops=4"), "{text}");
}

#[test]
fn modification_scans_carry_row_keys() {
    let world = shop();
    let query = world.query("SELECT 1 FROM users u JOIN teams t ON t.id = u.team WHERE u.id = 1");
    let sqlparser::ast::SetExpr::Select(select) = *query.body else {
        panic!("no select")
    };
    let plan = crate::planner::plan_modify(
        &world.bind_context(None),
        &select.from,
        select.selection.as_ref(),
        &[],
        None,
    )
    .unwrap();
    let (rows, _) = world.run_plan(&plan.plan, &[], None).unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].len(), 4 + 1 + 2 + 1);
    assert_eq!(plan.tables[1].offset, 5);
    assert!(matches!(rows[0][4], Value::Bytes(_)) && matches!(rows[0][7], Value::Bytes(_)));
    assert_eq!(rows[0][6], Value::Text("red".into()));
}

#[test]
#[allow(clippy::too_many_lines)]
fn statements_of_frameworks_work() {
    check(&[
        (
            "SELECT COUNT(*) AS `__count` FROM `users` WHERE `users`.`name` LIKE BINARY 'A%'",
            "1",
        ),
        (
            "SELECT (1) AS `a` FROM `users` WHERE `users`.`id` = 1 LIMIT 1",
            "1",
        ),
        (
            "SELECT `team`, COUNT(`id`) AS `n` FROM `users` GROUP BY `team` ORDER BY `n` DESC, NULL LIMIT 1",
            "1|2",
        ),
        (
            "SELECT COUNT(*) FROM (SELECT DISTINCT team AS col1 FROM users) subquery",
            "3",
        ),
        (
            "SELECT u.id FROM users u WHERE NOT (u.team = 1 AND u.team IS NOT NULL) ORDER BY u.id",
            "3 / 4",
        ),
        (
            "SELECT x.id FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY team ORDER BY id) rn FROM users) x WHERE x.rn = 1 ORDER BY x.id",
            "1 / 3 / 4",
        ),
        ("SELECT COUNT(DISTINCT team, age) FROM users", "2"),
        (
            "SELECT team, COUNT(*) FROM users GROUP BY 1 ORDER BY COUNT(*) DESC, 1 LIMIT 1",
            "1|2",
        ),
        (
            "SELECT MAX(age) - MIN(age) AS spread FROM users HAVING spread > 1",
            "16",
        ),
        (
            "SELECT team, GROUP_CONCAT(DISTINCT name) FROM users WHERE team = 1 GROUP BY team",
            "1|Bob,Ann",
        ),
        (
            "SELECT u.name FROM users u JOIN orders o ON o.user_id = u.id GROUP BY u.id, u.name HAVING SUM(o.total) > 10",
            "Ann",
        ),
        (
            "SELECT id FROM users FOR UPDATE SKIP LOCKED",
            "1 / 2 / 3 / 4",
        ),
        ("SELECT id FROM users WHERE id = 1 LOCK IN SHARE MODE", "1"),
        (
            "SELECT a.id FROM users a WHERE a.id = (SELECT MAX(b.id) FROM users b WHERE b.team = a.team) ORDER BY 1",
            "2 / 3",
        ),
        ("SELECT EXISTS(SELECT 1 FROM users WHERE id = 1) AS e", "1"),
        ("SELECT NOT EXISTS(SELECT 1 FROM users WHERE id = 1)", "0"),
        (
            "SELECT id IN (SELECT user_id FROM orders) FROM users WHERE id < 4 ORDER BY id",
            "1 / 1 / NULL",
        ),
        (
            "SELECT COALESCE(t.title, '-') FROM users u LEFT JOIN teams t ON u.team = t.id WHERE u.id >= 3 ORDER BY u.id",
            "blue / -",
        ),
        (
            "SELECT t.title, x.c FROM teams t LEFT JOIN (SELECT team, COUNT(*) c FROM users GROUP BY team) x ON x.team = t.id ORDER BY t.id",
            "red|2 / blue|1 / green|NULL",
        ),
        (
            "SELECT t.id FROM teams t LEFT JOIN adults a ON a.id = t.id WHERE a.who IS NULL",
            "3",
        ),
        ("SELECT who FROM adults ORDER BY age DESC LIMIT 1", "Dan"),
        (
            "SELECT SUM(x) FROM (SELECT 1 AS x UNION ALL SELECT 2) d",
            "3",
        ),
        (
            "SELECT id, name FROM users WHERE (team, age) = (1, 25)",
            "2|Bob",
        ),
        (
            "SELECT id FROM users WHERE (team, age) > (1, 25) ORDER BY id",
            "1 / 3",
        ),
        (
            "SELECT 'a' = 'A', BINARY 'a' = 'A', 'a' COLLATE utf8mb4_bin = 'A'",
            "1|0|0",
        ),
        (
            "SELECT id FROM users WHERE name LIKE 'b%' OR name REGEXP '^D'",
            "2 / 4",
        ),
        ("SELECT @@version", "8.0"),
        (
            "SELECT -id, +id, ~0, !1, id DIV 2, id % 2, id << 1 FROM users WHERE id = 3",
            "-3|3|18446744073709551615|0|1|1|6",
        ),
        (
            "SELECT 0x41, x'42', b'1000011', N'd', _utf8mb4'e'",
            "A|B|C|d|e",
        ),
        (
            "SELECT DATE_ADD('2024-01-01', INTERVAL 1 DAY), '2024-01-01' - INTERVAL 1 MONTH",
            "2024-01-02|2023-12-01",
        ),
        ("SELECT TIMESTAMPDIFF(DAY, '2024-01-01', '2024-01-03')", "2"),
        (
            "SELECT at FROM orders WHERE at BETWEEN '2024-01-01' AND '2024-01-02' ",
            "2024-01-01 10:00:00",
        ),
        (
            "SELECT u.id, (SELECT GROUP_CONCAT(o.id ORDER BY o.id) FROM orders o WHERE o.user_id = u.id) FROM users u WHERE u.id < 3 ORDER BY u.id",
            "1|10,11 / 2|12",
        ),
        (
            "SELECT id FROM users ORDER BY FIELD(id, 3, 1, 2, 4)",
            "3 / 1 / 2 / 4",
        ),
        (
            "SELECT id FROM users ORDER BY (SELECT COUNT(*) FROM orders o WHERE o.user_id = users.id) DESC, id LIMIT 2",
            "1 / 2",
        ),
        (
            "SELECT team, MAX(age) FROM users WHERE team > 0 GROUP BY team HAVING MAX(age) IS NOT NULL",
            "1|30",
        ),
        ("SELECT * FROM users WHERE 1 = 0", ""),
        ("SELECT MATCH(name) AGAINST ('x') FROM users", "error 1235"),
        (
            "SELECT id FROM users NATURAL LEFT JOIN (SELECT 1 AS id, 9 AS z) d WHERE z IS NOT NULL",
            "1",
        ),
        (
            "SELECT * FROM pairs p JOIN (SELECT 1 AS a, 5 AS q) d USING (a) WHERE b = 2",
            "1|2|y|5",
        ),
    ]);
}
