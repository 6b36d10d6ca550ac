//! Where clients note what they have committed: in memory of whoever has started them, so that what
//! one has noted outlives it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use manxdb_fabric::shm::{MemoryServer, SharedMemory};
use manxdb_fabric::{Address, Operation, ServerId, WORD, WORD_LENGTH};
use manxdb_rack::drive::Driver;

use crate::cli::RecoveryShape;

/// An interval of a timeline.
pub const EVERY: Duration = Duration::from_millis(10);
/// Phases of a run: before, between and after two kills.
const PHASES: u64 = 3;
/// What a run may take beyond them; what is done later is noted in the last interval.
const BEYOND: Duration = Duration::from_secs(120);

fn path(directory: &Path) -> PathBuf {
    directory.join("board")
}

/// Intervals that each client has room for.
fn intervals(shape: &RecoveryShape) -> u64 {
    let span = Duration::from_secs(PHASES * u64::from(shape.seconds)) + BEYOND;
    u64::try_from(span.as_millis() / EVERY.as_millis()).unwrap_or(u64::MAX)
}

/// The memory with all notes.
pub struct Board {
    memory: MemoryServer,
    intervals: u64,
}

impl Board {
    /// Offers it.
    ///
    /// # Errors
    /// The system's.
    pub fn start(directory: &Path, shape: &RecoveryShape) -> io::Result<Self> {
        let intervals = intervals(shape);
        let bytes = intervals * WORD * u64::from(shape.clients);
        let memory = MemoryServer::start(&path(directory), ServerId(0), bytes)?;
        memory.populate()?;
        Ok(Self { memory, intervals })
    }

    /// What a client has committed in each interval, up to a time since it was told to go.
    pub fn of(&self, client: u16, upto: Duration) -> Vec<u64> {
        let count = (upto.as_millis() / EVERY.as_millis()).saturating_add(1);
        let count = u64::try_from(count).unwrap_or(u64::MAX).min(self.intervals);
        let bytes = usize::try_from(count * WORD).unwrap_or(0);
        let begin = u64::from(client) * self.intervals * WORD;
        let copy = self.memory.read(begin, bytes);
        let words = copy.as_chunks::<WORD_LENGTH>().0.iter();
        words.map(|word| u64::from_le_bytes(*word)).collect()
    }

    /// What a client has committed in all.
    pub fn sum(&self, client: u16) -> u64 {
        self.of(client, Duration::MAX).iter().sum()
    }
}

/// A client's own part of the board.
pub struct Notes {
    driver: Driver<SharedMemory>,
    begin: u64,
    intervals: u64,
    since: Instant,
    /// The interval of now, and what is done in it.
    at: u64,
    count: u64,
}

impl Notes {
    /// Finds it; time begins now.
    ///
    /// # Errors
    /// The board is not there.
    pub fn open(directory: &Path, shape: &RecoveryShape, client: u16) -> io::Result<Self> {
        let mut memory = SharedMemory::default();
        let connected = memory.connect(&path(directory), client.into());
        connected.map_err(io::Error::other)?;
        let intervals = intervals(shape);
        Ok(Self {
            driver: Driver::new(memory),
            begin: u64::from(client) * intervals * WORD,
            intervals,
            since: Instant::now(),
            at: 0,
            count: 0,
        })
    }

    /// Time begins now.
    pub fn begin(&mut self) {
        self.since = Instant::now();
    }

    /// Notes a commit, just now.
    ///
    /// # Errors
    /// The board is gone.
    pub fn committed(&mut self, now: Instant) -> io::Result<()> {
        let interval = (now - self.since).as_millis() / EVERY.as_millis();
        let interval = u64::try_from(interval).unwrap_or(u64::MAX);
        let interval = interval.min(self.intervals - 1);
        if interval != self.at {
            (self.at, self.count) = (interval, 0);
        }
        self.count += 1;
        let at = Address {
            server: ServerId(0),
            offset: self.begin + interval * WORD,
        };
        let bytes = self.count.to_le_bytes().to_vec();
        let noted = self.driver.ask(vec![Operation::Write { at, bytes }]);
        noted.map_err(io::Error::other)?;
        match self.driver.fault() {
            None => Ok(()),
            Some(fault) => Err(io::Error::other(fault)),
        }
    }
}
