//! The keyspace of Redis as a machine that is replicated.
//!
//! Commands run on objects and write rows; rows are the effects that backups keep and the state that is
//! handed to a new one. A backup has rows alone. A server that runs its first command makes objects of
//! them, and keeps both from then on: its memory holds each value twice.
//!
//! Keys carry their database in front. What the command table says of a command decides which keys it
//! declares: none at all for one whose answer is drawn, that may wait, or that looks at all keys. Such
//! a command is recorded nowhere, and synced before it is answered.

mod moving;
mod scripts;

use std::collections::BTreeMap;

use manxdb_curp::bytes::Bytes;
use manxdb_curp::ids::Stamp;
use manxdb_curp::slots::Slotted;
use manxdb_curp::{Declared, Execute, Executed};
use manxdb_redis::keyspace::{LoadedRow, rows};
use manxdb_redis::resp::Reply;
use manxdb_redis::server::scripting::{ScriptCommand, ScriptRunner};
use manxdb_redis::server::table;
use manxdb_redis::server::timeout_reply;
use manxdb_redis::spec::{Flags, Run};
use manxdb_redis::{Command, Effects, Keyspace, RowWrite};

use crate::command::ReplicatedCommand;

use self::scripts::Scripts;

pub(crate) use self::moving::slots_of;
pub use self::moving::told;

/// Names whose answers depend on what a command draws or on an order that rows do not keep, and names
/// that may wait.
const UNRECORDED: [Flags; 3] = [Flags::RANDOM, Flags::BLOCKING, Flags::ALL_KEYS];

/// Bytes of all rows at which commands that need memory are refused: they are in memory, and one record
/// on disk, which has room for those that one more command writes.
pub const STATE_BYTES_MAX: usize = 160 << 20;
/// Bytes that one command may write.
pub const EFFECTS_BYTES_MAX: usize = 32 << 20;
/// Bytes that one command may answer.
pub const ANSWER_BYTES_MAX: usize = 64 << 20;
/// What a row takes in a snapshot beside its bytes: two lengths.
const ROW_BYTES: usize = 10;

/// What a cluster replicates: keys, of which it owns those in some hash slots, or in all.
pub type RedisMachine = Slotted<RedisKeys>;

/// All keys of a cluster.
#[derive(Debug)]
pub struct RedisKeys {
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Bytes of all rows.
    bytes: usize,
    /// Objects made of the rows, and what the last command changed.
    keyspace: Option<Keyspace>,
    /// What the last command changed, in `keyspace` alone so far.
    pending: Option<(Vec<u8>, Vec<RowWrite>)>,
    /// Executes scripts, once one has come.
    runner: Option<Box<ScriptRunner>>,
}

impl Clone for RedisKeys {
    fn clone(&self) -> Self {
        Self {
            rows: self.rows.clone(),
            bytes: self.bytes,
            keyspace: None,
            pending: None,
            runner: None,
        }
    }
}

impl PartialEq for RedisKeys {
    fn eq(&self, other: &Self) -> bool {
        self.rows == other.rows
    }
}

impl RedisKeys {
    /// Rows of all keys.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Bytes of all rows, with what each takes in a snapshot.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The objects, without what a command changed that was not let happen.
    fn keyspace(&mut self) -> &mut Keyspace {
        if self.pending.take().is_some() {
            self.keyspace = None;
        }
        let rows = &self.rows;
        self.keyspace.get_or_insert_with(|| load(rows))
    }

    /// Executes commands together: their replies, what they wrote, and whether nothing of it may happen.
    fn run_all<'a>(
        &mut self,
        replicated: &'a ReplicatedCommand,
        stamp: Stamp,
        executed: &mut Executed,
    ) -> (Vec<(&'a Command, Reply)>, Effects, bool) {
        let (mut effects, mut is_void) = (Effects::default(), false);
        let mut replies = Vec::with_capacity(replicated.commands.len());
        self.keyspace();
        let mut scripts = Scripts {
            rows: &self.rows,
            runner: &mut self.runner,
            written: BTreeMap::new(),
            is_flushed: false,
        };
        for command in &replicated.commands {
            let Some(keyspace) = &mut self.keyspace else {
                break; // it was just made
            };
            let reply = if let Some(asked) = ScriptCommand::of(command) {
                let ran = scripts.execute(keyspace, replicated.db, (asked, command), at(stamp));
                effects.append(ran.effects);
                executed.touched.extend(ran.touched);
                executed.touches_all |= ran.touches_all;
                is_void |= ran.is_void;
                ran.reply
            } else {
                let (reply, written) = run(keyspace, usize::from(replicated.db), command, stamp);
                effects.append(written);
                reply
            };
            executed.touched.extend(keys_of(replicated.db, command));
            // SORT reads keys that only the elements name.
            executed.touches_all |=
                has_any(command, &[Flags::ALL_KEYS]) || manxdb_redis::reads_beside(command);
            replies.push((command, reply));
        }
        (replies, effects, is_void)
    }

    /// The effects of what the objects have already, and the rows not yet.
    fn hold(&mut self, effects: Effects) -> Vec<u8> {
        if effects.rows.is_empty() {
            return Vec::new();
        }
        let encoded = encode(&effects.rows);
        self.pending = Some((encoded.clone(), effects.rows));
        encoded
    }

    fn write(&mut self, written: Vec<RowWrite>) {
        for row in written {
            if let Some(prefix) = rows::garbage_of(&row.key) {
                self.remove_all(prefix);
                continue;
            }
            let key_bytes = row.key.len() + ROW_BYTES;
            let before = match row.value {
                Some(value) => {
                    self.bytes += key_bytes + value.len();
                    self.rows.insert(row.key, value)
                }
                None => self.rows.remove(&row.key),
            };
            self.uncount(key_bytes, before.as_deref());
        }
    }

    /// Removes rows that nobody sees.
    fn remove_all(&mut self, prefix: &[u8]) {
        let from = self.rows.range(prefix.to_vec()..);
        let found = from.take_while(|(key, _)| key.starts_with(prefix));
        let found: Vec<Vec<u8>> = found.map(|(key, _)| key.clone()).collect();
        for key in found {
            let before = self.rows.remove(&key);
            self.uncount(key.len() + ROW_BYTES, before.as_deref());
        }
    }

    /// A row is there no more.
    fn uncount(&mut self, key_bytes: usize, value: Option<&[u8]>) {
        let gone = value.map_or(0, |value| key_bytes + value.len());
        assert!(gone <= self.bytes, "a row was counted when it was written");
        self.bytes -= gone;
    }
}

/// Why a command is refused, at a state of so many bytes, that may need more or not; once it was
/// executed, with the bytes of its effects and its answer.
fn too_large(state: usize, grows: bool, sizes: Option<(usize, usize)>) -> Option<&'static str> {
    match sizes {
        None if grows && state >= STATE_BYTES_MAX => {
            Some("OOM command not allowed when used memory > 'maxmemory'.")
        }
        Some((effects, _)) if effects > EFFECTS_BYTES_MAX => {
            Some("ERR this command writes more than can be replicated at once")
        }
        Some((_, answer)) if answer > ANSWER_BYTES_MAX => Some("ERR the answer is too large"),
        _ => None,
    }
}

/// Objects of all rows. A row that cannot be read is not there: it came from a machine of another
/// version, and every replica leaves it out alike.
fn load(rows: &BTreeMap<Vec<u8>, Vec<u8>>) -> Keyspace {
    let row = |key: Vec<u8>| rows.get(&key).cloned();
    let epoch_of = |db| row(rows::epoch_key(db));
    let reserved = row(rows::reserved_key());
    let mut keyspace = Keyspace::over_store(epoch_of, reserved.as_deref());
    let prefix = rows::meta_prefix();
    let metas = rows.range(prefix.to_vec()..);
    let metas = metas.take_while(|(key, _)| key.starts_with(&prefix));
    let mut large = Vec::new();
    for (row, meta) in metas {
        if keyspace.take_page(&[(row.clone(), meta.clone())]).is_err() {
            continue;
        }
        if let Some(prefix) = Keyspace::elements_of(row, meta) {
            large.push((row, meta, prefix));
        }
    }
    keyspace.complete();
    for (row, meta, prefix) in large {
        let elements = rows.range(prefix.clone()..);
        let elements = elements.take_while(|(key, _)| key.starts_with(&prefix));
        let name = |key: &[u8]| key[prefix.len()..].to_vec();
        let loaded = LoadedRow {
            row: row.clone(),
            meta: Some(meta.clone()),
            elements: elements
                .map(|(key, value)| (name(key), value.clone()))
                .collect(),
        };
        // One that does not fit stays cold: its commands answer that it cannot be read.
        let _ = keyspace.install(loaded);
    }
    keyspace
}

/// A key with its database.
fn full_key(db: u8, key: &[u8]) -> Vec<u8> {
    [&[db], key].concat()
}

/// The keys that the table finds in a command.
fn keys_of(db: u8, command: &Command) -> impl Iterator<Item = Vec<u8>> {
    let spec = table::find(command.name());
    let places = spec.map_or(Vec::new(), |spec| spec.keys.places(command));
    places
        .into_iter()
        .map(move |place| full_key(db, command.arg(place)))
}

fn has_any(command: &Command, flags: &[Flags]) -> bool {
    let spec = table::find(command.name());
    spec.is_none_or(|spec| flags.iter().any(|flag| spec.flags.has(*flag)))
}

/// The stamp that commands on data run at.
fn at(stamp: Stamp) -> manxdb_redis::Stamp {
    manxdb_redis::Stamp {
        now_millis: stamp.micros / 1_000,
        micros: u16::try_from(stamp.micros % 1_000).unwrap_or(0),
        seed: stamp.seed,
    }
}

/// Whether a command is one of this machine's.
pub(crate) fn is_replicated(command: &Command) -> bool {
    let spec = table::admit(command).ok();
    let is_data = spec.is_some_and(|spec| matches!(spec.run, Run::Data(_)));
    is_data || spec.is_some() && ScriptCommand::of(command).is_some()
}

fn run(keyspace: &mut Keyspace, db: usize, command: &Command, stamp: Stamp) -> (Reply, Effects) {
    manxdb_redis::execute(keyspace, db, command, at(stamp))
}

impl Execute for RedisKeys {
    fn declare(command: &[u8]) -> Option<Declared> {
        let replicated = ReplicatedCommand::decode(command)?;
        let commands = &replicated.commands;
        if !commands.iter().all(is_replicated) {
            return None;
        }
        let is_recorded = !commands.iter().any(|command| has_any(command, &UNRECORDED));
        let keys = commands
            .iter()
            .flat_map(|command| keys_of(replicated.db, command));
        let reads = |command: &Command| match ScriptCommand::of(command) {
            Some(script) => script.reads_only(command),
            None => has_any(command, &[Flags::READONLY]),
        };
        Some(Declared {
            keys: if is_recorded {
                keys.collect()
            } else {
                Vec::new()
            },
            reads_only: commands.iter().all(reads),
        })
    }

    fn execute(&mut self, command: &[u8], stamp: Stamp) -> Executed {
        let Some(replicated) = ReplicatedCommand::decode(command) else {
            return Executed::default();
        };
        let mut executed = Executed::default();
        let (mut replies, effects, is_void) = self.run_all(&replicated, stamp, &mut executed);
        // Written keys that the table does not name are told, and so found undeclared.
        let written = effects.touched();
        let written = written.filter_map(|(db, key)| Some(full_key(u8::try_from(db).ok()?, key)));
        executed.touched.extend(written);
        executed.touched.sort_unstable();
        executed.touched.dedup();
        let reply = match (replicated.is_transaction, replies.pop()) {
            (false, Some((_, reply))) => reply,
            (_, last) => {
                let all = replies.into_iter().chain(last);
                Reply::Array(
                    all.map(|(command, reply)| in_time(command, reply))
                        .collect(),
                )
            }
        };
        reply.encode(replicated.protocol, &mut executed.answer);
        executed.effects = self.hold(effects);
        if is_void {
            // The objects have what does not happen: they are made again of the rows.
            executed.effects.clear();
        }
        executed
    }

    fn refuses(&self, command: &[u8], executed: Option<&Executed>) -> Option<Vec<u8>> {
        let replicated = ReplicatedCommand::decode(command)?;
        let mut commands = replicated.commands.iter();
        let grows = commands.any(|command| match ScriptCommand::of(command) {
            Some(ScriptCommand::Flush) => false,
            Some(script) => !script.reads_only(command),
            None => has_any(command, &[Flags::DENYOOM]),
        });
        let sizes = executed.map(|executed| (executed.effects.len(), executed.answer.len()));
        let why = too_large(self.bytes, grows, sizes)?;
        let mut answer = Vec::new();
        Reply::error(why).encode(replicated.protocol, &mut answer);
        Some(answer)
    }

    fn apply(&mut self, effects: &[u8]) {
        if effects.is_empty() && self.pending.is_none() {
            return; // nothing changes, and the objects are right
        }
        let own = self.pending.take();
        if let Some((_, rows)) = own.filter(|(pending, _)| pending == effects) {
            return self.write(rows); // the objects have it
        }
        self.keyspace = None;
        // What cannot be read changes nothing, here and on every other replica.
        self.write(decode(effects).unwrap_or_default());
    }

    fn snapshot(&self) -> Vec<u8> {
        // Pairs in order are written as a map is.
        let rows = self.rows.iter();
        let rows: Vec<_> = rows
            .map(|(key, value)| (Bytes(key), Bytes(value)))
            .collect();
        let bytes = postcard::to_stdvec(&rows);
        assert!(bytes.is_ok(), "rows can be written down");
        bytes.unwrap_or_default()
    }

    fn restore(snapshot: &[u8]) -> Option<Self> {
        let rows: BTreeMap<&[u8], &[u8]> = postcard::from_bytes(snapshot).ok()?;
        let bytes = rows
            .iter()
            .map(|(key, value)| key.len() + value.len() + ROW_BYTES);
        Some(Self {
            bytes: bytes.sum(),
            rows: rows
                .iter()
                .map(|(key, value)| (key.to_vec(), value.to_vec()))
                .collect(),
            ..Self::empty()
        })
    }

    fn empty() -> Self {
        Self {
            rows: BTreeMap::new(),
            bytes: 0,
            keyspace: None,
            pending: None,
            runner: None,
        }
    }
}

/// A command in a transaction never waits.
fn in_time(command: &Command, reply: Reply) -> Reply {
    match (reply, table::find(command.name())) {
        (Reply::Later, Some(spec)) => timeout_reply(spec.name),
        (reply, _) => reply,
    }
}

type EncodedRow<'a> = (&'a [u8], Option<&'a [u8]>);

fn encode(written: &[RowWrite]) -> Vec<u8> {
    let pairs = written.iter();
    let pairs: Vec<_> = pairs
        .map(|row| (Bytes(&row.key), row.value.as_deref().map(Bytes)))
        .collect();
    let bytes = postcard::to_stdvec(&pairs);
    assert!(bytes.is_ok(), "rows can be written down");
    bytes.unwrap_or_default()
}

fn decode(effects: &[u8]) -> Option<Vec<RowWrite>> {
    let pairs: Vec<EncodedRow<'_>> = postcard::from_bytes(effects).ok()?;
    let row = |(key, value): EncodedRow<'_>| RowWrite {
        key: key.to_vec(),
        value: value.map(<[u8]>::to_vec),
    };
    Some(pairs.into_iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_handed_to_a_backup_is_refused() {
        let why = |state, grows, sizes| too_large(state, grows, sizes).unwrap_or("");
        assert_eq!(why(STATE_BYTES_MAX - 1, true, None), "");
        assert!(why(STATE_BYTES_MAX, true, None).starts_with("OOM "));
        assert_eq!(why(STATE_BYTES_MAX, false, None), "", "DEL makes room");
        let largest = Some((EFFECTS_BYTES_MAX, ANSWER_BYTES_MAX));
        assert_eq!(why(STATE_BYTES_MAX, true, largest), "");
        assert!(why(0, true, Some((EFFECTS_BYTES_MAX + 1, 0))).contains("writes more"));
        assert!(why(0, false, Some((0, ANSWER_BYTES_MAX + 1))).contains("answer"));
        let state_and_one_command = STATE_BYTES_MAX + EFFECTS_BYTES_MAX;
        assert!(state_and_one_command < manxdb_net::frame::PAYLOAD_BYTES_MAX);
    }
}
