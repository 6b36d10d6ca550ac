//! The keys of one view; `fill` is how they get there, `search` shows them all.

mod fill;
mod search;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};

use manxdb_storage::Version;
use parking_lot::RwLock;

use crate::contents::Contents;
use crate::slot::{Slot, WAITING_MAX};
use crate::statistics::{Counters, ViewStatistics};

pub use self::fill::Fill;
pub use self::search::HeldKey;

/// What a view answers to a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup<R> {
    /// What the reader's snapshot has.
    Hit(R),
    /// The key is not filled; [`View::begin_fill`] may be tried.
    Missing,
    /// The base plan answers: the key is being filled, or the reader's snapshot is one that the
    /// view cannot show, or the view is closed.
    Unable,
}

/// The keys of one view, each filled or not.
pub struct View<C: Contents> {
    inner: RwLock<Inner<C>>,
    bytes: AtomicUsize,
    counters: Counters,
    #[cfg(feature = "mutants")]
    mutants: parking_lot::Mutex<crate::mutants::Mutants>,
}

struct Inner<C: Contents> {
    slots: HashMap<Box<[u8]>, Slot<C>>,
    /// Keys in the order of their fills, for eviction; may name keys that are gone.
    order: VecDeque<Box<[u8]>>,
    /// Changes up to here may have passed keys that were not filled.
    passed: Version,
    tickets: u64,
    /// No reader is served any more.
    is_closed: bool,
}

impl<C: Contents> View<C> {
    /// A view without any key. Commits up to `since` are not told to it.
    #[must_use]
    pub fn new(since: Version) -> Self {
        Self {
            inner: RwLock::new(Inner {
                slots: HashMap::new(),
                order: VecDeque::new(),
                passed: since,
                tickets: 0,
                is_closed: false,
            }),
            bytes: AtomicUsize::new(0),
            counters: Counters::default(),
            #[cfg(feature = "mutants")]
            mutants: parking_lot::Mutex::default(),
        }
    }

    /// Plants defects.
    #[cfg(feature = "mutants")]
    pub fn plant(&self, mutants: crate::mutants::Mutants) {
        *self.mutants.lock() = mutants;
    }

    /// Gives what `key` holds at `at` to `read`. `applied` is [`crate::Feed::applied`], asked for
    /// before.
    pub fn lookup<R>(
        &self,
        key: &[u8],
        at: Version,
        applied: Version,
        read: impl FnOnce(&C) -> R,
    ) -> Lookup<R> {
        let found = self.find(key, at, applied, read);
        let counter = match &found {
            Lookup::Hit(_) => &self.counters.hits,
            Lookup::Missing | Lookup::Unable => &self.counters.misses,
        };
        Counters::count(counter, 1);
        found
    }

    fn find<R>(
        &self,
        key: &[u8],
        at: Version,
        applied: Version,
        read: impl FnOnce(&C) -> R,
    ) -> Lookup<R> {
        let inner = self.inner.read();
        if inner.is_closed || at > applied {
            return Lookup::Unable;
        }
        match inner.slots.get(key) {
            None => Lookup::Missing,
            Some(Slot::Filling(_)) => Lookup::Unable,
            #[cfg(feature = "mutants")]
            Some(Slot::Filled(filled)) if self.mutants.lock().read_newest => {
                Lookup::Hit(filled.newest(read))
            }
            Some(Slot::Filled(filled)) => match filled.read(at, read) {
                Some(answer) => Lookup::Hit(answer),
                None => Lookup::Unable,
            },
        }
    }

    /// Applies what one commit does to keys, in commit order. `oldest`: no reader of an older
    /// snapshot exists or will.
    pub fn apply(&self, version: Version, oldest: Version, changes: Vec<(Vec<u8>, C::Change)>) {
        let mut inner = self.inner.write();
        #[cfg(feature = "mutants")]
        let is_mutant = self.mutants.lock().swap_order;
        #[cfg(not(feature = "mutants"))]
        let is_mutant = false;
        assert!(
            version >= inner.passed || is_mutant,
            "a view hears of commits in their order"
        );
        inner.passed = inner.passed.max(version);
        #[cfg(feature = "mutants")]
        if self.mutants.lock().lose_deltas {
            return;
        }
        Counters::count(&self.counters.changes, changes.len() as u64);
        for (key, change) in changes {
            self.change(&mut inner, &key, version, oldest, change);
        }
    }

    /// Hears of a commit whose changes need not be computed, because no key is filled or being
    /// filled; false when one is.
    #[must_use]
    pub fn pass_without_keys(&self, version: Version) -> bool {
        let mut inner = self.inner.write();
        if !inner.slots.is_empty() {
            return false;
        }
        inner.passed = inner.passed.max(version);
        true
    }

    fn change(
        &self,
        inner: &mut Inner<C>,
        key: &[u8],
        version: Version,
        oldest: Version,
        change: C::Change,
    ) {
        let fits = match inner.slots.get_mut(key) {
            None => return,
            Some(Slot::Filling(filling)) => {
                filling.waiting.push((version, change));
                filling.waiting.len() <= WAITING_MAX
            }
            Some(Slot::Filled(filled)) => {
                let before = filled.size_bytes();
                let applied = filled.apply(version, change, oldest);
                self.resized(before, filled.size_bytes());
                applied.is_ok()
            }
        };
        if !fits {
            self.remove(inner, key);
        }
    }

    fn resized(&self, before: usize, now: usize) {
        self.bytes.fetch_add(now, Ordering::Relaxed);
        let total = self.bytes.fetch_sub(before, Ordering::Relaxed);
        assert!(total >= before, "bytes are counted of what is held");
    }

    /// Drops a key; whether it was filled.
    fn remove(&self, inner: &mut Inner<C>, key: &[u8]) -> bool {
        match inner.slots.remove(key) {
            Some(Slot::Filled(filled)) => {
                self.resized(filled.size_bytes() + key.len(), 0);
                Counters::count(&self.counters.evictions, 1);
                true
            }
            Some(Slot::Filling(_)) | None => false,
        }
    }

    /// Drops all keys at a commit that changed what cannot be told by key; fills under way come to
    /// nothing.
    pub fn empty(&self, version: Version) {
        let mut inner = self.inner.write();
        inner.passed = inner.passed.max(version);
        self.clear(&mut inner);
    }

    /// Serves nobody from now on.
    pub fn close(&self) {
        let mut inner = self.inner.write();
        inner.is_closed = true;
        self.clear(&mut inner);
    }

    /// Whether [`View::close`] was called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.inner.read().is_closed
    }

    fn clear(&self, inner: &mut Inner<C>) {
        inner.order.clear();
        let slots = std::mem::take(&mut inner.slots);
        assert!(
            inner.slots.is_empty(),
            "fills under way find nothing to end in"
        );
        for (key, slot) in slots {
            if let Slot::Filled(filled) = slot {
                self.resized(filled.size_bytes() + key.len(), 0);
                Counters::count(&self.counters.evictions, 1);
            }
        }
        assert_eq!(self.size_bytes(), 0, "an empty view takes no room");
    }

    /// Drops a filled key that was not read lately; the bytes it took, `None` when none is filled.
    pub fn evict_one(&self) -> Option<usize> {
        let mut inner = self.inner.write();
        let mut spared = inner.order.len();
        loop {
            let key = inner.order.pop_front()?;
            match inner.slots.get(&key) {
                Some(Slot::Filled(filled)) if spared > 0 && filled.take_used() => {
                    spared -= 1;
                    inner.order.push_back(key);
                }
                Some(Slot::Filled(_)) => {
                    let before = self.size_bytes();
                    let was_filled = self.remove(&mut inner, &key);
                    assert!(was_filled, "what is evicted was filled");
                    return Some(before.saturating_sub(self.size_bytes()));
                }
                // A fill under way will stand in the order again.
                Some(Slot::Filling(_)) | None => {}
            }
        }
    }

    /// Bytes of all filled keys, about.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether any key is filled or being filled.
    #[must_use]
    pub fn has_keys(&self) -> bool {
        !self.inner.read().slots.is_empty()
    }

    /// What it holds and has done.
    #[must_use]
    pub fn statistics(&self) -> ViewStatistics {
        let inner = self.inner.read();
        let filled = |slot: &&Slot<C>| matches!(slot, Slot::Filled(_));
        ViewStatistics {
            keys: inner.slots.values().filter(filled).count(),
            bytes: self.size_bytes(),
            ..self.counters.shown()
        }
    }
}

impl<C: Contents> Inner<C> {
    /// Drops names of keys that are gone, and second names.
    fn compact_order(&mut self) {
        let mut seen = std::collections::HashSet::new();
        let slots = &self.slots;
        self.order
            .retain(|key| slots.contains_key(key) && seen.insert(key.clone()));
        assert!(
            self.order.len() <= self.slots.len(),
            "each key stands once in the order"
        );
    }
}
