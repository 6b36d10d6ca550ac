//! Audit, certificates, GDPR VERIFY, and stores that are older than the audit beside the vault.

use std::sync::Arc;

use manxdb_fixtures::sql::{Client, connect, instance_audited};
use manxdb_ownership::proof::{Certificate, verify};
use manxdb_sql::session::Instance;
use manxdb_storage::{Engine, MemoryEngine, Options, RocksEngine};
use manxdb_vault::{MemoryDisk, Place};

use super::holds::{MASTER, audited};

const SCHEMA: &str = "CREATE DATABASE d; USE d;
    CREATE DATA_SUBJECT TABLE users (id INT PRIMARY KEY, name VARCHAR(20), KEY (name));
    CREATE TABLE posts (id INT PRIMARY KEY, user_id INT NOT NULL OWNED_BY users (id), body TEXT, KEY (body(9)));
    CREATE TABLE mails (id INT PRIMARY KEY, sender INT OWNED_BY users (id),
        receiver INT OWNED_BY users (id), body TEXT, ON DEL sender ANON (sender));
    CREATE TABLE bans (id INT PRIMARY KEY, who INT, FOREIGN KEY (who) REFERENCES ONLY users (id));
    INSERT INTO users VALUES (1, 'canary-ann'), (2, 'canary-bob');
    INSERT INTO posts VALUES (1, 1, 'canary-a1'), (2, 1, 'canary-a2'), (3, 2, 'canary-b');
    INSERT INTO mails VALUES (1, 1, 2, 'canary-m'), (2, 2, 1, 'canary-n');
    INSERT INTO bans VALUES (1, 1), (2, 2)";

fn certificate(client: &mut Client, request: u64) -> (String, Certificate) {
    let text = client.value(&format!("GDPR CERTIFICATE {request}"));
    let verified = verify(&text, None);
    assert!(
        verified.problems.is_empty(),
        "{:?}\n{text}",
        verified.problems
    );
    (text, verified.certificate.expect("it can be read"))
}

#[test]
fn a_certificate_says_what_became_of_a_person_and_nothing_of_the_person() {
    for batch in [1, 1000] {
        let (instance, _host) = audited();
        let mut client = connect(&instance, "root");
        client.run(SCHEMA);
        client.run(&format!("SET gdpr_batch_rows = {batch}"));
        client.run("GDPR FORGET users 1 REASON 'ticket 12'");
        let (text, certificate) = certificate(&mut client, 1);
        assert_eq!(certificate.state, "done");
        assert_eq!(certificate.asked_by, "root@%");
        assert_eq!(certificate.reason.as_deref(), Some("ticket 12"));
        // A person, two posts, a mail with a rule, one with a link, and a ban with a link.
        assert_eq!(certificate.rows, 6, "{batch}: {text}");
        let sum = |action: &str| -> u64 {
            let rows = certificate
                .outcome
                .iter()
                .filter(|row| row.action == action);
            rows.map(|row| row.rows).sum()
        };
        assert_eq!((sum("delete"), sum("anonymise")), (3, 3), "{batch}: {text}");
        // The person's key, and those that the two mails had.
        assert_eq!(
            (certificate.keys.ordered, certificate.keys.erased),
            (3, 3),
            "{batch}"
        );
        assert_eq!(certificate.keys.fingerprints.len(), 3);
        assert!(certificate.times.done.is_some() && certificate.times.unreadable_here.is_some());
        assert_eq!(certificate.times.unreadable_in_every_copy, None);
        assert!(!text.contains("canary"), "{text}");
        let audit = client.rows("SHOW GDPR AUDIT");
        assert!(audit.iter().all(|row| row[5] == "whole"), "{audit:?}");
        assert!(!format!("{audit:?}").contains("canary"));
        // SHOW is the same statement.
        assert!(
            client
                .value("SHOW GDPR CERTIFICATE 1")
                .contains("ticket 12")
        );
    }
}

#[test]
fn a_byte_that_is_changed_anywhere_is_noticed_and_named() {
    let (instance, _host) = audited();
    let mut client = connect(&instance, "root");
    client.run(SCHEMA);
    client.run("GDPR FORGET users 2 REASON 'other'; GDPR FORGET users 1 REASON 'ticket 12'");
    let (text, certificate) = certificate(&mut client, 2);
    let key = certificate.signed.public_key;
    assert!(verify(&text, Some(&key)).problems.is_empty());
    let other = "00".repeat(32);
    assert!(verify(&text, Some(&other)).problems[0].contains("another key"));
    for at in 0..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 1;
        let Ok(changed) = String::from_utf8(bytes) else {
            panic!("a certificate is ASCII");
        };
        assert!(
            !verify(&changed, None).problems.is_empty(),
            "byte {at} of {text}"
        );
    }
    let named = |from: &str, to: &str| {
        verify(&text.replacen(from, to, 1), None)
            .problems
            .join("\n")
    };
    assert!(named("ticket 12", "ticket 13").contains("'reason' was changed"));
    assert!(named("\"rows\": 6", "\"rows\": 5").contains("'rows' does not follow from the audit"));
    let record = certificate.audit[1].seq;
    let hash = &certificate.audit[1].hash;
    let problems = named(hash, &"0".repeat(64));
    assert!(
        problems.contains(&format!("audit record {record} was changed")),
        "{problems}"
    );
    assert!(named("  \"format\"", "   \"format\"").contains("byte 4 (line 2)"));
}

#[test]
fn rotation_of_the_master_key_is_the_third_time() {
    let (keys, audit): (Arc<MemoryDisk>, Arc<MemoryDisk>) = Default::default();
    let engine = Arc::new(MemoryEngine::new());
    let (instance, _host) = instance_audited(engine.clone(), keys.clone(), audit.clone(), MASTER);
    let mut client = connect(&instance, "root");
    client.run(SCHEMA);
    client.run("GDPR FORGET users 1");
    let (_, first) = certificate(&mut client, 1);
    assert_eq!(first.times.unreadable_in_every_copy, None);
    drop((client, instance));
    let both = format!("{MASTER}\n{}", "4".repeat(64));
    let (instance, host) = instance_audited(engine, keys, audit, &both);
    let mut client = connect(&instance, "root");
    host.pass_days(1);
    client.run("GDPR ROTATE MASTER KEY");
    client.run("USE d; GDPR FORGET users 2");
    let (_, rotated) = certificate(&mut client, 1);
    assert_eq!(
        rotated.times.unreadable_in_every_copy.as_deref(),
        Some("2024-02-04T04:05:06Z")
    );
    assert_eq!(rotated.times.unreadable_here, first.times.unreadable_here);
    assert_eq!(rotated.signed.public_key, first.signed.public_key);
    let (_, later) = certificate(&mut client, 2);
    assert_eq!(later.times.unreadable_in_every_copy, None);
}

fn found(client: &mut Client, person: &str) -> Vec<String> {
    let rows = client.rows(&format!("GDPR VERIFY users {person}"));
    // What files have goes in time: `verify.rs` is about that.
    let is_found = |row: &&Vec<String>| {
        row[2] != "0" && row[0] != "files" && !row[1].starts_with("clean but for files, gone by")
    };
    let found = rows.iter().filter(is_found);
    found
        .map(|row| format!("{} {} {}", row[0], row[1], row[2]))
        .collect()
}

#[test]
fn verify_is_clean_after_forget_and_not_when_a_row_is_planted() {
    let (instance, _host) = audited();
    let mut client = connect(&instance, "root");
    client.run(SCHEMA);
    let live = found(&mut client, "1");
    assert!(
        live.contains(&"rows users: the row with this key 1".to_string()),
        "{live:?}"
    );
    assert!(
        live.contains(&"rows posts: rows that name the person 2".to_string()),
        "{live:?}"
    );
    client.run("GDPR FORGET users 1");
    assert!(found(&mut client, "1").is_empty());
    let rows = client.rows("GDPR VERIFY users 1");
    assert_eq!(rows.last().map(|row| row[1].as_str()), Some("clean"));
    assert!(
        rows.iter()
            .any(|row| row[0] == "vault" && row[1].starts_with("3 keys")),
        "{rows:?}"
    );
    client.run("SET foreign_key_checks = 0; UPDATE bans SET who = 1 WHERE id = 1");
    let planted = found(&mut client, "1");
    assert!(
        planted.contains(&"rows bans: rows that name the person 1".to_string()),
        "{planted:?}"
    );
    assert!(
        planted.contains(&"indexes bans.who: entries of such rows 1".to_string()),
        "{planted:?}"
    );
    assert!(
        planted
            .last()
            .is_some_and(|all| all.starts_with("all not clean")),
        "{planted:?}"
    );
}

/// What an engine in memory holds, copied: a backup.
fn restored(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).expect("a folder is made");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            restored(&path, &target);
        } else {
            std::fs::copy(&path, &target).expect("a file is copied");
        }
    }
}

fn durable(folder: &std::path::Path) -> Arc<dyn Engine> {
    Arc::new(RocksEngine::open(folder, &Options::default()).expect("the engine opens"))
}

#[test]
fn a_store_from_before_a_forget_does_not_show_the_person() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    let (keys, audit): (Arc<MemoryDisk>, Arc<MemoryDisk>) = Default::default();
    let open = |folder: &std::path::Path| -> Arc<Instance> {
        instance_audited(durable(folder), keys.clone(), audit.clone(), MASTER).0
    };
    let instance = open(&data);
    let mut client = connect(&instance, "root");
    client.run(SCHEMA);
    drop((client, instance));
    restored(&data, &copy);
    let instance = open(&data);
    let mut client = connect(&instance, "root");
    client.run("USE d; GDPR FORGET users 1; INSERT INTO users VALUES (3, 'c'); DELETE FROM users WHERE id = 3");
    drop((client, instance));
    let instance = open(&copy);
    let mut client = connect(&instance, "root");
    client.run("USE d");
    assert_eq!(client.rows("SELECT id FROM users"), [["2"]]);
    assert_eq!(client.rows("SELECT id FROM posts"), [["3"]]);
    assert_eq!(
        client.rows("SELECT id, who FROM bans"),
        [["1", "NULL"], ["2", "2"]]
    );
    // No entry of an index leads to what is gone.
    assert_eq!(
        client.value("SELECT COUNT(*) FROM users FORCE INDEX (name) WHERE name >= ''"),
        "1"
    );
    assert!(
        found(&mut client, "1").is_empty(),
        "{:?}",
        found(&mut client, "1")
    );
    assert_eq!(
        client.error("INSERT INTO posts VALUES (9, 1, '')").code,
        51002
    );
    // Its audit is that of the other, and goes on.
    let (_, certificate) = certificate(&mut client, 1);
    assert_eq!((certificate.state.as_str(), certificate.rows), ("done", 6));
    let answer = format!("{:?}", client.run("GDPR FORGET users 2"));
    assert!(answer.contains("request 2"), "{answer}");
    let audit = client.rows("SHOW GDPR AUDIT");
    assert!(audit.iter().all(|row| row[5] == "whole"), "{audit:?}");
    drop((client, instance));
    assert_eq!(
        connect(&open(&copy), "root").rows("SELECT id FROM d.users"),
        [[""; 1]; 0]
    );
}

#[test]
fn a_store_from_before_a_hold_has_it_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    let (keys, audit): (Arc<MemoryDisk>, Arc<MemoryDisk>) = Default::default();
    let open = |folder: &std::path::Path| -> Arc<Instance> {
        instance_audited(durable(folder), keys.clone(), audit.clone(), MASTER).0
    };
    let instance = open(&data);
    let mut client = connect(&instance, "root");
    client.run(SCHEMA);
    client.run("INSERT INTO users VALUES (3, 'c'), (4, 'd'), (5, 'e')");
    client.run("GDPR HOLD users 4 REASON 'before'; GDPR FORGET users 5 GRACE 9 DAY");
    drop((client, instance));
    restored(&data, &copy);
    let instance = open(&data);
    let mut client = connect(&instance, "root");
    client.run(
        "USE d; GDPR HOLD users 1 REASON 'case 7'; GDPR HOLD users 2 ON posts REASON 'case 8'",
    );
    client.run("GDPR FORGET users 3 REASON 'mail' GRACE 8 DAY");
    client.run("GDPR RELEASE users 4; GDPR UNDO users 5");
    assert_eq!(client.rows("SELECT id FROM posts"), [["1"], ["2"], ["3"]]);
    let (held, requests) = (
        client.rows("SHOW GDPR HOLDS"),
        client.rows("SHOW GDPR REQUESTS"),
    );
    assert_eq!((held.len(), requests.len()), (2, 1), "{requests:?}");
    drop((client, instance));
    let instance = open(&copy);
    let mut client = connect(&instance, "root");
    client.run("USE d");
    assert_eq!(client.rows("SHOW GDPR HOLDS"), held);
    assert_eq!(
        client.rows("SHOW GDPR REQUESTS"),
        requests,
        "it is due when it was"
    );
    assert_eq!(client.error("GDPR FORGET users 1").code, 51008);
    client.run("GDPR FORGET users 2");
    assert_eq!(client.rows("SELECT id FROM posts"), [["1"], ["2"], ["3"]]);
    assert_eq!(
        client.rows("SELECT id, sender FROM mails"),
        [["1", "1"], ["2", "NULL"]]
    );
    for fenced in [2, 3] {
        let insert = format!("INSERT INTO posts VALUES (9, {fenced}, '')");
        assert_eq!(client.error(&insert).code, 51002, "{fenced}");
    }
    client.run("INSERT INTO posts VALUES (5, 5, ''); GDPR UNDO users 3; INSERT INTO posts VALUES (6, 3, '')");
    client.run("GDPR FORGET users 4");
    let answer = format!("{:?}", client.run("GDPR HOLD users 3 REASON 'case 9'"));
    assert!(answer.contains("hold 4"), "{answer}");
    client.run("GDPR RELEASE users 2");
    assert_eq!(
        client.rows("SELECT id FROM posts"),
        [["1"], ["2"], ["5"], ["6"]]
    );
    let audit = client.rows("SHOW GDPR AUDIT");
    assert!(audit.iter().all(|row| row[5] == "whole"), "{audit:?}");
}

#[test]
fn people_whose_rows_were_never_sealed_are_forgotten_again_too() {
    // The rows are plain: the server had no vault when they were written, and did not come to seal them.
    let folder = tempfile::tempdir().expect("a folder");
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    let instance = manxdb_fixtures::sql::instance_on(durable(&data));
    connect(&instance, "root").run(SCHEMA);
    drop(instance);
    restored(&data, &copy);
    let (keys, audit): (Arc<MemoryDisk>, Arc<MemoryDisk>) = Default::default();
    let open = |folder: &std::path::Path| -> Arc<Instance> {
        instance_audited(durable(folder), keys.clone(), audit.clone(), MASTER).0
    };
    let instance = open(&data);
    connect(&instance, "root").run("USE d; GDPR FORGET users 1 REASON 'mail'");
    drop(instance);
    let instance = open(&copy);
    let mut client = connect(&instance, "root");
    client.run("USE d");
    assert_eq!(client.rows("SELECT id FROM users"), [["2"]]);
    assert_eq!(
        client.rows("SELECT id, sender, receiver FROM mails"),
        [["1", "NULL", "2"], ["2", "2", "NULL"]]
    );
    assert_eq!(
        client.rows("SELECT id, who FROM bans"),
        [["1", "NULL"], ["2", "2"]]
    );
    let (_, certificate) = certificate(&mut client, 1);
    assert_eq!(
        (certificate.reason.as_deref(), certificate.rows),
        (Some("mail"), 6)
    );
}

#[test]
fn a_torn_audit_is_mended_and_one_of_another_data_directory_is_refused() {
    let (keys, audit): (Arc<MemoryDisk>, Arc<MemoryDisk>) = Default::default();
    let engine = Arc::new(MemoryEngine::new());
    let (instance, _host) = instance_audited(engine.clone(), keys.clone(), audit.clone(), MASTER);
    let mut client = connect(&instance, "root");
    client.run(SCHEMA);
    client.run("GDPR FORGET users 2");
    drop((client, instance));
    let whole = audit.bytes(Place::First);
    assert_eq!(
        audit.bytes(Place::Mirror),
        whole,
        "both places hold the same"
    );
    assert!(!whole.windows(6).any(|bytes| bytes == b"canary"));
    let torn = Arc::new(MemoryDisk::holding(
        [&whole[..], b"{\"seq\":99,"].concat(),
        whole[..whole.len() - 9].to_vec(),
    ));
    let (instance, _host) = instance_audited(engine, keys.clone(), torn.clone(), MASTER);
    let mut client = connect(&instance, "root");
    client.run("USE d; GDPR FORGET users 1");
    drop((client, instance));
    let longer = torn.bytes(Place::Mirror);
    assert!(longer.len() > whole.len() && longer.starts_with(&whole));
    // A store with requests of its own, which that audit does not have.
    let engine = Arc::new(MemoryEngine::new());
    let own: Arc<MemoryDisk> = Arc::default();
    let (instance, _host) = instance_audited(engine.clone(), keys.clone(), own, MASTER);
    let mut client = connect(&instance, "root");
    client.run(SCHEMA);
    client.run("GDPR FORGET users 1");
    drop((client, instance));
    let opened = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        instance_audited(engine, keys, torn, MASTER);
    }));
    assert!(opened.is_err(), "the server does not start");
}

#[test]
fn a_person_who_is_deleted_leaves_no_key() {
    let (instance, _host) = audited();
    let mut client = connect(&instance, "root");
    client.run(SCHEMA);
    let erased = |client: &mut Client| {
        let audit = client.rows("SHOW GDPR AUDIT");
        audit.iter().filter(|row| row[2] == "erased").count()
    };
    client.run("INSERT INTO users VALUES (5, 'e'), (6, 'f')");
    client.run("DELETE FROM users WHERE id = 5");
    assert_eq!(erased(&mut client), 1);
    client.run("BEGIN; DELETE FROM users WHERE id = 6; ROLLBACK");
    assert_eq!(client.value("SELECT name FROM users WHERE id = 6"), "f");
    client.run("BEGIN; SAVEPOINT s; DELETE FROM users WHERE id = 6; ROLLBACK TO s; COMMIT");
    assert_eq!(client.value("SELECT name FROM users WHERE id = 6"), "f");
    client.run("SET foreign_key_checks = 0; DELETE FROM users WHERE id = 1; INSERT INTO users VALUES (1, 'again')");
    client.run("SET foreign_key_checks = 1");
    assert_eq!(
        client.value("SELECT COUNT(*) FROM posts WHERE body LIKE 'canary-a%'"),
        "2"
    );
    assert_eq!(erased(&mut client), 1, "what may come back keeps its key");
    client.run("REPLACE INTO users VALUES (6, 'g')");
    assert_eq!(client.value("SELECT name FROM users WHERE id = 6"), "g");
}

/// Files below a folder that hold these bytes.
fn holding(folder: &std::path::Path, wanted: &[u8]) -> usize {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let held = entries.map(|entry| {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            return holding(&path, wanted);
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        usize::from(bytes.windows(wanted.len()).any(|bytes| bytes == wanted))
    });
    held.sum()
}

#[test]
fn a_certificate_says_when_files_had_nothing_left_and_a_restored_store_begins_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    let (keys, audit): (Arc<MemoryDisk>, Arc<MemoryDisk>) = Default::default();
    let open = |folder: &std::path::Path| {
        instance_audited(durable(folder), keys.clone(), audit.clone(), MASTER)
    };
    let gone = |client: &mut Client| certificate(client, 1).1.times.gone_from_files;
    // It lies in a key as these bytes.
    let id = u64::from_be_bytes(*b"kanari-7");
    let (instance, host) = open(&data);
    let mut client = connect(&instance, "root");
    client.run("CREATE DATABASE d; USE d; CREATE DATA_SUBJECT TABLE users (id BIGINT UNSIGNED PRIMARY KEY, name VARCHAR(9), KEY (name))");
    client.run(&format!("INSERT INTO users VALUES (1, 'a'), ({id}, 'b')"));
    client.run(&format!("GDPR FORGET users {id}"));
    assert_eq!(gone(&mut client), None);
    drop((client, instance));
    restored(&data, &copy);
    assert!(holding(&data, b"kanari-7") > 0, "the key of a deleted row");
    let (instance, host_of_data) = open(&data);
    let mut client = connect(&instance, "root");
    drop(host);
    host_of_data.pass_days(26);
    assert_eq!(instance.purge_forgotten().expect("it is not due"), 0);
    host_of_data.pass_days(2);
    assert_eq!(instance.purge_forgotten().expect("it is due"), 1);
    assert_eq!(holding(&data, b"kanari-7"), 0);
    assert_eq!(instance.purge_forgotten().expect("all is done"), 0);
    let seen = gone(&mut client);
    assert_eq!(seen.as_deref(), Some("2024-03-02T04:05:06Z"));
    assert_eq!(client.rows("SELECT id FROM d.users"), [["1"]]);
    drop((client, instance));
    // The copy has the key in its files still, and says so.
    let (instance, host) = open(&copy);
    let mut client = connect(&instance, "root");
    assert_eq!(gone(&mut client), None);
    assert!(holding(&copy, b"kanari-7") > 0);
    client.run("SET GLOBAL gdpr_purge_days = 0");
    assert_eq!(instance.purge_forgotten().expect("it is due"), 1);
    assert_eq!(holding(&copy, b"kanari-7"), 0);
    drop(host);
    assert!(gone(&mut client).is_some());
    let audit = client.rows("SHOW GDPR AUDIT");
    assert!(audit.iter().all(|row| row[5] == "whole"), "{audit:?}");
}
