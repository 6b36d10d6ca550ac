//! Rows that their owner has given up as a whole, so that a compaction drops them without looking
//! anything up: the rows of a dropped object, and rows whose time is over.
//!
//! The owner of a space of keys promises two things, each as of a version:
//!
//! | | promise |
//! |---|---|
//! | [`DroppedPrefix`] | at its version and later nobody reads a key that begins with the prefix, and what is put under such a key has a later version |
//! | [`ExpiredRows`] | every row of the space with a time at or before `until`, and a version at or below its version, has been replaced or deleted at or below its version |
//!
//! Both stay true for ever. So a compaction that knows only some of them, or knows them late, keeps
//! more rows and never drops a row that is read. Two conditions make them safe:
//!
//! * *The version is on disk* ([`crate::Engine::set_dead_rows`] asks for that). Else a crash could
//!   take the deletion back after a compaction has dropped the rows.
//! * *The version is at or below the watermark.* Else a reader of an older snapshot would miss them.
//!
//! Only puts are dropped. Deletes follow [`crate::collection`]'s own rule, so a key that was found
//! deleted stays deleted, whatever older versions of it other files hold.

use crate::model::Version;
use crate::physical;
use crate::search::prefix_of;

/// When the time of a row is over, told from its value; `None`: never. In the unit of
/// [`ExpiredRows::until`]. Pure: a worker on another machine must give the same answer. Panics on no
/// bytes: it is asked before the checksum of a row is looked at.
pub type ExpiryOf = fn(&[u8]) -> Option<u64>;

/// All keys that begin with a prefix, given up at a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedPrefix {
    /// What the keys begin with; never empty.
    pub prefix: Vec<u8>,
    /// Rows of this version and of older ones are dead.
    pub version: Version,
}

/// Rows of a space of keys that were replaced or deleted because their time was over.
#[derive(Debug, Clone)]
pub struct ExpiredRows {
    /// What the keys of the space begin with.
    pub prefix: Vec<u8>,
    /// Rows with this time and earlier ones are dead,
    pub until: u64,
    /// if they have this version or an older one.
    pub version: Version,
    /// Tells the time of a row.
    pub expiry_of: ExpiryOf,
}

/// What the owners of rows have given up.
#[derive(Debug, Clone, Default)]
pub struct DeadRows {
    /// In any order.
    pub dropped: Vec<DroppedPrefix>,
    /// Of one space at most.
    pub expired: Option<ExpiredRows>,
}

impl DeadRows {
    /// Dropped prefixes that a compaction may use at its watermark: no reader at or above it asks
    /// for their rows.
    pub(crate) fn dropped_by(&self, watermark: Version) -> impl Iterator<Item = &DroppedPrefix> {
        let dropped = self.dropped.iter();
        dropped.filter(move |one| one.version <= watermark)
    }

    /// As [`DeadRows::dropped_by`], of rows whose time is over.
    pub(crate) fn expired_by(&self, watermark: Version) -> Option<&ExpiredRows> {
        let expired = self.expired.as_ref();
        expired.filter(|one| one.version <= watermark)
    }
}

/// [`DeadRows`] that a compaction may use at its watermark, ready for records in their order.
#[derive(Debug, Default)]
pub struct DeadIndex {
    /// Escaped prefixes, ascending; none begins with another.
    dropped: Vec<(Vec<u8>, Version)>,
    /// With the escaped prefix.
    expired: Option<ExpiredRows>,
    /// Of the key whose records are judged: versions up to which it is dropped, and expired, if it is.
    dropped_at: Option<Version>,
    expired_at: Option<Version>,
}

impl DeadIndex {
    /// What of `dead` no reader at or above `watermark` asks for.
    #[must_use]
    pub fn new(dead: &DeadRows, watermark: Version) -> Self {
        let mut dropped: Vec<(Vec<u8>, Version)> = dead
            .dropped_by(watermark)
            .map(|one| {
                assert!(
                    !one.prefix.is_empty(),
                    "an owner gives up its own keys only"
                );
                (physical::escaped_prefix(&one.prefix), one.version)
            })
            .collect();
        // Of equal ones the latest first.
        dropped.sort_unstable_by(|one, other| one.0.cmp(&other.0).then(other.1.cmp(&one.1)));
        // What lies inside another prefix goes with that one.
        dropped.dedup_by(|inner, outer| inner.0.starts_with(&outer.0));
        let expired = dead.expired_by(watermark).map(|one| ExpiredRows {
            prefix: physical::escaped_prefix(&one.prefix),
            ..one.clone()
        });
        assert!(
            dropped.is_sorted_by(|one, other| one.0 < other.0 && !other.0.starts_with(&one.0)),
            "one search finds the only prefix that a key can have"
        );
        let versions = dropped.iter().map(|(_, version)| *version);
        assert!(
            versions
                .chain(expired.as_ref().map(|one| one.version))
                .all(|version| version <= watermark),
            "no reader at the watermark asks for what a compaction takes for dead"
        );
        Self {
            dropped,
            expired,
            ..Self::default()
        }
    }

    /// The records that follow are of the key with this escaped prefix.
    pub fn key(&mut self, escaped_key: &[u8]) {
        self.dropped_at = self.dropped_at(escaped_key);
        let expired = self.expired.as_ref();
        let expired = expired.filter(|one| escaped_key.starts_with(&one.prefix));
        self.expired_at = expired.map(|one| one.version);
    }

    fn dropped_at(&self, escaped_key: &[u8]) -> Option<Version> {
        let found = prefix_of(&self.dropped, escaped_key, |(prefix, _)| prefix.as_slice());
        found.map(|(_, version)| *version)
    }

    /// Whether a record of the key is a put that was given up.
    #[must_use]
    pub fn is_dead(&self, physical_key: &[u8], version: Version, value: &[u8]) -> bool {
        let version = Some(version);
        if version > self.dropped_at && version > self.expired_at {
            return false;
        }
        if physical::is_delete(value) != Some(false) {
            return false;
        }
        version <= self.dropped_at || self.is_expired(physical_key, value)
    }

    fn is_expired(&self, physical_key: &[u8], value: &[u8]) -> bool {
        let Some(expired) = &self.expired else {
            return false;
        };
        // Most rows are not over, which is told for less than a checksum costs. A damaged record is not
        // judged by what it says.
        let at = physical::unchecked_payload(value).and_then(expired.expiry_of);
        at.is_some_and(|at| at <= expired.until)
            && physical::decode_value(physical_key, value).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::physical::Record;
    use proptest::prelude::*;

    fn dropped(prefix: &[u8], version: u64) -> DroppedPrefix {
        DroppedPrefix {
            prefix: prefix.to_vec(),
            version: Version(version),
        }
    }

    fn first_byte(value: &[u8]) -> Option<u64> {
        value.first().copied().map(u64::from)
    }

    fn stored(key: &[u8], version: u64, record: Record<'_>) -> (Vec<u8>, Vec<u8>) {
        let key = physical::key(key, Version(version));
        let mut value = Vec::new();
        physical::encode_value(&key, record, &mut value);
        (key, value)
    }

    fn is_dead(index: &mut DeadIndex, key: &[u8], version: u64, record: Record<'_>) -> bool {
        let (key, value) = stored(key, version, record);
        let (prefix, version) = physical::split(&key).unwrap();
        index.key(prefix);
        index.is_dead(&key, version, &value)
    }

    #[test]
    fn a_row_written_after_its_prefix_was_dropped_lives() {
        let dead = DeadRows {
            dropped: vec![dropped(b"k", 5)],
            expired: None,
        };
        let mut index = DeadIndex::new(&dead, Version(9));
        assert!(is_dead(&mut index, b"k1", 5, Record::Put(b"x")));
        assert!(!is_dead(&mut index, b"k1", 6, Record::Put(b"x")));
        assert!(!is_dead(&mut index, b"j", 1, Record::Put(b"x")));
        assert!(!is_dead(&mut index, b"k1", 5, Record::Delete));
        // A reader may still ask for it.
        let mut index = DeadIndex::new(&dead, Version(4));
        assert!(!is_dead(&mut index, b"k1", 1, Record::Put(b"x")));
    }

    #[test]
    fn a_damaged_row_is_not_judged_by_the_time_it_says() {
        let expired = ExpiredRows {
            prefix: b"k".to_vec(),
            until: 7,
            version: Version(5),
            expiry_of: first_byte,
        };
        let dead = DeadRows {
            dropped: Vec::new(),
            expired: Some(expired),
        };
        let mut index = DeadIndex::new(&dead, Version(5));
        assert!(is_dead(&mut index, b"k", 5, Record::Put(&[7])));
        assert!(!is_dead(&mut index, b"k", 5, Record::Put(&[8])));
        assert!(!is_dead(&mut index, b"k", 6, Record::Put(&[7])));
        assert!(!is_dead(&mut index, b"k", 5, Record::Put(&[])));
        assert!(!is_dead(&mut index, b"l", 5, Record::Put(&[7])));
        let (key, mut value) = stored(b"k", 5, Record::Put(&[9]));
        value[1] = 7;
        index.key(physical::split(&key).unwrap().0);
        assert!(!index.is_dead(&key, Version(5), &value));
    }

    proptest! {
        /// One search for a prefix finds what looking at each of them does.
        #[test]
        fn a_key_is_dropped_when_one_of_the_prefixes_is_its_own(
            prefixes in prop::collection::vec(
                (prop::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(255)], 1..4), 1..9_u64),
                0..6),
            key in prop::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(255)], 0..5),
            version in 0..10_u64, watermark in 0..10_u64,
        ) {
            let dead = DeadRows {
                dropped: prefixes.iter().map(|(prefix, at)| dropped(prefix, *at)).collect(),
                expired: None,
            };
            let mut index = DeadIndex::new(&dead, Version(watermark));
            let found = is_dead(&mut index, &key, version, Record::Put(b""));
            let own = prefixes.iter().filter(|(prefix, at)| {
                key.starts_with(prefix) && *at <= watermark
            });
            let is_own = own.clone().any(|(_, at)| version <= *at);
            prop_assert!(!found || is_own, "a living row was dropped");
            // An outer prefix may have been dropped before an inner one: that keeps more.
            let is_every = own.clone().count() > 0 && own.clone().all(|(_, at)| version <= *at);
            prop_assert!(found || !is_every, "a dead row was kept");
        }
    }
}
