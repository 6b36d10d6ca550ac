//! The server: commands in, replies and rows out.

use std::collections::{BTreeMap, HashMap};

use super::acl::Users;
use super::call::Call;
use super::channels::Channels;
use super::client::{Client, ClientId, ReplyMode};
use super::config::Settings;
use super::latency::Latency;
use super::numbers::Outside;
use super::scripting::{NoHost, RunningScript, ScriptHost};
use super::slowlog::SlowLog;
use super::table;
use super::waiting::Waiting;
use crate::Stamp;
use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::keyspace::{Effects, Keyspace, Load, LoadedRow};
use crate::number::Random;
use crate::resp::{Limits, Protocol, Reply};
use crate::scripts::Scripts;
use crate::spec::{CommandSpec, Flags, Run};

/// What became of a command.
#[derive(Debug)]
pub struct Handled {
    /// The reply, [`Reply::Later`] when none is sent now.
    pub reply: Reply,
    /// What was written. The reply leaves when the store has it, if it has changes
    /// ([`Effects::has_changes`]).
    pub effects: Effects,
}

/// Keyspace, connections and what they share.
pub struct Server {
    /// All keys.
    pub keyspace: Keyspace,
    pub(super) settings: Settings,
    pub(super) clients: HashMap<ClientId, Client, foldhash::fast::RandomState>,
    pub(super) users: Users,
    pub(super) channels: Channels,
    pub(super) waiting: Waiting,
    pub(super) watchers: HashMap<(usize, Box<[u8]>), Vec<ClientId>>,
    pub(super) closing: Vec<ClientId>,
    pub(crate) scripts: Scripts,
    /// The script that runs now.
    pub(crate) running: Option<RunningScript>,
    outbox: Vec<(ClientId, Reply)>,
    loads: Vec<Load>,
    next_id: u64,
    pub(super) commands: u64,
    pub(super) connections: u64,
    /// Errors that commands were answered with.
    pub(super) errors: u64,
    pub(super) slow: SlowLog,
    pub(super) latency: Latency,
    /// What the process around it tells.
    pub outside: Outside,
    pub(super) started_millis: u64,
    /// Why nothing can be written.
    refusal: Option<String>,
    /// Sections of INFO that are not this crate's.
    pub(super) more_info: BTreeMap<&'static str, Vec<(String, String)>>,
}

impl Server {
    /// A server over `keyspace`.
    #[must_use]
    pub fn new(keyspace: Keyspace, settings: Settings, now_millis: u64) -> Self {
        Self {
            keyspace,
            users: Users::new(settings.password.as_deref()),
            settings,
            clients: HashMap::default(),
            channels: Channels::default(),
            waiting: Waiting::default(),
            watchers: HashMap::new(),
            closing: Vec::new(),
            scripts: Scripts::default(),
            running: None,
            outbox: Vec::new(),
            loads: Vec::new(),
            next_id: 1,
            commands: 0,
            connections: 0,
            errors: 0,
            slow: SlowLog::default(),
            latency: Latency::default(),
            outside: Outside::default(),
            started_millis: now_millis,
            refusal: None,
            more_info: BTreeMap::new(),
        }
    }

    /// It begins to serve.
    pub fn start(&mut self, now_millis: u64) {
        self.started_millis = now_millis;
    }

    /// Refuses commands that write, because the store takes no rows; `None` takes them again.
    pub fn refuse_writes(&mut self, why: Option<String>) {
        self.refusal = why;
    }

    /// Why commands that write are refused, when they are.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Whether commands that write are refused.
    #[must_use]
    pub fn refuses_writes(&self) -> bool {
        self.refusal.is_some()
    }

    /// A connection from `address` begins.
    pub fn connect(&mut self, address: String, now_millis: u64) -> ClientId {
        let id = ClientId(self.next_id);
        self.next_id += 1;
        self.connections += 1;
        let user = self.users.needs_no_password().then(|| "default".to_owned());
        self.clients
            .insert(id, Client::new(address, user, now_millis));
        id
    }

    /// A connection ended.
    pub fn disconnect(&mut self, id: ClientId) {
        self.waiting.remove(id);
        self.unwatch(id);
        self.channels.leave_all(id);
        self.clients.remove(&id);
    }

    /// The protocol that replies to a connection are written in.
    #[must_use]
    pub fn protocol(&self, id: ClientId) -> Protocol {
        self.clients
            .get(&id)
            .map_or(Protocol::Resp2, |client| client.protocol)
    }

    /// What a connection may send.
    #[must_use]
    pub fn limits(&self, id: ClientId) -> Limits {
        let is_known = self
            .clients
            .get(&id)
            .is_some_and(|client| client.user.is_some());
        if is_known {
            Limits::REDIS
        } else {
            Limits::STRANGER
        }
    }

    /// Whether a connection waits for a key: its next command is not looked at.
    #[must_use]
    pub fn is_waiting(&self, id: ClientId) -> bool {
        self.clients
            .get(&id)
            .is_some_and(|client| client.is_waiting)
    }

    /// The connection and the database it has chosen.
    pub(crate) fn database(&self, id: ClientId) -> Option<(ClientId, usize)> {
        self.clients.get(&id).map(|client| (id, client.db))
    }

    /// A connection has chosen a database.
    pub(crate) fn select(&mut self, id: ClientId, db: usize) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.db = db;
        }
    }

    /// Whether a connection may run `command`.
    pub(crate) fn may_run(&self, id: ClientId, spec: &CommandSpec, command: &Command) -> bool {
        let user = self
            .clients
            .get(&id)
            .and_then(|client| client.user.as_ref());
        user.is_some_and(|user| self.users.check(user, spec, command).is_ok())
    }

    /// Runs a command of a connection, all values being in memory.
    pub fn handle(&mut self, id: ClientId, command: &Command, stamp: Stamp) -> Handled {
        self.handle_in(id, command, stamp, &mut NoHost)
    }

    /// Runs a command of a connection; `host` is what a script may ask of the process.
    pub fn handle_in(
        &mut self,
        id: ClientId,
        command: &Command,
        stamp: Stamp,
        host: &mut dyn ScriptHost,
    ) -> Handled {
        let mut effects = Effects::default();
        let reply = self.handle_into(id, command, stamp, host, &mut effects);
        Handled { reply, effects }
    }

    /// As [`Server::handle_in`]; what was written comes into `effects`, which are empty and keep their
    /// memory.
    pub fn handle_into(
        &mut self,
        id: ClientId,
        command: &Command,
        stamp: Stamp,
        host: &mut dyn ScriptHost,
        effects: &mut Effects,
    ) -> Reply {
        self.commands += 1;
        assert!(effects.is_empty(), "the command before has its rows here");
        let reply = self.admit_and_run(id, command, stamp, effects, host);
        self.errors += u64::from(reply.is_error());
        let reply = self.by_reply_mode(id, reply);
        self.after(effects, stamp);
        reply
    }

    pub(super) fn by_reply_mode(&mut self, id: ClientId, reply: Reply) -> Reply {
        let Some(client) = self.clients.get_mut(&id) else {
            return reply;
        };
        match client.replies {
            ReplyMode::On => reply,
            ReplyMode::Off => Reply::Later,
            ReplyMode::SkipNext if client.last_command == "client" => reply,
            ReplyMode::SkipNext => {
                client.replies = ReplyMode::On;
                Reply::Later
            }
        }
    }

    fn admit_and_run(
        &mut self,
        id: ClientId,
        command: &Command,
        stamp: Stamp,
        effects: &mut Effects,
        host: &mut dyn ScriptHost,
    ) -> Reply {
        let spec = match self.admitted(id, command) {
            Ok(spec) => spec,
            Err(refused) => return refused,
        };
        let Some(client) = self.clients.get_mut(&id) else {
            return Reply::Later;
        };
        client.last_command = spec.name;
        if let Some(open) = &mut client.transaction
            && !spec.flags.has(Flags::NO_MULTI)
            && spec.name != "quit"
        {
            open.queue.push(command.clone());
            return Reply::Simple("QUEUED");
        }
        let reply = self.run_into(id, spec, command, stamp, host, effects);
        if reply == Reply::Later && spec.flags.has(Flags::BLOCKING) {
            self.wait(id, spec, command, stamp);
        }
        reply
    }

    /// What is declared of a command that a connection may run now; otherwise its reply.
    pub(super) fn admitted(
        &mut self,
        id: ClientId,
        command: &Command,
    ) -> Result<&'static CommandSpec, Reply> {
        let admitted = table::admit(command).and_then(|spec| {
            self.check(id, spec, command)?;
            Ok(spec)
        });
        admitted.map_err(|refused| self.refuse(id, refused))
    }

    /// An error; between MULTI and EXEC it breaks the transaction.
    pub(super) fn refuse(&mut self, id: ClientId, refused: CommandError) -> Reply {
        if let Some(client) = self.clients.get_mut(&id)
            && let Some(open) = &mut client.transaction
        {
            open.is_broken = true;
        }
        Reply::Error(refused)
    }

    /// Whether a connection may run `command` now.
    pub(crate) fn check(
        &self,
        id: ClientId,
        spec: &CommandSpec,
        command: &Command,
    ) -> Result<(), CommandError> {
        let Some(client) = self.clients.get(&id) else {
            return Ok(());
        };
        if !spec.flags.has(Flags::NO_AUTH) {
            let Some(user) = &client.user else {
                return Err(CommandError::text("NOAUTH Authentication required."));
            };
            self.users.check(user, spec, command)?;
        }
        let is_listening = client.protocol == Protocol::Resp2 && client.subscriptions() > 0;
        let is_allowed = spec.flags.has(Flags::PUBSUB) && spec.flags.has(Flags::NOSCRIPT)
            || matches!(spec.name, "ping" | "quit" | "reset");
        if is_listening && !is_allowed {
            return Err(CommandError::new(format!(
                "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
                 RESET are allowed in this context",
                spec.name
            )));
        }
        self.check_room(spec)?;
        // What is queued takes memory too.
        let is_queued = client.transaction.is_some() && !spec.flags.has(Flags::NO_MULTI);
        if is_queued && self.is_full() {
            return Err(CommandError::OUT_OF_MEMORY);
        }
        Ok(())
    }

    /// Whether disk and memory have room for what a command may write.
    pub(super) fn check_room(&self, spec: &CommandSpec) -> Result<(), CommandError> {
        if let Some(why) = &self.refusal
            && spec.flags.has(Flags::WRITE)
        {
            return Err(CommandError::new(format!(
                "MISCONF Errors writing to the commit log: {why}"
            )));
        }
        if spec.flags.has(Flags::DENYOOM) && self.is_full() {
            return Err(CommandError::OUT_OF_MEMORY);
        }
        Ok(())
    }

    /// Runs a command that was admitted.
    pub(crate) fn run(
        &mut self,
        id: ClientId,
        spec: &'static CommandSpec,
        command: &Command,
        stamp: Stamp,
        host: &mut dyn ScriptHost,
    ) -> (Reply, Effects) {
        let mut effects = Effects::default();
        let reply = self.run_into(id, spec, command, stamp, host, &mut effects);
        (reply, effects)
    }

    fn run_into(
        &mut self,
        id: ClientId,
        spec: &'static CommandSpec,
        command: &Command,
        stamp: Stamp,
        host: &mut dyn ScriptHost,
        effects: &mut Effects,
    ) -> Reply {
        match spec.run {
            Run::Data(run) => {
                let db = self.clients.get(&id).map_or(0, |client| client.db);
                self.keyspace.begin(stamp);
                let mut context = Context {
                    random: Random(stamp.seed),
                    keyspace: &mut self.keyspace,
                    db,
                    stamp,
                };
                let reply = Reply::from(run(&mut context, command));
                self.keyspace.finish_into(effects);
                reply
            }
            Run::Connection => {
                let Some(run) = table::connection_run(spec) else {
                    let refused = format!("ERR nothing runs '{}'", spec.name);
                    return Reply::error(refused);
                };
                let mut call = Call {
                    server: self,
                    id,
                    stamp,
                    effects: Effects::default(),
                    host,
                };
                let reply = Reply::from(run(&mut call, command));
                effects.append(call.effects);
                reply
            }
        }
    }

    /// What time does: keys expire, waits end.
    pub fn tick(&mut self, stamp: Stamp) -> Effects {
        const EXPIRED_AT_ONCE: usize = 1000;
        self.keyspace.begin(stamp);
        self.keyspace.expire_due(EXPIRED_AT_ONCE);
        let mut effects = self.keyspace.finish();
        self.after(&mut effects, stamp);
        for (id, reply) in self.waiting.due(stamp.now_millis) {
            self.answer_waiting(id, reply);
        }
        effects
    }

    /// A value came from the store.
    ///
    /// # Errors
    /// The key of a row that cannot be read.
    pub fn install(&mut self, loaded: LoadedRow, stamp: Stamp) -> Result<Effects, Vec<u8>> {
        let key =
            crate::keyspace::rows::split_meta_key(&loaded.row).map(|(db, key)| (db, key.into()));
        self.keyspace.install(loaded)?;
        Ok(match key {
            Some(key) if !self.waiting.is_empty() => {
                let mut effects = self.serve_waiting(&key, stamp);
                self.after(&mut effects, stamp);
                effects
            }
            _ => Effects::default(),
        })
    }

    /// Sends a reply to a connection that did not ask just now.
    pub(super) fn send(&mut self, id: ClientId, reply: Reply) {
        self.outbox.push((id, reply));
    }

    pub(super) fn load(&mut self, loads: Vec<Load>) {
        self.loads.extend(loads);
    }

    /// Replies to connections beside the one that asked, in order. They leave with the same round.
    pub fn take_outbox(&mut self) -> Vec<(ClientId, Reply)> {
        std::mem::take(&mut self.outbox)
    }

    /// Values that waiting connections need.
    pub fn take_loads(&mut self) -> Vec<Load> {
        std::mem::take(&mut self.loads)
    }

    /// Connections to be closed when they were sent what there is.
    pub fn take_closing(&mut self) -> Vec<ClientId> {
        std::mem::take(&mut self.closing)
    }

    /// Whether keys and values take more memory than they may.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let limit = self.settings.memory_bytes;
        limit > 0 && self.keyspace.memory() > limit
    }

    /// Lets values leave memory that the store has, as [`crate::Keyspace::evict`].
    pub fn evict(&mut self, is_kept: impl Fn(&[u8]) -> bool) {
        self.keyspace.evict(self.settings.memory_bytes, is_kept);
    }
}
