//! Commands that wait for a member; see `lists::blocking`.

use super::commands::{popped_of_many, take};
use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::lists::blocking::timeout_millis;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

fn pop(context: &mut Context<'_>, command: &Command, is_max: bool) -> Answer {
    timeout_millis(command.arg(command.len() - 1))?;
    for place in 1..command.len() - 1 {
        let key = command.arg(place);
        let taken = take(context, key, 1, is_max)?;
        if let Some((member, score)) = taken.and_then(|mut taken| taken.pop()) {
            let parts = vec![Reply::bulk(key), Reply::Bulk(member), Reply::Double(score)];
            return Ok(Reply::Array(parts));
        }
    }
    Ok(Reply::Later)
}

pub fn bzpopmin(context: &mut Context<'_>, command: &Command) -> Answer {
    pop(context, command, false)
}

pub fn bzpopmax(context: &mut Context<'_>, command: &Command) -> Answer {
    pop(context, command, true)
}

pub fn bzmpop(context: &mut Context<'_>, command: &Command) -> Answer {
    timeout_millis(command.arg(1))?;
    Ok(popped_of_many(context, command, 2)?.unwrap_or(Reply::Later))
}
