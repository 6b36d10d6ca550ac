//! Walking a range of the sorted files in both directions over version chains of any length.

use rocksdb::{DB, DBRawIterator, ReadOptions};

use super::error;
use crate::error::StorageError;
use crate::model::{Direction, KeyRange, Version};
use crate::physical::{self, Record};

/// Versions of one key stepped over one by one before a seek jumps over the rest: a seek costs
/// about as much as this many steps.
const STEPS_BEFORE_SEEK: usize = 8;

/// A cursor over a RocksDB iterator.
///
/// The iterator is made for one scan, unlike those of point reads: only bounds given when it is
/// made keep RocksDB from stepping over removed records behind the range.
pub struct RocksCursor<'a> {
    iterator: DBRawIterator<'a>,
    at: Version,
    direction: Direction,
    started: bool,
    /// Prefix of the key last looked at.
    prefix: Vec<u8>,
    seek: Vec<u8>,
    key: Vec<u8>,
    version: Version,
    value: Vec<u8>,
    is_delete: bool,
    /// The first key since the cursor was told where to go that has a version newer than the one read
    /// at.
    first_newer: Option<Vec<u8>>,
    /// Where the range given to [`RocksCursor::go_to`] ends.
    upper: Option<Vec<u8>>,
}

/// What one key turned out to be at the version read.
enum Found {
    Value,
    Deleted,
    Absent,
    End,
}

impl<'a> RocksCursor<'a> {
    /// A cursor at the start of `range`, or at its end when it walks in reverse.
    pub fn new(db: &'a DB, range: &KeyRange, at: Version, direction: Direction) -> Option<Self> {
        let (lower, upper) = physical::bounds(range);
        if upper.as_ref().is_some_and(|upper| *upper <= lower) {
            return None;
        }
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound(lower);
        if let Some(upper) = upper {
            options.set_iterate_upper_bound(upper);
        }
        options.set_total_order_seek(true);
        Some(Self {
            iterator: db.raw_iterator_opt(options),
            at,
            direction,
            started: false,
            prefix: Vec::new(),
            seek: Vec::new(),
            key: Vec::new(),
            version: Version::ZERO,
            value: Vec::new(),
            is_delete: false,
            first_newer: None,
            upper: None,
        })
    }

    /// Goes on at the physical key `lower`, which lies behind everything read so far, and ends
    /// before `upper`. Ascending only. A near place is walked to.
    pub fn go_to(&mut self, lower: &[u8], upper: Option<Vec<u8>>) {
        assert_eq!(self.direction, Direction::Forward, "go_to is for ascending");
        assert!(
            self.prefix.as_slice() < lower,
            "a walk goes on behind all that it has read"
        );
        assert!(
            upper.as_deref().is_none_or(|upper| lower < upper),
            "a walk goes on where there may be keys"
        );
        self.upper = upper;
        self.first_newer = None;
        if std::mem::replace(&mut self.started, true) {
            for _ in 0..STEPS_BEFORE_SEEK {
                // At the end, or at a block that cannot be read: the next read tells.
                if self.iterator.key().is_none_or(|key| key >= lower) {
                    return;
                }
                self.iterator.next();
            }
        }
        self.iterator.seek(lower);
    }

    /// Moves to the next key that has a value; whether there is one.
    pub fn advance(&mut self) -> Result<bool, StorageError> {
        while self.advance_to_any()? {
            if !self.is_delete {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Moves to the next key that has a value or is deleted; whether there is one.
    pub fn advance_to_any(&mut self) -> Result<bool, StorageError> {
        if !std::mem::replace(&mut self.started, true) {
            match self.direction {
                Direction::Forward => self.iterator.seek_to_first(),
                Direction::Reverse => self.iterator.seek_to_last(),
            }
        }
        loop {
            if let Some((key, upper)) = self.iterator.key().zip(self.upper.as_ref())
                && key >= upper.as_slice()
            {
                return Ok(false);
            }
            let found = match self.direction {
                Direction::Forward => self.step_forward()?,
                Direction::Reverse => self.step_reverse()?,
            };
            match found {
                Found::End => return Ok(false),
                Found::Absent => {}
                Found::Value | Found::Deleted => {
                    self.is_delete = matches!(found, Found::Deleted);
                    break;
                }
            }
        }
        physical::unescape(&self.prefix, &mut self.key)?;
        Ok(true)
    }

    /// The key moved to.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The version found there.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Its value, if it is not deleted.
    pub fn value(&self) -> &[u8] {
        &self.value
    }

    /// Whether it is deleted there.
    pub fn is_delete(&self) -> bool {
        self.is_delete
    }

    /// No key since the cursor was told where to go that is less than this one has a version newer
    /// than the one read at. Ascending only.
    pub fn first_newer(&self) -> Option<&[u8]> {
        self.first_newer.as_deref()
    }

    /// Tells the end of the range from a block that could not be read.
    fn check(&self) -> Result<(), StorageError> {
        self.iterator
            .status()
            .map_err(|error| error::map("cannot read a block during a scan", &error))
    }

    /// Notes the prefix under the iterator; `None` at the end of the range.
    fn note_prefix(&mut self) -> Result<Option<Version>, StorageError> {
        let Some(key) = self.iterator.key() else {
            self.check()?;
            return Ok(None);
        };
        let (prefix, version) = split(key)?;
        self.prefix.clear();
        self.prefix.extend_from_slice(prefix);
        Ok(Some(version))
    }

    /// Version under the iterator when it still stands on the noted prefix.
    fn version_here(&self) -> Option<Version> {
        let (prefix, version) = physical::split(self.iterator.key()?)?;
        (prefix == self.prefix).then_some(version)
    }

    /// Checks the record under the iterator and keeps its value.
    fn keep(&mut self) -> Result<Found, StorageError> {
        let Some((key, value)) = self.iterator.item() else {
            self.check()?;
            return Ok(Found::Absent);
        };
        self.version = split(key)?.1;
        assert!(
            self.version <= self.at,
            "a scan sees nothing newer than its snapshot: {:?} at {:?}",
            self.version,
            self.at
        );
        match physical::decode_value(key, value)? {
            Record::Delete => Ok(Found::Deleted),
            Record::Put(payload) => {
                self.value.clear();
                self.value.extend_from_slice(payload);
                Ok(Found::Value)
            }
        }
    }

    fn seek_to_version_read(&mut self) {
        self.seek.clear();
        self.seek.extend_from_slice(&self.prefix);
        physical::push_version(self.at, &mut self.seek);
        self.iterator.seek(&self.seek);
    }

    /// Looks at the key under the iterator and leaves it on the following key.
    fn step_forward(&mut self) -> Result<Found, StorageError> {
        let Some(mut version) = self.note_prefix()? else {
            return Ok(Found::End);
        };
        let mut steps = 0;
        if version > self.at && self.first_newer.is_none() {
            let mut newer = Vec::new();
            physical::unescape(&self.prefix, &mut newer)?;
            self.first_newer = Some(newer);
        }
        while version > self.at {
            if steps == STEPS_BEFORE_SEEK {
                self.seek_to_version_read();
            } else {
                self.iterator.next();
            }
            steps += 1;
            match self.version_here() {
                Some(next) => version = next,
                None => return Ok(Found::Absent),
            }
        }
        let found = self.keep()?;
        self.leave_forward();
        Ok(found)
    }

    fn leave_forward(&mut self) {
        for _ in 0..STEPS_BEFORE_SEEK {
            self.iterator.next();
            if self.version_here().is_none() {
                return;
            }
        }
        self.seek.clear();
        self.seek.extend_from_slice(&self.prefix);
        physical::push_version(Version::ZERO, &mut self.seek);
        self.seek.push(0);
        self.iterator.seek(&self.seek);
    }

    /// Looks at the key under the iterator, its oldest version first, and leaves it on the
    /// preceding key.
    fn step_reverse(&mut self) -> Result<Found, StorageError> {
        let Some(oldest) = self.note_prefix()? else {
            return Ok(Found::End);
        };
        let mut found = Found::Absent;
        let mut version = Some(oldest);
        for _ in 0..STEPS_BEFORE_SEEK {
            match version {
                Some(version) if version <= self.at => found = self.keep()?,
                Some(_) => {}
                None => {
                    // An unreadable block may hide a newer version than the one found.
                    self.check()?;
                    return Ok(found);
                }
            }
            self.iterator.prev();
            version = self.version_here();
        }
        // The seeks below forget an error: an unreadable block may hide a newer version.
        self.check()?;
        match version {
            None => return Ok(found),
            Some(version) if version <= self.at => {
                self.seek_to_version_read();
                found = self.keep()?;
            }
            Some(_) => {}
        }
        self.iterator.seek_for_prev(&self.prefix);
        Ok(found)
    }
}

fn split(key: &[u8]) -> Result<(&[u8], Version), StorageError> {
    physical::split(key).ok_or_else(|| {
        StorageError::Corrupt(format!("stored key {} is too short", physical::hex(key)))
    })
}
