//! `struct`: values as bytes of C's structures, and back.

use mlua::{Lua, Value};

use super::library::{LibraryError, LibraryFunction, Returned, bytes, integer_or, number, to_f64};

/// Bytes of the largest number.
const NUMBER_BYTES_MAX: usize = 32;
/// Bytes that one format may make.
const BYTES_MAX: usize = 64 << 20;

pub const FUNCTIONS: &[(&str, LibraryFunction)] =
    &[("pack", pack), ("unpack", unpack), ("size", size)];

/// One letter of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    Pad,
    /// A whole number of so many bytes.
    Whole(usize, bool),
    Single,
    Double,
    /// Bytes of a length; 0: as many as there are, or as the number before says.
    Chars(usize),
    /// Up to a zero byte.
    Text,
}

/// A format that is being read.
struct Format<'a> {
    text: &'a [u8],
    at: usize,
    is_big: bool,
    align: usize,
}

impl<'a> Format<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            at: 0,
            is_big: false,
            align: 1,
        }
    }

    fn count(&mut self, otherwise: usize) -> Result<usize, LibraryError> {
        let digits = self.text[self.at..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if digits == 0 {
            return Ok(otherwise);
        }
        let told = std::str::from_utf8(&self.text[self.at..self.at + digits]).unwrap_or_default();
        self.at += digits;
        let count: usize = told.parse().unwrap_or(usize::MAX);
        if count > BYTES_MAX {
            return Err("integral size overflow".into());
        }
        Ok(count)
    }

    fn number_bytes(&mut self) -> Result<usize, LibraryError> {
        let count = self.count(4)?;
        if !(1..=NUMBER_BYTES_MAX).contains(&count) {
            return Err(LibraryError::Text(format!(
                "integral size {count} is larger than limit of {NUMBER_BYTES_MAX}"
            )));
        }
        Ok(count)
    }

    /// The next item, and bytes of padding before it at `written`.
    fn next(&mut self, written: usize) -> Result<Option<(Item, usize)>, LibraryError> {
        while let Some(&letter) = self.text.get(self.at) {
            self.at += 1;
            let item = match letter {
                b' ' => continue,
                b'>' => {
                    self.is_big = true;
                    continue;
                }
                b'<' | b'=' => {
                    self.is_big = false;
                    continue;
                }
                b'!' => {
                    let align = self.count(8)?;
                    if !align.is_power_of_two() {
                        return Err("alignment is not a power of 2".into());
                    }
                    self.align = align;
                    continue;
                }
                b'x' => Item::Pad,
                b'b' | b'B' => Item::Whole(1, letter == b'b'),
                b'h' | b'H' => Item::Whole(2, letter == b'h'),
                b'l' | b'L' => Item::Whole(8, letter == b'l'),
                b'T' => Item::Whole(8, false),
                b'i' | b'I' => Item::Whole(self.number_bytes()?, letter == b'i'),
                b'f' => Item::Single,
                b'd' | b'n' => Item::Double,
                b'c' => Item::Chars(self.count(1)?),
                b's' => Item::Text,
                _ => {
                    return Err(LibraryError::Text(format!(
                        "invalid format option '{}'",
                        char::from(letter)
                    )));
                }
            };
            return Ok(Some((item, self.padding(item, written))));
        }
        Ok(None)
    }

    fn padding(&self, item: Item, written: usize) -> usize {
        let size = match item {
            Item::Whole(bytes, _) => bytes,
            Item::Single => 4,
            Item::Double => 8,
            Item::Pad | Item::Chars(_) | Item::Text => return 0,
        };
        let align = size.min(self.align);
        if align <= 1 || !align.is_power_of_two() {
            return 0;
        }
        (align - written % align) % align
    }
}

fn push(out: &mut Vec<u8>, little: &[u8], is_big: bool) {
    let start = out.len();
    out.extend_from_slice(little);
    if is_big {
        out[start..].reverse();
    }
}

fn pack(lua: &Lua, args: &[Value]) -> Returned {
    let text = bytes(args, 0, "pack")?;
    let mut format = Format::new(&text);
    let mut out = Vec::new();
    let mut place = 1;
    while let Some((item, padding)) = format.next(out.len())? {
        out.resize(out.len() + padding, 0);
        if item == Item::Pad {
            out.push(0);
            continue;
        }
        put(item, args, place, format.is_big, &mut out)?;
        place += 1;
        if out.len() > BYTES_MAX {
            return Err("format result too large".into());
        }
    }
    Ok(vec![Value::String(lua.create_string(out)?)])
}

fn put(
    item: Item,
    args: &[Value],
    place: usize,
    is_big: bool,
    out: &mut Vec<u8>,
) -> Result<(), LibraryError> {
    match item {
        Item::Whole(size, _) => {
            #[allow(clippy::cast_possible_truncation)] // as C's cast of a number of Lua
            let value = number(args, place, "pack")? as i128 as i64;
            let sign = if value < 0 { 0xFF } else { 0 };
            let mut little = [sign; NUMBER_BYTES_MAX];
            little[..8].copy_from_slice(&value.to_le_bytes());
            push(out, &little[..size], is_big);
        }
        Item::Single => {
            #[allow(clippy::cast_possible_truncation)] // a float was asked for
            let value = number(args, place, "pack")? as f32;
            push(out, &value.to_le_bytes(), is_big);
        }
        Item::Double => push(out, &number(args, place, "pack")?.to_le_bytes(), is_big),
        Item::Chars(length) => {
            let text = bytes(args, place, "pack")?;
            let length = if length == 0 { text.len() } else { length };
            let taken = text.get(..length).ok_or_else(|| {
                LibraryError::Text(format!(
                    "bad argument #{} to 'pack' (string too short)",
                    place + 1
                ))
            })?;
            out.extend_from_slice(taken);
        }
        Item::Text => {
            out.extend_from_slice(&bytes(args, place, "pack")?);
            out.push(0);
        }
        Item::Pad => out.push(0),
    }
    Ok(())
}

fn unpack(lua: &Lua, args: &[Value]) -> Returned {
    let text = bytes(args, 0, "unpack")?;
    let data = bytes(args, 1, "unpack")?;
    let start = integer_or(args, 2, 1, "unpack")?;
    let mut at = usize::try_from(start - 1).map_err(|_| "offset must be 1 or greater")?;
    let mut format = Format::new(&text);
    let mut values: Vec<Value> = Vec::new();
    while let Some((item, padding)) = format.next(at)? {
        at += padding;
        let rest = data.get(at..).unwrap_or_default();
        let length = match item {
            Item::Pad => 1,
            Item::Whole(size, _) => size,
            Item::Single => 4,
            Item::Double => 8,
            Item::Chars(0) => {
                let told = values.pop().as_ref().and_then(to_f64);
                #[allow(clippy::cast_possible_truncation)] // as C's cast
                usize::try_from(told.unwrap_or(-1.0) as i64)
                    .map_err(|_| "format 'c0' needs a previous size")?
            }
            Item::Chars(length) => length,
            Item::Text => rest
                .iter()
                .position(|byte| *byte == 0)
                .ok_or("unfinished string in data")?,
        };
        let taken = rest.get(..length).ok_or("data string too short")?;
        at += length + usize::from(item == Item::Text);
        match item {
            Item::Pad => {}
            Item::Chars(_) | Item::Text => values.push(Value::String(lua.create_string(taken)?)),
            _ => values.push(take(item, taken, format.is_big)),
        }
    }
    values.push(Value::Integer(i64::try_from(at + 1).unwrap_or(i64::MAX)));
    Ok(values)
}

fn take(item: Item, taken: &[u8], is_big: bool) -> Value {
    let mut little = taken.to_vec();
    if is_big {
        little.reverse();
    }
    let is_negative = little.last().is_some_and(|byte| byte & 0x80 != 0);
    let is_signed = matches!(item, Item::Whole(_, true));
    let fill = if is_signed && is_negative { 0xFF } else { 0 };
    let size = little.len();
    little.resize(size.max(8), fill);
    let mut eight = [0; 8];
    eight.copy_from_slice(&little[..8]);
    match item {
        Item::Single => {
            let [a, b, c, d, ..] = eight;
            Value::Number(f32::from_le_bytes([a, b, c, d]).into())
        }
        Item::Double => Value::Number(f64::from_le_bytes(eight)),
        #[allow(clippy::cast_precision_loss)] // numbers of Lua are f64
        _ if is_signed => Value::Number(i64::from_le_bytes(eight) as f64),
        #[allow(clippy::cast_precision_loss)]
        _ => Value::Number(u64::from_le_bytes(eight) as f64),
    }
}

fn size(_lua: &Lua, args: &[Value]) -> Returned {
    let text = bytes(args, 0, "size")?;
    let mut format = Format::new(&text);
    let mut total = 0;
    while let Some((item, padding)) = format.next(total)? {
        total += padding
            + match item {
                Item::Pad => 1,
                Item::Whole(size, _) => size,
                Item::Single => 4,
                Item::Double => 8,
                Item::Chars(0) => return Err("variable-length format".into()),
                Item::Chars(length) => length,
                Item::Text => return Err("variable-size format".into()),
            };
    }
    Ok(vec![Value::Integer(
        i64::try_from(total).unwrap_or(i64::MAX),
    )])
}
