//! What can be set, and why it is what it is.

use manxdb_core::Nanos;

/// How a cluster behaves. The same on all its nodes.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How often a replica reports its clock. A local transaction waits for at most one such
    /// interval beside its round trips; a region sends two messages a node and interval.
    pub report_every: Nanos,
    /// How often a manager looks after its group and for silent nodes.
    pub manager_tick: Nanos,
    /// How long a replica may be silent before it is out.
    pub suspect_after: Nanos,
    /// How often what should have happened is asked for again.
    pub retry_every: Nanos,
    /// How long the home region waits for the timestamps of the others before it gives a
    /// cross-region transaction up.
    pub give_up_after: Nanos,
    /// How often regions tell each other how far they are.
    pub progress_every: Nanos,
    /// How long a client waits before it asks another coordinator.
    pub client_patience: Nanos,
    /// What a region expects between giving a timestamp and hearing the decision, until it has
    /// measured it.
    pub first_estimate: Nanos,
    /// The least it expects, however fast decisions were: floors must reach all nodes of the region
    /// before their clocks do, or local transactions wait.
    pub least_estimate: Nanos,
    /// Replicas keep the order in which transactions ran, for checkers.
    pub keeps_order: bool,
    /// Replicas say what transactions wait for ([`crate::waits`]); costs time, not order.
    pub explains: bool,
    /// Planted defects.
    #[cfg(feature = "mutants")]
    pub mutant: Option<crate::mutants::Mutant>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            report_every: Nanos::from_micros(2_500),
            manager_tick: Nanos::from_millis(5),
            suspect_after: Nanos::from_millis(50),
            retry_every: Nanos::from_millis(250),
            give_up_after: Nanos::from_millis(1_500),
            progress_every: Nanos::from_millis(10),
            client_patience: Nanos::from_secs(2),
            first_estimate: Nanos::from_millis(110),
            least_estimate: Nanos::from_millis(20),
            keeps_order: false,
            explains: false,
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }
}

impl Options {
    /// For regions this far apart, there and back: what is expected of a decision is near what it
    /// will take, from the first one on.
    #[must_use]
    pub fn of_distance(round_trip: Nanos) -> Self {
        Self {
            first_estimate: round_trip + Nanos::from_millis(10),
            ..Self::default()
        }
    }
}
