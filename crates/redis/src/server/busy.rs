//! What other connections are answered while a script runs for long.

use super::client::ClientId;
use super::scripting::NoHost;
use super::state::Server;
use super::transaction;
use crate::Stamp;
use crate::command::Command;
use crate::error::CommandError;
use crate::resp::Reply;

const BUSY: CommandError = CommandError::text(
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
);

impl Server {
    /// How long a script runs before other connections may end it, in milliseconds.
    #[must_use]
    pub fn script_limit_millis(&self) -> u64 {
        self.settings.script_limit_millis
    }

    /// A command of a connection, other than the script's, while a script runs: those that end it, and those
    /// with which a connection begins. They write nothing.
    pub fn handle_while_busy(&mut self, id: ClientId, command: &Command, stamp: Stamp) -> Reply {
        self.commands += 1;
        let spec = match self.admitted(id, command, stamp) {
            Ok(spec) => spec,
            Err(refused) => return refused,
        };
        match spec.name {
            "function" if command.is_word(1, "STATS") => super::scripting::stats(self, stamp),
            "script" | "function" if command.is_word(1, "KILL") => Reply::from(self.kill_script()),
            // What was queued is not run, and EXEC says so.
            "exec" => match self.take_transaction(id) {
                Some(_) => Reply::Error(transaction::discarded(&BUSY)),
                None => self.refuse(id, BUSY),
            },
            "auth" | "hello" | "quit" | "reset" | "multi" | "discard" | "watch" | "unwatch" => {
                let (reply, effects) = self.run(id, spec, command, stamp, &mut NoHost);
                assert!(effects.is_empty(), "a connection began by writing");
                reply
            }
            _ => self.refuse(id, BUSY),
        }
    }
}
