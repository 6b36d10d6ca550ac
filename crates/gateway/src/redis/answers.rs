//! The end of a round: its rows into the log, replies to those whose rows are where they must be.

use std::collections::{BTreeSet, HashSet};
use std::time::Instant;

use manxdb_redis::Reply;
use manxdb_redis::server::{ClientId, LatencyEvent};
use rustix::event::epoll;

use super::event_loop::EventLoop;
use super::long_commands::micros_since;

impl EventLoop {
    /// Puts the round's rows into the log, all or none.
    pub(super) fn append(&mut self) {
        if self.rows.is_empty() {
            self.writers.clear();
            return self.evict();
        }
        let began = Instant::now();
        match self.store.path.append_rows(&mut self.rows) {
            Ok(appended) => {
                self.round += 1;
                let took = micros_since(began);
                let stamp = self.stamp();
                self.server.outside.log_append_micros += took;
                self.server.lasted(LatencyEvent::Append, took, stamp);
                let awaited = self.is_synced.then_some(self.round);
                self.long.appended(&mut self.server, awaited, took);
                let expired_until = self.server.keyspace.expired_until();
                self.syncs.appended(self.round, appended, expired_until);
                self.server.refuse_writes(None);
                self.writers.clear();
                self.evict();
            }
            Err(error) => self.not_appended(error.to_string()),
        }
    }

    /// Appends what was written so far, where values must leave memory before the next command.
    pub(super) fn make_room(&mut self) {
        if self.can_make_room() {
            self.append();
        }
    }

    /// Whether memory is full and the log can be written, so that values may leave.
    pub(super) fn can_make_room(&self) -> bool {
        self.server.is_full() && !self.server.refuses_writes()
    }

    /// Lets values leave memory when it is full, but those that the store does not have as they are:
    /// what the log has not taken is in `rows`.
    fn evict(&mut self) {
        if !self.server.is_full() {
            return;
        }
        // Rows of elements are written with the row of their key.
        let unwritten: HashSet<&[u8]> = self.rows.iter().map(|(row, _)| row.as_slice()).collect();
        let parked = self.parked.iter();
        let awaited: HashSet<&[u8]> = parked
            .filter_map(|id| self.sockets.connections.get(id))
            .flat_map(|connection| connection.awaited.iter().map(Vec::as_slice))
            .collect();
        // What commands wait for stays until they have run. A value on its way was read before what
        // was written since: it must find the newer one in memory.
        let requested = &self.requested;
        self.server.evict(|row| {
            awaited.contains(row) || requested.contains(row) || unwritten.contains(row)
        });
    }

    /// Nothing that this round wrote is acknowledged. The objects have it, so its rows stay for the
    /// next try: whoever wrote them is told that nobody knows whether they are kept.
    fn not_appended(&mut self, why: String) {
        if !self.server.refuses_writes() {
            tracing::error!(why, "Redis writes are refused");
        }
        let error = not_known(&why);
        self.server.refuse_writes(Some(why));
        for id in std::mem::take(&mut self.writers) {
            if let Some(connection) = self.sockets.connections.get_mut(&id) {
                connection.end_unlogged(&error, self.server.protocol(id));
                self.sockets.active.insert(id);
            }
        }
        self.evict();
    }

    pub(super) fn answer(&mut self) {
        if let Some(why) = self.syncs.failure() {
            let why = format!("the disk failed, restart when this is mended: {why}");
            let error = not_known(&why);
            self.server.refuse_writes(Some(why));
            for id in std::mem::take(&mut self.held) {
                if let Some(connection) = self.sockets.connections.get_mut(&id) {
                    connection.end_unsynced(&error, self.server.protocol(id));
                    self.sockets.active.insert(id);
                }
            }
        }
        let synced = self.syncs.synced();
        if self.long.waits() {
            let stamp = self.stamp();
            self.long.synced(&mut self.server, synced, stamp);
        }
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
        connection.logged(self.round);
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
}

/// What is said about a write that was run and may be kept or not.
fn not_known(why: &str) -> Reply {
    Reply::error(format!(
        "MISCONF Errors writing to the commit log: {why}; whether this write is kept is not known"
    ))
}
