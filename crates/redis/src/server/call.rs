//! One command of one connection, running.

use super::client::{Client, ClientId};
use super::state::Server;
use crate::Stamp;
use crate::keyspace::Effects;
use crate::scripts::ScriptHost;

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
