//! What else the vault brings: lists of statements without values, rotation, erasing that is cut short.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use manxdb_fixtures::sql::{Client, connect, instance_on, instance_sealed};
use manxdb_storage::MemoryEngine;
use manxdb_vault::{Disk, MemoryDisk, Place};

use super::{NEW, OLD, ROWS, SCHEMA, World, shown};

#[test]
fn lists_of_statements_show_no_values_once_tables_have_owners() {
    let world = World::new();
    let instance = instance_sealed(Arc::clone(&world.engine), world.disk.clone(), OLD);
    let mut client = connect(&instance, "root");
    client.run("SET long_query_time = 0; SELECT 'shown'");
    client.run(SCHEMA);
    client.run("INSERT INTO users (id, bio) VALUES (1, 'canary-ann-bio')");
    let listed = format!(
        "{:?}",
        client.rows("SELECT 'canary-x', info FROM information_schema.processlist")
    );
    assert!(listed.contains("SELECT ?, info FROM"), "{listed}");
    let slow: Vec<String> = instance
        .slow_statements()
        .into_iter()
        .map(|slow| slow.text)
        .collect();
    let slow = slow.join("\n");
    assert!(slow.contains("SELECT 'shown'"), "{slow}");
    assert!(
        slow.contains("INSERT INTO users (id, bio) VALUES (?, ?)"),
        "{slow}"
    );
    assert!(!slow.contains("canary"), "{slow}");
}

#[test]
fn the_master_key_is_rotated_by_who_may_forget() {
    let world = World::new();
    let mut client = world.client(OLD);
    client.run(SCHEMA);
    client.run(ROWS);
    let whole = shown(&mut client);
    assert_eq!(client.error("GDPR ROTATE MASTER KEY").code, 51005);
    let both = format!("{OLD}\n{NEW}");
    let instance = instance_sealed(Arc::clone(&world.engine), world.disk.clone(), &both);
    let mut client = connect(&instance, "root");
    client.run("CREATE USER eve; GRANT GDPR ON d.* TO eve");
    assert_eq!(
        connect(&instance, "eve")
            .error("GDPR ROTATE MASTER KEY")
            .code,
        1227
    );
    client.run("USE d; GDPR ROTATE MASTER KEY");
    client
        .run("INSERT INTO users (id, bio) VALUES (3, 'canary-cy'); DELETE FROM users WHERE id = 3");
    assert_eq!(shown(&mut client), whole);
    drop((client, instance));
    assert_eq!(shown(&mut world.client(NEW)), whole);
    assert_eq!(world.client(OLD).error("SELECT * FROM users").code, 51005);
    let mut bare = connect(&instance_on(Arc::new(MemoryEngine::new())), "root");
    assert_eq!(bare.error("GDPR ROTATE MASTER KEY").code, 51005);
}

/// A disk that fails after some changes, as a process that dies does.
struct DyingDisk {
    disk: Arc<MemoryDisk>,
    left: AtomicU32,
}

impl DyingDisk {
    fn change(&self) -> std::io::Result<()> {
        let alive = |left: u32| left.checked_sub(1);
        let left = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, alive);
        left.map(|_| ()).map_err(|_| std::io::Error::other("dead"))
    }
}

impl Disk for DyingDisk {
    fn length(&self, place: Place) -> std::io::Result<u64> {
        self.disk.length(place)
    }

    fn read(&self, place: Place, offset: u64, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.disk.read(place, offset, bytes)
    }

    fn write(&self, place: Place, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.change()?;
        self.disk.write(place, offset, bytes)
    }

    fn sync(&self, place: Place) -> std::io::Result<()> {
        self.change()?;
        self.disk.sync(place)
    }
}

/// Slots of erased keys in each place.
fn erased(disk: &MemoryDisk) -> [usize; 2] {
    Place::BOTH.map(|place| {
        let bytes = disk.bytes(place);
        let slots = bytes.get(8192..).unwrap_or_default().chunks(128);
        slots.filter(|slot| slot.first() == Some(&2)).count()
    })
}

#[test]
fn keys_are_erased_after_a_crash_at_each_step_of_erasing() {
    // The person, a file, two mails that are changed.
    const KEYS: usize = 4;
    let mut failed = 0;
    for changes in 0.. {
        let world = World::new();
        let disk = Arc::new(DyingDisk {
            disk: world.disk.clone(),
            left: AtomicU32::new(u32::MAX),
        });
        let instance = instance_sealed(Arc::clone(&world.engine), disk.clone(), OLD);
        let mut client = connect(&instance, "root");
        client.run(SCHEMA);
        client.run(ROWS);
        disk.left.store(changes, Ordering::SeqCst);
        let answer = client.try_run("GDPR FORGET users 1");
        drop((client, instance));
        if let Err(error) = &answer {
            failed += 1;
            assert_eq!(error.code, 51005, "{}", error.message);
        }
        let mut client = world.client(OLD);
        assert_eq!(erased(&world.disk), [KEYS; 2], "after {changes} changes");
        assert!(!shown(&mut client).contains("ann"));
        assert_eq!(client.rows("SHOW GDPR REQUESTS")[0][3], "done");
        if answer.is_ok() {
            assert!(failed > 8, "slots are written and waited for in two places");
            return;
        }
    }
}

#[test]
fn compliance_names_the_columns_whose_values_lie_plain_in_keys() {
    let world = World::new();
    let mut client = world.client(OLD);
    client.run(SCHEMA);
    let says = |client: &mut Client| {
        let rows = client.rows("EXPLAIN COMPLIANCE");
        let keys = rows
            .into_iter()
            .filter(|row| row[5].contains("files show values of"));
        keys.map(|row| row[0].clone()).collect::<Vec<_>>()
    };
    assert_eq!(says(&mut client), Vec::<String>::new());
    client.run("ALTER TABLE users ADD KEY (bio(9)) ORDERED; ALTER TABLE posts ADD KEY (body(9)); ALTER TABLE tags ADD KEY (tag(9))");
    assert_eq!(says(&mut client), ["users"]);
}
