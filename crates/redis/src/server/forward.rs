//! For a server that keeps no data: which commands the connection answers itself, and which go to
//! where the data is.

use super::client::ClientId;
use super::scripting::ScriptCommand;
use super::state::Server;
use super::table;
use super::waiting::timeout_reply;
use crate::command::Command;
use crate::error::CommandError;
use crate::lists::blocking::timeout_millis;
use crate::resp::{Protocol, Reply};
use crate::spec::{CommandSpec, Flags, Group, Run};

/// What a user is told who may not do everything.
const NO_SCRIPTS: &str = "NOPERM scripts of a replicated server are for users who may do everything, as what their \
                          commands touch is not held against a user's rules";

/// What is to be done with a command of a connection.
#[derive(Debug)]
pub enum Forward {
    /// The connection answers it: [`Server::handle`] does.
    Here,
    /// It is about data.
    Data(DataCall),
    /// It cannot be done.
    Refused(Reply),
}

/// Commands on data, to be run together where the data is.
#[derive(Debug, Clone)]
pub struct DataCall {
    /// The chosen database.
    pub db: usize,
    /// What the answer is written in.
    pub protocol: Protocol,
    /// One command, or those between MULTI and EXEC.
    pub commands: Vec<Command>,
    /// Whether they are those between MULTI and EXEC: the answer is an array.
    pub is_transaction: bool,
    /// For how long it may wait for a key, in milliseconds; 0: for ever. Nothing: it never does.
    pub waits_millis: Option<u64>,
    /// Whether the client wants no reply (CLIENT REPLY).
    pub is_silent: bool,
}

impl DataCall {
    /// What is answered when it waited in vain.
    #[must_use]
    pub fn timeout_reply(&self) -> Reply {
        let name = self
            .commands
            .first()
            .and_then(|command| table::find(command.name()));
        timeout_reply(name.map_or("", |spec| spec.name))
    }
}

impl Server {
    /// Says who does a command. Of EXEC the queue is taken: the transaction is over here.
    pub fn forward(&mut self, id: ClientId, command: &Command) -> Forward {
        let Ok(spec) = table::admit(command) else {
            return Forward::Here;
        };
        if self.check(id, spec, command).is_err() {
            return Forward::Here;
        }
        let Some(client) = self.clients.get_mut(&id) else {
            return Forward::Here;
        };
        if let Some(what) = not_replicated(spec, command) {
            return refused(format!("ERR {what} not supported by a replicated server"));
        }
        if client.queues(spec) {
            return Forward::Here;
        }
        if spec.name == "exec" {
            return self.forward_transaction(id);
        }
        let is_script = ScriptCommand::of(command).is_some();
        if spec.group == Group::Scripting && !is_script {
            // It would run here, where the data is not.
            let name = table::full_name(spec, command).to_uppercase();
            return refused(format!(
                "ERR {} is not supported by a replicated server",
                name.replace('|', " ")
            ));
        }
        if !is_script && !matches!(spec.run, Run::Data(_)) {
            return Forward::Here;
        }
        if is_script && !self.may_run_scripts(id) {
            return refused(NO_SCRIPTS.to_owned());
        }
        let Some(client) = self.clients.get_mut(&id) else {
            return Forward::Here;
        };
        client.last_command = table::full_name(spec, command);
        let waits_millis = if spec.flags.has(Flags::BLOCKING) {
            let at = match spec.name {
                "blmpop" | "bzmpop" => 1,
                _ => command.len() - 1,
            };
            match timeout_millis(command.arg(at)) {
                Ok(millis) => Some(millis),
                Err(wrong) => return Forward::Refused(Reply::Error(wrong)),
            }
        } else {
            None
        };
        self.data_call(id, vec![command.clone()], false, waits_millis)
    }

    fn forward_transaction(&mut self, id: ClientId) -> Forward {
        let Some(client) = self.clients.get_mut(&id) else {
            return Forward::Here;
        };
        match &client.transaction {
            Some(open) if !open.is_broken => {}
            _ => return Forward::Here, // it is refused there
        }
        client.last_command = "exec";
        let open = self.take_transaction(id);
        let commands = open.map_or(Vec::new(), |open| open.queue);
        let is_data = |command: &Command| {
            let spec = table::find(command.name());
            let is_data = spec.is_some_and(|spec| matches!(spec.run, Run::Data(_)));
            is_data || ScriptCommand::of(command).is_some()
        };
        if let Some(other) = commands.iter().find(|command| !is_data(command)) {
            let name = String::from_utf8_lossy(other.name()).to_uppercase();
            return refused(format!(
                "EXECABORT Transaction discarded because {name} is not supported in a replicated \
                 transaction."
            ));
        }
        let has_script = commands
            .iter()
            .any(|command| ScriptCommand::of(command).is_some());
        if has_script && !self.may_run_scripts(id) {
            return refused(format!(
                "EXECABORT Transaction discarded because of: {NO_SCRIPTS}"
            ));
        }
        self.data_call(id, commands, true, None)
    }

    /// Whether a connection's user may do everything: where a script's commands run, users are not known.
    fn may_run_scripts(&self, id: ClientId) -> bool {
        let user = self
            .clients
            .get(&id)
            .and_then(|client| client.user.as_deref());
        user.is_some_and(|user| self.users.may_all(user))
    }

    fn data_call(
        &mut self,
        id: ClientId,
        commands: Vec<Command>,
        is_transaction: bool,
        waits_millis: Option<u64>,
    ) -> Forward {
        let db = self.clients.get(&id).map_or(0, |client| client.db);
        self.commands += 1;
        assert!(
            is_transaction || commands.len() == 1,
            "several commands at once are a transaction"
        );
        Forward::Data(DataCall {
            db,
            protocol: self.protocol(id),
            commands,
            is_transaction,
            waits_millis,
            is_silent: self.by_reply_mode(id, Reply::OK) == Reply::Later,
        })
    }

    /// Adds a section to INFO, or replaces it.
    pub fn set_info(&mut self, section: &'static str, lines: Vec<(String, String)>) {
        self.more_info.insert(section, lines);
    }
}

/// What a server without data cannot do, with its verb; nothing when it can do the command. Messages, watches,
/// events and pauses concern commands of all connections, of which this server has some, or ask what happens
/// to data, which is elsewhere.
fn not_replicated(spec: &CommandSpec, command: &Command) -> Option<String> {
    let name = table::full_name(spec, command);
    let is_event_setting = |place| command.is_word(place, "NOTIFY-KEYSPACE-EVENTS");
    let is_refused = match name {
        "config|set" if (2..command.len()).step_by(2).any(is_event_setting) => {
            return Some("keyspace events are".to_owned());
        }
        "watch" | "client|pause" | "client|unpause" | "client|caching" => true,
        "client|tracking" => !command.is_word(2, "OFF"),
        _ => spec.group == Group::PubSub,
    };
    is_refused.then(|| format!("{} is", name.to_uppercase().replace('|', " ")))
}

fn refused(why: String) -> Forward {
    Forward::Refused(Reply::Error(CommandError::new(why)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Settings;
    use crate::{Keyspace, Stamp};

    struct Front {
        server: Server,
        id: ClientId,
    }

    impl Front {
        fn new() -> Self {
            let mut server = Server::new(Keyspace::new(), Settings::default(), 0);
            let id = server.connect("here".to_owned(), 0);
            Self { server, id }
        }

        fn ask(&mut self, words: &[&str]) -> Result<Reply, DataCall> {
            let command = Command::of(words);
            match self.server.forward(self.id, &command) {
                Forward::Data(call) => Err(call),
                Forward::Refused(reply) => Ok(reply),
                Forward::Here => Ok(self
                    .server
                    .handle(self.id, &command, Stamp::new(1, 1))
                    .reply),
            }
        }
    }

    #[test]
    fn commands_on_data_go_elsewhere_with_their_database() {
        let mut front = Front::new();
        assert_eq!(front.ask(&["SELECT", "3"]).unwrap(), Reply::OK);
        let call = front.ask(&["SET", "a", "1"]).unwrap_err();
        assert_eq!(
            (call.db, call.commands.len(), call.is_transaction),
            (3, 1, false)
        );
        assert!(front.ask(&["SET", "a"]).unwrap().is_error());
        assert!(front.ask(&["WATCH", "a"]).unwrap().is_error());
        assert!(front.ask(&["SUBSCRIBE", "a"]).unwrap().is_error());
        for script in [
            &["EVAL", "return redis.call('SET', KEYS[1], 1)", "1", "a"][..],
            &["EVALSHA", "abc", "0"],
            &["SCRIPT", "LOAD", "return 1"],
            &["SCRIPT", "FLUSH", "ASYNC"],
        ] {
            let call = front.ask(script).unwrap_err();
            assert_eq!(
                (call.commands.len(), call.waits_millis),
                (1, None),
                "{script:?}"
            );
        }
        for script in [&["FCALL", "f", "0"][..], &["SCRIPT", "KILL"]] {
            assert!(front.ask(script).unwrap().is_error(), "{script:?}");
        }
        assert!(front.ask(&["CLIENT", "PAUSE", "1"]).unwrap().is_error());
        let words = ["CLIENT", "TRACKING", "ON", "BCAST"];
        assert!(front.ask(&words).unwrap().is_error());

        let call = front.ask(&["BLPOP", "l", "0.5"]).unwrap_err();
        assert_eq!(call.waits_millis, Some(500));
        assert_eq!(call.timeout_reply(), Reply::NullArray);
    }

    #[test]
    fn scripts_are_for_users_who_may_do_everything() {
        let mut front = Front::new();
        let rules = ["ACL", "SETUSER", "some", "on", "nopass", "~a*", "+@all"];
        assert_eq!(front.ask(&rules).unwrap(), Reply::OK);
        assert!(front.ask(&["AUTH", "some", "x"]).is_ok());
        assert!(front.ask(&["SET", "a", "1"]).is_err(), "it is asked for");
        let eval = ["EVAL", "return redis.call('GET', 'b')", "0"];
        assert!(front.ask(&eval).unwrap().is_error());
        front.ask(&["MULTI"]).unwrap();
        front.ask(&eval).unwrap();
        assert!(front.ask(&["EXEC"]).unwrap().is_error());
    }

    #[test]
    fn a_transaction_goes_as_a_whole() {
        let mut front = Front::new();
        assert_eq!(front.ask(&["MULTI"]).unwrap(), Reply::OK);
        assert_eq!(front.ask(&["INCR", "a"]).unwrap(), Reply::Simple("QUEUED"));
        assert_eq!(front.ask(&["INCR", "b"]).unwrap(), Reply::Simple("QUEUED"));
        let call = front.ask(&["EXEC"]).unwrap_err();
        assert!(call.is_transaction && call.commands.len() == 2);
        assert!(front.ask(&["EXEC"]).unwrap().is_error(), "it is over");
        front.ask(&["MULTI"]).unwrap();
        front.ask(&["PING"]).unwrap();
        assert!(
            front.ask(&["EXEC"]).unwrap().is_error(),
            "no command on data"
        );
        front.ask(&["MULTI"]).unwrap();
        front.ask(&["EVAL", "return 1", "0"]).unwrap();
        assert_eq!(front.ask(&["EXEC"]).unwrap_err().commands.len(), 1);
        front.ask(&["MULTI"]).unwrap();
        front.ask(&["FCALL", "f", "0"]).unwrap();
        assert!(front.ask(&["EXEC"]).unwrap().is_error(), "nor a function");
        front.ask(&["MULTI"]).unwrap();
        assert!(front.ask(&["NOPE"]).unwrap().is_error());
        assert!(front.ask(&["EXEC"]).unwrap().is_error(), "it was broken");
    }
}
