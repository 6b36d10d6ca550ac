//! From one list to another, and from the first that has any.

use super::commands::take;
use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::number;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

/// LEFT or RIGHT at a place.
fn is_left(command: &Command, place: usize) -> Result<bool, CommandError> {
    match (
        command.is_word(place, "LEFT"),
        command.is_word(place, "RIGHT"),
    ) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => Err(CommandError::SYNTAX),
    }
}

/// Moves one element; nothing when there is none.
pub fn moved(
    context: &mut Context<'_>,
    command: &Command,
    from_front: bool,
    to_front: bool,
) -> Result<Option<Reply>, CommandError> {
    let (from, to) = (command.arg(1), command.arg(2));
    if context.list(from)?.is_none() {
        return Ok(None);
    }
    context.list(to)?;
    let taken = take(context, from, 1, from_front)?;
    let Some(Reply::Bulk(element)) = taken.and_then(|mut taken| taken.pop()) else {
        return Ok(None);
    };
    context.list_or_new(to)?.push(&element, to_front);
    Ok(Some(Reply::Bulk(element)))
}

/// The ends that LMOVE and BLMOVE name.
pub fn ends(command: &Command) -> Result<(bool, bool), CommandError> {
    Ok((is_left(command, 3)?, is_left(command, 4)?))
}

pub fn lmove(context: &mut Context<'_>, command: &Command) -> Answer {
    let (from_front, to_front) = ends(command)?;
    Ok(moved(context, command, from_front, to_front)?.unwrap_or(Reply::Null))
}

pub fn rpoplpush(context: &mut Context<'_>, command: &Command) -> Answer {
    Ok(moved(context, command, false, true)?.unwrap_or(Reply::Null))
}

/// LMPOP's arguments from the number of keys on.
pub fn popped_of_many(
    context: &mut Context<'_>,
    command: &Command,
    at: usize,
) -> Result<Option<Reply>, CommandError> {
    let count = number::integer(command.arg(at)).filter(|count| *count > 0);
    let keys = count.and_then(|count| usize::try_from(count).ok());
    let keys = keys.ok_or(CommandError::text("ERR numkeys should be greater than 0"))?;
    let end = at + 1 + keys.min(command.len());
    if end >= command.len() {
        return Err(CommandError::SYNTAX);
    }
    let at_front = is_left(command, end)?;
    let wanted = match command.len() - end - 1 {
        0 => 1,
        2 if command.is_word(end + 1, "COUNT") => number::integer(command.arg(end + 2))
            .and_then(|count| usize::try_from(count).ok())
            .filter(|count| *count > 0)
            .ok_or(CommandError::text("ERR count should be greater than 0"))?,
        _ => return Err(CommandError::SYNTAX),
    };
    for place in at + 1..end {
        let key = command.arg(place);
        if let Some(taken) = take(context, key, wanted, at_front)? {
            return Ok(Some(Reply::Array(vec![
                Reply::bulk(key),
                Reply::Array(taken),
            ])));
        }
    }
    Ok(None)
}

pub fn lmpop(context: &mut Context<'_>, command: &Command) -> Answer {
    Ok(popped_of_many(context, command, 1)?.unwrap_or(Reply::NullArray))
}
