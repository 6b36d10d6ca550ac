//! `cmsgpack`: MessagePack as Redis's library of that name writes and reads it.

use mlua::{Lua, Table, Value};

use super::library::{LibraryError, LibraryFunction, Output, Returned, bytes, integer_or};

/// Tables within tables that are written; deeper ones are nil.
const WRITTEN_DEPTH_MAX: usize = 16;
/// Tables within tables that are read.
const READ_DEPTH_MAX: usize = 1000;
const BAD_DATA: &str = "Bad data format in input.";
const MISSING: &str = "Missing bytes in input.";

pub const FUNCTIONS: &[(&str, LibraryFunction)] = &[
    ("pack", pack),
    ("unpack", |lua, args| {
        let text = bytes(args, 0, "unpack")?;
        Ok(read_many(lua, &text, 0, usize::MAX)?.0)
    }),
    ("unpack_one", |lua, args| {
        let offset = offset(args, 1, "unpack_one")?;
        from(lua, args, 1, offset, "unpack_one")
    }),
    ("unpack_limit", |lua, args| {
        let limit = usize::try_from(integer_or(args, 1, 1, "unpack_limit")?);
        let limit = limit.map_err(|_| LibraryError::from("Invalid request to unpack"))?;
        let offset = offset(args, 2, "unpack_limit")?;
        from(lua, args, limit, offset, "unpack_limit")
    }),
];

fn offset(args: &[Value], place: usize, name: &str) -> Result<usize, LibraryError> {
    let told = integer_or(args, place, 0, name)?;
    usize::try_from(told).map_err(|_| {
        LibraryError::Text(format!(
            "Invalid request to unpack with offset of {told} and limit of 1."
        ))
    })
}

/// Values from an offset on, behind where the next ones are, or -1.
fn from(lua: &Lua, args: &[Value], limit: usize, offset: usize, name: &str) -> Returned {
    let text = bytes(args, 0, name)?;
    if offset > text.len() {
        return Err(LibraryError::Text(format!(
            "Start offset {offset} greater than input length {}.",
            text.len()
        )));
    }
    let (mut values, next) = read_many(lua, &text, offset, limit)?;
    let next = if next == text.len() {
        -1
    } else {
        i64::try_from(next).unwrap_or(i64::MAX)
    };
    values.insert(0, Value::Integer(next));
    Ok(values)
}

fn pack(lua: &Lua, args: &[Value]) -> Returned {
    if args.is_empty() {
        return Err("bad argument #0 to 'pack' (MessagePack pack needs input.)".into());
    }
    let mut out = Output::default();
    for value in args {
        write(value, 0, &mut out)?;
    }
    Ok(vec![Value::String(lua.create_string(out.bytes)?)])
}

fn write(value: &Value, depth: usize, output: &mut Output) -> Result<(), LibraryError> {
    output.begin_value()?;
    let out = &mut output.bytes;
    match value {
        Value::Boolean(value) => out.push(if *value { 0xC3 } else { 0xC2 }),
        Value::Integer(value) => integer(*value, out),
        Value::Number(value) => float(*value, out),
        Value::String(text) => {
            let text = text.as_bytes();
            match text.len() {
                #[allow(clippy::cast_possible_truncation)] // below 32
                length @ 0..32 => out.push(0xA0 | length as u8),
                length => head(length, Some(0xD9), 0xDA, 0xDB, out),
            }
            out.extend_from_slice(&text);
        }
        Value::Table(table) if depth < WRITTEN_DEPTH_MAX => write_table(table, depth + 1, output)?,
        _ => out.push(0xC0),
    }
    Ok(())
}

/// A length in the shortest form.
fn head(length: usize, one: Option<u8>, two: u8, four: u8, out: &mut Vec<u8>) {
    if let (Some(one), Ok(length)) = (one, u8::try_from(length)) {
        out.extend_from_slice(&[one, length]);
    } else if let Ok(length) = u16::try_from(length) {
        out.push(two);
        out.extend_from_slice(&length.to_be_bytes());
    } else {
        out.push(four);
        out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // each within its range
fn integer(value: i64, out: &mut Vec<u8>) {
    match value {
        -32..=0x7F => out.push(value as u8),
        0x80..=0xFF => out.extend_from_slice(&[0xCC, value as u8]),
        0x100..=0xFFFF => {
            out.push(0xCD);
            out.extend_from_slice(&(value as u16).to_be_bytes());
        }
        0x1_0000..=0xFFFF_FFFF => {
            out.push(0xCE);
            out.extend_from_slice(&(value as u32).to_be_bytes());
        }
        0x1_0000_0000.. => {
            out.push(0xCF);
            out.extend_from_slice(&value.to_be_bytes());
        }
        -128..=-33 => out.extend_from_slice(&[0xD0, value as u8]),
        -0x8000..=-129 => {
            out.push(0xD1);
            out.extend_from_slice(&(value as i16).to_be_bytes());
        }
        -0x8000_0000..=-0x8001 => {
            out.push(0xD2);
            out.extend_from_slice(&(value as i32).to_be_bytes());
        }
        _ => {
            out.push(0xD3);
            out.extend_from_slice(&value.to_be_bytes());
        }
    }
}

fn float(value: f64, out: &mut Vec<u8>) {
    #[allow(clippy::cast_possible_truncation)] // only when nothing is lost
    let short = value as f32;
    if f64::from(short).to_bits() == value.to_bits() {
        out.push(0xCA);
        out.extend_from_slice(&short.to_be_bytes());
    } else {
        out.push(0xCB);
        out.extend_from_slice(&value.to_be_bytes());
    }
}

fn write_table(table: &Table, depth: usize, output: &mut Output) -> Result<(), LibraryError> {
    let (mut highest, mut count, mut is_array) = (0, 0_usize, true);
    for pair in table.pairs::<Value, Value>() {
        count += 1;
        match pair?.0 {
            Value::Integer(place) if place > 0 => highest = highest.max(place),
            _ => is_array = false,
        }
    }
    is_array &= usize::try_from(highest) == Ok(count);
    #[allow(clippy::cast_possible_truncation)] // below 16
    match (is_array, count) {
        (true, 0..16) => output.bytes.push(0x90 | count as u8),
        (true, _) => head(count, None, 0xDC, 0xDD, &mut output.bytes),
        (false, 0..16) => output.bytes.push(0x80 | count as u8),
        (false, _) => head(count, None, 0xDE, 0xDF, &mut output.bytes),
    }
    if is_array {
        for place in 1..=highest {
            write(&table.raw_get::<Value>(place)?, depth, output)?;
        }
        return Ok(());
    }
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        write(&key, depth, output)?;
        write(&value, depth, output)?;
    }
    Ok(())
}

fn read_many(
    lua: &Lua,
    text: &[u8],
    offset: usize,
    limit: usize,
) -> Result<(Vec<Value>, usize), LibraryError> {
    // As many as a call of Lua may return.
    const VALUES_MAX: usize = 7000;
    let mut reader = Reader {
        lua,
        text,
        at: offset,
    };
    let mut values = Vec::new();
    while reader.at < text.len() && values.len() < limit {
        if values.len() >= VALUES_MAX {
            return Err("too many results to unpack".into());
        }
        values.push(reader.value(0)?);
    }
    Ok((values, reader.at))
}

struct Reader<'a> {
    lua: &'a Lua,
    text: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], LibraryError> {
        let end = self.at.saturating_add(length);
        let taken = self.text.get(self.at..end).ok_or(MISSING)?;
        self.at = end;
        Ok(taken)
    }

    /// A number of `length` bytes without a sign.
    fn unsigned(&mut self, length: usize) -> Result<u64, LibraryError> {
        let bytes = self.take(length)?;
        Ok(bytes
            .iter()
            .fold(0, |value, byte| (value << 8) | u64::from(*byte)))
    }

    fn length(&mut self, bytes: usize) -> Result<usize, LibraryError> {
        let told = self.unsigned(bytes)?;
        usize::try_from(told).map_err(|_| MISSING.into())
    }

    fn signed(&mut self, length: usize) -> Result<Value, LibraryError> {
        let unused = 64 - 8 * u32::try_from(length).unwrap_or(8);
        let value = (self.unsigned(length)? << unused).cast_signed() >> unused;
        Ok(Value::Integer(value))
    }

    fn value(&mut self, depth: usize) -> Result<Value, LibraryError> {
        let first = self.take(1)?[0];
        Ok(match first {
            0x00..=0x7F => Value::Integer(first.into()),
            0xE0..=0xFF => Value::Integer(first.cast_signed().into()),
            0x80..=0x8F => self.map(usize::from(first & 15), depth)?,
            0x90..=0x9F => self.array(usize::from(first & 15), depth)?,
            0xA0..=0xBF => self.string(usize::from(first & 31))?,
            0xC0 => Value::Nil,
            0xC2 => Value::Boolean(false),
            0xC3 => Value::Boolean(true),
            0xCA => {
                let bits = u32::try_from(self.unsigned(4)?).unwrap_or(0);
                Value::Number(f32::from_bits(bits).into())
            }
            0xCB => Value::Number(f64::from_bits(self.unsigned(8)?)),
            0xCC..=0xCE => {
                let value = self.unsigned(1 << (first - 0xCC))?;
                Value::Integer(i64::try_from(value).unwrap_or(i64::MAX))
            }
            #[allow(clippy::cast_precision_loss)] // numbers of Lua are f64
            0xCF => Value::Number(self.unsigned(8)? as f64),
            0xD0..=0xD3 => self.signed(1 << (first - 0xD0))?,
            0xC4..=0xC6 | 0xD9..=0xDB => {
                let base = if first < 0xD9 { 0xC4 } else { 0xD9 };
                let length = self.length(1 << (first - base))?;
                self.string(length)?
            }
            0xDC | 0xDD => {
                let length = self.length(2 << (first - 0xDC))?;
                self.array(length, depth)?
            }
            0xDE | 0xDF => {
                let length = self.length(2 << (first - 0xDE))?;
                self.map(length, depth)?
            }
            _ => return Err(BAD_DATA.into()),
        })
    }

    fn string(&mut self, length: usize) -> Result<Value, LibraryError> {
        let bytes = self.take(length)?;
        Ok(Value::String(self.lua.create_string(bytes)?))
    }

    fn array(&mut self, length: usize, depth: usize) -> Result<Value, LibraryError> {
        let table = self.table(depth)?;
        for place in 1..=length {
            table.raw_set(place, self.value(depth + 1)?)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, length: usize, depth: usize) -> Result<Value, LibraryError> {
        let table = self.table(depth)?;
        for _ in 0..length {
            let key = self.value(depth + 1)?;
            let value = self.value(depth + 1)?;
            let is_none = matches!(&key, Value::Nil)
                || matches!(&key, Value::Number(number) if number.is_nan());
            if is_none {
                return Err(BAD_DATA.into());
            }
            table.raw_set(key, value)?;
        }
        Ok(Value::Table(table))
    }

    fn table(&self, depth: usize) -> Result<Table, LibraryError> {
        if depth > READ_DEPTH_MAX {
            return Err(BAD_DATA.into());
        }
        Ok(self.lua.create_table()?)
    }
}
