//! A full disk: writes fail with a clear error, reads go on, and space brings writes back.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use manxdb_storage::{Durability, RocksEngine, StorageError, backup};
use manxdb_test_harness::skip;

use super::history;

/// A file system of a few megabytes in memory; needs root.
struct SmallDisk {
    place: tempfile::TempDir,
}

impl SmallDisk {
    fn mount() -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=8m", "manxdb-test"])
            .arg(place.path())
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self { place }),
            Ok(output) => {
                skip(String::from_utf8_lossy(&output.stderr).trim());
                None
            }
            Err(error) => {
                skip(&format!("cannot run mount: {error}"));
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.place.path()
    }

    /// Takes all space but `left_bytes`; the file that holds it.
    fn fill(&self, left_bytes: usize) -> PathBuf {
        let ballast = self.path().join("ballast");
        let mut size = 8 << 20;
        while fs::write(&ballast, vec![0; size]).is_err() {
            size -= 4 << 10;
        }
        fs::write(&ballast, vec![0; size - left_bytes]).unwrap();
        ballast
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).output();
    }
}

/// Tries until the store writes again: it looks for free space every five seconds.
fn write_when_space_is_back(engine: &RocksEngine, version: u64) {
    for _ in 0..3000 {
        match history::write(engine, version, Durability::Sync) {
            Ok(()) => return,
            Err(StorageError::Full(_)) => std::thread::park_timeout(Duration::from_millis(10)),
            Err(other) => panic!("{other:?}"),
        }
    }
    panic!("the store did not notice that there is space again");
}

#[test]
fn a_full_disk_fails_writes_only_and_space_brings_them_back() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let directory = disk.path().join("data");
    let engine = history::open(&directory).unwrap();
    for version in 1..=50 {
        history::write(&engine, version, Durability::Sync).unwrap();
    }
    let ballast = disk.fill(200 << 10);
    let mut latest = 50;
    let error = loop {
        match history::write(&engine, latest + 1, Durability::Sync) {
            Ok(()) => latest += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StorageError::Full(_)), "{error:?}");
    for _ in 0..3 {
        let error = history::write(&engine, latest + 1, Durability::Sync).unwrap_err();
        assert!(matches!(error, StorageError::Full(_)), "{error:?}");
    }
    assert_eq!(history::check_whole(&engine, 0), latest);

    fs::remove_file(ballast).unwrap();
    write_when_space_is_back(&engine, latest + 1);
    assert_eq!(history::check_whole(&engine, 0), latest + 1);
    drop(engine);
    let engine = history::open(&directory).unwrap();
    assert_eq!(history::check_whole(&engine, 0), latest + 1);
}

#[test]
fn a_backup_that_does_not_fit_leaves_nothing_behind() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let engine = history::open(directory.path()).unwrap();
    for version in 1..=200 {
        history::write(&engine, version, Durability::Async).unwrap();
    }
    let ballast = disk.fill(8 << 10);
    let backups = disk.path().join("backups");
    let error = backup::create(&engine, &backups, "one").unwrap_err();
    assert!(matches!(error, StorageError::Full(_)), "{error:?}");
    assert_eq!(backup::list(&backups).unwrap(), []);
    fs::remove_file(ballast).unwrap();
    history::write(&engine, 201, Durability::Sync).unwrap();
    backup::create(&engine, &backups, "one").unwrap();
    assert_eq!(backup::verify(&backups).unwrap().problems, [""; 0]);
}

#[test]
fn a_read_only_disk_says_so() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let directory = disk.path().join("data");
    drop(history::open(&directory).unwrap());
    let remounted = Command::new("mount")
        .args(["-o", "remount,ro"])
        .arg(disk.path())
        .status();
    assert!(remounted.unwrap().success());
    let error = history::open(&directory).err().unwrap();
    assert!(matches!(error, StorageError::ReadOnly(_)), "{error:?}");
}
