//! Defects to plant, so that tests can show that they would be found.

/// A planted defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// A line of the vector says nothing of what its thread had seen.
    ForgetsWhatWasSeen,
    /// A version is written over that the session has not seen.
    WritesOverTheUnseen,
    /// A swap that fails is taken for one's own.
    TakesEveryLock,
    /// What was read is not looked at again.
    NeverValidates,
    /// Who loses the swap of an entry does not look whose it is.
    AddsWithoutLooking,
    /// A transaction is published before it is installed.
    PublishesFirst,
    /// What is installed was not logged before.
    InstallsBeforeItLogs,
    /// The newest version is taken, whatever the snapshot says.
    ReadsTheNewest,
    /// A lock is taken over whoever has it.
    TakesLocksOver,
    /// The number under which a dead thread had locked is left to whoever has its place next.
    NeverCloses,
    /// An owner is recovered without being shut out.
    RecoversTheLiving,
    /// A recovery coordinator leads while the one before it still writes.
    SucceedsTheLiving,
    /// A lease is judged by its owner's clock.
    BelievesClocks,
    /// A record is unlocked before its backups are written.
    UnlocksBeforeBackups,
    /// A swapped word of a directory is left to its primary.
    EntersAtThePrimaryAlone,
    /// An entry that somebody else makes is relied on before it is everywhere.
    ReliesOnHalfAnEntry,
    /// A snapshot is taken from one replica.
    BeginsAtThePrimaryAlone,
    /// After the loss of a server nobody looks at the logs.
    PromotesWithoutDraining,
    /// What a log has is installed though others have seen it and written over it.
    DrainsWhatWasPublished,
    /// Those with the map of before are not shut out.
    AcceptsTheStale,
    /// Records are copied to a new replica without a lock.
    RefillsWithoutLocks,
    /// Who proposes does not look what was accepted before.
    ForgetsWhatWasAccepted,
    /// One that answers is taken for most.
    DecidesWithoutMost,
    /// What lies where a version was kept is taken for it, whatever record it is of.
    TakesAnothersVersion,
    /// A version that is pushed out is not kept, and those before it stay linked.
    LinksOverAGap,
    /// Who swaps a word of the table of places leaves it to its primary.
    SlotsAtThePrimaryAlone,
    /// Who takes a place does not ask whether the epoch is about to end.
    JoinsWithoutAsking,
    /// The places of those who may live on are free after a loss.
    KeepsNoPlaces,
    /// A recovery coordinator that is elected in the map of a loss leads at once.
    LeadsBeforeItRestores,
    /// Who restores shuts out the recovery coordinators before it, and no owners.
    RestoresUnderTheLiving,
    /// A bound is taken for agreed whoever heeds it.
    AsksNobody,
    /// A record goes on to other rows without having been deleted once more.
    LeavesRecordsAsTheyAre,
    /// Nodes are given away as soon as they are out of the tree.
    GivesNodesAtOnce,
    /// Nobody asks whether a snapshot includes the bound.
    ReadsWhatIsTooOld,
    /// A record is written without a lock under a key that others know.
    WritesTheKnownUnlocked,
    /// Of several keys that a leaf gets, it gets the last.
    EntersTheLastKeyAlone,
    /// Of the places that keys got together, the first is counted as given away.
    CountsRoomOnce,
    /// What a client has drawn stays in the free-extent record of its place.
    UsesWhatIsInTheFreeExtentRecord,
    /// A lapse is counted over the time that a recovery coordinator waits for an answer.
    CountsTheWait,
    /// What is published and in no log is taken for written.
    GoesOnOverAGap,
    /// What is written behind a gap counts as synced before the gap is closed.
    PromisesOverAGap,
    /// What is logged is written over what the log archiver has not written.
    OverwritesTheUnwritten,
    /// The log archiver takes what is logged for published.
    DrainsWhatIsLogged,
    /// An answer waits for what its own transaction wrote, not for what it had seen.
    WaitsForItselfAlone,
    /// Of two versions of a record that of the thread with the larger number is the later one.
    ReplaysByThread,
    /// A checkpoint is complete as soon as all is on disk that was published at its end.
    CompletesTooEarly,
}
