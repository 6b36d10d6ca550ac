//! Entries that were read and are given out one by one.

use std::rc::Rc;

use super::prepared::Entries;

/// A key and its value.
pub(super) type Entry = (Vec<u8>, Vec<u8>);

/// A page of entries, perhaps shared with other openings of the same scan.
#[derive(Default)]
pub(super) struct Page {
    entries: Rc<Entries>,
    at: usize,
}

impl Page {
    /// A page from its first entry on.
    pub fn new(entries: impl Into<Rc<Entries>>) -> Self {
        Self {
            entries: entries.into(),
            at: 0,
        }
    }

    /// Entries that were not given out yet.
    pub fn len(&self) -> usize {
        self.entries.len() - self.at
    }

    /// The next entry, copied only if others may want it too.
    pub fn next(&mut self) -> Option<Entry> {
        let at = self.at;
        self.at = (at + 1).min(self.entries.len());
        match Rc::get_mut(&mut self.entries) {
            Some(own) => own.get_mut(at).map(std::mem::take),
            None => self.entries.get(at).cloned(),
        }
    }

    /// As [`Page::next`], to be looked at only.
    pub fn look(&mut self) -> Option<&Entry> {
        let at = self.at;
        self.at = (at + 1).min(self.entries.len());
        self.entries.get(at)
    }
}
