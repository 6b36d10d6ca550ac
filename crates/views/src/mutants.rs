//! Defects that the tests must catch.

/// Which defects are planted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mutants {
    /// Changes of filled keys are lost.
    pub lose_deltas: bool,
    /// Commits are applied in the reverse of their order.
    pub swap_order: bool,
    /// A fill does not apply what was committed while it read.
    pub skip_later_deltas: bool,
    /// A fill is accepted at any snapshot.
    pub accept_old_fills: bool,
    /// A reader gets what is newest, whatever its snapshot.
    pub read_newest: bool,
}
