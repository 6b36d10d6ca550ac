//! PFADD, PFCOUNT, PFMERGE.

use super::estimate;
use super::registers::{self, REGISTERS};
use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

/// The value under a key, if there is one.
fn existing<'a>(
    context: &'a mut Context<'_>,
    key: &[u8],
) -> Result<Option<&'a mut Vec<u8>>, CommandError> {
    let value = context.string(key)?;
    if let Some(value) = &value {
        registers::check(value)?;
    }
    Ok(value)
}

/// The value under a key, made when there is none; whether it is new.
fn existing_or_new<'a>(
    context: &'a mut Context<'_>,
    key: &[u8],
) -> Result<(&'a mut Vec<u8>, bool), CommandError> {
    let is_new = existing(context, key)?.is_none();
    let value = context.string_or_new(key)?;
    if is_new {
        *value = registers::empty();
    }
    Ok((value, is_new))
}

pub fn pfadd(context: &mut Context<'_>, command: &Command) -> Answer {
    let (value, is_new) = existing_or_new(context, command.arg(1))?;
    let mut is_changed = is_new;
    for element in command.args_from(2) {
        let (index, register) = estimate::register_of(element);
        is_changed |= registers::raise(value, index, register)?;
    }
    if is_changed {
        registers::forget_count(value);
    } else {
        context.untouch(command.arg(1));
    }
    Ok(Reply::flag(is_changed))
}

fn histogram(value: &[u8]) -> Result<[usize; 64], CommandError> {
    let mut counts = [0; 64];
    let mut zeros = REGISTERS;
    registers::each(value, &mut |_, register| {
        counts[usize::from(register)] += 1;
        zeros -= 1;
    })?;
    counts[0] = zeros;
    Ok(counts)
}

pub fn pfcount(context: &mut Context<'_>, command: &Command) -> Answer {
    if command.len() > 2 {
        return count_all(context, command);
    }
    let key = command.arg(1);
    let Some(value) = existing(context, key)? else {
        return Ok(Reply::Integer(0));
    };
    let reply = |count| Reply::Integer(i64::try_from(count).unwrap_or(i64::MAX));
    if let Some(count) = registers::known_count(value) {
        return Ok(reply(count));
    }
    let count = estimate::count(&histogram(value)?);
    registers::keep_count(value, count);
    context.touch(key);
    Ok(reply(count))
}

fn count_all(context: &mut Context<'_>, command: &Command) -> Answer {
    let mut highest = vec![0_u8; REGISTERS];
    for key in command.args_from(1) {
        take_highest(context, key, &mut highest)?;
    }
    let mut counts = [0; 64];
    for register in highest {
        counts[usize::from(register)] += 1;
    }
    let count = estimate::count(&counts);
    Ok(Reply::Integer(i64::try_from(count).unwrap_or(i64::MAX)))
}

/// Takes in the registers under a key that are higher; whether the value is dense.
fn take_highest(
    context: &mut Context<'_>,
    key: &[u8],
    highest: &mut [u8],
) -> Result<bool, CommandError> {
    let Some(value) = existing(context, key)? else {
        return Ok(false);
    };
    registers::each(value, &mut |index, register| {
        highest[index] = highest[index].max(register);
    })?;
    Ok(registers::is_dense(value))
}

pub fn pfmerge(context: &mut Context<'_>, command: &Command) -> Answer {
    let mut highest = vec![0_u8; REGISTERS];
    let mut is_dense = false;
    for key in command.args_from(1) {
        is_dense |= take_highest(context, key, &mut highest)?;
    }
    let (value, _) = existing_or_new(context, command.arg(1))?;
    if is_dense {
        registers::make_dense(value)?;
    }
    for (index, register) in highest.into_iter().enumerate() {
        if register > 0 {
            registers::raise(value, index, register)?;
        }
    }
    registers::forget_count(value);
    Ok(Reply::OK)
}
