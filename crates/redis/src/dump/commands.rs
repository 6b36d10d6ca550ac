//! DUMP, RESTORE.

use super::{payload, read, verified};
use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::number;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

pub fn dump(context: &mut Context<'_>, command: &Command) -> Answer {
    let Some(entry) = context.keyspace.look_up(context.db, command.arg(1)) else {
        return Ok(Reply::Null);
    };
    if entry.value.is_cold() {
        return Err(CommandError::text(
            "LOADING a value of this command is in the store only",
        ));
    }
    let payload =
        payload(&entry.value).ok_or(CommandError::text("ERR this value cannot be dumped"))?;
    Ok(Reply::Bulk(payload))
}

#[derive(Default)]
struct Options {
    replaces: bool,
    is_absolute: bool,
}

fn options(command: &Command) -> Result<Options, CommandError> {
    let mut options = Options::default();
    let mut place = 4;
    while place < command.len() {
        let has_more = place + 1 < command.len();
        // How long ago or how often a key was used is not kept.
        let unused = |max: i64, refused: &'static str| {
            let given = number::parse(command.arg(place + 1))?;
            (0..=max)
                .contains(&given)
                .then_some(())
                .ok_or(CommandError::text(refused))
        };
        match () {
            () if command.is_word(place, "REPLACE") => options.replaces = true,
            () if command.is_word(place, "ABSTTL") => options.is_absolute = true,
            () if has_more && command.is_word(place, "IDLETIME") => {
                unused(i64::MAX, "ERR Invalid IDLETIME value, must be >= 0")?;
                place += 1;
            }
            () if has_more && command.is_word(place, "FREQ") => {
                unused(255, "ERR Invalid FREQ value, must be >= 0 and <= 255")?;
                place += 1;
            }
            () => return Err(CommandError::SYNTAX),
        }
        place += 1;
    }
    Ok(options)
}

pub fn restore(context: &mut Context<'_>, command: &Command) -> Answer {
    let options = options(command)?;
    let key = command.arg(1);
    if !options.replaces && context.exists(key) {
        return Err(CommandError::text(
            "BUSYKEY Target key name already exists.",
        ));
    }
    let ttl = number::parse(command.arg(2))?;
    let ttl = u64::try_from(ttl)
        .map_err(|_| CommandError::text("ERR Invalid TTL value, must be >= 0"))?;
    let bytes = verified(command.arg(3)).ok_or(CommandError::text(
        "ERR DUMP payload version or checksum are wrong",
    ))?;
    let value = read::value(bytes).ok_or(CommandError::text("ERR Bad data format"))?;
    let now = context.now();
    let expires = match ttl {
        0 => 0,
        at if options.is_absolute => at,
        millis => now.saturating_add(millis),
    };
    if expires > 0 && expires <= now {
        context.remove(key);
        return Ok(Reply::OK);
    }
    context.store(key, value);
    if expires > 0 {
        context.keyspace.set_expiry(context.db, key, expires);
    }
    Ok(Reply::OK)
}
