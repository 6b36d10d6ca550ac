//! Defects to plant, so that tests can show that they would be found.

/// A planted defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// Attempts are told apart by their number alone, which begins again with an empty disk.
    NoTokens,
    /// The end of any attempt counts, not only that of the present one.
    TakesLateEnds,
    /// Jobs outlive the database that asked for them.
    KeepsJobsOfTheDead,
    /// A worker that is not heard of keeps its leases.
    LeasesForEver,
    /// A control plane whose lease is over goes on as if it led.
    ServesPastItsLease,
    /// What a database waits for and the control plane does not have is not asked for again.
    NeverMends,
    /// What a database was given already makes no difference to what it gets next.
    NoFairShares,
    /// A control plane that starts again, or another one that leads, has forgotten it.
    ForgetsAccounts,
}
