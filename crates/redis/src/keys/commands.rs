//! Being there, and all keys at once.

use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::keyspace::DATABASES;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

pub fn del(context: &mut Context<'_>, command: &Command) -> Answer {
    Ok(Reply::count(
        command
            .args_from(1)
            .filter(|key| context.remove(key))
            .count(),
    ))
}

pub fn exists(context: &mut Context<'_>, command: &Command) -> Answer {
    Ok(Reply::count(
        command
            .args_from(1)
            .filter(|key| context.exists(key))
            .count(),
    ))
}

pub fn kind(context: &mut Context<'_>, command: &Command) -> Answer {
    let entry = context.keyspace.find(context.db, command.arg(1));
    Ok(Reply::Simple(
        entry.map_or("none", |entry| entry.value.kind().name()),
    ))
}

pub fn dbsize(context: &mut Context<'_>, _command: &Command) -> Answer {
    Ok(Reply::count(context.keyspace.len(context.db)))
}

fn check_flush(command: &Command) -> Result<(), CommandError> {
    match command.len() {
        1 => Ok(()),
        2 if command.is_word(1, "ASYNC") || command.is_word(1, "SYNC") => Ok(()),
        _ => Err(CommandError::SYNTAX),
    }
}

pub fn flushdb(context: &mut Context<'_>, command: &Command) -> Answer {
    check_flush(command)?;
    context.keyspace.flush(context.db);
    Ok(Reply::OK)
}

pub fn flushall(context: &mut Context<'_>, command: &Command) -> Answer {
    check_flush(command)?;
    for db in 0..DATABASES {
        context.keyspace.flush(db);
    }
    Ok(Reply::OK)
}

pub fn time(context: &mut Context<'_>, _command: &Command) -> Answer {
    let now = context.now();
    let micros = now % 1000 * 1000 + u64::from(context.stamp.micros);
    let parts = [(now / 1000).to_string(), micros.to_string()];
    Ok(Reply::Array(parts.iter().map(Reply::bulk).collect()))
}

pub fn echo(_context: &mut Context<'_>, command: &Command) -> Answer {
    Ok(Reply::bulk(command.arg(1)))
}
