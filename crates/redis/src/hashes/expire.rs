//! Fields that expire: HEXPIRE and its family, of Redis 7.4, and what of Redis 8.0 sets and reads them in one.

use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::number;
use crate::objects::Hash;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

/// Last time that a field may be given, in milliseconds since 1970, as in Redis.
const TIME_MAX_MILLIS: u64 = (1 << 46) - 1;

/// What is told of a field: there is none, it has no expiry, a condition was not met, it was changed, it was
/// deleted because its time is over.
const NO_FIELD: i64 = -2;
const NO_EXPIRY: i64 = -1;
const NOT_MET: i64 = 0;
const CHANGED: i64 = 1;
const DELETED: i64 = 2;

/// The place of the first of the fields that are named behind FIELDS, which stands at `place`, and their
/// number.
fn fields(
    command: &Command,
    place: usize,
    not_positive: &'static str,
) -> Result<usize, CommandError> {
    if !command.is_word(place, "FIELDS") {
        return Err(CommandError::text(
            "ERR Mandatory argument FIELDS is missing or not at the right position",
        ));
    }
    let count = number::integer(command.arg(place + 1));
    let count = count.and_then(|count| usize::try_from(count).ok());
    let count = count
        .filter(|count| *count > 0)
        .ok_or(CommandError::text(not_positive))?;
    let first = place + 2;
    if Some(count) != command.len().checked_sub(first) {
        return Err(CommandError::text(
            "ERR The `numfields` parameter must match the number of arguments",
        ));
    }
    assert!(first < command.len(), "there is a field behind its number");
    Ok(first)
}

const NOT_GREATER: &str = "ERR Parameter `numFields` should be greater than 0";
const NOT_POSITIVE: &str = "ERR Number of fields must be a positive integer";

/// A time that a field is given, in milliseconds since 1970.
fn time(command: &Command, place: usize, unit: u64, base: u64) -> Result<u64, CommandError> {
    let given = number::parse(command.arg(place))?;
    let given = u64::try_from(given)
        .map_err(|_| CommandError::text("ERR invalid expire time, must be >= 0"))?;
    let at = given.checked_mul(unit).and_then(|at| at.checked_add(base));
    at.filter(|at| *at <= TIME_MAX_MILLIS)
        .ok_or_else(|| CommandError::expire_time(command.name()))
}

/// When an expiry is set: what was there before decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Always,
    Without,
    With,
    Greater,
    Less,
}

impl Condition {
    fn of(command: &Command, place: usize) -> Self {
        let words = [
            ("NX", Self::Without),
            ("XX", Self::With),
            ("GT", Self::Greater),
            ("LT", Self::Less),
        ];
        let found = words.iter().find(|(word, _)| command.is_word(place, word));
        found.map_or(Self::Always, |(_, condition)| *condition)
    }

    /// Whether `at` may take the place of `before`; 0: no expiry.
    fn is_met(self, before: u64, at: u64) -> bool {
        match self {
            Self::Always => true,
            Self::Without => before == 0,
            Self::With => before > 0,
            Self::Greater => before > 0 && at > before,
            Self::Less => before == 0 || at < before,
        }
    }
}

fn set(context: &mut Context<'_>, command: &Command, unit: u64, is_relative: bool) -> Answer {
    let now = context.now();
    let key = command.arg(1);
    // A key of another type is refused before anything else.
    context.hash(key)?;
    let at = time(command, 2, unit, if is_relative { now } else { 0 })?;
    let condition = Condition::of(command, 3);
    let place = if condition == Condition::Always { 3 } else { 4 };
    let first = fields(command, place, NOT_GREATER)?;
    let Some(hash) = context.hash(key)? else {
        return Ok(no_fields(command, first));
    };
    let mut has_changed = false;
    let told = command.args_from(first).map(|field| {
        let outcome = match hash.expiry(field) {
            None => NO_FIELD,
            Some(before) if !condition.is_met(before, at) => NOT_MET,
            Some(_) if at <= now => {
                hash.remove(field);
                DELETED
            }
            Some(_) => {
                hash.set_expiry(field, at);
                CHANGED
            }
        };
        has_changed |= matches!(outcome, CHANGED | DELETED);
        Reply::Integer(outcome)
    });
    let told = told.collect();
    if has_changed {
        context.touch(key);
    }
    Ok(Reply::Array(told))
}

/// Without the hash there are none of its fields.
fn no_fields(command: &Command, first: usize) -> Reply {
    let fields = command.args_from(first);
    Reply::Array(fields.map(|_| Reply::Integer(NO_FIELD)).collect())
}

pub fn hexpire(context: &mut Context<'_>, command: &Command) -> Answer {
    set(context, command, 1000, true)
}

pub fn hpexpire(context: &mut Context<'_>, command: &Command) -> Answer {
    set(context, command, 1, true)
}

pub fn hexpireat(context: &mut Context<'_>, command: &Command) -> Answer {
    set(context, command, 1000, false)
}

pub fn hpexpireat(context: &mut Context<'_>, command: &Command) -> Answer {
    set(context, command, 1, false)
}

/// What the expiry of each field is, as seen by `show`.
fn told(context: &mut Context<'_>, command: &Command, show: fn(u64, u64) -> u64) -> Answer {
    let now = context.now();
    let hash = context.hash(command.arg(1))?;
    let first = fields(command, 2, NOT_POSITIVE)?;
    let told = command.args_from(first).map(|field| {
        let expiry = hash.as_ref().and_then(|hash| hash.expiry(field));
        Reply::Integer(match expiry {
            None => NO_FIELD,
            Some(0) => NO_EXPIRY,
            Some(at) => i64::try_from(show(at, now)).unwrap_or(i64::MAX),
        })
    });
    Ok(Reply::Array(told.collect()))
}

pub fn httl(context: &mut Context<'_>, command: &Command) -> Answer {
    told(context, command, |at, now| {
        at.saturating_sub(now).div_ceil(1000)
    })
}

pub fn hpttl(context: &mut Context<'_>, command: &Command) -> Answer {
    told(context, command, u64::saturating_sub)
}

pub fn hexpiretime(context: &mut Context<'_>, command: &Command) -> Answer {
    told(context, command, |at, _| at.div_ceil(1000))
}

pub fn hpexpiretime(context: &mut Context<'_>, command: &Command) -> Answer {
    told(context, command, |at, _| at)
}

pub fn hpersist(context: &mut Context<'_>, command: &Command) -> Answer {
    let key = command.arg(1);
    context.hash(key)?;
    let first = fields(command, 2, NOT_POSITIVE)?;
    let Some(hash) = context.hash(key)? else {
        return Ok(no_fields(command, first));
    };
    let mut has_changed = false;
    let told = command.args_from(first).map(|field| {
        let outcome = match hash.expiry(field) {
            None => NO_FIELD,
            Some(0) => NO_EXPIRY,
            Some(_) => {
                hash.set_expiry(field, 0);
                CHANGED
            }
        };
        has_changed |= outcome == CHANGED;
        Reply::Integer(outcome)
    });
    let told = told.collect();
    if has_changed {
        context.touch(key);
    }
    Ok(Reply::Array(told))
}

/// Values of fields, before what a command then does with them.
fn values(hash: &Hash, command: &Command, first: usize) -> Vec<Reply> {
    let fields = command.args_from(first);
    let values = fields.map(|field| Reply::bulk_or_null(hash.get(field)));
    values.collect()
}

fn no_values(command: &Command, first: usize) -> Reply {
    let fields = command.args_from(first);
    Reply::Array(fields.map(|_| Reply::Null).collect())
}

pub fn hgetdel(context: &mut Context<'_>, command: &Command) -> Answer {
    let key = command.arg(1);
    context.hash(key)?;
    let first = fields(command, 2, NOT_POSITIVE)?;
    let Some(hash) = context.hash(key)? else {
        return Ok(no_values(command, first));
    };
    // A field that is named twice is gone when it is named again.
    let mut has_changed = false;
    let told = command.args_from(first).map(|field| {
        let value = Reply::bulk_or_null(hash.get(field));
        has_changed |= hash.remove(field);
        value
    });
    let told = told.collect();
    if has_changed {
        context.touch(key);
    }
    Ok(Reply::Array(told))
}

/// What becomes of a field's expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expiry {
    /// Nothing was said.
    Unsaid,
    /// It stays.
    Kept,
    /// There is none.
    None,
    /// In milliseconds since 1970.
    At(u64),
}

/// The expiry that an option with a time gives, if there is one at `place`.
fn timed(command: &Command, place: usize, now: u64) -> Result<Option<Expiry>, CommandError> {
    let words = [
        ("EX", 1000, now),
        ("PX", 1, now),
        ("EXAT", 1000, 0),
        ("PXAT", 1, 0),
    ];
    let found = words.iter().find(|(word, ..)| command.is_word(place, word));
    let at = found.map(|(_, unit, base)| time(command, place + 1, *unit, *base));
    Ok(at.transpose()?.map(Expiry::At))
}

/// What HSETEX is told before its fields.
struct SetOptions {
    expiry: Expiry,
    /// Whether all fields must be there (FXX), or none (FNX).
    must_be_there: Option<bool>,
    /// The place of the first field.
    first: usize,
}

fn set_options(command: &Command, now: u64) -> Result<SetOptions, CommandError> {
    let (mut expiry, mut must_be_there, mut place) = (Expiry::Unsaid, None, 2);
    let is_word = |word: &str, place| command.is_word(place, word);
    while place < command.len() && !command.is_word(place, "FIELDS") {
        if is_word("FNX", place) || is_word("FXX", place) {
            if must_be_there.is_some() {
                return Err(CommandError::text(
                    "ERR Only one of FXX or FNX arguments can be specified",
                ));
            }
            must_be_there = Some(is_word("FXX", place));
            place += 1;
            continue;
        }
        let found = match timed(command, place, now)? {
            None if is_word("KEEPTTL", place) => Expiry::Kept,
            None => {
                let given = String::from_utf8_lossy(command.arg(place)).into_owned();
                return Err(CommandError::new(format!("ERR unknown argument: {given}")));
            }
            Some(found) => found,
        };
        if expiry != Expiry::Unsaid {
            return Err(CommandError::text(
                "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified",
            ));
        }
        expiry = found;
        place += if found == Expiry::Kept { 1 } else { 2 };
    }
    let first = place + 2;
    if command.len() <= first {
        return Err(CommandError::arity("hsetex"));
    }
    let count = number::parse(command.arg(place + 1))?;
    let count = usize::try_from(count).ok().filter(|count| *count > 0);
    let count = count.ok_or(CommandError::text("ERR invalid number of fields"))?;
    if count.checked_mul(2) != Some(command.len() - first) {
        return Err(CommandError::arity("hsetex"));
    }
    Ok(SetOptions {
        expiry,
        must_be_there,
        first,
    })
}

pub fn hgetex(context: &mut Context<'_>, command: &Command) -> Answer {
    let (key, now) = (command.arg(1), context.now());
    context.hash(key)?;
    let expiry = match timed(command, 2, now)? {
        None if command.is_word(2, "PERSIST") => Expiry::None,
        None => Expiry::Unsaid,
        Some(expiry) => expiry,
    };
    let place = match expiry {
        Expiry::Unsaid | Expiry::Kept => 2,
        Expiry::None => 3,
        Expiry::At(_) => 4,
    };
    let first = fields(command, place, NOT_POSITIVE)?;
    let Some(hash) = context.hash(key)? else {
        return Ok(no_values(command, first));
    };
    let told = values(hash, command, first);
    let mut has_changed = false;
    for field in command.args_from(first) {
        let Some(before) = hash.expiry(field) else {
            continue;
        };
        has_changed |= match expiry {
            Expiry::At(at) if at <= now => hash.remove(field),
            Expiry::At(at) => hash.set_expiry(field, at),
            Expiry::None => before > 0 && hash.set_expiry(field, 0),
            Expiry::Unsaid | Expiry::Kept => false,
        };
    }
    if has_changed {
        context.touch(key);
    }
    Ok(Reply::Array(told))
}

pub fn hsetex(context: &mut Context<'_>, command: &Command) -> Answer {
    let (key, now) = (command.arg(1), context.now());
    context.hash(key)?;
    let SetOptions {
        expiry,
        must_be_there,
        first,
    } = set_options(command, now)?;
    let pairs = || (first..command.len()).step_by(2);
    if let Some(must_be_there) = must_be_there {
        let hash = context.hash(key)?;
        let is_there = |place| {
            let hash = hash.as_ref();
            hash.is_some_and(|hash| hash.get(command.arg(place)).is_some())
        };
        if !pairs().all(|place| is_there(place) == must_be_there) {
            return Ok(Reply::Integer(0));
        }
    }
    let hash = context.hash_or_new(key)?;
    for place in pairs() {
        let (field, value) = (command.arg(place), command.arg(place + 1));
        match expiry {
            Expiry::Kept => _ = hash.update(field, value),
            Expiry::At(at) if at <= now => _ = hash.remove(field),
            Expiry::At(at) => {
                hash.insert(field, value);
                hash.set_expiry(field, at);
            }
            Expiry::Unsaid | Expiry::None => _ = hash.insert(field, value),
        }
    }
    Ok(Reply::Integer(1))
}
