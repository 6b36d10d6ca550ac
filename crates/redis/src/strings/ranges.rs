//! Parts of a string.

use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::number;
use crate::resp::{Limits, Reply};

type Answer = Result<Reply, CommandError>;

/// The places that `start` and `end` (both inside, negative from the end) mean among `len`; `None`
/// when there are none.
pub fn clamp(start: i64, end: i64, len: usize) -> Option<(usize, usize)> {
    let total = i64::try_from(len).unwrap_or(i64::MAX);
    let from_end = |place: i64| {
        if place < 0 {
            total.saturating_add(place)
        } else {
            place
        }
    };
    let start = from_end(start).max(0);
    let end = from_end(end).min(total - 1);
    if start > end || start >= total {
        return None;
    }
    Some((usize::try_from(start).ok()?, usize::try_from(end).ok()?))
}

pub fn append(context: &mut Context<'_>, command: &Command) -> Answer {
    let more = command.arg(2);
    let value = context.string_or_new(command.arg(1))?;
    check_length(value.len().saturating_add(more.len()))?;
    value.extend_from_slice(more);
    Ok(Reply::count(value.len()))
}

fn check_length(bytes: usize) -> Result<(), CommandError> {
    if bytes > Limits::REDIS.bulk_bytes {
        return Err(CommandError::TOO_LONG);
    }
    Ok(())
}

pub fn strlen(context: &mut Context<'_>, command: &Command) -> Answer {
    let value = context.string(command.arg(1))?;
    Ok(Reply::count(value.map_or(0, |value| value.len())))
}

pub fn getrange(context: &mut Context<'_>, command: &Command) -> Answer {
    let (start, end) = (
        number::parse(command.arg(2))?,
        number::parse(command.arg(3))?,
    );
    let Some(value) = context.string(command.arg(1))? else {
        return Ok(Reply::bulk(""));
    };
    // Redis answers the first byte when both are before the start.
    let is_backwards = start < 0 && end < 0 && start > end;
    let end = end.max(-i64::try_from(value.len()).unwrap_or(i64::MAX));
    let part = clamp(start, end, value.len()).filter(|_| !is_backwards);
    Ok(part.map_or_else(
        || Reply::bulk(""),
        |(start, end)| Reply::bulk(&value[start..=end]),
    ))
}

pub fn setrange(context: &mut Context<'_>, command: &Command) -> Answer {
    let offset = number::parse(command.arg(2))?;
    let offset =
        usize::try_from(offset).map_err(|_| CommandError::text("ERR offset is out of range"))?;
    let (key, patch) = (command.arg(1), command.arg(3));
    let before = context.string(key)?.map_or(0, |value| value.len());
    if patch.is_empty() {
        return Ok(Reply::count(before));
    }
    let end = offset.saturating_add(patch.len());
    check_length(end)?;
    let value = context.string_or_new(key)?;
    if value.len() < end {
        value.resize(end, 0);
    }
    value[offset..end].copy_from_slice(patch);
    Ok(Reply::count(value.len()))
}
