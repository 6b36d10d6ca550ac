//! EVAL, EVALSHA, SCRIPT.

use super::running::{self, Caller};
use crate::command::Command;
use crate::error::CommandError;
use crate::number;
use crate::resp::Reply;
use crate::scripts::cache::Script;
use crate::scripts::interpreter::ScriptEntry;
use crate::server::Call;

type Answer = Result<Reply, CommandError>;

/// No script has the name that EVALSHA gives.
pub const NO_SCRIPT: CommandError =
    CommandError::text("NOSCRIPT No matching script. Please use EVAL.");

pub fn eval(call: &mut Call<'_>, command: &Command) -> Answer {
    by_text(call, command, false)
}

pub fn eval_ro(call: &mut Call<'_>, command: &Command) -> Answer {
    by_text(call, command, true)
}

pub fn evalsha(call: &mut Call<'_>, command: &Command) -> Answer {
    by_name(call, command, false)
}

pub fn evalsha_ro(call: &mut Call<'_>, command: &Command) -> Answer {
    by_name(call, command, true)
}

/// How many of the arguments behind the number of keys are keys.
pub(super) fn keys_of(command: &Command) -> Result<usize, CommandError> {
    let told = number::parse(command.arg(2))?;
    let keys = usize::try_from(told)
        .map_err(|_| CommandError::text("ERR Number of keys can't be negative"))?;
    if keys > command.len() - 3 {
        return Err(CommandError::text(
            "ERR Number of keys can't be greater than number of args",
        ));
    }
    Ok(keys)
}

fn by_text(call: &mut Call<'_>, command: &Command, is_read_only: bool) -> Answer {
    let keys = keys_of(command)?;
    let script = Script::of(command.arg(1))?;
    call.server.scripts.remember(&script)?;
    run(call, command, &script, keys, is_read_only)
}

fn by_name(call: &mut Call<'_>, command: &Command, is_read_only: bool) -> Answer {
    let keys = keys_of(command)?;
    let script = call
        .server
        .scripts
        .cache
        .find(command.arg(1))
        .ok_or(NO_SCRIPT)?;
    run(call, command, &script, keys, is_read_only)
}

fn run(
    call: &mut Call<'_>,
    command: &Command,
    script: &Script,
    keys: usize,
    is_read_only: bool,
) -> Answer {
    let words: Vec<&[u8]> = command.args_from(3).collect();
    let (keys, args) = words.split_at(keys);
    let caller = Caller {
        id: call.id,
        stamp: call.stamp,
        is_read_only,
        host: &mut *call.host,
    };
    let arguments = (keys, args);
    let (reply, effects) = running::run(call.server, caller, script, ScriptEntry::Whole, arguments);
    call.effects.append(effects);
    Ok(reply)
}

pub fn script(call: &mut Call<'_>, command: &Command) -> Answer {
    let word = command.arg(1).to_ascii_uppercase();
    let arity = |name: &str| Err(CommandError::arity(&format!("script|{name}")));
    match (word.as_slice(), command.len()) {
        (b"LOAD", 3) => {
            let script = Script::of(command.arg(2))?;
            call.server.scripts.keep(&script)?;
            Ok(Reply::bulk(script.name.as_bytes()))
        }
        (b"LOAD", _) => arity("load"),
        (b"EXISTS", 3..) => {
            let cache = &call.server.scripts.cache;
            let known = command
                .args_from(2)
                .map(|name| Reply::flag(cache.find(name).is_some()));
            Ok(Reply::Array(known.collect()))
        }
        (b"EXISTS", _) => arity("exists"),
        (b"FLUSH", 2 | 3) => {
            if command.len() == 3 && !command.is_word(2, "SYNC") && !command.is_word(2, "ASYNC") {
                return Err(CommandError::text(
                    "ERR SCRIPT FLUSH only support SYNC|ASYNC option",
                ));
            }
            call.server.scripts.clear();
            Ok(Reply::OK)
        }
        (b"FLUSH", _) => arity("flush"),
        (b"KILL", 2) => call.server.kill_script(),
        (b"KILL", _) => arity("kill"),
        _ => Err(CommandError::new(format!(
            "ERR unknown subcommand '{}'. Try SCRIPT HELP.",
            String::from_utf8_lossy(command.arg(1))
        ))),
    }
}
