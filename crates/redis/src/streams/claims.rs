//! XPENDING, XCLAIM, XAUTOCLAIM: entries that a consumer got and left.

use super::read::entry_reply;
use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::number;
use crate::objects::{Stream, StreamId};
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

/// Entries that XAUTOCLAIM looks at for each that it may claim.
const LOOKS_PER_CLAIM: usize = 10;

/// The stream under a key, when it has the group.
fn with_group<'a>(
    context: &'a mut Context<'_>,
    key: &[u8],
    group: &[u8],
) -> Result<&'a mut Stream, CommandError> {
    let stream = context.stream(key)?;
    let stream = stream.filter(|stream| stream.group(group).is_some());
    stream.ok_or_else(|| {
        CommandError::new(format!(
            "NOGROUP No such key '{}' or consumer group '{}'",
            String::from_utf8_lossy(key),
            String::from_utf8_lossy(group)
        ))
    })
}

pub fn xpending(context: &mut Context<'_>, command: &Command) -> Answer {
    if command.len() == 3 {
        return summary(context, command);
    }
    let mut place = 3;
    let mut idle_min = 0;
    if command.is_word(3, "IDLE") {
        idle_min = number::parse(command.arg(4))?;
        place = 5;
        if command.len() < 8 {
            return Err(CommandError::SYNTAX);
        }
    }
    if !(place + 3..=place + 4).contains(&command.len()) {
        return Err(CommandError::SYNTAX);
    }
    let limit = number::parse(command.arg(place + 2))?;
    let limit = usize::try_from(limit).unwrap_or(0);
    let start = StreamId::parse_start(command.arg(place))?;
    let end = StreamId::parse_end(command.arg(place + 1))?;
    let consumer = (command.len() == place + 4).then(|| command.arg(place + 3));
    let now = context.now();
    let stream = with_group(context, command.arg(1), command.arg(2))?;
    let Some(group) = stream.group(command.arg(2)) else {
        return Ok(Reply::Array(Vec::new()));
    };
    let idle = |delivered: u64| i64::try_from(now.saturating_sub(delivered)).unwrap_or(i64::MAX);
    let pending = group.deliveries_from(start);
    let wanted = pending
        .take_while(|(id, _)| *id <= end)
        .filter(|(_, delivery)| consumer.is_none_or(|name| *delivery.consumer == *name))
        .filter(|(_, delivery)| idle_min <= 0 || idle(delivery.delivered_millis) >= idle_min);
    let replies = wanted.take(limit).map(|(id, delivery)| {
        Reply::Array(vec![
            Reply::bulk(id.to_string()),
            Reply::bulk(&delivery.consumer),
            Reply::Integer(idle(delivery.delivered_millis)),
            Reply::Integer(i64::try_from(delivery.deliveries).unwrap_or(i64::MAX)),
        ])
    });
    Ok(Reply::Array(replies.collect()))
}

fn summary(context: &mut Context<'_>, command: &Command) -> Answer {
    let stream = with_group(context, command.arg(1), command.arg(2))?;
    let Some(group) = stream.group(command.arg(2)) else {
        return Ok(Reply::Null);
    };
    let mut ids = group.deliveries().map(|(id, _)| id);
    let (first, last) = (ids.next(), group.deliveries().next_back());
    let (Some(first), Some((last, _))) = (first, last) else {
        return Ok(Reply::Array(vec![
            Reply::Integer(0),
            Reply::Null,
            Reply::Null,
            Reply::NullArray,
        ]));
    };
    let consumers = group
        .consumers()
        .filter(|(_, state)| state.pending().len() > 0);
    let counts = consumers.map(|(name, state)| {
        Reply::Array(vec![
            Reply::bulk(name),
            Reply::bulk(state.pending().len().to_string()),
        ])
    });
    Ok(Reply::Array(vec![
        Reply::count(group.pending_len()),
        Reply::bulk(first.to_string()),
        Reply::bulk(last.to_string()),
        Reply::Array(counts.collect()),
    ]))
}

/// How a claimed entry counts.
struct Claim {
    delivered_millis: u64,
    idle_min: u64,
    retry_count: Option<u64>,
    is_forced: bool,
    only_ids: bool,
    last_id: Option<StreamId>,
}

fn idle_min(text: &[u8], name: &str) -> Result<u64, CommandError> {
    let millis = number::integer(text).ok_or_else(|| {
        CommandError::new(format!("ERR Invalid min-idle-time argument for {name}"))
    })?;
    Ok(u64::try_from(millis).unwrap_or(0))
}

fn claim_options(command: &Command, mut place: usize, now: u64) -> Result<Claim, CommandError> {
    let mut claim = Claim {
        delivered_millis: now,
        idle_min: idle_min(command.arg(4), "XCLAIM")?,
        retry_count: None,
        is_forced: false,
        only_ids: false,
        last_id: None,
    };
    while place < command.len() {
        let has_more = place + 1 < command.len();
        let number = |what: &str| {
            number::integer(command.arg(place + 1)).ok_or_else(|| {
                CommandError::new(format!("ERR Invalid {what} option argument for XCLAIM"))
            })
        };
        // What is later than now, or before time began, is now.
        let past = |millis: i64| u64::try_from(millis).ok().filter(|at| *at <= now);
        match () {
            () if command.is_word(place, "FORCE") => claim.is_forced = true,
            () if command.is_word(place, "JUSTID") => claim.only_ids = true,
            () if has_more && command.is_word(place, "IDLE") => {
                let idle = u64::try_from(number("IDLE")?).ok();
                claim.delivered_millis = idle.and_then(|idle| now.checked_sub(idle)).unwrap_or(now);
                place += 1;
            }
            () if has_more && command.is_word(place, "TIME") => {
                claim.delivered_millis = past(number("TIME")?).unwrap_or(now);
                place += 1;
            }
            () if has_more && command.is_word(place, "RETRYCOUNT") => {
                claim.retry_count = u64::try_from(number("RETRYCOUNT")?).ok();
                place += 1;
            }
            () if has_more && command.is_word(place, "LASTID") => {
                claim.last_id = Some(StreamId::parse(command.arg(place + 1), 0)?);
                place += 1;
            }
            () => {
                return Err(CommandError::new(format!(
                    "ERR Unrecognized XCLAIM option '{}'",
                    String::from_utf8_lossy(command.arg(place))
                )));
            }
        }
        place += 1;
    }
    Ok(claim)
}

pub fn xclaim(context: &mut Context<'_>, command: &Command) -> Answer {
    let (key, group, consumer) = (command.arg(1), command.arg(2), command.arg(3));
    let now = context.now();
    with_group(context, key, group)?;
    let ids = command.args_from(5).map(|text| StreamId::parse(text, 0));
    let ids: Vec<StreamId> = ids.take_while(Result::is_ok).flatten().collect();
    let claim = claim_options(command, 5 + ids.len(), now)?;
    let stream = with_group(context, key, group)?;
    if let Some(last) = claim.last_id
        && let Some(state) = stream.group(group)
        && last > state.last_delivered
    {
        let read = state.entries_read;
        stream.place_group(group, last, read);
    }
    stream.see_consumer(group, consumer, now, false);
    let claimed: Vec<Reply> = ids
        .into_iter()
        .filter_map(|id| claim_one(stream, (group, consumer), id, &claim, now))
        .collect();
    if !claimed.is_empty() {
        stream.see_consumer(group, consumer, now, true);
    }
    context.touch(key);
    Ok(Reply::Array(claimed))
}

/// Claims an entry, when it may be.
fn claim_one(
    stream: &mut Stream,
    (group, consumer): (&[u8], &[u8]),
    id: StreamId,
    claim: &Claim,
    now: u64,
) -> Option<Reply> {
    let known = stream.group(group)?.delivery(id);
    let known = known.map(|delivery| (delivery.delivered_millis, delivery.deliveries));
    if stream.get(id).is_none() {
        // An entry that is gone cannot be done by anybody.
        stream.acknowledge(group, id);
        return None;
    }
    let deliveries = match known {
        None if !claim.is_forced => return None,
        // What is claimed by force counts as delivered before.
        None => 1,
        Some((delivered, _)) if now.saturating_sub(delivered) < claim.idle_min => return None,
        Some((_, deliveries)) => deliveries,
    };
    let counted = deliveries.saturating_add(u64::from(!claim.only_ids));
    let deliveries = claim.retry_count.unwrap_or(counted);
    stream.deliver(group, consumer, id, claim.delivered_millis, deliveries);
    Some(if claim.only_ids {
        Reply::bulk(id.to_string())
    } else {
        entry_reply((id, stream.get(id)?))
    })
}

pub fn xautoclaim(context: &mut Context<'_>, command: &Command) -> Answer {
    let (key, group, consumer) = (command.arg(1), command.arg(2), command.arg(3));
    let now = context.now();
    let idle_min = idle_min(command.arg(4), "XAUTOCLAIM")?;
    let start = StreamId::parse_start(command.arg(5))?;
    let (mut count, mut only_ids) = (100, false);
    let mut place = 6;
    while place < command.len() {
        if command.is_word(place, "COUNT") && place + 1 < command.len() {
            count = usize::try_from(number::parse(command.arg(place + 1))?)
                .ok()
                .filter(|count| *count > 0 && *count <= usize::MAX / LOOKS_PER_CLAIM)
                .ok_or(CommandError::text("ERR COUNT must be > 0"))?;
            place += 1;
        } else if command.is_word(place, "JUSTID") {
            only_ids = true;
        } else {
            return Err(CommandError::SYNTAX);
        }
        place += 1;
    }
    let stream = with_group(context, key, group)?;
    stream.see_consumer(group, consumer, now, false);
    let claim = Claim {
        delivered_millis: now,
        idle_min,
        retry_count: None,
        is_forced: false,
        only_ids,
        last_id: None,
    };
    let pending: Vec<StreamId> = stream.group(group).map_or_else(Vec::new, |state| {
        let looks = count.saturating_mul(LOOKS_PER_CLAIM).saturating_add(1);
        state
            .deliveries_from(start)
            .take(looks)
            .map(|(id, _)| id)
            .collect()
    });
    let mut pending = pending.into_iter().peekable();
    let (mut claimed, mut gone) = (Vec::new(), Vec::new());
    let mut looks = count * LOOKS_PER_CLAIM;
    while looks > 0 && claimed.len() + gone.len() < count {
        let Some(id) = pending.next() else { break };
        looks -= 1;
        let is_gone = stream.get(id).is_none();
        let reply = claim_one(stream, (group, consumer), id, &claim, now);
        if is_gone {
            gone.push(Reply::bulk(id.to_string()));
        } else if let Some(reply) = reply {
            claimed.push(reply);
        }
    }
    assert!(
        claimed.len() + gone.len() <= count,
        "no more entries are claimed than asked for"
    );
    let next = pending.peek().copied().unwrap_or(StreamId::MIN);
    if !claimed.is_empty() {
        stream.see_consumer(group, consumer, now, true);
    }
    context.touch(key);
    Ok(Reply::Array(vec![
        Reply::bulk(next.to_string()),
        Reply::Array(claimed),
        Reply::Array(gone),
    ]))
}
