//! What the commands do.

use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::keys::scan::{self, ScanOptions};
use crate::number;
use crate::objects::Hash;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

pub fn hset(context: &mut Context<'_>, command: &Command) -> Answer {
    if !command.len().is_multiple_of(2) {
        return Err(CommandError::arity("hset"));
    }
    let hash = context.hash_or_new(command.arg(1))?;
    let mut added = 0;
    for place in (2..command.len()).step_by(2) {
        added += usize::from(hash.insert(command.arg(place), command.arg(place + 1)));
    }
    Ok(Reply::count(added))
}

pub fn hmset(context: &mut Context<'_>, command: &Command) -> Answer {
    if !command.len().is_multiple_of(2) {
        return Err(CommandError::arity("hmset"));
    }
    hset(context, command)?;
    Ok(Reply::OK)
}

pub fn hsetnx(context: &mut Context<'_>, command: &Command) -> Answer {
    let (key, field) = (command.arg(1), command.arg(2));
    if context
        .hash(key)?
        .is_some_and(|hash| hash.get(field).is_some())
    {
        return Ok(Reply::Integer(0));
    }
    context.hash_or_new(key)?.insert(field, command.arg(3));
    Ok(Reply::Integer(1))
}

pub fn hget(context: &mut Context<'_>, command: &Command) -> Answer {
    let hash = context.hash(command.arg(1))?;
    Ok(Reply::bulk_or_null(
        hash.and_then(|hash| hash.get(command.arg(2))),
    ))
}

pub fn hmget(context: &mut Context<'_>, command: &Command) -> Answer {
    let hash = context.hash(command.arg(1))?;
    let value = |field| hash.as_ref().and_then(|hash| hash.get(field));
    let values = command
        .args_from(2)
        .map(|field| Reply::bulk_or_null(value(field)));
    Ok(Reply::Array(values.collect()))
}

pub fn hgetall(context: &mut Context<'_>, command: &Command) -> Answer {
    let hash = context.hash(command.arg(1))?;
    let pair = |(field, value): (&[u8], &[u8])| (Reply::bulk(field), Reply::bulk(value));
    Ok(Reply::Map(hash.map_or_else(Vec::new, |hash| {
        hash.iter().map(pair).collect()
    })))
}

pub fn hkeys(context: &mut Context<'_>, command: &Command) -> Answer {
    let hash = context.hash(command.arg(1))?;
    let fields = |hash: &mut Hash| hash.iter().map(|(field, _)| Reply::bulk(field)).collect();
    Ok(Reply::Array(hash.map_or_else(Vec::new, fields)))
}

pub fn hvals(context: &mut Context<'_>, command: &Command) -> Answer {
    let hash = context.hash(command.arg(1))?;
    let values = |hash: &mut Hash| hash.iter().map(|(_, value)| Reply::bulk(value)).collect();
    Ok(Reply::Array(hash.map_or_else(Vec::new, values)))
}

pub fn hlen(context: &mut Context<'_>, command: &Command) -> Answer {
    let hash = context.hash(command.arg(1))?;
    Ok(Reply::count(hash.map_or(0, |hash| hash.len())))
}

pub fn hstrlen(context: &mut Context<'_>, command: &Command) -> Answer {
    let hash = context.hash(command.arg(1))?;
    let value = hash.and_then(|hash| hash.get(command.arg(2)));
    Ok(Reply::count(value.map_or(0, <[u8]>::len)))
}

pub fn hexists(context: &mut Context<'_>, command: &Command) -> Answer {
    let hash = context.hash(command.arg(1))?;
    Ok(Reply::flag(
        hash.is_some_and(|hash| hash.get(command.arg(2)).is_some()),
    ))
}

pub fn hdel(context: &mut Context<'_>, command: &Command) -> Answer {
    let key = command.arg(1);
    let Some(hash) = context.hash(key)? else {
        return Ok(Reply::Integer(0));
    };
    let removed = command
        .args_from(2)
        .filter(|field| hash.remove(field))
        .count();
    if removed > 0 {
        context.touch(key);
    }
    Ok(Reply::count(removed))
}

pub fn hincrby(context: &mut Context<'_>, command: &Command) -> Answer {
    let (key, field) = (command.arg(1), command.arg(2));
    let more = number::parse(command.arg(3))?;
    let before = match context.hash(key)?.and_then(|hash| hash.get(field)) {
        Some(value) => {
            number::integer(value).ok_or(CommandError::text("ERR hash value is not an integer"))?
        }
        None => 0,
    };
    let sum = before.checked_add(more).ok_or(CommandError::OVERFLOW)?;
    context
        .hash_or_new(key)?
        .update(field, sum.to_string().as_bytes());
    Ok(Reply::Integer(sum))
}

pub fn hincrbyfloat(context: &mut Context<'_>, command: &Command) -> Answer {
    let (key, field) = (command.arg(1), command.arg(2));
    let more = number::float(command.arg(3)).ok_or(CommandError::NOT_FLOAT)?;
    if more.is_infinite() {
        return Err(CommandError::text("ERR value is NaN or Infinity"));
    }
    let before = match context.hash(key)?.and_then(|hash| hash.get(field)) {
        Some(value) => {
            number::float(value).ok_or(CommandError::text("ERR hash value is not a float"))?
        }
        None => 0.0,
    };
    let sum = before + more;
    if !sum.is_finite() {
        return Err(CommandError::NAN);
    }
    let text = number::write_long(sum);
    context.hash_or_new(key)?.update(field, text.as_bytes());
    Ok(Reply::bulk(text))
}

pub fn hrandfield(context: &mut Context<'_>, command: &Command) -> Answer {
    let mut random = context.random.clone();
    let with_values = match command.len() {
        0..=3 => false,
        4 if command.is_word(3, "WITHVALUES") => true,
        _ => return Err(CommandError::SYNTAX),
    };
    let Some(count) = (command.len() > 2)
        .then(|| number::parse(command.arg(2)))
        .transpose()?
    else {
        let Some(hash) = context.hash(command.arg(1))? else {
            return Ok(Reply::Null);
        };
        let place = random.below(hash.len());
        return Ok(Reply::bulk_or_null(hash.at(place).map(|(field, _)| field)));
    };
    let Some(hash) = context.hash(command.arg(1))? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let places = scan::choices(&mut random, hash.len(), count)?;
    let chosen = places.into_iter().filter_map(|place| hash.at(place));
    Ok(if with_values {
        let both = |(field, value): (&[u8], &[u8])| (Reply::bulk(field), Reply::bulk(value));
        Reply::Pairs(chosen.map(both).collect())
    } else {
        Reply::Array(chosen.map(|(field, _)| Reply::bulk(field)).collect())
    })
}

pub fn hscan(context: &mut Context<'_>, command: &Command) -> Answer {
    let (cursor, options) = (
        scan::cursor(command.arg(2))?,
        ScanOptions::parse(command, 3)?,
    );
    let Some(hash) = context.hash(command.arg(1))? else {
        return Ok(scan::page(0, Vec::new()));
    };
    let (next, places) = options.places(cursor, hash.len());
    let mut found = Vec::new();
    for (field, value) in places.filter_map(|place| hash.at(place)) {
        if options.matches(field) {
            found.push(Reply::bulk(field));
            found.push(Reply::bulk(value));
        }
    }
    Ok(scan::page(next, found))
}
