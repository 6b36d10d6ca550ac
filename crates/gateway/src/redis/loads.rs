//! What comes from the store: names of keys, values that commands need, and what cannot be read.

use manxdb_redis::Reply;
use manxdb_redis::keyspace::Load;
use manxdb_redis::server::Needs;

use super::event_loop::EventLoop;
use super::store::FromStore;

impl EventLoop {
    pub(super) fn take_from_store(&mut self) {
        let mut came = false;
        while let Some(told) = self.values.next() {
            came = true;
            let mut is_written = false;
            match told {
                FromStore::Page(page) => {
                    if let Err(row) = self.server.keyspace.take_page(&page) {
                        self.damaged(&row, "a row of it is of no known form");
                    }
                }
                FromStore::Complete => self.server.keyspace.complete(),
                FromStore::Value(loaded) => {
                    self.requested.remove(&loaded.row);
                    let stamp = self.stamp();
                    match self.server.install(loaded, stamp) {
                        Ok(effects) => is_written = self.wrote(effects),
                        Err(row) => self.damaged(&row, "its rows do not make its value"),
                    }
                }
                FromStore::Failed(Some(row), error) => self.damaged(&row, &error.to_string()),
                FromStore::Failed(None, error) => self.names_failed(&error.to_string()),
            }
            self.send_outbox(is_written);
        }
        if came {
            self.make_room();
        }
        if came || self.pause_is_over() {
            self.sockets.active.extend(&self.parked);
        }
        self.was_paused = self.server.is_paused();
    }

    /// A value cannot be read: those whose commands need it are told.
    fn damaged(&mut self, row: &[u8], why: &str) {
        tracing::error!(
            row = manxdb_storage::physical::hex(row),
            why,
            "a Redis key cannot be read"
        );
        self.requested.remove(row);
        let needs_it = |needs: &Needs| match needs {
            Needs::Values(loads) => loads.iter().any(|load| load.row == row),
            Needs::AllNames | Needs::Nothing | Needs::Paused => false,
        };
        let text = format!("ERR a key of this command cannot be read: {why}");
        self.refuse_parked(&text, needs_it);
    }

    /// Names of keys cannot be read: commands on single keys go on, those on all are refused.
    fn names_failed(&mut self, why: &str) {
        tracing::error!(why, "names of Redis keys cannot be read");
        let text = format!("ERR names of keys cannot be read: {why}");
        self.refuse_parked(&text, |needs| *needs == Needs::AllNames);
        self.names_failure = Some(text);
    }

    /// Answers parked commands that need what is not to be had.
    fn refuse_parked(&mut self, text: &str, is_refused: impl Fn(&Needs) -> bool) {
        let error = Reply::error(text.to_owned());
        for id in self.parked.clone() {
            let Some(connection) = self.sockets.connections.get_mut(&id) else {
                continue;
            };
            if !is_refused(&self.server.needs(id, &connection.command)) {
                continue;
            }
            connection.is_parked = false;
            connection.parked_since = None;
            error.encode(self.server.protocol(id), connection.out());
            self.parked.remove(&id);
            self.sockets.active.insert(id);
        }
    }

    pub(super) fn want(&mut self, loads: Vec<Load>) {
        for load in loads {
            if self.requested.insert(load.row.clone()) {
                self.values.want(load);
            }
        }
    }
}
