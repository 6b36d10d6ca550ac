//! Whether a command of a connection may run now, and what is answered when it may not.

use super::acl_log::Context;
use super::client::{ClientId, ReplyMode};
use super::state::Server;
use super::table;
use crate::Stamp;
use crate::command::Command;
use crate::error::CommandError;
use crate::resp::{Protocol, Reply};
use crate::spec::{CommandSpec, Flags};

impl Server {
    /// Whether a connection may run `command`.
    pub(crate) fn may_run(&self, id: ClientId, spec: &CommandSpec, command: &Command) -> bool {
        let user = self
            .clients
            .get(&id)
            .and_then(|client| client.user.as_ref());
        user.is_some_and(|user| self.users.denial(user, spec, command).is_none())
    }

    pub(super) fn by_reply_mode(&mut self, id: ClientId, reply: Reply) -> Reply {
        let Some(client) = self.clients.get_mut(&id) else {
            return reply;
        };
        match client.replies {
            ReplyMode::On => reply,
            ReplyMode::Off => Reply::Later,
            ReplyMode::SkipNext if client.last_command == "client|reply" => reply,
            ReplyMode::SkipNext => {
                client.replies = ReplyMode::On;
                Reply::Later
            }
        }
    }

    /// A command that was refused before it ran, and is counted as such.
    fn reject(&mut self, id: ClientId, command: &Command, refused: CommandError) -> Reply {
        if let Some(spec) = table::find(command.name()) {
            let name = table::full_name(spec, command);
            let has_part = !spec.flags.has(Flags::CONTAINER) || name != spec.name;
            if has_part || command.len() < 2 {
                self.statistics.rejected(name);
            }
        }
        let reply = self.refuse(id, refused);
        self.errors += self.statistics.errors_of(&reply);
        reply
    }

    /// Keeps for ACL LOG that a user may not run a command, if that is why it was refused.
    pub(super) fn log_denied(
        &mut self,
        id: ClientId,
        spec: &CommandSpec,
        command: &Command,
        stamp: Stamp,
    ) {
        if spec.flags.has(Flags::NO_AUTH) {
            return; // every user may
        }
        let Some(client) = self.clients.get(&id) else {
            return;
        };
        let Some(user) = &client.user else {
            return;
        };
        let context = match () {
            () if self.running.is_some() => Context::Script,
            () if client.transaction.is_some() => Context::Transaction,
            () => Context::TopLevel,
        };
        if let Some(denied) = self.users.denial(user, spec, command) {
            let user = user.clone();
            let about = client.describe(id, stamp.now_millis);
            self.acl_log.add(denied, context, user, about, stamp);
        }
    }

    /// What is declared of a command that a connection may run now; otherwise its reply.
    pub(super) fn admitted(
        &mut self,
        id: ClientId,
        command: &Command,
        stamp: Stamp,
    ) -> Result<&'static CommandSpec, Reply> {
        let spec = table::admit(command).map_err(|why| self.reject(id, command, why))?;
        self.check(id, spec, command).map_err(|why| {
            self.log_denied(id, spec, command, stamp);
            self.reject(id, command, why)
        })?;
        Ok(spec)
    }

    /// An error; between MULTI and EXEC it breaks the transaction.
    pub(super) fn refuse(&mut self, id: ClientId, refused: CommandError) -> Reply {
        if let Some(client) = self.clients.get_mut(&id)
            && let Some(open) = &mut client.transaction
        {
            open.is_broken = true;
        }
        Reply::Error(refused)
    }

    /// Whether a connection may run `command` now.
    pub(crate) fn check(
        &self,
        id: ClientId,
        spec: &CommandSpec,
        command: &Command,
    ) -> Result<(), CommandError> {
        let Some(client) = self.clients.get(&id) else {
            return Ok(());
        };
        if !spec.flags.has(Flags::NO_AUTH) {
            let Some(user) = &client.user else {
                return Err(CommandError::text("NOAUTH Authentication required."));
            };
            if let Some(denied) = self.users.denial(user, spec, command) {
                return Err(denied.error(user));
            }
        }
        let is_listening = client.protocol == Protocol::Resp2 && client.subscriptions() > 0;
        let is_allowed = spec.flags.has(Flags::PUBSUB) && spec.flags.has(Flags::NOSCRIPT)
            || matches!(spec.name, "ping" | "quit" | "reset");
        if is_listening && !is_allowed {
            return Err(CommandError::new(format!(
                "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
                 RESET are allowed in this context",
                spec.name
            )));
        }
        self.check_room(spec)?;
        // What is queued takes memory too.
        if client.queues(spec) && self.is_full() {
            return Err(CommandError::OUT_OF_MEMORY);
        }
        Ok(())
    }

    /// Whether disk and memory have room for what a command may write.
    pub(super) fn check_room(&self, spec: &CommandSpec) -> Result<(), CommandError> {
        if let Some(why) = &self.refusal
            && spec.flags.has(Flags::WRITE)
        {
            return Err(CommandError::new(format!(
                "MISCONF Errors writing to the commit log: {why}"
            )));
        }
        if spec.flags.has(Flags::DENYOOM) && self.is_full() {
            return Err(CommandError::OUT_OF_MEMORY);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Keyspace;
    use crate::server::Settings;

    #[test]
    fn commands_that_end_a_transaction_or_a_connection_are_answered_while_memory_is_full() {
        let settings = Settings {
            memory_bytes: 1,
            ..Settings::default()
        };
        let mut server = Server::new(Keyspace::new(), settings, 0);
        let id = server.connect("a".to_owned(), 0);
        let mut ask = |words: &[&str]| {
            let handled = server.handle(id, &Command::of(words), Stamp::new(1, 1));
            handled.reply
        };
        assert_eq!(ask(&["SET", "k", "v"]), Reply::OK, "it is full then");
        for ending in ["DISCARD", "RESET", "QUIT"] {
            assert_eq!(ask(&["MULTI"]), Reply::OK);
            let queued = ask(&["DEL", "k"]);
            assert_eq!(queued, Reply::Error(CommandError::OUT_OF_MEMORY));
            assert!(!ask(&[ending]).is_error(), "{ending}");
        }
    }
}
