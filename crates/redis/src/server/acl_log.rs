//! ACL LOG: what users were not let do, the latest first.

use std::collections::VecDeque;

use super::call::Call;
use crate::Stamp;
use crate::command::Command;
use crate::error::CommandError;
use crate::number;
use crate::resp::Reply;

/// Entries that are kept, as in Redis.
const KEPT: usize = 128;
/// Entries that are told when nobody asks for more.
const TOLD: usize = 10;
/// Bytes of a name that are kept.
const NAME_BYTES_MAX: usize = 1024;
/// Within how many milliseconds the same refusal is the same entry.
const SAME_MILLIS: u64 = 60_000;

/// Where a command was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    TopLevel,
    Transaction,
    Script,
}

impl Context {
    fn name(self) -> &'static str {
        match self {
            Self::TopLevel => "toplevel",
            Self::Transaction => "multi",
            Self::Script => "lua",
        }
    }
}

/// What a user may not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Denied {
    /// A command, or this part of it.
    Command(&'static str),
    Key(Vec<u8>),
    Channel(Vec<u8>),
    /// Nobody is this user with this password; the command that said so.
    Password(&'static str),
}

impl Denied {
    fn names(&self) -> (&'static str, &[u8]) {
        match self {
            Self::Command(name) => ("command", name.as_bytes()),
            Self::Key(key) => ("key", key),
            Self::Channel(channel) => ("channel", channel),
            Self::Password(command) => ("auth", command.as_bytes()),
        }
    }

    /// What the user is told.
    pub fn error(&self, user: &str) -> CommandError {
        match self {
            Self::Command(name) => CommandError::new(format!(
                "NOPERM User {user} has no permissions to run the '{name}' command"
            )),
            Self::Key(_) => CommandError::text("NOPERM No permissions to access a key"),
            Self::Channel(_) => CommandError::text("NOPERM No permissions to access a channel"),
            Self::Password(_) => {
                CommandError::text("WRONGPASS invalid username-password pair or user is disabled.")
            }
        }
    }

    /// What ACL DRYRUN tells of it.
    pub fn verbose(&self, user: &str) -> String {
        let (what, name) = self.names();
        let name = String::from_utf8_lossy(name);
        match self {
            Self::Command(_) => {
                format!("User {user} has no permissions to run the '{name}' command")
            }
            _ => format!("User {user} has no permissions to access the '{name}' {what}"),
        }
    }
}

#[derive(Debug)]
struct Entry {
    id: u64,
    count: u64,
    denied: Denied,
    context: Context,
    user: String,
    created: u64,
    updated: u64,
    client: String,
}

/// The latest refusals.
#[derive(Debug, Default)]
pub(super) struct AclLog {
    /// The newest first.
    entries: VecDeque<Entry>,
    next_id: u64,
}

impl AclLog {
    /// Keeps a refusal; `client` is the connection as CLIENT INFO tells it.
    pub fn add(
        &mut self,
        mut denied: Denied,
        context: Context,
        mut user: String,
        client: String,
        stamp: Stamp,
    ) {
        if let Denied::Key(name) | Denied::Channel(name) = &mut denied {
            name.truncate(NAME_BYTES_MAX);
        }
        if user.len() > NAME_BYTES_MAX {
            user = user.chars().take(NAME_BYTES_MAX / 4).collect();
        }
        let now = stamp.now_millis;
        let is_same = |entry: &Entry| {
            let same = (&entry.denied, entry.context, &entry.user) == (&denied, context, &user);
            same && now.saturating_sub(entry.updated) < SAME_MILLIS
        };
        let before = self.entries.iter().position(is_same);
        let mut entry = match before.and_then(|place| self.entries.remove(place)) {
            Some(entry) => entry,
            None => {
                self.next_id += 1;
                Entry {
                    id: self.next_id - 1,
                    count: 0,
                    denied,
                    context,
                    user,
                    created: now,
                    updated: now,
                    client: String::new(),
                }
            }
        };
        entry.count += 1;
        (entry.updated, entry.client) = (now, client.trim_end().to_owned());
        self.entries.push_front(entry);
        self.entries.truncate(KEPT);
    }
}

fn told(entry: &Entry, now: u64) -> Reply {
    let (reason, object) = entry.denied.names();
    // Milliseconds of many years fit.
    #[allow(clippy::cast_precision_loss)]
    let age = now.saturating_sub(entry.created) as f64 / 1000.0;
    let fields = [
        ("count", Reply::wide(entry.count)),
        ("reason", Reply::bulk(reason)),
        ("context", Reply::bulk(entry.context.name())),
        ("object", Reply::bulk(object)),
        ("username", Reply::bulk(&entry.user)),
        ("age-seconds", Reply::Double(age)),
        ("client-info", Reply::bulk(&entry.client)),
        ("entry-id", Reply::wide(entry.id)),
        ("timestamp-created", Reply::wide(entry.created)),
        ("timestamp-last-updated", Reply::wide(entry.updated)),
    ];
    let fields = fields.map(|(name, value)| (Reply::bulk(name), value));
    Reply::Map(fields.into())
}

/// ACL LOG.
pub(super) fn log(call: &mut Call<'_>, command: &Command) -> Result<Reply, CommandError> {
    if command.is_word(2, "RESET") {
        call.server.acl_log.entries.clear();
        return Ok(Reply::OK);
    }
    let most = match command.len() {
        2 => TOLD,
        _ => usize::try_from(number::parse(command.arg(2))?).unwrap_or(0),
    };
    let entries = call.server.acl_log.entries.iter().take(most);
    let now = call.stamp.now_millis;
    Ok(Reply::Array(
        entries.map(|entry| told(entry, now)).collect(),
    ))
}
