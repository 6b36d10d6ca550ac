//! Numbers kept as strings.

use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::number;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

fn add(context: &mut Context<'_>, key: &[u8], more: i64) -> Answer {
    let before = match context.string(key)? {
        Some(value) => number::parse(value)?,
        None => 0,
    };
    let sum = before.checked_add(more).ok_or(CommandError::OVERFLOW)?;
    let value = context.string_or_new(key)?;
    value.clear();
    value.extend_from_slice(sum.to_string().as_bytes());
    Ok(Reply::Integer(sum))
}

pub fn incr(context: &mut Context<'_>, command: &Command) -> Answer {
    add(context, command.arg(1), 1)
}

pub fn decr(context: &mut Context<'_>, command: &Command) -> Answer {
    add(context, command.arg(1), -1)
}

pub fn incrby(context: &mut Context<'_>, command: &Command) -> Answer {
    add(context, command.arg(1), number::parse(command.arg(2))?)
}

pub fn decrby(context: &mut Context<'_>, command: &Command) -> Answer {
    let less = number::parse(command.arg(2))?;
    let more = less
        .checked_neg()
        .ok_or(CommandError::text("ERR decrement would overflow"))?;
    add(context, command.arg(1), more)
}

pub fn incrbyfloat(context: &mut Context<'_>, command: &Command) -> Answer {
    let key = command.arg(1);
    let before = match context.string(key)? {
        Some(value) => number::float(value).ok_or(CommandError::NOT_FLOAT)?,
        None => 0.0,
    };
    let more = number::float(command.arg(2)).ok_or(CommandError::NOT_FLOAT)?;
    let sum = before + more;
    if !sum.is_finite() {
        return Err(CommandError::NAN);
    }
    let text = number::write_long(sum);
    let value = context.string_or_new(key)?;
    value.clear();
    value.extend_from_slice(text.as_bytes());
    Ok(Reply::bulk(text))
}
