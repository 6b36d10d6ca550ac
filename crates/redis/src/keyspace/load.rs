//! What comes from the store: at a start all names of keys, later values on their next use.

use super::entry::Entry;
use super::value::Value;
use super::{Keyspace, rows};

/// Keys that are looked at in one search for values that may leave memory.
const EVICTION_LOOKS: usize = 4096;

/// A value that a command needs and that is only in the store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Load {
    /// The key of its row.
    pub row: Vec<u8>,
}

/// A value as it is in the store.
#[derive(Debug, Clone)]
pub struct LoadedRow {
    /// The key of its row.
    pub row: Vec<u8>,
    /// The value of its row; `None` when there is none.
    pub meta: Option<Vec<u8>>,
    /// Names and values of its elements' rows, in order, when they have any.
    pub elements: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Keyspace {
    /// Begins over a store with rows, which come with [`Keyspace::take_page`]; `epoch_of` and
    /// `reserved` are the rows of those names.
    #[must_use]
    pub fn over_store(
        epoch_of: impl Fn(usize) -> Option<Vec<u8>>,
        reserved: Option<&[u8]>,
    ) -> Self {
        let mut keyspace = Self::new();
        for db in 0..super::DATABASES {
            let epoch = epoch_of(db).and_then(|value| value.try_into().ok());
            keyspace.databases[db].epoch = epoch.map_or(0, u32::from_be_bytes);
        }
        let reserved = reserved.and_then(|value| value.try_into().ok());
        keyspace.reserved = reserved.map_or(0, u64::from_be_bytes);
        keyspace.generation = keyspace.reserved;
        keyspace.is_complete = false;
        keyspace
    }

    /// Whether the names of all keys of the store are known.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether no command needs anything of the store.
    #[must_use]
    pub fn has_all_values(&self) -> bool {
        self.is_complete && self.cold == 0
    }

    /// All pages were taken.
    pub fn complete(&mut self) {
        self.is_complete = true;
        self.gone = std::collections::HashSet::new();
    }

    /// Takes in rows of keys as they were in the store at some time since the start: what is known
    /// here is newer. The row that cannot be read, if any.
    ///
    /// # Errors
    /// The key of a row that this version did not write.
    pub fn take_page(&mut self, page: &[(Vec<u8>, Vec<u8>)]) -> Result<(), Vec<u8>> {
        for (row, value) in page {
            let (db, epoch, key) = rows::split_meta(row).ok_or_else(|| row.clone())?;
            let is_newer_here = self.databases[db].epoch != epoch
                || self.databases[db].entries.contains_key(key)
                || self.gone.contains(row);
            if !is_newer_here {
                let entry = rows::decode_meta(value).ok_or_else(|| row.clone())?;
                self.note_next_due(db, key, rows::next_due_told(value));
                self.insert_loaded(db, key, entry);
            }
        }
        Ok(())
    }

    fn insert_loaded(&mut self, db: usize, key: &[u8], mut entry: Entry) {
        let before = self.databases[db].entries.get(key).map(Entry::counted_as);
        if let Some(before) = before {
            self.forget_counted(before);
        }
        entry.counted = key.len() + entry.bytes();
        self.memory += entry.counted;
        self.kinds[entry.value.kind().place()] += 1;
        self.cold += usize::from(entry.value.is_cold());
        self.expiring.add_if_set(entry.expires, db, key);
        self.note_next_due(db, key, entry.value.next_due());
        self.databases[db].entries.insert(key.into(), entry);
    }

    /// What of `keys` must come from the store before a command that uses their values runs.
    /// With `only_entry` the command needs to know whether the keys are there, not their values.
    pub fn missing<'a>(
        &self,
        db: usize,
        keys: impl Iterator<Item = &'a [u8]>,
        only_entry: bool,
    ) -> Vec<Load> {
        if self.has_all_values() {
            return Vec::new();
        }
        let mut loads = Vec::new();
        for key in keys {
            let is_missing = match self.databases[db].entries.get(key) {
                Some(entry) => entry.value.is_cold() && !only_entry,
                None if self.is_complete => false,
                None => {
                    let row = rows::meta_key(db, self.databases[db].epoch, key);
                    !self.gone.contains(&row)
                }
            };
            if is_missing {
                let row = rows::meta_key(db, self.databases[db].epoch, key);
                loads.push(Load { row });
            }
        }
        loads
    }

    /// What the rows of elements of a loaded row begin with, when it has any.
    #[must_use]
    pub fn elements_of(row: &[u8], meta: &[u8]) -> Option<Vec<u8>> {
        let (db, epoch, key) = rows::split_meta(row)?;
        let entry = rows::decode_meta(meta)?;
        (entry.generation > 0).then(|| rows::element_prefix(db, epoch, key, entry.generation))
    }

    /// Takes a value in, unless a newer one is here by now.
    ///
    /// # Errors
    /// The key of a row that cannot be read, or an object with another number of elements than its
    /// row tells.
    pub fn install(&mut self, loaded: LoadedRow) -> Result<(), Vec<u8>> {
        let wrong = || loaded.row.clone();
        let (db, epoch, key) = rows::split_meta(&loaded.row).ok_or_else(wrong)?;
        let known = self.databases[db].entries.get(key);
        // A key without an entry is not there, once all names are known: it was deleted meanwhile.
        let is_wanted = self.databases[db].epoch == epoch
            && known.map_or(!self.is_complete, |entry| entry.value.is_cold())
            && !self.gone.contains(&loaded.row);
        if !is_wanted {
            return Ok(());
        }
        let Some(meta) = &loaded.meta else {
            if known.is_some() {
                return Err(wrong());
            }
            self.gone.insert(loaded.row);
            return Ok(());
        };
        let mut entry = rows::decode_meta(meta).ok_or_else(wrong)?;
        if known.is_some_and(|known| known.generation != entry.generation) {
            return Ok(());
        }
        if let Value::Cold(kind) = entry.value {
            let mut value = rows::empty_of(meta).ok_or_else(wrong)?;
            let head = rows::head_told(kind, meta).ok_or_else(wrong)?;
            if !value.take_head(head) {
                return Err(wrong());
            }
            for (name, element) in &loaded.elements {
                if !value.take_row(name, element) {
                    return Err(wrong());
                }
            }
            if Some(value.elements() as u64) != rows::elements_told(meta) {
                return Err(wrong());
            }
            if let Some(pending) = value.pending_mut() {
                pending.in_rows = true;
                pending.forget();
            }
            entry.value = value;
        }
        self.statistics.loaded += 1;
        self.insert_loaded(db, key, entry);
        Ok(())
    }

    /// Lets values leave memory, in turn, until it is a sixteenth below `limit`, so that not every
    /// command meets the limit again. All of them must be in the store; those whose rows `is_kept`
    /// names stay. Looks at [`EVICTION_LOOKS`] keys at most: where most values left long ago, the
    /// next call goes on.
    pub fn evict(&mut self, limit: usize, is_kept: impl Fn(&[u8]) -> bool) {
        assert!(
            self.touched.is_empty(),
            "a value leaves in the middle of a command"
        );
        let low = limit - limit / 16;
        for _ in 0..EVICTION_LOOKS {
            if self.memory <= low || self.cold as u64 == self.kinds.iter().sum::<u64>() {
                return;
            }
            let (db, place) = self.clock_hand;
            let database = &mut self.databases[db];
            let Some((key, entry)) = database.entries.get_index_mut(place) else {
                self.clock_hand = ((db + 1) % super::DATABASES, 0);
                continue;
            };
            self.clock_hand.1 += 1;
            if entry.value.is_cold() || is_kept(&rows::meta_key(db, database.epoch, key)) {
                continue;
            }
            entry.value = Value::Cold(entry.value.kind());
            let bytes = key.len() + entry.bytes();
            assert!(entry.counted >= bytes, "a value that leaves takes memory");
            self.memory -= entry.counted - bytes;
            entry.counted = bytes;
            self.cold += 1;
            self.statistics.evicted += 1;
        }
    }
}
