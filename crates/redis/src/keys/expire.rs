//! Expiry.

use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::number;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

/// What a key's expiry is, as seen by `show`; -1 when it has none and -2 when there is no key.
fn told(context: &mut Context<'_>, command: &Command, show: fn(u64, u64) -> u64) -> Answer {
    let now = context.now();
    let entry = context.keyspace.find(context.db, command.arg(1));
    Ok(Reply::Integer(match entry.map(|entry| entry.expires) {
        None => -2,
        Some(0) => -1,
        Some(at) => i64::try_from(show(at, now)).unwrap_or(i64::MAX),
    }))
}

pub fn ttl(context: &mut Context<'_>, command: &Command) -> Answer {
    told(context, command, |at, now| {
        (at - now).saturating_add(500) / 1000
    })
}

pub fn pttl(context: &mut Context<'_>, command: &Command) -> Answer {
    told(context, command, |at, now| at - now)
}

pub fn expiretime(context: &mut Context<'_>, command: &Command) -> Answer {
    told(context, command, |at, _| at.saturating_add(500) / 1000)
}

pub fn pexpiretime(context: &mut Context<'_>, command: &Command) -> Answer {
    told(context, command, |at, _| at)
}

#[derive(Default)]
struct Conditions {
    without: bool,
    with: bool,
    greater: bool,
    less: bool,
}

fn conditions(command: &Command) -> Result<Conditions, CommandError> {
    let mut found = Conditions::default();
    for place in 3..command.len() {
        match () {
            () if command.is_word(place, "NX") => found.without = true,
            () if command.is_word(place, "XX") => found.with = true,
            () if command.is_word(place, "GT") => found.greater = true,
            () if command.is_word(place, "LT") => found.less = true,
            () => {
                let option = String::from_utf8_lossy(command.arg(place));
                return Err(CommandError::new(format!(
                    "ERR Unsupported option {option}"
                )));
            }
        }
    }
    if found.without && (found.with || found.greater || found.less) {
        return Err(CommandError::text(
            "ERR NX and XX, GT or LT options at the same time are not compatible",
        ));
    }
    if found.greater && found.less {
        return Err(CommandError::text(
            "ERR GT and LT options at the same time are not compatible",
        ));
    }
    Ok(found)
}

fn set(context: &mut Context<'_>, command: &Command, unit: i64, is_relative: bool) -> Answer {
    let conditions = conditions(command)?;
    let wrong = || CommandError::expire_time(command.name());
    let time = number::parse(command.arg(2))?;
    let base = if is_relative {
        i64::try_from(context.now()).unwrap_or(i64::MAX)
    } else {
        0
    };
    let at = time
        .checked_mul(unit)
        .and_then(|time| time.checked_add(base))
        .ok_or_else(wrong)?;
    let (db, key) = (context.db, command.arg(1));
    let Some(entry) = context.keyspace.find(db, key) else {
        return Ok(Reply::Integer(0));
    };
    let before = entry.expires;
    let at = u64::try_from(at).unwrap_or(1).max(1);
    let is_refused = (conditions.without && before > 0)
        || (conditions.with && before == 0)
        || (conditions.greater && (before == 0 || at <= before))
        || (conditions.less && before > 0 && at >= before);
    if is_refused {
        return Ok(Reply::Integer(0));
    }
    if at <= context.now() {
        context.remove(key);
    } else {
        context.keyspace.set_expiry(db, key, at);
    }
    Ok(Reply::Integer(1))
}

pub fn expire(context: &mut Context<'_>, command: &Command) -> Answer {
    set(context, command, 1000, true)
}

pub fn pexpire(context: &mut Context<'_>, command: &Command) -> Answer {
    set(context, command, 1, true)
}

pub fn expireat(context: &mut Context<'_>, command: &Command) -> Answer {
    set(context, command, 1000, false)
}

pub fn pexpireat(context: &mut Context<'_>, command: &Command) -> Answer {
    set(context, command, 1, false)
}

pub fn persist(context: &mut Context<'_>, command: &Command) -> Answer {
    let (db, key) = (context.db, command.arg(1));
    let has_expiry = context
        .keyspace
        .find(db, key)
        .is_some_and(|entry| entry.expires > 0);
    if has_expiry {
        context.keyspace.set_expiry(db, key, 0);
    }
    Ok(Reply::flag(has_expiry))
}
