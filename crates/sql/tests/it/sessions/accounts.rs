//! What accounts may do and see.

use crate::sessions::shop;
use manxdb_fixtures::sql::{connect, instance};

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
