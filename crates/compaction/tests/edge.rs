//! RocksDB's hook: a job done elsewhere makes the same database as one done at home, and whatever
//! goes wrong ends with a compaction at home.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;

use manxdb_compaction::edge::{
    Cancel, JobInfo, Service, Waited, open_and_compact, set_service,
};
use rocksdb::{DB, Options};

/// Runs jobs on the thread that waits for them.
struct Here {
    staging: PathBuf,
    jobs: Mutex<Vec<(JobInfo, Vec<u8>)>>,
    results: Mutex<Vec<Vec<u8>>>,
    installed: Mutex<Vec<(String, bool)>>,
    panics: bool,
}

impl Service for Here {
    fn schedule(&self, info: &JobInfo, input: &[u8]) -> Option<String> {
        let mut jobs = self.jobs.lock().unwrap();
        jobs.push((info.clone(), input.to_vec()));
        Some((jobs.len() - 1).to_string())
    }

    fn wait(&self, job: &str) -> Waited {
        assert!(!self.panics, "a service of ours failed");
        let (info, input) = self.jobs.lock().unwrap()[job.parse::<usize>().unwrap()].clone();
        let output = self.staging.join(job);
        std::fs::create_dir_all(&output).unwrap();
        let database = Path::new(&info.database);
        let result = open_and_compact(database, &output, &input, &options(), &Cancel::default());
        match result {
            Ok(result) => {
                self.results.lock().unwrap().push(result.clone());
                Waited::Done(result)
            }
            Err(_) => Waited::Local,
        }
    }

    fn cancel(&self) {}

    fn installed(&self, job: &str, is_installed: bool) {
        let mut installed = self.installed.lock().unwrap();
        installed.push((job.to_string(), is_installed));
    }
}

fn options() -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_write_buffer_size(64 << 10);
    options.set_target_file_size_base(64 << 10);
    options
}

fn fill(db: &DB) {
    let mut number = 1_u64;
    for _ in 0..20_000 {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let key = (number >> 50).to_be_bytes();
        if number.is_multiple_of(5) {
            db.delete(key).unwrap();
        } else {
            db.put(key, number.to_be_bytes().repeat(4)).unwrap();
        }
    }
    db.flush().unwrap();
    db.compact_range::<&[u8], &[u8]>(None, None);
}

fn content(db: &DB) -> Vec<(Box<[u8]>, Box<[u8]>)> {
    db.iterator(rocksdb::IteratorMode::Start)
        .map(Result::unwrap)
        .collect()
}

fn service(staging: &Path, panics: bool) -> Arc<Here> {
    Arc::new(Here {
        staging: staging.to_owned(),
        jobs: Mutex::default(),
        results: Mutex::default(),
        installed: Mutex::default(),
        panics,
    })
}

#[test]
fn jobs_done_elsewhere_make_the_same_database() {
    let directory = tempfile::tempdir().unwrap();
    let home = DB::open(&options(), directory.path().join("home")).unwrap();
    fill(&home);
    let here = service(&directory.path().join("staging"), false);
    let mut with_service = options();
    set_service(&mut with_service, here.clone());
    let away = DB::open(&with_service, directory.path().join("away")).unwrap();
    fill(&away);
    assert_eq!(content(&home), content(&away));
    let installed = here.installed.lock().unwrap();
    assert!(installed.len() > 3, "{installed:?}");
    assert!(installed.iter().all(|(_, is_installed)| *is_installed));
    let (info, _) = here.jobs.lock().unwrap()[0].clone();
    assert_eq!(Path::new(&info.database), directory.path().join("away"));
    assert!(!info.database_id.is_empty() && !info.session.is_empty());
    if std::env::var("SHOW").is_ok() {
        let jobs = here.jobs.lock().unwrap();
        println!("{:?}\n{}", jobs[0].0, String::from_utf8_lossy(&jobs[0].1));
        println!("{}", String::from_utf8_lossy(&here.results.lock().unwrap()[0]));
    }
}

#[test]
fn a_service_that_fails_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let home = DB::open(&options(), directory.path().join("home")).unwrap();
    fill(&home);
    let here = service(&directory.path().join("staging"), true);
    let mut with_service = options();
    set_service(&mut with_service, here.clone());
    let away = DB::open(&with_service, directory.path().join("away")).unwrap();
    fill(&away);
    assert_eq!(content(&home), content(&away));
    assert!(here.installed.lock().unwrap().is_empty());
}
