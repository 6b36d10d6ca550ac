//! Commands that wait for an element: [`Reply::Later`] when there is none yet, and nothing was changed.
//! The connection runs them again when one of their keys gets elements.

use super::commands::take;
use super::moves;
use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::number;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

/// Milliseconds that a command waits at most, from its argument in seconds; 0: without end.
pub fn timeout_millis(text: &[u8]) -> Result<u64, CommandError> {
    let seconds = number::float(text).ok_or(CommandError::text(
        "ERR timeout is not a float or out of range",
    ))?;
    if seconds < 0.0 {
        return Err(CommandError::text("ERR timeout is negative"));
    }
    let millis = (seconds * 1000.0).ceil();
    // Beyond what a clock tells.
    if millis >= 9.2e18 {
        return Err(CommandError::text("ERR timeout is out of range"));
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // in range, as checked
    Ok(millis as u64)
}

fn pop(context: &mut Context<'_>, command: &Command, at_front: bool) -> Answer {
    timeout_millis(command.arg(command.len() - 1))?;
    for place in 1..command.len() - 1 {
        let key = command.arg(place);
        if let Some(mut taken) = take(context, key, 1, at_front)? {
            let element = taken.pop().unwrap_or(Reply::Null);
            return Ok(Reply::Array(vec![Reply::bulk(key), element]));
        }
    }
    Ok(Reply::Later)
}

pub fn blpop(context: &mut Context<'_>, command: &Command) -> Answer {
    pop(context, command, true)
}

pub fn brpop(context: &mut Context<'_>, command: &Command) -> Answer {
    pop(context, command, false)
}

pub fn blmove(context: &mut Context<'_>, command: &Command) -> Answer {
    let (from_front, to_front) = moves::ends(command)?;
    timeout_millis(command.arg(5))?;
    Ok(moves::moved(context, command, from_front, to_front)?.unwrap_or(Reply::Later))
}

pub fn brpoplpush(context: &mut Context<'_>, command: &Command) -> Answer {
    timeout_millis(command.arg(3))?;
    Ok(moves::moved(context, command, false, true)?.unwrap_or(Reply::Later))
}

pub fn blmpop(context: &mut Context<'_>, command: &Command) -> Answer {
    timeout_millis(command.arg(1))?;
    Ok(moves::popped_of_many(context, command, 2)?.unwrap_or(Reply::Later))
}
