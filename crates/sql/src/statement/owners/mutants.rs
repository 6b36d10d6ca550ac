//! Defects of ownership for the tests to catch, planted in the thread that runs the statements.

/// A defect to plant, each of which a named test must catch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnershipMutant {
    /// The facts that a check reads are not validated at commit.
    SkippedValidation,
    /// A row that ceases to own another is not noted.
    KeptOwner,
    /// Rows that are owned through one that has lost its owners are not looked at.
    SkippedDependents,
    /// New rows are not sealed.
    PlainRow,
    /// New keys of indexes and rows are not blinded.
    PlainKey,
    /// Rows below one that gets another key keep the old one.
    KeptBelow,
    /// Keys of a person who is forgotten are not ordered to be erased.
    KeptKey,
    /// ON DEL rules are not applied.
    SkippedRule,
    /// What views keep for readers of older snapshots stays when a person is forgotten.
    KeptViews,
    /// FORGET does not look at holds.
    IgnoredHold,
    /// A RELEASE does not erase what was put off for the hold.
    KeptAfterRelease,
    /// UNDO takes back a request whose grace is over.
    UndoneTooLate,
    /// RETAIN keeps nothing.
    IgnoredRetention,
    /// RETAIN keeps rows for one day less than it says.
    RetentionOfADayLess,
    /// The key of a row that stays is erased with those of rows that go, and the row has no other.
    KeptUnderErasedKey,
}

#[cfg(feature = "mutants")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<OwnershipMutant>> = const { std::cell::Cell::new(None) };
}

/// Plants a defect in this thread, or takes it away.
#[cfg(feature = "mutants")]
pub fn plant(mutant: Option<OwnershipMutant>) {
    PLANTED.set(mutant);
}

/// Whether a defect is planted.
pub(crate) fn is_planted(mutant: OwnershipMutant) -> bool {
    #[cfg(feature = "mutants")]
    return PLANTED.get() == Some(mutant);
    #[cfg(not(feature = "mutants"))]
    {
        let _ = mutant;
        false
    }
}
