//! `cjson`: JSON as Redis's library of that name writes and reads it.

use mlua::{Lua, Table, Value};

use super::json;
use super::library::{LibraryError, LibraryFunction, Output, Returned, bytes, general};

/// Tables within tables.
pub const DEPTH_MAX: usize = 1000;
/// Arrays up to this length may have holes.
const SPARSE_SAFE: i64 = 10;
/// Longer ones have at least one element of so many.
const SPARSE_RATIO: i64 = 2;

pub const FUNCTIONS: &[(&str, LibraryFunction)] = &[
    ("encode", encode),
    ("decode", decode),
    // Settings are told and not changed: they would go on for other scripts.
    ("encode_sparse_array", |_, _| {
        Ok(vec![
            Value::Boolean(false),
            Value::Integer(SPARSE_RATIO),
            Value::Integer(SPARSE_SAFE),
        ])
    }),
    ("encode_max_depth", depth),
    ("decode_max_depth", depth),
    ("encode_number_precision", |_, _| {
        Ok(vec![Value::Integer(14)])
    }),
    ("encode_keep_buffer", |_, _| Ok(vec![Value::Boolean(true)])),
    ("encode_invalid_numbers", |_, _| {
        Ok(vec![Value::Boolean(false)])
    }),
    ("decode_invalid_numbers", |_, _| {
        Ok(vec![Value::Boolean(true)])
    }),
];

fn depth(_lua: &Lua, _args: &[Value]) -> Returned {
    Ok(vec![Value::Integer(
        i64::try_from(DEPTH_MAX).unwrap_or(i64::MAX),
    )])
}

fn encode(lua: &Lua, args: &[Value]) -> Returned {
    let [value] = args else {
        return Err("bad argument #1 to 'encode' (expected 1 argument)".into());
    };
    let mut out = Output::default();
    write(value, 0, &mut out)?;
    Ok(vec![Value::String(lua.create_string(out.bytes)?)])
}

fn decode(lua: &Lua, args: &[Value]) -> Returned {
    if args.len() != 1 {
        return Err("bad argument #1 to 'decode' (expected 1 argument)".into());
    }
    let text = bytes(args, 0, "decode")?;
    Ok(vec![json::read(lua, &text)?])
}

fn write(value: &Value, depth: usize, output: &mut Output) -> Result<(), LibraryError> {
    output.begin_value()?;
    let out = &mut output.bytes;
    match value {
        Value::Nil => out.extend_from_slice(b"null"),
        value if value.is_null() => out.extend_from_slice(b"null"),
        Value::Boolean(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Value::Integer(value) => {
            #[allow(clippy::cast_precision_loss)] // numbers of Lua are f64
            out.extend_from_slice(general(*value as f64, 14).as_bytes());
        }
        Value::Number(value) if value.is_finite() => {
            out.extend_from_slice(general(*value, 14).as_bytes());
        }
        Value::Number(_) => {
            return Err("Cannot serialise number: must not be NaN or Inf".into());
        }
        Value::String(text) => string(&text.as_bytes(), out),
        Value::Table(table) => write_table(table, depth + 1, output)?,
        other => {
            return Err(LibraryError::Text(format!(
                "Cannot serialise {}: type not supported",
                other.type_name()
            )));
        }
    }
    Ok(())
}

/// The length of an array, 0 when it is an object.
fn array_length(table: &Table) -> Result<i64, LibraryError> {
    let (mut highest, mut count) = (0, 0);
    for pair in table.pairs::<Value, Value>() {
        match pair?.0 {
            Value::Integer(place) if place > 0 => {
                highest = highest.max(place);
                count += 1;
            }
            _ => return Ok(0),
        }
    }
    if highest > SPARSE_SAFE && highest > count * SPARSE_RATIO {
        return Err("Cannot serialise table: excessively sparse array".into());
    }
    Ok(highest)
}

fn write_table(table: &Table, depth: usize, output: &mut Output) -> Result<(), LibraryError> {
    if depth > DEPTH_MAX {
        return Err(LibraryError::Text(format!(
            "Cannot serialise, excessive depth ({depth})"
        )));
    }
    let length = array_length(table)?;
    if length > 0 {
        output.bytes.push(b'[');
        for place in 1..=length {
            if place > 1 {
                output.bytes.push(b',');
            }
            write(&table.raw_get::<Value>(place)?, depth, output)?;
        }
        output.bytes.push(b']');
        return Ok(());
    }
    output.bytes.push(b'{');
    let mut is_first = true;
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        if !std::mem::take(&mut is_first) {
            output.bytes.push(b',');
        }
        match &key {
            Value::String(text) => string(&text.as_bytes(), &mut output.bytes),
            Value::Integer(_) | Value::Number(_) => {
                output.bytes.push(b'"');
                write(&key, depth, output)?;
                output.bytes.push(b'"');
            }
            _ => return Err("Cannot serialise table: table key must be a number or string".into()),
        }
        output.bytes.push(b':');
        write(&value, depth, output)?;
    }
    output.bytes.push(b'}');
    Ok(())
}

fn string(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in bytes {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'/' => out.extend_from_slice(b"\\/"),
            8 => out.extend_from_slice(b"\\b"),
            9 => out.extend_from_slice(b"\\t"),
            10 => out.extend_from_slice(b"\\n"),
            12 => out.extend_from_slice(b"\\f"),
            13 => out.extend_from_slice(b"\\r"),
            0..=31 | 127 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}
