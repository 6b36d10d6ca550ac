//! What a running script asks of the loop. The loop stands still meanwhile, as in Redis.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use manxdb_redis::keyspace::{Keyspace, Load, LoadedRow};
use manxdb_redis::server::scripting::{ScriptFate, ScriptHost};
use manxdb_redis::server::{ClientId, Server};
use manxdb_redis::{Reply, Stamp};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

use super::event_loop::EVENTS;
use super::long_commands::micros_since;
use super::sockets::Sockets;
use super::store::{self, FromStore, Values};
use super::sync::Syncs;
use super::users_file::UsersFile;
use super::{RedisStore, Shared};

/// The loop, while it runs one command.
pub struct LoopHost<'a> {
    pub sockets: &'a mut Sockets,
    pub store: &'a RedisStore,
    pub values: &'a Values,
    pub syncs: &'a Syncs,
    pub shared: &'a Shared,
    pub users: Option<&'a UsersFile>,
    pub stamp: Stamp,
    /// When the clock was first looked at.
    pub begun: Option<Instant>,
    /// When it was first asked how late it is.
    pub clock: Option<Instant>,
    /// The process ends: what the command wrote is not kept.
    pub is_abandoned: bool,
}

impl ScriptHost for LoopHost<'_> {
    fn load(&mut self, load: Load) -> Option<LoadedRow> {
        match store::value(self.store.engine.as_ref(), load) {
            Ok(loaded) => Some(loaded),
            Err(error) => {
                tracing::error!(%error, "a key of a script cannot be read");
                None
            }
        }
    }

    fn load_names(&mut self, keyspace: &mut Keyspace) -> bool {
        while !keyspace.is_complete() {
            match self.values.wait_for_page() {
                Some(FromStore::Page(page)) => {
                    if keyspace.take_page(&page).is_err() {
                        return false;
                    }
                }
                Some(FromStore::Complete) => keyspace.complete(),
                Some(FromStore::Value(_) | FromStore::Failed(..)) | None => return false,
            }
        }
        true
    }

    fn interrupt(&mut self, server: &mut Server) -> ScriptFate {
        if self.shared.is_stopping.load(Ordering::SeqCst) {
            self.is_abandoned = true;
            return ScriptFate::IsAbandoned;
        }
        let begun = *self.begun.get_or_insert_with(Instant::now);
        if begun.elapsed() >= Duration::from_millis(server.script_limit_millis()) {
            self.serve_others(server);
        }
        ScriptFate::GoesOn
    }

    fn micros(&mut self) -> u64 {
        micros_since(*self.clock.get_or_insert_with(Instant::now))
    }

    fn secret(&mut self, bytes: &mut [u8]) -> bool {
        aws_lc_rs::rand::fill(bytes).is_ok()
    }

    fn read_users(&mut self) -> Option<Result<String, String>> {
        self.users.map(UsersFile::read)
    }

    fn write_users(&mut self, text: &str) -> Option<Result<(), String>> {
        self.users.map(|users| users.write(text))
    }
}

impl LoopHost<'_> {
    /// Tells other connections that the server is busy, and lets them end the script.
    fn serve_others(&mut self, server: &mut Server) {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS);
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        if epoll::wait(&self.sockets.epoll, spare_capacity(&mut events), Some(&now)).is_err() {
            return;
        }
        for event in events {
            let data = event.data.u64();
            self.sockets
                .take(server, data, event.flags, self.stamp.now_millis);
            self.serve(server, ClientId(data));
        }
    }

    fn serve(&mut self, server: &mut Server, id: ClientId) {
        let Some(connection) = self.sockets.connections.get_mut(&id) else {
            return;
        };
        while connection.may_run() && !server.is_waiting(id) {
            let limits = server.limits(id);
            let decoded =
                connection
                    .decoder
                    .decode(&connection.input, &limits, &mut connection.command);
            let reply = match decoded {
                Ok((taken, is_whole)) => {
                    connection.input.drain(..taken);
                    if !is_whole {
                        break;
                    }
                    let command = std::mem::take(&mut connection.command);
                    server.handle_while_busy(id, &command, self.stamp)
                }
                Err(error) => {
                    connection.is_ending = true;
                    Reply::error(error.to_string())
                }
            };
            reply.encode(server.protocol(id), connection.out());
        }
        connection.release(self.syncs.synced());
        connection.send();
    }
}
