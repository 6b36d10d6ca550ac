//! Errors that functions in Rust raise in scripts.
//!
//! What crosses from Rust is a value of this library's own kind; the sandbox turns it into a text or a table where a
//! script catches it ([`value`]).

use mlua::debug::DebugSource;
use mlua::{Lua, Value};

use super::interpreter::chunk_name;

/// What is raised.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// A text, with the place in the script before it.
    #[error("{0}")]
    Text(String),
    /// A table whose field `err` is an error of Redis.
    #[error("{0}")]
    Table(String),
}

/// Raises a text, as luaL_error does.
pub fn text(lua: &Lua, why: &str) -> mlua::Error {
    let place = lua.inspect_stack(1, |frame| {
        let DebugSource { source, .. } = frame.source();
        let chunk = source.as_deref().and_then(chunk_name)?;
        frame.current_line().map(|line| format!("{chunk}:{line}"))
    });
    mlua::Error::external(ScriptError::Text(match place.flatten() {
        Some(place) => format!("{place}: {why}"),
        None => why.to_owned(),
    }))
}

/// Raises an error of Redis.
pub fn table(why: String) -> mlua::Error {
    mlua::Error::external(ScriptError::Table(why))
}

/// What a script catches for an error of Rust.
pub fn value(lua: &Lua, raised: &Value) -> mlua::Result<Value> {
    let Value::Error(error) = raised else {
        return Ok(raised.clone());
    };
    let told = match error.downcast_ref::<ScriptError>() {
        Some(ScriptError::Text(text)) => text.clone(),
        Some(ScriptError::Table(text)) => {
            let table = lua.create_table_with_capacity(0, 1)?;
            table.raw_set("err", text.as_str())?;
            return Ok(Value::Table(table));
        }
        None => first_line(error),
    };
    Ok(Value::String(lua.create_string(told)?))
}

/// The first line of an error, without where in Rust it was.
pub fn first_line(error: &mlua::Error) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().to_owned()
}
