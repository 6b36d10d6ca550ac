//! Which key's time is over next, and of which hash a field's.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::{Keyspace, Load, Value, rows};

/// When, and which key of which database.
type Due = (u64, usize, Box<[u8]>);

/// Expiries, earliest first. One that was changed since is found stale when it comes up.
#[derive(Debug, Default)]
pub struct Expiring {
    heap: BinaryHeap<Reverse<Due>>,
}

impl Expiring {
    /// Notes an expiry.
    pub fn add(&mut self, at_millis: u64, db: usize, key: &[u8]) {
        self.heap.push(Reverse((at_millis, db, key.into())));
    }

    /// Notes an expiry unless it is 0, none.
    pub fn add_if_set(&mut self, at_millis: u64, db: usize, key: &[u8]) {
        if at_millis > 0 {
            self.add(at_millis, db, key);
        }
    }

    /// The earliest one, stale or not.
    pub fn first(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    /// The earliest one that is at or before `now`.
    pub fn pop_due(&mut self, now: u64) -> Option<Due> {
        let Reverse((at, _, _)) = self.heap.peek()?;
        if *at > now {
            return None;
        }
        self.heap.pop().map(|Reverse(due)| due)
    }
}

/// Hashes by when the next of their fields expires. One whose field was changed since is found stale when its
/// time comes.
#[derive(Debug, Default)]
pub struct ExpiringFields {
    by_time: BTreeSet<Due>,
    /// Hashes with such fields that are only in the store.
    loads: Vec<Load>,
}

/// What expired of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expired {
    pub db: usize,
    pub key: Box<[u8]>,
    /// Fields of the key, and not the key itself.
    pub are_fields: bool,
    /// The key is there no more.
    pub is_gone: bool,
}

impl Keyspace {
    /// Removes keys whose time is over, at most `limit`; whether more are due.
    pub fn expire_due(&mut self, limit: usize) -> bool {
        for _ in 0..limit {
            let Some((at, db, key)) = self.expiring.pop_due(self.now) else {
                return self.expire_due_fields(limit);
            };
            let entry = self.databases[db].entries.get(&key);
            if entry.is_some_and(|entry| entry.expires == at) {
                self.expire(db, &key);
            }
        }
        true
    }

    /// No key has an expiry at or before this time, in milliseconds since 1970: what had one was
    /// removed, and the removal is in the effects of a command. `None` while not all names are known.
    #[must_use]
    pub fn expired_until(&self) -> Option<u64> {
        let before_first = self.expiring.first().map(|at| at.saturating_sub(1));
        let until = before_first.map_or(self.now, |before| before.min(self.now));
        self.is_complete.then_some(until)
    }

    /// Removes fields of hashes whose time is over, of at most `limit` hashes and so many of each; whether more
    /// are due. A hash that is only in the store is to come first ([`Keyspace::take_due_loads`]).
    fn expire_due_fields(&mut self, limit: usize) -> bool {
        for _ in 0..limit {
            let first = self.expiring_fields.by_time.first();
            if first.is_none_or(|(at, _, _)| *at > self.now) {
                return false;
            }
            let Some((_, db, key)) = self.expiring_fields.by_time.pop_first() else {
                return false;
            };
            let Some(place) = self.databases[db].entries.get_index_of(&key) else {
                continue;
            };
            let entry = &self.databases[db].entries[place];
            if entry.value.is_cold() {
                let row = rows::meta_key(db, self.databases[db].epoch, &key);
                self.expiring_fields.loads.push(Load { row });
            } else if entry.has_due(self.now) {
                self.expire_fields(db, &key, place, limit);
            }
        }
        true
    }

    /// Notes when the next field of a hash expires, if one does.
    pub(super) fn note_next_due(&mut self, db: usize, key: &[u8], next: Option<u64>) {
        if let Some(at) = next {
            self.expiring_fields.by_time.insert((at, db, key.into()));
        }
    }

    /// Values with fields whose time is over, since this was asked last.
    pub(crate) fn take_due_loads(&mut self) -> Vec<Load> {
        std::mem::take(&mut self.expiring_fields.loads)
    }

    /// Whether keys whose time is over are noted as they are removed.
    pub(crate) fn record_expired(&mut self, is_recorded: bool) {
        match &mut self.expired {
            Some(_) if is_recorded => {}
            expired => *expired = is_recorded.then(Vec::new),
        }
    }

    /// What expired since this was asked last.
    pub(crate) fn take_expired(&mut self) -> Vec<Expired> {
        self.expired
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Removes a key whose time is over. To the command that finds it so it was gone before.
    pub(super) fn expire(&mut self, db: usize, key: &[u8]) {
        self.statistics.expired += 1;
        self.note_expired(db, key, false, true);
        let has_changed = self.has_changed;
        self.remove(db, key);
        self.has_changed = has_changed;
    }

    /// Removes fields of a hash whose time is over, at most `limit`, and the hash with its last one. To the
    /// command that finds them so they were gone before. Where the hash is, when it is still there.
    pub(super) fn expire_fields(
        &mut self,
        db: usize,
        key: &[u8],
        place: usize,
        limit: usize,
    ) -> Option<usize> {
        let now = self.now;
        let (_, entry) = self.databases[db].entries.get_index_mut(place)?;
        let Value::Hash(hash) = &mut entry.value else {
            return Some(place);
        };
        let expired = hash.expire(now, limit);
        assert!(expired > 0, "a field is due");
        let is_gone = hash.is_empty();
        self.statistics.expired_fields += expired as u64;
        self.note_expired(db, key, true, is_gone);
        let has_changed = self.has_changed;
        if is_gone {
            self.remove(db, key);
        } else {
            self.touch_at(db, key, place);
        }
        self.has_changed = has_changed;
        (!is_gone).then_some(place)
    }

    fn note_expired(&mut self, db: usize, key: &[u8], are_fields: bool, is_gone: bool) {
        if let Some(expired) = &mut self.expired {
            let key = key.into();
            expired.push(Expired {
                db,
                key,
                are_fields,
                is_gone,
            });
        }
    }
}
