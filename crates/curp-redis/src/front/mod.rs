//! The front: where Redis clients connect to a replicated keyspace.
//!
//! It runs in the loop of its process, beside the CURP client that it asks. Commands of one client on
//! different keys are under way at the same time; those that share a key, or look at all keys, go one
//! after the other. Replies keep the order of commands.
//!
//! | file | |
//! |---|---|
//! | `connection` | a client's bytes, and the places of its replies |
//! | `sockets` | accepting, reading, sending |
//! | `asking` | commands under way, and what becomes of their answers |
//! | `route` | of which cluster a command is asked, once slots have moved |
//! | `elsewhere` | other clusters |
//!
//! A command that may wait for a key (BLPOP) is asked again and again until something is there: each
//! attempt is an operation of its own, so the client's acknowledgements do not stand still.

mod asking;
mod connection;
mod elsewhere;
mod route;
mod sockets;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use manxdb_core::{Nanos, NodeId, RequestId};
use manxdb_curp::slots::Group;
use manxdb_curp::{ClientAnswer, CurpNode, Execute as _};
use manxdb_curp_client::calls::SHOW_EVERY;
use manxdb_curp_client::{Calls, ClientMeter};
use manxdb_net::{Driver, Outside};
use manxdb_redis::resp::Reply;
use manxdb_redis::server::scripting::ScriptCommand;
use manxdb_redis::server::{ClientId, DataCall, Forward, Server, Settings};
use manxdb_redis::{Command, Keyspace, Stamp};
use rustix::event::epoll::{self, EventData, EventFlags};

use self::connection::{Connection, Footprint};
use self::elsewhere::{COORDINATORS, Elsewhere};
use self::route::{Route, Routes};
use crate::command::ReplicatedCommand;
use crate::machine::RedisMachine;

const LISTENER: u64 = 0;
const ELSEWHERE: u64 = u64::MAX;
/// Bytes of a command: it has to fit into a message with room to spare.
const COMMAND_BYTES_MAX: usize = 32 << 20;
/// The key of the wake-up to show the master that this front is there; those of commands that wait are their numbers, from 1.
const SHOW: u64 = 0;

/// What a front is set to.
#[derive(Debug, Clone)]
pub struct FrontSettings {
    /// The CURP client that it asks.
    pub node: NodeId,
    /// Backups of a view: what WAIT answers, since a reply means that all of them have the command,
    /// or all witnesses.
    pub faults: usize,
    /// Connections at most.
    pub connections_max: usize,
    /// The cluster of that client, as others find it.
    pub home: HomeCluster,
    /// Whether a command whose keys have moved to another cluster is asked there, or its client is told.
    pub follows: bool,
    /// What INFO shows.
    pub redis: Settings,
}

/// What other clusters are told of a front's own one.
#[derive(Debug, Clone, Default)]
pub struct HomeCluster {
    /// What moves of slots name it by.
    pub name: Option<Group>,
    /// Where its coordinators are.
    pub coordinators: Vec<SocketAddr>,
}

/// A command that is under way.
#[derive(Debug)]
struct Call {
    client: ClientId,
    slot: u64,
    data: DataCall,
    /// When it came.
    since: Nanos,
    /// When it has waited long enough, if it may wait.
    until: Option<Nanos>,
    route: Route,
}

/// Connections of Redis clients, and the commands under way for them.
pub struct Front {
    settings: FrontSettings,
    listener: TcpListener,
    epoll: OwnedFd,
    server: Server,
    connections: BTreeMap<ClientId, Connection>,
    calls: Calls<Call>,
    routes: Routes,
    elsewhere: Elsewhere,
    /// Commands that other clusters were asked for, and when, by the numbers that their answers will have.
    abroad: BTreeMap<u64, (Nanos, Call)>,
    /// Commands that other clusters have executed.
    followed: u64,
    /// Commands that found nothing yet, by the key of their wake-up.
    asleep: BTreeMap<u64, Call>,
    next_sleep: u64,
    /// Connections with something to do in this round.
    active: BTreeSet<ClientId>,
    started_millis: u64,
}

impl Front {
    /// A front on a listener.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new(listener: TcpListener, settings: FrontSettings) -> std::io::Result<Self> {
        listener.set_nonblocking(true)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(
            &epoll,
            &listener,
            EventData::new_u64(LISTENER),
            EventFlags::IN,
        )?;
        let elsewhere = Elsewhere::new()?;
        let data = EventData::new_u64(ELSEWHERE);
        epoll::add(&epoll, elsewhere.bell(), data, EventFlags::IN)?;
        let started_millis = wall_millis();
        let server = Server::new(Keyspace::new(), settings.redis.clone(), started_millis);
        Ok(Self {
            calls: Calls::new(settings.node),
            routes: Routes::new(settings.follows, settings.home.name.clone()),
            elsewhere,
            abroad: BTreeMap::new(),
            followed: 0,
            settings,
            listener,
            epoll,
            server,
            connections: BTreeMap::new(),
            asleep: BTreeMap::new(),
            next_sleep: SHOW + 1,
            active: BTreeSet::new(),
            started_millis,
        })
    }

    /// How commands are completed, for other threads.
    #[must_use]
    pub fn meter(&self) -> Arc<ClientMeter> {
        self.calls.meter()
    }

    /// Takes the whole commands that a client has sent, as far as they may run.
    fn take_commands(&mut self, id: ClientId, outside: &mut Outside<CurpNode<RedisMachine>>) {
        // Taken out, so that it and the server can be changed at the same time.
        let Some(mut connection) = self.connections.remove(&id) else {
            return;
        };
        let mut at = 0;
        while connection.may_run() {
            let limits = self.server.limits(id);
            let mut command = std::mem::take(&mut connection.command);
            let input = &connection.input[at..];
            let (taken, is_whole) = match connection.decoder.decode(input, &limits, &mut command) {
                Ok(decoded) => decoded,
                Err(error) => {
                    let protocol = self.server.protocol(id);
                    let mut reply = Vec::new();
                    Reply::error(error.to_string()).encode(protocol, &mut reply);
                    connection.answer(reply);
                    connection.is_ending = true;
                    break;
                }
            };
            at += taken;
            connection.command = command;
            if !is_whole || !self.take_command(id, &mut connection, outside) {
                break;
            }
        }
        connection.input.drain(..at);
        self.connections.insert(id, connection);
    }

    /// Takes the command that a client has sent last; whether the next one may be looked at.
    fn take_command(
        &mut self,
        id: ClientId,
        connection: &mut Connection,
        outside: &mut Outside<CurpNode<RedisMachine>>,
    ) -> bool {
        let command = std::mem::take(&mut connection.command);
        if let Some(reply) = self.wait_command(id, &command) {
            connection.answer(reply);
            return true;
        }
        match self.server.forward(id, &command) {
            Forward::Here => self.answer_here(id, connection, &command),
            Forward::Refused(reply) => connection.answer(self.encode(id, &reply)),
            Forward::Data(data) => {
                let replicated = ReplicatedCommand::of(&data).encode();
                if replicated.len() > COMMAND_BYTES_MAX {
                    let reply = Reply::error("ERR this command is too large to be replicated");
                    connection.answer(self.encode(id, &reply));
                    return true;
                }
                let footprint = footprint(&data, &replicated);
                if connection.is_blocked(&footprint) {
                    let parked = connection.parked.replace((data, replicated, footprint));
                    assert!(parked.is_none(), "one command waits for those before it");
                    return false;
                }
                self.submit(id, connection, data, replicated, footprint, outside);
            }
        }
        true
    }

    fn encode(&self, id: ClientId, reply: &Reply) -> Vec<u8> {
        let mut bytes = Vec::new();
        reply.encode(self.server.protocol(id), &mut bytes);
        bytes
    }

    /// The section Curp of INFO: numbers, and who coordinates the cluster.
    fn info(&self) -> Vec<(String, String)> {
        let mut lines = self.calls.meter().counts().lines();
        lines.push(self.followed_line());
        let coordinators = self.settings.home.coordinators.iter();
        let coordinators: Vec<String> = coordinators.map(ToString::to_string).collect();
        lines.push((COORDINATORS.to_owned(), coordinators.join(",")));
        lines
    }

    fn followed_line(&self) -> (String, String) {
        ("curp_followed".to_owned(), self.followed.to_string())
    }

    /// WAIT: every reply before it has left, and meant that the command is replicated.
    fn wait_command(&self, id: ClientId, command: &Command) -> Option<Vec<u8>> {
        let is_wait = command.is_word(0, "WAIT") && command.len() == 3;
        let faults = i64::try_from(self.settings.faults).unwrap_or(i64::MAX);
        is_wait.then(|| self.encode(id, &Reply::Integer(faults)))
    }

    fn answer_here(&mut self, id: ClientId, connection: &mut Connection, command: &Command) {
        self.server.set_info("Curp", self.info());
        let millis = wall_millis().max(self.started_millis);
        let handled = self.server.handle(id, command, Stamp::new(millis, millis));
        assert!(
            handled.effects.is_empty(),
            "a front has no data that could change"
        );
        let reply = self.encode(id, &handled.reply);
        connection.answer(reply);
        for (other, message) in self.server.take_outbox() {
            let bytes = self.encode(other, &message);
            if other == id {
                connection.answer(bytes);
            } else if let Some(other) = self.connections.get_mut(&other) {
                other.answer(bytes);
            }
        }
        for closing in self.server.take_closing() {
            if closing == id {
                connection.is_ending = true;
            } else if let Some(other) = self.connections.get_mut(&closing) {
                other.is_ending = true;
                self.active.insert(closing);
            }
        }
    }
}

/// What a command may touch, as the machine that runs it sees it. A script may touch more than it declares.
fn footprint(data: &DataCall, replicated: &[u8]) -> Footprint {
    let mut commands = data.commands.iter();
    if commands.any(|command| ScriptCommand::of(command).is_some()) {
        return Footprint::Everything;
    }
    match RedisMachine::declare(replicated) {
        Some(declared) if !declared.keys.is_empty() => {
            Footprint::Keys(declared.keys.into_iter().collect())
        }
        _ => Footprint::Everything,
    }
}

fn wall_millis() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let millis = since.map_or(0, |since| since.as_millis());
    u64::try_from(millis).unwrap_or(u64::MAX)
}

impl Driver<CurpNode<RedisMachine>> for Front {
    fn begin(&mut self, outside: &mut Outside<CurpNode<RedisMachine>>) {
        outside.wake_after(SHOW_EVERY, SHOW);
    }

    fn sockets(&self) -> Option<BorrowedFd<'_>> {
        Some(self.epoll.as_fd())
    }

    fn reply(
        &mut self,
        outside: &mut Outside<CurpNode<RedisMachine>>,
        _: NodeId,
        id: RequestId,
        body: ClientAnswer,
    ) {
        if let Some(call) = self.calls.answered(id, &body) {
            self.home_answered(call, body.answer.map(|(answer, _)| answer), outside);
        }
    }

    fn ready(&mut self, outside: &mut Outside<CurpNode<RedisMachine>>) {
        self.take_ready(outside);
    }

    fn wake(&mut self, outside: &mut Outside<CurpNode<RedisMachine>>, key: u64) {
        if key == SHOW {
            let nothing = ReplicatedCommand::nothing().encode();
            self.calls.show(nothing, outside);
            outside.wake_after(SHOW_EVERY, SHOW);
            self.give_up_silent(outside);
            return;
        }
        if let Some(call) = self.asleep.remove(&key) {
            self.ask_again(call, outside);
        }
    }

    fn round_ends(&mut self, _: &mut Outside<CurpNode<RedisMachine>>) {
        for id in std::mem::take(&mut self.active) {
            self.send(id);
        }
        let waiting = self.calls.len() + self.abroad.len() + self.asleep.len();
        self.calls.meter().set(waiting, self.connections.len());
    }

    fn notes(&self) -> Vec<(String, String)> {
        let mut lines = self.calls.meter().counts().lines();
        lines.push(self.followed_line());
        lines
    }
}
