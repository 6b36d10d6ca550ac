//! Disks that are full.

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
