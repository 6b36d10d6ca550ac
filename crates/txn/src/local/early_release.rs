//! Early release of row locks: the owner of a row works on it while its predecessor waits for the disk
//! (early lock release; DeWitt et al., 1984). Off where another one confirms what is durable, as
//! `confirmed` says.

use super::LocalPath;
use crate::model::Snapshot;

impl LocalPath {
    /// A snapshot for reads under row locks.
    pub(super) fn newest_for_owners(&self) -> Snapshot {
        if self.confirm.is_some() {
            self.pins.snapshot()
        } else {
            self.pins.ordered_snapshot()
        }
    }

    /// Whether row locks are given back as soon as a group is written.
    pub(super) fn releases_early(&self) -> bool {
        #[cfg(feature = "mutants")]
        if self.mutants.lock().release_unconfirmed {
            return true;
        }
        self.confirm.is_none()
    }
}
