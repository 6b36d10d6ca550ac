//! Files as log archivers write and read them: torn, damaged, missing, and on disks that fail.

use std::path::PathBuf;
use std::sync::Mutex;

use manxdb_fabric::{Address, ServerId};
use tempfile::TempDir;

use super::super::{CheckpointPiece, Disk, DiskError, Draft, History};
use super::*;
use crate::memory::{GEOMETRY, Geometry};

fn superblock() -> Superblock {
    Superblock {
        name: "test".into(),
        server: 0,
        directory: 9,
        geometry: GEOMETRY,
    }
}

fn directory() -> (TempDir, Directory) {
    let path = tempfile::tempdir().unwrap();
    let directory = Directory::open(path.path()).unwrap();
    (path, directory)
}

fn journal(directory: &Directory) -> Journal<Directory> {
    Journal::new(directory.clone(), superblock(), 77, 1, 0)
}

fn batch(number: u64) -> Vec<u8> {
    format!(
        "batch {number} {}",
        "x".repeat(usize::try_from(number % 17).unwrap())
    )
    .into_bytes()
}

/// Pushes and writes so many more.
fn write<D: Disk>(journal: &mut Journal<D>, count: u64) {
    for _ in 0..count {
        let next = journal.last() + 1;
        assert_eq!(journal.push(&batch(next)), next);
        journal.flush().unwrap();
    }
}

fn sync<D: Disk>(journal: &mut Journal<D>) {
    if let Some(sync) = journal.begin_sync() {
        let done = sync.run();
        journal.end_sync(&sync, &done);
    }
}

/// What a reader finds: the last batch, and how many are not known to be on disk for good.
fn read(directory: &Directory) -> Result<(u64, usize), DiskError> {
    let Some(history) = History::look(directory, &superblock())? else {
        return Ok((0, 0));
    };
    assert_eq!(history.formation(), 77);
    let mut last = history.cut()?.map_or(0, |cut| number(&cut));
    let tail = history.batches::<DiskError>(&mut |found| {
        last += 1;
        assert_eq!(found, batch(last));
        Ok(())
    })?;
    let behind = (last - tail.behind.len() as u64 + 1..=last).map(batch);
    assert!(tail.behind.iter().cloned().eq(behind));
    assert_eq!(tail.synced + tail.behind.len() as u64, last);
    Ok((last, tail.behind.len()))
}

fn number(batch: &[u8]) -> u64 {
    let text = std::str::from_utf8(batch).unwrap();
    text.split(' ').nth(1).unwrap().parse().unwrap()
}

fn file(directory: &Directory, number: u64) -> PathBuf {
    directory
        .path()
        .join(Directory::name(FileKind::Batches, number))
}

fn said<T: std::fmt::Debug>(found: Result<T, DiskError>) -> String {
    found.unwrap_err().to_string()
}

#[test]
fn what_is_written_is_read_over_several_segments() {
    let (_path, directory) = directory();
    assert!(!directory.has_rows().unwrap());
    let mut journal = journal(&directory);
    for segment in 1..=4 {
        write(&mut journal, 5);
        assert_eq!(journal.roll().unwrap(), segment + 1);
        assert_eq!(journal.synced(), journal.last());
    }
    write(&mut journal, 3);
    assert_eq!(read(&directory).unwrap(), (23, 3));
    sync(&mut journal);
    write(&mut journal, 1);
    assert_eq!(read(&directory).unwrap(), (24, 1));
    assert!(directory.has_rows().unwrap());
}

#[test]
fn who_goes_on_writes_again_what_may_not_be_on_disk() {
    let (_path, directory) = directory();
    let mut first = journal(&directory);
    write(&mut first, 4);
    sync(&mut first);
    write(&mut first, 3);
    drop(first);
    let history = History::look(&directory, &superblock()).unwrap().unwrap();
    let tail = history.batches::<DiskError>(&mut |_| Ok(())).unwrap();
    assert_eq!((tail.synced, tail.behind.len()), (4, 3));
    let mut second = Journal::new(
        directory.clone(),
        superblock(),
        77,
        history.next(),
        tail.synced,
    );
    for batch in tail.behind {
        second.push(&batch);
    }
    second.flush().unwrap();
    assert_eq!(second.synced(), 7);
    write(&mut second, 2);
    // Of the segment before, nothing behind the fourth batch is read any more.
    let before = file(&directory, 1);
    let whole = std::fs::read(&before).unwrap();
    let mut cut = whole.clone();
    cut.truncate(whole.len() - 10);
    std::fs::write(&before, cut).unwrap();
    assert_eq!(read(&directory).unwrap(), (9, 2));
}

#[test]
fn a_torn_tail_of_any_length_is_cut_off() {
    let (_path, directory) = directory();
    let mut journal = journal(&directory);
    write(&mut journal, 3);
    sync(&mut journal);
    let path = file(&directory, 1);
    let before = std::fs::read(&path).unwrap().len();
    write(&mut journal, 2);
    let whole = std::fs::read(&path).unwrap();
    let fourth = before + Frame::encode(4, 3, &batch(4)).len();
    for length in before..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        let last = if length < fourth { 3 } else { 4 };
        assert_eq!(read(&directory).unwrap().0, last, "{length}");
        // The system may have made the file longer before it wrote.
        let mut zeros = whole[..length].to_vec();
        zeros.resize(whole.len() + 100, 0);
        std::fs::write(&path, zeros).unwrap();
        assert!(read(&directory).unwrap().0 >= last, "{length}");
    }
}

#[test]
fn batches_that_the_system_wrote_out_of_order_are_cut_off_together() {
    let (_path, directory) = directory();
    let mut journal = journal(&directory);
    write(&mut journal, 3);
    sync(&mut journal);
    let path = file(&directory, 1);
    let third = std::fs::read(&path).unwrap().len();
    write(&mut journal, 2);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[third..third + 16].fill(0);
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(read(&directory).unwrap().0, 3);
}

#[test]
fn no_flipped_bit_before_the_end_is_read_past() {
    let (_path, directory) = directory();
    let mut journal = journal(&directory);
    for _ in 0..3 {
        write(&mut journal, 1);
        sync(&mut journal);
    }
    let path = file(&directory, 1);
    let third = Frame::encode(3, 2, &batch(3)).len();
    let whole = std::fs::read(&path).unwrap();
    for bit in (0..(whole.len() - third) * 8).step_by(3) {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, &damaged).unwrap();
        let found = read(&directory);
        // What pads a batch means nothing.
        let is_refused = matches!(
            found,
            Err(DiskError::Damaged(..) | DiskError::Unrecognized(_) | DiskError::Version(..))
        );
        assert!(
            is_refused || matches!(found, Ok((3, _))),
            "bit {bit}: {found:?}"
        );
        let in_second = Header::BYTES + Frame::encode(1, 0, &batch(1)).len();
        if bit / 8 == in_second {
            let words = format!("is damaged at offset {in_second}");
            assert!(said(found).contains(&words));
        }
    }
}

#[test]
fn damage_to_the_last_batch_is_no_torn_end_where_it_is_said_to_be_on_disk() {
    let (_path, directory) = directory();
    let mut journal = journal(&directory);
    for _ in 0..2 {
        write(&mut journal, 2);
        journal.mark().unwrap(); // it is not, so nothing is said
        sync(&mut journal);
        journal.mark().unwrap();
    }
    journal.mark().unwrap();
    let path = file(&directory, 1);
    let whole = std::fs::read(&path).unwrap();
    let batches: usize = (1..=4)
        .map(|number| Frame::encode(number, 0, &batch(number)).len())
        .sum();
    let mark = Frame::encode(4, 4, &[]).len();
    assert_eq!(whole.len(), Header::BYTES + batches + 2 * mark);
    assert_eq!(read(&directory).unwrap(), (4, 2));
    let last = whole.len() - mark - Frame::encode(4, 2, &batch(4)).len();
    let mut damaged = whole.clone();
    damaged[last + 50] ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    assert!(said(read(&directory)).contains(&format!("is damaged at offset {last}")));
    std::fs::write(&path, &whole).unwrap();
    write(&mut journal, 1);
    assert_eq!(read(&directory).unwrap().0, 5);
}

#[test]
fn a_segment_that_is_missing_is_missed() {
    for missing in 1..=3 {
        let (_path, directory) = directory();
        let mut journal = journal(&directory);
        for _ in 0..3 {
            write(&mut journal, 5);
            journal.roll().unwrap();
        }
        std::fs::remove_file(file(&directory, missing)).unwrap();
        let words = format!("batches {} to {} are missing", missing * 5 - 4, missing * 5);
        let found = said(read(&directory));
        assert!(found.contains(&words), "{found}");
    }
}

#[test]
fn files_of_another_database_are_refused_by_what_differs() {
    let (_path, directory) = directory();
    write(&mut journal(&directory), 1);
    let look = |own: Superblock| said(History::look(&directory, &own).map(drop));
    let other = Superblock {
        name: "shop".into(),
        ..superblock()
    };
    let found = look(other);
    let words = "the name of the database is 'shop' here and 'test' in ";
    assert!(
        found.contains(words) && found.contains("batches-"),
        "{found}"
    );
    let wider = Geometry {
        value: 4096,
        ..GEOMETRY
    };
    let found = look(Superblock {
        geometry: wider,
        ..superblock()
    });
    assert!(
        found.contains("the size of a row in bytes is 4096 here and"),
        "{found}"
    );
    let slower = Geometry {
        lease: manxdb_core::Nanos::from_secs(9),
        ..GEOMETRY
    };
    let other = Superblock {
        geometry: slower,
        ..superblock()
    };
    assert!(
        History::look(&directory, &other).is_ok(),
        "leases may change"
    );
}

#[test]
fn files_of_two_formations_are_refused() {
    let (_path, directory) = directory();
    write(&mut journal(&directory), 1);
    let mut other = Journal::new(directory.clone(), superblock(), 78, 2, 1);
    write(&mut other, 1);
    assert!(said(read(&directory)).contains("is of another formation"));
}

fn piece(server: u16, offset: u64, bytes: Vec<u8>) -> CheckpointPiece {
    let at = Address {
        server: ServerId(server),
        offset,
    };
    CheckpointPiece { at, bytes }
}

/// A checkpoint at the end of what a journal has.
fn check_point(
    directory: &Directory,
    journal: &mut Journal<Directory>,
    pieces: &[CheckpointPiece],
) {
    let number = journal.roll().unwrap();
    let header = Header {
        kind: FileKind::Checkpoint,
        number,
        formation: 77,
        first: journal.last() + 1,
        needs: 0,
        superblock: superblock(),
    };
    let mut draft = Draft::begin(directory, header, &batch(journal.last())).unwrap();
    for piece in pieces {
        draft.put(piece.at, &piece.bytes).unwrap();
    }
    write(journal, 2); // work goes on meanwhile
    draft.finish().unwrap();
}

#[test]
fn a_checkpoint_takes_the_place_of_what_was_before() {
    let (_path, directory) = directory();
    let mut journal = journal(&directory);
    let mut zeros = vec![0; 300 << 10];
    zeros[100 << 10] = 5;
    let pieces = [piece(0, 64, vec![1; 24]), piece(700, 4096, zeros)];
    for round in 1..=3 {
        write(&mut journal, 4);
        check_point(&directory, &mut journal, &pieces);
        assert_eq!(read(&directory).unwrap(), (round * 6, 2));
        assert_eq!(directory.files(FileKind::Batches).unwrap().len(), 1);
        assert_eq!(directory.files(FileKind::Checkpoint).unwrap().len(), 1);
    }
    let history = History::look(&directory, &superblock()).unwrap().unwrap();
    let mut found = Vec::new();
    let cut = history.pieces::<DiskError>(&mut |piece| {
        found.push(piece);
        Ok(())
    });
    assert_eq!(cut.unwrap().unwrap(), batch(16));
    assert_eq!(found.len(), 2, "what is zero is left out");
    assert_eq!(found[0], pieces[0]);
    assert_eq!(found[1].at.offset, 4096 + (64 << 10));
    // A draft is nobody's.
    std::fs::write(
        directory.path().join("checkpoint-00000000000000000009.new"),
        "",
    )
    .unwrap();
    assert_eq!(read(&directory).unwrap(), (18, 2));
    // What the checkpoint replaces is not missed, what is behind it is.
    std::fs::remove_file(file(&directory, history.next() - 1)).unwrap();
    let mut later = Journal::new(directory.clone(), superblock(), 77, history.next(), 18);
    write(&mut later, 1);
    assert!(said(read(&directory)).contains("batches 17 to 18 are missing"));
}

#[test]
fn a_checkpoint_that_is_damaged_or_short_is_refused() {
    let (_path, directory) = directory();
    let mut journal = journal(&directory);
    write(&mut journal, 1);
    check_point(&directory, &mut journal, &[piece(1, 64, vec![7; 40])]);
    let (_, path) = directory.files(FileKind::Checkpoint).unwrap().remove(0);
    let whole = std::fs::read(&path).unwrap();
    let pieces = || -> Result<(), DiskError> {
        let history = History::look(&directory, &superblock())?.unwrap();
        history.pieces::<DiskError>(&mut |_| Ok(())).map(drop)
    };
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        assert!(pieces().is_err(), "{length}");
    }
    let mut damaged = whole.clone();
    let at = Header::BYTES + Frame::encode(0, 0, &batch(1)).len() + 60;
    damaged[at] ^= 4;
    std::fs::write(&path, &damaged).unwrap();
    assert!(said(pieces()).contains("checkpoint-00000000000000000002 is damaged at offset"));
}

#[test]
fn one_at_a_time_has_its_turn_and_all_hear_one_identity() {
    let (_path, directory) = directory();
    let turn = directory.take_turn().unwrap().unwrap();
    assert!(directory.take_turn().unwrap().is_none());
    drop(turn);
    assert!(directory.take_turn().unwrap().is_some());
    let own = directory.identity(6).unwrap();
    assert_eq!((own, directory.identity(8).unwrap()), (7, 7));
}

/// A disk that fails when it is told to: so many bytes are left, so many syncs fail. A sync that fails
/// loses what was not on disk before, without a trace.
#[derive(Clone)]
struct Faulty(Arc<Mutex<State>>);

struct State {
    directory: Directory,
    left: usize,
    failing_syncs: u32,
}

struct FaultyFile {
    disk: Faulty,
    path: PathBuf,
    file: Box<dyn Output>,
    /// What is on disk for good.
    good: Mutex<Vec<u8>>,
}

fn full() -> io::Error {
    io::ErrorKind::StorageFull.into()
}

impl Disk for Faulty {
    fn create(&self, name: &str, bytes: &[u8]) -> io::Result<Box<dyn Output>> {
        let mut state = self.0.lock().unwrap();
        state.left = state.left.checked_sub(bytes.len()).ok_or_else(full)?;
        if state.failing_syncs > 0 {
            state.failing_syncs -= 1;
            return Err(io::Error::other("the disk fails"));
        }
        let file = state.directory.create(name, bytes)?;
        let path = state.directory.path().join(name);
        Ok(Box::new(FaultyFile {
            disk: self.clone(),
            path,
            file,
            good: Mutex::new(bytes.to_vec()),
        }))
    }
}

impl Output for FaultyFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.disk.0.lock().unwrap();
        let count = bytes.len().min(state.left);
        state.left -= count;
        self.file.write_at(&bytes[..count], offset)?;
        if count < bytes.len() {
            Err(full())
        } else {
            Ok(())
        }
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.0.lock().unwrap();
        let mut good = self.good.lock().unwrap();
        if state.failing_syncs > 0 {
            state.failing_syncs -= 1;
            std::fs::write(&self.path, &*good)?;
            return Err(io::Error::other("the disk fails"));
        }
        *good = std::fs::read(&self.path)?;
        Ok(())
    }
}

fn faulty(directory: &Directory) -> (Faulty, Journal<Faulty>) {
    let disk = Faulty(Arc::new(Mutex::new(State {
        directory: directory.clone(),
        left: usize::MAX,
        failing_syncs: 0,
    })));
    let journal = Journal::new(disk.clone(), superblock(), 77, 1, 0);
    (disk, journal)
}

#[test]
fn a_full_disk_is_written_again_when_there_is_room() {
    let (_path, directory) = directory();
    let (disk, mut journal) = faulty(&directory);
    write(&mut journal, 2);
    for room in [0, 1, 47, 48, 60] {
        disk.0.lock().unwrap().left = room;
        let before = journal.last();
        for _ in 0..3 {
            journal.push(&batch(journal.last() + 1));
            assert!(journal.flush().is_err(), "{room}");
        }
        assert_eq!(read(&directory).unwrap().0, before, "nothing is by half");
        sync(&mut journal);
        assert!(journal.synced() <= before);
        assert!(journal.roll().is_err() || journal.synced() == journal.last());
        disk.0.lock().unwrap().left = usize::MAX;
        journal.flush().unwrap();
        assert_eq!(read(&directory).unwrap().0, before + 3);
        sync(&mut journal);
        assert_eq!(journal.synced(), before + 3);
    }
}

#[test]
fn what_a_failed_sync_was_about_is_written_to_another_file() {
    let (_path, directory) = directory();
    let (disk, mut journal) = faulty(&directory);
    write(&mut journal, 3);
    sync(&mut journal);
    for failures in 1..4 {
        write(&mut journal, 2);
        let before = journal.synced();
        disk.0.lock().unwrap().failing_syncs = failures;
        sync(&mut journal);
        assert_eq!(journal.synced(), before);
        let mut tries = 1;
        while journal.flush().is_err() {
            assert_eq!(journal.synced(), before);
            tries += 1;
        }
        assert_eq!(tries, failures);
        // It is there for good, though the file before lost it.
        assert_eq!(journal.synced(), journal.last());
        assert_eq!(read(&directory).unwrap().0, journal.last());
        write(&mut journal, 1);
        assert_eq!(read(&directory).unwrap().0, journal.last());
    }
    write(&mut journal, 1);
    disk.0.lock().unwrap().failing_syncs = 1;
    assert!(journal.roll().is_err());
    journal.roll().unwrap();
    assert_eq!(read(&directory).unwrap().0, journal.last());
}

/// A sync fails, and whoever was to write it again dies: what comes next is behind a gap.
#[test]
fn what_is_behind_a_gap_is_left_out_until_a_checkpoint_closes_it() {
    let (_path, directory) = directory();
    let (disk, mut first) = faulty(&directory);
    write(&mut first, 3);
    sync(&mut first);
    write(&mut first, 2);
    disk.0.lock().unwrap().failing_syncs = 1;
    sync(&mut first);
    drop(first);
    assert_eq!(read(&directory).unwrap().0, 3, "two batches are lost");
    for life in 0..3 {
        // Each of them finds the gap anew, and is gone before it is closed.
        let history = History::look(&directory, &superblock()).unwrap().unwrap();
        let tail = history.batches::<DiskError>(&mut |_| Ok(())).unwrap();
        let mut next = Journal::new(
            directory.clone(),
            superblock(),
            77,
            history.next(),
            tail.synced,
        );
        for batch in &tail.behind {
            next.push(batch);
        }
        next.flush().unwrap();
        next.skip().unwrap();
        assert_eq!((next.last(), next.synced()), (4, 4));
        write(&mut next, 5);
        next.roll().unwrap();
        write(&mut next, 1);
        sync(&mut next);
        assert_eq!(next.synced(), 10);
        // It is on disk, and of no use.
        assert_eq!(read(&directory).unwrap().0, 3, "life {life}");
        if life == 2 {
            check_point(&directory, &mut next, &[]);
            assert_eq!(read(&directory).unwrap().0, 12);
            next.replaced();
            next.roll().unwrap();
            write(&mut next, 2);
            assert_eq!(read(&directory).unwrap().0, 14);
        }
    }
}
