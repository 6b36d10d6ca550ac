//! CLIENT TRACKING: clients that keep values are told when those change.
//!
//! The server remembers which client has read which key ([`Tracked`]), at most so many keys as
//! `tracking-table-max-keys` says: one beyond is forgotten, and told as changed. With BCAST it remembers nothing and
//! tells of every key that begins with a prefix. Keys have no database here, as in Redis: a client may be told
//! of more than it has.

use std::collections::{BTreeMap, BTreeSet};

use super::client::ClientId;
use super::state::Server;
use crate::command::Command;
use crate::keyspace::rows;
use crate::objects::Map;
use crate::resp::{Protocol, Reply};
use crate::spec::CommandSpec;
use crate::{RowWrite, Stamp};

/// Where messages for clients of RESP 2 come.
const CHANNEL: &str = "__redis__:invalidate";

/// Which of the keys that a client reads are remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// All.
    All,
    /// Those of commands behind CLIENT CACHING YES.
    OptIn,
    /// But those of commands behind CLIENT CACHING NO.
    OptOut,
    /// None: it is told of all that begin with its prefixes.
    Broadcast,
}

/// What a client asked for.
#[derive(Debug, Clone)]
pub(super) struct Tracking {
    pub mode: Mode,
    /// Who is told instead.
    pub redirect: Option<ClientId>,
    /// That connection is gone.
    pub is_broken: bool,
    /// It is not told of what it writes itself.
    pub is_loopless: bool,
    /// What it said of its next command.
    pub has_said: bool,
    pub prefixes: BTreeSet<Vec<u8>>,
}

/// Who has what.
#[derive(Debug, Default)]
pub(super) struct Tracked {
    /// Clients that track.
    pub clients: BTreeSet<ClientId>,
    readers: Map<Box<[u8]>, BTreeSet<ClientId>>,
    /// Readers of all keys.
    items: usize,
    prefixes: BTreeMap<Vec<u8>, BTreeSet<ClientId>>,
}

impl Tracked {
    pub fn is_on(&self) -> bool {
        !self.clients.is_empty()
    }

    pub fn keys(&self) -> usize {
        self.readers.len()
    }

    pub fn items(&self) -> usize {
        self.items
    }

    pub fn prefixes(&self) -> usize {
        self.prefixes.len()
    }

    fn remember(&mut self, key: &[u8], id: ClientId) {
        let readers = match self.readers.get_mut(key) {
            Some(readers) => readers,
            None => self.readers.entry(key.into()).or_default(),
        };
        self.items += usize::from(readers.insert(id));
    }

    fn forget(&mut self, key: &[u8]) -> BTreeSet<ClientId> {
        let readers = self.readers.swap_remove(key).unwrap_or_default();
        assert!(self.items >= readers.len(), "readers are counted twice");
        self.items -= readers.len();
        readers
    }

    /// A client tells of a prefix.
    pub fn listen(&mut self, prefix: &[u8], id: ClientId) {
        self.prefixes.entry(prefix.to_vec()).or_default().insert(id);
    }

    /// A client tracks no more. Keys that it has read are forgotten as they change.
    fn leave(&mut self, id: ClientId) {
        // Who listens to a prefix is one of them.
        if !self.clients.remove(&id) {
            return;
        }
        self.prefixes.retain(|_, listeners| {
            listeners.remove(&id);
            !listeners.is_empty()
        });
        if self.clients.is_empty() {
            (self.readers, self.items) = (Map::default(), 0);
        }
    }
}

impl Server {
    /// Ends what CLIENT TRACKING began.
    pub(super) fn end_tracking(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.tracking = None;
        }
        self.tracked.leave(id);
    }

    /// Remembers the keys that a command of a client read.
    pub(super) fn remember_keys(
        &mut self,
        id: ClientId,
        spec: &CommandSpec,
        command: &Command,
        stamp: Stamp,
    ) {
        let client = self.clients.get(&id);
        let Some(tracking) = client.and_then(|client| client.tracking.as_ref()) else {
            return;
        };
        match tracking.mode {
            Mode::All => {}
            Mode::OptIn if tracking.has_said => {}
            Mode::OptOut if !tracking.has_said => {}
            Mode::OptIn | Mode::OptOut | Mode::Broadcast => return,
        }
        for place in spec.keys.places(command) {
            self.tracked.remember(command.arg(place), id);
        }
        let most = self.settings.tracked_keys_max;
        while most > 0 && self.tracked.keys() > most {
            // Any of them: nobody knows which is used again.
            let any = stamp.seed % self.tracked.keys() as u64;
            let place = usize::try_from(any).unwrap_or(0);
            let Some((key, _)) = self.tracked.readers.get_index(place) else {
                break;
            };
            let key = key.clone();
            self.invalidate(&key, None);
        }
    }

    /// CLIENT CACHING is said of one command, or of all between MULTI and EXEC.
    pub(super) fn forget_caching(&mut self, id: ClientId, name: &str) {
        if let Some(client) = self.clients.get_mut(&id)
            && client.transaction.is_none()
            && !name.starts_with("client|")
            && let Some(tracking) = &mut client.tracking
        {
            tracking.has_said = false;
        }
    }

    /// Tells clients which keys rows have changed; `writer` wrote them.
    pub(super) fn invalidate_changed(&mut self, changed: &[RowWrite], writer: Option<ClientId>) {
        let is_flushed = changed
            .iter()
            .any(|row| rows::begun_epoch(&row.key).is_some());
        if is_flushed {
            self.invalidate_all();
        }
        let keys: BTreeSet<&[u8]> = changed
            .iter()
            .filter_map(|row| row.touched().map(|(_, key)| key))
            .collect();
        for key in &keys {
            self.invalidate(key, writer);
        }
        if self.tracked.prefixes.is_empty() {
            return;
        }
        let mut messages = Vec::new();
        for (prefix, listeners) in &self.tracked.prefixes {
            let of_it = keys.iter().filter(|key| key.starts_with(prefix));
            let of_it: Vec<Reply> = of_it.map(Reply::bulk).collect();
            if !of_it.is_empty() {
                let told = listeners
                    .iter()
                    .map(|id| (*id, Reply::Array(of_it.clone())));
                messages.extend(told);
            }
        }
        for (id, keys) in messages {
            if !(self.is_loopless(id) && writer == Some(id)) {
                self.send_invalidation(id, keys);
            }
        }
    }

    fn is_loopless(&self, id: ClientId) -> bool {
        let client = self.clients.get(&id);
        let tracking = client.and_then(|client| client.tracking.as_ref());
        tracking.is_some_and(|tracking| tracking.is_loopless)
    }

    /// One key is another now: who has it is told once.
    fn invalidate(&mut self, key: &[u8], writer: Option<ClientId>) {
        for id in self.tracked.forget(key) {
            let client = self.clients.get(&id);
            let Some(tracking) = client.and_then(|client| client.tracking.as_ref()) else {
                continue;
            };
            let is_own = tracking.is_loopless && writer == Some(id);
            if tracking.mode != Mode::Broadcast && !is_own {
                self.send_invalidation(id, Reply::Array(vec![Reply::bulk(key)]));
            }
        }
    }

    /// A database was flushed: all are told that all is another.
    fn invalidate_all(&mut self) {
        (self.tracked.readers, self.tracked.items) = (Map::default(), 0);
        for id in self.tracked.clients.clone() {
            self.send_invalidation(id, Reply::Null);
        }
    }

    /// Tells a client, or the connection that it named, of keys. A client of RESP 2 without such a connection
    /// cannot be told.
    fn send_invalidation(&mut self, id: ClientId, keys: Reply) {
        let Some(client) = self.clients.get(&id) else {
            return;
        };
        let Some(tracking) = &client.tracking else {
            return;
        };
        let own_protocol = client.protocol;
        let (to, protocol, is_subscribed) = match tracking.redirect {
            None => (id, own_protocol, false),
            Some(other) => match self.clients.get(&other) {
                Some(other_client) => {
                    let is_subscribed = other_client.subscriptions() > 0;
                    (other, other_client.protocol, is_subscribed)
                }
                None => return self.redirect_is_gone(id, other, own_protocol),
            },
        };
        match protocol {
            Protocol::Resp3 => self.send(to, Reply::Push(vec![Reply::bulk("invalidate"), keys])),
            Protocol::Resp2 if is_subscribed => {
                let parts = [Reply::bulk("message"), Reply::bulk(CHANNEL), keys];
                self.send(to, Reply::Push(parts.into()));
            }
            Protocol::Resp2 => {}
        }
    }

    fn redirect_is_gone(&mut self, id: ClientId, gone: ClientId, protocol: Protocol) {
        let client = self.clients.get_mut(&id);
        if let Some(tracking) = client.and_then(|client| client.tracking.as_mut()) {
            tracking.is_broken = true;
        }
        if protocol == Protocol::Resp3 {
            let number = Reply::Integer(gone.0.cast_signed());
            let parts = vec![Reply::bulk("tracking-redir-broken"), number];
            self.send(id, Reply::Push(parts));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::server::{ClientId, Server, Settings};
    use crate::{Command, Keyspace, Reply, Stamp};

    struct Two {
        server: Server,
        reader: ClientId,
        writer: ClientId,
    }

    impl Two {
        fn new() -> Self {
            let mut server = Server::new(Keyspace::new(), Settings::default(), 0);
            let (reader, writer) = (server.connect("a".into(), 0), server.connect("b".into(), 0));
            let mut two = Self {
                server,
                reader,
                writer,
            };
            two.ask(reader, "HELLO 3");
            two
        }

        /// What the reader is told by a command.
        fn ask(&mut self, id: ClientId, words: &str) -> Vec<String> {
            let command = Command::of(&words.split(' ').collect::<Vec<_>>());
            let reply = self.server.handle(id, &command, Stamp::new(1, 7)).reply;
            assert!(!reply.is_error(), "{words}: {reply:?}");
            let outbox = self.server.take_outbox().into_iter();
            let told = outbox.filter(|(to, _)| *to == self.reader);
            told.map(|(_, message)| match message {
                Reply::Push(parts) => match &parts[1] {
                    Reply::Null => "all".to_owned(),
                    Reply::Array(keys) => {
                        let keys = keys.iter().map(|key| match key {
                            Reply::Bulk(key) => String::from_utf8_lossy(key).into_owned(),
                            other => format!("{other:?}"),
                        });
                        keys.collect::<Vec<_>>().join(" ")
                    }
                    other => format!("{other:?}"),
                },
                other => format!("{other:?}"),
            })
            .collect()
        }
    }

    #[test]
    fn who_has_read_a_key_is_told_once_that_it_changed() {
        let mut two = Two::new();
        let (reader, writer) = (two.reader, two.writer);
        two.ask(reader, "CLIENT TRACKING ON NOLOOP");
        two.ask(reader, "MGET k l");
        assert_eq!(two.ask(writer, "MSET k 1 l 2 m 3"), ["k", "l"]);
        assert!(two.ask(writer, "SET k 2").is_empty());
        two.ask(reader, "GET k");
        assert!(two.ask(reader, "SET k own").is_empty());
        two.ask(reader, "GET k");
        assert_eq!(two.ask(writer, "FLUSHALL"), ["all"]);
        assert_eq!(
            (two.server.tracked.keys(), two.server.tracked.items()),
            (0, 0)
        );
        two.server.disconnect(reader);
        assert!(!two.server.tracked.is_on());
    }

    #[test]
    fn prefixes_are_told_without_reading_and_in_one_message() {
        let mut two = Two::new();
        let (reader, writer) = (two.reader, two.writer);
        two.ask(reader, "CLIENT TRACKING ON BCAST PREFIX user:");
        assert_eq!(
            two.ask(writer, "MSET user:2 a other b user:1 c"),
            ["user:1 user:2"]
        );
        two.ask(reader, "GET other");
        assert_eq!(two.server.tracked.keys(), 0);
    }

    #[test]
    fn keys_beyond_the_limit_are_forgotten_and_told() {
        let mut two = Two::new();
        let reader = two.reader;
        two.ask(reader, "CONFIG SET tracking-table-max-keys 3");
        two.ask(reader, "CLIENT TRACKING ON");
        let told: usize = (0..10)
            .map(|number| two.ask(reader, &format!("GET key{number}")).len())
            .sum();
        assert_eq!(
            (told, two.server.tracked.keys(), two.server.tracked.items()),
            (7, 3, 3)
        );
    }
}
