//! The versions of one key that somebody may still read.

use manxdb_core::check::ensure;

use crate::model::Version;

/// What one version says of its key; `None` is a delete.
#[derive(Debug)]
pub struct Stored {
    /// Who wrote it.
    pub version: Version,
    /// The value, unless the key was deleted.
    pub value: Option<Box<[u8]>>,
}

impl Stored {
    fn bytes(&self) -> usize {
        STORED_BYTES + self.value.as_ref().map_or(0, |value| value.len())
    }
}

/// What a version takes beside its value.
const STORED_BYTES: usize = size_of::<Stored>();

/// Versions of one key. Never empty; most have one or two.
#[derive(Debug)]
pub struct Chain {
    newest: Stored,
    /// Ascending, all below `newest`.
    older: Vec<Stored>,
}

/// What a write did to a chain.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Bytes more.
    pub added: usize,
    /// Bytes less.
    pub removed: usize,
    /// Versions that nobody can see any more, dropped.
    pub collapsed: usize,
}

impl Chain {
    /// A chain of one version, and its bytes.
    pub fn new(version: Version, value: Option<Box<[u8]>>) -> (Self, usize) {
        let newest = Stored { version, value };
        let bytes = newest.bytes();
        let older = Vec::new();
        (Self { newest, older }, bytes)
    }

    /// Adds a version, or replaces it, and drops all that are hidden from every reader at or
    /// above `watermark`.
    pub fn write(
        &mut self,
        version: Version,
        value: Option<Box<[u8]>>,
        watermark: Version,
    ) -> Change {
        let mut stored = Stored { version, value };
        let mut change = Change {
            added: stored.bytes(),
            ..Change::default()
        };
        if version >= self.newest.version {
            std::mem::swap(&mut self.newest, &mut stored);
        }
        if stored.version == self.newest.version {
            change.removed += stored.bytes();
        } else {
            let place = self
                .older
                .binary_search_by_key(&stored.version, |older| older.version);
            match place {
                Ok(same) => {
                    change.removed += self.older[same].bytes();
                    self.older[same] = stored;
                }
                Err(place) => self.older.insert(place, stored),
            }
        }
        self.collapse(watermark, &mut change);
        let second = self.older.last().map(|older| older.version);
        assert!(
            second.is_none_or(|second| second < self.newest.version),
            "the newest version of a key is at hand"
        );
        assert!(
            self.older
                .get(1)
                .is_none_or(|second| second.version > watermark),
            "of what nobody reads below, one version is left"
        );
        change
    }

    /// Bytes of all versions.
    pub fn bytes(&self) -> usize {
        self.newest.bytes() + self.older.iter().map(Stored::bytes).sum::<usize>()
    }

    /// What holds between any two writes.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub fn check(&self) -> Result<(), String> {
        let older = self.older.iter().map(|older| older.version);
        ensure(older.clone().is_sorted_by(|one, next| one < next), || {
            let versions: Vec<Version> = older.clone().collect();
            format!("older versions ascend: {versions:?}")
        })?;
        let (last, newest) = (older.clone().next_back(), self.newest.version);
        ensure(last.is_none_or(|last| last < newest), || {
            format!("{last:?} is older than the newest version, {newest:?}")
        })
    }

    fn collapse(&mut self, watermark: Version, change: &mut Change) {
        for hidden in self.older.drain(..self.hidden(watermark)) {
            change.removed += hidden.bytes();
            change.collapsed += 1;
        }
    }

    /// How many of the oldest versions no reader at or above `watermark` sees: of those at or
    /// below it, all but the newest.
    fn hidden(&self, watermark: Version) -> usize {
        if self.newest.version <= watermark {
            return self.older.len();
        }
        let at_or_below = self
            .older
            .partition_point(|older| older.version <= watermark);
        at_or_below.saturating_sub(1)
    }

    /// The newest version.
    pub fn newest(&self) -> Version {
        self.newest.version
    }

    /// The newest version at or below `at`.
    pub fn at(&self, at: Version) -> Option<&Stored> {
        if self.newest.version <= at {
            return Some(&self.newest);
        }
        let after = self.older.partition_point(|older| older.version <= at);
        let found = self.older.get(after.checked_sub(1)?);
        assert!(
            found.is_none_or(|found| found.version <= at),
            "a reader sees nothing newer than its snapshot"
        );
        found
    }

    /// What readers at or above `watermark` may see, newest first.
    pub fn needed(&self, watermark: Version) -> impl Iterator<Item = &Stored> {
        let hidden = self.hidden(watermark);
        assert!(
            hidden <= self.older.len(),
            "the newest version is never hidden"
        );
        let older = &self.older[hidden..];
        std::iter::once(&self.newest).chain(older.iter().rev())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn versions(chain: &Chain) -> Vec<u64> {
        let all = chain.needed(Version::ZERO);
        all.map(|stored| stored.version.0).collect()
    }

    #[test]
    fn versions_that_nobody_can_see_go_at_once_and_no_others() {
        let (mut chain, _) = Chain::new(Version(1), Some(Box::from(*b"1")));
        for version in 2..=5 {
            chain.write(Version(version), Some(Box::from(*b"x")), Version(1));
        }
        // A snapshot at 3, and nothing older.
        let change = chain.write(Version(6), Some(Box::from(*b"6")), Version(3));
        assert_eq!(versions(&chain), [6, 5, 4, 3]);
        assert_eq!(change.collapsed, 2);
        chain.write(Version(7), None, Version(6));
        assert_eq!(versions(&chain), [7, 6]);
        chain.write(Version(8), Some(Box::from(*b"8")), Version::MAX);
        assert_eq!(versions(&chain), [8]);
    }

    #[test]
    fn a_snapshot_between_two_versions_keeps_the_older() {
        let (mut chain, _) = Chain::new(Version(1), Some(Box::from(*b"1")));
        chain.write(Version(4), Some(Box::from(*b"4")), Version(1));
        chain.write(Version(9), Some(Box::from(*b"9")), Version(8));
        assert_eq!(versions(&chain), [9, 4]);
        let needed = chain.needed(Version(9)).map(|stored| stored.version.0);
        assert_eq!(needed.collect::<Vec<_>>(), [9]);
    }

    #[test]
    fn a_version_written_twice_is_replaced() {
        let (mut chain, mut bytes) = Chain::new(Version(3), Some(Box::from(*b"three")));
        for version in [5, 3, 5, 4] {
            let change = chain.write(Version(version), Some(Box::from([1, 2])), Version::ZERO);
            bytes = bytes + change.added - change.removed;
        }
        assert_eq!(versions(&chain), [5, 4, 3]);
        assert_eq!(bytes, 3 * (STORED_BYTES + 2));
    }

    #[test]
    fn versions_out_of_order_are_found_out() {
        let (mut chain, _) = Chain::new(Version(1), None);
        for version in 2..5 {
            chain.write(Version(version), None, Version::ZERO);
        }
        assert_eq!(chain.check(), Ok(()));
        chain.older.swap(0, 1);
        assert!(chain.check().unwrap_err().contains("ascend"));
        chain.older.swap(0, 1);
        chain.newest.version = Version(3);
        assert!(chain.check().unwrap_err().contains("newest"));
    }

    proptest! {
        /// Against a map of all that was ever written.
        #[test]
        fn readers_at_or_above_the_watermark_see_every_write(
            writes in prop::collection::vec((any::<bool>(), 0..6_u64), 1..60),
        ) {
            let mut model: BTreeMap<u64, bool> = BTreeMap::new();
            let mut chain: Option<Chain> = None;
            let (mut watermark, mut bytes) = (0, 0);
            for (version, (is_put, behind)) in (1_u64..).zip(writes) {
                let value = is_put.then(|| version.to_be_bytes());
                let value = value.as_ref().map(<[u8; 8]>::as_slice);
                match &mut chain {
                    None => {
                        let (made, more) = Chain::new(Version(version), value.map(Box::from));
                        bytes = more;
                        chain = Some(made);
                    }
                    Some(chain) => {
                        let change = chain.write(Version(version), value.map(Box::from), Version(watermark));
                        bytes = bytes + change.added - change.removed;
                    }
                }
                model.insert(version, is_put);
                let chain = chain.as_ref().unwrap();
                for at in watermark..=version + 1 {
                    let expected = model.range(..=at).next_back();
                    let expected = expected.map(|(version, is_put)| (*version, *is_put));
                    let found = chain.at(Version(at));
                    let found = found.map(|found| (found.version.0, found.value.is_some()));
                    prop_assert_eq!(found, expected, "at {}", at);
                }
                let held: usize = chain.needed(Version::ZERO).map(Stored::bytes).sum();
                prop_assert_eq!(held, bytes);
                watermark = watermark.max(version.saturating_sub(behind));
            }
        }
    }
}
