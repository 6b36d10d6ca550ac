//! Statements that are prepared or kept planned.

use manxdb_sql::types::Value;

use crate::sessions::shop;
use manxdb_fixtures::sql::{Answer, connect, instance};

#[test]
fn prepared_statements_outlive_a_change_of_their_table() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    shop(&mut a);
    a.run("PREPARE p FROM 'SELECT * FROM t WHERE id = ?'");
    a.run("SET @id = 2");
    assert_eq!(a.rows("EXECUTE p USING @id"), vec![vec!["2", "20"]]);
    a.run("ALTER TABLE t ADD COLUMN x INT DEFAULT 7");
    assert_eq!(a.rows("EXECUTE p USING @id"), vec![vec!["2", "20", "7"]]);
    assert_eq!(a.error("EXECUTE p").code, 1210);
    a.run("DEALLOCATE PREPARE p");
    assert_eq!(a.error("EXECUTE p USING @id").code, 1243);
    let answers = a
        .execute("SELECT n FROM t WHERE id = ?", &[Value::Int(1)])
        .unwrap();
    let rows = vec![vec![Some("10".to_string())]];
    assert_eq!(answers, vec![Answer::Rows(vec!["n".into()], rows)]);
}

#[test]
fn a_result_column_has_the_type_of_the_parameters_it_is_computed_from() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    shop(&mut a);
    let text = |text: &str| Value::Text(text.into());
    let decimal = Value::decimal("1.25".parse().unwrap());
    for (query, values, types) in [
        ("SELECT ? + 1", vec![Value::Int(1)], "bigint"),
        ("SELECT ? + 1", vec![Value::Double(1.5)], "double"),
        ("SELECT ? + 1", vec![text("1.5")], "double"),
        ("SELECT ? + 1", vec![decimal.clone()], "decimal(22,2)"),
        (
            "SELECT ? + ?",
            vec![Value::Int(1), Value::Double(0.5)],
            "double",
        ),
        ("SELECT -?", vec![Value::Double(0.5)], "double"),
        (
            "SELECT SUM(n * ?) FROM t",
            vec![Value::Double(0.5)],
            "double",
        ),
        (
            "SELECT n + ? FROM t WHERE id = ?",
            vec![Value::Int(1), text("1")],
            "bigint",
        ),
        ("SELECT ?", vec![Value::Int(1)], "bigint"),
        ("SELECT ?", vec![Value::UInt(1)], "bigint unsigned"),
        ("SELECT ?", vec![decimal], "decimal(3,2)"),
    ] {
        assert_eq!(
            a.column_types(query, &values),
            [types],
            "{query} {values:?}"
        );
    }
    let answers = a.execute("SELECT ? + 1", &[Value::Double(1.5)]).unwrap();
    let rows = vec![vec![Some("2.5".to_string())]];
    assert_eq!(answers, vec![Answer::Rows(vec!["? + 1".into()], rows)]);
}

#[test]
fn prepared_statements_are_counted_over_all_sessions() {
    let instance = instance();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    a.run("SET GLOBAL max_prepared_stmt_count = 2");
    a.run("PREPARE one FROM 'SELECT 1'");
    b.run("PREPARE one FROM 'SELECT 1'");
    assert_eq!(a.error("PREPARE two FROM 'SELECT 2'").code, 1461);
    assert_eq!(b.error("PREPARE two FROM 'SELECT 2'").code, 1461);
    a.run("EXECUTE one");
    a.run("DEALLOCATE PREPARE one");
    // One that cannot be prepared takes no place.
    b.error("PREPARE two FROM 'SELEC 2'");
    b.run("PREPARE two FROM 'SELECT 2'");
    drop(b);
    a.run("PREPARE two FROM 'SELECT 2'");
    let count = a.rows("SHOW STATUS LIKE 'Prepared_stmt_count'");
    assert_eq!(count, [["Prepared_stmt_count", "1"]]);
}

#[test]
fn a_cached_statement_is_neither_parsed_nor_planned_again() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    shop(&mut a);
    a.run("SELECT n FROM t WHERE id = 1");
    let before = instance.metrics();
    a.run("SELECT n FROM t WHERE id = 1");
    let after = instance.metrics();
    assert_eq!(after.plan_cache_hits, before.plan_cache_hits + 1);
    assert_eq!(after.plan_cache_misses, before.plan_cache_misses);
}
