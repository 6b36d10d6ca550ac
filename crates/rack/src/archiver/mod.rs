//! The process that writes what is committed to disk, and brings it back ([decision 23]).
//!
//! Each memory server has one; of all of them that one works which has the turn of the directory.
//!
//! | question | answered in |
//! |---|---|
//! | who works, and what the others do | here |
//! | what was published, written again and again | [`run_loop`] |
//! | a disk that is slow, or fails | [`line`] |
//! | all memory, copied while transactions go on | [`copy`] |
//! | memory servers that were started again | [`restore`] |
//! | what it has done, for people | [`tally`] |
//!
//! It never ends by itself: whatever is in its way is said once, and tried again.
//!
//! [decision 23]: ../../../../docs/decisions/023-one-log-archiver-writes-what-is-published.md

mod copy;
mod restore;
mod run_loop;
mod stats;
mod sync_queue;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use manxdb_core::Random;
use manxdb_core::last_failure::LastFailure;
use manxdb_rsi::{Batch, ReplayError, Snapshot};

pub use self::stats::ArchiverStats;
use crate::disk::{Directory, DiskError};
use crate::memory::{Memory, MemoryError, Transport, Watched, watch};

/// Between two looks at whose turn it is, and two tries of what has failed.
const PAUSE: Duration = Duration::from_millis(200);
/// Doublings of that pause while rows cannot be restored: each try may read a whole checkpoint.
const DOUBLINGS_MAX: u32 = 4;
/// How long one that is to end waits for what is published to be on disk.
const LAST: Duration = Duration::from_secs(10);
const _: () = assert!(
    PAUSE.as_millis() << DOUBLINGS_MAX < LAST.as_millis(),
    "one that is to end looks often enough whether all is on disk"
);

/// What is in a log archiver's way.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// Files.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Memory servers.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// What is in files.
    #[error("{0}")]
    Replay(#[from] ReplayError),
    /// Memory servers wait for rows that the files do not give.
    #[error(
        "rows cannot be restored, and nobody is served: {0}: put that file back as it was, or start all \
         memory servers with another --disk and without these rows"
    )]
    NotRestored(Box<ArchiveError>),
    /// The directory is not the one that the memory servers say.
    #[error("the directory {0} is not the one that rows of these memory servers are written to")]
    Elsewhere(String),
}

/// How a log archiver works.
pub struct LogArchiver<'k, W> {
    /// To the memory servers.
    pub way: &'k W,
    /// Where files are.
    pub directory: &'k Directory,
    /// Bytes of batches behind a checkpoint before there is another one, at least.
    pub floor: u64,
    /// It is to end.
    pub stop: &'k AtomicBool,
    /// Hears of what people should know.
    pub note: &'k (dyn Fn(&str) + Sync),
    /// Counts what it does.
    pub tally: &'k ArchiverStats,
}

impl<W: Transport + Clone> LogArchiver<'_, W> {
    /// Waits for its turn, and works until it is to end; all that is published then is on disk, unless
    /// that takes too long. Numbers are drawn from the seed: no other process has the same.
    pub fn run(&self, seed: u64) {
        let mut random = Random::stream(seed, &[0x6b65_6570]);
        let (mut last, mut same, mut is_news) = (LastFailure::default(), 0_u32, true);
        let mut turn = None;
        while !self.is_over() {
            let done = match &turn {
                None => self.directory.take_turn().map(|taken| turn = taken),
                Some(_) => Ok(()),
            };
            assert!(
                turn.is_some() || !self.tally.is_at_work.load(Ordering::Relaxed),
                "who has had the turn of the directory keeps it"
            );
            let done = match &turn {
                Some(_) => {
                    self.tally.is_at_work.store(true, Ordering::Relaxed);
                    self.work(&mut random, is_news)
                }
                None => done.map_err(ArchiveError::from),
            };
            self.tally.failures.add(u64::from(done.is_err()));
            is_news = !matches!(done, Err(ArchiveError::NotRestored(_)));
            let done = done.map_err(told);
            if let Some(news) = last.news(&done) {
                (self.note)(news);
            }
            same = if is_news { 0 } else { same.saturating_add(1) };
            self.tally.set_trouble(&done.err().unwrap_or_default());
            self.rest(PAUSE * (1 << same.min(DOUBLINGS_MAX)));
        }
        if turn.is_none() {
            self.outlast(random.next_bits());
        }
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sleeps for so long, or until it is to end.
    fn rest(&self, span: Duration) {
        let until = Instant::now() + span;
        while !self.is_over() && Instant::now() < until {
            thread::sleep(PAUSE.min(span));
        }
    }

    /// Until it is to end, or something is in the way. It says that it restores rows where `is_news`.
    fn work(&self, random: &mut Random, is_news: bool) -> Result<(), ArchiveError> {
        let memory = match Memory::open(self.way.clone(), random.next_bits()) {
            Err(MemoryError::Waiting) => {
                self.restore(random.next_bits(), is_news)
                    .map_err(not_restored)?;
                Memory::open(self.way.clone(), random.next_bits())?
            }
            opened => opened?,
        };
        self.tally.set_trouble(""); // what was in the way is not
        let (watched, off) = (Watched::default(), AtomicBool::new(false));
        thread::scope(|scope| {
            let coordinator = || watch(&memory, &watched, &off, self.note);
            scope.spawn(coordinator);
            let done = self.run_loop(&memory, scope);
            off.store(true, Ordering::Relaxed);
            done
        })
    }

    /// Whose memory goes with it waits until whoever works has written what is there.
    fn outlast(&self, seed: u64) {
        let waited = Memory::open(self.way.clone(), seed);
        // Or there is nobody who could write it.
        let _ = waited.and_then(|memory| memory.await_all(Instant::now() + LAST));
    }
}

/// What people hear of what is in its way.
fn told(why: ArchiveError) -> String {
    match why {
        ArchiveError::NotRestored(_) => why.to_string(),
        why => format!("rows are not written to disk for now: {why}"),
    }
}

/// Files that do not give rows back are the operator's to see to; memory servers that are not all
/// there yet come by themselves.
fn not_restored(why: ArchiveError) -> ArchiveError {
    match why {
        ArchiveError::Disk(_) | ArchiveError::Replay(_) => ArchiveError::NotRestored(Box::new(why)),
        why => why,
    }
}

/// A cut as files have it.
fn encode(formation: u64, number: u64, cut: &Snapshot) -> Vec<u8> {
    let batch = Batch {
        formation,
        number,
        cut: cut.clone(),
        entries: Vec::new(),
    };
    let bytes = batch.encode();
    assert!(
        Batch::decode(&bytes).is_some_and(|(read, length)| read == batch && length == bytes.len()),
        "a cut is read from a file as it was written"
    );
    bytes
}
