//! HOME_REGION: the column of people that says where each is at home. It is kept, shown and dumped.

use manxdb_fixtures::sql::{connect, instance, instance_on};
use manxdb_storage::MemoryEngine;
use std::sync::Arc;

#[test]
fn it_is_kept_shown_and_comes_back_from_a_dump() {
    let engine = Arc::new(MemoryEngine::new());
    let instance = instance_on(engine.clone());
    let mut client = connect(&instance, "root");
    client.run(
        "CREATE DATABASE d; USE d;
         CREATE DATA_SUBJECT TABLE a (id INT PRIMARY KEY, home VARCHAR(20) NOT NULL HOME_REGION, x INT);
         CREATE /*!99999 DATA_SUBJECT */ TABLE b (id INT PRIMARY KEY, home ENUM('eu','us') /*!99999 HOME_REGION */);
         CREATE DATA_SUBJECT TABLE c (id INT PRIMARY KEY, home CHAR(2) COMMENT 'HOME_REGION');
         CREATE DATA_SUBJECT TABLE plain (id INT PRIMARY KEY, home CHAR(2))",
    );
    drop((client, instance));
    // As another process reads the catalog.
    let instance = instance_on(engine);
    let mut client = connect(&instance, "root");
    client.run("USE d");
    for (table, shown) in [
        ("a", "`home` varchar(20) NOT NULL /*!99999 HOME_REGION */"),
        (
            "b",
            "`home` enum('eu','us') DEFAULT NULL /*!99999 HOME_REGION */",
        ),
        ("c", "`home` char(2) DEFAULT NULL COMMENT 'HOME_REGION'"),
    ] {
        let made = client.rows(&format!("SHOW CREATE TABLE {table}"))[0][1].clone();
        assert!(made.contains(shown), "{made}");
        client.run(&format!("DROP TABLE {table}"));
        client.run(&made);
        assert_eq!(
            client.rows(&format!("SHOW CREATE TABLE {table}"))[0][1],
            made
        );
        let told = format!(
            "{:?}",
            client.rows(&format!("EXPLAIN COMPLIANCE FOR {table}"))
        );
        assert!(told.contains("HOME_REGION: home; it is kept"), "{told}");
    }
    let told = format!("{:?}", client.rows("EXPLAIN COMPLIANCE FOR plain"));
    assert!(!told.contains("HOME_REGION"), "{told}");
    client.run("ALTER TABLE a RENAME COLUMN home TO region; ALTER TABLE a DROP COLUMN x");
    let made = client.rows("SHOW CREATE TABLE a")[0][1].clone();
    assert!(
        made.contains("`region` varchar(20) NOT NULL /*!99999 HOME_REGION */"),
        "{made}"
    );
    client.run("ALTER TABLE a MODIFY region VARCHAR(30)");
    let made = client.rows("SHOW CREATE TABLE a")[0][1].clone();
    assert!(!made.contains("HOME_REGION"), "{made}");
    client.run("ALTER TABLE plain MODIFY home CHAR(2) HOME_REGION");
    let made = client.rows("SHOW CREATE TABLE plain")[0][1].clone();
    assert!(made.contains("HOME_REGION"), "{made}");
    client.run("INSERT INTO plain VALUES (1, 'eu'); GDPR FORGET plain 1");
}

#[test]
fn what_is_no_home_is_refused_with_the_way_out() {
    let instance = instance();
    let mut client = connect(&instance, "root");
    client.run("CREATE DATABASE d; USE d; CREATE DATA_SUBJECT TABLE a (id INT PRIMARY KEY, home VARCHAR(20) HOME_REGION, other CHAR(2))");
    for (statement, part) in [
        (
            "CREATE TABLE t (id INT PRIMARY KEY, home CHAR(2) HOME_REGION)",
            "say DATA_SUBJECT",
        ),
        (
            "CREATE DATA_SUBJECT TABLE t (id INT PRIMARY KEY, home INT HOME_REGION)",
            "make it CHAR, VARCHAR or ENUM",
        ),
        (
            "CREATE DATA_SUBJECT TABLE t (id INT PRIMARY KEY, h CHAR(2) HOME_REGION, g CHAR(2) HOME_REGION)",
            "Columns 'h' and 'g' of table 't' are both HOME_REGION",
        ),
        (
            "ALTER TABLE a MODIFY other CHAR(2) HOME_REGION",
            "Columns 'home' and 'other'",
        ),
        (
            "ALTER TABLE a ADD COLUMN third CHAR(2) HOME_REGION",
            "Columns 'home' and 'third'",
        ),
        (
            "ALTER TABLE a DROP COLUMN home",
            "MODIFY it without that first",
        ),
        ("ALTER TABLE a DROP DATA_SUBJECT", "its rows are no people"),
    ] {
        let error = client.error(statement);
        assert_eq!(error.code, 51003, "{statement}: {error}");
        assert!(error.message.contains(part), "{statement}: {error}");
    }
    let error = client.error("CREATE TEMPORARY TABLE t (id INT, home CHAR(2) HOME_REGION)");
    assert_eq!(error.code, 1235, "{error}");
    client.run("ALTER TABLE a MODIFY home VARCHAR(20), DROP COLUMN other");
}
