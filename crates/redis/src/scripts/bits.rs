//! `bit`: operations on 32 bits, as Lua BitOp has them.

use mlua::{Lua, Value};

use super::library::{LibraryError, LibraryFunction, Returned, number};

pub const FUNCTIONS: &[(&str, LibraryFunction)] = &[
    ("tobit", |_, args| one(bit(args, 0, "tobit")?)),
    ("bnot", |_, args| one(!bit(args, 0, "bnot")?)),
    ("band", |_, args| fold(args, "band", |a, b| a & b)),
    ("bor", |_, args| fold(args, "bor", |a, b| a | b)),
    ("bxor", |_, args| fold(args, "bxor", |a, b| a ^ b)),
    ("lshift", |_, args| shift(args, "lshift", |a, by| a << by)),
    ("rshift", |_, args| {
        shift(args, "rshift", |a, by| {
            (a.cast_unsigned() >> by).cast_signed()
        })
    }),
    ("arshift", |_, args| shift(args, "arshift", |a, by| a >> by)),
    ("rol", |_, args| shift(args, "rol", i32::rotate_left)),
    ("ror", |_, args| shift(args, "ror", i32::rotate_right)),
    ("bswap", |_, args| one(bit(args, 0, "bswap")?.swap_bytes())),
    ("tohex", to_hex),
];

/// A number modulo 2^32, rounded to the nearest.
fn bit(args: &[Value], place: usize, name: &str) -> Result<i32, LibraryError> {
    let value = number(args, place, name)?.round_ties_even();
    if !value.is_finite() {
        return Ok(0);
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // below 2^32
    let low = value.rem_euclid(4_294_967_296.0) as u64 as u32;
    Ok(low.cast_signed())
}

fn one(value: i32) -> Returned {
    Ok(vec![Value::Integer(value.into())])
}

fn fold(args: &[Value], name: &str, with: fn(i32, i32) -> i32) -> Returned {
    let mut value = bit(args, 0, name)?;
    for place in 1..args.len() {
        value = with(value, bit(args, place, name)?);
    }
    one(value)
}

fn shift(args: &[Value], name: &str, with: fn(i32, u32) -> i32) -> Returned {
    let (value, by) = (bit(args, 0, name)?, bit(args, 1, name)?);
    one(with(value, by.cast_unsigned() & 31))
}

fn to_hex(lua: &Lua, args: &[Value]) -> Returned {
    let value = bit(args, 0, "tohex")?;
    let digits = match args.get(1) {
        None => 8,
        Some(_) => bit(args, 1, "tohex")?,
    };
    let mut text = format!("{value:08x}");
    if digits < 0 {
        text.make_ascii_uppercase();
    }
    let kept = usize::try_from(digits.unsigned_abs()).unwrap_or(8).min(8);
    Ok(vec![Value::String(lua.create_string(&text[8 - kept..])?)])
}
