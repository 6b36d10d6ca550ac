//! Rows that FORGET puts off: held, to be kept, or needed by such; and requests that wait.

use manxdb_fixtures::sql::{Client, TestHost, connect, instance, instance_audited, instance_on};
use manxdb_sql::session::Instance;
use manxdb_storage::MemoryEngine;
use manxdb_vault::MemoryDisk;
use std::sync::Arc;

pub(super) const MASTER: &str = "3333333333333333333333333333333333333333333333333333333333333333";

pub(super) const SCHEMA: &str = "CREATE DATABASE d; USE d;
    CREATE DATA_SUBJECT TABLE users (id INT PRIMARY KEY, name VARCHAR(20));
    CREATE TABLE orders (id INT PRIMARY KEY, user_id INT NOT NULL OWNED_BY users (id), note TEXT);
    CREATE TABLE invoices (id INT PRIMARY KEY, order_id INT NOT NULL OWNED_BY orders (id), paid DATE,
        RETAIN FOR 10 YEAR AFTER paid);
    CREATE TABLE votes (id INT PRIMARY KEY, user_id INT NOT NULL OWNED_BY users (id));
    INSERT INTO users VALUES (1, 'a'), (2, 'b');
    INSERT INTO orders VALUES (1, 1, 'x'), (2, 1, 'y'), (3, 2, 'z');
    INSERT INTO invoices VALUES (1, 1, '2020-05-06'), (2, 2, '2000-01-01'), (3, 3, '2020-05-06');
    INSERT INTO votes VALUES (1, 1), (2, 1), (3, 2)";

/// A server with a vault and an audit in memory, whose clock the test moves.
pub(super) fn audited() -> (Arc<Instance>, Arc<TestHost>) {
    let (keys, audit) = (Arc::<MemoryDisk>::default(), Arc::<MemoryDisk>::default());
    instance_audited(Arc::new(MemoryEngine::new()), keys, audit, MASTER)
}

fn count(client: &mut Client, table: &str) -> String {
    client.value(&format!("SELECT COUNT(*) FROM d.{table}"))
}

fn counts(client: &mut Client) -> [String; 4] {
    ["users", "orders", "invoices", "votes"].map(|table| count(client, table))
}

#[test]
fn rows_to_be_kept_are_put_off_until_their_day() {
    let (instance, host) = audited();
    let mut client = connect(&instance, "root");
    client.run(SCHEMA);
    let explained = client.rows("EXPLAIN GDPR FORGET users 1");
    let held: Vec<String> = explained
        .iter()
        .filter(|row| row[1] == "hold")
        .map(|row| format!("{} {} {}", row[0], row[2], row[3]))
        .collect();
    assert_eq!(
        held,
        [
            "users 1 a row of 'orders' that is put off needs it",
            "orders 1 a row of 'invoices' that is put off needs it",
            "invoices 1 RETAIN FOR 10 YEAR AFTER paid",
        ]
    );
    let answer = format!("{:?}", client.run("GDPR FORGET users 1"));
    assert!(answer.contains("request 1; 3 rows are put off"), "{answer}");
    assert!(answer.contains("affected_rows: 4"), "{answer}");
    assert_eq!(counts(&mut client), ["2", "2", "2", "1"]);
    let request = client.rows("SHOW GDPR REQUESTS").remove(0);
    assert_eq!(request[3], "3 rows put off");
    assert_eq!(request[8], "2030-05-06 00:00:00");
    assert_eq!(client.error("INSERT INTO votes VALUES (9, 1)").code, 51002);
    // What is left is readable under its new key.
    assert_eq!(client.value("SELECT note FROM orders WHERE id = 1"), "x");
    assert_eq!(instance.resume_requests().expect("nothing is due"), 0);
    host.pass_days(365 * 7);
    assert_eq!(instance.resume_requests().expect("it is due"), 1);
    assert_eq!(counts(&mut client), ["1", "1", "1", "1"]);
    assert_eq!(client.rows("SHOW GDPR REQUESTS")[0][3..5], ["done", "7"]);
    assert_eq!(client.error("GDPR FORGET users 1").code, 51004);
}

#[test]
fn a_hold_on_a_table_puts_its_rows_off_until_release() {
    for batch in [1, 1000] {
        let (instance, _host) = audited();
        let mut client = connect(&instance, "root");
        client.run(SCHEMA);
        client.run(&format!(
            "UPDATE invoices SET paid = '1990-01-01'; SET gdpr_batch_rows = {batch}"
        ));
        client.run("GDPR HOLD users 1 ON votes REASON 'case 7'");
        let holds = client.rows("SHOW GDPR HOLDS");
        assert_eq!(holds.len(), 1);
        assert_eq!(holds[0][..5], ["1", "d", "users", "1", "votes"]);
        assert_eq!(holds[0][7], "case 7");
        let answer = format!("{:?}", client.run("GDPR FORGET users 1"));
        assert!(answer.contains("3 rows are put off"), "{batch}: {answer}");
        assert_eq!(counts(&mut client), ["2", "1", "1", "3"], "{batch}");
        // Asked again it changes nothing more.
        let answer = format!("{:?}", client.run("GDPR FORGET users 1"));
        assert!(answer.contains("request 1; 3 rows are put off"), "{answer}");
        assert_eq!(client.error("GDPR RELEASE users 1 ON orders").code, 51008);
        let answer = format!("{:?}", client.run("GDPR RELEASE users 1"));
        assert!(answer.contains("1 holds released; request 1"), "{answer}");
        assert!(answer.contains("affected_rows: 3"), "{answer}");
        assert_eq!(counts(&mut client), ["1", "1", "1", "1"], "{batch}");
        assert!(client.rows("SHOW GDPR HOLDS").is_empty());
        assert_eq!(client.error("GDPR RELEASE users 1").code, 51008);
    }
}

#[test]
fn a_person_who_is_held_is_not_forgotten() {
    let (instance, host) = audited();
    let mut client = connect(&instance, "root");
    client.run(SCHEMA);
    client.run("GDPR HOLD users 1 REASON 'case 7'");
    let before = counts(&mut client);
    for refused in [
        "GDPR FORGET users 1",
        "GDPR FORGET users 1 GRACE 3 DAY",
        "SET gdpr_batch_rows = 1; GDPR FORGET users 1",
    ] {
        let error = client.error(refused);
        assert_eq!(error.code, 51008);
        assert!(
            error.message.contains("hold 1 (case 7)"),
            "{}",
            error.message
        );
        assert!(error.message.contains("GDPR RELEASE"), "{}", error.message);
    }
    assert_eq!(counts(&mut client), before);
    assert!(client.rows("SHOW GDPR REQUESTS").is_empty());
    client.run("INSERT INTO votes VALUES (9, 1)");
    client.run("GDPR RELEASE users 1");
    // A hold that comes within the grace holds what is due.
    client.run("GDPR FORGET users 1 GRACE 3 DAY");
    client.run("GDPR HOLD users 1 REASON 'case 8'");
    host.pass_days(4);
    instance.resume_requests().expect("it is put off");
    assert_eq!(count(&mut client, "votes"), "4");
    client.run("UPDATE invoices SET paid = '1990-01-01'; GDPR RELEASE users 1");
    assert_eq!(counts(&mut client), ["1", "1", "1", "1"]);
}

#[test]
fn bad_input_to_holds_is_refused_with_the_way_out() {
    let instance = instance();
    let mut client = connect(&instance, "root");
    client.run(SCHEMA);
    client.run("CREATE TABLE plain (id INT PRIMARY KEY)");
    for (statement, code) in [
        ("GDPR HOLD users 70 REASON 'x'", 51004),
        ("GDPR HOLD votes 1 REASON 'x'", 51004),
        ("GDPR HOLD users 1 ON plain REASON 'x'", 51008),
        ("GDPR HOLD users 1 ON nothing REASON 'x'", 1146),
        ("GDPR HOLD users 1", 1064),
        ("GDPR RELEASE users 1", 51008),
        ("GDPR UNDO users 1", 51008),
        ("GDPR UNDO 7", 51004),
        // An id is read as it is stored, and one that would be stored as another is nobody's.
        ("GDPR HOLD users 1.4 REASON 'x'", 51004),
        ("GDPR HOLD users 'x' REASON 'x'", 51004),
        ("GDPR RELEASE users '1'", 51008),
        ("GDPR RELEASE users '1.4'", 51004),
        ("GDPR UNDO users '1'", 51008),
        ("GDPR UNDO users '70'", 51008),
        ("GDPR UNDO users 1.4", 51004),
        ("GDPR FORGET users 1.4 GRACE 3 DAY", 51004),
        ("GDPR FORGET users 'x' GRACE 3 DAY", 51004),
        ("GDPR FORGET users 1 GRACE 9999 DAY", 51008),
        ("GDPR CERTIFICATE 7", 51004),
        (
            "CREATE TABLE bad (id INT PRIMARY KEY, RETAIN FOR 10 YEAR AFTER id)",
            51003,
        ),
        (
            "CREATE TABLE bad (id INT PRIMARY KEY, RETAIN FOR 10 YEAR AFTER gone)",
            51003,
        ),
        (
            "CREATE TABLE bad (id INT PRIMARY KEY, RETAIN FOR 0 DAY AFTER id)",
            1064,
        ),
        ("ALTER TABLE invoices DROP COLUMN paid", 51003),
        ("ALTER TABLE votes DROP RETAIN", 1091),
    ] {
        assert_eq!(client.error(statement).code, code, "{statement}");
    }
    client.run("CREATE USER u; GRANT SELECT, DELETE ON d.* TO u");
    let mut other = connect(&instance, "u");
    for statement in [
        "GDPR HOLD d.users 1 REASON 'x'",
        "GDPR RELEASE d.users 1",
        "GDPR UNDO d.users 1",
        "GDPR VERIFY d.users 1",
        "GDPR CERTIFICATE 1",
        "SHOW GDPR HOLDS",
        "SHOW GDPR AUDIT",
    ] {
        let code = other.error(statement).code;
        assert!([1044, 1142, 1227].contains(&code), "{statement}: {code}");
    }
}

#[test]
fn retention_is_shown_dumped_renamed_and_dropped() {
    let instance = instance();
    let mut client = connect(&instance, "root");
    client.run(SCHEMA);
    let made = client.rows("SHOW CREATE TABLE invoices")[0][1].clone();
    assert!(
        made.contains("/*!99999 , RETAIN FOR 10 YEAR AFTER `paid` */"),
        "{made}"
    );
    client.run("DROP TABLE invoices");
    client.run(&made);
    assert_eq!(client.rows("SHOW CREATE TABLE invoices")[0][1], made);
    let notes = format!("{:?}", client.rows("EXPLAIN COMPLIANCE FOR invoices"));
    assert!(
        notes.contains("RETAIN FOR 10 YEAR AFTER paid: GDPR FORGET puts off"),
        "{notes}"
    );
    client.run("ALTER TABLE invoices RENAME COLUMN paid TO settled");
    client.run("ALTER TABLE votes ADD COLUMN at DATETIME, ADD RETAIN FOR 3 MONTH AFTER at");
    let made = client.rows("SHOW CREATE TABLE invoices")[0][1].clone();
    assert!(made.contains("AFTER `settled`"), "{made}");
    client.run("INSERT INTO votes VALUES (10, 1, '2024-01-31 12:00:00')");
    let held = client.rows("EXPLAIN GDPR FORGET users 1");
    let held: Vec<&[String]> = held
        .iter()
        .filter(|row| row[1] == "hold")
        .map(|row| &row[..3])
        .collect();
    // Two votes without a day: their time has not begun.
    assert_eq!(held.len(), 3, "{held:?}");
    client.run("ALTER TABLE votes DROP RETAIN");
    assert!(
        client
            .rows("EXPLAIN GDPR FORGET users 1")
            .iter()
            .all(|row| row[1] != "hold")
    );
}

#[test]
fn a_person_in_grace_is_fenced_goes_when_due_and_comes_back_when_undone() {
    let engine = Arc::new(MemoryEngine::new());
    let disks = || (Arc::<MemoryDisk>::default(), Arc::<MemoryDisk>::default());
    let (keys, audit) = disks();
    let (instance, host) = instance_audited(engine.clone(), keys.clone(), audit.clone(), MASTER);
    let mut client = connect(&instance, "root");
    client.run(SCHEMA);
    client.run("UPDATE invoices SET paid = '1990-01-01'");
    let answer = format!(
        "{:?}",
        client.run("GDPR FORGET users 1 REASON 'mail' GRACE 30 DAY")
    );
    assert!(
        answer.contains("request 1, due 2024-03-04 04:05:06"),
        "{answer}"
    );
    assert_eq!(client.error("INSERT INTO votes VALUES (9, 1)").code, 51002);
    assert_eq!(client.error("GDPR FORGET users 1 GRACE 1 DAY").code, 51008);
    assert_eq!(client.rows("SHOW GDPR REQUESTS")[0][3], "grace");
    assert_eq!(
        counts(&mut client),
        ["2", "3", "3", "3"],
        "nothing has gone yet"
    );
    client.run("GDPR UNDO 1");
    client.run("INSERT INTO votes VALUES (9, 1)");
    assert_eq!(client.error("GDPR UNDO 1").code, 51004);
    client.run(
        "GDPR FORGET users 1 GRACE 30 DAY; GDPR UNDO users 1; GDPR FORGET users 1 GRACE 2 DAY",
    );
    host.pass_days(3);
    let error = client.error("GDPR UNDO users 1");
    assert!(
        error.code == 51008 && error.message.contains("is over"),
        "{}",
        error.message
    );
    // Another process goes on with it.
    drop((client, instance));
    let (instance, host) = instance_audited(engine, keys, audit, MASTER);
    let mut client = connect(&instance, "root");
    client.run("USE d");
    assert_eq!(instance.resume_requests().expect("nothing is due yet"), 0);
    host.pass_days(3);
    assert_eq!(instance.resume_requests().expect("it is due"), 1);
    assert_eq!(counts(&mut client), ["1", "1", "1", "1"]);
    assert_eq!(client.error("GDPR UNDO users 1").code, 51008);
    assert_eq!(client.error("GDPR UNDO 3").code, 51008);
    assert_eq!(client.rows("SHOW GDPR REQUESTS")[0][3], "done");
}

#[test]
fn undo_gives_back_what_was_known_of_an_earlier_person() {
    let instance = instance_on(Arc::new(MemoryEngine::new()));
    let mut client = connect(&instance, "root");
    client.run("CREATE DATABASE d; USE d; CREATE DATA_SUBJECT TABLE users (id INT PRIMARY KEY)");
    client.run("INSERT INTO users VALUES (1); GDPR FORGET users 1; INSERT INTO users VALUES (1)");
    client.run("GDPR FORGET users 1 GRACE 5 DAY; GDPR UNDO users 1; DELETE FROM users");
    let error = client.error("GDPR FORGET users 1");
    assert!(
        error.message.contains("forgotten by request 1"),
        "{}",
        error.message
    );
    // Without GRACE a request that waits is carried out at once.
    client
        .run("INSERT INTO users VALUES (1); GDPR FORGET users 1 GRACE 5 DAY; GDPR FORGET users 1");
    assert_eq!(client.value("SELECT COUNT(*) FROM users"), "0");
    assert_eq!(client.rows("SHOW GDPR REQUESTS").len(), 2);
}
