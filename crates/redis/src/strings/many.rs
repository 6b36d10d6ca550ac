//! Many keys at once.

use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::keyspace::Value;
use crate::number;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

/// Product of lengths up to which LCS is worked out: its table is in memory.
const LCS_CELLS_MAX: usize = 64 << 20;

pub fn mget(context: &mut Context<'_>, command: &Command) -> Answer {
    let values = command.args_from(1).map(|key| match context.string(key) {
        Ok(value) => Reply::bulk_or_null(value.map(|value| value.as_slice())),
        Err(_) => Reply::Null,
    });
    Ok(Reply::Array(values.collect()))
}

pub fn mset(context: &mut Context<'_>, command: &Command) -> Answer {
    if command.len().is_multiple_of(2) {
        return Err(CommandError::arity("mset"));
    }
    for place in (1..command.len()).step_by(2) {
        let value = Value::Str(command.arg(place + 1).to_vec());
        context.keyspace.put(context.db, command.arg(place), value);
    }
    Ok(Reply::OK)
}

pub fn msetnx(context: &mut Context<'_>, command: &Command) -> Answer {
    if command.len().is_multiple_of(2) {
        return Err(CommandError::arity("msetnx"));
    }
    let mut keys = (1..command.len()).step_by(2);
    if keys.any(|place| context.exists(command.arg(place))) {
        return Ok(Reply::Integer(0));
    }
    mset(context, command)?;
    Ok(Reply::Integer(1))
}

#[derive(Default)]
struct LcsOptions {
    is_length: bool,
    is_index: bool,
    with_lengths: bool,
    length_min: usize,
}

fn lcs_options(command: &Command) -> Result<LcsOptions, CommandError> {
    let mut options = LcsOptions::default();
    let mut place = 3;
    while place < command.len() {
        if command.is_word(place, "LEN") {
            options.is_length = true;
        } else if command.is_word(place, "IDX") {
            options.is_index = true;
        } else if command.is_word(place, "WITHMATCHLEN") {
            options.with_lengths = true;
        } else if command.is_word(place, "MINMATCHLEN") && place + 1 < command.len() {
            place += 1;
            let length = number::parse(command.arg(place))?;
            options.length_min = usize::try_from(length).unwrap_or(0);
        } else {
            return Err(CommandError::SYNTAX);
        }
        place += 1;
    }
    if options.is_length && options.is_index {
        return Err(CommandError::text(
            "ERR If you want both the length and indexes, please just use IDX.",
        ));
    }
    Ok(options)
}

pub fn lcs(context: &mut Context<'_>, command: &Command) -> Answer {
    let options = lcs_options(command)?;
    let mut value = |place| match context.string(command.arg(place)) {
        Ok(value) => Ok(value.cloned().unwrap_or_default()),
        Err(_) => Err(CommandError::text(
            "ERR The specified keys must contain string values",
        )),
    };
    let (one, other) = (value(1)?, value(2)?);
    let width = other.len() + 1;
    if (one.len() + 1).saturating_mul(width) > LCS_CELLS_MAX {
        return Err(CommandError::text(
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
        ));
    }
    let mut table = vec![0_u32; (one.len() + 1) * width];
    for i in 1..=one.len() {
        for j in 1..=other.len() {
            table[i * width + j] = if one[i - 1] == other[j - 1] {
                table[(i - 1) * width + j - 1] + 1
            } else {
                table[(i - 1) * width + j].max(table[i * width + j - 1])
            };
        }
    }
    Ok(lcs_reply(&one, &other, &table, &options))
}

fn lcs_reply(one: &[u8], other: &[u8], table: &[u32], options: &LcsOptions) -> Reply {
    let width = other.len() + 1;
    let length = table.last().copied().unwrap_or(0);
    if options.is_length {
        return Reply::Integer(length.into());
    }
    let (mut i, mut j) = (one.len(), other.len());
    let mut common = Vec::new();
    let mut matches: Vec<(usize, usize, usize)> = Vec::new();
    while i > 0 && j > 0 {
        if one[i - 1] == other[j - 1] {
            common.push(one[i - 1]);
            match matches.last_mut() {
                Some((a, b, length)) if *a == i && *b == j => {
                    (*a, *b, *length) = (i - 1, j - 1, *length + 1);
                }
                _ => matches.push((i - 1, j - 1, 1)),
            }
            (i, j) = (i - 1, j - 1);
        } else if table[(i - 1) * width + j] > table[i * width + j - 1] {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    if !options.is_index {
        common.reverse();
        return Reply::Bulk(common);
    }
    let range = |from: usize, length: usize| {
        Reply::Array(vec![Reply::count(from), Reply::count(from + length - 1)])
    };
    let long = matches
        .iter()
        .filter(|(_, _, length)| *length >= options.length_min);
    let found = long.map(|&(a, b, length)| {
        let mut parts = vec![range(a, length), range(b, length)];
        if options.with_lengths {
            parts.push(Reply::count(length));
        }
        Reply::Array(parts)
    });
    Reply::Map(vec![
        (Reply::bulk("matches"), Reply::Array(found.collect())),
        (Reply::bulk("len"), Reply::Integer(length.into())),
    ])
}
