//! Owners in transactions: what a COMMIT lets through, what waits, what conflicts.

mod random;

use manxdb_fixtures::sql::{Client, connect, instance};
use manxdb_sql::statement::ownership_mutants::{OwnershipMutant, plant};

/// Users, files that users share, notes below files, and carts that a guest may have.
const SCHEMA: &str = "CREATE DATABASE d; USE d;
    CREATE DATA_SUBJECT TABLE users (id INT PRIMARY KEY, name VARCHAR(20));
    CREATE TABLE files (id INT PRIMARY KEY, name VARCHAR(20));
    CREATE TABLE shares (id INT PRIMARY KEY, user_id INT OWNED_BY users (id), file_id INT OWNS files (id))
        UNOWNED ALLOWED;
    CREATE TABLE notes (id INT PRIMARY KEY, file_id INT OWNED_BY files (id));
    CREATE TABLE carts (id INT PRIMARY KEY, user_id INT OWNED_BY users (id)) UNOWNED ALLOWED;
    CREATE TABLE items (id INT PRIMARY KEY, cart_id INT OWNED_BY carts (id));
    INSERT INTO users VALUES (1, 'a'), (2, 'b')";

fn client() -> Client {
    let instance = instance();
    let mut client = connect(&instance, "root");
    client.run(SCHEMA);
    client
}

/// Rows that wait for an owner, by table.
fn waiting(client: &mut Client) -> Vec<String> {
    let rows = client.rows("EXPLAIN COMPLIANCE");
    let waits = rows.iter().filter(|row| row[5].contains("wait for one"));
    waits
        .map(|row| {
            format!(
                "{} {}",
                row[0],
                row[5].split(' ').next().unwrap_or_default()
            )
        })
        .collect()
}

#[test]
fn a_row_without_owner_fails_its_statement_or_its_commit() {
    let mut client = client();
    let error = client.error("INSERT INTO files VALUES (1, 'x')");
    assert_eq!(error.code, 51001);
    assert_eq!(
        error.message,
        "Nobody owns the row with primary key (1) of table 'd.files': give it an owner by \
         shares.file_id, or say UNOWNED ALLOWED"
    );
    assert_eq!(client.value("SELECT COUNT(*) FROM files"), "0");
    client.run(
        "BEGIN; INSERT INTO files VALUES (1, 'x'); INSERT INTO shares VALUES (1, 1, 1); COMMIT",
    );
    client.run("INSERT INTO notes VALUES (1, 1)");
    client.run("CTX START; INSERT INTO files VALUES (2, 'x')");
    assert_eq!(client.error("CTX COMMIT").code, 51001);
    // The transaction is over, and nothing of it is there.
    client.run("ROLLBACK");
    assert_eq!(client.value("SELECT COUNT(*) FROM files"), "1");
    assert_eq!(
        client.error("INSERT INTO notes VALUES (2, NULL)").code,
        51001
    );
    assert_eq!(client.error("UPDATE notes SET file_id = NULL").code, 51001);
    client.run("INSERT INTO carts VALUES (1, NULL), (2, 2)");
    assert_eq!(client.error("INSERT INTO items VALUES (1, 1)").code, 51001);
    client.run("INSERT INTO items VALUES (2, 2)");
    client.run("UPDATE carts SET user_id = 1 WHERE id = 1; INSERT INTO items VALUES (1, 1)");
}

#[test]
fn what_takes_the_last_owner_fails_and_one_more_owner_lets_it_through() {
    let mut client = client();
    client.run(
        "BEGIN; INSERT INTO files VALUES (1, 'x'); INSERT INTO shares VALUES (1, 1, 1); COMMIT",
    );
    client.run("INSERT INTO notes VALUES (1, 1)");
    for statement in [
        "DELETE FROM shares",
        "UPDATE shares SET file_id = NULL",
        "UPDATE shares SET user_id = NULL",
        "REPLACE INTO shares VALUES (1, NULL, 1)",
        "INSERT INTO shares VALUES (1, 1, 1) ON DUPLICATE KEY UPDATE file_id = NULL",
    ] {
        assert_eq!(client.error(statement).code, 51001, "{statement}");
    }
    client.run("UPDATE shares SET id = 5");
    client.run("INSERT INTO shares VALUES (2, 2, 1); DELETE FROM shares WHERE id = 5");
    client.run("BEGIN; DELETE FROM shares; INSERT INTO shares VALUES (9, 1, 1); COMMIT");
    client.run("BEGIN; DELETE FROM shares; DELETE FROM notes; DELETE FROM files; COMMIT");
    client.run("INSERT INTO carts VALUES (1, 1); INSERT INTO items VALUES (1, 1)");
    assert_eq!(client.error("UPDATE carts SET user_id = NULL").code, 51001);
    client.run("BEGIN; UPDATE carts SET user_id = NULL; DELETE FROM items; COMMIT");
    assert_eq!(client.error("TRUNCATE shares").code, 51001);
}

#[test]
fn what_a_savepoint_undoes_is_not_looked_at() {
    let mut client = client();
    client.run("BEGIN; SAVEPOINT a; INSERT INTO files VALUES (1, 'x'); ROLLBACK TO a; COMMIT");
    client.run(
        "BEGIN; INSERT INTO files VALUES (1, 'x'); INSERT INTO shares VALUES (1, 1, 1); COMMIT",
    );
    client.run("BEGIN; SAVEPOINT a; DELETE FROM shares; ROLLBACK TO a; COMMIT");
    client.run("BEGIN; SAVEPOINT a; INSERT INTO shares VALUES (2, 2, 1); ROLLBACK TO a");
    client.run("DELETE FROM shares");
    assert_eq!(client.error("COMMIT").code, 51001);
}

#[test]
fn a_person_with_rows_is_not_deleted_and_cascades_are_looked_at() {
    let mut client = client();
    client.run("INSERT INTO carts VALUES (1, 1)");
    assert_eq!(client.error("DELETE FROM users WHERE id = 1").code, 1451);
    client.run("CREATE TABLE posts (id INT PRIMARY KEY, user_id INT, FOREIGN KEY (user_id) OWNED_BY users (id) ON DELETE SET NULL)");
    client.run("INSERT INTO posts VALUES (1, 2)");
    assert_eq!(client.error("DELETE FROM users WHERE id = 2").code, 51001);
    client.run("ALTER TABLE posts UNOWNED ALLOWED; DELETE FROM users WHERE id = 2");
    assert_eq!(client.value("SELECT COUNT(*) FROM posts"), "1");
}

#[test]
fn a_dump_may_bring_children_first() {
    let mut client = client();
    client.run("SET foreign_key_checks = 0");
    client.run(
        "INSERT INTO notes VALUES (1, 1), (2, 2); INSERT INTO files VALUES (1, 'x'), (2, 'y')",
    );
    assert_eq!(waiting(&mut client), ["files 2", "notes 2"]);
    client.run("INSERT INTO shares VALUES (1, 7, 1), (2, 2, 2); INSERT INTO users VALUES (7, 'c')");
    client.run("SET foreign_key_checks = 1");
    assert_eq!(waiting(&mut client), Vec::<String>::new());
    // And one whose owner never comes.
    client.run(
        "SET foreign_key_checks = 0; INSERT INTO notes VALUES (3, 9); SET foreign_key_checks = 1",
    );
    assert_eq!(waiting(&mut client), ["notes 1"]);
    // What waits may be looked at and changed, and goes.
    client.run("DELETE FROM notes WHERE id = 3");
    assert_eq!(waiting(&mut client), Vec::<String>::new());
    // A parent that goes while nothing is checked leaves its children to wait.
    client.run(
        "SET foreign_key_checks = 0; DELETE FROM files WHERE id = 1; SET foreign_key_checks = 1",
    );
    assert_eq!(waiting(&mut client), ["notes 1"]);
    assert_eq!(
        client
            .error("UPDATE notes SET file_id = NULL WHERE id = 1")
            .code,
        51001
    );
    client.run("UPDATE notes SET file_id = 2 WHERE id = 1");
    assert_eq!(waiting(&mut client), Vec::<String>::new());
}

#[test]
fn rows_from_before_an_annotation_wait_and_are_placed() {
    let mut client = client();
    client.run("CREATE TABLE old (id INT PRIMARY KEY, u INT, v INT)");
    client.run("INSERT INTO old VALUES (1, 1, 0), (2, NULL, 0), (3, 2, 0), (4, NULL, 0)");
    client.run("ALTER TABLE old ADD OWNED_BY (u) users (id)");
    assert_eq!(waiting(&mut client), ["old 2"]);
    client.run("UPDATE old SET v = 1");
    client.run("UPDATE old SET u = 1 WHERE id = 2");
    assert_eq!(waiting(&mut client), ["old 1"]);
    // A copy of the table keeps what is known of its rows.
    client.run("ALTER TABLE old MODIFY v BIGINT");
    assert_eq!(waiting(&mut client), ["old 1"]);
    client.run("ALTER TABLE old UNOWNED ALLOWED");
    assert_eq!(waiting(&mut client), Vec::<String>::new());
    client.run("ALTER TABLE old UNOWNED REFUSED");
    assert_eq!(waiting(&mut client), ["old 1"]);
    client.run("DROP TABLE shares");
    client.run("CREATE TABLE filled (id INT PRIMARY KEY, u INT OWNED_BY users (id)) AS SELECT id, u FROM old");
    assert_eq!(waiting(&mut client), ["filled 1", "old 1"]);
}

#[test]
fn keys_of_text_and_of_several_columns() {
    let mut client = client();
    client.run("CREATE DATA_SUBJECT TABLE p (a VARCHAR(10), b INT, PRIMARY KEY (a, b))");
    client.run("CREATE TABLE g (x INT, y VARCHAR(10), PRIMARY KEY (y, x))");
    client.run(
        "CREATE TABLE m (n INT, a VARCHAR(10), b INT, y VARCHAR(10), x INT,
        FOREIGN KEY (a, b) OWNED_BY p (a, b), FOREIGN KEY (y, x) OWNS g (y, x)) UNOWNED ALLOWED",
    );
    client.run("INSERT INTO p VALUES ('Ann', 1)");
    client.run(
        "BEGIN; INSERT INTO g VALUES (1, 'ä'); INSERT INTO m VALUES (1, 'ann', 1, 'Ä', 1); COMMIT",
    );
    assert_eq!(client.error("DELETE FROM m").code, 51001);
    let error = client.error("INSERT INTO g VALUES (2, 'ä')");
    assert!(
        error.message.contains("primary key (ä, 2)"),
        "{}",
        error.message
    );
    client.run("CREATE TABLE c (x INT, y VARCHAR(10), FOREIGN KEY (y, x) OWNED_BY g (y, x))");
    client.run("INSERT INTO c VALUES (1, 'Ä')");
    let error = client.error("INSERT INTO c VALUES (1, NULL)");
    assert!(
        error.message.contains("a row without primary key"),
        "{}",
        error.message
    );
}

/// Two sessions: one takes the last owner of a file, the other, at an older state, puts a note below it.
/// Whether both came through, and left a note without owner.
fn both_come_through() -> bool {
    let instance = instance();
    let mut a = connect(&instance, "root");
    a.run(SCHEMA);
    a.run("ALTER TABLE files UNOWNED ALLOWED");
    a.run("INSERT INTO files VALUES (1, 'x'); INSERT INTO shares VALUES (1, 1, 1)");
    let mut b = connect(&instance, "root");
    b.run("USE d; BEGIN; SELECT * FROM users; INSERT INTO notes VALUES (1, 1)");
    a.run("DELETE FROM shares");
    b.try_run("COMMIT").is_ok()
}

#[test]
fn an_insert_below_a_row_that_loses_its_owner_conflicts() {
    assert!(!both_come_through());
    plant(Some(OwnershipMutant::SkippedValidation));
    assert!(both_come_through(), "the planted defect is there");
    plant(None);
}

#[test]
fn two_sessions_cannot_each_take_the_owner_that_the_other_leaves() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    a.run(SCHEMA);
    a.run("BEGIN; INSERT INTO files VALUES (1, 'x'); INSERT INTO shares VALUES (1, 1, 1), (2, 2, 1); COMMIT");
    let mut b = connect(&instance, "root");
    b.run("USE d; BEGIN; SELECT * FROM shares; DELETE FROM shares WHERE id = 1");
    a.run("BEGIN; DELETE FROM shares WHERE id = 2; COMMIT");
    assert!([1213, 51001].contains(&b.error("COMMIT").code));
    assert_eq!(a.value("SELECT COUNT(*) FROM shares"), "1");
}

#[test]
fn an_update_of_what_is_not_ownership_reads_no_facts() {
    let instance = instance();
    let mut a = connect(&instance, "root");
    a.run(SCHEMA);
    a.run("BEGIN; INSERT INTO files VALUES (1, 'x'); INSERT INTO shares VALUES (1, 1, 1); COMMIT");
    let mut b = connect(&instance, "root");
    // A note needs the file, not what the file is called, nor the share.
    b.run("USE d; BEGIN; SELECT * FROM users");
    a.run("UPDATE shares SET id = 3");
    b.run("INSERT INTO notes VALUES (1, 1); COMMIT");
}
