//! SCAN and its kin, and random choices.
//!
//! Keys, fields and members have places that only removals change: the last one takes the place of
//! the one removed. A cursor counts down from the last place, so that what is moved by a removal is
//! either moved among what is still to come, or was shown already: who is there from the start of an
//! iteration to its end is shown.

use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::glob;
use crate::number::{self, Random};
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

/// Elements up to which a collection is shown at once, as Redis does with packed ones.
const WHOLE_MAX: usize = 128;
/// Choices with repetition that one command may ask for.
const CHOICES_MAX: u64 = 1 << 30;

/// MATCH, COUNT and TYPE.
pub struct ScanOptions {
    pattern: Option<Vec<u8>>,
    count: usize,
    kind: Option<Vec<u8>>,
}

/// A cursor's number.
pub fn cursor(text: &[u8]) -> Result<usize, CommandError> {
    let cursor = number::integer(text).and_then(|cursor| usize::try_from(cursor).ok());
    cursor.ok_or(CommandError::text("ERR invalid cursor"))
}

impl ScanOptions {
    /// The options from a place on.
    pub fn parse(command: &Command, from: usize) -> Result<Self, CommandError> {
        let mut options = Self {
            pattern: None,
            count: 10,
            kind: None,
        };
        for place in (from..command.len()).step_by(2) {
            if place + 1 >= command.len() {
                return Err(CommandError::SYNTAX);
            }
            let argument = command.arg(place + 1);
            if command.is_word(place, "COUNT") {
                let count = usize::try_from(number::parse(argument)?).unwrap_or(0);
                if count == 0 {
                    return Err(CommandError::SYNTAX);
                }
                options.count = count;
            } else if command.is_word(place, "MATCH") {
                options.pattern = Some(argument.to_vec());
            } else if command.is_word(place, "TYPE") && from == 2 {
                options.kind = Some(argument.to_ascii_lowercase());
            } else {
                return Err(CommandError::SYNTAX);
            }
        }
        Ok(options)
    }

    /// Whether a name is to be shown.
    pub fn matches(&self, name: &[u8]) -> bool {
        self.pattern
            .as_ref()
            .is_none_or(|pattern| glob::matches(pattern, name))
    }

    /// The places a call looks at, and the next cursor, of a collection.
    pub fn places(&self, cursor: usize, len: usize) -> (usize, std::ops::Range<usize>) {
        if len <= WHOLE_MAX && cursor == 0 {
            return (0, 0..len);
        }
        self.some_places(cursor, len)
    }

    fn some_places(&self, cursor: usize, len: usize) -> (usize, std::ops::Range<usize>) {
        let end = if cursor == 0 { len } else { cursor.min(len) };
        let start = end.saturating_sub(self.count);
        (start, start..end)
    }
}

/// What SCAN and its kin answer.
pub fn page(next: usize, found: Vec<Reply>) -> Reply {
    Reply::Array(vec![Reply::bulk(next.to_string()), Reply::Array(found)])
}

/// Places among `len`, which is not 0: `count` different ones, or, when it is negative, that many.
pub fn choices(random: &mut Random, len: usize, count: i64) -> Result<Vec<usize>, CommandError> {
    if count < 0 {
        if count.unsigned_abs() > CHOICES_MAX {
            return Err(CommandError::text("ERR value is out of range"));
        }
        return Ok((0..count.unsigned_abs())
            .map(|_| random.below(len))
            .collect());
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(len);
    let mut places: Vec<usize> = (0..len).collect();
    if count < len {
        for chosen in 0..count {
            let other = chosen + random.below(len - chosen);
            places.swap(chosen, other);
        }
        places.truncate(count);
    }
    Ok(places)
}

pub fn scan(context: &mut Context<'_>, command: &Command) -> Answer {
    let (cursor, options) = (cursor(command.arg(1))?, ScanOptions::parse(command, 2)?);
    let (db, now) = (context.db, context.now());
    let (next, places) = options.some_places(cursor, context.keyspace.len(db));
    let all = places.filter_map(|place| context.keyspace.at(db, place));
    let found = all.filter(|(key, entry)| {
        let kind = entry.value.kind().name().as_bytes();
        !entry.is_over(now)
            && options.kind.as_ref().is_none_or(|wanted| wanted == kind)
            && options.matches(key)
    });
    let found = found.map(|(key, _)| Reply::bulk(key)).collect();
    Ok(page(next, found))
}

pub fn keys(context: &mut Context<'_>, command: &Command) -> Answer {
    let (db, now) = (context.db, context.now());
    let all = (0..context.keyspace.len(db)).filter_map(|place| context.keyspace.at(db, place));
    let found =
        all.filter(|(key, entry)| !entry.is_over(now) && glob::matches(command.arg(1), key));
    Ok(Reply::Array(
        found.map(|(key, _)| Reply::bulk(key)).collect(),
    ))
}

pub fn randomkey(context: &mut Context<'_>, _command: &Command) -> Answer {
    const TRIES: usize = 100;
    let (db, now) = (context.db, context.now());
    for _ in 0..TRIES {
        let len = context.keyspace.len(db);
        if len == 0 {
            return Ok(Reply::Null);
        }
        let place = context.random.below(len);
        match context.keyspace.at(db, place) {
            Some((key, entry)) if !entry.is_over(now) => return Ok(Reply::bulk(key)),
            _ => {}
        }
    }
    Ok(Reply::Null)
}
