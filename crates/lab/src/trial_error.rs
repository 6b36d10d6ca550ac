//! Why a trial has no outcome.

use manxdb_core::Core as _;
use manxdb_sim::{System, World};

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

/// That the invariants of every core hold. For runs with many nodes, which look now and then: a look after
/// each step takes longer there than the steps.
///
/// # Errors
/// [`TrialError::Broken`].
pub(crate) fn check_cores<S: System>(world: &World<S>) -> Result<(), TrialError> {
    for (node, core) in world.cores() {
        let broken = |what| TrialError::Broken(format!("{node:?} at {:?}: {what}", world.now()));
        core.check().map_err(broken)?;
    }
    Ok(())
}
