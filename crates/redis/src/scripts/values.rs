//! Replies as values of Lua, and values of Lua as replies.

use mlua::{Lua, Table, Value};

use super::library::to_f64;
use crate::error::CommandError;
use crate::number;
use crate::resp::Reply;

/// Tables within tables that a reply may have.
const DEPTH_MAX: usize = 128;
/// Bytes of one reply, roughly.
const BYTES_MAX: usize = 128 << 20;

/// What redis.call returns for a reply; `is_new` after redis.setresp(3).
pub fn to_lua(lua: &Lua, reply: Reply, is_new: bool) -> mlua::Result<Value> {
    let one = |name: &str, value: Value| -> mlua::Result<Value> {
        let table = lua.create_table_with_capacity(0, 1)?;
        table.raw_set(name, value)?;
        Ok(Value::Table(table))
    };
    let text = |bytes: &[u8]| lua.create_string(bytes).map(Value::String);
    match reply {
        Reply::Later => Ok(Value::Boolean(false)),
        Reply::Null | Reply::NullArray if is_new => Ok(Value::Nil),
        Reply::Null | Reply::NullArray => Ok(Value::Boolean(false)),
        Reply::Simple(word) => one("ok", text(word.as_bytes())?),
        Reply::Status(word) => one("ok", text(&word)?),
        Reply::Error(error) => one("err", text(error.0.as_bytes())?),
        Reply::Integer(value) => Ok(Value::Integer(value)),
        Reply::Bulk(bytes) => text(&bytes),
        Reply::Verbatim(about) if is_new => {
            let table = lua.create_table()?;
            table.raw_set("string", about)?;
            table.raw_set("format", "txt")?;
            one("verbatim_string", Value::Table(table))
        }
        Reply::Verbatim(about) => text(about.as_bytes()),
        Reply::Double(value) | Reply::LongDouble(value) if is_new => {
            one("double", Value::Number(value))
        }
        Reply::Double(value) => text(number::write_float(value).as_bytes()),
        Reply::LongDouble(value) => {
            let written = format!("{value:.17}");
            let written = written.trim_end_matches('0').trim_end_matches('.');
            text(written.as_bytes())
        }
        Reply::Bool(value) if is_new => Ok(Value::Boolean(value)),
        Reply::Bool(value) => Ok(Value::Integer(i64::from(value))),
        Reply::Set(parts) if is_new => {
            let members = lua.create_table_with_capacity(0, parts.len())?;
            for part in parts {
                members.raw_set(to_lua(lua, part, is_new)?, true)?;
            }
            one("set", Value::Table(members))
        }
        Reply::Map(pairs) | Reply::MapOrPairs(pairs) if is_new => {
            let members = lua.create_table_with_capacity(0, pairs.len())?;
            for (key, value) in pairs {
                members.raw_set(to_lua(lua, key, is_new)?, to_lua(lua, value, is_new)?)?;
            }
            one("map", Value::Table(members))
        }
        Reply::Array(parts) | Reply::Set(parts) | Reply::Push(parts) => {
            list(lua, parts.into_iter(), is_new)
        }
        Reply::MapOrPairs(pairs) => list(lua, in_pairs(pairs), is_new),
        Reply::Pairs(pairs) if is_new => list(lua, in_pairs(pairs), is_new),
        Reply::Map(pairs) | Reply::Pairs(pairs) => {
            let flat = pairs.into_iter().flat_map(|(one, other)| [one, other]);
            list(lua, flat, is_new)
        }
    }
}

fn in_pairs(pairs: Vec<(Reply, Reply)>) -> impl Iterator<Item = Reply> {
    let pairs = pairs.into_iter();
    pairs.map(|(one, other)| Reply::Array(vec![one, other]))
}

fn list(lua: &Lua, parts: impl Iterator<Item = Reply>, is_new: bool) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(parts.size_hint().0, 0)?;
    for (place, part) in parts.enumerate() {
        table.raw_set(place + 1, to_lua(lua, part, is_new)?)?;
    }
    Ok(Value::Table(table))
}

/// The reply that a script returned.
pub fn from_lua(value: &Value, is_new: bool) -> Reply {
    let mut made = Made { is_new, bytes: 0 };
    Reply::from(made.reply(value, 0))
}

struct Made {
    is_new: bool,
    bytes: usize,
}

impl Made {
    fn reply(&mut self, value: &Value, depth: usize) -> Result<Reply, CommandError> {
        self.bytes += size_of::<Reply>();
        if depth > DEPTH_MAX {
            return Err(CommandError::text("ERR reached lua stack limit"));
        }
        if self.bytes > BYTES_MAX {
            return Err(CommandError::text("ERR reply of the script is too large"));
        }
        Ok(match value {
            Value::String(text) => {
                let bytes = text.as_bytes();
                self.bytes += bytes.len();
                Reply::bulk(&*bytes)
            }
            Value::Integer(value) => Reply::Integer(*value),
            #[allow(clippy::cast_possible_truncation)] // as Redis: towards zero
            Value::Number(value) => Reply::Integer(*value as i64),
            Value::Boolean(value) if self.is_new => Reply::Bool(*value),
            Value::Boolean(true) => Reply::Integer(1),
            Value::Table(table) => self.table(table, depth)?,
            _ => Reply::Null,
        })
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<Reply, CommandError> {
        let field = |name: &str| table.raw_get::<Value>(name).unwrap_or(Value::Nil);
        if let Value::String(text) = field("err") {
            let text = String::from_utf8_lossy(&text.as_bytes()).into_owned();
            return Ok(Reply::error(text));
        }
        if let Value::String(text) = field("ok") {
            return Ok(Reply::Status(text.as_bytes().to_vec()));
        }
        if let Some(value) = to_f64(&field("double")) {
            return Ok(Reply::Double(value));
        }
        if let Value::Table(members) = field("map") {
            let pairs = self.pairs(&members, depth)?;
            return Ok(Reply::Map(pairs));
        }
        if let Value::Table(members) = field("set") {
            let members = self.pairs(&members, depth)?.into_iter();
            return Ok(Reply::Set(members.map(|(member, _)| member).collect()));
        }
        if let Value::Table(verbatim) = field("verbatim_string")
            && let Ok(Value::String(text)) = verbatim.raw_get::<Value>("string")
        {
            let text = String::from_utf8_lossy(&text.as_bytes()).into_owned();
            return Ok(Reply::Verbatim(text));
        }
        let mut parts = Vec::new();
        for place in 1_i64.. {
            match table.raw_get::<Value>(place) {
                Ok(Value::Nil) | Err(_) => break,
                Ok(part) => parts.push(self.reply(&part, depth + 1)?),
            }
        }
        Ok(Reply::Array(parts))
    }

    fn pairs(&mut self, table: &Table, depth: usize) -> Result<Vec<(Reply, Reply)>, CommandError> {
        let mut pairs = Vec::new();
        for pair in table.pairs::<Value, Value>() {
            let (key, value) =
                pair.map_err(|_| CommandError::text("ERR reply of the script cannot be read"))?;
            pairs.push((self.reply(&key, depth + 1)?, self.reply(&value, depth + 1)?));
        }
        Ok(pairs)
    }
}
