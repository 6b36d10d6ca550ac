//! A store of rows whose process was killed, whose machine lost power, or whose files were damaged.

use std::fs;
use std::path::{Path, PathBuf};

use manxdb_curp::Execute as _;
use manxdb_curp_sql::{Owner, SqlCommand, SqlMachine};
use manxdb_storage::StorageError;

use crate::stored::{Live, Replica, commit, copied, home, live};

/// The only state of a directory.
fn state_of(data: &Path) -> PathBuf {
    let mut states = fs::read_dir(data.join("replicated")).unwrap();
    let state = states.next().unwrap().unwrap().path();
    assert!(states.next().is_none(), "one state is there");
    state
}

/// Files below a folder of a state with some ending.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == ending))
        .collect();
    found.sort();
    found
}

/// A folder with all below it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// What a replica has: its place, who may write, and the rows.
fn found(replica: &Replica) -> (u64, Owner, u64, Live) {
    let machine = &replica.machine;
    let rows = live(&machine.view());
    (replica.at, machine.owner(), machine.keys(), rows)
}

#[test]
fn wherever_its_log_is_cut_off_a_store_has_a_batch_with_its_place_or_neither() {
    let directory = tempfile::tempdir().unwrap();
    let mut replica = Replica::new(&home(directory.path()));
    let log = || {
        let logs = files(&state_of(directory.path()).join("log"), "log");
        logs.last().unwrap().clone()
    };
    let end = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    replica.run(&SqlCommand::Claim(Owner(1)));
    let record = replica.machine.to_record().unwrap();
    replica.run(&commit(1, 0, &[("a", Some("one")), ("b", Some("one"))]));
    let before = found(&replica);
    let written = end(&fs::read(log()).unwrap());
    replica.run(&commit(
        2,
        1,
        &[("a", None), ("b", Some("two")), ("c", Some("two"))],
    ));
    let after = found(&replica);
    let whole = fs::read(log()).unwrap();
    // As a kill leaves it: an engine that is closed writes everything into files.
    let killed = tempfile::tempdir().unwrap();
    copy(directory.path(), killed.path());
    let log = log();
    drop(replica);
    let (mut without, mut with) = (0, 0);
    for cut in (written..=end(&whole)).step_by(23).chain([end(&whole)]) {
        let other = tempfile::tempdir().unwrap();
        copy(killed.path(), other.path());
        let torn = state_of(other.path())
            .join("log")
            .join(log.file_name().unwrap());
        let mut bytes = whole.clone();
        bytes[cut..].fill(0);
        fs::write(torn, bytes).unwrap();
        let mut again = Replica::again(&home(other.path()), &record).unwrap();
        let has = found(&again);
        assert!(
            has == before || has == after,
            "cut off after {cut}: {has:?}"
        );
        *(if has == before {
            &mut without
        } else {
            &mut with
        }) += 1;
        again.run(&commit(3, 2, &[("d", Some("three"))]));
        assert_eq!(again.at, has.0 + 1, "it goes on");
    }
    assert!(
        without > 0 && with > 0,
        "{without} without it, {with} with it"
    );
}

#[test]
fn a_copy_that_a_kill_left_half_written_is_removed_and_begun_again() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut source = Replica::new(&home(one.path()));
    source.run(&SqlCommand::Claim(Owner(1)));
    let large = "x".repeat(2_000_000);
    source.run(&commit(
        1,
        0,
        &[("a", Some(&large)), ("b", Some(&large)), ("c", None)],
    ));
    let to = home(two.path());
    let mut old = Replica::new(&to);
    old.run(&SqlCommand::Claim(Owner(1)));
    old.run(&commit(1, 0, &[("old", Some("row"))]));
    let record = old.machine.to_record().unwrap();
    let had = found(&old);
    let mut image = source.machine.image();
    let mut receiver = old.machine.receive();
    for _ in 0..2 {
        receiver.take(&image.read().unwrap().unwrap()).unwrap();
    }
    // What is on disk now is what a kill leaves.
    let left = tempfile::tempdir().unwrap();
    copy(two.path(), left.path());
    drop((receiver, old));
    let states = || {
        fs::read_dir(left.path().join("replicated"))
            .unwrap()
            .count()
    };
    assert_eq!(states(), 2, "the copy has begun");
    let to = home(left.path());
    let again = Replica::again(&to, &record).unwrap();
    assert_eq!(states(), 1, "and is of no use");
    assert_eq!(found(&again), had);
    let copy = copied(&source, &to, 1 << 20);
    assert_eq!(live(&copy.view()), live(&source.machine.view()));
    assert_eq!(copy.keys(), source.machine.keys());
    assert_eq!(states(), 2);
}

/// A store with files and a log, whose process ended.
fn filled(directory: &Path) -> Vec<u8> {
    let mut replica = Replica::new(&home(directory));
    replica.run(&SqlCommand::Claim(Owner(1)));
    let record = replica.machine.to_record().unwrap();
    for version in 1..=60 {
        // Of other bytes each, which take their room in files.
        let value: String = (0..4_000_u64)
            .map(|at| char::from(b'a' + u8::try_from(at * at * version % 26).unwrap()))
            .collect();
        let key = format!("key {version:04}");
        replica.run(&commit(version, version - 1, &[(&key, Some(&value))]));
    }
    record
}

/// Whether a store is read as if nothing had happened to it.
fn reads(directory: &Path, record: &[u8]) -> Result<Live, String> {
    let replica = Replica::again(&home(directory), record)?;
    let mut rows = Vec::new();
    let read = replica.machine.view().each_live(|key, version, value| {
        rows.push((key.to_vec(), version.0, value.to_vec()));
        Ok::<_, StorageError>(())
    });
    read.map_err(|error| error.to_string())?;
    Ok(rows)
}

#[test]
fn flipped_bits_in_files_of_a_store_are_noticed_and_never_served_as_rows() {
    let directory = tempfile::tempdir().unwrap();
    let record = filled(directory.path());
    let whole = reads(directory.path(), &record).unwrap();
    assert_eq!(whole.len(), 60);
    let state = state_of(directory.path());
    let sorted = files(&state.join("rocksdb"), "sst");
    assert!(!sorted.is_empty(), "memtables were written out");
    let (mut noticed, mut flips) = (0, 0);
    for path in sorted.iter().take(2) {
        let bytes = fs::read(path).unwrap();
        for at in [bytes.len() / 7, bytes.len() / 3, bytes.len() / 2] {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x10;
            fs::write(path, wrong).unwrap();
            flips += 1;
            match reads(directory.path(), &record) {
                Ok(rows) => assert_eq!(rows, whole, "{} at {at}", path.display()),
                Err(_) => noticed += 1,
            }
            fs::write(path, &bytes).unwrap();
        }
    }
    assert!(noticed > 0, "{noticed} of {flips} flips were noticed");
    assert_eq!(reads(directory.path(), &record).unwrap(), whole);
}

#[test]
fn a_record_of_another_store_than_there_is_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let record = filled(directory.path());
    fs::remove_dir_all(state_of(directory.path())).unwrap();
    // The machine has nothing then, and its place says so to whoever knows of more.
    let again = Replica::again(&home(directory.path()), &record).unwrap();
    assert_eq!((again.at, again.machine.keys()), (0, 0));
    let names_nothing = SqlMachine::stored(&home(directory.path())).open_record(&record[..5]);
    assert!(names_nothing.is_err_and(|why| why.contains("names no store")));
}
