//! One command of one connection, running.

use super::client::{Client, ClientId};
use super::scripting::ScriptHost;
use super::state::Server;
use crate::Stamp;
use crate::command::Command;
use crate::error::CommandError;
use crate::keyspace::Effects;
use crate::resp::Reply;
use crate::spec::{CommandSpec, Flags, Group, Keys, Run};

/// What a command of a connection runs on.
pub struct Call<'a> {
    pub(crate) server: &'a mut Server,
    pub(crate) id: ClientId,
    pub(crate) stamp: Stamp,
    /// What commands inside it wrote.
    pub(crate) effects: Effects,
    /// The process around the server, for scripts.
    pub(crate) host: &'a mut dyn ScriptHost,
}

impl Call<'_> {
    pub(super) fn client(&self) -> &Client {
        &self.server.clients[&self.id]
    }

    pub(super) fn client_mut(&mut self) -> &mut Client {
        // A command runs for a connection that is there; one that is not would get a fresh state.
        let now = self.stamp.now_millis;
        self.server
            .clients
            .entry(self.id)
            .or_insert_with(|| Client::new(String::new(), None, now))
    }
}

/// What runs a command of a connection.
pub type ConnectionRun = fn(&mut Call<'_>, &Command) -> Result<Reply, CommandError>;

/// A command of a connection, and what runs it.
#[derive(Debug)]
pub struct ConnectionCommand {
    /// What is declared of it.
    pub spec: CommandSpec,
    /// What runs it.
    pub run: ConnectionRun,
}

/// A command of a connection.
pub(super) const fn connection(
    (name, arity): (&'static str, i16),
    flags: Flags,
    keys: Keys,
    group: Group,
    (since, summary): (&'static str, &'static str),
    run: ConnectionRun,
) -> ConnectionCommand {
    ConnectionCommand {
        spec: CommandSpec {
            name,
            arity,
            flags,
            keys,
            group,
            since,
            summary,
            run: Run::Connection,
        },
        run,
    }
}
