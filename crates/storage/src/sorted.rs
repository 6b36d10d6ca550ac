//! The writes of one large transaction, as whoever made them holds them.

use manxdb_core::check::deep;

use crate::model::{Version, WriteBatch};

/// Many writes of one transaction, by ascending key, each key once. They may be packed: a write is
/// shown for a moment, and nobody lists all of them.
pub trait SortedWrites: Send + Sync {
    /// Writes.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Shows each write to `visit`, by ascending key; `None` deletes. Each call shows the same ones.
    fn each(&self, visit: &mut dyn FnMut(&[u8], Option<&[u8]>));
}

/// All of `writes` as a batch, for who takes nothing else.
#[must_use]
pub fn to_batch(version: Version, writes: &dyn SortedWrites) -> WriteBatch {
    let mut batch = WriteBatch::default();
    batch.writes.reserve(writes.len());
    writes.each(&mut |key, value| {
        batch
            .writes
            .push((version, key.to_vec(), value.map(<[u8]>::to_vec)));
    });
    assert_eq!(batch.writes.len(), writes.len(), "each write is shown once");
    assert!(
        !deep()
            || batch
                .writes
                .is_sorted_by(|(_, one, _), (_, next, _)| one < next),
        "writes are shown by ascending key"
    );
    batch
}
