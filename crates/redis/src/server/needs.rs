//! What of the store a command needs before it runs.

use super::client::ClientId;
use super::state::Server;
use super::table;
use crate::command::Command;
use crate::keyspace::Load;
use crate::spec::{CommandSpec, Flags};

/// What must be there before a command runs.
#[derive(Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: it can run now.
    Nothing,
    /// Values that are only in the store.
    Values(Vec<Load>),
    /// The names of all keys.
    AllNames,
    /// The end of a pause: CLIENT PAUSE.
    Paused,
}

impl Server {
    /// What must be there before `command` runs.
    #[must_use]
    pub fn needs(&self, id: ClientId, command: &Command) -> Needs {
        if self.is_paused() && self.is_held(id, command) {
            return Needs::Paused;
        }
        if self.keyspace.has_all_values() {
            return Needs::Nothing;
        }
        let Some(client) = self.clients.get(&id) else {
            return Needs::Nothing;
        };
        let mut needed = Vec::new();
        let queued = match &client.transaction {
            Some(open) if command.is_word(0, "EXEC") => open.queue.as_slice(),
            Some(_) => &[],
            None => std::slice::from_ref(command),
        };
        for command in queued {
            let Some(spec) = table::find(command.name()) else {
                continue;
            };
            match self.needs_of(client.db, spec, command) {
                Needs::Nothing => {}
                other @ (Needs::AllNames | Needs::Paused) => return other,
                Needs::Values(loads) => needed.extend(loads),
            }
        }
        if needed.is_empty() {
            return Needs::Nothing;
        }
        Needs::Values(needed)
    }

    /// What must be there before one command runs on database `db`.
    pub(crate) fn needs_of(&self, db: usize, spec: &CommandSpec, command: &Command) -> Needs {
        if self.keyspace.has_all_values() {
            return Needs::Nothing;
        }
        if spec.flags.has(Flags::ALL_KEYS) && !self.keyspace.is_complete() {
            return Needs::AllNames;
        }
        let places = spec.keys.places(command);
        let keys = places.into_iter().map(|place| command.arg(place));
        let gives_back = spec.name == "set" && crate::strings::gives_back(command);
        let only_entry = spec.flags.has(Flags::NO_VALUE) && !gives_back;
        let mut needed = self.keyspace.missing(db, keys, only_entry);
        if matches!(spec.name, "sort" | "sort_ro") {
            let beside = crate::keys::sort::keys_beside(&self.keyspace, db, command);
            let beside = beside.iter().map(Vec::as_slice);
            needed.extend(self.keyspace.missing(db, beside, false));
        }
        if needed.is_empty() {
            return Needs::Nothing;
        }
        Needs::Values(needed)
    }
}
