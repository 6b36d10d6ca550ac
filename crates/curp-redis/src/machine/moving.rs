//! Keys that move to another group: written down whole, and written as new objects there.

use std::ops::Bound;

use manxdb_curp::bytes::Bytes;
use manxdb_curp::ids::Stamp;
use manxdb_curp::slots::{
    Misplaced, Movable, Named, Piece, PieceLimits, Removal, Slot, SlotRange, Survey,
};
use manxdb_redis::keyspace::{DATABASES, rows};
use manxdb_redis::resp::{Protocol, Reply};
use manxdb_redis::spec::Flags;
use manxdb_redis::{Command, Keyspace};

use super::{EFFECTS_BYTES_MAX, ROW_BYTES, RedisKeys, at, full_key, has_any, keys_of, too_large};
use crate::command::ReplicatedCommand;

/// What a piece leaves of the bytes that one command may write to the last key in it.
const PIECE_ROOM: usize = 8 << 20;

/// A key in a piece: its database, its name, and what it exports.
type Carried<B> = (u8, B, B);

/// The database and name of a key with its database in front.
fn split(key: &[u8]) -> Option<(u8, &[u8])> {
    let (db, name) = key.split_first()?;
    (usize::from(*db) < DATABASES).then_some((*db, name))
}

/// Whether a row is of a key in these slots, and of the keyspace as it is.
fn key_of<'a>(keyspace: &Keyspace, row: &'a [u8], slots: SlotRange) -> Option<(usize, &'a [u8])> {
    let (db, epoch, key) = rows::split_meta(row)?;
    (keyspace.epoch(db) == epoch && slots.has(Slot::of(key))).then_some((db, key))
}

/// What a client is told of an answer: of a command that was not executed in its cluster, why, in Redis
/// Cluster's form.
#[must_use]
pub fn told(answer: Vec<u8>, protocol: Protocol) -> Vec<u8> {
    let why = match Misplaced::decode(&answer) {
        None => return answer,
        Some(Misplaced::Moved { slot, to }) => format!("MOVED {} {to}", slot.number()),
        Some(Misplaced::TryAgain) => {
            "TRYAGAIN keys are on their way between groups; try again later".to_owned()
        }
        Some(Misplaced::CrossSlot) => {
            "CROSSSLOT Keys in request don't hash to slots of the same group".to_owned()
        }
    };
    let mut told = Vec::new();
    Reply::error(why).encode(protocol, &mut told);
    told
}

/// The slots of the keys that commands name.
pub(crate) fn slots_of(commands: &[Command]) -> Vec<Slot> {
    let keys = commands.iter().flat_map(|command| keys_of(0, command));
    keys.map(|key| RedisKeys::slot(&key)).collect()
}

impl RedisKeys {
    /// The rows of keys behind one, in the order of keys with their databases in front.
    fn metas_behind(&self, after: Option<&[u8]>) -> impl Iterator<Item = &Vec<u8>> {
        let prefix = rows::meta_prefix().to_vec();
        let epoch = |db: usize| {
            self.keyspace
                .as_ref()
                .map_or(0, |keyspace| keyspace.epoch(db))
        };
        let from = match after.and_then(split) {
            Some((db, key)) => {
                let db = usize::from(db);
                Bound::Excluded(rows::meta_key(db, epoch(db), key))
            }
            None => Bound::Included(prefix.clone()),
        };
        let behind = self
            .rows
            .range((from, Bound::Unbounded))
            .map(|(row, _)| row);
        behind.take_while(move |row| row.starts_with(&prefix))
    }

    /// Looks at keys behind one until `take` has enough; the key looked at last, unless it was the last.
    fn look(
        &self,
        after: Option<&[u8]>,
        limits: PieceLimits,
        mut take: impl FnMut(&[u8]) -> bool,
    ) -> Option<Vec<u8>> {
        let mut metas = self.metas_behind(after);
        let mut last = None;
        for _ in 0..limits.keys {
            let row = metas.next()?;
            last = rows::split_meta_key(row);
            if !take(row) {
                break;
            }
        }
        let (db, key) = last?;
        metas.next()?;
        Some(full_key(u8::try_from(db).unwrap_or(u8::MAX), key))
    }
}

impl Movable for RedisKeys {
    const KEY_BYTES_MAX: u64 = (EFFECTS_BYTES_MAX - PIECE_ROOM) as u64;

    fn named(command: &[u8]) -> Named {
        let Some(replicated) = ReplicatedCommand::decode(command) else {
            return Named::default();
        };
        let commands = &replicated.commands;
        Named {
            keys: commands
                .iter()
                .flat_map(|command| keys_of(replicated.db, command))
                .collect(),
            is_all: commands
                .iter()
                .any(|command| has_any(command, &[Flags::ALL_KEYS])),
            is_scattered: commands.iter().any(manxdb_redis::reads_beside),
        }
    }

    fn slot(key: &[u8]) -> Slot {
        assert!(!key.is_empty(), "a key has its database in front");
        Slot::of(&key[1..])
    }

    fn survey(&self, slots: SlotRange) -> Survey {
        let mut survey = Survey::default();
        let mut count = |bytes: usize| {
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            survey.largest_bytes = survey.largest_bytes.max(bytes);
        };
        let mut keys = 0;
        // Rows of one key's elements follow each other.
        let (mut of, mut elements) = (None, 0);
        for (row, value) in &self.rows {
            let bytes = row.len() + value.len() + ROW_BYTES;
            if let Some((_, key)) = rows::split_meta_key(row) {
                if slots.has(Slot::of(key)) {
                    keys += 1;
                    count(bytes);
                }
            } else if let Some((db, _, key, generation)) = rows::split_element(row) {
                if of != Some((db, key, generation)) {
                    (of, elements) = (Some((db, key, generation)), 0);
                }
                elements += bytes;
                if slots.has(Slot::of(key)) {
                    count(elements);
                }
            }
        }
        survey.keys = keys;
        survey
    }

    fn read_piece(&mut self, slots: SlotRange, after: Option<&[u8]>, limits: PieceLimits) -> Piece {
        self.keyspace();
        let mut carried: Vec<Carried<Vec<u8>>> = Vec::new();
        let mut bytes = 0;
        let next = self
            .keyspace
            .as_ref()
            .map_or(after.map(<[u8]>::to_vec), |keyspace| {
                self.look(after, limits, |row| {
                    let found = key_of(keyspace, row, slots);
                    let exported = found.and_then(|(db, key)| {
                        let number = u8::try_from(db).ok()?;
                        Some((number, key.to_vec(), keyspace.export(db, key)?))
                    });
                    if let Some(one) = exported {
                        bytes += one.1.len() + one.2.len();
                        carried.push(one);
                    }
                    bytes < limits.bytes as usize
                })
            });
        let written: Vec<_> = carried
            .iter()
            .map(|(db, key, exported)| (db, Bytes(key), Bytes(exported)))
            .collect();
        let written = postcard::to_stdvec(&written);
        assert!(written.is_ok(), "keys can be written down");
        Piece {
            bytes: written.unwrap_or_default(),
            next,
        }
    }

    fn put_piece(&mut self, slots: SlotRange, piece: &[u8], stamp: Stamp) -> Option<Vec<u8>> {
        let carried: Vec<Carried<&[u8]>> = postcard::from_bytes(piece).ok()?;
        let is_known =
            |one: &Carried<&[u8]>| usize::from(one.0) < DATABASES && slots.has(Slot::of(one.1));
        if !carried.iter().all(is_known) {
            return None;
        }
        let keyspace = self.keyspace();
        keyspace.begin(at(stamp));
        let mut is_read = true;
        for (db, key, exported) in &carried {
            is_read &= keyspace.import(usize::from(*db), key, exported);
        }
        let effects = keyspace.finish();
        if !is_read {
            self.keyspace = None; // what it took in is taken back
            return None;
        }
        let effects = self.hold(effects);
        // A piece of whoever sends it: a driver's are far below.
        (effects.len() <= EFFECTS_BYTES_MAX).then_some(effects)
    }

    fn remove_piece(
        &mut self,
        slots: SlotRange,
        after: Option<&[u8]>,
        limits: PieceLimits,
        stamp: Stamp,
    ) -> Removal {
        self.keyspace();
        let mut found = Vec::new();
        let next = self
            .keyspace
            .as_ref()
            .map_or(after.map(<[u8]>::to_vec), |keyspace| {
                self.look(after, limits, |row| {
                    let key = key_of(keyspace, row, slots);
                    found.extend(key.map(|(db, key)| (db, key.to_vec())));
                    true
                })
            });
        let keyspace = self.keyspace();
        keyspace.begin(at(stamp));
        for (db, key) in &found {
            // A row that cannot be read is of no key, here as everywhere.
            keyspace.remove(*db, key);
        }
        let effects = keyspace.finish();
        Removal {
            effects: self.hold(effects),
            next,
        }
    }

    fn has_room(&self) -> bool {
        too_large(self.bytes, true, None).is_none()
    }
}
