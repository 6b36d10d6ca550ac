//! SET and its kin.

use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::keyspace::Value;
use crate::number;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

/// A time limit among the options of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expiry {
    /// As it was, or none.
    None,
    /// KEEPTTL.
    Keep,
    /// PERSIST.
    Never,
    /// Milliseconds since 1970.
    At(u64),
}

/// Milliseconds since 1970 of a time in `unit` milliseconds, from now on or absolute.
fn expiry_millis(text: &[u8], unit: i64, base: u64, name: &[u8]) -> Result<u64, CommandError> {
    let wrong = || CommandError::expire_time(name);
    let time = number::parse(text)?;
    if time <= 0 {
        return Err(wrong());
    }
    let base = i64::try_from(base).map_err(|_| wrong())?;
    let at = time
        .checked_mul(unit)
        .and_then(|time| time.checked_add(base));
    at.and_then(|at| u64::try_from(at).ok()).ok_or_else(wrong)
}

/// An option of expiry at `place`; whether there is one.
fn expiry(
    context: &Context<'_>,
    command: &Command,
    place: usize,
    found: &mut Expiry,
) -> Result<bool, CommandError> {
    let now = context.now();
    for (word, unit, base) in [
        ("EX", 1000, now),
        ("PX", 1, now),
        ("EXAT", 1000, 0),
        ("PXAT", 1, 0),
    ] {
        if command.is_word(place, word) {
            if *found != Expiry::None || place + 1 >= command.len() {
                return Err(CommandError::SYNTAX);
            }
            let at = expiry_millis(command.arg(place + 1), unit, base, command.name())?;
            *found = Expiry::At(at);
            return Ok(true);
        }
    }
    Ok(false)
}

pub fn get(context: &mut Context<'_>, command: &Command) -> Answer {
    let value = context.string(command.arg(1))?;
    Ok(Reply::bulk_or_null(value.map(|value| value.as_slice())))
}

/// Conditions and what is answered.
#[derive(Default)]
struct SetOptions {
    only_new: bool,
    only_old: bool,
    gets: bool,
}

pub fn set(context: &mut Context<'_>, command: &Command) -> Answer {
    let key = command.arg(1);
    if command.len() == 3 {
        put(context, key, command.arg(2), Expiry::None);
        return Ok(Reply::OK);
    }
    let (options, expiry) = set_options(context, command)?;
    let before = if options.gets {
        context.string(key)?.cloned()
    } else {
        None
    };
    let exists = context.exists(key);
    if (options.only_new && exists) || (options.only_old && !exists) {
        return Ok(if options.gets {
            Reply::bulk_or_null(before.as_deref())
        } else {
            Reply::Null
        });
    }
    put(context, key, command.arg(2), expiry);
    Ok(if options.gets {
        Reply::bulk_or_null(before.as_deref())
    } else {
        Reply::OK
    })
}

/// Whether a SET gives back the value that it replaces.
pub(crate) fn gives_back(command: &Command) -> bool {
    (3..command.len()).any(|place| command.is_word(place, "GET"))
}

fn set_options(
    context: &Context<'_>,
    command: &Command,
) -> Result<(SetOptions, Expiry), CommandError> {
    let mut options = SetOptions::default();
    let mut until = Expiry::None;
    let mut place = 3;
    while place < command.len() {
        if command.is_word(place, "NX") && !options.only_old {
            options.only_new = true;
        } else if command.is_word(place, "XX") && !options.only_new {
            options.only_old = true;
        } else if command.is_word(place, "GET") {
            options.gets = true;
        } else if command.is_word(place, "KEEPTTL") && until == Expiry::None {
            until = Expiry::Keep;
        } else if expiry(context, command, place, &mut until)? {
            place += 1;
        } else {
            return Err(CommandError::SYNTAX);
        }
        place += 1;
    }
    Ok((options, until))
}

fn put(context: &mut Context<'_>, key: &[u8], value: &[u8], expiry: Expiry) {
    let (db, keyspace) = (context.db, &mut *context.keyspace);
    let kept = match expiry {
        Expiry::Keep => keyspace.find(db, key).map_or(0, |entry| entry.expires),
        Expiry::At(at) => at,
        Expiry::None | Expiry::Never => 0,
    };
    keyspace.put(db, key, Value::Str(value.to_vec()));
    if kept > 0 {
        keyspace.set_expiry(db, key, kept);
        // A time that is over already: the key is gone at once.
        keyspace.find(db, key);
    }
}

pub fn setnx(context: &mut Context<'_>, command: &Command) -> Answer {
    let is_new = !context.exists(command.arg(1));
    if is_new {
        put(context, command.arg(1), command.arg(2), Expiry::None);
    }
    Ok(Reply::flag(is_new))
}

fn set_for(context: &mut Context<'_>, command: &Command, unit: i64) -> Answer {
    let at = expiry_millis(command.arg(2), unit, context.now(), command.name())?;
    put(context, command.arg(1), command.arg(3), Expiry::At(at));
    Ok(Reply::OK)
}

pub fn setex(context: &mut Context<'_>, command: &Command) -> Answer {
    set_for(context, command, 1000)
}

pub fn psetex(context: &mut Context<'_>, command: &Command) -> Answer {
    set_for(context, command, 1)
}

pub fn getset(context: &mut Context<'_>, command: &Command) -> Answer {
    let before = context.string(command.arg(1))?.cloned();
    put(context, command.arg(1), command.arg(2), Expiry::None);
    Ok(Reply::bulk_or_null(before.as_deref()))
}

pub fn getdel(context: &mut Context<'_>, command: &Command) -> Answer {
    let before = context.string(command.arg(1))?.cloned();
    context.remove(command.arg(1));
    Ok(Reply::bulk_or_null(before.as_deref()))
}

pub fn getex(context: &mut Context<'_>, command: &Command) -> Answer {
    let mut until = Expiry::None;
    let mut place = 2;
    while place < command.len() {
        if command.is_word(place, "PERSIST") && until == Expiry::None {
            until = Expiry::Never;
        } else if expiry(context, command, place, &mut until)? {
            place += 1;
        } else {
            return Err(CommandError::SYNTAX);
        }
        place += 1;
    }
    let key = command.arg(1);
    let Some(value) = context.string(key)?.cloned() else {
        return Ok(Reply::Null);
    };
    let db = context.db;
    match until {
        Expiry::At(at) => {
            context.keyspace.set_expiry(db, key, at);
            context.keyspace.find(db, key);
        }
        Expiry::Never => context.keyspace.set_expiry(db, key, 0),
        Expiry::None | Expiry::Keep => {}
    }
    Ok(Reply::Bulk(value))
}
