//! What the commands on members do.

use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::keys::scan::{self, ScanOptions};
use crate::number;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

#[derive(Default, Clone, Copy)]
struct AddOptions {
    only_new: bool,
    only_old: bool,
    only_greater: bool,
    only_less: bool,
    counts_changed: bool,
    is_increment: bool,
}

/// The options, and where scores and members begin.
fn add_options(command: &Command) -> Result<(AddOptions, usize), CommandError> {
    let mut options = AddOptions::default();
    let mut place = 2;
    loop {
        match () {
            () if command.is_word(place, "NX") => options.only_new = true,
            () if command.is_word(place, "XX") => options.only_old = true,
            () if command.is_word(place, "GT") => options.only_greater = true,
            () if command.is_word(place, "LT") => options.only_less = true,
            () if command.is_word(place, "CH") => options.counts_changed = true,
            () if command.is_word(place, "INCR") => options.is_increment = true,
            () => break,
        }
        place += 1;
    }
    let given = command.len() - place;
    if given == 0 || !given.is_multiple_of(2) {
        return Err(CommandError::SYNTAX);
    }
    if options.only_new && options.only_old {
        return Err(CommandError::text(
            "ERR XX and NX options at the same time are not compatible",
        ));
    }
    let compared = u8::from(options.only_greater) + u8::from(options.only_less);
    if compared > 1 || (compared > 0 && options.only_new) {
        return Err(CommandError::text(
            "ERR GT, LT, and/or NX options at the same time are not compatible",
        ));
    }
    if options.is_increment && given > 2 {
        return Err(CommandError::text(
            "ERR INCR option supports a single increment-element pair",
        ));
    }
    Ok((options, place))
}

/// The score that a member gets, when it gets one.
fn new_score(
    options: AddOptions,
    before: Option<f64>,
    given: f64,
) -> Result<Option<f64>, CommandError> {
    let Some(before) = before else {
        return Ok((!options.only_old).then_some(given));
    };
    if options.only_new {
        return Ok(None);
    }
    let score = if options.is_increment {
        before + given
    } else {
        given
    };
    if score.is_nan() {
        return Err(CommandError::text(
            "ERR resulting score is not a number (NaN)",
        ));
    }
    let is_refused =
        (options.only_greater && score <= before) || (options.only_less && score >= before);
    Ok((!is_refused).then_some(score))
}

pub fn zadd(context: &mut Context<'_>, command: &Command) -> Answer {
    let (options, from) = add_options(command)?;
    let mut pairs = Vec::with_capacity((command.len() - from) / 2);
    for place in (from..command.len()).step_by(2) {
        let score = number::float(command.arg(place)).ok_or(CommandError::NOT_FLOAT)?;
        pairs.push((score, command.arg(place + 1)));
    }
    let key = command.arg(1);
    let is_new = context.zset(key)?.is_none();
    if is_new && options.only_old {
        return Ok(if options.is_increment {
            Reply::Null
        } else {
            Reply::Integer(0)
        });
    }
    let zset = context.zset_or_new(key)?;
    let (mut added, mut changed) = (0, 0);
    let mut result = Reply::Null;
    for (given, member) in pairs {
        let before = zset.score(member);
        let Some(score) = new_score(options, before, given)? else {
            continue;
        };
        zset.insert(member, score);
        result = Reply::Double(score);
        match before {
            None => added += 1,
            #[allow(clippy::float_cmp)] // the very same score is no change
            Some(before) => changed += usize::from(before != score),
        }
    }
    if added + changed == 0 && !is_new {
        context.untouch(key);
    }
    Ok(match () {
        () if options.is_increment => result,
        () if options.counts_changed => Reply::count(added + changed),
        () => Reply::count(added),
    })
}

pub fn zincrby(context: &mut Context<'_>, command: &Command) -> Answer {
    let more = number::float(command.arg(2)).ok_or(CommandError::NOT_FLOAT)?;
    let (key, member) = (command.arg(1), command.arg(3));
    let before = context
        .zset(key)?
        .and_then(|zset| zset.score(member))
        .unwrap_or(0.0);
    let score = before + more;
    if score.is_nan() {
        return Err(CommandError::text(
            "ERR resulting score is not a number (NaN)",
        ));
    }
    context.zset_or_new(key)?.insert(member, score);
    Ok(Reply::Double(score))
}

pub fn zrem(context: &mut Context<'_>, command: &Command) -> Answer {
    let key = command.arg(1);
    let Some(zset) = context.zset(key)? else {
        return Ok(Reply::Integer(0));
    };
    let removed = command
        .args_from(2)
        .filter(|member| zset.remove(member).is_some())
        .count();
    if removed > 0 {
        context.touch(key);
    }
    Ok(Reply::count(removed))
}

pub fn zcard(context: &mut Context<'_>, command: &Command) -> Answer {
    Ok(Reply::count(
        context.zset(command.arg(1))?.map_or(0, |zset| zset.len()),
    ))
}

pub fn zscore(context: &mut Context<'_>, command: &Command) -> Answer {
    let zset = context.zset(command.arg(1))?;
    let score = zset.and_then(|zset| zset.score(command.arg(2)));
    Ok(score.map_or(Reply::Null, Reply::Double))
}

pub fn zmscore(context: &mut Context<'_>, command: &Command) -> Answer {
    let zset = context.zset(command.arg(1))?;
    let score = |member| zset.as_ref().and_then(|zset| zset.score(member));
    let scores = command
        .args_from(2)
        .map(|member| score(member).map_or(Reply::Null, Reply::Double));
    Ok(Reply::Array(scores.collect()))
}

fn rank(context: &mut Context<'_>, command: &Command, is_reversed: bool) -> Answer {
    let with_score = match command.len() {
        3 => false,
        4 if command.is_word(3, "WITHSCORE") => true,
        4 => return Err(CommandError::SYNTAX),
        _ => {
            return Err(CommandError::arity(if is_reversed {
                "zrevrank"
            } else {
                "zrank"
            }));
        }
    };
    let zset = context.zset(command.arg(1))?;
    let found = zset.and_then(|zset| {
        let rank = zset.rank(command.arg(2))?;
        let rank = if is_reversed {
            zset.len() - 1 - rank
        } else {
            rank
        };
        Some((rank, zset.score(command.arg(2))?))
    });
    Ok(match found {
        None if with_score => Reply::NullArray,
        None => Reply::Null,
        Some((rank, score)) if with_score => {
            Reply::Array(vec![Reply::count(rank), Reply::Double(score)])
        }
        Some((rank, _)) => Reply::count(rank),
    })
}

pub fn zrank(context: &mut Context<'_>, command: &Command) -> Answer {
    rank(context, command, false)
}

pub fn zrevrank(context: &mut Context<'_>, command: &Command) -> Answer {
    rank(context, command, true)
}

/// A member that was removed, and its score.
pub type Taken = (Vec<u8>, f64);

/// Up to `count` members with the lowest or highest scores, removed.
pub fn take(
    context: &mut Context<'_>,
    key: &[u8],
    count: usize,
    is_max: bool,
) -> Result<Option<Vec<Taken>>, CommandError> {
    let Some(zset) = context.zset(key)? else {
        return Ok(None);
    };
    let mut taken = Vec::new();
    while taken.len() < count && !zset.is_empty() {
        let rank = if is_max { zset.len() - 1 } else { 0 };
        let Some(scored) = zset.order().at(rank).cloned() else {
            break;
        };
        zset.remove(&scored.member);
        taken.push((scored.member.to_vec(), scored.score));
    }
    if !taken.is_empty() {
        context.touch(key);
    }
    Ok(Some(taken))
}

fn pop(context: &mut Context<'_>, command: &Command, is_max: bool) -> Answer {
    let count = match command.len() {
        2 => None,
        3 => Some(
            number::integer(command.arg(2))
                .and_then(|count| usize::try_from(count).ok())
                .ok_or(CommandError::text(
                    "ERR value is out of range, must be positive",
                ))?,
        ),
        _ => return Err(CommandError::SYNTAX),
    };
    let taken = take(context, command.arg(1), count.unwrap_or(1), is_max)?;
    let taken = taken.unwrap_or_default().into_iter();
    let pairs = taken.map(|(member, score)| (Reply::Bulk(member), Reply::Double(score)));
    Ok(match count {
        None => Reply::Array(pairs.flat_map(|(member, score)| [member, score]).collect()),
        Some(_) => Reply::Pairs(pairs.collect()),
    })
}

pub fn zpopmin(context: &mut Context<'_>, command: &Command) -> Answer {
    pop(context, command, false)
}

pub fn zpopmax(context: &mut Context<'_>, command: &Command) -> Answer {
    pop(context, command, true)
}

/// ZMPOP's arguments from the number of keys on.
pub fn popped_of_many(
    context: &mut Context<'_>,
    command: &Command,
    at: usize,
) -> Result<Option<Reply>, CommandError> {
    let count = number::integer(command.arg(at)).filter(|count| *count > 0);
    let keys = count.and_then(|count| usize::try_from(count).ok());
    let keys = keys.ok_or(CommandError::text("ERR numkeys should be greater than 0"))?;
    let end = at + 1 + keys.min(command.len());
    let is_max = match (command.is_word(end, "MIN"), command.is_word(end, "MAX")) {
        (true, _) => false,
        (_, true) => true,
        _ => return Err(CommandError::SYNTAX),
    };
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
        if let Some(taken) = take(context, key, wanted, is_max)? {
            let pair =
                |(member, score)| Reply::Array(vec![Reply::Bulk(member), Reply::Double(score)]);
            let taken = taken.into_iter().map(pair).collect();
            return Ok(Some(Reply::Array(vec![
                Reply::bulk(key),
                Reply::Array(taken),
            ])));
        }
    }
    Ok(None)
}

pub fn zmpop(context: &mut Context<'_>, command: &Command) -> Answer {
    Ok(popped_of_many(context, command, 1)?.unwrap_or(Reply::NullArray))
}

pub fn zrandmember(context: &mut Context<'_>, command: &Command) -> Answer {
    let mut random = context.random.clone();
    let with_scores = match command.len() {
        0..=3 => false,
        4 if command.is_word(3, "WITHSCORES") => true,
        _ => return Err(CommandError::SYNTAX),
    };
    let count = (command.len() > 2)
        .then(|| number::parse(command.arg(2)))
        .transpose()?;
    let Some(zset) = context.zset(command.arg(1))? else {
        return Ok(count.map_or(Reply::Null, |_| Reply::Array(Vec::new())));
    };
    let Some(count) = count else {
        let place = random.below(zset.len());
        return Ok(Reply::bulk_or_null(
            zset.at(place).map(|(member, _)| member),
        ));
    };
    let places = scan::choices(&mut random, zset.len(), count)?;
    let chosen = places.into_iter().filter_map(|place| zset.at(place));
    Ok(if with_scores {
        let pair = |(member, score): (&[u8], f64)| (Reply::bulk(member), Reply::Double(score));
        Reply::Pairs(chosen.map(pair).collect())
    } else {
        Reply::Array(chosen.map(|(member, _)| Reply::bulk(member)).collect())
    })
}

pub fn zscan(context: &mut Context<'_>, command: &Command) -> Answer {
    let (cursor, options) = (
        scan::cursor(command.arg(2))?,
        ScanOptions::parse(command, 3)?,
    );
    let Some(zset) = context.zset(command.arg(1))? else {
        return Ok(scan::page(0, Vec::new()));
    };
    let (next, places) = options.places(cursor, zset.len());
    let mut found = Vec::new();
    let mut show = |member: &[u8], score| {
        if options.matches(member) {
            found.push(Reply::bulk(member));
            found.push(Reply::bulk(number::write_float(score)));
        }
    };
    if places.len() == zset.len() {
        // Clients take a small one that comes as a whole to be in order, as it is in Redis.
        let all = zset.order().from(0);
        all.for_each(|scored| show(&scored.member, scored.score));
    } else {
        let some = places.filter_map(|place| zset.at(place));
        some.for_each(|(member, score)| show(member, score));
    }
    Ok(scan::page(next, found))
}
