//! Which keys have updates that are not on all backups yet.

use std::collections::BTreeMap;

use crate::ids::Position;

/// The last place in the log of what touched a key, for all keys where that is not synced.
#[derive(Debug, Default)]
pub(super) struct UnsyncedKeys {
    /// By the key's hash.
    by_hash: BTreeMap<u64, Position>,
    /// The last place of anything at all.
    last: Position,
    /// The last place of what may have touched any key.
    everything: Position,
    synced: Position,
}

impl UnsyncedKeys {
    /// An entry at a place touched these keys, and perhaps all others.
    pub(super) fn touch(&mut self, at: Position, hashes: &[u64], all: bool) {
        assert!(at > self.last, "places of the log come in order");
        assert!(at > self.synced, "an entry is not synced when it is made");
        self.last = at;
        for hash in hashes {
            self.by_hash.insert(*hash, at);
        }
        if all {
            self.everything = at;
        }
    }

    /// The last place that something has to wait for that touches these keys, or all.
    pub(super) fn earlier(&self, hashes: &[u64], all: bool) -> Option<Position> {
        let touched = hashes.iter().filter_map(|hash| self.by_hash.get(hash));
        let touched = touched.max().copied().unwrap_or(0);
        let any = if all { self.last } else { 0 };
        let earlier = touched.max(any).max(self.everything);
        assert!(earlier <= self.last, "nothing is later than the last entry");
        (earlier > self.synced).then_some(earlier)
    }

    /// Everything up to a place is on all backups.
    pub(super) fn synced_up_to(&mut self, synced: Position) {
        assert!(synced >= self.synced, "what is synced stays so");
        self.synced = synced;
        self.by_hash.retain(|_, at| *at > synced);
    }

    /// Checks that marks are of entries that are there and not synced.
    pub(super) fn check(&self, synced: Position, last: Position) -> Result<(), String> {
        let out_of_place = |at: &Position| *at <= synced || *at > last;
        if self.by_hash.values().any(out_of_place) {
            return Err("a key is marked at a place that is synced or not there".to_owned());
        }
        if self.everything > last {
            return Err("all keys are marked at a place that is not there".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_touches_all_keys_conflicts_with_each_and_is_in_the_way_of_each() {
        let mut keys = UnsyncedKeys::default();
        keys.touch(1, &[7], false);
        assert_eq!(keys.earlier(&[8], false), None);
        assert_eq!(keys.earlier(&[7, 8], false), Some(1));
        assert_eq!(keys.earlier(&[], true), Some(1));
        keys.touch(2, &[], true);
        keys.touch(3, &[9], false);
        assert_eq!(keys.earlier(&[8], false), Some(2));
        assert_eq!(keys.earlier(&[], true), Some(3));
        keys.synced_up_to(2);
        assert_eq!(keys.earlier(&[7, 8], false), None);
        assert_eq!(keys.earlier(&[9], false), Some(3));
        assert!(keys.check(2, 3).is_ok());
        assert!(keys.check(3, 3).is_err(), "what was synced is still marked");
    }
}
