//! GDPR VERIFY of files and of materialized views, with remains that are planted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use manxdb_fixtures::sql::{Client, connect, instance, instance_audited, instance_on};
use manxdb_sql::session::Instance;
use manxdb_sql::statement::ownership_mutants::{OwnershipMutant, plant};
use manxdb_storage::{MemoryEngine, Options, RocksEngine};
use manxdb_txn::{LocalOptions, LocalPath};
use manxdb_vault::MemoryDisk;
use manxdb_views::mutants::Mutants;

use super::holds::{MASTER, audited};

/// A person and posts whose keys have these bytes.
const PERSON: u64 = u64::from_be_bytes(*b"kanari-7");
const POST: u64 = u64::from_be_bytes(*b"kanari-p");

const SCHEMA: &str = "CREATE DATABASE d; USE d;
    CREATE DATA_SUBJECT TABLE users (id BIGINT UNSIGNED PRIMARY KEY, name VARCHAR(9), KEY (name));
    CREATE TABLE posts (id BIGINT UNSIGNED PRIMARY KEY, user_id BIGINT UNSIGNED NOT NULL OWNED_BY users (id),
        topic INT, body VARCHAR(9), KEY (body));
    CREATE TABLE mails (id INT PRIMARY KEY, sender BIGINT UNSIGNED OWNED_BY users (id),
        receiver BIGINT UNSIGNED OWNED_BY users (id), ON DEL sender ANON (sender));
    CREATE TABLE likes (user_id BIGINT UNSIGNED NOT NULL OWNED_BY users (id), n INT, PRIMARY KEY (user_id, n));
    INSERT INTO users VALUES (1, 'a')";

fn fill(client: &mut Client) {
    client.run(SCHEMA);
    client.run(&format!(
        "INSERT INTO users VALUES ({PERSON}, 'b');
         INSERT INTO posts VALUES ({POST}, {PERSON}, 5, 'x'), ({}, {PERSON}, 5, 'y'), (1, 1, 5, 'z');
         INSERT INTO mails VALUES (1, {PERSON}, 1), (2, 1, 1);
         INSERT INTO likes VALUES ({PERSON}, 1)",
        POST + 1
    ));
}

/// What was found in files, by kind, and the verdict.
fn verified(client: &mut Client, person: u64) -> (Vec<(String, u64)>, String) {
    let rows = client.rows(&format!("GDPR VERIFY d.users {person}"));
    let number = |row: &Vec<String>| row[2].parse::<u64>().expect("a number");
    let files = rows.iter().filter(|row| row[0] == "files");
    let files = files.map(|row| (row[1].clone(), number(row))).collect();
    let last = rows.last().expect("a verdict");
    assert_eq!(last[0], "all");
    assert_eq!(
        number(last),
        rows.iter().map(number).sum::<u64>() - number(last)
    );
    (files, last[1].clone())
}

fn durable(folder: &Path) -> Arc<RocksEngine> {
    Arc::new(RocksEngine::open(folder, &Options::default()).expect("the engine opens"))
}

/// Files of the commit log that have these bytes.
fn logs_with(folder: &Path, wanted: &[u8]) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.join("log")).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let has = |path: &PathBuf| {
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes.windows(wanted.len()).any(|bytes| bytes == wanted)
    };
    paths.filter(has).collect()
}

#[test]
fn files_have_what_was_deleted_until_they_are_rewritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let (keys, audit) = (Arc::<MemoryDisk>::default(), Arc::<MemoryDisk>::default());
    let engine = durable(folder.path());
    let (instance, host) = instance_audited(engine.clone(), keys, audit, MASTER);
    let mut client = connect(&instance, "root");
    fill(&mut client);
    let (files, verdict) = verified(&mut client, PERSON);
    assert_eq!(verdict, "not clean", "the person is there");
    assert!(files.iter().all(|(_, found)| *found == 0), "{files:?}");
    client.run(&format!("GDPR FORGET users {PERSON}"));
    let (files, verdict) = verified(&mut client, PERSON);
    assert_eq!(verdict, "clean but for files, gone by 2024-03-04");
    // Came and went: the person with an entry, two posts with two entries each, the entry of a mail's link, and a
    // like, whose row has no entry: its own key names the person. And the mail as it was, which stays without the
    // link.
    let log = files
        .iter()
        .find(|(kind, _)| kind.starts_with("commit log"));
    assert_eq!(
        log,
        Some(&(
            "commit log: 1 of 1 not rewritten yet, gone by 2024-03-04".to_string(),
            2 * (2 + 6 + 1 + 1) + 1
        )),
        "{files:?}"
    );
    engine.flush().expect("memtables are written out");
    let (files, _) = verified(&mut client, PERSON);
    assert!(files[0].0.starts_with("sorted files: 1 of 1"), "{files:?}");
    assert!(
        files[0].1 >= 10 && files[1].0.starts_with("lists of sorted files"),
        "{files:?}"
    );
    assert_eq!(verified(&mut client, 1).0[0].1, 0, "nothing of who stays");
    assert_eq!(verified(&mut client, 77).1, "clean", "nobody ever");
    let before = logs_with(folder.path(), b"kanari-7");
    let old = std::fs::read(&before[0]).expect("a log");
    host.pass_days(31);
    let (_, verdict) = verified(&mut client, PERSON);
    assert_eq!(verdict, "not clean", "it is overdue");
    assert_eq!(instance.purge_forgotten().expect("it is due"), 1);
    let (files, verdict) = verified(&mut client, PERSON);
    assert_eq!(verdict, "clean", "{files:?}");
    assert_eq!(
        logs_with(folder.path(), b"kanari-7"),
        [""; 0].map(PathBuf::from)
    );
    // What is not rewritten is found, whatever the audit says.
    let planted = folder.path().join("log/spare-77");
    std::fs::write(&planted, &old[..old.len() / 2]).expect("a file is planted");
    let (files, verdict) = verified(&mut client, PERSON);
    assert_eq!(verdict, "not clean");
    let spare = files
        .iter()
        .find(|(kind, _)| kind.starts_with("spare files"));
    assert!(
        spare.is_some_and(
            |(what, found)| *found == 21 && what.contains("though they were seen to be gone")
        ),
        "{files:?}"
    );
    std::fs::remove_file(planted).expect("it goes again");
    assert_eq!(verified(&mut client, PERSON).1, "clean");
}

#[test]
fn rows_that_no_request_deleted_are_in_files_for_as_long_as_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let instance = instance_on(durable(folder.path()));
    let mut client = connect(&instance, "root");
    fill(&mut client);
    client.run(&format!(
        "UPDATE mails SET sender = NULL; DELETE FROM posts WHERE user_id = {PERSON};
         DELETE FROM likes WHERE user_id = {PERSON}; DELETE FROM users WHERE id = {PERSON}"
    ));
    let (files, verdict) = verified(&mut client, PERSON);
    assert_eq!(verdict, "not clean");
    assert!(
        files
            .iter()
            .any(|(what, _)| what.contains("no request has them rewritten")),
        "{files:?}"
    );
}

#[test]
fn an_id_may_be_written_as_text_and_one_that_cannot_be_is_refused() {
    let (instance, _host) = audited();
    let mut client = connect(&instance, "root");
    fill(&mut client);
    client.run(&format!("GDPR FORGET users {PERSON}"));
    let rows = client.rows(&format!("GDPR VERIFY users '{PERSON}'"));
    assert_eq!(rows, client.rows(&format!("GDPR VERIFY users {PERSON}")));
    assert_eq!(rows.last().map(|row| row[1].as_str()), Some("clean"));
    for id in ["'x'", "-1", "NULL", "99999999999999999999", "1.4", "'1.4'"] {
        let error = client.error(&format!("GDPR VERIFY users {id}"));
        assert_eq!(error.code, 51004, "{id}: {error}");
        assert!(error.message.contains("users"), "{id}: {error}");
    }
}

#[test]
fn where_others_have_the_rows_too_files_are_not_called_clean() {
    let engine = Arc::new(MemoryEngine::new());
    let path = LocalPath::open(engine, LocalOptions::default()).expect("an empty path opens");
    let hooked = manxdb_fixtures::sql::hooked::Hooked {
        path: Arc::new(path),
        hooks: super::Counting::default(),
    };
    let instance = manxdb_fixtures::sql::instance_over(Arc::new(hooked));
    let mut client = connect(&instance, "root");
    fill(&mut client);
    let (files, verdict) = verified(&mut client, 77);
    assert_eq!(verdict, "clean but for files, which were not looked at");
    assert_eq!(files.len(), 1, "{files:?}");
}

const VIEWS: [(&str, &str); 5] = [
    ("of_person", "SELECT id, body FROM posts WHERE user_id = ?"),
    ("of_topic", "SELECT id, body FROM posts WHERE topic = ?"),
    ("counted", "SELECT COUNT(*) FROM posts WHERE user_id = ?"),
    ("by_topic", "SELECT COUNT(*) FROM posts WHERE topic = ?"),
    ("named", "SELECT id, name FROM users WHERE name = ?"),
];

/// A server with views over the person's rows, whose keys are filled.
fn viewed(mutants: Mutants) -> (Arc<Instance>, Client) {
    let instance = instance();
    let mut client = connect(&instance, "root");
    fill(&mut client);
    instance.plant_in_views(mutants);
    for (name, query) in VIEWS {
        client.run(&format!("CREATE MATERIALIZED VIEW {name} AS {query}"));
    }
    ask_views(&mut client);
    (instance, client)
}

fn ask_views(client: &mut Client) {
    for (_, query) in VIEWS {
        let value = match query {
            of_person if of_person.contains("user_id =") => PERSON.to_string(),
            of_topic if of_topic.contains("topic =") => "5".to_string(),
            _ => "'b'".to_string(),
        };
        client.run(&query.replace('?', &value));
    }
}

/// What was found in views.
fn in_views(client: &mut Client) -> Vec<String> {
    let rows = client.rows(&format!("GDPR VERIFY d.users {PERSON}"));
    let views = rows.iter().filter(|row| row[0] == "views");
    views.map(|row| format!("{} {}", row[1], row[2])).collect()
}

const DELETED: &str = "UPDATE mails SET sender = NULL; DELETE FROM posts WHERE user_id = PERSON;
    DELETE FROM likes WHERE user_id = PERSON; DELETE FROM users WHERE id = PERSON";

#[test]
fn a_view_that_did_not_hear_of_a_delete_is_found() {
    for loses in [false, true] {
        let (_instance, mut client) = viewed(Mutants {
            lose_deltas: loses,
            ..Mutants::default()
        });
        assert!(
            in_views(&mut client).contains(&"of_person: rows of the person 2".to_string()),
            "the person is there"
        );
        ask_views(&mut client);
        if loses {
            client.run(&DELETED.replace("PERSON", &PERSON.to_string()));
        } else {
            // What is kept for older snapshots goes with FORGET alone.
            client.run(&format!("GDPR FORGET users {PERSON}"));
        }
        let left = if loses { [2, 2, 1, 1] } else { [0; 4] };
        let mut expected = vec![
            format!("of_person: rows of the person {}", left[0]),
            format!("of_topic: rows that are in their table no more {}", left[1]),
            format!("counted: rows of the person {}", left[2]),
            format!("named: rows of the person {}", left[3]),
            format!(
                "by_topic: {} keys that do not say whose rows they have, dropped 0",
                u8::from(loses)
            ),
        ];
        let mut found = in_views(&mut client);
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "loses: {loses}");
    }
}

#[test]
fn what_a_view_keeps_for_an_older_snapshot_goes_with_the_person() {
    for kept in [false, true] {
        let (instance, mut client) = viewed(Mutants::default());
        let mut older = connect(&instance, "root");
        older.run("USE d; SET SESSION transaction_isolation = 'REPEATABLE-READ'; BEGIN; SELECT * FROM mails");
        plant(kept.then_some(OwnershipMutant::KeptViews));
        client.run(&format!("GDPR FORGET users {PERSON}"));
        plant(None);
        let found = in_views(&mut client);
        let nothing = "of_person: rows of the person 0".to_string();
        assert_eq!(found.contains(&nothing), !kept, "{found:?}");
        older.run("COMMIT");
    }
}
