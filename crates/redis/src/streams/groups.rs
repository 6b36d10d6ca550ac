//! XGROUP.

use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::keyspace::{Kind, Value};
use crate::number;
use crate::objects::{Stream, StreamId};
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

/// What HELP tells.
const HELP: [&str; 6] = [
    "XGROUP CREATE <key> <group> <id|$> [MKSTREAM] [ENTRIESREAD <count>]",
    "XGROUP SETID <key> <group> <id|$> [ENTRIESREAD <count>]",
    "XGROUP DESTROY <key> <group>",
    "XGROUP CREATECONSUMER <key> <group> <consumer>",
    "XGROUP DELCONSUMER <key> <group> <consumer>",
    "XGROUP HELP",
];

/// No group of this name.
pub fn no_group(key: &[u8], group: &[u8]) -> CommandError {
    CommandError::new(format!(
        "NOGROUP No such consumer group '{}' for key name '{}'",
        String::from_utf8_lossy(group),
        String::from_utf8_lossy(key)
    ))
}

/// A part with options that it has not.
pub fn unknown_option(command: &Command, container: &str) -> CommandError {
    let part = String::from_utf8_lossy(command.arg(1)).into_owned();
    CommandError::new(format!(
        "ERR unknown subcommand or wrong number of arguments for '{part}'. Try {container} HELP."
    ))
}

/// The stream that must be there.
fn existing<'a>(context: &'a mut Context<'_>, key: &[u8]) -> Result<&'a mut Stream, CommandError> {
    context.stream(key)?.ok_or(CommandError::text(
        "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.",
    ))
}

/// The stream and the group that must be there.
fn existing_group<'a>(
    context: &'a mut Context<'_>,
    command: &Command,
) -> Result<&'a mut Stream, CommandError> {
    let (key, group) = (command.arg(2), command.arg(3));
    let stream = existing(context, key)?;
    if stream.group(group).is_none() {
        return Err(no_group(key, group));
    }
    Ok(stream)
}

pub fn xgroup(context: &mut Context<'_>, command: &Command) -> Answer {
    // Which parts there are, and with how many arguments, the table has checked.
    let part = command.arg(1).to_ascii_uppercase();
    match part.as_slice() {
        b"CREATE" => create(context, command),
        b"SETID" => set_id(context, command),
        b"DESTROY" => destroy(context, command),
        b"CREATECONSUMER" => create_consumer(context, command),
        b"HELP" => Ok(Reply::Array(HELP.into_iter().map(Reply::Simple).collect())),
        _ => delete_consumer(context, command),
    }
}

struct Options {
    makes_key: bool,
    entries_read: Option<i64>,
}

fn options(command: &Command, may_make: bool) -> Result<Options, CommandError> {
    let mut options = Options {
        makes_key: false,
        entries_read: None,
    };
    let mut place = 5;
    while place < command.len() {
        if may_make && command.is_word(place, "MKSTREAM") {
            options.makes_key = true;
            place += 1;
        } else if command.is_word(place, "ENTRIESREAD") && place + 1 < command.len() {
            let read = number::parse(command.arg(place + 1))?;
            if read < -1 {
                return Err(CommandError::text(
                    "ERR value for ENTRIESREAD must be positive or -1",
                ));
            }
            options.entries_read = (read >= 0).then_some(read);
            place += 2;
        } else {
            return Err(unknown_option(command, "XGROUP"));
        }
    }
    Ok(options)
}

fn position(text: &[u8], stream: Option<&Stream>) -> Result<StreamId, CommandError> {
    if text == b"$" {
        return Ok(stream.map_or(StreamId::MIN, |stream| stream.head().last_id));
    }
    StreamId::parse(text, 0)
}

fn create(context: &mut Context<'_>, command: &Command) -> Answer {
    let options = options(command, true)?;
    let (key, group) = (command.arg(2), command.arg(3));
    let stream = match context.stream(key)? {
        Some(stream) => stream,
        None if options.makes_key => {
            position(command.arg(4), None)?;
            let (db, value) = (context.db, Value::empty(Kind::Stream));
            context.keyspace.put(db, key, value);
            existing(context, key)?
        }
        None => existing(context, key)?,
    };
    let id = position(command.arg(4), Some(stream))?;
    if stream.group(group).is_some() {
        return Err(CommandError::text(
            "BUSYGROUP Consumer Group name already exists",
        ));
    }
    stream.place_group(group, id, options.entries_read);
    context.touch(key);
    Ok(Reply::OK)
}

fn set_id(context: &mut Context<'_>, command: &Command) -> Answer {
    let options = options(command, false)?;
    let stream = existing_group(context, command)?;
    // Here, and not where a group is made, the ends have their short names.
    let id = match command.arg(4) {
        end @ (b"-" | b"+") => StreamId::parse_bound(end, 0)?,
        text => position(text, Some(stream))?,
    };
    stream.place_group(command.arg(3), id, options.entries_read);
    context.touch(command.arg(2));
    Ok(Reply::OK)
}

fn destroy(context: &mut Context<'_>, command: &Command) -> Answer {
    let removed = existing(context, command.arg(2))?.remove_group(command.arg(3));
    if removed {
        context.touch(command.arg(2));
    }
    Ok(Reply::flag(removed))
}

fn create_consumer(context: &mut Context<'_>, command: &Command) -> Answer {
    let now = context.now();
    let (group, consumer) = (command.arg(3), command.arg(4));
    let stream = existing_group(context, command)?;
    let is_known = stream
        .group(group)
        .is_some_and(|group| group.consumer(consumer).is_some());
    if !is_known {
        stream.see_consumer(group, consumer, now, false);
        context.touch(command.arg(2));
    }
    Ok(Reply::flag(!is_known))
}

fn delete_consumer(context: &mut Context<'_>, command: &Command) -> Answer {
    let stream = existing_group(context, command)?;
    let removed = stream.remove_consumer(command.arg(3), command.arg(4));
    if removed.is_some() {
        context.touch(command.arg(2));
    }
    Ok(Reply::count(removed.unwrap_or(0)))
}
