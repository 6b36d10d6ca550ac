//! Many databases share few workers: what each of them waits for, by the policy that chooses jobs.
//!
//! Databases write in bursts, and some write all the time ([`writes`]); memtables become files,
//! and files are compacted ([`database`], [`tree`]). Compactions go through the real cores of the
//! service (`manxdb_jobs`: client, control plane, worker) over a simulated network ([`drive`]).
//! What is modelled is what compacting means: bytes read at a speed, and where they are then.
//! That every byte written is somewhere and that every job ends once is checked in each run.
//!
//! # Where the numbers come from
//!
//! | number | value | from |
//! |---|---|---|
//! | memtable, file | 64 MiB each | the store's defaults (`storage/src/rocks/options.rs`) |
//! | memtables | 3 | the store's (`FROZEN_MAX` in `storage/src/rocks/store.rs`) |
//! | files on level 0: compacted at, writes stop at | 4, 36 | RocksDB's default; the store's, which has no slowdown before (`FILES_BEFORE_STOP`) |
//! | base level, ratio of levels | 256 MiB, 10 | RocksDB's defaults, which the store keeps |
//! | compactions at a time, with a pool | 5 | `serve` asks for 6 background jobs, of which RocksDB keeps one for flushes |
//! | compactions at a time, without | 1 | the store's 2 background jobs, of which RocksDB keeps one for flushes |
//! | patience, beats, leases, limits | | defaults of `manxdb_jobs` |
//! | words about level 0 | every 2 s while there is something to say, rate averaged over 10 s | `compaction/src/pressure.rs`, which looks every 250 ms |
//! | a job's start at a worker | 50 ms | between the 3 and 100 ms measured for opening a database |
//! | network, sync of the control plane | 0.25 ms one way, 1 ms between zones; 1 ms | chosen |
//! | greedy database | as another, and rewrites of files of 512 MiB on its last level, many at once | chosen: RocksDB's periodic compaction of a large database, whose operator has found that slots of a pool cost nothing |
//! | speeds, sizes, bursts | see [`Trial`] | see [`Trial`] |
//!
//! The control plane's own CPU costs nothing here.

mod database;
mod drive;
mod home;
mod measured;
mod outcome;
mod pool;
mod run;
mod tree;
mod writes;

use manxdb_jobs::Policy;
use serde::{Deserialize, Serialize};

pub use self::outcome::{CaasOutcome, Group};
pub use self::run::run_with;
use crate::figure::Look;
use crate::trial_error::TrialError;

/// The kind of experiments whose trials are these.
#[derive(Debug, Clone, PartialEq)]
pub enum Sharing {}

/// Who compacts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Who {
    /// A pool, by ManxDB's policy.
    Manxdb,
    /// A pool, as CaaS-LSM's public code chooses.
    CaasLevel,
    /// A pool: a worker drawn at random for each job, in the order of arrival.
    Random,
    /// A pool: each database has one worker.
    Static,
    /// Each database by itself.
    Local,
}

impl Who {
    /// All of them, in the order of legends.
    pub const ALL: [Who; 5] = [
        Who::Manxdb,
        Who::CaasLevel,
        Who::Random,
        Who::Static,
        Who::Local,
    ];

    /// The policy of the pool, if there is one.
    #[must_use]
    pub fn policy(self) -> Option<Policy> {
        match self {
            Self::Manxdb => Some(Policy::Manxdb),
            Self::CaasLevel => Some(Policy::CaasLevel),
            Self::Random => Some(Policy::Random),
            Self::Static => Some(Policy::Static),
            Self::Local => None,
        }
    }

    /// In figures and tables.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.policy().map_or("local", Policy::name)
    }

    /// In figures, the same in all of them.
    #[must_use]
    pub fn look(self) -> Look {
        Look::of(self as usize)
    }
}

/// All that decides a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Who compacts.
    pub who: Who,
    /// Databases, the greedy ones among them.
    pub databases: u32,
    /// Those of them that are greedy.
    pub greedy: u32,
    /// A greedy one rewrites old files, so many compactions at once, as long as writes arrive.
    pub asks: u32,
    /// Workers of the pool.
    pub workers: u32,
    /// Jobs that each runs at a time.
    pub slots: u32,
    /// MiB of inputs that a slot compacts in a second.
    pub slot_speed: u32,
    /// MiB of inputs that a database's own machine compacts in a second, all its jobs together:
    /// it has queries to answer.
    pub home_speed: u32,
    /// MiB that a database writes in a second while it writes.
    pub write_speed: u32,
    /// Mean MiB of a burst of writes; sizes are exponential.
    pub burst: u32,
    /// Mean seconds between bursts of a database; they arrive as a Poisson process.
    pub gap: u32,
    /// Writes arrive for so many minutes of virtual time; then what is left is compacted.
    pub minutes: u32,
    /// Decides everything random.
    pub seed: u64,
}

impl Trial {
    /// Bytes a second that a database writes on average, and a greedy one all the time.
    fn mean_speed(&self) -> u64 {
        (u64::from(self.burst) << 20) / u64::from(self.gap).max(1)
    }

    /// About how many events it takes: beats, mostly.
    #[must_use]
    pub fn expected_events(&self) -> f64 {
        let nodes = f64::from(self.databases + self.workers);
        let seconds = f64::from(self.minutes) * 60.0;
        let words = if self.who == Who::Local { 0.5 } else { 8.0 };
        seconds * nodes * words * 1.3
    }

    /// Runs it; `progress` hears which share of it is done.
    ///
    /// # Errors
    /// [`TrialError`].
    pub fn run(&self, progress: &mut dyn FnMut(f64)) -> Result<CaasOutcome, TrialError> {
        run_with(self, |_| (), progress)
    }

    fn check(&self) -> Result<(), TrialError> {
        let all = self.databases;
        for (what, value, allowed, fits) in [
            (
                "the number of databases",
                all,
                "2 to 10000",
                (2..=10_000).contains(&all),
            ),
            (
                "the number of greedy databases",
                self.greedy,
                "less than that of all",
                self.greedy < all,
            ),
            (
                "the number of workers",
                self.workers,
                "1 to 1000",
                (1..=1_000).contains(&self.workers),
            ),
            (
                "the number of slots",
                self.slots,
                "1 to 64",
                (1..=64).contains(&self.slots),
            ),
            (
                "a slot's speed",
                self.slot_speed,
                "at least 1 MiB/s",
                self.slot_speed > 0,
            ),
            (
                "a home's speed",
                self.home_speed,
                "at least 1 MiB/s",
                self.home_speed > 0,
            ),
            (
                "the speed of writes",
                self.write_speed,
                "at least 1 MiB/s",
                self.write_speed > 0,
            ),
            (
                "the size of bursts",
                self.burst,
                "at least 1 MiB",
                self.burst > 0,
            ),
            (
                "the time between bursts",
                self.gap,
                "at least 1 s",
                self.gap > 0,
            ),
            (
                "the length of the run",
                self.minutes,
                "1 to 1440 minutes",
                (1..=1_440).contains(&self.minutes),
            ),
        ] {
            if !fits {
                let value = value.to_string();
                return Err(TrialError::Unfit {
                    what,
                    value,
                    allowed,
                });
            }
        }
        Ok(())
    }
}
