//! The libraries of scripts, in Rust. Each function gets values and returns values or a text, which is raised as an
//! error of the script.

use mlua::{Lua, MultiValue, Table, Value};

use super::cache::sha1_hex;
use super::{bits, cjson, cmsgpack, pack, thrown};
use crate::REDIS_VERSION;

/// Why a function of a library did not do it.
#[derive(Debug)]
pub enum LibraryError {
    /// The script's mistake, in the library's words.
    Text(String),
    /// The state's: no memory.
    Lua(mlua::Error),
}

impl From<mlua::Error> for LibraryError {
    fn from(error: mlua::Error) -> Self {
        Self::Lua(error)
    }
}

impl From<String> for LibraryError {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for LibraryError {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Bytes that a function may make: a table that holds itself has no end.
const OUTPUT_BYTES_MAX: usize = 64 << 20;
/// What a value of Lua counts at least: each takes time too.
const VALUE_BYTES: usize = 32;

/// What a function writes, with an end.
#[derive(Debug, Default)]
pub struct Output {
    /// The bytes.
    pub bytes: Vec<u8>,
    values: usize,
}

impl Output {
    /// One more value is written.
    ///
    /// # Errors
    /// There are too many.
    pub fn begin_value(&mut self) -> Result<(), LibraryError> {
        self.values += 1;
        if self.bytes.len() + self.values * VALUE_BYTES > OUTPUT_BYTES_MAX {
            return Err("not enough memory".into());
        }
        Ok(())
    }
}

/// What a function returns.
pub type Returned = Result<Vec<Value>, LibraryError>;
/// A function of a library.
pub type LibraryFunction = fn(&Lua, &[Value]) -> Returned;

/// A number of Lua.
pub fn to_f64(value: &Value) -> Option<f64> {
    match value {
        #[allow(clippy::cast_precision_loss)] // numbers of Lua are f64
        Value::Integer(value) => Some(*value as f64),
        Value::Number(value) => Some(*value),
        _ => None,
    }
}

/// The number at `place`, as luaL_checknumber takes it.
pub fn number(args: &[Value], place: usize, name: &str) -> Result<f64, LibraryError> {
    let found = args.get(place);
    let number = match found {
        Some(Value::String(text)) => std::str::from_utf8(&text.as_bytes())
            .ok()
            .and_then(|text| text.trim().parse().ok()),
        other => other.and_then(to_f64),
    };
    number.ok_or_else(|| wrong(args, place, name, "number"))
}

/// The bytes at `place`, as luaL_checklstring takes them.
pub fn bytes(args: &[Value], place: usize, name: &str) -> Result<Vec<u8>, LibraryError> {
    match args.get(place) {
        Some(Value::String(text)) => Ok(text.as_bytes().to_vec()),
        Some(Value::Integer(value)) => Ok(value.to_string().into_bytes()),
        Some(Value::Number(value)) => Ok(general(*value, 14).into_bytes()),
        _ => Err(wrong(args, place, name, "string")),
    }
}

/// A whole number at `place`, or `otherwise` when there is none.
#[allow(clippy::cast_possible_truncation)] // as C's cast of a number of Lua
pub fn integer_or(
    args: &[Value],
    place: usize,
    otherwise: i64,
    name: &str,
) -> Result<i64, LibraryError> {
    match args.get(place) {
        None | Some(Value::Nil) => Ok(otherwise),
        Some(_) => number(args, place, name).map(|value| value as i64),
    }
}

fn wrong(args: &[Value], place: usize, name: &str, wanted: &str) -> LibraryError {
    let got = match args.get(place) {
        None => "no value",
        Some(Value::Integer(_)) => "number",
        Some(value) => value.type_name(),
    };
    LibraryError::Text(format!(
        "bad argument #{} to '{name}' ({wanted} expected, got {got})",
        place + 1
    ))
}

/// As C's `%.Ng`.
pub fn general(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return if value.is_sign_negative() {
            "-nan"
        } else {
            "nan"
        }
        .to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let digits = digits.max(1);
    let scientific = format!("{value:.*e}", digits - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let shorten = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    let is_plain = exponent >= -4 && i64::from(exponent) < i64::try_from(digits).unwrap_or(14);
    if is_plain {
        let behind = i64::try_from(digits).unwrap_or(14) - 1 - i64::from(exponent);
        let behind = usize::try_from(behind).unwrap_or(0);
        return shorten(&format!("{value:.behind$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", shorten(mantissa), exponent.abs())
}

fn register(lua: &Lua, functions: &[(&str, LibraryFunction)]) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for (name, function) in functions {
        let function = *function;
        let made = lua.create_function(move |lua, args: MultiValue| {
            let args = args.into_vec();
            match function(lua, &args) {
                Ok(values) => Ok(MultiValue::from_vec(values)),
                Err(LibraryError::Text(why)) => Err(thrown::text(lua, &why)),
                Err(LibraryError::Lua(error)) => Err(error),
            }
        })?;
        table.raw_set(*name, made)?;
    }
    Ok(table)
}

/// All libraries, by name.
pub fn tables(lua: &Lua) -> mlua::Result<Table> {
    let all = lua.create_table()?;
    all.raw_set("bit", register(lua, bits::FUNCTIONS)?)?;
    all.raw_set("struct", register(lua, pack::FUNCTIONS)?)?;
    let packed = register(lua, cmsgpack::FUNCTIONS)?;
    packed.raw_set("_NAME", "cmsgpack")?;
    packed.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    all.raw_set("cmsgpack", packed)?;
    let json = register(lua, cjson::FUNCTIONS)?;
    json.raw_set("null", Value::NULL)?;
    json.raw_set("_NAME", "cjson")?;
    json.raw_set("_VERSION", "2.1.0")?;
    all.raw_set("cjson", json)?;
    all.raw_set("redis", redis(lua)?)?;
    Ok(all)
}

/// What of `redis` asks nothing of the server.
fn redis(lua: &Lua) -> mlua::Result<Table> {
    let functions: &[(&str, LibraryFunction)] = &[
        ("sha1hex", |lua, args| {
            if args.len() != 1 {
                return Err("wrong number of arguments".into());
            }
            let text = sha1_hex(&bytes(args, 0, "sha1hex")?);
            Ok(vec![Value::String(lua.create_string(text)?)])
        }),
        ("error_reply", |lua, args| single(lua, args, "err")),
        ("status_reply", |lua, args| single(lua, args, "ok")),
        // All that scripts write is in the log as one piece.
        ("replicate_commands", |_, _| Ok(vec![Value::Boolean(true)])),
        ("set_repl", |_, _| Ok(Vec::new())),
        ("breakpoint", |_, _| Ok(vec![Value::Boolean(false)])),
        ("debug", |_, _| Ok(Vec::new())),
    ];
    let table = register(lua, functions)?;
    for (name, value) in [
        ("LOG_DEBUG", 0),
        ("LOG_VERBOSE", 1),
        ("LOG_NOTICE", 2),
        ("LOG_WARNING", 3),
        ("REPL_NONE", 0),
        ("REPL_AOF", 1),
        ("REPL_SLAVE", 2),
        ("REPL_REPLICA", 2),
        ("REPL_ALL", 3),
    ] {
        table.raw_set(name, value)?;
    }
    table.raw_set("REDIS_VERSION", REDIS_VERSION)?;
    let parts = REDIS_VERSION
        .split('.')
        .map(|part| part.parse().unwrap_or(0));
    let number = parts.fold(0_i64, |number, part: i64| (number << 8) | part);
    table.raw_set("REDIS_VERSION_NUM", number)?;
    Ok(table)
}

/// A table with one text, as error_reply and status_reply return it.
fn single(lua: &Lua, args: &[Value], field: &str) -> Returned {
    let table = lua.create_table_with_capacity(0, 1)?;
    let [Value::String(text)] = args else {
        table.raw_set("err", "ERR wrong number or type of arguments")?;
        return Ok(vec![Value::Table(table)]);
    };
    let text = text.as_bytes().to_vec();
    let told = match field {
        "err" => {
            let text = text.strip_prefix(b"-").unwrap_or(&text);
            let mut told = if text.contains(&b' ') {
                Vec::new()
            } else {
                b"ERR ".to_vec()
            };
            told.extend_from_slice(text);
            told
        }
        _ => text,
    };
    table.raw_set(field, lua.create_string(told)?)?;
    Ok(vec![Value::Table(table)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_c_writes_them() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (1.5e300, "1.5e+300"),
            (123_456_789_012_345.0, "1.2345678901234e+14"),
            (12_345_678_901_234.0, "12345678901234"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-2.5, "-2.5"),
        ] {
            assert_eq!(general(value, 14), text);
        }
        assert_eq!(general(0.1, 17), "0.10000000000000001");
    }
}
