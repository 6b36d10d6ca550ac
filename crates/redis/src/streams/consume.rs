//! XREADGROUP and XACK.

use super::read::{ReadQuery, entry_reply};
use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::objects::{Stream, StreamId};
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

/// From where a group reads a stream.
#[derive(Clone, Copy)]
enum From {
    /// What nobody of the group got.
    New,
    /// What this consumer got and did not acknowledge, behind an ID.
    History(StreamId),
}

fn from(text: &[u8]) -> Result<From, CommandError> {
    match text {
        b">" => Ok(From::New),
        b"$" => Err(CommandError::text(
            "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.",
        )),
        _ => StreamId::parse(text, 0).map(From::History),
    }
}

pub fn xreadgroup(context: &mut Context<'_>, command: &Command) -> Answer {
    let query = ReadQuery::parse(command)?;
    let Some((group, consumer)) = query.group else {
        return Err(CommandError::SYNTAX);
    };
    let (group, consumer) = (command.arg(group), command.arg(consumer));
    let mut asked = Vec::with_capacity(query.streams);
    for (key, id) in query.places() {
        let key = command.arg(key);
        let stream = context.stream(key)?;
        if stream.is_none_or(|stream| stream.group(group).is_none()) {
            return Err(CommandError::new(format!(
                "NOGROUP No such key '{}' or consumer group '{}' in XREADGROUP with GROUP option",
                String::from_utf8_lossy(key),
                String::from_utf8_lossy(group)
            )));
        }
        asked.push((key, from(command.arg(id))?));
    }
    let now = context.now();
    let mut found = Vec::new();
    for (key, from) in asked {
        let Some(stream) = context.stream(key)? else {
            continue;
        };
        let (mut is_changed, _) = stream.see_consumer(group, consumer, now, false);
        let entries = match from {
            From::New => new_entries(stream, (group, consumer), &query, now),
            From::History(id) => Some(history(stream, (group, consumer), id, &query, now)),
        };
        if let Some(entries) = entries {
            is_changed |= !entries.is_empty();
            found.push((Reply::bulk(key), Reply::Array(entries)));
        }
        if is_changed {
            context.touch(key);
        }
    }
    if found.is_empty() {
        return Ok(query.nothing());
    }
    Ok(Reply::MapOrPairs(found))
}

/// Entries behind the group's last one, which become this consumer's.
fn new_entries(
    stream: &mut Stream,
    (group, consumer): (&[u8], &[u8]),
    query: &ReadQuery,
    now: u64,
) -> Option<Vec<Reply>> {
    let start = stream.group(group)?.last_delivered.next()?;
    let entries = stream.range(start, StreamId::MAX).take(query.limit);
    let (ids, replies): (Vec<StreamId>, Vec<Reply>) =
        entries.map(|entry| (entry.0, entry_reply(entry))).unzip();
    if ids.is_empty() {
        return None;
    }
    for id in ids {
        stream.advance_group(group, id);
        if !query.no_ack {
            stream.deliver(group, consumer, id, now, 1);
        }
    }
    stream.see_consumer(group, consumer, now, true);
    Some(replies)
}

/// What the consumer has not acknowledged, delivered once more.
fn history(
    stream: &mut Stream,
    (group, consumer): (&[u8], &[u8]),
    id: StreamId,
    query: &ReadQuery,
    now: u64,
) -> Vec<Reply> {
    let state = stream
        .group(group)
        .and_then(|group| group.consumer(consumer));
    let (Some(state), Some(start)) = (state, id.next()) else {
        return Vec::new();
    };
    let ids: Vec<StreamId> = state.pending_from(start).take(query.limit).collect();
    let mut replies = Vec::with_capacity(ids.len());
    for id in ids {
        let Some(packed) = stream.get(id) else {
            replies.push(Reply::Array(vec![
                Reply::bulk(id.to_string()),
                Reply::NullArray,
            ]));
            continue;
        };
        replies.push(entry_reply((id, packed)));
        let deliveries = stream
            .group(group)
            .and_then(|group| group.delivery(id))
            .map_or(0, |delivery| delivery.deliveries);
        stream.deliver(group, consumer, id, now, deliveries.saturating_add(1));
    }
    replies
}

pub fn xack(context: &mut Context<'_>, command: &Command) -> Answer {
    let (key, group) = (command.arg(1), command.arg(2));
    let Some(stream) = context.stream(key)? else {
        return Ok(Reply::Integer(0));
    };
    if stream.group(group).is_none() {
        return Ok(Reply::Integer(0));
    }
    let ids: Vec<StreamId> = command
        .args_from(3)
        .map(|text| StreamId::parse(text, 0))
        .collect::<Result<_, _>>()?;
    let done = ids
        .into_iter()
        .filter(|id| stream.acknowledge(group, *id))
        .count();
    if done > 0 {
        context.touch(key);
    }
    Ok(Reply::count(done))
}
