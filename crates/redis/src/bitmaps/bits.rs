//! Single bits, and counting and finding them.

use super::{bit, is_in_bits, offset, set_bit};
use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::number;
use crate::resp::Reply;
use crate::strings::clamp;

type Answer = Result<Reply, CommandError>;

pub fn setbit(context: &mut Context<'_>, command: &Command) -> Answer {
    let place = offset(command.arg(2), 0)?;
    let is_set = match command.arg(3) {
        b"0" => false,
        b"1" => true,
        _ => {
            return Err(CommandError::text(
                "ERR bit is not an integer or out of range",
            ));
        }
    };
    let value = context.string_or_new(command.arg(1))?;
    let is_longer = value.len() <= place / 8;
    if is_longer {
        value.resize(place / 8 + 1, 0);
    }
    let before = bit(value, place);
    set_bit(value, place, is_set);
    if !is_longer && before == is_set {
        context.untouch(command.arg(1));
    }
    Ok(Reply::flag(before))
}

pub fn getbit(context: &mut Context<'_>, command: &Command) -> Answer {
    let place = offset(command.arg(2), 0)?;
    let value = context.string(command.arg(1))?;
    Ok(Reply::flag(value.is_some_and(|value| bit(value, place))))
}

/// Set bits from a place up to another one, which is outside.
fn count(value: &[u8], from: usize, until: usize) -> usize {
    let (first, last) = (from.div_ceil(8), until / 8);
    if first >= last {
        return (from..until).filter(|place| bit(value, *place)).count();
    }
    let ends = (from..first * 8).chain(last * 8..until);
    let inside: u32 = value[first..last]
        .iter()
        .map(|byte| byte.count_ones())
        .sum();
    usize::try_from(inside).unwrap_or(usize::MAX) + ends.filter(|place| bit(value, *place)).count()
}

pub fn bitcount(context: &mut Context<'_>, command: &Command) -> Answer {
    let in_bits = is_in_bits(command, 4)?;
    let range = match command.len() {
        2 => None,
        4 | 5 => Some((
            number::parse(command.arg(2))?,
            number::parse(command.arg(3))?,
        )),
        _ => return Err(CommandError::SYNTAX),
    };
    let Some(value) = context.string(command.arg(1))? else {
        return Ok(Reply::Integer(0));
    };
    let bits = value.len() * 8;
    let Some((start, end)) = range else {
        return Ok(Reply::count(count(value, 0, bits)));
    };
    Ok(Reply::count(
        bit_range(value, start, end, in_bits)
            .filter(|_| !(start < 0 && end < 0 && start > end))
            .map_or(0, |(from, until)| count(value, from, until)),
    ))
}

/// The bits that `start` and `end`, both inside, mean, the end outside.
fn bit_range(value: &[u8], start: i64, end: i64, in_bits: bool) -> Option<(usize, usize)> {
    let unit = if in_bits { 1 } else { 8 };
    // An end before the beginning is the beginning, as in Redis.
    let len = value.len() * 8 / unit;
    let end = end.max(-i64::try_from(len).unwrap_or(i64::MAX));
    let (start, end) = clamp(start, end, len)?;
    Some((start * unit, (end + 1) * unit))
}

pub fn bitpos(context: &mut Context<'_>, command: &Command) -> Answer {
    let wanted = match number::parse(command.arg(2))? {
        0 => false,
        1 => true,
        _ => return Err(CommandError::text("ERR The bit argument must be 1 or 0.")),
    };
    let in_bits = is_in_bits(command, 5)?;
    if command.len() > 6 {
        return Err(CommandError::SYNTAX);
    }
    let number = |place, other| {
        if place < command.len() {
            number::parse(command.arg(place))
        } else {
            Ok(other)
        }
    };
    let (start, end) = (number(3, 0)?, number(4, -1)?);
    let Some(value) = context.string(command.arg(1))? else {
        // What is not there is zeros without end.
        return Ok(Reply::Integer(if wanted { -1 } else { 0 }));
    };
    let Some((from, until)) = bit_range(value, start, end, in_bits) else {
        return Ok(Reply::Integer(-1));
    };
    Ok(match position(value, from, until, wanted) {
        Some(place) => Reply::count(place),
        // Behind the end there are zeros, unless the range says where it ends.
        None if !wanted && command.len() <= 4 => Reply::count(value.len() * 8),
        None => Reply::Integer(-1),
    })
}

/// The first bit that is as wanted, from a place up to another one, which is outside.
fn position(value: &[u8], from: usize, until: usize, wanted: bool) -> Option<usize> {
    let without = if wanted { 0x00 } else { 0xFF };
    let mut place = from;
    while place < until {
        if place.is_multiple_of(8) && place + 8 <= until && value[place / 8] == without {
            place += 8;
        } else if bit(value, place) == wanted {
            return Some(place);
        } else {
            place += 1;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bits_are_counted_and_found_as_one_by_one(
            value in prop::collection::vec(prop_oneof![Just(0_u8), Just(255), any::<u8>()], 0..12),
            start in -110..110_i64,
            end in -110..110_i64,
            in_bits: bool,
            wanted: bool,
        ) {
            let Some((from, until)) = bit_range(&value, start, end, in_bits) else {
                return Ok(());
            };
            let bits: Vec<bool> = (0..value.len() * 8).map(|place| bit(&value, place)).collect();
            let found = bits[from..until].iter().filter(|bit| **bit).count();
            prop_assert_eq!(count(&value, from, until), found);
            let first = (from..until).find(|place| bits[*place] == wanted);
            prop_assert_eq!(position(&value, from, until, wanted), first);
        }
    }
}
