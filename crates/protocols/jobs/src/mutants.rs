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
    /// A control plane continues to lead after its lease has ended.
    ServesPastItsLease,
    /// The control plane does not ask again for jobs that a database waits for and it does not
    /// know.
    NeverMends,
    /// Accounts do not influence which job is next.
    NoFairShares,
    /// A control plane that starts again, or another one that leads, has forgotten it.
    ForgetsAccounts,
}
