//! A real HDFS, which the tests start: one name node and one data node of Hadoop's, fetched by
//! `scripts/setup.sh test`. Run by `make test`, or `cargo test -p manxdb-compaction --test stores
//! -- --ignored`.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use hdfs_native_object_store::HdfsObjectStoreBuilder;
use manxdb_compaction::object_store::objects::Objects;
use manxdb_compaction::object_store::volume::hdfs_objects;
use manxdb_jobs::job::LocalReason;
use object_store::ObjectStore;

use crate::pool::Pool;

/// A cluster that ends with the test.
struct Cluster {
    process: Child,
    port: String,
    directory: tempfile::TempDir,
}

/// Where `scripts/setup.sh test` says where Hadoop's jars are.
fn class_path() -> String {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| crate::root().join("target"), PathBuf::from);
    let file = target.join("hdfs/classpath");
    std::fs::read_to_string(&file).unwrap_or_else(|error| {
        let file = file.display();
        panic!("{file}: {error}; scripts/setup.sh test makes it")
    })
}

impl Cluster {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut process = Command::new("java")
            .args(["-Xmx600m", "-Dlog4j.configuration=file:/dev/null", "-cp"])
            .arg(class_path())
            .arg(crate::root().join("tests/hdfs/MiniHdfs.java"))
            .arg(directory.path())
            .stdin(Stdio::piped()) // it ends when this does
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.as_mut().unwrap()).lines();
        let port = lines
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("port ").map(str::to_owned));
        Self {
            process,
            port: port.expect("the HDFS did not start"),
            directory,
        }
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn objects(&self) -> Arc<Objects> {
        Arc::new(hdfs_objects(&self.address(), "volume").unwrap())
    }

    /// For a store with faults in front of it.
    fn store(&self) -> Arc<dyn ObjectStore> {
        let url = format!("hdfs://{}", self.address());
        Arc::new(HdfsObjectStoreBuilder::new().with_url(url).build().unwrap())
    }

    fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.kill();
    }
}

fn bytes_below(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => bytes_below(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0, // it was just removed
    });
    bytes.sum()
}

/// One cluster for all: it takes eight seconds to start.
#[test]
#[ignore = "needs Hadoop: make test"]
fn hdfs_databases_compact_and_what_is_wrong_is_refused() {
    let mut cluster = Cluster::start();
    let pool = Pool::over(cluster.objects());
    crate::databases_compact(&pool);
    assert!(bytes_below(cluster.directory.path()) > 0);
    crate::s3::large_files_come_and_go(&cluster.objects());
    crate::tampered_outputs_are_refused(cluster.store());
    cluster.kill();
    let (local, installed) = pool.fill_as_at_home(43);
    assert_eq!(installed, 0);
    assert!(local(LocalReason::Storage) >= 3);
}
