//! Bits of strings: the first one is the highest of the first byte.

mod bits;
mod field;
mod operation;

use crate::command::Command;
use crate::error::CommandError;
use crate::number;
use crate::resp::Limits;
use crate::spec::{CommandSpec, Flags, Group, Keys, data};

const WRITE: Flags = Flags::WRITE.and(Flags::DENYOOM);
const READ: Flags = Flags::READONLY;
const G: Group = Group::Bitmap;
const ONE: Keys = Keys::ONE;

/// The family's commands.
pub static COMMANDS: &[CommandSpec] = &[
    data(
        ("setbit", 4),
        WRITE,
        ONE,
        G,
        (
            "2.2.0",
            "Sets or clears the bit at offset of the string value. Creates the key if it doesn't exist.",
        ),
        bits::setbit,
    ),
    data(
        ("getbit", 3),
        READ.and(Flags::FAST),
        ONE,
        G,
        ("2.2.0", "Returns a bit value by offset."),
        bits::getbit,
    ),
    data(
        ("bitcount", -2),
        READ,
        ONE,
        G,
        (
            "2.6.0",
            "Counts the number of set bits (population counting) in a string.",
        ),
        bits::bitcount,
    ),
    data(
        ("bitpos", -3),
        READ,
        ONE,
        G,
        (
            "2.8.7",
            "Finds the first set (1) or clear (0) bit in a string.",
        ),
        bits::bitpos,
    ),
    data(
        ("bitop", -4),
        WRITE,
        Keys::Range(2, -1, 1),
        G,
        (
            "2.6.0",
            "Performs bitwise operations on multiple strings, and stores the result.",
        ),
        operation::bitop,
    ),
    data(
        ("bitfield", -2),
        WRITE,
        ONE,
        G,
        (
            "3.2.0",
            "Performs arbitrary bitfield integer operations on strings.",
        ),
        field::bitfield,
    ),
    data(
        ("bitfield_ro", -2),
        READ.and(Flags::FAST),
        ONE,
        G,
        (
            "6.0.0",
            "Performs arbitrary read-only bitfield integer operations on strings.",
        ),
        field::bitfield_ro,
    ),
];

/// The number of a bit; one behind `#` counts fields of `width` bits.
fn offset(text: &[u8], width: usize) -> Result<usize, CommandError> {
    const REFUSED: CommandError =
        CommandError::text("ERR bit offset is not an integer or out of range");
    let (digits, factor) = match text.strip_prefix(b"#") {
        Some(digits) if width > 0 => (digits, width),
        _ => (text, 1),
    };
    let number = number::integer(digits).and_then(|number| usize::try_from(number).ok());
    let offset = number.and_then(|number| number.checked_mul(factor));
    offset
        .filter(|offset| offset / 8 < Limits::REDIS.bulk_bytes)
        .ok_or(REFUSED)
}

/// The bit at a place; 0 behind the end.
fn bit(value: &[u8], place: usize) -> bool {
    value
        .get(place / 8)
        .is_some_and(|byte| byte & (0x80 >> (place % 8)) != 0)
}

/// Sets the bit at a place that there is.
fn set_bit(value: &mut [u8], place: usize, is_set: bool) {
    assert!(place / 8 < value.len(), "a bit behind the end");
    let mask = 0x80 >> (place % 8);
    if is_set {
        value[place / 8] |= mask;
    } else {
        value[place / 8] &= !mask;
    }
}

/// Whether the unit of a range, at a place, is bits.
fn is_in_bits(command: &Command, place: usize) -> Result<bool, CommandError> {
    match () {
        () if place >= command.len() || command.is_word(place, "BYTE") => Ok(false),
        () if command.is_word(place, "BIT") => Ok(true),
        () => Err(CommandError::SYNTAX),
    }
}
