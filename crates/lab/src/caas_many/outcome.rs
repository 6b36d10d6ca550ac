//! What is kept of a run: numbers.

use serde::{Deserialize, Serialize};

use crate::trial::Spread;

/// What was measured. Times are seconds, shares are from 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaasOutcome {
    /// Databases that write in bursts.
    pub others: Group,
    /// Databases that write all the time.
    pub greedy: Group,
    /// Share of the time of all slots, while writes arrive, in which they worked.
    pub busy: f64,
    /// Jain's index over the others: 1 when each was slowed down as much as the others were, and
    /// one through their number when only one of them was not held up. Of a database counts how
    /// long its jobs would have taken one slot each, as a share of how long they took.
    pub jain: f64,
    /// From the last arrival of a write until the others have nothing left to write or compact;
    /// none: they were not done an hour later.
    pub drain: Option<f64>,
    /// Jobs that relieve level 0 and were sent home as too much while a deeper one of the same
    /// database waited.
    pub bounced_first: u64,
    /// Events that the simulator handled.
    pub events: u64,
}

/// What databases of one group got.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Group {
    /// MiB written while writes arrived.
    pub written: f64,
    /// Time that writes waited for level 0, of all of them together.
    pub stalled: f64,
    /// The same of the one that waited longest.
    pub stalled_worst: f64,
    /// Jobs asked for.
    pub jobs: u64,
    /// Jobs done at home in spite of a pool.
    pub home: u64,
    /// Those of them that relieve level 0.
    pub home_level0: u64,
    /// Those that the control plane sent home as too much.
    pub home_overloaded: u64,
    /// Those that the database took back because it was about to stall.
    pub home_hedge: u64,
    /// From asking until a slot, or the own machine, began, in milliseconds.
    pub queue: Spread,
    /// The same of jobs that relieve level 0.
    pub queue_level0: Spread,
    /// Time of slots that worked for them, of the time that slots worked.
    pub share: f64,
}
