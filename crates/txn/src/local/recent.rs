//! The index of recent writes that commits are validated against.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use manxdb_storage::{KeyRange, Version};

use crate::path::ReadSet;
use crate::ranges::{as_slice, is_empty};

type Key = Arc<[u8]>;

/// What an entry costs beside its key's bytes, roughly: two map slots and the shared key's head.
const ENTRY_OVERHEAD_BYTES: usize = 96;

/// Last version of every key written after `floor`; writes at or below it are forgotten.
///
/// A read at or above `floor` can be checked exactly, an older one counts as changed.
pub(super) struct Recent {
    last: BTreeMap<Key, Version>,
    /// Every write above `floor`, oldest first, for forgetting.
    log: VecDeque<(Version, Key)>,
    floor: Version,
    bytes: usize,
    bytes_max: usize,
}

/// How to take back a staged write: the key and its version before.
pub(super) type Undo = Vec<(Key, Option<Version>)>;

impl Recent {
    pub(super) fn new(floor: Version, bytes_max: usize) -> Self {
        Self {
            last: BTreeMap::new(),
            log: VecDeque::new(),
            floor,
            bytes: 0,
            bytes_max,
        }
    }

    /// Whether `key` was written after `since`, as far as can be told.
    pub(super) fn key_changed(&self, key: &[u8], since: Version) -> bool {
        since < self.floor || self.last.get(key).is_some_and(|last| *last > since)
    }

    /// Whether a key of `range` was written after `since`, as far as can be told.
    pub(super) fn range_changed(&self, range: &KeyRange, since: Version) -> bool {
        if since < self.floor {
            return true;
        }
        if is_empty(range) {
            return false;
        }
        let bounds = (as_slice(&range.start), as_slice(&range.end));
        self.last
            .range::<[u8], _>(bounds)
            .any(|(_, last)| *last > since)
    }

    /// What of `reads` changed, described for the log; `None` when all still hold.
    pub(super) fn first_change(&self, reads: &ReadSet) -> Option<String> {
        for (key, since) in &reads.points {
            if self.key_changed(key, *since) {
                return Some(self.describe("key", key, *since));
            }
        }
        for (range, since) in &reads.ranges {
            if self.range_changed(range, *since) {
                let (Bound::Included(start) | Bound::Excluded(start)) = &range.start else {
                    return Some(self.describe("range from", &[], *since));
                };
                return Some(self.describe("range from", start, *since));
            }
        }
        None
    }

    fn describe(&self, kind: &str, key: &[u8], since: Version) -> String {
        let why = if since < self.floor {
            "snapshot too old"
        } else {
            "changed"
        };
        format!("{kind} {} {why}", key.escape_ascii())
    }

    /// Notes a write; versions never go back.
    pub(super) fn stage(&mut self, version: Version, key: &[u8], undo: &mut Undo) {
        let key: Key = key.into();
        let previous = self.last.insert(Arc::clone(&key), version);
        self.bytes += key.len() + ENTRY_OVERHEAD_BYTES;
        self.log.push_back((version, Arc::clone(&key)));
        undo.push((key, previous));
    }

    /// Takes back the newest staged writes, all that `undo` lists.
    pub(super) fn take_back(&mut self, undo: Undo) {
        for (key, previous) in undo.into_iter().rev() {
            self.log.pop_back();
            self.bytes -= key.len() + ENTRY_OVERHEAD_BYTES;
            match previous {
                Some(version) => self.last.insert(key, version),
                None => self.last.remove(&key),
            };
        }
    }

    /// Forgets what no snapshot at or above `oldest` needs, and past the byte limit the oldest
    /// of the rest: reads at snapshots older than that then count as changed.
    pub(super) fn trim(&mut self, oldest: Version) {
        while let Some((version, _)) = self.log.front() {
            let version = *version;
            if version > oldest && self.bytes <= self.bytes_max {
                break;
            }
            self.forget_through(version);
        }
    }

    fn forget_through(&mut self, through: Version) {
        while let Some((version, key)) = self.log.front() {
            let version = *version;
            if version > through {
                break;
            }
            self.bytes -= key.len() + ENTRY_OVERHEAD_BYTES;
            if self.last.get(key) == Some(&version) {
                self.last.remove(key);
            }
            self.log.pop_front();
        }
        self.floor = self.floor.max(through);
    }

    /// Writes held, for the metrics and tests.
    pub(super) fn len(&self) -> usize {
        self.log.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recent_with(writes: &[(u64, &str)]) -> Recent {
        let mut recent = Recent::new(Version(1), 1 << 20);
        for (version, key) in writes {
            recent.stage(Version(*version), key.as_bytes(), &mut Undo::new());
        }
        recent
    }

    #[test]
    fn a_read_before_the_last_write_has_changed() {
        let recent = recent_with(&[(2, "a"), (5, "a")]);
        assert!(recent.key_changed(b"a", Version(4)));
        assert!(!recent.key_changed(b"a", Version(5)));
        assert!(!recent.key_changed(b"b", Version(1)));
    }

    #[test]
    fn a_range_changes_with_any_key_inside_and_none_outside() {
        let recent = recent_with(&[(2, "b"), (5, "d")]);
        let range = |start: &str, end: &str| KeyRange {
            start: Bound::Included(start.into()),
            end: Bound::Excluded(end.into()),
        };
        assert!(recent.range_changed(&range("a", "c"), Version(1)));
        assert!(!recent.range_changed(&range("a", "c"), Version(2)));
        assert!(!recent.range_changed(&range("c", "d"), Version(1)));
        assert!(!recent.range_changed(&range("d", "d"), Version(1)));
        assert!(!recent.range_changed(&range("z", "a"), Version(1)));
        assert!(recent.range_changed(&KeyRange::prefix(b"d"), Version(4)));
    }

    #[test]
    fn taking_back_restores_the_state_before() {
        let mut recent = recent_with(&[(2, "a")]);
        let mut undo = Undo::new();
        recent.stage(Version(3), b"a", &mut undo);
        recent.stage(Version(3), b"b", &mut undo);
        recent.stage(Version(4), b"a", &mut undo);
        recent.take_back(undo);
        assert!(!recent.key_changed(b"a", Version(2)));
        assert!(recent.key_changed(b"a", Version(1)));
        assert!(!recent.key_changed(b"b", Version(1)));
        assert_eq!(recent.len(), 1);
        assert_eq!(recent.bytes, 1 + ENTRY_OVERHEAD_BYTES);
    }

    #[test]
    fn trimming_forgets_only_what_no_snapshot_needs() {
        let mut recent = recent_with(&[(2, "a"), (3, "b"), (4, "a"), (6, "c")]);
        recent.trim(Version(4));
        assert_eq!(recent.len(), 1);
        assert!(!recent.key_changed(b"a", Version(4)));
        assert!(recent.key_changed(b"a", Version(3)));
        assert!(recent.key_changed(b"c", Version(5)));
    }

    #[test]
    fn past_the_byte_limit_old_snapshots_count_as_changed() {
        let mut recent = Recent::new(Version(0), 4 * (ENTRY_OVERHEAD_BYTES + 2));
        for version in 1..=10 {
            recent.stage(Version(version), &[0, 7], &mut Undo::new());
        }
        recent.trim(Version(0));
        assert_eq!(recent.len(), 4);
        assert!(recent.key_changed(b"never written", Version(5)));
        assert!(!recent.key_changed(b"never written", Version(6)));
    }
}
