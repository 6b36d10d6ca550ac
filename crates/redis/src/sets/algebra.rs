//! Intersections, unions and differences.

use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::keyspace::Value;
use crate::number;
use crate::objects::Set;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

/// How sets are put together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Intersection,
    Union,
    Difference,
}

/// The result of `operation` on the sets under the keys at `from` and behind, the first `count`.
fn combine(
    context: &mut Context<'_>,
    command: &Command,
    from: usize,
    count: usize,
    operation: Operation,
) -> Result<Set, CommandError> {
    let mut result: Option<Set> = None;
    let keys: Vec<&[u8]> = command.args_from(from).take(count).collect();
    // All types are checked, whatever the result is by then.
    for key in &keys {
        context.set(key)?;
    }
    for key in keys {
        let set = context.set(key)?;
        result = Some(match (result, set, operation) {
            (None, set, _) => copied(set.map(|set| &*set)),
            (Some(_), None, Operation::Intersection) => Set::default(),
            (Some(result), None, _) => result,
            (Some(mut result), Some(set), Operation::Union) => {
                for member in set.iter() {
                    result.insert(member);
                }
                result
            }
            (Some(result), Some(set), operation) => {
                let keeps = operation == Operation::Intersection;
                let mut kept = Set::default();
                for member in result.iter().filter(|member| set.contains(member) == keeps) {
                    kept.insert(member);
                }
                kept
            }
        });
    }
    Ok(result.unwrap_or_default())
}

fn copied(set: Option<&Set>) -> Set {
    let mut copy = Set::default();
    for member in set.into_iter().flat_map(Set::iter) {
        copy.insert(member);
    }
    copy
}

fn shown(context: &mut Context<'_>, command: &Command, operation: Operation) -> Answer {
    let result = combine(context, command, 1, usize::MAX, operation)?;
    Ok(Reply::Set(result.iter().map(Reply::bulk).collect()))
}

fn stored(context: &mut Context<'_>, command: &Command, operation: Operation) -> Answer {
    let result = combine(context, command, 2, usize::MAX, operation)?;
    let count = result.len();
    context.store(command.arg(1), Value::Set(Box::new(result)));
    Ok(Reply::count(count))
}

pub fn sinter(context: &mut Context<'_>, command: &Command) -> Answer {
    shown(context, command, Operation::Intersection)
}

pub fn sunion(context: &mut Context<'_>, command: &Command) -> Answer {
    shown(context, command, Operation::Union)
}

pub fn sdiff(context: &mut Context<'_>, command: &Command) -> Answer {
    shown(context, command, Operation::Difference)
}

pub fn sinterstore(context: &mut Context<'_>, command: &Command) -> Answer {
    stored(context, command, Operation::Intersection)
}

pub fn sunionstore(context: &mut Context<'_>, command: &Command) -> Answer {
    stored(context, command, Operation::Union)
}

pub fn sdiffstore(context: &mut Context<'_>, command: &Command) -> Answer {
    stored(context, command, Operation::Difference)
}

pub fn sintercard(context: &mut Context<'_>, command: &Command) -> Answer {
    let count = number::integer(command.arg(1)).filter(|count| *count > 0);
    let count = count.and_then(|count| usize::try_from(count).ok());
    let count = count.ok_or(CommandError::text("ERR numkeys should be greater than 0"))?;
    if count > command.len() - 2 {
        return Err(CommandError::text(
            "ERR Number of keys can't be greater than number of args",
        ));
    }
    let limit = match command.len() - 2 - count {
        0 => 0,
        2 if command.is_word(2 + count, "LIMIT") => number::integer(command.arg(3 + count))
            .and_then(|limit| usize::try_from(limit).ok())
            .ok_or(CommandError::text("ERR LIMIT can't be negative"))?,
        _ => return Err(CommandError::SYNTAX),
    };
    let found = combine(context, command, 2, count, Operation::Intersection)?.len();
    Ok(Reply::count(if limit > 0 {
        found.min(limit)
    } else {
        found
    }))
}
