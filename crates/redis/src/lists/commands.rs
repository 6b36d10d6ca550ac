//! What the commands on one list do.

use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::number;
use crate::resp::Reply;
use crate::strings::clamp;

type Answer = Result<Reply, CommandError>;

fn push(context: &mut Context<'_>, command: &Command, at_front: bool) -> Answer {
    let list = context.list_or_new(command.arg(1))?;
    for element in command.args_from(2) {
        list.push(element, at_front);
    }
    Ok(Reply::count(list.len()))
}

fn push_existing(context: &mut Context<'_>, command: &Command, at_front: bool) -> Answer {
    if context.list(command.arg(1))?.is_none() {
        return Ok(Reply::Integer(0));
    }
    push(context, command, at_front)
}

pub fn lpush(context: &mut Context<'_>, command: &Command) -> Answer {
    push(context, command, true)
}

pub fn rpush(context: &mut Context<'_>, command: &Command) -> Answer {
    push(context, command, false)
}

pub fn lpushx(context: &mut Context<'_>, command: &Command) -> Answer {
    push_existing(context, command, true)
}

pub fn rpushx(context: &mut Context<'_>, command: &Command) -> Answer {
    push_existing(context, command, false)
}

/// Up to `count` elements from an end, removed.
pub fn take(
    context: &mut Context<'_>,
    key: &[u8],
    count: usize,
    at_front: bool,
) -> Result<Option<Vec<Reply>>, CommandError> {
    let Some(list) = context.list(key)? else {
        return Ok(None);
    };
    let mut taken = Vec::new();
    while taken.len() < count
        && let Some(element) = list.pop(at_front)
    {
        taken.push(Reply::Bulk(element));
    }
    if !taken.is_empty() {
        context.touch(key);
    }
    Ok(Some(taken))
}

fn pop(context: &mut Context<'_>, command: &Command, at_front: bool) -> Answer {
    let key = command.arg(1);
    match command.len() {
        2 => {
            let taken = take(context, key, 1, at_front)?;
            Ok(taken
                .and_then(|mut taken| taken.pop())
                .unwrap_or(Reply::Null))
        }
        3 => {
            let count = number::integer(command.arg(2));
            let count = count.and_then(|count| usize::try_from(count).ok());
            let count = count.ok_or(CommandError::text(
                "ERR value is out of range, must be positive",
            ))?;
            let taken = take(context, key, count, at_front)?;
            Ok(taken.map_or(Reply::NullArray, Reply::Array))
        }
        _ => Err(CommandError::arity(if at_front { "lpop" } else { "rpop" })),
    }
}

pub fn lpop(context: &mut Context<'_>, command: &Command) -> Answer {
    pop(context, command, true)
}

pub fn rpop(context: &mut Context<'_>, command: &Command) -> Answer {
    pop(context, command, false)
}

pub fn llen(context: &mut Context<'_>, command: &Command) -> Answer {
    Ok(Reply::count(
        context.list(command.arg(1))?.map_or(0, |list| list.len()),
    ))
}

/// The place that `index` means among `len`.
fn place_of(index: i64, len: usize) -> Option<usize> {
    clamp(index, index, len)
        .map(|(place, _)| place)
        .filter(|_| index >= 0 || index.unsigned_abs() <= len as u64)
}

pub fn lindex(context: &mut Context<'_>, command: &Command) -> Answer {
    let Some(list) = context.list(command.arg(1))? else {
        return Ok(Reply::Null);
    };
    let index = number::parse(command.arg(2))?;
    Ok(Reply::bulk_or_null(
        place_of(index, list.len()).and_then(|place| list.get(place)),
    ))
}

pub fn lrange(context: &mut Context<'_>, command: &Command) -> Answer {
    let (start, end) = (
        number::parse(command.arg(2))?,
        number::parse(command.arg(3))?,
    );
    let Some(list) = context.list(command.arg(1))? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let range = clamp(start, end, list.len());
    Ok(Reply::Array(range.map_or_else(Vec::new, |(start, end)| {
        list.range(start, end).map(Reply::bulk).collect()
    })))
}

pub fn lset(context: &mut Context<'_>, command: &Command) -> Answer {
    let key = command.arg(1);
    let Some(list) = context.list(key)? else {
        return Err(CommandError::NO_SUCH_KEY);
    };
    let index = number::parse(command.arg(2))?;
    let place = place_of(index, list.len()).ok_or(CommandError::INDEX)?;
    list.set(place, command.arg(3));
    context.touch(key);
    Ok(Reply::OK)
}

pub fn ltrim(context: &mut Context<'_>, command: &Command) -> Answer {
    let (start, end) = (
        number::parse(command.arg(2))?,
        number::parse(command.arg(3))?,
    );
    let key = command.arg(1);
    let Some(list) = context.list(key)? else {
        return Ok(Reply::OK);
    };
    let before = list.len();
    let (front, back) = match clamp(start, end, before) {
        Some((start, end)) => (start, before - 1 - end),
        None => (before, 0),
    };
    for _ in 0..front {
        list.pop(true);
    }
    for _ in 0..back {
        list.pop(false);
    }
    if front + back > 0 {
        context.touch(key);
    }
    Ok(Reply::OK)
}

pub fn lrem(context: &mut Context<'_>, command: &Command) -> Answer {
    let count = number::parse(command.arg(2))?;
    let key = command.arg(1);
    let Some(list) = context.list(key)? else {
        return Ok(Reply::Integer(0));
    };
    let limit = match count {
        0 => usize::MAX,
        count => usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX),
    };
    let removed = list.remove(command.arg(3), limit, count >= 0);
    if removed > 0 {
        context.touch(key);
    }
    Ok(Reply::count(removed))
}

pub fn linsert(context: &mut Context<'_>, command: &Command) -> Answer {
    let after = match (command.is_word(2, "BEFORE"), command.is_word(2, "AFTER")) {
        (true, _) => 0,
        (_, true) => 1,
        _ => return Err(CommandError::SYNTAX),
    };
    let key = command.arg(1);
    let Some(list) = context.list(key)? else {
        return Ok(Reply::Integer(0));
    };
    let Some(place) = list.iter().position(|element| element == command.arg(3)) else {
        return Ok(Reply::Integer(-1));
    };
    list.insert(place + after, command.arg(4));
    let len = list.len();
    context.touch(key);
    Ok(Reply::count(len))
}

struct Search {
    rank: i64,
    count: Option<usize>,
    looked_at_max: usize,
}

fn search(command: &Command) -> Result<Search, CommandError> {
    let mut search = Search {
        rank: 1,
        count: None,
        looked_at_max: usize::MAX,
    };
    let mut place = 3;
    while place < command.len() {
        if place + 1 >= command.len() {
            return Err(CommandError::SYNTAX);
        }
        let argument = command.arg(place + 1);
        let at_least_0 = |text| {
            let value = number::integer(argument).and_then(|value| usize::try_from(value).ok());
            value.ok_or(CommandError::text(text))
        };
        if command.is_word(place, "RANK") {
            search.rank = number::parse(argument)?;
            if search.rank == 0 || search.rank == i64::MIN {
                return Err(CommandError::text(
                    "ERR RANK can't be zero: use 1 to start from the first match, 2 from the \
                     second ... or use negative to start from the end of the list",
                ));
            }
        } else if command.is_word(place, "COUNT") {
            search.count = Some(at_least_0("ERR COUNT can't be negative")?);
        } else if command.is_word(place, "MAXLEN") {
            search.looked_at_max = at_least_0("ERR MAXLEN can't be negative")?;
        } else {
            return Err(CommandError::SYNTAX);
        }
        place += 2;
    }
    if search.looked_at_max == 0 {
        search.looked_at_max = usize::MAX;
    }
    Ok(search)
}

pub fn lpos(context: &mut Context<'_>, command: &Command) -> Answer {
    let search = search(command)?;
    let nothing = || match search.count {
        Some(_) => Reply::Array(Vec::new()),
        None => Reply::Null,
    };
    let Some(list) = context.list(command.arg(1))? else {
        return Ok(nothing());
    };
    let skipped = usize::try_from(search.rank.unsigned_abs() - 1).unwrap_or(usize::MAX);
    let wanted = match search.count {
        None => 1,
        Some(0) => usize::MAX,
        Some(count) => count,
    };
    let last = list.len() - 1;
    let is_match = |element: &[u8]| element == command.arg(2);
    let places: Vec<usize> = if search.rank > 0 {
        let looked_at = list.iter().enumerate().take(search.looked_at_max);
        let found = looked_at.filter(|(_, element)| is_match(element));
        found
            .map(|(place, _)| place)
            .skip(skipped)
            .take(wanted)
            .collect()
    } else {
        let looked_at = list.iter().rev().enumerate().take(search.looked_at_max);
        let found = looked_at.filter(|(_, element)| is_match(element));
        found
            .map(|(place, _)| last - place)
            .skip(skipped)
            .take(wanted)
            .collect()
    };
    Ok(match search.count {
        Some(_) => Reply::Array(places.into_iter().map(Reply::count).collect()),
        None => places
            .first()
            .map_or(Reply::Null, |place| Reply::count(*place)),
    })
}
