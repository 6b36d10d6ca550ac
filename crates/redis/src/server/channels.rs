//! Channels: SUBSCRIBE, PUBLISH, PUBSUB.

use std::collections::{BTreeMap, BTreeSet};

use super::call::Call;
use super::client::ClientId;
use super::state::Server;
use crate::command::Command;
use crate::error::CommandError;
use crate::glob;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

/// Who listens to what.
#[derive(Default)]
pub(super) struct Channels {
    by_name: BTreeMap<Vec<u8>, BTreeSet<ClientId>>,
    by_pattern: BTreeMap<Vec<u8>, BTreeSet<ClientId>>,
}

impl Channels {
    fn map(&mut self, is_pattern: bool) -> &mut BTreeMap<Vec<u8>, BTreeSet<ClientId>> {
        if is_pattern {
            &mut self.by_pattern
        } else {
            &mut self.by_name
        }
    }

    fn leave(&mut self, id: ClientId, name: &[u8], is_pattern: bool) {
        let map = self.map(is_pattern);
        if let Some(listeners) = map.get_mut(name) {
            listeners.remove(&id);
            if listeners.is_empty() {
                map.remove(name);
            }
        }
    }

    /// A connection ended.
    pub fn leave_all(&mut self, id: ClientId) {
        for is_pattern in [false, true] {
            self.map(is_pattern).retain(|_, listeners| {
                listeners.remove(&id);
                !listeners.is_empty()
            });
        }
    }

    pub fn names(&self) -> usize {
        self.by_name.len()
    }

    pub fn patterns(&self) -> usize {
        self.by_pattern.len()
    }
}

/// One message a name, all but the last sent apart: a command answers once for each.
fn changed(
    call: &mut Call<'_>,
    names: Vec<Vec<u8>>,
    word: &'static str,
    (is_pattern, joins): (bool, bool),
) -> Answer {
    let id = call.id;
    let nothing = names.is_empty();
    let names: Vec<Option<Vec<u8>>> = if nothing {
        vec![None]
    } else {
        names.into_iter().map(Some).collect()
    };
    let mut last = Reply::Later;
    for name in names {
        if let Some(name) = &name {
            if joins {
                call.server
                    .channels
                    .map(is_pattern)
                    .entry(name.clone())
                    .or_default()
                    .insert(id);
            } else {
                call.server.channels.leave(id, name, is_pattern);
            }
            let client = call.client_mut();
            let own = if is_pattern {
                &mut client.patterns
            } else {
                &mut client.channels
            };
            if joins {
                own.insert(name.clone());
            } else {
                own.remove(name);
            }
        }
        let count = call.client().subscriptions();
        let message = Reply::Push(vec![
            Reply::bulk(word),
            name.map_or(Reply::Null, Reply::Bulk),
            Reply::count(count),
        ]);
        let before = std::mem::replace(&mut last, message);
        if before != Reply::Later {
            call.server.send(id, before);
        }
    }
    // In order behind those before it.
    call.server.send(id, last);
    Ok(Reply::Later)
}

fn names(command: &Command) -> Vec<Vec<u8>> {
    command.args_from(1).map(<[u8]>::to_vec).collect()
}

pub fn subscribe(call: &mut Call<'_>, command: &Command) -> Answer {
    changed(call, names(command), "subscribe", (false, true))
}

pub fn psubscribe(call: &mut Call<'_>, command: &Command) -> Answer {
    changed(call, names(command), "psubscribe", (true, true))
}

pub fn unsubscribe(call: &mut Call<'_>, command: &Command) -> Answer {
    let mut names = names(command);
    if names.is_empty() {
        names = call.client().channels.iter().cloned().collect();
    }
    changed(call, names, "unsubscribe", (false, false))
}

pub fn punsubscribe(call: &mut Call<'_>, command: &Command) -> Answer {
    let mut names = names(command);
    if names.is_empty() {
        names = call.client().patterns.iter().cloned().collect();
    }
    changed(call, names, "punsubscribe", (true, false))
}

/// Sends a message to all who listen to a channel; how many there are.
pub(super) fn tell_listeners(server: &mut Server, channel: &[u8], message: &[u8]) -> usize {
    let listeners = server.channels.by_name.get(channel);
    let listeners: Vec<ClientId> = listeners.into_iter().flatten().copied().collect();
    for id in &listeners {
        let parts = [&b"message"[..], channel, message].map(Reply::bulk);
        server.send(*id, Reply::Push(parts.into()));
    }
    let mut reached = listeners.len();
    let patterns = server.channels.by_pattern.iter();
    let matching: Vec<_> = patterns
        .filter(|(pattern, _)| glob::matches(pattern, channel))
        .collect();
    let matching: Vec<(Vec<u8>, Vec<ClientId>)> = matching
        .into_iter()
        .map(|(pattern, ids)| (pattern.clone(), ids.iter().copied().collect()))
        .collect();
    for (pattern, ids) in matching {
        reached += ids.len();
        for id in ids {
            let parts = [&b"pmessage"[..], &pattern, channel, message].map(Reply::bulk);
            server.send(id, Reply::Push(parts.into()));
        }
    }
    reached
}

pub fn publish(call: &mut Call<'_>, command: &Command) -> Answer {
    let reached = tell_listeners(call.server, command.arg(1), command.arg(2));
    Ok(Reply::count(reached))
}

pub fn pubsub(call: &mut Call<'_>, command: &Command) -> Answer {
    let channels = &call.server.channels;
    if command.is_word(1, "CHANNELS") && command.len() <= 3 {
        let all = channels.by_name.keys();
        let wanted = all.filter(|name| command.len() == 2 || glob::matches(command.arg(2), name));
        return Ok(Reply::Array(wanted.map(Reply::bulk).collect()));
    }
    if command.is_word(1, "NUMSUB") {
        let count = |name: &[u8]| channels.by_name.get(name).map_or(0, BTreeSet::len);
        let pairs = command
            .args_from(2)
            .map(|name| (Reply::bulk(name), Reply::count(count(name))));
        return Ok(Reply::Array(
            pairs.flat_map(|(name, count)| [name, count]).collect(),
        ));
    }
    if command.is_word(1, "NUMPAT") && command.len() == 2 {
        return Ok(Reply::count(channels.by_pattern.len()));
    }
    Err(CommandError::new(format!(
        "ERR unknown subcommand or wrong number of arguments for '{}'. Try PUBSUB HELP.",
        String::from_utf8_lossy(command.arg(1))
    )))
}
