//! Defects for the tests to catch.

/// Defects to plant, each of which a named test must catch.
#[allow(clippy::struct_excessive_bools)] // Each is a switch of its own.
#[derive(Debug, Default, Clone, Copy)]
pub struct Mutants {
    /// Commits do not look at points read.
    pub skip_point_validation: bool,
    /// Commits do not look at ranges read.
    pub skip_range_validation: bool,
    /// Writes of an intent reach the engine before it is validated.
    pub write_before_validation: bool,
    /// Snapshots see a group before the engine has it.
    pub publish_before_write: bool,
    /// Snapshots are one commit old.
    pub stale_snapshots: bool,
    /// A transaction does not see what it wrote.
    pub hide_own_writes: bool,
    /// Row locks are not taken.
    pub skip_locks: bool,
    /// Reads under row locks see only what is acknowledged.
    pub old_reads_under_locks: bool,
    /// A transaction without writes ends although what it read may still be lost.
    pub skip_confirmation: bool,
    /// A group is shown and acknowledged although it is not confirmed.
    pub publish_unconfirmed: bool,
    /// Row locks are given back although the group is not confirmed.
    pub release_unconfirmed: bool,
    /// A value whose key was written counts as the same in what was used of it.
    pub trust_used_parts: bool,
}
