//! Defects of the vault for the tests to catch, planted in the thread that uses it.

/// A defect to plant, each of which a named test must catch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VaultMutant {
    /// A key is erased in memory, and its slots stay.
    KeptSlot,
    /// The slot in the mirror stays.
    KeptMirror,
    /// What is written is not waited for.
    SkippedSync,
    /// A rotation writes the mirror together with the first place.
    BothPlacesAtOnce,
}

#[cfg(feature = "mutants")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<VaultMutant>> = const { std::cell::Cell::new(None) };
}

/// Plants a defect in this thread, or takes it away.
#[cfg(feature = "mutants")]
pub fn plant(mutant: Option<VaultMutant>) {
    PLANTED.set(mutant);
}

/// Whether a defect is planted.
pub(crate) fn is_planted(mutant: VaultMutant) -> bool {
    #[cfg(feature = "mutants")]
    return PLANTED.get() == Some(mutant);
    #[cfg(not(feature = "mutants"))]
    {
        let _ = mutant;
        false
    }
}
