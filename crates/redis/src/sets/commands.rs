//! What the commands on one set do.

use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::keys::scan::{self, ScanOptions};
use crate::number;
use crate::objects::Set;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

pub fn sadd(context: &mut Context<'_>, command: &Command) -> Answer {
    let set = context.set_or_new(command.arg(1))?;
    Ok(Reply::count(
        command
            .args_from(2)
            .filter(|member| set.insert(member))
            .count(),
    ))
}

pub fn srem(context: &mut Context<'_>, command: &Command) -> Answer {
    let key = command.arg(1);
    let Some(set) = context.set(key)? else {
        return Ok(Reply::Integer(0));
    };
    let removed = command
        .args_from(2)
        .filter(|member| set.remove(member))
        .count();
    if removed > 0 {
        context.touch(key);
    }
    Ok(Reply::count(removed))
}

pub fn scard(context: &mut Context<'_>, command: &Command) -> Answer {
    Ok(Reply::count(
        context.set(command.arg(1))?.map_or(0, |set| set.len()),
    ))
}

pub fn sismember(context: &mut Context<'_>, command: &Command) -> Answer {
    let set = context.set(command.arg(1))?;
    Ok(Reply::flag(
        set.is_some_and(|set| set.contains(command.arg(2))),
    ))
}

pub fn smismember(context: &mut Context<'_>, command: &Command) -> Answer {
    let set = context.set(command.arg(1))?;
    let is_member = |member| set.as_ref().is_some_and(|set| set.contains(member));
    let flags = command
        .args_from(2)
        .map(|member| Reply::flag(is_member(member)));
    Ok(Reply::Array(flags.collect()))
}

pub fn smembers(context: &mut Context<'_>, command: &Command) -> Answer {
    let set = context.set(command.arg(1))?;
    let members = |set: &mut Set| set.iter().map(Reply::bulk).collect();
    Ok(Reply::Set(set.map_or_else(Vec::new, members)))
}

pub fn smove(context: &mut Context<'_>, command: &Command) -> Answer {
    let (from, to, member) = (command.arg(1), command.arg(2), command.arg(3));
    let is_member = match context.set(from)? {
        Some(set) => set.contains(member),
        None => return Ok(Reply::Integer(0)),
    };
    let is_there = context.set(to)?.is_some_and(|set| set.contains(member));
    if !is_member {
        return Ok(Reply::Integer(0));
    }
    if from != to {
        context.set_or_new(from)?.remove(member);
        if !is_there {
            context.set_or_new(to)?.insert(member);
        }
    }
    Ok(Reply::Integer(1))
}

fn count_argument(command: &Command) -> Result<Option<i64>, CommandError> {
    match command.len() {
        0..=2 => Ok(None),
        3 => number::parse(command.arg(2)).map(Some),
        _ => Err(CommandError::SYNTAX),
    }
}

pub fn spop(context: &mut Context<'_>, command: &Command) -> Answer {
    let mut random = context.random.clone();
    let key = command.arg(1);
    let count = count_argument(command)?;
    if count.is_some_and(|count| count < 0) {
        return Err(CommandError::text(
            "ERR value is out of range, must be positive",
        ));
    }
    let Some(set) = context.set(key)? else {
        return Ok(count.map_or(Reply::Null, |_| Reply::Set(Vec::new())));
    };
    let wanted = usize::try_from(count.unwrap_or(1)).unwrap_or(usize::MAX);
    let mut popped = Vec::new();
    while popped.len() < wanted && !set.is_empty() {
        let member = set
            .at(random.below(set.len()))
            .map(<[u8]>::to_vec)
            .unwrap_or_default();
        set.remove(&member);
        popped.push(Reply::Bulk(member));
    }
    if !popped.is_empty() {
        context.touch(key);
    }
    Ok(match count {
        Some(_) => Reply::Set(popped),
        None => popped.pop().unwrap_or(Reply::Null),
    })
}

pub fn srandmember(context: &mut Context<'_>, command: &Command) -> Answer {
    let mut random = context.random.clone();
    let count = count_argument(command)?;
    let Some(set) = context.set(command.arg(1))? else {
        return Ok(count.map_or(Reply::Null, |_| Reply::Array(Vec::new())));
    };
    let Some(count) = count else {
        return Ok(Reply::bulk_or_null(set.at(random.below(set.len()))));
    };
    let places = scan::choices(&mut random, set.len(), count)?;
    let members = places
        .into_iter()
        .filter_map(|place| set.at(place))
        .map(Reply::bulk);
    Ok(Reply::Array(members.collect()))
}

pub fn sscan(context: &mut Context<'_>, command: &Command) -> Answer {
    let (cursor, options) = (
        scan::cursor(command.arg(2))?,
        ScanOptions::parse(command, 3)?,
    );
    let Some(set) = context.set(command.arg(1))? else {
        return Ok(scan::page(0, Vec::new()));
    };
    let (next, places) = options.places(cursor, set.len());
    let members = places.filter_map(|place| set.at(place));
    let found = members
        .filter(|member| options.matches(member))
        .map(Reply::bulk);
    Ok(scan::page(next, found.collect()))
}
