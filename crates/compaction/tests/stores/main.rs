//! Compactions through an object store: the worker has copies and nothing else, the database
//! believes nothing that comes back unchecked, and whatever the store does, nothing is lost.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)]
// Servers are waited for, and listen.
#![allow(clippy::disallowed_methods)]

#[path = "../common/mod.rs"]
mod common;
mod faulty;
mod hdfs;
mod pool;
mod s3;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use common::{content, fill, options};
use faulty::{Fault, Faulty};
use manxdb_compaction::edge::{
    DatabaseCallbacks, JobFiles, JobInfo, Service as _, TableFunctions, linked_tables, set_service,
};
use manxdb_compaction::transport::wire::DESCRIPTION_MAX;
use manxdb_jobs::job::LocalReason;
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};
use pool::{Pool, Served, home};
use rocksdb::DB;

/// The repository that the test is run in, which need not be the one that it was compiled in: a
/// target directory may be shared by several clones.
pub fn root() -> PathBuf {
    let home = std::env::var("CARGO_MANIFEST_DIR").unwrap();
    PathBuf::from(home).join("../..")
}

fn memory() -> Arc<Faulty> {
    Faulty::new(Arc::new(InMemory::new()))
}

/// Databases come out as at home, the store is left with copies of their files, and bytes are
/// counted.
pub fn databases_compact(pool: &Pool) {
    let expected = home(7);
    for _ in 0..2 {
        let Served { remote, path, base } = pool.service();
        let mut with_service = options();
        set_service(&mut with_service, remote.clone());
        let db = DB::open(&with_service, &path).unwrap();
        fill(&db, 7);
        assert_eq!(content(&db), expected);
        let counts = remote.counts();
        assert!(counts.installed.load(Ordering::Relaxed) >= 3);
        let (put, fetched) = (&counts.put, &counts.fetched);
        assert!(put.load(Ordering::Relaxed) > 0 && fetched.load(Ordering::Relaxed) > 0);
        let files = tables(&path);
        pool.until(|keys| {
            let mut own = keys.iter().filter(|key| key.starts_with(&base));
            let copies = own.clone().filter(|key| is_table(key)).count();
            own.all(|key| !key.ends_with("view")) && copies <= files
        });
        drop(db);
        DB::open(&options(), &path).unwrap();
    }
    let counts = pool.worker().counts();
    assert!(counts.fetched.load(Ordering::Relaxed) > 0);
    assert!(counts.put.load(Ordering::Relaxed) > 0);
}

/// Outputs that are not as the worker made them are refused, and compacted at home.
pub fn tampered_outputs_are_refused(inner: Arc<dyn ObjectStore>) {
    for fault in [
        Fault::FlippedOutputs,
        Fault::ShortOutputs,
        Fault::LostOutputs,
    ] {
        let store = Faulty::new(Arc::clone(&inner));
        store.set(fault);
        let pool = Pool::start(store);
        let (local, installed) = pool.fill_as_at_home(11);
        assert_eq!(installed, 0, "{fault:?}");
        assert!(local(LocalReason::Refused) >= 1, "{fault:?}");
    }
}

/// Whether a name is a sorted file's.
pub fn is_table(name: &str) -> bool {
    let extension = std::path::Path::new(name).extension();
    extension.is_some_and(|extension| extension == "sst")
}

fn tables(directory: &std::path::Path) -> usize {
    let files = std::fs::read_dir(directory).unwrap();
    let names = files.map(|one| one.unwrap().file_name().into_string().unwrap());
    names.filter(|name| is_table(name)).count()
}

#[test]
fn databases_compact_through_a_store_and_leave_only_copies_of_their_files() {
    databases_compact(&Pool::start(memory()));
}

#[test]
fn outputs_that_were_tampered_with_are_refused() {
    tampered_outputs_are_refused(memory());
}

#[test]
fn inputs_that_were_tampered_with_are_refused_by_the_worker() {
    let store = memory();
    store.set(Fault::FlippedInputs);
    let pool = Pool::start(store);
    let (local, installed) = pool.fill_as_at_home(13);
    assert_eq!(installed, 0);
    assert!(local(LocalReason::Attempts) >= 1);
    assert!(pool.worker().counts().failed.load(Ordering::Relaxed) >= 1);
}

#[test]
fn a_store_that_is_down_or_full_sends_compactions_home() {
    for fault in [Fault::Down, Fault::Full] {
        let store = memory();
        let pool = Pool::start(Arc::clone(&store) as Arc<dyn ObjectStore>);
        store.set(fault);
        let (local, installed) = pool.fill_as_at_home(17);
        assert_eq!(installed, 0, "{fault:?}");
        assert!(local(LocalReason::Storage) >= 3, "{fault:?}");
    }
}

#[test]
fn a_store_that_is_full_for_the_worker_sends_compactions_home() {
    let store = memory();
    store.set(Fault::FullForOutputs);
    let pool = Pool::start(store);
    let (local, installed) = pool.fill_as_at_home(19);
    assert_eq!(installed, 0);
    assert!(local(LocalReason::Attempts) + local(LocalReason::Storage) >= 3);
}

#[test]
fn outputs_that_do_not_come_back_are_nobodys_fault_and_made_at_home() {
    let store = memory();
    store.set(Fault::OutputsAway);
    let pool = Pool::start(store);
    let (local, installed) = pool.fill_as_at_home(23);
    assert_eq!((installed, local(LocalReason::Refused)), (0, 0));
    assert!(local(LocalReason::Storage) >= 3);
}

#[test]
fn what_others_left_is_removed_and_other_databases_are_not() {
    let store = memory();
    let pool = Pool::start(Arc::clone(&store) as Arc<dyn ObjectStore>);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let earlier = "volume/da/dead/files/000009.sst".to_owned();
    let late = "volume/da/5e/jobs/99/attempt/000001.sst".to_owned();
    let other = "volume/db/1/files/000009.sst".to_owned();
    for key in [&earlier, &late, &other] {
        let put = PutPayload::from_static(b"old");
        runtime
            .block_on(store.put(&key.as_str().into(), put))
            .unwrap();
    }
    let path = tempfile::tempdir().unwrap();
    let served = pool.service_as(path.path().to_owned(), 0xda, 0x5e);
    pool.until(|keys| !keys.contains(&earlier) && !keys.contains(&late));
    assert!(pool.keys().contains(&other));
    drop(served);
}

/// Of a database whose job touches a corner of it, the corner is moved and little else.
#[test]
fn only_inputs_are_moved_whole() {
    let pool = Pool::start(memory());
    let Served { remote, path, .. } = pool.service();
    let mut with_service = options();
    with_service.set_target_file_size_base(1 << 20);
    with_service.set_compression_type(rocksdb::DBCompressionType::None);
    set_service(&mut with_service, remote.clone());
    let db = DB::open(&with_service, &path).unwrap();
    let put = |from: u32, to: u32, value: u8| {
        for number in from..to {
            db.put(number.to_be_bytes(), [value; 1_000]).unwrap();
        }
        db.flush().unwrap();
    };
    put(0, 16_000, 1);
    put(0, 16_000, 2);
    db.compact_range::<&[u8], &[u8]>(None, None);
    let before = pool.worker().counts().fetched.load(Ordering::Relaxed);
    assert!(before > 30_000_000, "{before} bytes fetched for all");
    let put_before = remote.counts().put.load(Ordering::Relaxed);
    put(100, 200, 3);
    put(100, 200, 4);
    let installed = remote.counts().installed.load(Ordering::Relaxed);
    db.compact_range(Some(100_u32.to_be_bytes()), Some(200_u32.to_be_bytes()));
    assert!(remote.counts().installed.load(Ordering::Relaxed) > installed);
    let fetched = pool.worker().counts().fetched.load(Ordering::Relaxed) - before;
    assert!(fetched < 4_000_000, "{fetched} bytes fetched for a corner");
    // The files of the large job came out of the store: they are not put again.
    let put = remote.counts().put.load(Ordering::Relaxed) - put_before;
    assert!(put < 1_000_000, "{put} bytes put for a corner");
    for (number, value) in [(99, 2), (150, 4), (15_999, 2)] {
        let found = db.get(u32::to_be_bytes(number)).unwrap().unwrap();
        assert_eq!(found, [value; 1_000], "{number}");
    }
}

/// A database whose parameters fit into no message.
struct Wordy;

impl DatabaseCallbacks for Wordy {
    fn parameters(&self, _: &JobInfo, _: &JobFiles<'_>) -> Result<Vec<u8>, String> {
        Ok(vec![0; DESCRIPTION_MAX])
    }

    fn noted(&self, _: &[u8]) {}

    fn tables(&self) -> TableFunctions {
        linked_tables()
    }
}

#[test]
fn a_job_that_turns_out_too_large_to_describe_takes_back_what_it_put() {
    let pool = Pool::start(memory());
    let Served { remote, path, base } = pool.service_with(Arc::new(Wordy));
    let mut with_service = options();
    set_service(&mut with_service, remote.clone());
    let db = DB::open(&with_service, &path).unwrap();
    fill(&db, 31);
    assert!(remote.counts().put.load(Ordering::Relaxed) > 0);
    assert!(remote.counts().local(LocalReason::Unfit) >= 3);
    let files = tables(&path);
    pool.until(|keys| {
        let own = keys.iter().filter(|key| key.starts_with(&base));
        own.clone().all(|key| !key.ends_with("view")) && own.count() <= files
    });
}

#[test]
fn closing_a_database_does_not_wait_for_its_store() {
    let store = memory();
    let pool = Pool::start(Arc::clone(&store) as Arc<dyn ObjectStore>);
    let Served { remote, path, .. } = pool.service();
    let mut with_service = options();
    set_service(&mut with_service, remote.clone());
    let db = DB::open(&with_service, &path).unwrap();
    db.put(b"a", b"b").unwrap();
    remote.cancel();
    fill(&db, 29); // a closed service does everything at home
    assert_eq!(remote.counts().installed.load(Ordering::Relaxed), 0);
}
