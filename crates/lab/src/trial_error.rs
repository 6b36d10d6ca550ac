//! Why a trial has no outcome.

/// A trial cannot be run, or went wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrialError {
    /// A number is outside of what makes sense.
    #[error("{what} is {value}; it must be {allowed}")]
    Unfit {
        /// Which number.
        what: &'static str,
        /// What it is.
        value: String,
        /// What it may be.
        allowed: &'static str,
    },
    /// A node broke one of its own invariants.
    #[error("an invariant broke: {0}")]
    Broken(String),
    /// A process of a run failed, or could not be had.
    #[error("{0}")]
    Failed(String),
}
