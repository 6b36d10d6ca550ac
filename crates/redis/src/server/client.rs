//! A connection's state, and CLIENT.

use std::collections::BTreeSet;

use super::call::Call;
use crate::command::Command;
use crate::error::CommandError;
use crate::number;
use crate::resp::{Protocol, Reply};

/// Number of a connection, never given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// Commands between MULTI and EXEC.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    pub queue: Vec<Command>,
    /// A command was refused: EXEC does nothing.
    pub is_broken: bool,
}

/// A key that a connection watches.
#[derive(Debug, Clone)]
pub(super) struct Watched {
    /// With its database.
    pub key: (usize, Box<[u8]>),
    /// It was there when the watch began: FLUSHALL changes it.
    pub was_there: bool,
}

/// What the server knows of a connection.
#[derive(Debug)]
pub(super) struct Client {
    pub address: String,
    pub name: Vec<u8>,
    pub library: Vec<u8>,
    pub library_version: Vec<u8>,
    pub db: usize,
    pub protocol: Protocol,
    /// Who it is, once it said so.
    pub user: Option<String>,
    pub transaction: Option<Transaction>,
    pub watched: Vec<Watched>,
    /// A watched key was changed.
    pub is_outdated: bool,
    pub channels: BTreeSet<Vec<u8>>,
    pub patterns: BTreeSet<Vec<u8>>,
    pub is_waiting: bool,
    /// Replies are sent: CLIENT REPLY.
    pub replies: ReplyMode,
    pub since_millis: u64,
    pub last_command: &'static str,
}

/// Which replies are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ReplyMode {
    #[default]
    On,
    Off,
    /// Not this one and not the next.
    SkipNext,
}

impl Client {
    pub fn new(address: String, user: Option<String>, now: u64) -> Self {
        Self {
            address,
            name: Vec::new(),
            library: Vec::new(),
            library_version: Vec::new(),
            db: 0,
            protocol: Protocol::Resp2,
            user,
            transaction: None,
            watched: Vec::new(),
            is_outdated: false,
            channels: BTreeSet::new(),
            patterns: BTreeSet::new(),
            is_waiting: false,
            replies: ReplyMode::On,
            since_millis: now,
            last_command: "NULL",
        }
    }

    /// Channels and patterns listened to.
    pub fn subscriptions(&self) -> usize {
        self.channels.len() + self.patterns.len()
    }

    fn describe(&self, id: ClientId, now: u64) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let flags = match () {
            () if self.is_waiting => "b",
            () if self.subscriptions() > 0 => "P",
            () if self.transaction.is_some() => "x",
            () => "N",
        };
        let queued = self.transaction.as_ref().map_or(-1, |open| {
            i64::try_from(open.queue.len()).unwrap_or(i64::MAX)
        });
        format!(
            "id={} addr={} laddr= fd=0 name={} age={} idle=0 flags={flags} db={} sub={} psub={} \
             ssub=0 multi={queued} qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 \
             omem=0 tot-mem=0 events=r cmd={} user={} redir=-1 resp={} lib-name={} lib-ver={}\n",
            id.0,
            self.address,
            text(&self.name),
            now.saturating_sub(self.since_millis) / 1000,
            self.db,
            self.channels.len(),
            self.patterns.len(),
            self.last_command,
            self.user.as_deref().unwrap_or("(none)"),
            if self.protocol == Protocol::Resp3 {
                3
            } else {
                2
            },
            text(&self.library),
            text(&self.library_version),
        )
    }
}

/// Names that CLIENT SETNAME and the like take: printable, without blanks.
pub(super) fn check_name(name: &[u8], what: &str) -> Result<(), CommandError> {
    if name.iter().all(u8::is_ascii_graphic) {
        return Ok(());
    }
    Err(CommandError::new(format!(
        "ERR {what} cannot contain spaces, newlines or special characters."
    )))
}

pub fn client(call: &mut Call<'_>, command: &Command) -> Result<Reply, CommandError> {
    let now = call.stamp.now_millis;
    let id = call.id;
    let wrong = || {
        CommandError::new(format!(
            "ERR unknown subcommand or wrong number of arguments for '{}'. Try CLIENT HELP.",
            String::from_utf8_lossy(command.arg(1))
        ))
    };
    let word = command.arg(1).to_ascii_uppercase();
    match (word.as_slice(), command.len()) {
        (b"ID", 2) => Ok(Reply::Integer(id.0.cast_signed())),
        (b"GETNAME", 2) => {
            let name = &call.client().name;
            Ok(if name.is_empty() {
                Reply::Null
            } else {
                Reply::bulk(name)
            })
        }
        (b"SETNAME", 3) => {
            check_name(command.arg(2), "Client names")?;
            call.client_mut().name = command.arg(2).to_vec();
            Ok(Reply::OK)
        }
        (b"SETINFO", 4) => set_info(call, command),
        (b"INFO", 2) => Ok(Reply::Verbatim(call.client().describe(id, now))),
        (b"LIST", 2..) => list(call, command),
        (b"KILL", 3..) => kill(call, command),
        (b"REPLY", 3) => reply_mode(call, command),
        (b"UNBLOCK", 3..=4) => unblock(call, command),
        (b"NO-EVICT" | b"NO-TOUCH", 3) => Ok(Reply::OK),
        (b"PAUSE", 3..=4) | (b"UNPAUSE", 2) => {
            Err(CommandError::text("ERR CLIENT PAUSE is not supported"))
        }
        (b"TRACKING", 3..) if command.is_word(2, "OFF") => Ok(Reply::OK),
        (b"TRACKING", 3..) => Err(CommandError::text("ERR CLIENT TRACKING is not supported")),
        (b"TRACKINGINFO", 2) => Ok(Reply::Map(vec![
            (Reply::bulk("flags"), Reply::Set(vec![Reply::bulk("off")])),
            (Reply::bulk("redirect"), Reply::Integer(-1)),
            (Reply::bulk("prefixes"), Reply::Array(Vec::new())),
        ])),
        (b"GETREDIR", 2) => Ok(Reply::Integer(-1)),
        _ => Err(wrong()),
    }
}

/// CLIENT LIST, of all or of those that are asked for.
fn list(call: &Call<'_>, command: &Command) -> Result<Reply, CommandError> {
    let mut shown: Vec<_> = call.server.clients.iter().collect();
    if command.len() == 4 && command.is_word(2, "TYPE") {
        let kind = command.arg(3).to_ascii_lowercase();
        let is_pubsub = match kind.as_slice() {
            b"normal" => Some(false),
            b"pubsub" => Some(true),
            b"master" | b"replica" | b"slave" => None,
            _ => {
                let kind = String::from_utf8_lossy(command.arg(3));
                return Err(CommandError::new(format!(
                    "ERR Unknown client type '{kind}'"
                )));
            }
        };
        shown.retain(|(_, client)| is_pubsub == Some(client.subscriptions() > 0));
    } else if command.len() > 3 && command.is_word(2, "ID") {
        let ids = command.args_from(3).map(number::integer);
        let ids: Option<Vec<i64>> = ids.collect();
        let ids = ids.ok_or(CommandError::text("ERR Invalid client ID"))?;
        shown.retain(|(id, _)| ids.contains(&id.0.cast_signed()));
    } else if command.len() > 2 {
        return Err(CommandError::SYNTAX);
    }
    shown.sort_unstable_by_key(|(id, _)| **id);
    let now = call.stamp.now_millis;
    let lines = shown.into_iter();
    let lines = lines.map(|(id, client)| client.describe(*id, now));
    Ok(Reply::Verbatim(lines.collect()))
}

fn set_info(call: &mut Call<'_>, command: &Command) -> Result<Reply, CommandError> {
    let value = command.arg(3);
    if command.is_word(2, "LIB-NAME") {
        check_name(value, "lib-name")?;
        call.client_mut().library = value.to_vec();
    } else if command.is_word(2, "LIB-VER") {
        check_name(value, "lib-ver")?;
        call.client_mut().library_version = value.to_vec();
    } else {
        let option = String::from_utf8_lossy(command.arg(2));
        return Err(CommandError::new(format!(
            "ERR Unrecognized option '{option}'"
        )));
    }
    Ok(Reply::OK)
}

fn reply_mode(call: &mut Call<'_>, command: &Command) -> Result<Reply, CommandError> {
    let (mode, reply) = match () {
        () if command.is_word(2, "ON") => (ReplyMode::On, Reply::OK),
        () if command.is_word(2, "OFF") => (ReplyMode::Off, Reply::Later),
        () if command.is_word(2, "SKIP") => (ReplyMode::SkipNext, Reply::Later),
        () => return Err(CommandError::SYNTAX),
    };
    call.client_mut().replies = mode;
    Ok(reply)
}

fn unblock(call: &mut Call<'_>, command: &Command) -> Result<Reply, CommandError> {
    let id = number::parse(command.arg(2))?;
    let id = ClientId(u64::try_from(id).unwrap_or(0));
    let is_error = match command.len() {
        3 => false,
        _ if command.is_word(3, "TIMEOUT") => false,
        _ if command.is_word(3, "ERROR") => true,
        _ => {
            return Err(CommandError::text(
                "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR",
            ));
        }
    };
    let Some(waiting) = call.server.waiting.remove(id) else {
        return Ok(Reply::Integer(0));
    };
    let reply = if is_error {
        Reply::error("UNBLOCKED client unblocked via CLIENT UNBLOCK")
    } else {
        waiting.timeout_reply()
    };
    call.server.answer_waiting(id, reply);
    Ok(Reply::Integer(1))
}

fn kill(call: &mut Call<'_>, command: &Command) -> Result<Reply, CommandError> {
    let is_old = command.len() == 3;
    if !is_old && !command.len().is_multiple_of(2) {
        return Err(CommandError::SYNTAX);
    }
    let mut skips_me = true;
    let mut wanted: Vec<ClientId> = call.server.clients.keys().copied().collect();
    if is_old {
        let address = String::from_utf8_lossy(command.arg(2)).into_owned();
        wanted.retain(|id| call.server.clients[id].address == address);
        skips_me = false;
    }
    for place in (2..command.len()).step_by(2).filter(|_| !is_old) {
        let text = String::from_utf8_lossy(command.arg(place + 1)).into_owned();
        match () {
            () if command.is_word(place, "ID") => {
                let id = number::parse(command.arg(place + 1))?;
                wanted.retain(|found| i64::try_from(found.0) == Ok(id));
            }
            () if command.is_word(place, "ADDR") => {
                wanted.retain(|id| call.server.clients[id].address == text);
            }
            () if command.is_word(place, "USER") => {
                wanted.retain(|id| call.server.clients[id].user.as_deref() == Some(&text));
            }
            () if command.is_word(place, "SKIPME") => skips_me = !text.eq_ignore_ascii_case("no"),
            () if command.is_word(place, "TYPE") => {
                let is_channels = text.eq_ignore_ascii_case("pubsub");
                wanted.retain(|id| (call.server.clients[id].subscriptions() > 0) == is_channels);
            }
            () => return Err(CommandError::SYNTAX),
        }
    }
    wanted.retain(|id| !skips_me || *id != call.id);
    call.server.closing.extend(&wanted);
    match (is_old, wanted.len()) {
        (true, 0) => Err(CommandError::text("ERR No such client")),
        (true, _) => Ok(Reply::OK),
        (false, count) => Ok(Reply::count(count)),
    }
}
