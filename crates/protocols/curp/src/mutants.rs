//! Defects to plant, so that tests can show that they would be found.

/// A planted defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// A witness goes on recording after it was read for recovery.
    NoFreeze,
    /// A witness records what conflicts with another record.
    WitnessIgnoresConflict,
    /// A record that was given up half-way leaves its ids like one that was collected.
    TombstoneOfAborted,
    /// Witnesses forget what no backup has yet.
    GcBeforeSync,
    /// Recovery takes the records of two witnesses.
    MixedWitnesses,
    /// Acknowledgements inside replayed requests are believed.
    AckInReplay,
    /// Backups take the log of a master that was replaced.
    NoEpoch,
    /// A client is content with one witness less than all.
    QuorumInsteadOfAll,
    /// A master answers at once although an earlier update of a key is not synced.
    NoConflictCheck,
    /// One backup's acknowledgement counts as a sync.
    SyncOfOne,
    /// A master does not look for what it has executed already.
    NoRifl,
    /// A master answers reads without a lease.
    NoLease,
    /// A master answers reads of keys that are not synced.
    ReadsUnsynced,
    /// A script that touched undeclared keys is answered at once.
    UndeclaredTrusted,
    /// Replay keeps a script that touches undeclared keys.
    ReplaysUndeclared,
    /// The master runs commands at its own time and luck, not at those recorded.
    StampIgnored,
    /// A master opens before its log is on its backups.
    OpensBeforeSync,
    /// A new master replays no witness.
    NoReplay,
    /// A client counts acceptances of one view and a reply of another.
    MixedViews,
    /// A backup keeps what the new master does not have.
    TailNotCut,
    /// A server says that it has entries before they are on its disk.
    AcknowledgedUnpersisted,
    /// A cluster that was stopped whole begins again from the shortest log.
    ShortestLog,
    /// A cluster that was stopped whole begins again from any server's log, also of an earlier view.
    AnyStore,
    /// A cluster whose memory is the only certain copy begins again before all its servers are back.
    RestoresEarly,
    /// A new backup leaves a piece of its copy out.
    PieceSkipped,
    /// A new backup goes on with pieces of another copy.
    CutsMixed,
    /// A new backup begins to take the log before it has the last piece of its copy.
    LogBeforeLastPiece,
    /// A new backup counts as having what its master served while it got its copy.
    JoinsWithoutLog,
    /// A copy that was made while a view was served counts as all that was acknowledged in it.
    AnyCopyComplete,
    /// What a spare that follows the log has counts as a sync in place of what a backup has.
    FollowerCounts,
    /// A spare that follows the log may become master in place of a backup.
    FollowerTakesOver,
    /// A spare counts as having what is not kept for it any more, and so does it itself.
    GapSkipped,
    /// A master goes on with any log that ends within its own.
    AnyLogMatches,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Mutant; 33] = [
        Mutant::NoFreeze,
        Mutant::WitnessIgnoresConflict,
        Mutant::TombstoneOfAborted,
        Mutant::GcBeforeSync,
        Mutant::MixedWitnesses,
        Mutant::AckInReplay,
        Mutant::NoEpoch,
        Mutant::QuorumInsteadOfAll,
        Mutant::NoConflictCheck,
        Mutant::SyncOfOne,
        Mutant::NoRifl,
        Mutant::NoLease,
        Mutant::ReadsUnsynced,
        Mutant::UndeclaredTrusted,
        Mutant::ReplaysUndeclared,
        Mutant::StampIgnored,
        Mutant::OpensBeforeSync,
        Mutant::NoReplay,
        Mutant::MixedViews,
        Mutant::TailNotCut,
        Mutant::AcknowledgedUnpersisted,
        Mutant::ShortestLog,
        Mutant::AnyStore,
        Mutant::RestoresEarly,
        Mutant::PieceSkipped,
        Mutant::CutsMixed,
        Mutant::LogBeforeLastPiece,
        Mutant::JoinsWithoutLog,
        Mutant::AnyCopyComplete,
        Mutant::FollowerCounts,
        Mutant::FollowerTakesOver,
        Mutant::GapSkipped,
        Mutant::AnyLogMatches,
    ];
}

/// A defect planted in the machine that decides which slots a group owns ([`crate::slots`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SlotMutant {
    /// What a group owns is looked at when a client asks, and not when a record is replayed.
    OwnershipInRefuses,
    /// A source goes on executing commands on slots that it has given.
    GiveWithoutEffect,
    /// Commands behind a source's giving of slots are answered before it is synced.
    GiveTouchesNothing,
    /// A target owns slots before it has the last piece of their keys.
    OwnBeforeLastPiece,
    /// A source takes slots back that it has let its target own.
    CancelReleased,
    /// Commands behind a source's taking back of slots are answered before it is synced.
    CancelTouchesNothing,
}

impl SlotMutant {
    /// All of them.
    pub const ALL: [SlotMutant; 6] = [
        SlotMutant::OwnershipInRefuses,
        SlotMutant::GiveWithoutEffect,
        SlotMutant::GiveTouchesNothing,
        SlotMutant::OwnBeforeLastPiece,
        SlotMutant::CancelReleased,
        SlotMutant::CancelTouchesNothing,
    ];
}
