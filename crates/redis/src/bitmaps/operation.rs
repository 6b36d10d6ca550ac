//! BITOP.

use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::keyspace::Value;
use crate::resp::Reply;

pub fn bitop(context: &mut Context<'_>, command: &Command) -> Result<Reply, CommandError> {
    let is_not = command.is_word(1, "NOT");
    let combine: fn(u8, u8) -> u8 = match () {
        () if command.is_word(1, "AND") => |one, other| one & other,
        () if command.is_word(1, "OR") => |one, other| one | other,
        () if command.is_word(1, "XOR") || is_not => |one, other| one ^ other,
        () => return Err(CommandError::SYNTAX),
    };
    if is_not && command.len() != 4 {
        return Err(CommandError::text(
            "ERR BITOP NOT must be called with a single source key.",
        ));
    }
    let mut values = Vec::with_capacity(command.len() - 3);
    for key in command.args_from(3) {
        values.push(context.string(key)?.cloned().unwrap_or_default());
    }
    let length = values.iter().map(Vec::len).max().unwrap_or(0);
    let mut values = values.into_iter();
    let mut result = values.next().unwrap_or_default();
    result.resize(length, 0);
    for value in values {
        // What is shorter has zeros behind its end.
        let padded = value.into_iter().chain(std::iter::repeat(0));
        for (byte, other) in result.iter_mut().zip(padded) {
            *byte = combine(*byte, other);
        }
    }
    if is_not {
        for byte in &mut result {
            *byte = !*byte;
        }
    }
    let target = command.arg(2);
    if result.is_empty() {
        context.remove(target);
    } else {
        context.store(target, Value::Str(result));
    }
    Ok(Reply::count(length))
}
