//! GEOADD, GEOPOS, GEODIST, GEOHASH.

use super::place::{self, GeoPlace};
use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

pub fn geoadd(context: &mut Context<'_>, command: &Command) -> Answer {
    let mut place = 2;
    while ["NX", "XX", "CH"]
        .iter()
        .any(|word| command.is_word(place, word))
    {
        place += 1;
    }
    let options: Vec<&[u8]> = (2..place).map(|place| command.arg(place)).collect();
    let has = |word: &[u8]| {
        options
            .iter()
            .any(|option| option.eq_ignore_ascii_case(word))
    };
    let given = command.len() - place;
    if given == 0 || !given.is_multiple_of(3) || (has(b"NX") && has(b"XX")) {
        return Err(CommandError::SYNTAX);
    }
    // A member's place is its score: the rest is ZADD.
    let mut words: Vec<Vec<u8>> = vec![b"ZADD".to_vec(), command.arg(1).to_vec()];
    words.extend(options.iter().map(|option| option.to_vec()));
    for at in (place..command.len()).step_by(3) {
        let place = GeoPlace::parse(command.arg(at), command.arg(at + 1))?;
        words.push(place.bits().to_string().into_bytes());
        words.push(command.arg(at + 2).to_vec());
    }
    crate::zsets::zadd(context, &Command::of(&words))
}

/// A place as a reply.
pub fn place_reply(place: GeoPlace) -> Reply {
    Reply::Array(vec![
        Reply::LongDouble(place.longitude),
        Reply::LongDouble(place.latitude),
    ])
}

/// A distance as a reply.
pub fn distance_reply(distance: f64) -> Reply {
    Reply::bulk(format!("{distance:.4}"))
}

pub fn geopos(context: &mut Context<'_>, command: &Command) -> Answer {
    let zset = context.zset(command.arg(1))?;
    let places = command.args_from(2).map(|member| {
        let score = zset.as_ref().and_then(|zset| zset.score(member));
        score.map_or(Reply::NullArray, |score| {
            place_reply(GeoPlace::of_score(score))
        })
    });
    Ok(Reply::Array(places.collect()))
}

pub fn geodist(context: &mut Context<'_>, command: &Command) -> Answer {
    let metres = match command.len() {
        4 => 1.0,
        5 => place::metres_of(command.arg(4))?,
        _ => return Err(CommandError::SYNTAX),
    };
    let Some(zset) = context.zset(command.arg(1))? else {
        return Ok(Reply::Null);
    };
    let place = |at| zset.score(command.arg(at)).map(GeoPlace::of_score);
    Ok(match (place(2), place(3)) {
        (Some(one), Some(other)) => distance_reply(one.metres_to(other) / metres),
        _ => Reply::Null,
    })
}

pub fn geohash(context: &mut Context<'_>, command: &Command) -> Answer {
    let zset = context.zset(command.arg(1))?;
    let hashes = command.args_from(2).map(|member| {
        let score = zset.as_ref().and_then(|zset| zset.score(member));
        score.map_or(Reply::Null, |score| {
            Reply::Bulk(GeoPlace::of_score(score).letters())
        })
    });
    Ok(Reply::Array(hashes.collect()))
}
