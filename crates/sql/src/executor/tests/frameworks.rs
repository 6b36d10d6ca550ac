//! Queries as frameworks write them.

use super::shop::check;

#[test]
fn counts_and_groups_of_frameworks_add_up() {
    check(&[
        (
            "SELECT COUNT(*) AS `__count` FROM `users` WHERE `users`.`name` LIKE BINARY 'A%'",
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
            "SELECT team, MAX(age) FROM users WHERE team > 0 GROUP BY team HAVING MAX(age) IS NOT NULL",
            "1|30",
        ),
    ]);
}

#[test]
fn subqueries_and_joins_of_frameworks_find_their_rows() {
    check(&[
        (
            "SELECT x.id FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY team ORDER BY id) rn FROM users) x WHERE x.rn = 1 ORDER BY x.id",
            "1 / 3 / 4",
        ),
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
            "SELECT u.id, (SELECT GROUP_CONCAT(o.id ORDER BY o.id) FROM orders o WHERE o.user_id = u.id) FROM users u WHERE u.id < 3 ORDER BY u.id",
            "1|10,11 / 2|12",
        ),
        (
            "SELECT id FROM users ORDER BY (SELECT COUNT(*) FROM orders o WHERE o.user_id = users.id) DESC, id LIMIT 2",
            "1 / 2",
        ),
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

#[test]
fn conditions_and_literals_of_frameworks_mean_what_they_do_in_mysql() {
    check(&[
        (
            "SELECT (1) AS `a` FROM `users` WHERE `users`.`id` = 1 LIMIT 1",
            "1",
        ),
        (
            "SELECT u.id FROM users u WHERE NOT (u.team = 1 AND u.team IS NOT NULL) ORDER BY u.id",
            "3 / 4",
        ),
        (
            "SELECT id FROM users FOR UPDATE SKIP LOCKED",
            "1 / 2 / 3 / 4",
        ),
        ("SELECT id FROM users WHERE id = 1 LOCK IN SHARE MODE", "1"),
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
            "SELECT id FROM users ORDER BY FIELD(id, 3, 1, 2, 4)",
            "3 / 1 / 2 / 4",
        ),
        ("SELECT * FROM users WHERE 1 = 0", ""),
        ("SELECT MATCH(name) AGAINST ('x') FROM users", "error 1235"),
    ]);
}
