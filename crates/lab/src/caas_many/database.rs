//! A database that writes: bursts fill memtables, memtables become files of level 0, files are
//! compacted; where level 0 is full, writes wait.

use std::collections::{BTreeMap, BTreeSet};

use manxdb_core::Nanos;
use manxdb_jobs::job::Pressure;
use manxdb_sim::SimTime;

use super::home::Home;
use super::tree::{LAST, Pick, Shape, Tree};
use super::writes::Writes;

/// Full memtables that wait to be written out, at most: with the one that is written to three, as
/// in the store.
const FROZEN_MAX: usize = 2;

/// How long an arrival on level 0 counts for the rate that the control plane is told: the service's
/// own average (`compaction/src/pressure.rs`).
const RATE_MEMORY: f64 = 10.0;

/// What happens next in a database by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// What is written now is written.
    Wrote(SimTime),
    /// The oldest memtable is a file.
    Flushed(SimTime),
}

/// Bytes of an old file that a greedy database rewrites: as much as other jobs have.
const REWRITE: u64 = 512 << 20;

/// What a database may do at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Compactions that its tree wants.
    pub compactions: usize,
    /// Files that it rewrites beside that.
    pub rewrites: usize,
    /// Bytes a second at which a memtable is written out.
    pub flush_speed: u64,
}

/// A compaction that a database wants done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// Counted by the database.
    pub number: u64,
    pub start: usize,
    pub output: usize,
    pub bytes: u64,
    /// Compaction score × 1,000.
    pub score: u64,
}

/// A database.
#[derive(Debug)]
pub(super) struct Database {
    shape: Shape,
    tree: Tree,
    pub writes: Writes,
    pub home: Home,
    limits: Limits,
    /// Those that its tree wants.
    compactions: BTreeMap<u64, Pick>,
    /// Files that are being rewritten.
    rewrites: BTreeSet<u64>,
    begun: u64,
    /// Bytes in the memtable that is written to, and being written to it.
    active: u64,
    writing: Option<u64>,
    frozen: usize,
    is_flushing: bool,
    stalled_since: Option<SimTime>,
    stalled: Nanos,
    initial: u64,
    ingested: u64,
    /// Files that arrive on level 0 an hour, as of a time.
    rate: (f64, SimTime),
}

impl Database {
    pub fn new(shape: Shape, bytes: u64, writes: Writes, home: Home, limits: Limits) -> Self {
        Self {
            shape,
            tree: Tree::filled(shape, bytes),
            writes,
            home,
            limits,
            compactions: BTreeMap::new(),
            rewrites: BTreeSet::new(),
            begun: 0,
            active: 0,
            writing: None,
            frozen: 0,
            is_flushing: false,
            stalled_since: None,
            stalled: Nanos::ZERO,
            initial: bytes,
            ingested: 0,
            rate: (0.0, SimTime::ZERO),
        }
    }

    /// Does what can be done now; what takes time is told.
    pub fn go_on(&mut self, now: SimTime) -> Vec<Next> {
        let mut next = Vec::new();
        self.freeze();
        next.extend(self.flush(now).map(Next::Flushed));
        next.extend(self.write(now).map(Next::Wrote));
        next
    }

    /// A full memtable waits to be written out, when one more may.
    fn freeze(&mut self) {
        let is_full = self.writing.is_none() && self.active == self.shape.memtable;
        if is_full && self.frozen < FROZEN_MAX {
            self.frozen += 1;
            self.active = 0;
        }
    }

    fn flush(&mut self, now: SimTime) -> Option<SimTime> {
        if self.is_flushing || self.frozen == 0 || self.tree.is_stopped() {
            return None;
        }
        self.is_flushing = true;
        let nanos = u128::from(self.shape.memtable) * 1_000_000_000
            / u128::from(self.limits.flush_speed.max(1));
        Some(now + Nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 2)))
    }

    fn write(&mut self, now: SimTime) -> Option<SimTime> {
        if self.writing.is_some() {
            return None;
        }
        let room = self.shape.memtable - self.active;
        if room == 0 {
            if self.writes.want(now) {
                self.stalled_since.get_or_insert(now);
            }
            return None;
        }
        if let Some(since) = self.stalled_since.take() {
            self.stalled += now.since(since);
        }
        let (bytes, done) = self.writes.begin(now, room)?;
        self.writing = Some(bytes);
        Some(done)
    }

    /// What was being written is written.
    pub fn wrote(&mut self) {
        let bytes = self.writing.take().unwrap_or(0);
        self.writes.wrote(bytes);
        self.active += bytes;
        self.ingested += bytes;
    }

    /// The oldest memtable is a file.
    pub fn flushed(&mut self, now: SimTime) {
        self.is_flushing = false;
        self.frozen -= 1;
        self.tree.add(self.shape.memtable);
        self.rate = (self.rate_at(now) + 3_600.0 / RATE_MEMORY, now);
    }

    fn rate_at(&self, now: SimTime) -> f64 {
        let (rate, since) = self.rate;
        rate * (-now.since(since).as_millis_f64() / 1e3 / RATE_MEMORY).exp()
    }

    /// What the control plane is told about level 0.
    pub fn pressure(&self, now: SimTime) -> Pressure {
        let count = |files| u32::try_from(files).unwrap_or(u32::MAX);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a float saturates
        let files_hour = self.rate_at(now) as u32;
        Pressure {
            files: count(self.tree.level0()),
            files_stall: count(self.shape.level0_stop),
            files_hour,
        }
    }

    /// The next compaction, if one is wanted and may begin.
    pub fn compact(&mut self, now: SimTime) -> Option<Wanted> {
        while self.compactions.len() < self.limits.compactions {
            let Some(pick) = self.tree.pick() else { break };
            if pick.is_move() {
                self.tree.install(&pick);
                continue;
            }
            self.begun += 1;
            self.compactions.insert(self.begun, pick);
            return Some(Wanted {
                number: self.begun,
                start: pick.start,
                output: pick.output,
                bytes: pick.bytes(),
                score: pick.score,
            });
        }
        self.rewrite(now)
    }

    /// An old file is rewritten where it is.
    fn rewrite(&mut self, now: SimTime) -> Option<Wanted> {
        if self.rewrites.len() >= self.limits.rewrites || self.writes.are_over(now) {
            return None;
        }
        self.begun += 1;
        self.rewrites.insert(self.begun);
        Some(Wanted {
            number: self.begun,
            start: LAST,
            output: LAST,
            bytes: REWRITE,
            score: 0,
        })
    }

    /// A compaction is done, wherever.
    pub fn compacted(&mut self, number: u64) {
        if let Some(pick) = self.compactions.remove(&number) {
            self.tree.install(&pick);
        } else {
            self.rewrites.remove(&number);
        }
    }

    /// Whether nothing is left to write or to compact. A last memtable that is not full stays.
    pub fn is_done(&self, now: SimTime) -> bool {
        let writes = self.writing.is_some() || self.writes.want(now);
        !writes && self.frozen == 0 && self.compactions.is_empty() && self.rewrites.is_empty()
    }

    /// Time that writes have waited for level 0.
    pub fn stalled(&self, now: SimTime) -> Nanos {
        let present = self.stalled_since.map(|since| now.since(since));
        self.stalled + present.unwrap_or(Nanos::ZERO)
    }

    /// Bytes written to it.
    pub fn ingested(&self) -> u64 {
        self.ingested
    }

    /// That every byte written is somewhere, once.
    pub fn check(&self) -> Result<(), String> {
        self.tree.check()?;
        let memtables = self.active + self.frozen as u64 * self.shape.memtable;
        let (has, had) = (memtables + self.tree.bytes(), self.initial + self.ingested);
        if has == had {
            return Ok(());
        }
        Err(format!("{had} bytes were written, {has} are there"))
    }
}
