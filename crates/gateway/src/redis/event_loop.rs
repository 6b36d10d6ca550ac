//! The loop: rounds of reading, running, appending and answering.

use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use manxdb_redis::keyspace::Effects;
use manxdb_redis::server::{ClientId, LatencyEvent, Needs, Server, Settings};
use manxdb_redis::{Keyspace, Reply, Seeds, Stamp};
use manxdb_storage::StorageError;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

use super::connection::Connection;
use super::long_commands::{LongCommands, micros_since};
use super::script_host::LoopHost;
use super::sockets::Sockets;
use super::store::{Values, libraries};
use super::sync::Syncs;
use super::users_file::UsersFile;
use super::{Listening, RedisStore, Shared};

/// How often time is looked at when nothing else happens.
const TICK_MILLIS: u64 = 100;
/// Events that are taken at once.
pub const EVENTS: usize = 256;
/// Rows of a round that wait for no more commands: an append costs what it costs, however many rows it has, and a
/// round of one row is mostly that.
const ROWS_OF_A_FULL_ROUND: usize = 16;
/// Looks for further commands before a round is appended.
const GATHERINGS: usize = 8;
/// Commands of one connection in a round.
const COMMANDS: usize = 1024;

/// Everything the loop owns.
pub struct EventLoop {
    pub(super) sockets: Sockets,
    pub(super) server: Server,
    pub(super) store: RedisStore,
    pub(super) syncs: Arc<Syncs>,
    pub(super) values: Values,
    pub(super) shared: Arc<Shared>,
    pub(super) is_synced: bool,
    users: Option<UsersFile>,
    /// What the running command writes.
    effects: Effects,
    /// Rows that are not in the log yet.
    pub(super) rows: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    pub(super) round: u64,
    /// Connections that wrote in this round.
    pub(super) writers: Vec<ClientId>,
    pub(super) parked: BTreeSet<ClientId>,
    pub(super) held: BTreeSet<ClientId>,
    pub(super) requested: HashSet<Vec<u8>>,
    /// Why commands on all keys are refused.
    pub(super) names_failure: Option<String>,
    /// The process ends in the middle of a script.
    pub(super) is_abandoned: bool,
    /// What took long in this round, and in those before that are not on disk.
    pub(super) long: LongCommands,
    /// Seeds of commands.
    pub(super) seeds: Seeds,
    pub(super) now: u64,
    pub(super) micros: u16,
    pub(super) ticked: u64,
    /// When numbers were told last.
    pub(super) counted: u64,
    /// Commands wait for the end of a pause, or did when the round began.
    pub(super) was_paused: bool,
}

impl EventLoop {
    #[allow(clippy::too_many_arguments)] // what a loop owns, once
    pub fn new(
        listening: Listening,
        keyspace: Keyspace,
        settings: Settings,
        store: RedisStore,
        syncs: Arc<Syncs>,
        values: Values,
        shared: &Arc<Shared>,
    ) -> io::Result<Self> {
        let users = listening.users.clone().map(UsersFile);
        let sockets = Sockets::new(listening, &shared.bell)?;
        let is_synced = settings.is_synced;
        let mut this = Self {
            sockets,
            server: Server::new(keyspace, settings, 0),
            store,
            syncs,
            values,
            shared: Arc::clone(shared),
            is_synced,
            users,
            effects: Effects::default(),
            rows: Vec::new(),
            round: 0,
            writers: Vec::new(),
            parked: BTreeSet::new(),
            held: BTreeSet::new(),
            requested: HashSet::new(),
            names_failure: None,
            is_abandoned: false,
            long: LongCommands::default(),
            seeds: Seeds::new(RandomState::new().hash_one(0)),
            now: 0,
            micros: 0,
            ticked: 0,
            counted: 0,
            was_paused: false,
        };
        this.look_at_clock();
        this.server.start(this.now);
        this.take_libraries().map_err(io::Error::other)?;
        if let Some(users) = &this.users {
            let loaded = users
                .read()
                .and_then(|text| this.server.load_users(&text))
                .map_err(|why| format!("users of {}: {why}", users.path().display()));
            loaded.map_err(io::Error::other)?;
        }
        Ok(this)
    }

    /// Libraries of functions are there before the first command.
    fn take_libraries(&mut self) -> Result<(), StorageError> {
        for code in libraries(self.store.engine.as_ref())? {
            let stamp = self.stamp();
            if let Err(error) = self.server.take_library(&code, stamp) {
                let code = String::from_utf8_lossy(&code[..code.len().min(100)]);
                tracing::error!(%error, %code, "a library of Redis functions cannot be loaded");
            }
        }
        Ok(())
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
            self.take_events(&mut events);
            self.take_from_store();
            let active: Vec<ClientId> = self.sockets.active.iter().copied().collect();
            self.run_commands(&active);
            self.gather(&mut events);
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

    /// Whether commands may run that a pause held.
    pub(super) fn pause_is_over(&self) -> bool {
        self.was_paused && !self.server.is_paused()
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
        let millis = if is_busy || self.pause_is_over() {
            0
        } else {
            wake
        };
        self.poll(events, millis)
    }

    /// What sockets have, after so many milliseconds at the latest.
    fn poll(&self, events: &mut Vec<epoll::Event>, millis: u64) -> io::Result<()> {
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

    pub(super) fn stamp(&mut self) -> Stamp {
        Stamp {
            now_millis: self.now,
            micros: self.micros,
            seed: self.seeds.draw(),
        }
    }

    /// Lets commands that came meanwhile into a round that writes little, so that their rows are appended with
    /// it. Nobody waits for more to come, and who has all its commands in the round already is not looked for.
    fn gather(&mut self, events: &mut Vec<epoll::Event>) {
        for _ in 0..GATHERINGS {
            let writes_little = !self.rows.is_empty() && self.rows.len() < ROWS_OF_A_FULL_ROUND;
            let others_may_come = self.writers.len() < self.sockets.connections.len();
            if self.is_abandoned || !writes_little || !others_may_come {
                return;
            }
            if self.poll(events, 0).is_err() || events.is_empty() {
                return; // the next wait tells what is wrong
            }
            let came: Vec<ClientId> = events.iter().map(|e| ClientId(e.data.u64())).collect();
            self.take_events(events);
            self.run_commands(&came);
        }
    }

    fn take_events(&mut self, events: &mut Vec<epoll::Event>) {
        for event in events.drain(..) {
            let event: epoll::Event = event;
            let data = event.data.u64();
            self.sockets
                .take(&mut self.server, data, event.flags, self.now);
        }
    }

    fn run_commands(&mut self, of: &[ClientId]) {
        for id in of.iter().copied() {
            if self.is_abandoned {
                return;
            }
            // Taken out, so that it and the server can be changed at the same time.
            let Some(mut connection) = self.sockets.connections.remove(&id) else {
                self.sockets.active.remove(&id);
                continue;
            };
            self.run_commands_of(id, &mut connection);
            let is_written = connection.waits_for_round(self.round + 1);
            self.sockets.connections.insert(id, connection);
            self.send_outbox(is_written);
            if !self.rows.is_empty() {
                self.make_room();
            }
        }
    }

    fn run_commands_of(&mut self, id: ClientId, connection: &mut Connection) {
        self.long.look_at_clock();
        if connection.is_parked {
            let command = std::mem::take(&mut connection.command);
            connection.is_parked = false;
            self.parked.remove(&id);
            self.run_command(id, connection, &command);
            connection.command = command;
        }
        let mut at = 0;
        for _ in 0..COMMANDS {
            let may_run = connection.may_run();
            let limits = self.server.limits_of_next(id).filter(|_| may_run);
            let Some(limits) = limits else {
                connection.look_again();
                break;
            };
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
            if !self.rows.is_empty() && self.can_make_room() {
                // Values can leave before the next command, once the store has what was written.
                connection.look_again();
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
            Needs::Paused => {
                // No time of the store: it is not told as such.
                connection.is_parked = true;
                self.was_paused = true;
                self.parked.insert(id);
                return;
            }
            Needs::AllNames => {
                return match &self.names_failure {
                    None => self.park(id, connection),
                    Some(text) => {
                        let error = Reply::error(text.clone());
                        error.encode(self.server.protocol(id), connection.out());
                    }
                };
            }
            Needs::Values(loads) => {
                self.park(id, connection);
                connection
                    .awaited
                    .extend(loads.iter().map(|load| load.row.clone()));
                return self.want(loads);
            }
        }
        connection.awaited.clear();
        let stamp = self.stamp();
        let mut host = LoopHost {
            sockets: &mut self.sockets,
            store: &self.store,
            values: &self.values,
            syncs: &self.syncs,
            shared: &self.shared,
            users: self.users.as_ref(),
            stamp,
            begun: None,
            clock: None,
            is_abandoned: false,
        };
        let (server, effects) = (&mut self.server, &mut self.effects);
        let reply = server.handle_into(id, command, stamp, &mut host, effects);
        self.is_abandoned |= host.is_abandoned;
        if self.is_abandoned {
            self.effects = Effects::default();
            return;
        }
        let start = connection.out().len();
        let protocol = self.server.protocol(id);
        reply.encode(protocol, connection.out());
        // A read may find that the time of a key is over. Its reply does not depend on whether that row
        // is kept.
        let has_changed = self.effects.has_changes();
        let rows = self.effects.drain();
        self.rows.extend(rows.map(|row| (row.key, row.value)));
        if has_changed {
            self.held_by(id, connection, start);
        }
        let load = connection.parked_since.take();
        self.long
            .ran(&mut self.server, (id, command), load, has_changed, stamp);
    }

    fn park(&mut self, id: ClientId, connection: &mut Connection) {
        connection.is_parked = true;
        connection.parked_since.get_or_insert_with(Instant::now);
        self.parked.insert(id);
    }

    /// Replies from `start` on leave when this round is in the log, or on disk.
    pub(super) fn held_by(&mut self, id: ClientId, connection: &mut Connection, start: usize) {
        let round = self.round + 1;
        if !connection.wait_for_log(round, start) {
            return; // behind a reply that does
        }
        self.writers.push(id);
        if self.is_synced {
            connection.hold(round, start);
            self.held.insert(id);
        }
    }

    /// Rows that no connection of this round wrote; whether replies that came of them wait for them.
    pub(super) fn wrote(&mut self, effects: Effects) -> bool {
        let has_changed = effects.has_changes();
        self.rows
            .extend(effects.rows.into_iter().map(|row| (row.key, row.value)));
        has_changed
    }

    /// Replies and messages for others. With `is_written` they came of a change, and wait for the log
    /// or the disk as the reply of its writer; others never do, though the log may have refused the rows
    /// of rounds before.
    pub(super) fn send_outbox(&mut self, is_written: bool) {
        assert!(
            !is_written || !self.rows.is_empty(),
            "a change is in rows that the log does not have"
        );
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
        let began = Instant::now();
        let effects = self.server.tick(stamp);
        self.server
            .lasted(LatencyEvent::Expire, micros_since(began), stamp);
        self.publish();
        let is_written = self.wrote(effects);
        self.send_outbox(is_written);
    }
}
