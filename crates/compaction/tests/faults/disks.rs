//! Disks that are full.

use std::path::Path;
use std::process::Command;

use crate::cluster::Cluster;
use crate::process::until;

#[test]
fn a_worker_whose_disk_is_full_fails_and_leaves_nothing() {
    let mut cluster = Cluster::new();
    let mut full = cluster.worker(&[("largest_file", "20000")]);
    let mut database = cluster.database(&[]);
    until("attempts fail", || full.count("failed") > 2);
    until("it compacts at home", || {
        database.count("attempts") + database.count("poison") > 0
    });
    full.logs(&["a compaction failed", "File too large"]);
    assert_eq!(database.count("installed"), 0);
    let _with_space = cluster.worker(&[]);
    drop(full);
    until("another worker does it", || database.count("installed") > 2);
    cluster.finish(vec![database]);
}

/// A small file system of its own; none without the right to mount one.
struct Disk<'a>(&'a Path);

impl<'a> Disk<'a> {
    fn mount(place: &'a Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", "size=64m", "tmpfs"])
            .arg(place);
        let done = mount.output().is_ok_and(|done| done.status.success());
        done.then_some(Self(place))
    }

    /// Takes all space.
    fn fill(&self) {
        let ballast = std::fs::File::create(self.0.join("ballast")).unwrap();
        let mut offset = 0;
        let block = vec![1; 1 << 16];
        while let Ok(written) = std::os::unix::fs::FileExt::write_at(&ballast, &block, offset) {
            offset += written as u64;
        }
    }

    fn free(&self) {
        std::fs::remove_file(self.0.join("ballast")).unwrap();
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status(); // it is in memory
    }
}

/// The database's own files are on the full disk as well: its writes fail, as they would without
/// the service. What it acknowledged before is there, and nothing half done is left.
#[test]
fn a_volume_that_is_full_loses_nothing() {
    let mut cluster = Cluster::new();
    let volume = cluster.path().join("volume");
    let Some(disk) = Disk::mount(&volume) else {
        manxdb_test_harness::skip("no right to mount a small file system");
        return;
    };
    let mut worker = cluster.worker(&[]);
    let mut database = cluster.database(&[]);
    until("the pool works", || database.count("installed") > 1);
    disk.fill();
    // It ends at its first write that fails.
    database.ended();
    disk.free();
    let finished = worker.count("finished");
    let mut database = cluster.again(database);
    until("it goes on", || database.count("installed") > 2);
    assert!(worker.count("finished") > finished);
    cluster.finish(vec![database]);
}
