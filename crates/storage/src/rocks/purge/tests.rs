//! Bytes of deleted keys and replaced values are looked for in all files.

use super::*;
use crate::engine::Engine as _;
use crate::log;
use crate::model::{Durability, WriteBatch};
use crate::rocks::Options;
use crate::search::{FileSearch, KeyPrefixes, StoredVersion};

/// Keys whose rows stay, and keys whose rows are deleted.
const KEPT: &[u8] = b"resident-";
const GONE: &[u8] = b"kanari-";
const ROWS: u64 = 600;

/// Small memtables, files and logs: several of each, on more than one level.
fn small() -> Options {
    Options {
        block_cache_bytes: 1 << 20,
        write_buffer_bytes: 16 << 10,
        file_bytes: 8 << 10,
        level0_files: 2,
        log_segment_bytes: 16 << 10,
        ..Options::default()
    }
}

struct Subject {
    engine: RocksEngine,
    version: u64,
}

impl Subject {
    fn write(&mut self, key: &[u8], number: u64, value: Option<&[u8]>) {
        self.version += 1;
        let key = [key, format!("{number:06}").as_bytes()].concat();
        let value = value.map(<[u8]>::to_vec);
        let writes = vec![(Version(self.version), key, value)];
        let batch = WriteBatch { writes };
        self.engine.write(&batch, Durability::Async).unwrap();
    }

    /// Rows that stay, some of them changed, between rows that are deleted later, in several layers.
    fn fill(&mut self) {
        for number in 0..ROWS {
            self.write(KEPT, number, Some(b"kanari-old"));
            self.write(GONE, number, Some(&[7; 40]));
            if number % 100 == 99 {
                self.engine.flush().unwrap();
            }
        }
        for number in 0..ROWS {
            self.write(KEPT, number, Some(b"new"));
            self.write(GONE, number, None);
        }
    }

    fn is_whole(&self) {
        for number in [0, 1, ROWS - 1] {
            let number = format!("{number:06}");
            let kept = [KEPT, number.as_bytes()].concat();
            let found = self.engine.get(&kept, Version::MAX).unwrap();
            assert_eq!(found.map(|found| found.value), Some(b"new".to_vec()));
            let gone = [GONE, number.as_bytes()].concat();
            assert_eq!(self.engine.get(&gone, Version::MAX).unwrap(), None);
        }
    }
}

fn open(directory: &Path) -> Subject {
    let engine = RocksEngine::open(directory, &small()).unwrap();
    let version = engine.latest().unwrap().0;
    Subject { engine, version }
}

/// Files that hold these bytes.
fn holding(directory: &Path, wanted: &[u8]) -> Vec<String> {
    let all = files::below(directory).unwrap();
    let holds = |path: &&std::path::PathBuf| {
        // RocksDB may remove one meanwhile.
        let bytes = std::fs::read(directory.join(path)).unwrap_or_default();
        bytes.windows(wanted.len()).any(|bytes| bytes == wanted)
    };
    all.iter()
        .filter(holds)
        .map(|path| path.display().to_string())
        .collect()
}

/// Searches for deleted keys that begin with `prefix`; the files of the log and the lists of sorted
/// files that have some must be those that have these bytes.
fn searched(subject: &Subject, directory: &Path, prefix: &[u8]) -> FileSearch {
    let prefixes = KeyPrefixes::new(vec![prefix.to_vec()]);
    let is_gone = |found: &StoredVersion<'_>| {
        assert!(found.key.starts_with(prefix), "{found:?}");
        subject
            .engine
            .get(found.key, Version::MAX)
            .unwrap()
            .is_none()
    };
    let found = subject.engine.search_files(&prefixes, &mut { is_gone });
    let found = found.unwrap().expect("files are looked at");
    let holding = holding(directory, prefix);
    let named = |part: &str| holding.iter().filter(|name| name.contains(part)).count() as u64;
    // Compactions go on, and change sorted files and the lists of them.
    let found_in = [found.log, found.spares].map(|kind| kind.holding);
    let expected = [named(".log"), named("spare-")];
    assert_eq!(found_in, expected, "{found:?}: {holding:?}");
    found
}

#[test]
fn no_file_has_a_key_or_value_that_was_deleted_or_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let mut subject = open(directory.path());
    subject.fill();
    subject.engine.flush().unwrap();
    // All versions are kept so far: of each key one, and its deletion.
    let found = searched(&subject, directory.path(), GONE);
    assert_eq!(found.sorted.versions, 2 * ROWS, "{found:?}");
    assert!(
        found.log.versions > 0 && found.manifests.versions > 0,
        "{found:?}"
    );
    let one = searched(&subject, directory.path(), b"kanari-000007");
    assert_eq!(one.sorted.versions, 2, "{one:?}");
    let mark = Version(subject.version);
    subject.engine.set_watermark(mark);
    subject.engine.flush().unwrap();
    let found = holding(directory.path(), GONE);
    for end in [".sst", ".log"] {
        assert!(found.iter().any(|name| name.ends_with(end)), "{found:?}");
    }
    assert!(subject.engine.purge(mark).unwrap());
    let none = searched(&subject, directory.path(), GONE);
    let versions = [none.sorted, none.manifests, none.log, none.spares].map(|kind| kind.versions);
    assert_eq!(versions, [0; 4]);
    assert!(none.sorted.files > 0 && none.log.files > 0, "{none:?}");
    // A file that the log would write over has a part of a record of before.
    let remains = [
        &[0; 5000],
        b"\x09\0kanari-000007 and what follows".as_slice(),
    ]
    .concat();
    let planted = directory.path().join(log::FOLDER).join("spare-99");
    std::fs::write(&planted, remains).unwrap();
    let found = searched(&subject, directory.path(), b"kanari-000007");
    assert_eq!((found.spares.holding, found.spares.versions), (1, 1));
    std::fs::remove_file(planted).unwrap();
    // What is written meanwhile, and later, is in the new files alone.
    subject.write(KEPT, ROWS, Some(b"later"));
    assert_eq!(holding(directory.path(), GONE), [""; 0]);
    let found = holding(directory.path(), KEPT);
    let is_sorted = |name: &String| name.contains(".sst");
    assert!(found.iter().any(is_sorted), "{found:?}");
    assert!(!holding(directory.path(), b"later").is_empty(), "the log");
    subject.is_whole();
    drop(subject);
    let mut subject = open(directory.path());
    subject.is_whole();
    // Once more, with what a first time has left behind, and nothing written in between.
    subject.fill();
    let mark = Version(subject.version);
    subject.engine.set_watermark(mark);
    assert!(subject.engine.purge(mark).unwrap());
    assert!(subject.engine.purge(mark).unwrap());
    assert_eq!(holding(directory.path(), GONE), [""; 0]);
    drop(subject);
    let mut subject = open(directory.path());
    subject.is_whole();
    subject.write(KEPT, ROWS, Some(b"later"));
    subject.is_whole();
}

#[test]
fn a_reader_from_before_keeps_what_it_may_ask_for() {
    let directory = tempfile::tempdir().unwrap();
    let mut subject = open(directory.path());
    subject.fill();
    let mark = Version(subject.version);
    subject.engine.set_watermark(Version(mark.0 - 1));
    assert!(!subject.engine.purge(mark).unwrap());
    assert!(!holding(directory.path(), GONE).is_empty());
    // The newest deletion is above: everything else goes, and it is said of that alone.
    assert!(subject.engine.purge(Version(mark.0 - 1)).unwrap());
    let last = format!("kanari-{:06}", ROWS - 1);
    assert!(!holding(directory.path(), last.as_bytes()).is_empty());
    assert_eq!(holding(directory.path(), b"kanari-000001"), [""; 0]);
}

#[test]
fn a_purge_that_was_stopped_says_that_it_did_not_see_it() {
    let directory = tempfile::tempdir().unwrap();
    let mut subject = open(directory.path());
    subject.fill();
    let mark = Version(subject.version);
    subject.engine.set_watermark(mark);
    subject.engine.stop_purging();
    assert!(!subject.engine.purge(mark).unwrap());
    subject.is_whole();
    drop(subject);
    open(directory.path()).is_whole();
}
