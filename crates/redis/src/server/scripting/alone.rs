//! Scripts where there is no connection: on a keyspace that is replicated.
//!
//! The same script with the same stamp does the same on equal keys. What it touched is told, since a command
//! that is executed again from a record may touch only what it names. It may take so many steps and no more, which
//! is no time: so it ends after the same step on every machine.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::commands::keys_of;
use super::host::{ScriptFate, ScriptHost};
use super::running::{self, Caller};
use crate::command::Command;
use crate::error::CommandError;
use crate::keys::sort::reads_beside;
use crate::keyspace::{Effects, Keyspace, Load, LoadedRow};
use crate::resp::Reply;
use crate::scripts::INSTRUCTIONS;
use crate::scripts::cache::Script;
use crate::scripts::interpreter::ScriptEntry;
use crate::server::{ClientId, Server, Settings};
use crate::spec::{CommandSpec, Flags, Group, Run};
use crate::{Stamp, server::table};

/// Instructions of Lua that a script may take, in runs of [`INSTRUCTIONS`]: about a tenth of a second. While it
/// runs, its master answers nobody.
const RUNS_MAX: u32 = 1_000;
/// Commands that it may call.
const CALLS_MAX: u32 = 50_000;
/// Memory of the interpreter behind a script from which on it is said to touch everything: one that needs much
/// might find less elsewhere.
const MEMORY_BYTES_SURE: usize = 16 << 20;

/// Commands whose replies have an order, or a form, that is no part of the value.
const UNORDERED: [&str; 16] = [
    "hgetall", "hkeys", "hvals", "hscan", "smembers", "sinter", "sunion", "sdiff", "sscan",
    "zscan", "scan", "dump", "object", "sort", "sort_ro", "keys",
];
/// Commands of a connection that scripts may call.
const OF_CONNECTIONS: [&str; 4] = ["select", "time", "ping", "echo"];

/// What a script did.
#[derive(Debug)]
pub struct ScriptRun {
    /// Its reply.
    pub reply: Reply,
    /// What it wrote: the keyspace has it already.
    pub effects: Effects,
    /// The keys that its commands named, and their databases.
    pub touched: BTreeSet<(usize, Vec<u8>)>,
    /// Whether it may have touched other keys, or may do something else when it is executed again.
    pub touches_all: bool,
    /// Whether it took too many steps: nothing of it is to be kept.
    pub is_endless: bool,
}

/// What a script does that is being executed.
#[derive(Debug, Default)]
pub struct Traced {
    touched: BTreeSet<(usize, Vec<u8>)>,
    touches_all: bool,
    calls: u32,
    is_endless: bool,
}

impl Traced {
    /// A command that a script calls in a database.
    ///
    /// # Errors
    /// It is not supported here.
    pub(super) fn call(
        &mut self,
        db: usize,
        spec: &CommandSpec,
        command: &Command,
    ) -> Result<(), CommandError> {
        self.calls += 1;
        self.is_endless |= self.calls > CALLS_MAX;
        let is_known = matches!(spec.run, Run::Data(_)) || OF_CONNECTIONS.contains(&spec.name);
        if !is_known || reads_beside(command) {
            let name = table::full_name(spec, command).to_uppercase();
            return Err(CommandError::new(format!(
                "ERR {} is not supported in a script of a replicated server",
                name.replace('|', " ")
            )));
        }
        let is_drawn = spec.flags.has(Flags::RANDOM) || UNORDERED.contains(&spec.name);
        self.touches_all |= is_drawn || spec.flags.has(Flags::ALL_KEYS);
        let places = spec.keys.places(command);
        self.touched.extend(
            places
                .into_iter()
                .map(|place| (db, command.arg(place).to_vec())),
        );
        Ok(())
    }

    /// Whether the script is to end.
    pub(super) fn is_endless(&self) -> bool {
        self.is_endless
    }
}

/// Counts the steps of a script.
struct StepsLeft(u32);

impl ScriptHost for StepsLeft {
    fn load(&mut self, _load: Load) -> Option<LoadedRow> {
        None // all of a replicated keyspace is in memory
    }

    fn load_names(&mut self, keyspace: &mut Keyspace) -> bool {
        keyspace.is_complete()
    }

    fn interrupt(&mut self, server: &mut Server) -> ScriptFate {
        self.0 = self.0.saturating_sub(1);
        if let Some(traced) = server.traced.as_mut().filter(|_| self.0 == 0) {
            traced.is_endless = true;
        }
        let is_endless = server.traced.as_ref().is_some_and(Traced::is_endless);
        if is_endless {
            ScriptFate::IsAbandoned
        } else {
            ScriptFate::GoesOn
        }
    }
}

/// Executes scripts on a keyspace that it is lent.
pub struct ScriptRunner {
    server: Server,
    /// Who calls their commands.
    id: ClientId,
}

impl std::fmt::Debug for ScriptRunner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ScriptRunner")
            .finish_non_exhaustive()
    }
}

impl Default for ScriptRunner {
    fn default() -> Self {
        let mut server = Server::new(Keyspace::new(), Settings::default(), 0);
        let id = server.connect("replicated".to_owned(), 0);
        Self { server, id }
    }
}

impl ScriptRunner {
    /// The name of a script, if its text is Lua.
    ///
    /// # Errors
    /// It is not.
    pub fn compile(&mut self, text: &[u8]) -> Result<Arc<str>, CommandError> {
        let script = Script::of(text)?;
        self.server.scripts.remember(&script)?;
        Ok(script.name)
    }

    /// Runs the script `text` for an EVAL, EVALSHA, EVAL_RO or EVALSHA_RO.
    pub fn run(
        &mut self,
        keyspace: &mut Keyspace,
        db: usize,
        (command, text): (&Command, &[u8]),
        stamp: Stamp,
    ) -> ScriptRun {
        assert!(self.server.traced.is_none(), "one script runs at a time");
        self.server.traced = Some(Traced::default());
        self.server.select(self.id, db);
        std::mem::swap(&mut self.server.keyspace, keyspace);
        let mut host = StepsLeft(RUNS_MAX);
        let ran = self.run_traced(command, text, stamp, &mut host);
        std::mem::swap(&mut self.server.keyspace, keyspace);
        let traced = self.server.traced.take().unwrap_or_default();
        let (reply, effects) =
            ran.unwrap_or_else(|error| (Reply::Error(error), Effects::default()));
        let (.., memory) = self.server.scripts.sizes();
        let is_sure = self.server.scripts.has_interpreter() && memory <= MEMORY_BYTES_SURE;
        ScriptRun {
            reply: if traced.is_endless {
                Reply::error(endless())
            } else {
                reply
            },
            effects,
            touched: traced.touched,
            touches_all: traced.touches_all || !is_sure,
            is_endless: traced.is_endless,
        }
    }

    fn run_traced(
        &mut self,
        command: &Command,
        text: &[u8],
        stamp: Stamp,
        host: &mut dyn ScriptHost,
    ) -> Result<(Reply, Effects), CommandError> {
        let keys = keys_of(command)?;
        let script = Script::of(text)?;
        self.server.scripts.remember(&script)?;
        let words: Vec<&[u8]> = command.args_from(3).collect();
        let (keys, args) = words.split_at(keys);
        let caller = Caller {
            id: self.id,
            stamp,
            is_read_only: is_read_only(command),
            host,
        };
        let server = &mut self.server;
        Ok(running::run(
            server,
            caller,
            &script,
            ScriptEntry::Whole,
            (keys, args),
        ))
    }
}

fn endless() -> String {
    format!(
        "ERR this script takes more than {} instructions or {CALLS_MAX} commands, the most that a replicated server \
         lets it take, and nothing of it was done",
        u64::from(RUNS_MAX) * u64::from(INSTRUCTIONS)
    )
}

fn is_read_only(command: &Command) -> bool {
    command.is_word(0, "EVAL_RO") || command.is_word(0, "EVALSHA_RO")
}

/// What a replicated machine does of the family of scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptCommand<'a> {
    /// EVAL, EVAL_RO: the text.
    ByText(&'a [u8]),
    /// EVALSHA, EVALSHA_RO: the name.
    ByName(&'a [u8]),
    /// SCRIPT LOAD: the text.
    Load(&'a [u8]),
    /// SCRIPT EXISTS.
    Exists,
    /// SCRIPT FLUSH.
    Flush,
}

impl<'a> ScriptCommand<'a> {
    /// What a command that the table admits is; nothing when it is of another family, or not replicated.
    #[must_use]
    pub fn of(command: &'a Command) -> Option<Self> {
        let spec = table::find(command.name())?;
        if spec.group != Group::Scripting {
            return None;
        }
        match (spec.name, command.len()) {
            ("eval" | "eval_ro", 3..) => Some(Self::ByText(command.arg(1))),
            ("evalsha" | "evalsha_ro", 3..) => Some(Self::ByName(command.arg(1))),
            ("script", 3) if command.is_word(1, "LOAD") => Some(Self::Load(command.arg(2))),
            ("script", 3..) if command.is_word(1, "EXISTS") => Some(Self::Exists),
            ("script", 2) if command.is_word(1, "FLUSH") => Some(Self::Flush),
            ("script", 3)
                if command.is_word(1, "FLUSH")
                    && (command.is_word(2, "SYNC") || command.is_word(2, "ASYNC")) =>
            {
                Some(Self::Flush)
            }
            _ => None,
        }
    }

    /// Whether it changes nothing, whatever the keys are.
    #[must_use]
    pub fn reads_only(self, command: &Command) -> bool {
        self == Self::Exists || is_read_only(command)
    }
}
