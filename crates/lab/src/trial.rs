//! One run of transactions: everything that decides it, and everything that is kept of it.
//!
//! A trial is a pure function: equal trials have equal outcomes, whatever runs beside them.

mod clients;
mod outcome;
mod run;

use manxdb_workloads::Topology;
pub use manxdb_workloads::tpcc::PaymentSums;
use serde::{Deserialize, Serialize};

use crate::candidate::Candidate;
use crate::systems::{ForSystem, SystemName};
use crate::trial_error::TrialError;

pub use self::outcome::{Spread, TrialOutcome};
pub(crate) use self::outcome::{millis, round};
use self::run::measure;

/// The kind of experiments whose trials are these.
#[derive(Debug, Clone, PartialEq)]
pub enum Transactions {}

/// All that decides a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The system under test.
    pub system: SystemName,
    /// R.
    pub regions: u32,
    /// N.
    pub shards_per_region: u32,
    /// Client processes of each shard.
    pub clients_per_shard: u32,
    /// Requests each of them has under way; each such place is a terminal of its own.
    pub outstanding: u32,
    /// What they ask.
    pub workload: Workload,
    /// Size of a warehouse.
    pub warehouse: Warehouse,
    /// Which sums payments of TPC-C add to.
    #[serde(default)]
    pub payment_sums: PaymentSums,
    /// Messages between regions take up to so much more or less than 50 ms, evenly spread.
    pub wan_jitter_ms: u32,
    /// What work costs a server.
    pub cpu: Cpu,
    /// Not measured.
    pub warm_up_ms: u64,
    /// Measured: what is answered in this span after the warm-up.
    pub measured_ms: u64,
    /// Decides everything random.
    pub seed: u64,
}

/// What clients ask.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// All five transactions of TPC-C, with the parameters published.
    Tpcc,
    /// TPC-C's payments alone.
    Payment {
        /// Share that leaves the region, from 0 to 1.
        cross_region: f64,
    },
    /// Three increments of keys of a Zipf distribution; a tenth leaves the region.
    Tpca {
        /// Exponent of the distribution.
        alpha: f64,
    },
    /// Reads of lists and appends to them; a tenth leaves the region, and a fifth of all has parts that
    /// wait for what others find, on lists that local calls use too.
    Append {
        /// Lists of each shard.
        lists: u32,
    },
}

/// Size of a warehouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Warehouse {
    /// 3 districts, 12 customers each, 40 items: for tests.
    Tiny,
    /// TPC-C's.
    Full,
}

/// What work costs a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cpu {
    /// What [`manxdb_sim::CostModel`] says: servers have a line, and a throughput they cannot
    /// exceed.
    Modelled,
    /// Nothing: message delays alone.
    Free,
}

impl Trial {
    /// The cluster's shape.
    #[must_use]
    pub fn topology(&self) -> Topology {
        Topology {
            regions: self.regions,
            shards_per_region: self.shards_per_region,
        }
    }

    /// Requests under way in each region.
    #[must_use]
    pub fn clients_per_region(&self) -> u32 {
        self.clients_per_shard * self.outstanding * self.shards_per_region
    }

    /// About how many events it takes, to say how much longer others will: servers' reports, and
    /// what transactions ask for at the rate that the clients or the servers allow.
    #[must_use]
    pub fn expected_events(&self) -> f64 {
        let seconds =
            f64::from(u32::try_from(self.warm_up_ms + self.measured_ms).unwrap_or(u32::MAX)) / 1e3;
        let shards = f64::from(self.topology().shards());
        let (crossing, most) = match self.workload {
            Workload::Tpcc => (0.1, 2_400.0),
            Workload::Payment { cross_region } => (cross_region, 6_000.0),
            Workload::Tpca { .. } | Workload::Append { .. } => (0.1, 8_000.0),
        };
        let asked =
            f64::from(self.clients_per_shard * self.outstanding) / (0.013 + 0.205 * crossing);
        let rate = if self.cpu == Cpu::Modelled {
            asked.min(most)
        } else {
            asked
        };
        let notices = f64::from(12 * self.shards_per_region + 40);
        seconds * shards * (3.0 * 800.0 + rate * (12.0 + crossing * notices))
    }

    /// Runs it; `progress` hears which share of it is done.
    ///
    /// # Errors
    /// [`TrialError`].
    pub fn run(&self, progress: &mut dyn FnMut(f64)) -> Result<TrialOutcome, TrialError> {
        self.check()?;
        self.system.with(Measuring {
            trial: self,
            progress,
        })
    }

    fn check(&self) -> Result<(), TrialError> {
        let unfit = |what, value: String, allowed| {
            Err(TrialError::Unfit {
                what,
                value,
                allowed,
            })
        };
        for (what, value) in [
            ("the number of regions", self.regions),
            ("the number of shards", self.shards_per_region),
            ("the number of clients", self.clients_per_shard),
            ("the number of outstanding requests", self.outstanding),
        ] {
            if !(1..=1_000).contains(&value) {
                return unfit(what, value.to_string(), "between 1 and 1000");
            }
        }
        let share = match self.workload {
            Workload::Tpcc => return Ok(()),
            Workload::Append { lists } => {
                if (1..=64).contains(&lists) {
                    return Ok(());
                }
                return unfit("the number of lists", lists.to_string(), "between 1 and 64");
            }
            Workload::Payment { cross_region } => cross_region,
            Workload::Tpca { alpha } => alpha,
        };
        if !(0.0..=1.0).contains(&share) {
            return unfit(
                "the workload's share or exponent",
                share.to_string(),
                "between 0 and 1",
            );
        }
        Ok(())
    }
}

/// Runs a trial of the system whose type is found by its name.
struct Measuring<'a> {
    trial: &'a Trial,
    progress: &'a mut dyn FnMut(f64),
}

impl ForSystem for Measuring<'_> {
    type Outcome = Result<TrialOutcome, TrialError>;

    fn run<S: Candidate>(self) -> Self::Outcome {
        measure::<S>(self.trial, self.progress)
    }
}
