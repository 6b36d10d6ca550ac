//! Searches.

use super::commands::{distance_reply, place_reply};
use super::place::GeoPlace;
use super::query::{Form, Query};
use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::keyspace::Value;
use crate::objects::ZSet;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

/// A member that is inside.
struct Found {
    member: Vec<u8>,
    score: f64,
    place: GeoPlace,
    metres: f64,
}

/// The members inside, as many and in the order as asked.
fn found(zset: &ZSet, query: &Query) -> Vec<Found> {
    let Some(area) = query.area() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let enough = query.limit.filter(|_| query.any).unwrap_or(usize::MAX);
    for (start, end) in area.scores() {
        // 52 bits are exact.
        #[allow(clippy::cast_precision_loss)]
        let (start, end) = (start as f64, end as f64);
        let rank = zset.order().rank(|scored| scored.score < start);
        for scored in zset.order().from(rank) {
            if scored.score >= end || found.len() >= enough {
                break;
            }
            let place = GeoPlace::of_score(scored.score);
            if let Some(metres) = area.metres_inside(place) {
                found.push(Found {
                    member: scored.member.to_vec(),
                    score: scored.score,
                    place,
                    metres,
                });
            }
        }
    }
    let needs_nearest = query.limit.is_some() && !query.any;
    match query.is_ascending {
        Some(false) => found.sort_by(|one, other| other.metres.total_cmp(&one.metres)),
        Some(true) => found.sort_by(|one, other| one.metres.total_cmp(&other.metres)),
        None if needs_nearest => found.sort_by(|one, other| one.metres.total_cmp(&other.metres)),
        None => {}
    }
    found.truncate(query.limit.unwrap_or(usize::MAX));
    found
}

fn reply(found: Vec<Found>, query: &Query) -> Reply {
    let (distance, bits, place) = query.with;
    let one = |found: Found| {
        let mut parts = vec![Reply::Bulk(found.member)];
        if distance {
            parts.push(distance_reply(found.metres / query.unit_metres));
        }
        if bits {
            #[allow(clippy::cast_possible_truncation)] // a score of 52 bits
            parts.push(Reply::Integer(found.score as i64));
        }
        if place {
            parts.push(place_reply(found.place));
        }
        if parts.len() > 1 {
            return Reply::Array(parts);
        }
        parts.pop().unwrap_or(Reply::Null)
    };
    Reply::Array(found.into_iter().map(one).collect())
}

fn search(context: &mut Context<'_>, command: &Command, form: Form) -> Answer {
    let source = command.arg(if form == Form::SearchStore { 2 } else { 1 });
    let zset = context.zset(source)?;
    let query = Query::parse(command, form, zset.as_deref())?;
    let found = zset.map_or_else(Vec::new, |zset| found(zset, &query));
    let Some((target, is_distance)) = query.store else {
        return Ok(reply(found, &query));
    };
    let mut result = ZSet::default();
    for one in &found {
        let score = if is_distance {
            one.metres / query.unit_metres
        } else {
            one.score
        };
        result.insert(&one.member, score);
    }
    context.store(command.arg(target), Value::ZSet(Box::new(result)));
    Ok(Reply::count(found.len()))
}

pub fn geosearch(context: &mut Context<'_>, command: &Command) -> Answer {
    search(context, command, Form::Search)
}

pub fn geosearchstore(context: &mut Context<'_>, command: &Command) -> Answer {
    search(context, command, Form::SearchStore)
}

pub fn georadius(context: &mut Context<'_>, command: &Command) -> Answer {
    search(context, command, Form::Radius(false))
}

pub fn georadius_ro(context: &mut Context<'_>, command: &Command) -> Answer {
    search(context, command, Form::Radius(true))
}

pub fn georadiusbymember(context: &mut Context<'_>, command: &Command) -> Answer {
    search(context, command, Form::RadiusByMember(false))
}

pub fn georadiusbymember_ro(context: &mut Context<'_>, command: &Command) -> Answer {
    search(context, command, Form::RadiusByMember(true))
}
