//! XINFO.

use super::groups::{no_group, unknown_option};
use super::read::entry_reply;
use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::number;
use crate::objects::{Consumer, ConsumerGroup, Stream, StreamId};
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

/// Entries in one of Redis's nodes, whose number XINFO tells.
const NODE_ENTRIES: usize = 100;
/// Entries that FULL shows without COUNT.
const FULL_DEFAULT: usize = 10;

const HELP: [&str; 4] = [
    "XINFO CONSUMERS <key> <group>",
    "XINFO GROUPS <key>",
    "XINFO STREAM <key> [FULL [COUNT <count>]]",
    "XINFO HELP",
];

fn id(id: StreamId) -> Reply {
    Reply::bulk(id.to_string())
}

fn map(pairs: Vec<(&str, Reply)>) -> Reply {
    let named = pairs
        .into_iter()
        .map(|(name, value)| (Reply::bulk(name), value));
    Reply::Map(named.collect())
}

pub fn xinfo(context: &mut Context<'_>, command: &Command) -> Answer {
    let part = command.arg(1).to_ascii_uppercase();
    if part == b"HELP" {
        return Ok(Reply::Array(HELP.into_iter().map(Reply::Simple).collect()));
    }
    let now = context.now();
    let key = command.arg(2);
    let stream = context.stream(key)?.ok_or(CommandError::NO_SUCH_KEY)?;
    match part.as_slice() {
        b"STREAM" if command.len() == 3 => Ok(short(stream)),
        b"STREAM" => full(stream, command),
        b"GROUPS" => {
            let groups = stream.groups().map(|(name, group)| {
                let mut pairs = vec![
                    ("name", Reply::bulk(name)),
                    ("consumers", Reply::count(group.consumers().len())),
                    ("pending", Reply::count(group.pending_len())),
                ];
                pairs.extend(progress(stream, group));
                map(pairs)
            });
            Ok(Reply::Array(groups.collect()))
        }
        _ => {
            let group = stream.group(command.arg(3));
            let group = group.ok_or_else(|| no_group(key, command.arg(3)))?;
            let consumers = group.consumers().map(|(name, state)| {
                map(vec![
                    ("name", Reply::bulk(name)),
                    ("pending", Reply::count(state.pending().len())),
                    ("idle", Reply::wide(now.saturating_sub(state.seen_millis))),
                    ("inactive", inactive(state, now)),
                ])
            });
            Ok(Reply::Array(consumers.collect()))
        }
    }
}

fn inactive(state: &Consumer, now: u64) -> Reply {
    let since = state.active_millis.map(|at| now.saturating_sub(at));
    since.map_or(Reply::Integer(-1), Reply::wide)
}

fn progress(stream: &Stream, group: &ConsumerGroup) -> Vec<(&'static str, Reply)> {
    vec![
        ("last-delivered-id", id(group.last_delivered)),
        (
            "entries-read",
            group.entries_read.map_or(Reply::Null, Reply::Integer),
        ),
        ("lag", stream.lag(group).map_or(Reply::Null, Reply::Integer)),
    ]
}

fn about(stream: &Stream) -> Vec<(&'static str, Reply)> {
    let head = stream.head();
    let nodes = stream.len().div_ceil(NODE_ENTRIES);
    vec![
        ("length", Reply::count(stream.len())),
        ("radix-tree-keys", Reply::count(nodes)),
        ("radix-tree-nodes", Reply::count(nodes + 1)),
        ("last-generated-id", id(head.last_id)),
        ("max-deleted-entry-id", id(head.max_deleted_id)),
        ("entries-added", Reply::wide(head.entries_added)),
        ("recorded-first-entry-id", id(stream.first_id())),
    ]
}

fn short(stream: &Stream) -> Reply {
    let all = || stream.range(StreamId::MIN, StreamId::MAX);
    let entry = |found: Option<(StreamId, &[u8])>| found.map_or(Reply::Null, entry_reply);
    let mut pairs = about(stream);
    pairs.push(("groups", Reply::count(stream.groups().len())));
    pairs.push(("first-entry", entry(all().next())));
    pairs.push(("last-entry", entry(all().next_back())));
    map(pairs)
}

fn full(stream: &Stream, command: &Command) -> Answer {
    let is_full = command.is_word(3, "FULL");
    let limit = match command.len() {
        4 if is_full => FULL_DEFAULT,
        6 if is_full && command.is_word(4, "COUNT") => {
            let count = number::parse(command.arg(5))?;
            // 0 is all of them, and so is what is no count.
            match usize::try_from(count) {
                Ok(0) => usize::MAX,
                Ok(count) => count,
                Err(_) => FULL_DEFAULT,
            }
        }
        _ => return Err(unknown_option(command, "XINFO")),
    };
    let entries = stream.range(StreamId::MIN, StreamId::MAX);
    let entries = entries.take(limit).map(entry_reply).collect();
    let groups = stream.groups();
    let groups = groups.map(|(name, group)| full_group(stream, name, group, limit));
    let mut pairs = about(stream);
    pairs.push(("entries", Reply::Array(entries)));
    pairs.push(("groups", Reply::Array(groups.collect())));
    Ok(map(pairs))
}

fn full_group(stream: &Stream, name: &[u8], group: &ConsumerGroup, limit: usize) -> Reply {
    let pending = group.deliveries().take(limit).map(|(entry, delivery)| {
        Reply::Array(vec![
            id(entry),
            Reply::bulk(&delivery.consumer),
            Reply::wide(delivery.delivered_millis),
            Reply::wide(delivery.deliveries),
        ])
    });
    let consumers = group.consumers().map(|(name, state)| {
        let its = state.pending().take(limit).filter_map(|entry| {
            let delivery = group.delivery(entry)?;
            Some(Reply::Array(vec![
                id(entry),
                Reply::wide(delivery.delivered_millis),
                Reply::wide(delivery.deliveries),
            ]))
        });
        map(vec![
            ("name", Reply::bulk(name)),
            ("seen-time", Reply::wide(state.seen_millis)),
            (
                "active-time",
                state.active_millis.map_or(Reply::Integer(-1), Reply::wide),
            ),
            ("pel-count", Reply::count(state.pending().len())),
            ("pending", Reply::Array(its.collect())),
        ])
    });
    let mut pairs = vec![("name", Reply::bulk(name))];
    pairs.extend(progress(stream, group));
    pairs.push(("pel-count", Reply::count(group.pending_len())));
    pairs.push(("pending", Reply::Array(pending.collect())));
    pairs.push(("consumers", Reply::Array(consumers.collect())));
    map(pairs)
}
