//! All keys of a server, their values, and what of them changed.
//!
//! The names of all keys are in memory; a value may be only in the store ([`Value::Cold`]) until
//! its next use. Within a command nothing is written: it changes objects and says which keys it
//! touched, and [`Keyspace::finish`] makes rows of those as they are then.
//!
//! | type | what it is |
//! |---|---|
//! | [`Entry`], [`Value`] | a key's expiry and object |
//! | [`rows`] | the bytes of rows, both ways |
//! | [`Effects`] | the rows one command wrote |
//!
//! Which elements of a large object changed is noted by the object itself ([`crate::objects`]).

mod carry;
pub mod effects;
mod entry;
mod expiry;
mod load;
pub mod rows;
mod value;

pub use effects::{Effects, RowWrite};
use entry::Counted;
pub use entry::Entry;
pub use load::{Load, LoadedRow};
pub use value::{Kind, Value};

use crate::Stamp;
use crate::objects::Map;
pub(crate) use expiry::Expired;
use expiry::{Expiring, ExpiringFields};

/// Databases that SELECT chooses among, as in Redis.
pub const DATABASES: usize = 16;

/// Generations reserved in the store at a time.
const GENERATIONS_RESERVED: u64 = 1 << 20;

/// One numbered database.
#[derive(Debug, Default)]
struct Database {
    /// Which of its lives: FLUSHDB begins a new one, whose rows have other keys.
    epoch: u32,
    entries: Map<Box<[u8]>, Entry>,
}

/// A key that a command touched.
#[derive(Debug)]
struct Touched {
    /// The key of its row.
    row: Vec<u8>,
    /// Where it was in the order of keys, which a removal changes; `None` when nobody looked.
    place: Option<usize>,
}

/// All databases.
#[derive(Debug)]
pub struct Keyspace {
    databases: Vec<Database>,
    /// The generation given last, and the last that is reserved in the store.
    generation: u64,
    reserved: u64,
    /// What the command touched, and other rows it wrote.
    touched: Vec<Touched>,
    written: Vec<RowWrite>,
    /// Whether the command did more than remove keys whose time is over.
    has_changed: bool,
    expiring: Expiring,
    expiring_fields: ExpiringFields,
    /// What expired, where somebody wants to know.
    expired: Option<Vec<Expired>>,
    /// Bytes taken, roughly; and how many values are only in the store.
    memory: usize,
    cold: usize,
    /// The database, and the place in it, whose value is the next that may leave memory.
    clock_hand: (usize, usize),
    /// Counted keys by what they are.
    kinds: [u64; Kind::ALL.len()],
    now: u64,
    /// Whether the names of all keys in the store are known here.
    is_complete: bool,
    /// Keys deleted or found absent while they are not.
    gone: std::collections::HashSet<Vec<u8>>,
    /// Counters for INFO.
    pub statistics: Statistics,
}

/// What was done, for INFO.
#[derive(Debug, Default, Clone, Copy)]
pub struct Statistics {
    /// Lookups that found a key.
    pub hits: u64,
    /// Lookups that found none.
    pub misses: u64,
    /// Keys whose time was over.
    pub expired: u64,
    /// Fields of hashes whose time was over.
    pub expired_fields: u64,
    /// Values that left memory.
    pub evicted: u64,
    /// Values that came back.
    pub loaded: u64,
}

impl Default for Keyspace {
    fn default() -> Self {
        Self::new()
    }
}

impl Keyspace {
    /// An empty one, over an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self {
            databases: (0..DATABASES).map(|_| Database::default()).collect(),
            generation: 0,
            reserved: 0,
            touched: Vec::new(),
            written: Vec::new(),
            has_changed: false,
            expiring: Expiring::default(),
            expiring_fields: ExpiringFields::default(),
            expired: None,
            memory: 0,
            cold: 0,
            clock_hand: (0, 0),
            kinds: [0; Kind::ALL.len()],
            now: 0,
            is_complete: true,
            gone: std::collections::HashSet::new(),
            statistics: Statistics::default(),
        }
    }

    /// Begins a command: expiry is judged by its stamp.
    pub fn begin(&mut self, stamp: Stamp) {
        assert!(
            self.touched.is_empty(),
            "the command before was not finished"
        );
        self.now = stamp.now_millis;
    }

    /// The time of the running command, in milliseconds since 1970.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// The entry of `key`, unless there is none or its time is over.
    pub fn find(&mut self, db: usize, key: &[u8]) -> Option<&mut Entry> {
        let place = self.find_place(db, key)?;
        self.entry_at(db, place)
    }

    /// Where [`Keyspace::find`] finds an entry, until a key is removed.
    pub(crate) fn find_place(&mut self, db: usize, key: &[u8]) -> Option<usize> {
        let now = self.now;
        let place = self.databases[db].entries.get_index_of(key)?;
        if self.databases[db].entries[place].is_over(now) {
            self.expire(db, key);
            return None;
        }
        if self.databases[db].entries[place].has_due(now) {
            return self.expire_fields(db, key, place, usize::MAX);
        }
        Some(place)
    }

    /// The entry at a place that [`Keyspace::find_place`] gave.
    pub(crate) fn entry_at(&mut self, db: usize, place: usize) -> Option<&mut Entry> {
        let found = self.databases[db].entries.get_index_mut(place);
        found.map(|(_, entry)| entry)
    }

    /// The entry of `key` as it is, its time over or not.
    #[must_use]
    pub fn peek(&self, db: usize, key: &[u8]) -> Option<&Entry> {
        self.databases[db].entries.get(key)
    }

    /// As [`Keyspace::find`], counted as a hit or a miss.
    pub fn look_up(&mut self, db: usize, key: &[u8]) -> Option<&mut Entry> {
        let Some(place) = self.find_place(db, key) else {
            self.statistics.misses += 1;
            return None;
        };
        self.statistics.hits += 1;
        self.entry_at(db, place)
    }

    /// Puts `value` under `key`, without an expiry, in place of what was there.
    pub fn put(&mut self, db: usize, key: &[u8], value: Value) -> &mut Entry {
        let place = self.put_at(db, key, value);
        &mut self.databases[db].entries[place]
    }

    /// As [`Keyspace::put`]: where it is, until a key is removed.
    pub(crate) fn put_at(&mut self, db: usize, key: &[u8], value: Value) -> usize {
        let entry = Entry::new(value);
        let entries = &mut self.databases[db].entries;
        let place = match entries.get_index_of(key) {
            Some(place) => {
                let before = std::mem::replace(&mut entries[place], entry);
                self.let_go_of_elements(db, key, before.generation);
                self.forget_counted(before.counted_as());
                place
            }
            None => entries.insert_full(key.into(), entry).0,
        };
        self.touch_at(db, key, place);
        place
    }

    /// Puts a whole entry under `key`, as RENAME and COPY do.
    pub(crate) fn put_entry(&mut self, db: usize, key: &[u8], mut entry: Entry) {
        entry.counted = 0;
        if let Some(pending) = entry.value.pending_mut() {
            pending.in_rows = false;
            pending.forget();
        }
        let expires = entry.expires;
        *self.put(db, key, Value::Str(Vec::new())) = entry;
        self.set_expiry(db, key, expires);
    }

    /// Removes `key`; the entry that was there.
    pub fn remove(&mut self, db: usize, key: &[u8]) -> Option<Entry> {
        let entry = self.databases[db].entries.swap_remove(key)?;
        self.let_go_of_elements(db, key, entry.generation);
        self.forget_counted(entry.counted_as());
        self.touch(db, key);
        Some(entry)
    }

    /// An entry is no longer there.
    fn forget_counted(&mut self, counted: Counted) {
        assert!(self.memory >= counted.bytes, "memory is counted twice");
        self.memory -= counted.bytes;
        self.cold -= usize::from(counted.is_cold);
        if counted.bytes > 0 {
            let kind = &mut self.kinds[counted.kind.place()];
            assert!(*kind > 0, "a key is counted under another type");
            *kind -= 1;
        }
    }

    /// Elements of a large object stay in the store until a compaction or a pass in the background: a
    /// row says which.
    fn let_go_of_elements(&mut self, db: usize, key: &[u8], generation: u64) {
        if generation > 0 {
            let epoch = self.databases[db].epoch;
            let prefix = rows::element_prefix(db, epoch, key, generation);
            self.written.push(rows::garbage(&prefix));
        }
    }

    /// Says that `key` was changed by the running command.
    pub fn touch(&mut self, db: usize, key: &[u8]) {
        self.note_touched(db, key, None);
    }

    /// As [`Keyspace::touch`], where it was found.
    pub(crate) fn touch_at(&mut self, db: usize, key: &[u8], place: usize) {
        self.note_touched(db, key, Some(place));
    }

    fn note_touched(&mut self, db: usize, key: &[u8], place: Option<usize>) {
        self.has_changed = true;
        let row = rows::meta_key(db, self.databases[db].epoch, key);
        if self.touched.last().is_none_or(|last| last.row != row) {
            self.touched.push(Touched { row, place });
        }
    }

    /// Takes back that the running command changed `key`, which was there before: nothing was.
    pub(crate) fn untouch(&mut self, db: usize, key: &[u8]) {
        let row = rows::meta_key(db, self.databases[db].epoch, key);
        if self.touched.last().is_some_and(|last| last.row == row) {
            self.touched.pop();
        }
    }

    /// Gives `key` an expiry, or takes it away with 0.
    pub fn set_expiry(&mut self, db: usize, key: &[u8], at_millis: u64) {
        if let Some(entry) = self.databases[db].entries.get_mut(key) {
            entry.expires = at_millis;
            if at_millis > 0 {
                self.expiring.add(at_millis, db, key);
            }
            self.touch(db, key);
        }
    }

    /// Number of keys of a database, those whose time is over but not noticed included.
    #[must_use]
    pub fn len(&self, db: usize) -> usize {
        self.databases[db].entries.len()
    }

    /// Whether a database has no keys.
    #[must_use]
    pub fn is_empty(&self, db: usize) -> bool {
        self.len(db) == 0
    }

    /// Number of keys with an expiry.
    #[must_use]
    pub fn expiring_len(&self, db: usize) -> usize {
        let entries = self.databases[db].entries.values();
        entries.filter(|entry| entry.expires > 0).count()
    }

    /// The key at a place of the order of keys, which changes with removals.
    #[must_use]
    pub fn at(&self, db: usize, place: usize) -> Option<(&[u8], &Entry)> {
        let (key, entry) = self.databases[db].entries.get_index(place)?;
        Some((key, entry))
    }

    /// Removes all keys of a database, at once and in the store too.
    pub fn flush(&mut self, db: usize) {
        self.has_changed = true;
        let database = &mut self.databases[db];
        let before = database.epoch;
        database.epoch = database.epoch.wrapping_add(1);
        let entries = std::mem::take(&mut database.entries);
        for entry in entries.values() {
            self.forget_counted(entry.counted_as());
        }
        self.touched
            .retain(|touched| rows::database_of(&touched.row) != Some(db));
        self.written.push(rows::epoch(db, before.wrapping_add(1)));
        self.written.extend(rows::epoch_garbage(db, before));
    }

    /// Which life a database is in: rows of others are seen by nobody.
    #[must_use]
    pub fn epoch(&self, db: usize) -> u32 {
        self.databases[db].epoch
    }

    /// The last generation that is reserved in the store.
    #[must_use]
    pub fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Bytes taken, roughly.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// Number of keys of a type, of all databases.
    #[must_use]
    pub fn keys_of(&self, kind: Kind) -> u64 {
        self.kinds[kind.place()]
    }

    /// Number of keys whose values are only in the store.
    #[must_use]
    pub fn cold(&self) -> usize {
        self.cold
    }

    /// [`Keyspace::keys_of`] each type, counted from all keys.
    #[must_use]
    pub fn recounted_kinds(&self) -> [u64; Kind::ALL.len()] {
        let mut kinds = [0; Kind::ALL.len()];
        for entry in self.databases.iter().flat_map(|db| db.entries.values()) {
            kinds[entry.value.kind().place()] += 1;
        }
        kinds
    }

    /// Bytes taken, added up from all keys and elements: what [`Keyspace::memory`] has to be.
    /// It takes as long as reading everything.
    #[must_use]
    pub fn recounted_memory(&self) -> usize {
        let entries = self.databases.iter().flat_map(|db| &db.entries);
        entries
            .map(|(key, entry)| key.len() + entry.recounted_bytes())
            .sum()
    }

    /// Ends a command: the rows of all it touched, as they are now.
    pub fn finish(&mut self) -> Effects {
        let mut effects = Effects::default();
        self.finish_into(&mut effects);
        effects
    }

    /// As [`Keyspace::finish`], behind what `effects` has.
    pub(crate) fn finish_into(&mut self, effects: &mut Effects) {
        let before = effects.rows.len();
        // Those on the way, garbage and the like, then those of keys.
        effects.rows.append(&mut self.written);
        let mut touched = std::mem::take(&mut self.touched);
        for one in touched.drain(..) {
            self.write_rows(one, effects);
        }
        effects.rows.append(&mut self.written);
        // Its memory is used again.
        self.touched = touched;
        if !std::mem::take(&mut self.has_changed) {
            effects.expired += effects.rows.len() - before;
        }
    }

    fn write_rows(&mut self, touched: Touched, effects: &mut Effects) {
        let Touched { row, place } = touched;
        let Some((db, key)) = rows::split_meta_key(&row) else {
            return;
        };
        let entries = &self.databases[db].entries;
        let is_there = |place: &usize| {
            let found = entries.get_index(*place);
            found.is_some_and(|(found, _)| **found == *key)
        };
        let place = place.filter(is_there);
        let Some(place) = place.or_else(|| entries.get_index_of(key)) else {
            return self.write_removal(row, effects);
        };
        if entries[place].value.is_empty_collection() {
            self.remove(db, key);
            self.touched.clear();
            return self.write_removal(row, effects);
        }
        if entries[place].needs_generation() {
            let before = entries[place].generation;
            self.let_go_of_elements(db, key, before);
            let generation = self.next_generation(effects);
            self.databases[db].entries[place].generation = generation;
        }
        let key_bytes = key.len();
        let next_due = self.databases[db].entries[place].value.next_due();
        self.note_next_due(db, key, next_due);
        let entry = &mut self.databases[db].entries[place];
        entry.write_rows(row, &mut effects.rows);
        let bytes = key_bytes + entry.bytes();
        self.kinds[entry.value.kind().place()] += u64::from(entry.counted == 0);
        self.memory = self.memory - entry.counted + bytes;
        entry.counted = bytes;
    }

    fn write_removal(&mut self, row: Vec<u8>, effects: &mut Effects) {
        if !self.is_complete {
            self.gone.insert(row.clone());
        }
        effects.rows.push(RowWrite {
            key: row,
            value: None,
        });
    }

    fn next_generation(&mut self, effects: &mut Effects) -> u64 {
        self.generation += 1;
        if self.generation > self.reserved {
            self.reserved = self.generation + GENERATIONS_RESERVED;
            effects.rows.push(rows::reserved(self.reserved));
        }
        assert!(
            self.generation <= self.reserved,
            "a generation that a restart may give again"
        );
        self.generation
    }
}
