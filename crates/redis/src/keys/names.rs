//! Other names for values.

use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::keyspace::DATABASES;
use crate::number;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

fn renamed(
    context: &mut Context<'_>,
    command: &Command,
    only_new: bool,
) -> Result<bool, CommandError> {
    let (from, to) = (command.arg(1), command.arg(2));
    if !context.exists(from) {
        return Err(CommandError::NO_SUCH_KEY);
    }
    let is_taken = context.exists(to);
    if only_new && is_taken {
        return Ok(false);
    }
    if from == to {
        return Ok(true);
    }
    if let Some(entry) = context.keyspace.remove(context.db, from) {
        context.keyspace.put_entry(context.db, to, entry);
    }
    Ok(true)
}

pub fn rename(context: &mut Context<'_>, command: &Command) -> Answer {
    renamed(context, command, false)?;
    Ok(Reply::OK)
}

pub fn renamenx(context: &mut Context<'_>, command: &Command) -> Answer {
    Ok(Reply::flag(renamed(context, command, true)?))
}

fn database(text: &[u8]) -> Result<usize, CommandError> {
    let number = number::parse(text)?;
    let number = usize::try_from(number)
        .ok()
        .filter(|number| *number < DATABASES);
    number.ok_or(CommandError::text("ERR DB index is out of range"))
}

pub fn copy(context: &mut Context<'_>, command: &Command) -> Answer {
    let mut replaces = false;
    let mut target = context.db;
    let mut place = 3;
    while place < command.len() {
        if command.is_word(place, "REPLACE") {
            replaces = true;
        } else if command.is_word(place, "DB") && place + 1 < command.len() {
            target = database(command.arg(place + 1))?;
            place += 1;
        } else {
            return Err(CommandError::SYNTAX);
        }
        place += 1;
    }
    let (from, to) = (command.arg(1), command.arg(2));
    if target == context.db && from == to {
        return Err(CommandError::text(
            "ERR source and destination objects are the same",
        ));
    }
    let Some(entry) = context.keyspace.find(context.db, from).cloned() else {
        return Ok(Reply::Integer(0));
    };
    if context.keyspace.find(target, to).is_some() && !replaces {
        return Ok(Reply::Integer(0));
    }
    context.keyspace.put_entry(target, to, entry);
    Ok(Reply::Integer(1))
}

pub fn move_to(context: &mut Context<'_>, command: &Command) -> Answer {
    let target = database(command.arg(2))?;
    let key = command.arg(1);
    if target == context.db {
        return Err(CommandError::text(
            "ERR source and destination objects are the same",
        ));
    }
    if !context.exists(key) || context.keyspace.find(target, key).is_some() {
        return Ok(Reply::Integer(0));
    }
    if let Some(entry) = context.keyspace.remove(context.db, key) {
        context.keyspace.put_entry(target, key, entry);
    }
    Ok(Reply::Integer(1))
}
