//! A connection's state, and CLIENT.

use std::collections::BTreeSet;

use super::call::Call;
use super::client_kill::kill;
use super::pause::pause;
use super::tracking::{Mode, Tracking};
use super::tracking_commands::{self, redirection};
use crate::command::Command;
use crate::error::CommandError;
use crate::number;
use crate::resp::{Protocol, Reply};
use crate::spec::{CommandSpec, Flags};

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
    /// Where the server has it.
    pub local_address: String,
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
    /// When its last command came.
    pub last_millis: u64,
    /// The full name of that.
    pub last_command: &'static str,
    /// CLIENT NO-EVICT and NO-TOUCH, which are shown: no client is ended for the memory that it takes, and
    /// values leave memory in turn.
    pub is_kept: bool,
    pub tracking: Option<Box<Tracking>>,
    pub is_untouching: bool,
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
            local_address: String::new(),
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
            last_millis: now,
            last_command: "NULL",
            is_kept: false,
            tracking: None,
            is_untouching: false,
        }
    }

    /// Whether a command of it is queued: one between MULTI and EXEC, but those that end the transaction or
    /// the connection.
    pub fn queues(&self, spec: &CommandSpec) -> bool {
        let ends_something = spec.flags.has(Flags::NO_MULTI) || spec.name == "quit";
        self.transaction.is_some() && !ends_something
    }

    /// Channels and patterns listened to.
    pub fn subscriptions(&self) -> usize {
        self.channels.len() + self.patterns.len()
    }

    fn flags(&self) -> String {
        let is_tracking = |is: fn(&Tracking) -> bool| self.tracking.as_deref().is_some_and(is);
        let flags = [
            ('b', self.is_waiting),
            ('P', self.subscriptions() > 0),
            ('x', self.transaction.is_some()),
            ('t', self.tracking.is_some()),
            ('R', is_tracking(|tracking| tracking.is_broken)),
            (
                'B',
                is_tracking(|tracking| tracking.mode == Mode::Broadcast),
            ),
            ('e', self.is_kept),
            ('T', self.is_untouching),
        ];
        let held = flags.into_iter().filter(|(_, is_held)| *is_held);
        let held: String = held.map(|(flag, _)| flag).collect();
        if held.is_empty() {
            "N".to_owned()
        } else {
            held
        }
    }

    /// The line of CLIENT LIST.
    pub fn describe(&self, id: ClientId, now: u64) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let queued = self.transaction.as_ref().map_or(-1, |open| {
            i64::try_from(open.queue.len()).unwrap_or(i64::MAX)
        });
        format!(
            "id={} addr={} laddr={} fd=0 name={} age={} idle={} flags={} db={} sub={} psub={} \
             ssub=0 multi={queued} qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 \
             omem=0 tot-mem=0 events=r cmd={} user={} redir={} resp={} lib-name={} lib-ver={}\n",
            id.0,
            self.address,
            self.local_address,
            text(&self.name),
            now.saturating_sub(self.since_millis) / 1000,
            now.saturating_sub(self.last_millis) / 1000,
            self.flags(),
            self.db,
            self.channels.len(),
            self.patterns.len(),
            self.last_command,
            self.user.as_deref().unwrap_or("(none)"),
            redirection(self),
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
        (b"NO-EVICT", 3) => {
            call.client_mut().is_kept = is_on(command)?;
            Ok(Reply::OK)
        }
        (b"NO-TOUCH", 3) => {
            call.client_mut().is_untouching = is_on(command)?;
            Ok(Reply::OK)
        }
        (b"PAUSE", 3..=4) => pause(call, command),
        (b"UNPAUSE", 2) => {
            call.server.pause = None;
            Ok(Reply::OK)
        }
        (b"TRACKING", 3..) => tracking_commands::tracking(call, command),
        (b"CACHING", 3) => tracking_commands::caching(call, command),
        (b"TRACKINGINFO", 2) => Ok(tracking_commands::info(call.client())),
        (b"GETREDIR", 2) => Ok(Reply::Integer(redirection(call.client()))),
        _ => Err(super::info::unknown(command)),
    }
}

/// The word ON or OFF.
fn is_on(command: &Command) -> Result<bool, CommandError> {
    match () {
        () if command.is_word(2, "ON") => Ok(true),
        () if command.is_word(2, "OFF") => Ok(false),
        () => Err(CommandError::SYNTAX),
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
