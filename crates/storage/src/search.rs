//! What files still have of keys, whoever may read it: what [`crate::Engine::search_files`] is asked
//! and answers.

use std::collections::BTreeSet;

use crate::model::Version;

/// A version of a key that a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredVersion<'a> {
    /// The key, or what is left of it where a newer record has been written over the rest.
    pub key: &'a [u8],
    /// When it was written; [`Version::ZERO`] where that is not known any more.
    pub version: Version,
    /// `None` of a deletion, and where only the key is there.
    pub value: Option<&'a [u8]>,
}

/// Says whether a version is one that is searched for.
pub type Judge<'j> = dyn FnMut(&StoredVersion<'_>) -> bool + 'j;

/// Files of one kind that were searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SearchedFiles {
    /// All of them.
    pub files: u64,
    /// Those that have what was searched for; of sorted files those that may.
    pub holding: u64,
    /// Versions that were searched for and found, each as often as it is there.
    pub versions: u64,
}

impl SearchedFiles {
    /// One more file, in which `found` versions were.
    pub(crate) fn add(&mut self, found: u64) {
        self.files += 1;
        self.versions += found;
        self.holding += u64::from(found > 0);
        assert!(
            self.holding <= self.files && self.holding <= self.versions,
            "a file has something by what was found in it"
        );
    }
}

/// What a search has found, by the kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileSearch {
    /// Files of rows in the order of keys.
    pub sorted: SearchedFiles,
    /// RocksDB's lists of sorted files, which have the lowest and the highest key of each.
    pub manifests: SearchedFiles,
    /// Files of the commit log.
    pub log: SearchedFiles,
    /// Files that the commit log will write over.
    pub spares: SearchedFiles,
}

/// Beginnings of the keys that are searched for.
#[derive(Debug, Clone, Default)]
pub struct KeyPrefixes {
    /// Ascending; none begins with another.
    prefixes: Vec<Vec<u8>>,
    /// The beginnings of all of them, as long as the shortest is.
    heads: BTreeSet<Vec<u8>>,
}

impl KeyPrefixes {
    /// Keys that begin with one of `prefixes`. An empty one is left out: it says nothing of a key.
    #[must_use]
    pub fn new(mut prefixes: Vec<Vec<u8>>) -> Self {
        prefixes.retain(|prefix| !prefix.is_empty());
        prefixes.sort_unstable();
        // Those that begin with another follow it.
        prefixes.dedup_by(|next, kept| next.starts_with(kept));
        assert!(
            prefixes.is_sorted_by(|one, next| one < next && !next.starts_with(one)),
            "a key begins with one prefix at most"
        );
        let shortest = prefixes.iter().map(Vec::len).min().unwrap_or(0);
        let heads = prefixes
            .iter()
            .filter_map(|prefix| Some(prefix.get(..shortest)?.to_vec()))
            .collect();
        Self { prefixes, heads }
    }

    /// Each prefix, ascending.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.prefixes.iter().map(Vec::as_slice)
    }

    /// The prefix that `key` begins with.
    #[must_use]
    pub fn of(&self, key: &[u8]) -> Option<&[u8]> {
        prefix_of(&self.prefixes, key, Vec::as_slice).map(Vec::as_slice)
    }

    /// Where in `bytes` a prefix stands, in order, with that prefix.
    pub fn places<'b>(&'b self, bytes: &'b [u8]) -> impl Iterator<Item = (usize, &'b [u8])> + 'b {
        let length = self.heads.first().map_or(usize::MAX, Vec::len);
        let mut begins = [false; 256];
        for first in self.heads.iter().filter_map(|head| head.first()) {
            begins[usize::from(*first)] = true;
        }
        assert!(
            self.heads.iter().all(|head| head.len() == length),
            "all heads are of one length"
        );
        let mut at = 0;
        std::iter::from_fn(move || {
            while let Some(rest) = bytes.get(at..) {
                at += skipped(rest, &begins)?;
                let rest = bytes.get(at..)?;
                at += 1;
                let is_head = rest
                    .get(..length)
                    .is_some_and(|head| self.heads.contains(head));
                if is_head && let Some(prefix) = self.of(rest) {
                    return Some((at - 1, prefix));
                }
            }
            None
        })
    }
}

/// The element of `sorted` with whose prefix `key` begins. The prefixes ascend, and none begins with
/// another, so that it is the last one at or below the key.
pub(crate) fn prefix_of<'a, T>(
    sorted: &'a [T],
    key: &[u8],
    prefix: impl Fn(&T) -> &[u8],
) -> Option<&'a T> {
    let behind = sorted.partition_point(|one| prefix(one) <= key);
    let found = sorted.get(behind.checked_sub(1)?)?;
    key.starts_with(prefix(found)).then_some(found)
}

/// Bytes that are compared at once.
const ZEROS: [u8; 4096] = [0; 4096];

/// How many bytes come before the first with which a prefix may begin; `None`: no such byte.
fn skipped(bytes: &[u8], begins: &[bool; 256]) -> Option<usize> {
    let mut at = 0;
    // Files that were filled ahead are zeros for the most part.
    while !begins[0]
        && let Some(block) = bytes.get(at..at + ZEROS.len())
        && block == ZEROS
    {
        at += ZEROS.len();
    }
    let rest = bytes.get(at..)?;
    let found = rest.iter().position(|byte| begins[usize::from(*byte)]);
    Some(at + found?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn small() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(0..3_u8, 0..5)
    }

    proptest! {
        #[test]
        fn places_are_those_that_a_naive_search_finds(
            prefixes in prop::collection::vec(small(), 0..5),
            zeros in prop_oneof![Just(0_usize), 4_090..4_100_usize, Just(9_000)],
            before in small(), behind in prop::collection::vec(0..3_u8, 0..60),
        ) {
            let bytes = [before, vec![0; zeros], behind].concat();
            let known = KeyPrefixes::new(prefixes.clone());
            let wanted = |at: usize| {
                let mut prefixes = prefixes.iter().filter(|prefix| !prefix.is_empty());
                prefixes.any(|prefix| bytes[at..].starts_with(prefix))
            };
            let expected: Vec<usize> = (0..bytes.len()).filter(|at| wanted(*at)).collect();
            let found: Vec<usize> = known.places(&bytes).map(|(at, _)| at).collect();
            prop_assert_eq!(found, expected);
            for (at, prefix) in known.places(&bytes) {
                prop_assert!(bytes[at..].starts_with(prefix));
                prop_assert_eq!(known.of(&bytes[at..]), Some(prefix));
            }
        }
    }
}
