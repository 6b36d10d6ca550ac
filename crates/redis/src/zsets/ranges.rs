//! Ranges: counted, shown, stored and removed.

use super::bounds::Range;
use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::keyspace::Value;
use crate::number;
use crate::objects::ZSet;
use crate::objects::zset::order::Scored;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

/// A range with how it is shown.
struct Query {
    range: Range,
    is_reversed: bool,
    offset: i64,
    count: i64,
    with_scores: bool,
}

impl Query {
    fn members<'a>(&self, zset: &'a ZSet) -> Vec<&'a Scored> {
        let (start, end) = self.range.ranks(zset, self.is_reversed);
        let Ok(offset) = usize::try_from(self.offset) else {
            return Vec::new();
        };
        let limit = usize::try_from(self.count).unwrap_or(usize::MAX);
        let len = end.saturating_sub(start).saturating_sub(offset).min(limit);
        if len == 0 {
            return Vec::new();
        }
        if self.is_reversed {
            zset.order().back_from(end - offset).take(len).collect()
        } else {
            zset.order().from(start + offset).take(len).collect()
        }
    }

    fn reply(&self, context: &mut Context<'_>, key: &[u8]) -> Answer {
        let Some(zset) = context.zset(key)? else {
            return Ok(Reply::Array(Vec::new()));
        };
        let members = self.members(zset).into_iter();
        let pair = |s: &Scored| (Reply::bulk(&s.member), Reply::Double(s.score));
        Ok(if self.with_scores {
            Reply::Pairs(members.map(pair).collect())
        } else {
            Reply::Array(members.map(|scored| Reply::bulk(&scored.member)).collect())
        })
    }
}

/// ZRANGE's arguments behind the key at `at`.
fn general(command: &Command, at: usize, is_stored: bool) -> Result<Query, CommandError> {
    let (mut by_score, mut by_lex, mut is_reversed, mut with_scores) = (false, false, false, false);
    let mut limit = None;
    let mut place = at + 3;
    while place < command.len() {
        match () {
            () if command.is_word(place, "BYSCORE") => by_score = true,
            () if command.is_word(place, "BYLEX") => by_lex = true,
            () if command.is_word(place, "REV") => is_reversed = true,
            () if command.is_word(place, "WITHSCORES") && !is_stored => with_scores = true,
            () if command.is_word(place, "LIMIT") && place + 2 < command.len() => {
                limit = Some((
                    number::parse(command.arg(place + 1))?,
                    number::parse(command.arg(place + 2))?,
                ));
                place += 2;
            }
            () => return Err(CommandError::SYNTAX),
        }
        place += 1;
    }
    if by_score && by_lex {
        return Err(CommandError::SYNTAX);
    }
    if limit.is_some() && !by_score && !by_lex {
        return Err(CommandError::text(
            "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
        ));
    }
    if with_scores && by_lex {
        return Err(CommandError::text(
            "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
        ));
    }
    let (mut min, mut max) = (command.arg(at + 1), command.arg(at + 2));
    if is_reversed && (by_score || by_lex) {
        std::mem::swap(&mut min, &mut max);
    }
    let range = match (by_score, by_lex) {
        (true, _) => Range::of_scores(min, max)?,
        (_, true) => Range::of_members(min, max)?,
        _ => Range::of_ranks(min, max)?,
    };
    let (offset, count) = limit.unwrap_or((0, -1));
    Ok(Query {
        range,
        is_reversed,
        offset,
        count,
        with_scores,
    })
}

/// The older commands: one range, LIMIT and WITHSCORES where they are allowed.
fn particular(
    command: &Command,
    is_reversed: bool,
    make: fn(&[u8], &[u8]) -> Result<Range, CommandError>,
    (has_limit, has_scores): (bool, bool),
) -> Result<Query, CommandError> {
    let swapped = is_reversed && has_limit;
    let (min, max) = if swapped { (3, 2) } else { (2, 3) };
    let mut query = Query {
        range: make(command.arg(min), command.arg(max))?,
        is_reversed,
        offset: 0,
        count: -1,
        with_scores: false,
    };
    let mut place = 4;
    while place < command.len() {
        if has_scores && command.is_word(place, "WITHSCORES") {
            query.with_scores = true;
        } else if has_limit && command.is_word(place, "LIMIT") && place + 2 < command.len() {
            query.offset = number::parse(command.arg(place + 1))?;
            query.count = number::parse(command.arg(place + 2))?;
            place += 2;
        } else {
            return Err(CommandError::SYNTAX);
        }
        place += 1;
    }
    Ok(query)
}

pub fn zrange(context: &mut Context<'_>, command: &Command) -> Answer {
    general(command, 1, false)?.reply(context, command.arg(1))
}

pub fn zrangestore(context: &mut Context<'_>, command: &Command) -> Answer {
    let query = general(command, 2, true)?;
    let mut result = ZSet::default();
    if let Some(zset) = context.zset(command.arg(2))? {
        for scored in query.members(zset) {
            result.insert(&scored.member, scored.score);
        }
    }
    let count = result.len();
    context.store(command.arg(1), Value::ZSet(Box::new(result)));
    Ok(Reply::count(count))
}

pub fn zrevrange(context: &mut Context<'_>, command: &Command) -> Answer {
    particular(command, true, Range::of_ranks, (false, true))?.reply(context, command.arg(1))
}

pub fn zrangebyscore(context: &mut Context<'_>, command: &Command) -> Answer {
    particular(command, false, Range::of_scores, (true, true))?.reply(context, command.arg(1))
}

pub fn zrevrangebyscore(context: &mut Context<'_>, command: &Command) -> Answer {
    particular(command, true, Range::of_scores, (true, true))?.reply(context, command.arg(1))
}

pub fn zrangebylex(context: &mut Context<'_>, command: &Command) -> Answer {
    particular(command, false, Range::of_members, (true, false))?.reply(context, command.arg(1))
}

pub fn zrevrangebylex(context: &mut Context<'_>, command: &Command) -> Answer {
    particular(command, true, Range::of_members, (true, false))?.reply(context, command.arg(1))
}

fn counted(context: &mut Context<'_>, key: &[u8], range: &Range) -> Answer {
    let Some(zset) = context.zset(key)? else {
        return Ok(Reply::Integer(0));
    };
    let (start, end) = range.ranks(zset, false);
    Ok(Reply::count(end - start))
}

pub fn zcount(context: &mut Context<'_>, command: &Command) -> Answer {
    let range = Range::of_scores(command.arg(2), command.arg(3))?;
    counted(context, command.arg(1), &range)
}

pub fn zlexcount(context: &mut Context<'_>, command: &Command) -> Answer {
    let range = Range::of_members(command.arg(2), command.arg(3))?;
    counted(context, command.arg(1), &range)
}

fn removed(context: &mut Context<'_>, key: &[u8], range: &Range) -> Answer {
    let Some(zset) = context.zset(key)? else {
        return Ok(Reply::Integer(0));
    };
    let (start, end) = range.ranks(zset, false);
    let members: Vec<_> = zset
        .order()
        .from(start)
        .take(end - start)
        .cloned()
        .collect();
    for scored in &members {
        zset.remove(&scored.member);
    }
    if !members.is_empty() {
        context.touch(key);
    }
    Ok(Reply::count(members.len()))
}

pub fn zremrangebyrank(context: &mut Context<'_>, command: &Command) -> Answer {
    let range = Range::of_ranks(command.arg(2), command.arg(3))?;
    removed(context, command.arg(1), &range)
}

pub fn zremrangebyscore(context: &mut Context<'_>, command: &Command) -> Answer {
    let range = Range::of_scores(command.arg(2), command.arg(3))?;
    removed(context, command.arg(1), &range)
}

pub fn zremrangebylex(context: &mut Context<'_>, command: &Command) -> Answer {
    let range = Range::of_members(command.arg(2), command.arg(3))?;
    removed(context, command.arg(1), &range)
}
