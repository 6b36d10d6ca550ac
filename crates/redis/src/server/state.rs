//! The server: commands in, replies and rows out.

use std::collections::{BTreeMap, HashMap};

use super::acl::Users;
use super::acl_log::AclLog;
use super::call::Call;
use super::channels::Channels;
use super::client::{Client, ClientId};
use super::config::Settings;
use super::events::Ended;
use super::latency::Latency;
use super::numbers::Outside;
use super::pause::Pause;
use super::scripting::{NoHost, RunningScript, ScriptHost, Traced};
use super::slowlog::SlowLog;
use super::statistics::{Ran, Statistics};
use super::table;
use super::tracking::Tracked;
use super::waiting::Waiting;
use crate::Stamp;
use crate::command::Command;
use crate::context::Context;
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
    pub(super) acl_log: AclLog,
    pub(super) channels: Channels,
    pub(super) waiting: Waiting,
    pub(super) watchers: HashMap<(usize, Box<[u8]>), Vec<ClientId>>,
    pub(super) closing: Vec<ClientId>,
    pub(crate) scripts: Scripts,
    /// The script that runs now.
    pub(crate) running: Option<RunningScript>,
    /// What it touches, where that matters.
    pub(crate) traced: Option<Traced>,
    outbox: Vec<(ClientId, Reply)>,
    loads: Vec<Load>,
    next_id: u64,
    pub(super) commands: u64,
    pub(super) connections: u64,
    /// Errors that commands were answered with.
    pub(super) errors: u64,
    pub(super) slow: SlowLog,
    pub(super) latency: Latency,
    pub(super) statistics: Statistics,
    pub(super) pause: Option<Pause>,
    pub(super) tracked: Tracked,
    /// The command that ran last, until it is counted.
    pub(super) ran: Option<Ran>,
    /// What the process around it tells.
    pub outside: Outside,
    pub(super) started_millis: u64,
    /// Why nothing can be written.
    pub(super) refusal: Option<String>,
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
            acl_log: AclLog::default(),
            settings,
            clients: HashMap::default(),
            channels: Channels::default(),
            waiting: Waiting::default(),
            watchers: HashMap::new(),
            closing: Vec::new(),
            scripts: Scripts::default(),
            running: None,
            traced: None,
            outbox: Vec::new(),
            loads: Vec::new(),
            next_id: 1,
            commands: 0,
            connections: 0,
            errors: 0,
            slow: SlowLog::default(),
            latency: Latency::default(),
            statistics: Statistics::default(),
            pause: None,
            tracked: Tracked::default(),
            ran: None,
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

    /// Where the server has a connection, for CLIENT LIST and KILL.
    pub fn set_local_address(&mut self, id: ClientId, address: String) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.local_address = address;
        }
    }

    /// A connection ended.
    pub fn disconnect(&mut self, id: ClientId) {
        self.waiting.remove(id);
        self.unwatch(id);
        self.end_tracking(id);
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
            Limits::UNAUTHENTICATED
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
        self.count_last(0);
        assert!(effects.is_empty(), "the command before has its rows here");
        let reply = self.admit_and_run(id, command, stamp, effects, host);
        let reply = self.by_reply_mode(id, reply);
        self.after(effects, stamp, Some(id));
        reply
    }

    fn admit_and_run(
        &mut self,
        id: ClientId,
        command: &Command,
        stamp: Stamp,
        effects: &mut Effects,
        host: &mut dyn ScriptHost,
    ) -> Reply {
        let spec = match self.admitted(id, command, stamp) {
            Ok(spec) => spec,
            Err(refused) => return refused,
        };
        let name = table::full_name(spec, command);
        let Some(client) = self.clients.get_mut(&id) else {
            return Reply::Later;
        };
        client.last_command = name;
        client.last_millis = stamp.now_millis;
        if client.queues(spec)
            && let Some(open) = &mut client.transaction
        {
            open.queue.push(command.clone());
            return Reply::Simple("QUEUED");
        }
        let reply = self.run_into(id, spec, command, stamp, host, effects);
        if reply == Reply::Later && spec.flags.has(Flags::BLOCKING) {
            // It is counted when it is answered.
            self.wait(id, spec, command, stamp);
            return reply;
        }
        let may_hold_errors = matches!(spec.run, Run::Connection);
        let has_failed = (reply.is_error() || may_hold_errors) && self.count_errors(name, &reply);
        self.ran = Some(Ran { name, has_failed });
        if self.tracked.is_on() {
            self.forget_caching(id, name);
        }
        reply
    }

    /// Runs a command inside another one, and counts it.
    pub(crate) fn run_inside(
        &mut self,
        id: ClientId,
        spec: &'static CommandSpec,
        command: &Command,
        stamp: Stamp,
        host: &mut dyn ScriptHost,
    ) -> (Reply, Effects) {
        let began = host.micros();
        let (reply, effects) = self.run(id, spec, command, stamp, host);
        let micros = host.micros().saturating_sub(began);
        let name = table::full_name(spec, command);
        self.statistics.ran(name, reply.is_error(), micros);
        (reply, effects)
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
                let has_events = self.settings.events.is_on();
                if has_events {
                    self.expire_before(db, spec, command, effects);
                }
                let before = has_events.then(|| self.look_before(db, spec, command));
                let from = effects.rows.len();
                let mut context = Context {
                    random: Random(stamp.seed),
                    keyspace: &mut self.keyspace,
                    db,
                    stamp,
                };
                let reply = Reply::from(run(&mut context, command));
                self.keyspace.finish_into(effects);
                if let Some(before) = &before {
                    self.tell(&Ended {
                        db,
                        spec,
                        command,
                        before,
                        reply: &reply,
                        rows: &effects.rows[from..],
                    });
                }
                if spec.flags.has(Flags::READONLY) && self.tracked.is_on() {
                    self.remember_keys(id, spec, command, stamp);
                }
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
        self.end_pause(stamp.now_millis);
        self.keyspace.begin(stamp);
        if !self.is_paused() {
            self.keyspace.expire_due(EXPIRED_AT_ONCE);
        }
        let loads = self.keyspace.take_due_loads();
        self.load(loads);
        let mut effects = self.keyspace.finish();
        self.tell_expired();
        self.after(&mut effects, stamp, None);
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
                self.after(&mut effects, stamp, None);
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
