//! The front: where Redis clients connect to a replicated keyspace.
//!
//! It runs in the loop of its process, beside the CURP client that it asks. Commands of one client on
//! different keys are under way at the same time; those that share a key, or look at all keys, go one
//! after the other. Replies keep the order of commands.
//!
//! | file | |
//! |---|---|
//! | `connection` | a client's bytes, and the places of its replies |
//!
//! A command that may wait for a key (BLPOP) is asked again and again until something is there: each
//! attempt is an operation of its own, so the client's acknowledgements do not stand still.

mod connection;

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use manxdb_core::{Nanos, NodeId, RequestId};
use manxdb_curp::{ClientAnswer, CurpNode, Execute as _};
use manxdb_curp_client::calls::SHOW_EVERY;
use manxdb_curp_client::{Calls, ClientMeter};
use manxdb_net::{Driver, Outside};
use manxdb_redis::resp::Reply;
use manxdb_redis::server::{ClientId, DataCall, Forward, Server, Settings};
use manxdb_redis::{Command, Keyspace, Stamp};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};

use self::connection::{Connection, Footprint};
use crate::command::ReplicatedCommand;
use crate::machine::RedisMachine;

const LISTENER: u64 = 0;
const EVENTS: usize = 256;
/// Connections accepted in a round.
const ACCEPTED: usize = 64;
/// Bytes of a command: it has to fit into a message with room to spare.
const COMMAND_BYTES_MAX: usize = 32 << 20;
/// How often a command that waits for a key is asked again.
const ASK_AGAIN_AFTER: Nanos = Nanos::from_millis(20);
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
    /// What INFO shows.
    pub redis: Settings,
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
}

/// Connections of Redis clients, and the commands under way for them.
pub struct Front {
    settings: FrontSettings,
    listener: TcpListener,
    epoll: OwnedFd,
    server: Server,
    connections: BTreeMap<ClientId, Connection>,
    calls: Calls<Call>,
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
        let started_millis = wall_millis();
        let server = Server::new(Keyspace::new(), settings.redis.clone(), started_millis);
        Ok(Self {
            calls: Calls::new(settings.node),
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

    fn accept(&mut self) {
        for _ in 0..ACCEPTED {
            let Ok((socket, address)) = self.listener.accept() else {
                return;
            };
            if self.connections.len() >= self.settings.connections_max {
                use std::io::Write as _;
                let _ = (&socket).write_all(b"-ERR max number of clients reached\r\n");
                continue;
            }
            if socket.set_nonblocking(true).is_err() || socket.set_nodelay(true).is_err() {
                continue;
            }
            let id = self.server.connect(address.to_string(), wall_millis());
            assert!(id.0 != LISTENER, "a connection has a number of its own");
            let data = EventData::new_u64(id.0);
            if epoll::add(&self.epoll, &socket, data, EventFlags::IN).is_err() {
                self.server.disconnect(id);
                continue;
            }
            self.connections.insert(id, Connection::new(socket));
        }
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
                let footprint = footprint(&replicated);
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

    fn submit(
        &mut self,
        id: ClientId,
        connection: &mut Connection,
        data: DataCall,
        replicated: Vec<u8>,
        footprint: Footprint,
        outside: &mut Outside<CurpNode<RedisMachine>>,
    ) {
        let slot = connection.reserve(footprint);
        let until = data.waits_millis.map(|millis| match millis {
            0 => Nanos::MAX,
            millis => outside.now() + Nanos::from_millis(millis),
        });
        let call = Call {
            client: id,
            slot,
            data,
            since: outside.now(),
            until,
        };
        self.calls.ask(call, replicated, outside);
    }

    fn encode(&self, id: ClientId, reply: &Reply) -> Vec<u8> {
        let mut bytes = Vec::new();
        reply.encode(self.server.protocol(id), &mut bytes);
        bytes
    }

    /// WAIT: every reply before it has left, and meant that the command is replicated.
    fn wait_command(&self, id: ClientId, command: &Command) -> Option<Vec<u8>> {
        let is_wait = command.is_word(0, "WAIT") && command.len() == 3;
        let faults = i64::try_from(self.settings.faults).unwrap_or(i64::MAX);
        is_wait.then(|| self.encode(id, &Reply::Integer(faults)))
    }

    fn answer_here(&mut self, id: ClientId, connection: &mut Connection, command: &Command) {
        self.server
            .set_info("Curp", self.calls.meter().counts().lines());
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

    /// Tells a client what became of its command, and lets those behind it go on.
    fn answer(
        &mut self,
        call: &Call,
        reply: Vec<u8>,
        outside: &mut Outside<CurpNode<RedisMachine>>,
    ) {
        let took = outside.now().saturating_sub(call.since).as_micros();
        let has_failed = reply.first() == Some(&b'-');
        self.server.answered(&call.data, has_failed, took);
        let Some(connection) = self.connections.get_mut(&call.client) else {
            return; // it is gone
        };
        let reply = if call.data.is_silent {
            Vec::new()
        } else {
            reply
        };
        connection.fill(call.slot, reply);
        self.active.insert(call.client);
        self.unpark(call.client, outside);
    }

    fn unpark(&mut self, id: ClientId, outside: &mut Outside<CurpNode<RedisMachine>>) {
        let Some(mut connection) = self.connections.remove(&id) else {
            return;
        };
        let may_go = |connection: &Connection| {
            let parked = connection.parked.as_ref();
            parked.is_some_and(|(_, _, footprint)| !connection.is_blocked(footprint))
        };
        if may_go(&connection)
            && let Some((data, replicated, footprint)) = connection.parked.take()
        {
            self.submit(id, &mut connection, data, replicated, footprint, outside);
        }
        let goes_on = connection.parked.is_none();
        self.connections.insert(id, connection);
        if goes_on {
            self.take_commands(id, outside);
        }
    }

    /// Sends what a client is to get; closes it when it is over.
    fn send(&mut self, id: ClientId) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let wanted = connection.send();
        if !connection.is_closed && wanted != connection.interest {
            let (reads, writes) = wanted;
            let mut flags = EventFlags::empty();
            flags.set(EventFlags::IN, reads);
            flags.set(EventFlags::OUT, writes);
            let data = EventData::new_u64(id.0);
            let changed = epoll::modify(&self.epoll, connection.socket(), data, flags);
            connection.is_closed |= changed.is_err();
            connection.interest = wanted;
        }
        if connection.is_closed {
            let _ = epoll::delete(&self.epoll, connection.socket());
            self.connections.remove(&id);
            self.server.disconnect(id);
            self.asleep.retain(|_, call| call.client != id);
        }
    }
}

/// What a command may touch, as the machine that runs it sees it.
fn footprint(replicated: &[u8]) -> Footprint {
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

    fn ready(&mut self, outside: &mut Outside<CurpNode<RedisMachine>>) {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS);
        let at_once = Timespec::default();
        if epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&at_once)).is_err() {
            return; // interrupted: what is ready stays ready
        }
        for event in events {
            let (data, flags) = (event.data, event.flags);
            if data.u64() == LISTENER {
                self.accept();
                continue;
            }
            let id = ClientId(data.u64());
            let Some(connection) = self.connections.get_mut(&id) else {
                continue;
            };
            if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                connection.read();
            }
            self.active.insert(id);
            if connection.parked.is_none() {
                self.take_commands(id, outside);
            }
        }
    }

    fn reply(
        &mut self,
        outside: &mut Outside<CurpNode<RedisMachine>>,
        _: NodeId,
        id: RequestId,
        body: ClientAnswer,
    ) {
        let Some(call) = self.calls.answered(id, &body) else {
            return; // it asked nothing
        };
        let reply = match body.answer {
            None => self.encode(
                call.client,
                &Reply::error(
                    "ERR the outcome of this command is unknown: the master has forgotten this \
                     server, which was silent for too long",
                ),
            ),
            Some((answer, _)) if !answer.is_empty() => answer,
            Some(_) => match call.until {
                Some(until) if outside.now() < until => {
                    outside.wake_after(ASK_AGAIN_AFTER, self.next_sleep);
                    self.asleep.insert(self.next_sleep, call);
                    self.next_sleep += 1;
                    return;
                }
                Some(_) => self.encode(call.client, &call.data.timeout_reply()),
                None => self.encode(
                    call.client,
                    &Reply::error("ERR this command is not known to the master"),
                ),
            },
        };
        self.answer(&call, reply, outside);
    }

    fn wake(&mut self, outside: &mut Outside<CurpNode<RedisMachine>>, key: u64) {
        if key == SHOW {
            let nothing = ReplicatedCommand::nothing().encode();
            self.calls.show(nothing, outside);
            outside.wake_after(SHOW_EVERY, SHOW);
            return;
        }
        if let Some(call) = self.asleep.remove(&key) {
            let replicated = ReplicatedCommand::of(&call.data).encode();
            self.calls.ask(call, replicated, outside);
        }
    }

    fn round_ends(&mut self, _: &mut Outside<CurpNode<RedisMachine>>) {
        for id in std::mem::take(&mut self.active) {
            self.send(id);
        }
        let waiting = self.calls.len() + self.asleep.len();
        self.calls.meter().set(waiting, self.connections.len());
    }

    fn notes(&self) -> Vec<(String, String)> {
        self.calls.meter().counts().lines()
    }
}
