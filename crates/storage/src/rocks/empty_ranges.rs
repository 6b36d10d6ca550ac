//! Ranges that scans found empty, so that later scans do not step over the deletes in them again.
//!
//! A table that is used as a queue is read at its front, where everything is deleted: a scan steps
//! over each delete that no compaction has dropped yet. A scan that has stepped over many of them
//! notes the range from there to the next live key, and the version it has read at. Later scans
//! at that version or a newer one jump over the range.
//!
//! A note is true because of three things:
//!
//! * the scan begins a *look* before it reads the range: every key that is put from then on shortens
//!   the range that the look will note ([`EmptyRanges::written`], called when the key is in the
//!   memtable and before any reader is told its version);
//! * what was put before, at a newer version than the scan reads at, the scan meets and reports;
//!   where it may be in a memtable that the scan does not know, there is no look ([`Look`] asks for
//!   the number of memtables at the start of the scan);
//! * every key that is put later shortens what was noted.
//!
//! Compactions and flushes change nothing that a reader can see, so they do not matter here.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

use manxdb_core::check::{deep, ensure};
use parking_lot::{Mutex, MutexGuard};

use crate::model::{Version, WriteBatch};
use crate::sorted::SortedWrites;

/// Deletes in a row after which a scan asks for a noted range, and after which a range is worth
/// noting.
pub const DELETES_MIN: usize = if cfg!(test) { 2 } else { 16 };

/// Ranges noted at a time; the one that was not used for longest goes first.
const NOTED_MAX: usize = 256;

/// Looks under way at a time; further scans step over all deletes.
const LOOKS_MAX: usize = 64;

/// States of one range that are kept for readers of different versions.
const STATES_MAX: usize = 4;

/// Ranges without a live key.
#[derive(Default)]
pub struct EmptyRanges {
    state: Mutex<State>,
    /// Memtables begun since the store was opened.
    memtables: AtomicU64,
    /// Deletes that scans stepped over.
    pub deletes_passed: AtomicU64,
}

#[derive(Default)]
struct State {
    /// By their first key; they do not overlap.
    noted: BTreeMap<Vec<u8>, Noted>,
    looks: Vec<Open>,
    /// Counts looks and uses.
    clock: u64,
}

/// What is known of the range behind one key.
struct Noted {
    /// Both parts ascend. Never empty.
    states: Vec<Until>,
    /// When it was used last.
    used: u64,
}

/// How far a range is empty for readers at a version or a newer one.
struct Until {
    since: Version,
    /// The first key behind it.
    end: Vec<u8>,
}

/// A look under way.
struct Open {
    id: u64,
    start: Vec<u8>,
    /// The least key that was put behind the start since the look began.
    put: Option<Vec<u8>>,
}

impl Noted {
    /// The end for the newest readers.
    fn end(&self) -> &[u8] {
        self.states.last().map_or(&[], |last| &last.end)
    }

    fn end_at(&self, at: Version) -> Option<&[u8]> {
        let mut newest_first = self.states.iter().rev();
        let state = newest_first.find(|state| state.since <= at)?;
        Some(&state.end)
    }

    /// Ends the range before `key`.
    fn cut(&mut self, key: &[u8]) {
        for state in &mut self.states {
            if state.end.as_slice() > key {
                state.end.clear();
                state.end.extend_from_slice(key);
            }
        }
        // Of states with the same end the oldest serves most readers.
        self.states.dedup_by(|newer, older| newer.end == older.end);
        assert!(!self.states.is_empty(), "a noted range has an end");
    }

    fn add(&mut self, state: Until) {
        let last = self.states.last();
        let is_more = last.is_none_or(|last| last.since < state.since && last.end < state.end);
        if is_more {
            self.states.push(state);
        }
        if self.states.len() > STATES_MAX {
            self.states.remove(0);
        }
        assert!(
            self.states.is_sorted_by_key(|state| state.since),
            "newer readers find a range that is no shorter"
        );
    }
}

impl State {
    /// What holds between any two calls.
    ///
    /// # Errors
    /// The invariant that is broken.
    fn check(&self) -> Result<(), String> {
        let mut last: &[u8] = &[];
        for (start, noted) in &self.noted {
            ensure(start.as_slice() >= last, || {
                format!("the range from {start:?} overlaps one that ends at {last:?}")
            })?;
            let states = &noted.states;
            let first = states.first().map(|first| first.end.as_slice());
            ensure(first.is_some_and(|end| end > start), || {
                format!("the range from {start:?} ends at {first:?}")
            })?;
            let is_later = |one: &Until, next: &Until| one.since < next.since && one.end < next.end;
            ensure(states.is_sorted_by(is_later), || {
                format!("newer readers of {start:?} jump further")
            })?;
            ensure(
                states.len() <= STATES_MAX && noted.used <= self.clock,
                || {
                    format!(
                        "{start:?} has {} states, used at {}",
                        states.len(),
                        noted.used
                    )
                },
            )?;
            last = noted.end();
        }
        ensure(self.looks.len() <= LOOKS_MAX, || {
            format!("{} looks go on, of {LOOKS_MAX} that may", self.looks.len())
        })?;
        let ids = self.looks.iter().map(|look| look.id);
        ensure(
            ids.clone().collect::<BTreeSet<u64>>().len() == self.looks.len(),
            || format!("a look ends once: {:?}", ids.collect::<Vec<u64>>()),
        )
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// The noted range that has `key` for some reader.
    fn around(&mut self, key: &[u8]) -> Option<(&Vec<u8>, &mut Noted)> {
        let bounds = (Bound::Unbounded, Bound::Included(key));
        let last = self.noted.range_mut::<[u8], _>(bounds).next_back();
        last.filter(|(_, noted)| noted.end() > key)
    }

    fn put(&mut self, key: &[u8]) {
        let starts_here = match self.around(key) {
            Some((start, noted)) if start.as_slice() < key => {
                noted.cut(key);
                false
            }
            found => found.is_some(),
        };
        if starts_here {
            self.noted.remove(key);
        }
        for look in &mut self.looks {
            let is_least = look.put.as_deref().is_none_or(|least| key < least);
            if is_least && key >= look.start.as_slice() {
                look.put = Some(key.to_vec());
            }
        }
    }

    /// Notes that nothing between the start of `look` and `end` is live at `at`.
    fn note(&mut self, look: Open, end: &[u8], at: Version) {
        let end = match look.put {
            Some(put) if put.as_slice() < end => put,
            _ => end.to_vec(),
        };
        let start = look.start;
        if end <= start {
            return;
        }
        let before = (Bound::Unbounded, Bound::Excluded(start.as_slice()));
        let before = self.noted.range::<[u8], _>(before).next_back();
        if before.is_some_and(|(_, before)| before.end() > start.as_slice()) {
            return;
        }
        let inside = (Bound::Excluded(start.as_slice()), Bound::Excluded(&*end));
        let inside = self.noted.range::<[u8], _>(inside);
        let inside: Vec<Vec<u8>> = inside.map(|(key, _)| key.clone()).collect();
        for key in inside {
            self.noted.remove(&key);
        }
        let used = self.tick();
        let state = Until { since: at, end };
        match self.noted.get_mut(&start) {
            Some(noted) => noted.add(state),
            None => {
                let states = vec![state];
                self.noted.insert(start, Noted { states, used });
            }
        }
        if self.noted.len() > NOTED_MAX {
            self.forget_one();
        }
        assert!(self.noted.len() <= NOTED_MAX, "noted ranges have a limit");
        self.assert_whole();
    }

    fn assert_whole(&self) {
        if deep() {
            assert_eq!(self.check(), Ok(()));
        }
    }

    fn forget_one(&mut self) {
        let unused = self.noted.iter().min_by_key(|(_, noted)| noted.used);
        if let Some(start) = unused.map(|(start, _)| start.clone()) {
            self.noted.remove(&start);
        }
    }
}

impl EmptyRanges {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Memtables begun so far: to be asked before a scan lists its layers.
    pub fn memtables(&self) -> u64 {
        self.memtables.load(Ordering::Acquire)
    }

    /// Another memtable takes all keys from now on; none was put into it yet.
    pub fn memtable_begun(&self) {
        let _state = self.state();
        self.memtables.fetch_add(1, Ordering::AcqRel);
    }

    /// Ranges noted now.
    pub fn len(&self) -> usize {
        self.state().noted.len()
    }

    /// The keys of `batch` are in the memtable, and no reader was told their versions.
    pub fn written(&self, batch: &WriteBatch) {
        let mut state = self.state();
        if state.noted.is_empty() && state.looks.is_empty() {
            return;
        }
        for (_, key, value) in &batch.writes {
            if value.is_some() {
                state.put(key);
            }
        }
        state.assert_whole();
    }

    /// As [`EmptyRanges::written`] of many writes.
    pub fn written_sorted(&self, writes: &dyn SortedWrites) {
        let mut state = self.state();
        if state.noted.is_empty() && state.looks.is_empty() {
            return;
        }
        writes.each(&mut |key, value| {
            if value.is_some() {
                state.put(key);
            }
        });
        state.assert_whole();
    }

    /// The first key behind the empty range that begins at or before the deleted `key`, or right
    /// behind it, and goes on behind it for a reader at `at`.
    pub fn end_of(&self, key: &[u8], at: Version) -> Option<Vec<u8>> {
        let mut state = self.state();
        let used = state.tick();
        let behind = [key, &[0]].concat();
        let (_, noted) = state.around(&behind)?;
        noted.used = used;
        let end = noted.end_at(at)?;
        (*end > *behind).then(|| end.to_vec())
    }

    /// Begins a look of a reader at `at` that stands on the deleted `key` and has listed its layers
    /// when so many `memtables` were begun. None when it could not note anything.
    pub fn look(&self, key: &[u8], at: Version, memtables: u64) -> Option<Look<'_>> {
        let mut state = self.state();
        // Changed under the lock only.
        let is_whole = memtables == self.memtables.load(Ordering::Acquire);
        if !is_whole || state.looks.len() >= LOOKS_MAX {
            return None;
        }
        let id = state.tick();
        let behind = [key, &[0]].concat();
        let (start, from) = if let Some((start, noted)) = state.around(&behind) {
            noted.used = id;
            let end = noted.end_at(at).filter(|end| **end > *behind)?;
            (start.clone(), end.to_vec())
        } else {
            (behind.clone(), behind)
        };
        assert!(start <= from, "a look goes on behind what is known");
        state.looks.push(Open {
            id,
            start,
            put: None,
        });
        assert!(
            state.looks.len() <= LOOKS_MAX,
            "writers tell each key to so many looks at most"
        );
        Some(Look {
            ranges: self,
            id,
            from,
        })
    }
}

/// A scan that reads a range which may turn out to be empty.
pub struct Look<'a> {
    ranges: &'a EmptyRanges,
    id: u64,
    from: Vec<u8>,
}

impl Look<'_> {
    /// Where the scan must go on: all layers are to be asked anew from here.
    pub fn from(&self) -> &[u8] {
        &self.from
    }

    /// Nothing before `end` is live at `at`, and nothing before it has a version newer than `at`.
    pub fn found(self, end: &[u8], at: Version) {
        let mut state = self.ranges.state();
        let place = state.looks.iter().position(|look| look.id == self.id);
        assert!(place.is_some(), "a look ends once");
        if let Some(place) = place {
            let look = state.looks.swap_remove(place);
            state.note(look, end, at);
        }
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        self.ranges.state().looks.retain(|look| look.id != self.id);
    }
}

#[cfg(test)]
mod tests;
