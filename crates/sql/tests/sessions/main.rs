//! What a session promises: transactions, autocommit, savepoints, retries, variables, accounts.

mod common;

use common::{Answer, connect, instance, instance_with_memory};
use manxdb_sql::types::Value;

fn shop(client: &mut common::Client) {
    client.run("CREATE DATABASE shop");
    client.run("USE shop");
    client.run("CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    client.run("INSERT INTO t VALUES (1, 10), (2, 20)");
}

#[test]
fn autocommit_off_keeps_changes_to_oneself_until_commit() {
    let instance = instance();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    shop(&mut a);
    b.run("USE shop");
    a.run("SET autocommit = 0");
    a.run("UPDATE t SET n = 11 WHERE id = 1");
    assert!(a.session.status().in_transaction);
    assert_eq!(b.value("SELECT n FROM t WHERE id = 1"), "10");
    a.run("COMMIT");
    assert!(!a.session.status().in_transaction);
    assert_eq!(b.value("SELECT n FROM t WHERE id = 1"), "11");
    a.run("UPDATE t SET n = 12 WHERE id = 1");
    a.run("SET autocommit = 1");
    assert_eq!(b.value("SELECT n FROM t WHERE id = 1"), "12");
}

#[test]
fn savepoints_undo_what_came_after_them() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    shop(&mut a);
    a.run("BEGIN");
    a.run("UPDATE t SET n = 1 WHERE id = 1");
    a.run("SAVEPOINT s");
    a.run("DELETE FROM t");
    a.run("SAVEPOINT later");
    a.run("ROLLBACK TO s");
    assert_eq!(a.error("ROLLBACK TO later").code, 1305);
    assert_eq!(a.value("SELECT COUNT(*) FROM t"), "2");
    a.run("RELEASE SAVEPOINT s");
    assert_eq!(a.error("RELEASE SAVEPOINT s").code, 1305);
    a.run("COMMIT");
    assert_eq!(a.value("SELECT n FROM t WHERE id = 1"), "1");
}

#[test]
fn a_failed_statement_leaves_the_transaction_as_it_was() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    shop(&mut a);
    a.run("BEGIN");
    a.run("INSERT INTO t VALUES (3, 30)");
    assert_eq!(a.error("INSERT INTO t VALUES (4, 40), (1, 0)").code, 1062);
    assert!(a.session.status().in_transaction);
    a.run("COMMIT");
    assert_eq!(
        a.value("SELECT GROUP_CONCAT(id ORDER BY id) FROM t"),
        "1,2,3"
    );
}

#[test]
fn a_lost_conflict_is_1213_and_ends_the_transaction() {
    let instance = instance();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    shop(&mut a);
    b.run("USE shop");
    a.run("BEGIN");
    let n = a.value("SELECT SUM(n) FROM t");
    b.run("UPDATE t SET n = 99 WHERE id = 2");
    let error = match a.try_run(&format!("UPDATE t SET n = {n} WHERE id = 1")) {
        Err(error) => error,
        Ok(_) => a.error("COMMIT"),
    };
    assert_eq!((error.code, error.sqlstate), (1213, "40001"));
    assert!(!a.session.status().in_transaction);
    assert_eq!(a.value("SELECT n FROM t WHERE id = 1"), "10");
}

#[test]
fn a_lock_wait_that_times_out_keeps_the_transaction() {
    let instance = instance();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    shop(&mut a);
    b.run("USE shop");
    b.run("SET innodb_lock_wait_timeout = 1");
    a.run("BEGIN");
    a.run("UPDATE t SET n = 0 WHERE id = 1");
    b.run("BEGIN");
    b.run("UPDATE t SET n = 21 WHERE id = 2");
    assert_eq!(b.error("UPDATE t SET n = 1 WHERE id = 1").code, 1205);
    assert!(b.session.status().in_transaction);
    b.run("COMMIT");
    assert_eq!(b.value("SELECT n FROM t WHERE id = 2"), "21");
}

#[test]
fn ddl_commits_what_is_open() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    shop(&mut a);
    a.run("BEGIN");
    a.run("INSERT INTO t VALUES (3, 30)");
    a.run("CREATE TABLE other (id INT PRIMARY KEY)");
    assert!(!a.session.status().in_transaction);
    a.run("ROLLBACK");
    assert_eq!(a.value("SELECT COUNT(*) FROM t"), "3");
}

#[test]
fn read_only_transactions_refuse_writes() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    shop(&mut a);
    a.run("START TRANSACTION READ ONLY");
    assert!(a.session.status().read_only_transaction);
    assert_eq!(a.error("DELETE FROM t").code, 1792);
    a.run("COMMIT AND CHAIN");
    assert!(a.session.status().in_transaction);
    a.run("ROLLBACK AND NO CHAIN");
    assert!(!a.session.status().in_transaction);
}

#[test]
fn the_isolation_variables_tell_the_truth() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    assert_eq!(a.value("SELECT @@transaction_isolation"), "SERIALIZABLE");
    a.run("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED");
    assert_eq!(a.value("SELECT @@tx_isolation"), "READ-UNCOMMITTED");
    a.run("BEGIN");
    assert_eq!(a.error("SET TRANSACTION READ ONLY").code, 1568);
}

#[test]
fn statements_run_out_of_time_and_can_be_killed() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    a.run("SET max_execution_time = 1000");
    assert_eq!(a.error("SELECT SLEEP(3)").code, 3024);
    let mut b = connect(&instance, "root");
    shop(&mut b);
    assert_eq!(b.error("KILL 4711").code, 1094);
    let id = a.value("SELECT CONNECTION_ID()");
    b.run(&format!("KILL {id}"));
    let control = a.session.control();
    assert!(
        control
            .kill_connection
            .load(std::sync::atomic::Ordering::SeqCst)
    );
    assert_eq!(a.value("SELECT SLEEP(0.5)"), "1");
    for more in [
        "SELECT SLEEP(0.5) FROM shop.t",
        "UPDATE shop.t SET n = SLEEP(0.5)",
    ] {
        assert_eq!(a.error(more).code, 1317, "{more}");
    }
    assert_eq!(b.value("SELECT SUM(n) FROM shop.t"), "30");
}

#[test]
fn named_locks_belong_to_one_session() {
    let instance = instance();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    assert_eq!(a.value("SELECT GET_LOCK('x', 0)"), "1");
    assert_eq!(b.value("SELECT GET_LOCK('x', 1)"), "0");
    drop(a);
    assert_eq!(b.value("SELECT GET_LOCK('x', 0)"), "1");
    assert_eq!(b.value("SELECT RELEASE_LOCK('x')"), "1");
    assert_eq!(b.value("SELECT RELEASE_LOCK('x')"), "NULL");
}

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
fn the_rows_a_statement_changes_count_against_its_memory() {
    let instance = instance_with_memory(16 << 10);
    let mut a = connect(&instance, "root");
    a.run("CREATE DATABASE shop; USE shop");
    a.run("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, word VARCHAR(1000))");
    for _ in 0..20 {
        a.run("INSERT INTO t (word) VALUES (REPEAT('x', 1000))");
    }
    for text in [
        "INSERT INTO t (word) SELECT word FROM t",
        "REPLACE INTO t SELECT * FROM t",
        "UPDATE t SET word = CONCAT(word, 'y')",
        "DELETE FROM t",
        "CREATE TABLE copy AS SELECT * FROM t",
    ] {
        assert_eq!(a.error(text).code, 1038, "{text}");
    }
    assert_eq!(
        a.value("SELECT COUNT(*) FROM t WHERE LENGTH(word) = 1000"),
        "20"
    );
    assert_eq!(a.error("SELECT * FROM copy").code, 1146);
    a.run("UPDATE t SET word = '' LIMIT 10");
    a.run("DELETE FROM t WHERE word <> '' LIMIT 10");
    a.run("INSERT INTO t (word) SELECT word FROM t");
    assert_eq!(a.value("SELECT COUNT(*) FROM t"), "20");
}

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

#[test]
fn accounts_may_do_what_they_were_granted_and_no_more() {
    let instance = instance();
    let mut root = connect(&instance, "root");
    shop(&mut root);
    root.run("CREATE USER ann IDENTIFIED BY 'secret'");
    assert_eq!(root.error("CREATE USER ann").code, 1396);
    let mut ann = connect(&instance, "ann");
    assert_eq!(ann.error("USE shop").code, 1044);
    assert_eq!(ann.error("SELECT * FROM shop.t").code, 1142);
    root.run("GRANT SELECT ON shop.t TO ann");
    ann.run("USE shop");
    assert_eq!(ann.value("SELECT COUNT(*) FROM t"), "2");
    let error = ann.error("DELETE FROM t");
    assert_eq!(
        error.message,
        "DELETE command denied to user 'ann'@'localhost' for table 't'"
    );
    assert_eq!(ann.error("CREATE TABLE x (id INT)").code, 1142);
    assert_eq!(ann.error("DROP DATABASE shop").code, 1044);
    assert_eq!(ann.error("CREATE USER bob").code, 1227);
    assert_eq!(ann.error("SET GLOBAL wait_timeout = 1").code, 1227);
    root.run("REVOKE SELECT ON shop.t FROM ann");
    assert_eq!(ann.error("SELECT * FROM t").code, 1142);
    root.run("GRANT ALL ON shop.* TO ann WITH GRANT OPTION");
    ann.run("DELETE FROM t");
    assert_eq!(
        ann.rows("SHOW GRANTS"),
        vec![
            vec!["GRANT USAGE ON *.* TO `ann`@`%`"],
            vec!["GRANT ALL PRIVILEGES ON `shop`.* TO `ann`@`%` WITH GRANT OPTION"],
        ]
    );
    root.run("DROP USER ann");
    assert_eq!(ann.error("SELECT * FROM t").code, 1142);
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
fn a_subquery_in_set_needs_the_privilege_it_always_needs() {
    let instance = instance();
    let mut root = connect(&instance, "root");
    shop(&mut root);
    root.run("CREATE USER ann");
    let mut ann = connect(&instance, "ann");
    assert_eq!(ann.error("SET @n = (SELECT SUM(n) FROM shop.t)").code, 1142);
    assert_eq!(ann.error("DO (SELECT SUM(n) FROM shop.t)").code, 1142);
    root.run("SET @n = (SELECT SUM(n) FROM shop.t)");
    assert_eq!(root.value("SELECT @n"), "30");
}

#[test]
fn a_locked_table_keeps_other_sessions_out() {
    let instance = instance();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    shop(&mut a);
    a.run("CREATE TABLE other (id INT PRIMARY KEY)");
    b.run("USE shop");
    b.run("SET innodb_lock_wait_timeout = 1");
    a.run("LOCK TABLES t READ");
    assert_eq!(b.value("SELECT COUNT(*) FROM t"), "2");
    assert_eq!(b.error("DELETE FROM t").code, 1205);
    assert_eq!(a.error("DELETE FROM t").code, 1099);
    assert_eq!(a.error("SELECT * FROM other").code, 1100);
    a.run("LOCK TABLES t WRITE");
    assert_eq!(b.error("SELECT COUNT(*) FROM t").code, 1205);
    a.run("DELETE FROM t WHERE id = 1");
    a.run("UNLOCK TABLES");
    assert_eq!(b.value("SELECT COUNT(*) FROM t"), "1");
    b.run("LOCK TABLES t WRITE");
    drop(b);
    assert_eq!(a.value("SELECT COUNT(*) FROM t"), "1");
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
fn a_slow_statement_is_kept_with_the_split_of_its_time() {
    let instance = instance();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    shop(&mut a);
    b.run("USE shop");
    b.run("SET long_query_time = 0.5, innodb_lock_wait_timeout = 2");
    a.run("BEGIN");
    a.run("UPDATE t SET n = 0 WHERE id = 1");
    b.error("UPDATE t SET n = 1 WHERE id = 1");
    let slow = instance.slow_statements();
    assert_eq!(slow.len(), 1);
    assert_eq!(slow[0].text, "UPDATE t SET n = 1 WHERE id = 1");
    assert_eq!((slow[0].error, slow[0].split.lock_wait), (1205, 2_000_000));
    assert_eq!(instance.metrics().errors[&1205], 1);
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
fn the_process_list_shows_ones_own_sessions_only_without_the_privilege() {
    let instance = instance();
    let mut root = connect(&instance, "root");
    root.run("CREATE USER ann");
    let mut ann = connect(&instance, "ann");
    assert_eq!(root.rows("SHOW PROCESSLIST").len(), 2);
    let rows = ann.rows("SHOW FULL PROCESSLIST");
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (rows[0][1].as_str(), rows[0][7].as_str()),
        ("ann", "SHOW FULL PROCESSLIST")
    );
    let id = root.value("SELECT CONNECTION_ID()");
    assert_eq!(ann.error(&format!("KILL {id}")).code, 1095);
}

#[test]
fn shutdown_needs_its_privilege() {
    let instance = instance();
    let mut root = connect(&instance, "root");
    root.run("CREATE USER ann");
    assert_eq!(connect(&instance, "ann").error("SHUTDOWN").code, 1227);
    assert!(!instance.shutdown_requested());
    root.run("SHUTDOWN");
    assert!(instance.shutdown_requested());
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
fn locking_a_view_locks_the_tables_it_reads() {
    let instance = instance();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    shop(&mut a);
    a.run("CREATE VIEW inner_v AS SELECT id, n FROM t");
    a.run("CREATE VIEW v AS SELECT n FROM inner_v WHERE id = 1");
    b.run("USE shop; SET innodb_lock_wait_timeout = 1");
    a.run("LOCK TABLES v READ");
    assert_eq!(a.value("SELECT n FROM v"), "10");
    assert_eq!(b.value("SELECT n FROM v"), "10");
    assert_eq!(b.error("UPDATE t SET n = 11").code, 1205);
    a.run("LOCK TABLES v WRITE");
    assert_eq!(b.error("SELECT * FROM t").code, 1205);
    a.run("UNLOCK TABLES");
    a.run("CREATE USER ann; CREATE DATABASE open");
    a.run("CREATE VIEW open.v AS SELECT n FROM shop.t");
    a.run("GRANT SELECT, LOCK TABLES ON open.* TO ann");
    let mut ann = connect(&instance, "ann");
    assert_eq!(ann.error("LOCK TABLES open.v WRITE").code, 1044);
    a.run("GRANT SELECT, LOCK TABLES ON shop.* TO ann");
    ann.run("LOCK TABLES open.v WRITE");
}

#[test]
fn lock_tables_waits_for_transactions_that_use_the_table() {
    let instance = instance();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    shop(&mut a);
    b.run("USE shop");
    a.run("SET innodb_lock_wait_timeout = 1");
    b.run("BEGIN");
    b.run("SELECT * FROM t WHERE id = 1");
    a.run("LOCK TABLES t READ");
    assert_eq!(a.error("LOCK TABLES t WRITE").code, 1205);
    // Given up, it keeps nobody out.
    b.run("UPDATE t SET n = 11 WHERE id = 1");
    assert_eq!(a.error("LOCK TABLES t READ").code, 1205);
    b.run("COMMIT");
    a.run("LOCK TABLES t WRITE");
    assert_eq!(a.value("SELECT n FROM t WHERE id = 1"), "11");
    a.run("UNLOCK TABLES");
    // What a transaction has used before its end is used no more.
    for end in [
        "ROLLBACK",
        "BEGIN",
        "COMMIT AND CHAIN",
        "CREATE TABLE end (id INT)",
    ] {
        b.run("BEGIN");
        b.run("UPDATE t SET n = 12 WHERE id = 1");
        b.run(end);
        a.run("LOCK TABLES t WRITE");
        a.run("UNLOCK TABLES");
    }
    b.run("UPDATE t SET n = 13 WHERE id = 1");
    drop(b);
    a.run("LOCK TABLES t WRITE");
}

#[test]
fn an_insert_into_a_locked_range_goes_on_and_the_locker_is_told_to_retry() {
    for (level, code) in [
        ("SERIALIZABLE", Some(1213)),
        ("REPEATABLE READ", Some(1213)),
        ("READ COMMITTED", None),
    ] {
        let instance = instance();
        let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
        shop(&mut a);
        b.run("USE shop");
        a.run(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"));
        a.run("BEGIN");
        assert!(a.rows("SELECT * FROM t WHERE id > 5 FOR UPDATE").is_empty());
        a.run("UPDATE t SET n = 11 WHERE id = 1");
        b.run("INSERT INTO t VALUES (7, 70)");
        let ended = a.try_run("COMMIT").err().map(|error| error.code);
        assert_eq!(ended, code, "{level}");
        let kept = if code.is_some() { "10" } else { "11" };
        assert_eq!(b.value("SELECT n FROM t WHERE id = 1"), kept, "{level}");
    }
}

#[test]
fn a_transaction_that_a_table_lock_waits_for_goes_on() {
    let instance = instance();
    let (mut a, mut b) = (connect(&instance, "root"), connect(&instance, "root"));
    shop(&mut a);
    a.run("CREATE TABLE other (id INT PRIMARY KEY)");
    b.run("USE shop");
    b.run("BEGIN");
    b.run("SELECT * FROM t");
    // Waiting takes no time here, so there must be much of it.
    a.run("SET innodb_lock_wait_timeout = 1073741824");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            a.run("LOCK TABLES other WRITE, t WRITE");
            a.value("SELECT n FROM t WHERE id = 1")
        });
        // Whether the other waits by now or not: this transaction may use both tables.
        b.run("INSERT INTO other VALUES (1)");
        b.run("UPDATE t SET n = 11 WHERE id = 1");
        b.run("COMMIT");
        assert_eq!(waiting.join().expect("it ends"), "11");
    });
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
fn a_hint_limits_the_time_of_its_select_alone() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    let error = a.error("SELECT /*+ MAX_EXECUTION_TIME(1000) */ SLEEP(3)");
    assert_eq!(error.code, 3024);
    assert_eq!(
        a.value("SELECT /*+ MAX_EXECUTION_TIME(5000) */ SLEEP(3)"),
        "0"
    );
    assert_eq!(a.value("SELECT SLEEP(3)"), "0");
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

#[test]
fn the_mysql_database_has_what_metadata_calls_ask_and_lacks_tables_by_name() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    shop(&mut a);
    a.run("CREATE USER reader");
    a.run("GRANT SELECT, SHOW VIEW, CREATE VIEW ON shop.t TO reader WITH GRANT OPTION");
    let shown = "SELECT CONCAT_WS(' ', db, table_name, user, table_priv) FROM mysql.tables_priv";
    let row = a.value(shown);
    assert!(row.starts_with("shop t reader Select,"), "{row}");
    for member in ["Grant", "Create View", "Show view"] {
        assert!(row.contains(member), "{row}");
    }
    assert_eq!(a.value("SELECT COUNT(*) FROM mysql.columns_priv"), "0");
    assert_eq!(a.error("SELECT * FROM mysql.nothing").code, 1146);
    assert_eq!(
        a.error("SELECT * FROM performance_schema.nothing").code,
        1146
    );
    let mut reader = connect(&instance, "reader");
    assert_eq!(reader.error("SELECT * FROM mysql.tables_priv").code, 1142);
}
