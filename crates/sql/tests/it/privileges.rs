//! What a user without rights may neither see nor change.

use std::sync::Arc;

use manxdb_fixtures::sql::{Client, connect, instance};
use manxdb_sql::session::Instance;

/// `vault.secret`, which Ann may not see, and `open.mine`, where she may do everything.
fn vault() -> (Arc<Instance>, Client, Client) {
    let instance = instance();
    let mut root = connect(&instance, "root");
    for text in [
        "CREATE DATABASE vault",
        "CREATE TABLE vault.secret (id INT PRIMARY KEY, word VARCHAR(20))",
        "INSERT INTO vault.secret VALUES (1, 'sesame')",
        "CREATE DATABASE open",
        "CREATE TABLE open.mine (id INT PRIMARY KEY, word VARCHAR(20))",
        "INSERT INTO open.mine VALUES (1, 'a')",
        "CREATE USER ann",
        "GRANT ALL ON open.* TO ann",
    ] {
        root.run(text);
    }
    let mut ann = connect(&instance, "ann");
    ann.run("USE open");
    (instance, root, ann)
}

#[test]
fn a_subquery_needs_select_wherever_a_modification_has_it() {
    let (_instance, mut root, mut ann) = vault();
    let secret = "(SELECT word FROM vault.secret)";
    for text in [
        format!("UPDATE mine SET word = {secret}"),
        format!("UPDATE mine SET word = '' WHERE word < {secret}"),
        format!("UPDATE mine AS a JOIN mine AS b ON a.id = b.id SET a.word = {secret}"),
        format!("INSERT INTO mine VALUES (2, {secret})"),
        format!("INSERT INTO mine SET id = 2, word = {secret}"),
        format!("INSERT INTO mine VALUES (1, '') ON DUPLICATE KEY UPDATE word = {secret}"),
        format!("REPLACE INTO mine VALUES (2, {secret})"),
        format!("DELETE FROM mine ORDER BY {secret} LIMIT 1"),
        format!("INSERT INTO mine SELECT 2, {secret}"),
        format!("CREATE TABLE copy AS SELECT {secret} AS word"),
        format!("SELECT {secret}"),
        format!("EXPLAIN SELECT {secret}"),
        format!("SET @word = {secret}"),
    ] {
        let error = ann.error(&text);
        assert_eq!(error.code, 1142, "{text}: {error}");
    }
    root.run("GRANT SELECT ON vault.secret TO ann");
    ann.run(&format!("UPDATE mine SET word = {secret}"));
    assert_eq!(ann.value("SELECT word FROM mine"), "sesame");
}

#[test]
fn changing_rows_without_looking_at_them_needs_no_select() {
    let (_instance, mut root, mut ann) = vault();
    root.run("GRANT UPDATE, DELETE ON vault.secret TO ann");
    for looks in [
        "UPDATE vault.secret SET word = CONCAT(word, 'x')",
        "UPDATE vault.secret SET word = 'x' WHERE id = 1",
        "UPDATE vault.secret SET word = 'x' ORDER BY id LIMIT 1",
        "UPDATE vault.secret AS a JOIN vault.secret AS b SET a.word = 'x'",
        "UPDATE vault.secret SET word = (SELECT MAX(s.id) FROM (SELECT id FROM vault.secret) s)",
        "DELETE FROM vault.secret WHERE word = 'x'",
        "DELETE FROM vault.secret ORDER BY id LIMIT 1",
        "DELETE secret FROM vault.secret",
    ] {
        let error = ann.error(looks);
        assert_eq!(error.code, 1142, "{looks}: {error}");
        assert!(error.message.starts_with("SELECT "), "{looks}: {error}");
    }
    ann.run("UPDATE vault.secret SET word = 'x', id = 2");
    ann.run("UPDATE open.mine, vault.secret SET secret.word = mine.word");
    assert_eq!(root.rows("SELECT * FROM vault.secret"), [["2", "a"]]);
    ann.run("DELETE FROM vault.secret LIMIT 1");
    assert_eq!(root.value("SELECT COUNT(*) FROM vault.secret"), "0");
}

#[test]
fn what_was_never_granted_cannot_be_revoked() {
    let (_instance, mut root, _ann) = vault();
    for (text, code) in [
        ("REVOKE SELECT ON vault.* FROM ann", 1141),
        ("REVOKE SELECT ON vault.secret FROM ann", 1147),
        ("REVOKE ALL ON vault.secret FROM ann", 1147),
        ("REVOKE SELECT ON open.mine FROM ann", 1147),
        ("REVOKE SELECT ON open.* FROM nobody", 1141),
        ("REVOKE ALL PRIVILEGES, GRANT OPTION FROM nobody", 1269),
    ] {
        let error = root.error(text);
        assert_eq!(error.code, code, "{text}: {error}");
    }
    // One privilege among others, and one of all databases, may be revoked whether held or not.
    root.run("GRANT INSERT ON vault.secret TO ann");
    root.run("REVOKE SELECT ON vault.secret FROM ann");
    root.run("REVOKE SELECT ON *.* FROM ann");
    root.run("REVOKE INSERT ON vault.secret FROM ann");
    assert_eq!(
        root.error("REVOKE INSERT ON vault.secret FROM ann").code,
        1147
    );
    root.run("REVOKE IF EXISTS INSERT ON vault.secret FROM ann");
    assert_eq!(root.rows("SHOW WARNINGS")[0][1], "1147");
}

#[test]
fn an_upsert_that_looks_at_the_row_needs_select() {
    let (_instance, mut root, mut ann) = vault();
    root.run("GRANT INSERT, UPDATE ON vault.secret TO ann");
    let looks = "INSERT INTO vault.secret VALUES (1, '') ON DUPLICATE KEY UPDATE \
                 word = CONCAT(word, 'x')";
    assert_eq!(ann.error(looks).code, 1142);
    ann.run("INSERT INTO vault.secret VALUES (2, 'b') ON DUPLICATE KEY UPDATE word = VALUES(word)");
}

#[test]
fn a_definition_over_another_table_needs_a_right_there() {
    let (_instance, mut root, mut ann) = vault();
    for (text, code) in [
        ("CREATE TABLE shape LIKE vault.secret", 1142),
        ("CREATE VIEW shape AS SELECT * FROM vault.secret", 1142),
        ("ALTER TABLE mine RENAME TO vault.mine", 1142),
        (
            "ALTER TABLE mine RENAME AS vault.mine, ADD COLUMN c INT",
            1142,
        ),
        ("RENAME TABLE mine TO vault.mine", 1142),
        (
            "CREATE TABLE child (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES vault.secret (id))",
            1142,
        ),
        (
            "ALTER TABLE mine ADD FOREIGN KEY (id) REFERENCES vault.secret (id)",
            1142,
        ),
    ] {
        let error = ann.error(text);
        assert_eq!(error.code, code, "{text}: {error}");
    }
    root.run("GRANT REFERENCES, SELECT ON vault.secret TO ann");
    ann.run("CREATE TABLE shape LIKE vault.secret");
    ann.run("ALTER TABLE mine ADD FOREIGN KEY (id) REFERENCES vault.secret (id)");
}

#[test]
fn a_view_is_replaced_and_shown_only_with_the_right_to() {
    let (_instance, mut root, mut ann) = vault();
    root.run("CREATE VIEW vault.v AS SELECT word FROM vault.secret WHERE id = 1");
    root.run("GRANT SELECT, CREATE VIEW ON vault.v TO ann");
    assert_eq!(
        ann.error("CREATE OR REPLACE VIEW vault.v AS SELECT 1").code,
        1142
    );
    assert_eq!(ann.error("ALTER VIEW vault.v AS SELECT 1").code, 1142);
    let error = ann.error("SHOW CREATE VIEW vault.v");
    assert_eq!(error.code, 1142);
    assert_eq!(
        error.message,
        "SHOW VIEW command denied to user 'ann'@'localhost' for table 'v'"
    );
    let text = "SELECT VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_NAME = 'v'";
    assert_eq!(ann.value(text), "");
    root.run("GRANT SHOW VIEW, DROP ON vault.v TO ann");
    assert_ne!(ann.value(text), "");
    ann.run("CREATE OR REPLACE VIEW vault.v AS SELECT 1");
}

#[test]
fn locking_a_table_needs_select_on_it_too() {
    let (_instance, mut root, mut ann) = vault();
    root.run("GRANT LOCK TABLES ON vault.* TO ann");
    assert_eq!(ann.error("LOCK TABLES vault.secret READ").code, 1142);
    root.run("GRANT SELECT ON vault.secret TO ann");
    ann.run("LOCK TABLES vault.secret READ");
    ann.run("LOCK TABLES mine WRITE");
}

#[test]
fn a_temporary_table_may_be_copied_by_its_owner() {
    let (_instance, mut root, mut ann) = vault();
    root.run("GRANT CREATE TEMPORARY TABLES ON vault.* TO ann");
    ann.run("CREATE TEMPORARY TABLE vault.own (id INT)");
    ann.run("CREATE TABLE copy LIKE vault.own");
}

#[test]
fn a_name_without_a_database_is_1046_whatever_the_rights() {
    let (instance, _root, _ann) = vault();
    let mut ann = connect(&instance, "ann");
    assert_eq!(ann.error("CREATE TABLE t (id INT)").code, 1046);
    assert_eq!(ann.error("DROP TABLE t").code, 1046);
}

#[test]
fn a_prepared_statement_stays_in_the_database_it_was_prepared_in() {
    let (_instance, mut root, mut ann) = vault();
    root.run("GRANT SELECT ON vault.secret TO ann");
    ann.run("CREATE TABLE secret (id INT PRIMARY KEY)");
    ann.run("PREPARE count FROM 'SELECT COUNT(*) FROM mine'");
    ann.run("PREPARE removal FROM 'DROP TABLE secret'");
    ann.run("PREPARE place FROM 'SELECT DATABASE()'");
    ann.run("USE vault");
    // A change of the catalog makes the statement be planned anew.
    root.run("CREATE TABLE vault.mine (id INT PRIMARY KEY)");
    assert_eq!(ann.value("EXECUTE count"), "1");
    ann.run("EXECUTE removal");
    assert_eq!(root.value("SELECT COUNT(*) FROM vault.secret"), "1");
    assert_eq!(root.error("SELECT * FROM open.secret").code, 1146);
    assert_eq!(ann.value("EXECUTE place"), "open");
    assert_eq!(ann.value("SELECT DATABASE()"), "vault");
    assert_eq!(ann.error("PREPARE u FROM 'USE open'").code, 1295);
}

#[test]
fn a_password_is_in_no_list_of_statements() {
    let (instance, mut root, _ann) = vault();
    root.run("SET GLOBAL long_query_time = 0");
    let mut root = connect(&instance, "root");
    root.run("CREATE USER eve IDENTIFIED BY 'sesame'; SET PASSWORD FOR eve = 'sesame'");
    root.run("PREPARE s FROM 'ALTER USER eve IDENTIFIED BY \"sesame\"'");
    root.run("EXECUTE s");
    let slow = instance.slow_statements();
    assert!(
        slow.iter()
            .any(|one| one.text.starts_with("CREATE USER eve"))
    );
    for statement in slow {
        assert!(!statement.text.contains("sesame"), "{}", statement.text);
    }
}

#[test]
fn who_may_make_users_is_no_match_for_a_superuser() {
    let (_instance, mut root, mut ann) = vault();
    root.run("GRANT CREATE USER, GRANT OPTION ON *.* TO ann");
    for text in [
        "ALTER USER root IDENTIFIED BY 'mine'",
        "SET PASSWORD FOR root = 'mine'",
        "DROP USER root",
        "RENAME USER root TO toor",
        "REVOKE ALL PRIVILEGES, GRANT OPTION FROM root",
    ] {
        let error = ann.error(text);
        assert_eq!(error.code, 1227, "{text}: {error}");
    }
    ann.run("CREATE USER bob");
    ann.run("DROP USER bob");
}

#[test]
fn users_swap_names_by_way_of_a_third() {
    let (_instance, mut root, _ann) = vault();
    root.run("CREATE USER bob ACCOUNT LOCK");
    root.run("RENAME USER ann TO other, bob TO ann, other TO bob");
    let locked = "SELECT User FROM mysql.user WHERE account_locked = 'Y'";
    assert_eq!(root.value(locked), "ann");
    let error = root.error("RENAME USER ann TO carl, bob TO carl");
    assert_eq!(error.code, 1396);
    assert_eq!(root.value("SELECT COUNT(*) FROM mysql.user"), "3");
}

#[test]
fn grants_at_the_same_time_all_hold() {
    let (instance, mut root, _ann) = vault();
    let privileges = ["SELECT", "INSERT", "UPDATE", "DELETE", "INDEX", "ALTER"];
    std::thread::scope(|scope| {
        for privilege in privileges {
            let mut session = connect(&instance, "root");
            scope.spawn(move || session.run(&format!("GRANT {privilege} ON vault.* TO ann")));
        }
    });
    let shown = root.rows("SHOW GRANTS FOR ann").concat().join(" ");
    for privilege in privileges {
        assert!(shown.contains(privilege), "{privilege} is not in {shown}");
    }
}
