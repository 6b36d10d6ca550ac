//! Who waits for which key, first come first served.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::client::ClientId;
use super::scripting::NoHost;
use super::state::Server;
use crate::Stamp;
use crate::command::Command;
use crate::keyspace::{Effects, Kind, rows};
use crate::resp::Reply;
use crate::spec::CommandSpec;

type Key = (usize, Box<[u8]>);

/// A command that found nothing yet.
pub(super) struct Wait {
    pub spec: &'static CommandSpec,
    pub command: Command,
    pub db: usize,
    keys: Vec<Box<[u8]>>,
    /// When it ends in vain, in milliseconds since 1970; 0: never.
    until: u64,
}

impl Wait {
    /// What is answered when nothing came.
    pub fn timeout_reply(&self) -> Reply {
        timeout_reply(self.spec.name)
    }
}

/// What a command of this name answers when it waited in vain, or may not wait.
pub fn timeout_reply(name: &str) -> Reply {
    match name {
        "blmove" | "brpoplpush" => Reply::Null,
        _ => Reply::NullArray,
    }
}

/// Milliseconds that a command waits at most; 0: without end.
fn timeout_millis(spec: &CommandSpec, command: &Command) -> u64 {
    let at = match spec.name {
        "xread" | "xreadgroup" => return crate::streams::wait_millis(command),
        "blmpop" | "bzmpop" => 1,
        _ => command.len() - 1,
    };
    // The command itself has checked it.
    crate::lists::blocking::timeout_millis(command.arg(at)).unwrap_or(1)
}

/// All that wait.
#[derive(Default)]
pub(super) struct Waiting {
    waits: HashMap<ClientId, Wait>,
    queues: HashMap<Key, VecDeque<ClientId>>,
    ends: BTreeSet<(u64, ClientId)>,
    /// How often something began to wait.
    total: u64,
}

impl Waiting {
    pub fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }

    pub fn len(&self) -> usize {
        self.waits.len()
    }

    pub fn total(&self) -> u64 {
        self.total
    }

    fn add(&mut self, id: ClientId, wait: Wait) {
        self.total += 1;
        for key in &wait.keys {
            let queue = self.queues.entry((wait.db, key.clone())).or_default();
            if !queue.contains(&id) {
                queue.push_back(id);
            }
        }
        if wait.until > 0 {
            self.ends.insert((wait.until, id));
        }
        self.waits.insert(id, wait);
    }

    pub fn remove(&mut self, id: ClientId) -> Option<Wait> {
        let wait = self.waits.remove(&id)?;
        self.ends.remove(&(wait.until, id));
        for key in &wait.keys {
            let key = (wait.db, key.clone());
            if let Some(queue) = self.queues.get_mut(&key) {
                queue.retain(|waiting| *waiting != id);
                if queue.is_empty() {
                    self.queues.remove(&key);
                }
            }
        }
        Some(wait)
    }

    /// Those whose time is over, and what they are answered.
    pub fn due(&mut self, now: u64) -> Vec<(ClientId, Reply)> {
        let mut due = Vec::new();
        while let Some(&(until, id)) = self.ends.first()
            && until <= now
        {
            self.ends.remove(&(until, id));
            if let Some(wait) = self.remove(id) {
                due.push((id, wait.timeout_reply()));
            }
        }
        due
    }

    fn waiting_for(&self, key: &Key) -> Vec<ClientId> {
        self.queues
            .get(key)
            .map_or_else(Vec::new, |queue| queue.iter().copied().collect())
    }
}

impl Server {
    /// A connection waits for the keys of `command`.
    pub(super) fn wait(
        &mut self,
        id: ClientId,
        spec: &'static CommandSpec,
        command: &Command,
        stamp: Stamp,
    ) {
        let timeout = timeout_millis(spec, command);
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let command = match spec.name {
            "xread" => crate::streams::resolved(&self.keyspace, client.db, command),
            _ => command.clone(),
        };
        client.is_waiting = true;
        let places = spec.keys.places(&command);
        let wait = Wait {
            spec,
            db: client.db,
            keys: places
                .into_iter()
                .map(|place| command.arg(place).into())
                .collect(),
            until: if timeout == 0 {
                0
            } else {
                stamp.now_millis.saturating_add(timeout)
            },
            command,
        };
        self.waiting.add(id, wait);
    }

    /// Tells those who watch or keep keys that changed in `effects`, by a command of `writer`, and serves
    /// those who wait for them: what they write comes behind, and is looked at too.
    pub(super) fn after(&mut self, effects: &mut Effects, stamp: Stamp, writer: Option<ClientId>) {
        if !(self.watchers.is_empty() && self.waiting.is_empty()) {
            self.serve_changed(effects, stamp);
        }
        if self.tracked.is_on() && !effects.is_empty() {
            self.invalidate_changed(&effects.rows, writer);
        }
    }

    fn serve_changed(&mut self, effects: &mut Effects, stamp: Stamp) {
        let mut next = 0;
        while next < effects.rows.len() {
            if let Some(db) = rows::begun_epoch(&effects.rows[next].key) {
                self.flushed(db);
            }
            let touched = effects.rows[next].touched();
            let touched = touched.map(|(db, key)| (db, Box::from(key)));
            next += 1;
            let Some(key) = touched else {
                continue;
            };
            for id in self.watchers.get(&key).cloned().unwrap_or_default() {
                if let Some(client) = self.clients.get_mut(&id) {
                    client.is_outdated = true;
                }
            }
            if !self.waiting.is_empty() {
                let written = self.serve_waiting(&key, stamp);
                effects.append(written);
            }
        }
    }

    /// Runs again what waits for `key`, in the order of coming.
    pub(super) fn serve_waiting(&mut self, key: &Key, stamp: Stamp) -> Effects {
        let mut effects = Effects::default();
        for id in self.waiting.waiting_for(key) {
            let Some(wait) = self.waiting.waits.get(&id) else {
                continue;
            };
            // Who reads for a group is told that the group is gone, and who moves an element, that it
            // cannot go where it is to.
            let found = self.keyspace.peek(key.0, &key.1);
            let is_list = found.is_some_and(|entry| entry.value.kind() == Kind::List);
            let hears_errors = match wait.spec.name {
                "xreadgroup" => true,
                "blmove" | "brpoplpush" => is_list,
                _ => false,
            };
            if self.keyspace.peek(key.0, &key.1).is_none() && !hears_errors {
                continue;
            }
            let (spec, command) = (wait.spec, wait.command.clone());
            let places = spec.keys.places(&command);
            let keys = places.iter().map(|place| command.arg(*place));
            let missing = self.keyspace.missing(wait.db, keys, false);
            if !missing.is_empty() {
                self.load(missing);
                continue;
            }
            let (reply, written) = self.run(id, spec, &command, stamp, &mut NoHost);
            effects.append(written);
            // A key of another type: it goes on waiting, as in Redis.
            if reply != Reply::Later && (hears_errors || !reply.is_error()) {
                self.waiting.remove(id);
                self.answer_waiting(id, reply);
            }
        }
        effects
    }

    /// Ends a wait with a reply.
    pub(super) fn answer_waiting(&mut self, id: ClientId, reply: Reply) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.is_waiting = false;
            let name = client.last_command;
            let has_failed = self.count_errors(name, &reply);
            self.statistics.waited(name, has_failed);
        }
        self.send(id, reply);
    }

    /// When something is due, in milliseconds since 1970.
    #[must_use]
    pub fn next_wait_end(&self) -> Option<u64> {
        let first = self.waiting.ends.first().map(|(until, _)| *until);
        first.into_iter().chain(self.pause_end()).min()
    }

    /// Connections that wait, by the type of what they wait for.
    #[must_use]
    pub fn waiting_by_command(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for wait in self.waiting.waits.values() {
            *counts.entry(wait.spec.name).or_default() += 1;
        }
        counts
    }
}
