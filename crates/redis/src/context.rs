//! What a command on data runs on.

use crate::Stamp;
use crate::error::CommandError;
use crate::keyspace::{Entry, Keyspace, Kind, Value};
use crate::number::Random;
use crate::objects::{Hash, List, Set, Stream, ZSet};

/// What a command runs on.
pub struct Context<'a> {
    /// All keys.
    pub keyspace: &'a mut Keyspace,
    /// The chosen database.
    pub db: usize,
    /// Time and randomness of the command.
    pub stamp: Stamp,
    pub(crate) random: Random,
}

macro_rules! typed {
    ($read:ident, $write:ident, $kind:ident, $type:ty) => {
        /// The object of this type under `key`, if there is a key.
        pub(crate) fn $read(&mut self, key: &[u8]) -> Result<Option<&mut $type>, CommandError> {
            match self.keyspace.look_up(self.db, key) {
                None => Ok(None),
                Some(Entry {
                    value: Value::$kind(object),
                    ..
                }) => Ok(Some(object)),
                Some(entry) => Err(unexpected(entry)),
            }
        }

        /// The object of this type under `key`, made when there is none; the key counts as changed.
        pub(crate) fn $write(&mut self, key: &[u8]) -> Result<&mut $type, CommandError> {
            let place = self.made(key, Kind::$kind)?;
            match self.keyspace.entry_at(self.db, place) {
                Some(Entry {
                    value: Value::$kind(object),
                    ..
                }) => Ok(object),
                _ => Err(CommandError::WRONG_TYPE),
            }
        }
    };
}

/// Why an object is not of the wanted type.
fn unexpected(entry: &Entry) -> CommandError {
    if entry.value.is_cold() {
        return CommandError::text("LOADING a value of this command is in the store only");
    }
    CommandError::WRONG_TYPE
}

impl Context<'_> {
    typed!(string, string_or_new, Str, Vec<u8>);
    typed!(list, list_or_new, List, List);
    typed!(hash, hash_or_new, Hash, Hash);
    typed!(set, set_or_new, Set, Set);
    typed!(zset, zset_or_new, ZSet, ZSet);
    typed!(stream, stream_or_new, Stream, Stream);

    /// Where an object of this type is, made when there is none; the key counts as changed.
    fn made(&mut self, key: &[u8], kind: Kind) -> Result<usize, CommandError> {
        let db = self.db;
        let Some(place) = self.keyspace.find_place(db, key) else {
            return Ok(self.keyspace.put_at(db, key, Value::empty(kind)));
        };
        match self.keyspace.entry_at(db, place) {
            Some(entry) if entry.value.is_cold() || entry.value.kind() != kind => {
                Err(unexpected(entry))
            }
            _ => {
                self.keyspace.touch_at(db, key, place);
                Ok(place)
            }
        }
    }

    /// Says that `key` was changed.
    pub(crate) fn touch(&mut self, key: &[u8]) {
        self.keyspace.touch(self.db, key);
    }

    /// Takes back that `key`, which was there before, was changed: all is as it was.
    pub(crate) fn untouch(&mut self, key: &[u8]) {
        self.keyspace.untouch(self.db, key);
    }

    /// Whether there is a key.
    pub(crate) fn exists(&mut self, key: &[u8]) -> bool {
        self.keyspace.find(self.db, key).is_some()
    }

    /// Removes `key`; whether there was one.
    pub(crate) fn remove(&mut self, key: &[u8]) -> bool {
        self.exists(key) && self.keyspace.remove(self.db, key).is_some()
    }

    /// Puts `value` under `key`, or removes the key when it is an empty collection.
    pub(crate) fn store(&mut self, key: &[u8], value: Value) {
        if value.is_empty_collection() {
            self.remove(key);
        } else {
            self.keyspace.put(self.db, key, value);
        }
    }

    /// The time of the command, in milliseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        self.stamp.now_millis
    }
}
