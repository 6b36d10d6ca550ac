//! A stream of random numbers for each purpose: a draw more in one place shifts no other.

use manxdb_core::{NodeId, Random};

/// What numbers are drawn for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// How long messages take.
    Delay,
    /// Which messages are lost.
    Loss,
    /// Which arrive twice.
    Duplicate,
    /// Which are held up.
    Reorder,
    /// Offsets and drifts of clocks.
    Clock,
    /// What crashes leave of un-synced records.
    Disk,
    /// Which faults happen.
    Plan,
    /// What the workload asks for.
    Workload,
    /// What a system under test draws itself, through its driver.
    System,
    /// Which bits of datagrams flip.
    Flip,
    /// How long an idle process takes to wake up.
    Wakeup,
}

/// Numbers of the whole run for one purpose.
pub fn of_run(seed: u64, purpose: Purpose) -> Random {
    Random::stream(seed, &[u64::MAX, purpose as u64])
}

/// Numbers of one node for one purpose.
pub fn of_node(seed: u64, node: NodeId, purpose: Purpose) -> Random {
    Random::stream(seed, &[u64::from(node.0), purpose as u64])
}
