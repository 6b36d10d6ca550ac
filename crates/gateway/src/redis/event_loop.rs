//! The loop: rounds of reading, running, appending and answering.

use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use manxdb_redis::keyspace::Effects;
use manxdb_redis::server::{ClientId, Needs, Server, Settings};
use manxdb_redis::{Keyspace, Reply, Stamp};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

use super::connection::Connection;
use super::script_host::LoopHost;
use super::sockets::Sockets;
use super::store::{FromStore, Values};
use super::sync::Syncs;
use super::{RedisStore, Shared};

/// How often time is looked at when nothing else happens.
const TICK_MILLIS: u64 = 100;
/// Events that are taken at once.
pub const EVENTS: usize = 256;
/// Commands of one connection in a round.
const COMMANDS: usize = 1024;

/// Everything the loop owns.
pub struct EventLoop {
    sockets: Sockets,
    server: Server,
    store: RedisStore,
    syncs: Arc<Syncs>,
    values: Values,
    shared: Arc<Shared>,
    is_synced: bool,
    /// Rows that are not in the log yet.
    rows: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    round: u64,
    /// Connections that wrote in this round.
    writers: HashSet<ClientId>,
    parked: BTreeSet<ClientId>,
    held: BTreeSet<ClientId>,
    requested: HashSet<Vec<u8>>,
    /// The process ends in the middle of a script.
    is_abandoned: bool,
    seeds: RandomState,
    stamps: u64,
    now: u64,
    micros: u16,
    ticked: u64,
}

impl EventLoop {
    #[allow(clippy::too_many_arguments)] // what a loop owns, once
    pub fn new(
        listener: TcpListener,
        keyspace: Keyspace,
        settings: Settings,
        connections_max: usize,
        store: RedisStore,
        syncs: Arc<Syncs>,
        values: Values,
        shared: &Arc<Shared>,
    ) -> io::Result<Self> {
        let sockets = Sockets::new(listener, &shared.bell, connections_max)?;
        let is_synced = settings.is_synced;
        let mut this = Self {
            sockets,
            server: Server::new(keyspace, settings, 0),
            store,
            syncs,
            values,
            shared: Arc::clone(shared),
            is_synced,
            rows: Vec::new(),
            round: 0,
            writers: HashSet::new(),
            parked: BTreeSet::new(),
            held: BTreeSet::new(),
            requested: HashSet::new(),
            is_abandoned: false,
            seeds: RandomState::new(),
            stamps: 0,
            now: 0,
            micros: 0,
            ticked: 0,
        };
        this.look_at_clock();
        this.server.start(this.now);
        Ok(this)
    }

    /// Until the server stops.
    pub fn run(mut self) {
        let mut events = Vec::with_capacity(EVENTS);
        while !self.shared.is_stopping.load(Ordering::SeqCst) {
            if let Err(error) = self.wait(&mut events) {
                tracing::error!(%error, "the Redis server cannot wait for its sockets and ends");
                break;
            }
            self.look_at_clock();
            for event in events.drain(..) {
                let event: epoll::Event = event;
                let data = event.data.u64();
                self.sockets
                    .take(&mut self.server, data, event.flags, self.now);
            }
            self.take_from_store();
            self.run_commands();
            if self.is_abandoned {
                // A script was ended in the middle: nothing of this round is kept or answered.
                break;
            }
            self.tick();
            self.append();
            self.answer();
            self.count();
        }
    }

    fn wait(&mut self, events: &mut Vec<epoll::Event>) -> io::Result<()> {
        let is_busy = self.sockets.active.iter().any(|id| {
            self.sockets
                .connections
                .get(id)
                .is_some_and(|c| c.may_run() && !c.input.is_empty())
        });
        let wake = self.server.next_wait_end().map_or(TICK_MILLIS, |end| {
            end.saturating_sub(self.now).min(TICK_MILLIS)
        });
        let millis = if is_busy { 0 } else { wake };
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: i64::try_from(millis * 1_000_000).unwrap_or(0),
        };
        events.clear();
        match epoll::wait(&self.sockets.epoll, spare_capacity(events), Some(&timeout)) {
            Ok(_) => Ok(()),
            Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Never backwards: an expiry that was seen stays over.
    fn look_at_clock(&mut self) {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let now = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        if now >= self.now {
            self.now = now;
            self.micros = u16::try_from(since.subsec_micros() % 1000).unwrap_or(0);
        }
    }

    fn stamp(&mut self) -> Stamp {
        self.stamps += 1;
        Stamp {
            now_millis: self.now,
            micros: self.micros,
            seed: self.seeds.hash_one(self.stamps),
        }
    }

    fn take_from_store(&mut self) {
        let mut came = false;
        while let Some(told) = self.values.next() {
            came = true;
            let taken = match told {
                FromStore::Page(page) => self.server.keyspace.take_page(&page),
                FromStore::Complete => {
                    self.server.keyspace.complete();
                    Ok(())
                }
                FromStore::Value(loaded) => {
                    self.requested.remove(&loaded.row);
                    let stamp = self.stamp();
                    let installed = self.server.install(loaded, stamp);
                    installed.map(|effects| {
                        self.wrote(None, effects);
                    })
                }
                FromStore::Failed(row, error) => {
                    tracing::error!(%error, "Redis keys cannot be read");
                    Err(row.unwrap_or_default())
                }
            };
            if let Err(row) = taken {
                self.damaged(&row);
            }
            self.send_outbox(None);
        }
        if came {
            let parked: Vec<ClientId> = self.parked.iter().copied().collect();
            self.sockets.active.extend(parked);
        }
    }

    /// A row cannot be read: who waits for values is told.
    fn damaged(&mut self, row: &[u8]) {
        tracing::error!(
            row = manxdb_storage::physical::hex(row),
            "a row of Redis is damaged"
        );
        self.requested.remove(row);
        let error =
            Reply::error("ERR the store has a damaged row of this key: see the server's log");
        for id in std::mem::take(&mut self.parked) {
            let protocol = self.server.protocol(id);
            if let Some(connection) = self.sockets.connections.get_mut(&id) {
                connection.is_parked = false;
                error.encode(protocol, connection.out());
                self.sockets.active.insert(id);
            }
        }
    }

    fn run_commands(&mut self) {
        let active: Vec<ClientId> = self.sockets.active.iter().copied().collect();
        for id in active {
            if self.is_abandoned {
                return;
            }
            // Taken out, so that it and the server can be changed at the same time.
            let Some(mut connection) = self.sockets.connections.remove(&id) else {
                self.sockets.active.remove(&id);
                continue;
            };
            self.run_commands_of(id, &mut connection);
            self.sockets.connections.insert(id, connection);
            self.send_outbox(Some(id));
        }
    }

    fn run_commands_of(&mut self, id: ClientId, connection: &mut Connection) {
        if connection.is_parked {
            let command = std::mem::take(&mut connection.command);
            connection.is_parked = false;
            self.parked.remove(&id);
            self.run_command(id, connection, &command);
            connection.command = command;
        }
        let mut at = 0;
        for _ in 0..COMMANDS {
            if !connection.may_run() || self.server.is_waiting(id) {
                connection.look_again();
                break;
            }
            let limits = self.server.limits(id);
            let mut command = std::mem::take(&mut connection.command);
            let decoded = connection
                .decoder
                .decode(&connection.input[at..], &limits, &mut command);
            let is_whole = match decoded {
                Ok((taken, is_whole)) => {
                    at += taken;
                    is_whole
                }
                Err(error) => {
                    let protocol = self.server.protocol(id);
                    Reply::error(error.to_string()).encode(protocol, connection.out());
                    connection.is_ending = true;
                    false
                }
            };
            if is_whole {
                self.run_command(id, connection, &command);
            }
            connection.command = command;
            if !is_whole {
                break;
            }
        }
        connection.input.drain(..at);
    }

    fn run_command(
        &mut self,
        id: ClientId,
        connection: &mut Connection,
        command: &manxdb_redis::Command,
    ) {
        match self.server.needs(id, command) {
            Needs::Nothing => {}
            Needs::AllNames => {
                connection.is_parked = true;
                self.parked.insert(id);
                return;
            }
            Needs::Values(loads) => {
                connection.is_parked = true;
                self.parked.insert(id);
                self.want(loads);
                return;
            }
        }
        let stamp = self.stamp();
        let mut host = LoopHost {
            sockets: &mut self.sockets,
            store: &self.store,
            values: &self.values,
            syncs: &self.syncs,
            shared: &self.shared,
            stamp,
            begun: None,
            is_abandoned: false,
        };
        let handled = self.server.handle_in(id, command, stamp, &mut host);
        self.is_abandoned |= host.is_abandoned;
        if self.is_abandoned {
            return;
        }
        let start = connection.out().len();
        let protocol = self.server.protocol(id);
        handled.reply.encode(protocol, connection.out());
        if !handled.effects.is_empty() {
            self.wrote(Some(id), handled.effects);
            self.held_by(id, connection, start);
        }
    }

    /// Replies from `start` on leave when this round is on disk.
    fn held_by(&mut self, id: ClientId, connection: &mut Connection, start: usize) {
        self.writers.insert(id);
        if self.is_synced {
            connection.hold(self.round + 1, start);
            self.held.insert(id);
        }
    }

    fn wrote(&mut self, writer: Option<ClientId>, effects: Effects) {
        self.writers.extend(writer);
        self.rows
            .extend(effects.rows.into_iter().map(|row| (row.key, row.value)));
    }

    fn want(&mut self, loads: Vec<manxdb_redis::keyspace::Load>) {
        for load in loads {
            if self.requested.insert(load.row.clone()) {
                self.values.want(load);
            }
        }
    }

    /// Replies and messages for others; those of a writer wait for the disk as its own.
    fn send_outbox(&mut self, cause: Option<ClientId>) {
        let is_written = cause.is_none_or(|id| self.writers.contains(&id)) && !self.rows.is_empty();
        for (id, reply) in self.server.take_outbox() {
            let protocol = self.server.protocol(id);
            let Some(mut connection) = self.sockets.connections.remove(&id) else {
                continue;
            };
            let start = connection.out().len();
            reply.encode(protocol, connection.out());
            if is_written {
                self.held_by(id, &mut connection, start);
            }
            connection.look_again();
            self.sockets.connections.insert(id, connection);
            self.sockets.active.insert(id);
        }
        let loads = self.server.take_loads();
        self.want(loads);
        for id in self.server.take_closing() {
            if let Some(connection) = self.sockets.connections.get_mut(&id) {
                connection.is_ending = true;
                self.sockets.active.insert(id);
            }
        }
    }

    fn tick(&mut self) {
        let is_due = self
            .server
            .next_wait_end()
            .is_some_and(|end| end <= self.now);
        if !is_due && self.now < self.ticked + TICK_MILLIS {
            return;
        }
        self.ticked = self.now;
        let stamp = self.stamp();
        let effects = self.server.tick(stamp);
        self.wrote(None, effects);
        self.send_outbox(None);
    }

    /// Puts the round's rows into the log, all or none.
    fn append(&mut self) {
        if self.rows.is_empty() {
            self.writers.clear();
            return;
        }
        match self.store.path.append_rows(&mut self.rows) {
            Ok(appended) => {
                self.round += 1;
                self.syncs.appended(self.round, appended);
                self.server.refuse_writes(None);
                self.writers.clear();
                // A value that is on its way was read before what was appended now.
                if self.parked.is_empty() && self.requested.is_empty() {
                    let seed = self.stamp().seed;
                    self.server.evict(seed);
                }
            }
            Err(error) => self.not_appended(error.to_string()),
        }
    }

    /// Nothing that this round wrote is acknowledged. The objects have it, so its rows stay for the
    /// next try.
    fn not_appended(&mut self, why: String) {
        if !self.server.refuses_writes() {
            tracing::error!(why, "Redis writes are refused");
        }
        self.server.refuse_writes(Some(why));
        for id in std::mem::take(&mut self.writers) {
            if let Some(connection) = self.sockets.connections.get_mut(&id) {
                connection.is_closed = true;
                self.sockets.active.insert(id);
            }
        }
    }

    fn answer(&mut self) {
        if self.syncs.has_failed() {
            self.server.refuse_writes(Some(
                "the disk failed: restart when this is mended".to_owned(),
            ));
            for id in std::mem::take(&mut self.held) {
                if let Some(connection) = self.sockets.connections.get_mut(&id) {
                    connection.is_closed = true;
                    self.sockets.active.insert(id);
                }
            }
        }
        let synced = self.syncs.synced();
        let mut still_held = BTreeSet::new();
        for id in std::mem::take(&mut self.held) {
            if let Some(connection) = self.sockets.connections.get_mut(&id) {
                connection.release(synced);
                self.sockets.active.insert(id);
                if connection.is_held() {
                    still_held.insert(id);
                }
            }
        }
        self.held = still_held;
        for id in std::mem::take(&mut self.sockets.active) {
            self.answer_one(id);
        }
    }

    fn answer_one(&mut self, id: ClientId) {
        let Some(connection) = self.sockets.connections.get_mut(&id) else {
            return;
        };
        let wants_write = connection.send();
        if connection.is_closed {
            let _ = epoll::delete(&self.sockets.epoll, connection.socket());
            self.sockets.connections.remove(&id);
            self.parked.remove(&id);
            self.held.remove(&id);
            self.server.disconnect(id);
            return;
        }
        // A client whose commands wait is not read further.
        let reads = connection.input.len() < (1 << 20) || connection.may_run();
        let wanted = (wants_write, reads);
        if wanted != (connection.wants_write, !connection.is_paused) {
            (connection.wants_write, connection.is_paused) = (wants_write, !reads);
            let mut flags = epoll::EventFlags::empty();
            flags.set(epoll::EventFlags::IN, reads);
            flags.set(epoll::EventFlags::OUT, wants_write);
            let data = epoll::EventData::new_u64(id.0);
            if epoll::modify(&self.sockets.epoll, connection.socket(), data, flags).is_err() {
                connection.is_closed = true;
            }
        }
        let may_go_on = connection.may_run() && !connection.input.is_empty();
        if may_go_on && !self.server.is_waiting(id) && connection.has_progressed() {
            self.sockets.active.insert(id);
        }
    }

    fn count(&mut self) {
        for (level, text) in self.server.take_script_log() {
            match level {
                0 | 1 => tracing::debug!(text, "redis.log of a script"),
                2 => tracing::info!(text, "redis.log of a script"),
                _ => tracing::warn!(text, "redis.log of a script"),
            }
        }
        let counters = &self.shared.counters;
        let keyspace = &self.server.keyspace;
        let keys: usize = (0..manxdb_redis::keyspace::DATABASES)
            .map(|db| keyspace.len(db))
            .sum();
        for (counter, value) in [
            (&counters.commands, self.server.commands()),
            (&counters.connections, self.sockets.connections.len() as u64),
            (&counters.keys, keys as u64),
            (&counters.memory_bytes, keyspace.memory() as u64),
            (&counters.loads, keyspace.statistics.loaded),
            (&counters.evictions, keyspace.statistics.evicted),
            (&counters.rounds, self.round),
        ] {
            counter.store(value, Ordering::Relaxed);
        }
    }
}
