//! Defects to plant, so that tests can show that they would be found (the list of mutations that
//! a checker of DAST has to catch).

/// A planted defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// Replicas do not wait for the clocks of the region (E2).
    NoClockGate,
    /// Managers give timestamps that a cut has passed already (E3).
    NoPromise,
    /// Cuts are believed before what they count is there (rule F).
    CutWithoutCounts,
    /// One replica of a shard is enough for an answer.
    TooFewAcknowledgements,
    /// A replica runs a local transaction that nobody else may hold (invariant H).
    RunsWhatOneHolds,
    /// Only replicas that a cross-region transaction touches hold their clocks for it.
    NoFloorsElsewhere,
    /// The decision about a cross-region transaction gets lost at some replicas.
    LostSettle,
    /// The smallest of the anticipated timestamps is taken, not the largest.
    MinInsteadOfMax,
    /// A clock that leaves a floor forgets how far it had stretched.
    ClockForgetsStretch,
    /// A strict answer is not thought to depend on a cross-region transaction with a piece that
    /// waits.
    HighWithoutDeferred,
    /// A local transaction of several shards is not thought to carry what it depends on.
    HighOfOwnShard,
    /// A piece with predetermined values runs before an earlier one that uses its row.
    BlindUpdateOvertakes,
    /// A region's mark passes places that it has given and not agreed on.
    MarkBeforeEntries,
    /// A stream between regions is followed although part of it is missing.
    GapAccepted,
    /// Marks are told without being reserved: a new leader knows nothing of them.
    MarkNotReserved,
    /// A region waits only for the marks of regions that a transaction touches.
    BoundOfTouchedRegions,
    /// Orders of a silent region that only one of the others has are not given to the rest.
    FenceWithoutExchange,
    /// A silent region's stream ends at the lowest mark that another region has of it.
    FenceAtLowestMark,
    /// Behind the end of a fenced region's stream what touches it runs at its place, if another
    /// region has ordered it.
    RunsBehindTheFence,
    /// Moved transactions get places in another order than they had.
    MovedOutOfOrder,
    /// A region that has said up to where it follows a silent one's stream goes on behind that.
    FollowsFrozenStream,
    /// A session that has seen what a fenced region ran alone is answered elsewhere.
    SessionForgetsRegion,
    /// A region is fenced while what was moved for the return of another one has not run.
    FenceAmidReturn,
    /// A region says that it has run what a replica that comes back may still want values for.
    PassesJoining,
    /// A server that lost its memory takes itself for one that begins with its cluster.
    BeginsAgain,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Mutant; 25] = [
        Mutant::NoClockGate,
        Mutant::NoPromise,
        Mutant::CutWithoutCounts,
        Mutant::TooFewAcknowledgements,
        Mutant::RunsWhatOneHolds,
        Mutant::NoFloorsElsewhere,
        Mutant::LostSettle,
        Mutant::MinInsteadOfMax,
        Mutant::ClockForgetsStretch,
        Mutant::HighWithoutDeferred,
        Mutant::HighOfOwnShard,
        Mutant::BlindUpdateOvertakes,
        Mutant::MarkBeforeEntries,
        Mutant::GapAccepted,
        Mutant::MarkNotReserved,
        Mutant::BoundOfTouchedRegions,
        Mutant::FenceWithoutExchange,
        Mutant::FenceAtLowestMark,
        Mutant::RunsBehindTheFence,
        Mutant::MovedOutOfOrder,
        Mutant::FollowsFrozenStream,
        Mutant::SessionForgetsRegion,
        Mutant::FenceAmidReturn,
        Mutant::PassesJoining,
        Mutant::BeginsAgain,
    ];
}
