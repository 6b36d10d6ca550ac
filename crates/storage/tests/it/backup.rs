//! Backups of the durable engine: made while serving, checked, restored.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use manxdb_storage::{
    Direction, Durability, Engine, KeyRange, MemoryEngine, Options, RocksEngine, StorageError,
    Version, WriteBatch, backup,
};

fn open(directory: &Path) -> RocksEngine {
    let options = Options {
        block_cache_bytes: 1 << 20,
        write_buffer_bytes: 64 << 10,
        file_bytes: 64 << 10,
        ..Options::default()
    };
    RocksEngine::open(directory, &options).unwrap()
}

/// Writes `keys` keys with one version; the value is the version.
fn write(engine: &dyn Engine, version: u64, keys: u8) {
    let mut value = version.to_be_bytes().to_vec();
    value.resize(200, 0x11);
    let writes = (0..keys)
        .map(|key| (Version(version), vec![key], Some(value.clone())))
        .collect();
    engine
        .write(&WriteBatch { writes }, Durability::Async)
        .unwrap();
}

/// Versions of all keys at the newest version.
fn versions(engine: &dyn Engine) -> Vec<u64> {
    let range = KeyRange {
        start: Bound::Unbounded,
        end: Bound::Unbounded,
    };
    let mut cursor = engine
        .scan(&range, Version::MAX, Direction::Forward)
        .unwrap();
    let mut found = Vec::new();
    while let Some(entry) = cursor.next().unwrap() {
        found.push(entry.version.0);
    }
    found
}

struct Fixture {
    root: tempfile::TempDir,
    engine: RocksEngine,
}

impl Fixture {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let engine = open(&root.path().join("data"));
        Self { root, engine }
    }

    fn backups(&self) -> std::path::PathBuf {
        self.root.path().join("backups")
    }

    fn restore(&self, label: &str) -> RocksEngine {
        let target = self.root.path().join(format!("restored-{label}"));
        backup::restore(&self.backups(), label, &target).unwrap();
        open(&target)
    }
}

#[test]
fn a_restored_backup_holds_what_the_store_held() {
    let fixture = Fixture::new();
    write(&fixture.engine, 1, 50);
    let made = backup::create(&fixture.engine, &fixture.backups(), "one").unwrap();
    assert_eq!(made.complete_to, 1);
    write(&fixture.engine, 2, 60);
    let restored = fixture.restore("one");
    assert_eq!(versions(&restored), [1; 50]);
    assert_eq!(restored.latest().unwrap(), Version(1));
    write(&restored, 2, 10);
    assert_eq!(versions(&restored).len(), 50);
    assert_eq!(versions(&fixture.engine), [2; 60]);
}

#[test]
fn backups_in_one_directory_share_what_did_not_change() {
    let fixture = Fixture::new();
    for version in 1..=20 {
        write(&fixture.engine, version, 200);
    }
    fixture.engine.compact().unwrap();
    let first = backup::create(&fixture.engine, &fixture.backups(), "first").unwrap();
    write(&fixture.engine, 21, 1);
    let second = backup::create(&fixture.engine, &fixture.backups(), "second").unwrap();
    assert!(
        first.added_bytes > 5 * second.added_bytes,
        "{first:?} {second:?}"
    );
    let labels: Vec<String> = backup::list(&fixture.backups())
        .unwrap()
        .into_iter()
        .map(|manifest| manifest.label)
        .collect();
    assert_eq!(labels, ["first", "second"]);
    assert_eq!(versions(&fixture.restore("first")), [20; 200]);
    assert_eq!(versions(&fixture.restore("second"))[..2], [21, 20]);
    backup::remove(&fixture.backups(), "first").unwrap();
    assert_eq!(
        backup::verify(&fixture.backups()).unwrap().problems,
        [""; 0]
    );
    assert_eq!(backup::list(&fixture.backups()).unwrap(), [second]);
}

/// Every batch writes one version to all keys: any mix of versions would be half a batch.
#[test]
fn a_backup_under_write_load_is_a_consistent_prefix() {
    let fixture = Fixture::new();
    write(&fixture.engine, 1, 40);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut version = 2;
            while !stop.load(Ordering::Relaxed) {
                write(&fixture.engine, version, 40);
                version += 1;
            }
        });
        for label in ["a", "b", "c", "d", "e"] {
            let made = backup::create(&fixture.engine, &fixture.backups(), label);
            let after = fixture.engine.latest().unwrap().0;
            let checked = made.map(|made| {
                let restored = fixture.restore(label);
                let found = versions(&restored);
                (made.complete_to, found, restored.latest().unwrap().0)
            });
            stop.store(label == "e" || checked.is_err(), Ordering::Relaxed);
            let (complete_to, found, latest) = checked.unwrap();
            assert_eq!(found, [found[0]; 40]);
            assert!(complete_to <= found[0] && found[0] <= after);
            assert_eq!(latest, found[0]);
        }
    });
    assert_eq!(
        backup::verify(&fixture.backups()).unwrap().problems,
        [""; 0]
    );
}

#[test]
fn damage_is_found_by_verify_and_refused_by_restore() {
    let fixture = Fixture::new();
    write(&fixture.engine, 1, 50);
    let made = backup::create(&fixture.engine, &fixture.backups(), "one").unwrap();
    drop(fixture.engine);
    let backups = fixture.root.path().join("backups");
    for (number, file) in made.files.iter().enumerate() {
        let place = backups.join(&file.stored);
        let intact = fs::read(&place).unwrap();
        for damage in ["flip", "cut", "longer", "gone"] {
            let mut bytes = intact.clone();
            match damage {
                "flip" | "cut" if intact.is_empty() => continue,
                "flip" => bytes[intact.len() / 2] ^= 1,
                "cut" => bytes.truncate(intact.len() - 1),
                _ => bytes.push(0),
            }
            fs::write(&place, &bytes).unwrap();
            if damage == "gone" {
                fs::remove_file(&place).unwrap();
            }
            let problems = backup::verify(&backups).unwrap().problems;
            let name = file.stored.display().to_string();
            assert!(
                problems.len() == 1 && problems[0].contains(&name),
                "{problems:?}"
            );
            let target = fixture
                .root
                .path()
                .join(format!("target-{number}-{damage}"));
            assert!(backup::restore(&backups, "one", &target).is_err());
            assert!(!target.exists(), "nothing half restored is left");
        }
        fs::write(&place, &intact).unwrap();
    }
    assert_eq!(backup::verify(&backups).unwrap().problems, [""; 0]);
}

#[test]
fn restore_refuses_a_directory_that_holds_anything() {
    let fixture = Fixture::new();
    write(&fixture.engine, 1, 5);
    backup::create(&fixture.engine, &fixture.backups(), "one").unwrap();
    let target = fixture.root.path().join("target");
    fs::create_dir(&target).unwrap();
    fs::write(target.join("mine"), "keep me").unwrap();
    let error = backup::restore(&fixture.backups(), "one", &target).unwrap_err();
    assert!(error.to_string().contains("is not empty"), "{error}");
    assert_eq!(fs::read_to_string(target.join("mine")).unwrap(), "keep me");
    fs::remove_file(target.join("mine")).unwrap();
    backup::restore(&fixture.backups(), "one", &target).unwrap();
}

#[test]
fn labels_are_unique_and_plain() {
    let fixture = Fixture::new();
    write(&fixture.engine, 1, 5);
    backup::create(&fixture.engine, &fixture.backups(), "one").unwrap();
    for label in ["one", "", "..", "a/b", "shared", ".hidden", "ü"] {
        let error = backup::create(&fixture.engine, &fixture.backups(), label).unwrap_err();
        assert!(
            matches!(error, StorageError::Format(_)),
            "{label}: {error:?}"
        );
    }
    let error = backup::restore(&fixture.backups(), "two", fixture.root.path()).unwrap_err();
    assert!(error.to_string().contains("there is: one"), "{error}");
}

#[test]
fn what_a_crash_left_of_a_backup_is_not_listed_and_is_replaced() {
    let fixture = Fixture::new();
    write(&fixture.engine, 1, 5);
    let partial = fixture.backups().join(".partial-one");
    fs::create_dir_all(&partial).unwrap();
    fs::write(partial.join("FORMAT"), "half").unwrap();
    assert_eq!(backup::list(&fixture.backups()).unwrap(), []);
    backup::create(&fixture.engine, &fixture.backups(), "one").unwrap();
    assert!(!partial.exists());
    assert_eq!(versions(&fixture.restore("one")), [1; 5]);
}

#[test]
fn the_memory_engine_says_that_it_cannot_be_backed_up() {
    let root = tempfile::tempdir().unwrap();
    let error = backup::create(&MemoryEngine::new(), root.path(), "one").unwrap_err();
    assert!(
        error.to_string().contains("keeps nothing on disk"),
        "{error}"
    );
    assert_eq!(backup::list(root.path()).unwrap(), []);
}
