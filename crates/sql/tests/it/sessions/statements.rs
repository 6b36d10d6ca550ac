//! What one statement leaves for the next: warnings, modes, variables, counts.

use crate::sessions::shop;
use manxdb_fixtures::sql::{Answer, connect, instance};

#[test]
fn warnings_last_until_the_next_statement() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    shop(&mut a);
    a.error("SELECT * FROM nowhere");
    let rows = a.rows("SHOW WARNINGS");
    assert_eq!(
        rows,
        vec![vec!["Error", "1146", "Table 'shop.nowhere' doesn't exist"]]
    );
    assert_eq!(a.value("SHOW COUNT(*) ERRORS"), "1");
    a.run("DO 1");
    assert!(a.rows("SHOW WARNINGS").is_empty());
}

#[test]
fn reset_forgets_everything_of_the_session_but_its_database() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    shop(&mut a);
    a.run("SET @x = 1, autocommit = 0, sql_mode = ''");
    a.run("INSERT INTO t VALUES (3, 3)");
    a.session.reset();
    assert_eq!(a.value("SELECT @x"), "NULL");
    assert_eq!(a.value("SELECT @@autocommit"), "1");
    assert_eq!(a.value("SELECT DATABASE()"), "shop");
    assert_eq!(a.value("SELECT COUNT(*) FROM t"), "2");
}

#[test]
fn statements_before_a_broken_one_have_run() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    shop(&mut a);
    let error = a.error("UPDATE t SET n = 11 WHERE id = 1; SELEKT; UPDATE t SET n = 0");
    assert_eq!(error.code, 1064);
    assert_eq!(a.value("SELECT n FROM t WHERE id = 1"), "11");
}

#[test]
fn a_statement_is_read_with_the_mode_that_the_one_before_it_set() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    a.run("SET sql_mode = 'ANSI_QUOTES'; SELECT 1 AS \"a b\"");
    assert_eq!(a.error("SELECT \"a b\"").code, 1054);
}

#[test]
fn select_into_takes_exactly_one_row() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    shop(&mut a);
    a.run("SELECT id, n INTO @i, @n FROM t WHERE id = 2");
    assert_eq!(a.rows("SELECT @i, @n"), vec![vec!["2", "20"]]);
    assert_eq!(a.error("SELECT id INTO @i FROM t").code, 1172);
    assert_eq!(a.error("SELECT id, n INTO @i FROM t LIMIT 1").code, 1222);
    a.run("SELECT id INTO @i FROM t WHERE id = 99");
    assert_eq!(a.rows("SHOW WARNINGS")[0][1], "1329");
}

#[test]
fn found_rows_of_an_upsert_count_each_row_on_its_own() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    shop(&mut a);
    let text =
        "INSERT INTO t VALUES (1, 10), (2, 21), (3, 30) ON DUPLICATE KEY UPDATE n = VALUES(n)";
    let Answer::Done(outcome, _) = a.run(text) else {
        panic!("no rows");
    };
    // The first stays as it is: 0 changed, but 1 found.
    assert_eq!((outcome.affected_rows, outcome.matched_rows), (3, 4));
}

#[test]
fn explain_shows_a_plan_and_analyze_what_happened() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    shop(&mut a);
    let rows = a.rows("EXPLAIN SELECT * FROM t WHERE id = 1");
    assert_eq!((rows.len(), rows[0].len()), (1, 12));
    assert!(
        a.value("EXPLAIN FORMAT=TREE SELECT * FROM t")
            .contains("-> ")
    );
    assert!(
        a.value("EXPLAIN ANALYZE SELECT * FROM t")
            .contains("rows=2")
    );
    assert!(
        a.value("EXPLAIN FORMAT=JSON SELECT * FROM t")
            .contains("query_block")
    );
}

#[test]
fn a_check_is_shown_in_brackets_as_tools_expect_to_strip_them() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    shop(&mut a);
    a.run("CREATE TABLE c (n INT, CONSTRAINT small CHECK (n < 10))");
    let clause = a.value("SELECT CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS");
    assert!(clause.starts_with('(') && clause.ends_with(')'), "{clause}");
}
