//! A key of a view filled while others commit.

use std::sync::Arc;

use manxdb_storage::Version;

use super::View;
use crate::contents::Contents;
use crate::slot::{Filled, Filling, Slot};
use crate::statistics::Counters;

/// A promise to fill a key; dropped without [`Fill::finish`] it is taken back.
pub struct Fill<C: Contents> {
    view: Arc<View<C>>,
    key: Box<[u8]>,
    ticket: u64,
    at: Version,
    is_done: bool,
}

impl<C: Contents> View<C> {
    /// Announces that `key` will be filled with what the snapshot `at` has; to be called before
    /// that is read. `None`: the base plan answers without filling.
    #[must_use]
    pub fn begin_fill(self: &Arc<Self>, key: &[u8], at: Version) -> Option<Fill<C>> {
        let mut inner = self.inner.write();
        #[cfg(feature = "mutants")]
        let accepts_old = self.mutants.lock().accept_old_fills;
        #[cfg(not(feature = "mutants"))]
        let accepts_old = false;
        let is_too_old = at < inner.passed && !accepts_old;
        if inner.is_closed || is_too_old || inner.slots.contains_key(key) {
            return None;
        }
        inner.tickets += 1;
        let ticket = inner.tickets;
        assert!(ticket > 0, "each fill has a ticket of its own");
        let filling = Filling {
            ticket,
            waiting: Vec::new(),
        };
        inner.slots.insert(key.into(), Slot::Filling(filling));
        Some(Fill {
            view: Arc::clone(self),
            key: key.into(),
            ticket,
            at,
            is_done: false,
        })
    }

    fn finish_fill(&self, fill: &Fill<C>, mut filled: Filled<C>) -> bool {
        let mut inner = self.inner.write();
        let is_ours = matches!(
            inner.slots.get(&fill.key),
            Some(Slot::Filling(filling)) if filling.ticket == fill.ticket
        );
        if !is_ours {
            return false;
        }
        let Some(Slot::Filling(filling)) = inner.slots.remove(&fill.key) else {
            return false;
        };
        #[cfg(feature = "mutants")]
        let skips = self.mutants.lock().skip_later_deltas;
        #[cfg(not(feature = "mutants"))]
        let skips = false;
        for (version, change) in filling.waiting {
            // All of them stay: who reads at the snapshot of the fill may still come.
            if !skips && filled.apply(version, change, fill.at).is_err() {
                Counters::count(&self.counters.evictions, 1);
                return false;
            }
        }
        assert!(filled.since >= fill.at, "a key is as new as its fill");
        assert!(!inner.is_closed, "a closed view has no fills under way");
        self.resized(0, filled.size_bytes() + fill.key.len());
        inner.slots.insert(fill.key.clone(), Slot::Filled(filled));
        inner.order.push_back(fill.key.clone());
        if inner.order.len() > 2 * inner.slots.len() + 64 {
            inner.compact_order();
        }
        true
    }

    fn give_up(&self, fill: &Fill<C>) {
        let mut inner = self.inner.write();
        let is_ours = matches!(
            inner.slots.get(&fill.key),
            Some(Slot::Filling(filling)) if filling.ticket == fill.ticket
        );
        if is_ours {
            let given_up = inner.slots.remove(&fill.key);
            assert!(given_up.is_some(), "what is given up was under way");
        }
    }
}

impl<C: Contents> Fill<C> {
    /// The snapshot it reads.
    #[must_use]
    pub fn at(&self) -> Version {
        self.at
    }

    /// The key now holds `contents`, read at [`Fill::at`]; whether it is filled. It is not when
    /// the view was emptied meanwhile; what was read is true all the same.
    pub fn finish(mut self, contents: C) -> bool {
        self.is_done = true;
        let view = Arc::clone(&self.view);
        view.finish_fill(&self, Filled::new(contents, self.at))
    }
}

impl<C: Contents> Drop for Fill<C> {
    fn drop(&mut self) {
        if !self.is_done {
            self.view.give_up(self);
        }
    }
}
