//! What is declared of a command: its name, arity, properties, keys and family.

use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::resp::Reply;

/// Properties of a command, as COMMAND names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    /// None.
    pub const NONE: Self = Self(0);
    /// It may change keys.
    pub const WRITE: Self = Self(1);
    /// It changes no key.
    pub const READONLY: Self = Self(2);
    /// It may take memory, and is refused when there is none.
    pub const DENYOOM: Self = Self(4);
    /// It takes constant or logarithmic time.
    pub const FAST: Self = Self(8);
    /// It may wait for a key.
    pub const BLOCKING: Self = Self(16);
    /// Scripts may not call it.
    pub const NOSCRIPT: Self = Self(32);
    /// It administers the server.
    pub const ADMIN: Self = Self(64);
    /// It is about channels.
    pub const PUBSUB: Self = Self(128);
    /// It needs no password.
    pub const NO_AUTH: Self = Self(256);
    /// It needs no value of its keys, which may be in the store only.
    pub const NO_VALUE: Self = Self(512);
    /// It looks at all keys.
    pub const ALL_KEYS: Self = Self(1024);
    /// Its keys depend on its arguments.
    pub const MOVABLE: Self = Self(2048);
    /// It may be given inside MULTI without being queued, or not at all.
    pub const NO_MULTI: Self = Self(4096);
    /// Its reply depends on the stamp's seed.
    pub const RANDOM: Self = Self(8192);
    /// Its second word is a command of its own.
    pub const CONTAINER: Self = Self(16384);

    /// Both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` are in it.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of COMMAND.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        let names = [
            (Self::WRITE, "write"),
            (Self::READONLY, "readonly"),
            (Self::DENYOOM, "denyoom"),
            (Self::ADMIN, "admin"),
            (Self::PUBSUB, "pubsub"),
            (Self::NOSCRIPT, "noscript"),
            (Self::BLOCKING, "blocking"),
            (Self::FAST, "fast"),
            (Self::NO_AUTH, "no_auth"),
            (Self::NO_MULTI, "no_multi"),
            (Self::MOVABLE, "movablekeys"),
        ];
        let held = names.into_iter().filter(|(flag, _)| self.has(*flag));
        held.map(|(_, name)| name).collect()
    }
}

/// Families, which are ACL categories and groups of COMMAND DOCS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Bytes and numbers.
    String,
    /// Any key.
    Generic,
    /// Lists.
    List,
    /// Hashes.
    Hash,
    /// Sets.
    Set,
    /// Sorted sets.
    SortedSet,
    /// Channels.
    PubSub,
    /// MULTI.
    Transactions,
    /// Connections.
    Connection,
    /// The server.
    Server,
    /// Lua.
    Scripting,
    /// Streams.
    Stream,
    /// Bits of strings.
    Bitmap,
    /// HyperLogLog.
    HyperLogLog,
    /// Places on the globe.
    Geo,
}

impl Group {
    /// As COMMAND DOCS names it, and as ACL does.
    #[must_use]
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::String => ("string", "string"),
            Self::Generic => ("generic", "keyspace"),
            Self::List => ("list", "list"),
            Self::Hash => ("hash", "hash"),
            Self::Set => ("set", "set"),
            Self::SortedSet => ("sorted-set", "sortedset"),
            Self::PubSub => ("pubsub", "pubsub"),
            Self::Transactions => ("transactions", "transaction"),
            Self::Connection => ("connection", "connection"),
            Self::Server => ("server", "admin"),
            Self::Scripting => ("scripting", "scripting"),
            Self::Stream => ("stream", "stream"),
            Self::Bitmap => ("bitmap", "bitmap"),
            Self::HyperLogLog => ("hyperloglog", "hyperloglog"),
            Self::Geo => ("geo", "geo"),
        }
    }
}

/// Which arguments are keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// None.
    None,
    /// From one to another, counted from the end when negative, every so many.
    Range(usize, isize, usize),
    /// As many as the argument at the first place says, behind it; and the one at the second place.
    Counted(usize, Option<usize>),
    /// The first half of what is behind the word STREAMS.
    Streams,
    /// The first argument, and those behind the words STORE and STOREDIST from a place on.
    Stored(usize),
}

impl Keys {
    /// The first argument.
    pub const ONE: Self = Self::Range(1, 1, 1);
    /// All arguments.
    pub const ALL: Self = Self::Range(1, -1, 1);

    /// First, last and step, as COMMAND tells them.
    #[must_use]
    pub fn range(self) -> (i64, i64, i64) {
        let number = |place| i64::try_from(place).unwrap_or(i64::MAX);
        match self {
            Self::None => (0, 0, 0),
            Self::Range(first, last, step) => (
                number(first),
                i64::try_from(last).unwrap_or(i64::MIN),
                number(step),
            ),
            Self::Counted(_, Some(place)) => (number(place), number(place), 1),
            Self::Counted(_, None) | Self::Streams => (0, 0, 0),
            Self::Stored(_) => (1, 1, 1),
        }
    }

    /// The places of the keys of `command`.
    #[must_use]
    pub fn places(self, command: &Command) -> Vec<usize> {
        let len = command.len();
        match self {
            Self::None => Vec::new(),
            Self::Range(first, last, step) => {
                let last = match usize::try_from(last) {
                    Ok(last) => last,
                    Err(_) => len.saturating_sub(last.unsigned_abs()),
                };
                (first..=last.min(len.saturating_sub(1)))
                    .step_by(step)
                    .collect()
            }
            Self::Counted(at, extra) => {
                let count = crate::number::integer(command.arg(at)).unwrap_or(0);
                let count = usize::try_from(count).unwrap_or(0).min(len);
                let counted = (at + 1..at + 1 + count).filter(|place| *place < len);
                extra.into_iter().chain(counted).collect()
            }
            Self::Streams => streams(command),
            Self::Stored(from) => {
                let is_store = |place: &usize| {
                    command.is_word(*place, "STORE") || command.is_word(*place, "STOREDIST")
                };
                let targets = (from..len.saturating_sub(1)).filter(is_store);
                std::iter::once(1)
                    .chain(targets.map(|place| place + 1))
                    .collect()
            }
        }
    }
}

/// The places of the keys of XREAD and XREADGROUP.
fn streams(command: &Command) -> Vec<usize> {
    let mut place = 1;
    while place < command.len() && !command.is_word(place, "STREAMS") {
        // What an option is given may be called STREAMS too.
        place += match () {
            () if command.is_word(place, "GROUP") => 3,
            () if command.is_word(place, "NOACK") => 1,
            () => 2,
        };
    }
    let behind = command.len().saturating_sub(place + 1);
    (place + 1..place + 1 + behind / 2).collect()
}

/// What runs a command on data.
pub type DataRun = fn(&mut Context<'_>, &Command) -> Result<Reply, CommandError>;

/// What runs a command.
#[derive(Debug, Clone, Copy)]
pub enum Run {
    /// On data alone.
    Data(DataRun),
    /// On the connection and what all connections share: [`crate::server::ConnectionCommand`] has it.
    Connection,
}

/// One entry of the command table.
#[derive(Debug)]
pub struct CommandSpec {
    /// The name in small letters.
    pub name: &'static str,
    /// Number of arguments with the name; negative: at least.
    pub arity: i16,
    /// Properties.
    pub flags: Flags,
    /// Keys.
    pub keys: Keys,
    /// Family.
    pub group: Group,
    /// Which Redis has it.
    pub since: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// What runs it.
    pub run: Run,
}

/// A command on data.
pub(crate) const fn data(
    (name, arity): (&'static str, i16),
    flags: Flags,
    keys: Keys,
    group: Group,
    (since, summary): (&'static str, &'static str),
    run: DataRun,
) -> CommandSpec {
    CommandSpec {
        name,
        arity,
        flags,
        keys,
        group,
        since,
        summary,
        run: Run::Data(run),
    }
}
