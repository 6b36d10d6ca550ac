//! XRANGE, XREVRANGE, XLEN, XREAD.

use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::keyspace::{Keyspace, Value};
use crate::number;
use crate::objects::stream::rows;
use crate::objects::{Stream, StreamId};
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

/// Fields and values as a reply.
pub fn fields_reply(packed: &[u8]) -> Reply {
    Reply::Array(rows::fields(packed).map(Reply::bulk).collect())
}

/// An entry as a reply.
pub fn entry_reply((id, packed): (StreamId, &[u8])) -> Reply {
    Reply::Array(vec![Reply::bulk(id.to_string()), fields_reply(packed)])
}

fn range(context: &mut Context<'_>, command: &Command, is_reversed: bool) -> Answer {
    let (start, end) = if is_reversed { (3, 2) } else { (2, 3) };
    let start = StreamId::parse_start(command.arg(start))?;
    let end = StreamId::parse_end(command.arg(end))?;
    let mut limit = usize::MAX;
    for place in (4..command.len()).step_by(2) {
        if place + 1 >= command.len() || !command.is_word(place, "COUNT") {
            return Err(CommandError::SYNTAX);
        }
        limit = usize::try_from(number::parse(command.arg(place + 1))?).unwrap_or(0);
    }
    let Some(stream) = context.stream(command.arg(1))? else {
        return Ok(Reply::Array(Vec::new()));
    };
    if limit == 0 {
        return Ok(Reply::NullArray);
    }
    let found = stream.range(start, end);
    Ok(Reply::Array(if is_reversed {
        found.rev().take(limit).map(entry_reply).collect()
    } else {
        found.take(limit).map(entry_reply).collect()
    }))
}

pub fn xrange(context: &mut Context<'_>, command: &Command) -> Answer {
    range(context, command, false)
}

pub fn xrevrange(context: &mut Context<'_>, command: &Command) -> Answer {
    range(context, command, true)
}

pub fn xlen(context: &mut Context<'_>, command: &Command) -> Answer {
    let stream = context.stream(command.arg(1))?;
    Ok(Reply::count(stream.map_or(0, |stream| stream.len())))
}

/// What XREAD and XREADGROUP were asked.
pub struct ReadQuery {
    /// Entries of each stream at most.
    pub limit: usize,
    /// Milliseconds to wait, 0 without end; `None`: not at all.
    pub block_millis: Option<u64>,
    /// Places of the group's and the consumer's names.
    pub group: Option<(usize, usize)>,
    /// Whether entries count as acknowledged at once.
    pub no_ack: bool,
    /// The place of the first key, and the number of keys.
    pub first: usize,
    /// Number of streams.
    pub streams: usize,
}

impl ReadQuery {
    /// Reads the options.
    pub fn parse(command: &Command) -> Result<Self, CommandError> {
        let is_group = command.is_word(0, "XREADGROUP");
        let mut query = Self {
            limit: usize::MAX,
            block_millis: None,
            group: None,
            no_ack: false,
            first: 0,
            streams: 0,
        };
        let mut place = 1;
        while place < command.len() && query.first == 0 {
            place += query.option(command, place, is_group)?;
        }
        if query.first == 0 {
            return Err(CommandError::SYNTAX);
        }
        if is_group && query.group.is_none() {
            return Err(CommandError::text(
                "ERR Missing GROUP option for XREADGROUP",
            ));
        }
        Ok(query)
    }

    /// Takes the option at a place; how many words it has.
    fn option(
        &mut self,
        command: &Command,
        place: usize,
        is_group: bool,
    ) -> Result<usize, CommandError> {
        let left = command.len() - place - 1;
        if command.is_word(place, "BLOCK") && left >= 1 {
            self.block_millis = Some(block_millis(command.arg(place + 1))?);
            return Ok(2);
        }
        if command.is_word(place, "COUNT") && left >= 1 {
            let count = number::parse(command.arg(place + 1))?;
            self.limit = usize::try_from(count)
                .ok()
                .filter(|count| *count > 0)
                .unwrap_or(usize::MAX);
            return Ok(2);
        }
        if command.is_word(place, "STREAMS") && left >= 1 {
            if !left.is_multiple_of(2) {
                return Err(CommandError::new(format!(
                    "ERR Unbalanced '{}' list of streams: for each stream key an ID or '{}' must be specified.",
                    if is_group { "xreadgroup" } else { "xread" },
                    if is_group { '>' } else { '$' },
                )));
            }
            (self.first, self.streams) = (place + 1, left / 2);
            return Ok(1);
        }
        let only = |option: &str| {
            CommandError::new(format!(
                "ERR The {option} option is only supported by XREADGROUP. You called XREAD instead."
            ))
        };
        if command.is_word(place, "GROUP") && left >= 2 {
            self.group = Some((place + 1, place + 2));
            return if is_group { Ok(3) } else { Err(only("GROUP")) };
        }
        if command.is_word(place, "NOACK") {
            self.no_ack = true;
            return if is_group { Ok(1) } else { Err(only("NOACK")) };
        }
        Err(CommandError::SYNTAX)
    }

    /// The places of each key and of its ID.
    pub fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        let (first, streams) = (self.first, self.streams);
        (first..first + streams).map(move |place| (place, place + streams))
    }

    /// What is answered when there is nothing.
    pub fn nothing(&self) -> Reply {
        match self.block_millis {
            Some(_) => Reply::Later,
            None => Reply::NullArray,
        }
    }
}

/// Milliseconds that a command waits at most; 0: without end.
fn block_millis(text: &[u8]) -> Result<u64, CommandError> {
    let millis = number::integer(text).ok_or(CommandError::text(
        "ERR timeout is not an integer or out of range",
    ))?;
    u64::try_from(millis).map_err(|_| CommandError::text("ERR timeout is negative"))
}

/// Milliseconds that XREAD or XREADGROUP waits at most.
pub(crate) fn wait_millis(command: &Command) -> u64 {
    // The command itself has checked it.
    let query = ReadQuery::parse(command);
    query.ok().and_then(|query| query.block_millis).unwrap_or(1)
}

/// The ID behind which XREAD reads.
fn after(text: &[u8], stream: Option<&Stream>) -> Result<StreamId, CommandError> {
    match text {
        b"$" => Ok(stream.map_or(StreamId::MIN, |stream| stream.head().last_id)),
        b">" => Err(CommandError::text(
            "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.",
        )),
        _ => StreamId::parse(text, 0),
    }
}

pub fn xread(context: &mut Context<'_>, command: &Command) -> Answer {
    let query = ReadQuery::parse(command)?;
    let mut from = Vec::with_capacity(query.streams);
    for (key, id) in query.places() {
        let stream = context.stream(command.arg(key))?;
        from.push((key, after(command.arg(id), stream.as_deref())?));
    }
    let mut found = Vec::new();
    for (place, id) in from {
        let key = command.arg(place);
        let Some(stream) = context.stream(key)? else {
            continue;
        };
        let Some(start) = id.next() else { continue };
        let entries = stream.range(start, StreamId::MAX).take(query.limit);
        let entries: Vec<Reply> = entries.map(entry_reply).collect();
        if !entries.is_empty() {
            found.push((Reply::bulk(key), Reply::Array(entries)));
        }
    }
    if found.is_empty() {
        return Ok(query.nothing());
    }
    Ok(Reply::MapOrPairs(found))
}

/// XREAD as it is run again when entries came: `$` is what was last when it began to wait.
pub(crate) fn resolved(keyspace: &Keyspace, db: usize, command: &Command) -> Command {
    let Ok(query) = ReadQuery::parse(command) else {
        return command.clone();
    };
    let mut words: Vec<Vec<u8>> = command.args_from(0).map(<[u8]>::to_vec).collect();
    for (key, id) in query.places() {
        if command.arg(id) == b"$" {
            let last = match keyspace
                .peek(db, command.arg(key))
                .map(|entry| &entry.value)
            {
                Some(Value::Stream(stream)) => stream.head().last_id,
                _ => StreamId::MIN,
            };
            words[id] = last.to_string().into_bytes();
        }
    }
    Command::of(&words)
}
