//! What a view holds under one key.

/// A change cannot be applied to contents, which are of no use any more: the key is evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsuited;

/// What a view holds under one key: rows, or groups with their aggregates.
pub trait Contents: Clone + Send + Sync {
    /// What one commit does to it.
    type Change: Send + Sync;

    /// Makes a change.
    ///
    /// # Errors
    /// [`Unsuited`] when it does not fit; the contents are dropped then.
    fn apply(&mut self, change: &Self::Change) -> Result<(), Unsuited>;

    /// Takes back the last change that was made and not taken back.
    ///
    /// # Errors
    /// [`Unsuited`] when it cannot be; the reader then runs the base plan.
    fn undo(&mut self, change: &Self::Change) -> Result<(), Unsuited>;

    /// Bytes in memory, about. Known, not counted anew: it is asked for after each change.
    fn size_bytes(&self) -> usize;

    /// Bytes of a change in memory, about.
    fn change_bytes(change: &Self::Change) -> usize;
}
