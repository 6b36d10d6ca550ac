//! Unions, intersections and differences, of sorted sets and of sets, whose members score 1.

use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::keyspace::Value;
use crate::number;
use crate::objects::ZSet;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

#[derive(Clone, Copy)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

struct Query {
    /// Places of keys.
    from: usize,
    count: usize,
    weights: Vec<f64>,
    aggregate: Aggregate,
    with_scores: bool,
    limit: usize,
}

/// Which options an operation has.
#[derive(Clone, Copy)]
struct Allowed {
    weights: bool,
    scores: bool,
    limit: bool,
}

fn query(command: &Command, at: usize, allowed: Allowed) -> Result<Query, CommandError> {
    let count = number::parse(command.arg(at))?;
    let name = String::from_utf8_lossy(command.name()).to_ascii_lowercase();
    let none = || {
        CommandError::new(format!(
            "ERR at least 1 input key is needed for '{name}' command"
        ))
    };
    let count = usize::try_from(count)
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(none)?;
    if count > command.len() - at - 1 {
        return Err(CommandError::SYNTAX);
    }
    let mut query = Query {
        from: at + 1,
        count,
        weights: vec![1.0; count],
        aggregate: Aggregate::Sum,
        with_scores: false,
        limit: 0,
    };
    let mut place = at + 1 + count;
    while place < command.len() {
        let left = command.len() - place - 1;
        if allowed.weights && command.is_word(place, "WEIGHTS") && left >= count {
            for (weight, text) in query.weights.iter_mut().zip(command.args_from(place + 1)) {
                *weight = number::float(text)
                    .ok_or(CommandError::text("ERR weight value is not a float"))?;
            }
            place += count;
        } else if allowed.weights && command.is_word(place, "AGGREGATE") && left >= 1 {
            query.aggregate = match () {
                () if command.is_word(place + 1, "SUM") => Aggregate::Sum,
                () if command.is_word(place + 1, "MIN") => Aggregate::Min,
                () if command.is_word(place + 1, "MAX") => Aggregate::Max,
                () => return Err(CommandError::SYNTAX),
            };
            place += 1;
        } else if allowed.scores && command.is_word(place, "WITHSCORES") {
            query.with_scores = true;
        } else if allowed.limit && command.is_word(place, "LIMIT") && left >= 1 {
            query.limit = number::integer(command.arg(place + 1))
                .and_then(|limit| usize::try_from(limit).ok())
                .ok_or(CommandError::text("ERR LIMIT can't be negative"))?;
            place += 1;
        } else {
            return Err(CommandError::SYNTAX);
        }
        place += 1;
    }
    Ok(query)
}

/// Members and scores under a key that holds a sorted set or a set.
fn input(context: &mut Context<'_>, key: &[u8]) -> Result<Vec<(Vec<u8>, f64)>, CommandError> {
    match context
        .keyspace
        .look_up(context.db, key)
        .map(|entry| &entry.value)
    {
        None => Ok(Vec::new()),
        Some(Value::ZSet(zset)) => {
            let all = zset.order().from(0);
            Ok(all
                .map(|scored| (scored.member.to_vec(), scored.score))
                .collect())
        }
        Some(Value::Set(set)) => Ok(set.iter().map(|member| (member.to_vec(), 1.0)).collect()),
        Some(_) => Err(CommandError::WRONG_TYPE),
    }
}

fn weighted(score: f64, weight: f64) -> f64 {
    let product = score * weight;
    if product.is_nan() { 0.0 } else { product }
}

fn aggregated(one: f64, other: f64, aggregate: Aggregate) -> f64 {
    match aggregate {
        Aggregate::Sum => {
            let sum = one + other;
            // An infinity and its opposite.
            if sum.is_nan() { 0.0 } else { sum }
        }
        Aggregate::Min => one.min(other),
        Aggregate::Max => one.max(other),
    }
}

fn combine(
    context: &mut Context<'_>,
    command: &Command,
    query: &Query,
    operation: Operation,
) -> Result<ZSet, CommandError> {
    let mut inputs = Vec::with_capacity(query.count);
    for key in command.args_from(query.from).take(query.count) {
        inputs.push(input(context, key)?);
    }
    let mut result = ZSet::default();
    for (place, (input, weight)) in inputs.into_iter().zip(&query.weights).enumerate() {
        if place == 0 {
            for (member, score) in input {
                result.insert(&member, weighted(score, *weight));
            }
            continue;
        }
        match operation {
            Operation::Union => {
                for (member, score) in input {
                    let score = weighted(score, *weight);
                    let before = result.score(&member);
                    let score = before.map_or(score, |b| aggregated(b, score, query.aggregate));
                    result.insert(&member, score);
                }
            }
            Operation::Intersection => {
                let mut kept = ZSet::default();
                for (member, score) in input {
                    if let Some(before) = result.score(&member) {
                        let score = weighted(score, *weight);
                        kept.insert(&member, aggregated(before, score, query.aggregate));
                    }
                }
                result = kept;
            }
            Operation::Difference => {
                for (member, _) in input {
                    result.remove(&member);
                }
            }
        }
    }
    Ok(result)
}

const SHOWN: Allowed = Allowed {
    weights: true,
    scores: true,
    limit: false,
};

fn shown(
    context: &mut Context<'_>,
    command: &Command,
    operation: Operation,
    allowed: Allowed,
) -> Answer {
    let query = query(command, 1, allowed)?;
    let result = combine(context, command, &query, operation)?;
    let members = result.order().from(0);
    Ok(if query.with_scores {
        let pairs = members.map(|s| (Reply::bulk(&s.member), Reply::Double(s.score)));
        Reply::Pairs(pairs.collect())
    } else {
        Reply::Array(members.map(|scored| Reply::bulk(&scored.member)).collect())
    })
}

fn stored(context: &mut Context<'_>, command: &Command, operation: Operation) -> Answer {
    let allowed = Allowed {
        weights: operation != Operation::Difference,
        scores: false,
        limit: false,
    };
    let query = query(command, 2, allowed)?;
    let result = combine(context, command, &query, operation)?;
    let count = result.len();
    context.store(command.arg(1), Value::ZSet(Box::new(result)));
    Ok(Reply::count(count))
}

pub fn zunion(context: &mut Context<'_>, command: &Command) -> Answer {
    shown(context, command, Operation::Union, SHOWN)
}

pub fn zinter(context: &mut Context<'_>, command: &Command) -> Answer {
    shown(context, command, Operation::Intersection, SHOWN)
}

pub fn zdiff(context: &mut Context<'_>, command: &Command) -> Answer {
    let allowed = Allowed {
        weights: false,
        ..SHOWN
    };
    shown(context, command, Operation::Difference, allowed)
}

pub fn zunionstore(context: &mut Context<'_>, command: &Command) -> Answer {
    stored(context, command, Operation::Union)
}

pub fn zinterstore(context: &mut Context<'_>, command: &Command) -> Answer {
    stored(context, command, Operation::Intersection)
}

pub fn zdiffstore(context: &mut Context<'_>, command: &Command) -> Answer {
    stored(context, command, Operation::Difference)
}

pub fn zintercard(context: &mut Context<'_>, command: &Command) -> Answer {
    let allowed = Allowed {
        weights: false,
        scores: false,
        limit: true,
    };
    let query = query(command, 1, allowed)?;
    let found = combine(context, command, &query, Operation::Intersection)?.len();
    Ok(Reply::count(if query.limit > 0 {
        found.min(query.limit)
    } else {
        found
    }))
}
