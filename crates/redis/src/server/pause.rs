//! CLIENT PAUSE: commands wait, of all connections, until a time.
//!
//! A paused command is not looked at: whoever has the connection keeps it and asks again
//! ([`Needs::Paused`](super::Needs::Paused)) when the pause is over. Keys do not expire meanwhile.

use super::call::Call;
use super::client::ClientId;
use super::state::Server;
use super::table;
use crate::command::Command;
use crate::error::CommandError;
use crate::number;
use crate::resp::Reply;
use crate::spec::{CommandSpec, Flags};

/// Commands that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pause {
    /// Until when, in milliseconds since 1970.
    until: u64,
    /// Not only those that may write.
    is_all: bool,
}

/// Whether a command may write, itself or by what it runs; one that tells other connections something is
/// among them, as in Redis.
fn may_write(spec: &CommandSpec) -> bool {
    let runs = matches!(spec.name, "eval" | "evalsha" | "fcall" | "function");
    spec.flags.has(Flags::WRITE) || runs || matches!(spec.name, "publish" | "pfcount")
}

impl Server {
    /// Whether commands wait for the end of a pause.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.pause.is_some()
    }

    /// When the pause ends, in milliseconds since 1970.
    pub(super) fn pause_end(&self) -> Option<u64> {
        self.pause.map(|pause| pause.until)
    }

    /// Ends a pause whose time is over.
    pub(super) fn end_pause(&mut self, now: u64) {
        self.pause = self.pause.filter(|pause| pause.until > now);
    }

    /// Whether `command` waits for the end of the pause.
    pub(super) fn is_held(&self, id: ClientId, command: &Command) -> bool {
        let Some(pause) = self.pause else {
            return false;
        };
        if pause.is_all {
            return true;
        }
        let writes = |command: &Command| table::find(command.name()).is_some_and(may_write);
        let client = self.clients.get(&id);
        let open = client.and_then(|client| client.transaction.as_ref());
        let ends = open.filter(|_| command.is_word(0, "EXEC"));
        writes(command) || ends.is_some_and(|open| open.queue.iter().any(writes))
    }
}

/// CLIENT PAUSE. Of two pauses the later end counts, and all commands wait if those of one do.
pub(super) fn pause(call: &mut Call<'_>, command: &Command) -> Result<Reply, CommandError> {
    let millis = number::integer(command.arg(2)).ok_or(CommandError::text(
        "ERR timeout is not an integer or out of range",
    ))?;
    let millis =
        u64::try_from(millis).map_err(|_| CommandError::text("ERR timeout is negative"))?;
    let is_all = match command.len() {
        3 => true,
        _ if command.is_word(3, "ALL") => true,
        _ if command.is_word(3, "WRITE") => false,
        _ => {
            return Err(CommandError::text(
                "ERR CLIENT PAUSE mode must be WRITE or ALL",
            ));
        }
    };
    let until = call.stamp.now_millis.saturating_add(millis);
    let before = call.server.pause;
    call.server.pause = Some(Pause {
        until: before.map_or(until, |before| before.until.max(until)),
        is_all: is_all || before.is_some_and(|before| before.is_all),
    });
    Ok(Reply::OK)
}

#[cfg(test)]
mod tests {
    use crate::server::{ClientId, Needs, Server, Settings};
    use crate::{Command, Keyspace, Stamp};

    fn ask(server: &mut Server, id: ClientId, words: &str, now: u64) -> String {
        let command = Command::of(&words.split(' ').collect::<Vec<_>>());
        if server.needs(id, &command) == Needs::Paused {
            return "paused".to_owned();
        }
        let reply = server.handle(id, &command, Stamp::new(now, 1)).reply;
        let mut out = Vec::new();
        reply.encode(server.protocol(id), &mut out);
        String::from_utf8_lossy(&out).trim_end().to_owned()
    }

    #[test]
    fn writes_wait_until_the_pause_is_over_and_reads_do_not() {
        let mut server = Server::new(Keyspace::new(), Settings::default(), 0);
        let (one, other) = (server.connect("a".into(), 0), server.connect("b".into(), 0));
        ask(&mut server, one, "SET k v PX 60", 0);
        for words in ["MULTI", "SET k w"] {
            ask(&mut server, other, words, 0);
        }
        assert_eq!(ask(&mut server, one, "CLIENT PAUSE 100 WRITE", 0), "+OK");
        for words in ["SET k w", "EVAL return(1) 0", "PUBLISH c m", "DEL k"] {
            assert_eq!(ask(&mut server, one, words, 1), "paused", "{words}");
        }
        assert_eq!(ask(&mut server, one, "STRLEN k", 1), ":1");
        assert_eq!(ask(&mut server, other, "EXEC", 1), "paused");
        // A key whose time is over stays until the pause is.
        assert!(server.tick(Stamp::new(99, 1)).is_empty());
        assert_eq!(server.next_wait_end(), Some(100));
        assert!(!server.tick(Stamp::new(100, 1)).is_empty());
        assert_eq!((server.is_paused(), server.next_wait_end()), (false, None));
        assert_eq!(ask(&mut server, other, "EXEC", 101), "*1\r\n+OK");
    }

    #[test]
    fn two_pauses_are_the_longer_and_stricter_and_unpause_ends_both() {
        let mut server = Server::new(Keyspace::new(), Settings::default(), 0);
        let (one, other) = (server.connect("a".into(), 0), server.connect("b".into(), 0));
        ask(&mut server, one, "CLIENT PAUSE 100 WRITE", 0);
        ask(&mut server, one, "CLIENT PAUSE 50 WRITE", 0);
        server.tick(Stamp::new(99, 1));
        assert_eq!(ask(&mut server, one, "SET k v", 99), "paused");
        assert_eq!(ask(&mut server, one, "CLIENT UNPAUSE", 99), "+OK");
        assert_eq!(ask(&mut server, one, "SET k v", 99), "+OK");
        ask(&mut server, one, "CLIENT PAUSE 10", 100);
        assert_eq!(ask(&mut server, other, "PING", 101), "paused");
    }
}
