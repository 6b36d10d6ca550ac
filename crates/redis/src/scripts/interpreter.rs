//! One Lua state in a sandbox, used by one script after the other.
//!
//! A script reaches the server through one function, `host.enter`, that is there only while the script
//! runs ([`Interpreter::run`]). Of a state that ran out of memory nothing is used again: it is dropped.

use std::collections::HashMap;
use std::sync::Arc;

use mlua::chunk::ChunkMode;
use mlua::debug::DebugSource;
use mlua::{Function, HookTriggers, Lua, LuaOptions, MultiValue, StdLib, Table, Value, VmState};

use super::cache::Script;
use super::{library, thrown};
use crate::error::CommandError;

/// Instructions of Lua between two looks at the clock.
pub const INSTRUCTIONS: u32 = 10_000;
/// Memory that scripts may take, together with what the interpreter keeps.
pub const MEMORY_BYTES_MAX: usize = 128 << 20;
/// Memory that an interpreter keeps between scripts.
const MEMORY_BYTES_KEPT: usize = 32 << 20;
/// The name of scripts in errors.
const CHUNK: &str = "@user_script";
/// The name of libraries of functions there.
const LIBRARY: &str = "@user_function";
const SANDBOX: &str = include_str!("sandbox.lua");
/// What a script is told that another client ends.
pub const KILLED: &str = "Script killed by user with SCRIPT KILL...";

/// What a script asks of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptRequest {
    /// redis.call: an error is raised.
    Call,
    /// redis.pcall: an error is returned.
    ProtectedCall,
    /// What its first argument names.
    Named,
}

/// What of a script is run.
#[derive(Debug, Clone, Copy)]
pub enum ScriptEntry<'a> {
    /// All of it.
    Whole,
    /// A library, for the functions that it registers: a table of them is returned.
    Registration,
    /// One of the functions of a library.
    Function(&'a str),
}

/// What a run came to.
#[derive(Debug)]
pub enum ScriptResult {
    /// What the script returned.
    Returned(Value),
    /// What was wrong, in Redis's words.
    Failed(CommandError),
}

/// A Lua state.
#[derive(Debug)]
pub struct Interpreter {
    lua: Lua,
    host: Table,
    named: Table,
    redis: Table,
    globals: Table,
    runner: Function,
    library_loader: Function,
    function_runner: Function,
    compiled: HashMap<Arc<str>, Function>,
    is_spoilt: bool,
}

/// An error of the state itself: there is not even memory to begin.
fn broken(error: &mlua::Error) -> CommandError {
    CommandError::new(format!("ERR the interpreter of scripts failed: {error}"))
}

impl Interpreter {
    /// A fresh state.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new() -> Result<Self, CommandError> {
        Self::make().map_err(|error| broken(&error))
    }

    fn make() -> mlua::Result<Self> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let options = LuaOptions::new().catch_rust_panics(false);
        let lua = Lua::new_with(libraries, options)?;
        let host = lua.create_table()?;
        host.raw_set("library", library::tables(&lua)?)?;
        host.raw_set(
            "thrown",
            lua.create_function(|lua, raised: Value| thrown::value(lua, &raised))?,
        )?;
        host.raw_set("where", lua.create_function(|lua, ()| Ok(place(lua)))?)?;
        lua.load(SANDBOX)
            .set_name("=sandbox")
            .set_mode(ChunkMode::Text)
            .call::<()>(&host)?;
        lua.set_memory_limit(MEMORY_BYTES_MAX)?;
        let for_hook = host.clone();
        let triggers = HookTriggers::new().every_nth_instruction(INSTRUCTIONS);
        lua.set_global_hook(triggers, move |_, _| interrupt(&for_hook))?;
        Ok(Self {
            redis: host.raw_get::<Table>("library")?.raw_get("redis")?,
            named: host.raw_get("named")?,
            globals: host.raw_get("globals")?,
            runner: host.raw_get("run")?,
            library_loader: host.raw_get("load")?,
            function_runner: host.raw_get("call")?,
            compiled: HashMap::new(),
            is_spoilt: false,
            host,
            lua,
        })
    }

    /// Compiles `script`, if it is not yet.
    ///
    /// # Errors
    /// Its text is no Lua.
    pub fn compile(&mut self, script: &Script) -> Result<Function, CommandError> {
        if let Some(known) = self.compiled.get(&script.name) {
            return Ok(known.clone());
        }
        let made = self
            .lua
            .load(&*script.source)
            .set_name(if script.is_library { LIBRARY } else { CHUNK })
            .set_mode(ChunkMode::Text)
            .set_environment(self.globals.clone())
            .into_function();
        let function = made.map_err(|error| {
            let why = match error {
                mlua::Error::SyntaxError { message, .. } => message,
                other => other.to_string(),
            };
            let what = if script.is_library {
                "function"
            } else {
                "script (new function)"
            };
            CommandError::new(format!("ERR Error compiling {what}: {why}"))
        })?;
        self.compiled.insert(script.name.clone(), function.clone());
        Ok(function)
    }

    /// Forgets a compiled script.
    pub fn forget(&mut self, name: &str) {
        self.compiled.remove(name);
    }

    /// Runs `script`, or what `entry` names of it, with keys and arguments. `enter` answers what it asks of the server.
    pub fn run(
        &mut self,
        script: &Script,
        entry: ScriptEntry<'_>,
        (keys, args): (&[&[u8]], &[&[u8]]),
        enter: &dyn Fn(&Lua, ScriptRequest, MultiValue) -> mlua::Result<Value>,
    ) -> ScriptResult {
        let function = match self.compile(script) {
            Ok(function) => function,
            Err(error) => return ScriptResult::Failed(error),
        };
        let lua = self.lua.clone();
        let ran = lua.scope(|scope| {
            for (table, name, request) in [
                (&self.host, "enter", ScriptRequest::Named),
                (&self.redis, "call", ScriptRequest::Call),
                (&self.redis, "pcall", ScriptRequest::ProtectedCall),
            ] {
                let asked = move |lua: &Lua, args: MultiValue| enter(lua, request, args);
                table.raw_set(name, scope.create_function(asked)?)?;
            }
            let (keys, args) = (list(&lua, keys)?, list(&lua, args)?);
            match entry {
                ScriptEntry::Whole => {
                    self.named.raw_set("KEYS", keys)?;
                    self.named.raw_set("ARGV", args)?;
                    self.runner.call::<(bool, Value)>(function)
                }
                ScriptEntry::Registration => {
                    self.hide_arguments()?;
                    self.library_loader.call(function)
                }
                ScriptEntry::Function(name) => {
                    self.hide_arguments()?;
                    self.function_runner.call((function, name, keys, args))
                }
            }
        });
        let ran = ran.and_then(|ran| {
            self.host.raw_set("enter", Value::Nil)?;
            self.host.raw_set("killed", Value::Nil)?;
            Ok(ran)
        });
        match ran {
            Ok((true, value)) => ScriptResult::Returned(value),
            Ok((false, thrown)) => ScriptResult::Failed(self.explain(script, &thrown)),
            Err(error) => {
                self.is_spoilt = true;
                let why = format!(
                    "ERR {} script: {}",
                    thrown::first_line(&error),
                    script.title
                );
                ScriptResult::Failed(CommandError::new(why))
            }
        }
    }

    /// Functions get their keys and arguments as values.
    fn hide_arguments(&self) -> mlua::Result<()> {
        self.named.raw_set("KEYS", Value::Nil)?;
        self.named.raw_set("ARGV", Value::Nil)
    }

    fn explain(&mut self, script: &Script, thrown: &Value) -> CommandError {
        let text = |value: &Value| match value {
            Value::String(text) => String::from_utf8_lossy(&text.as_bytes()).into_owned(),
            other => other.to_string().unwrap_or_default(),
        };
        let name = &script.title;
        let Value::Table(thrown) = thrown else {
            // The handler did not run: no memory, or no stack for it.
            self.is_spoilt = true;
            return CommandError::new(format!("ERR {} script: {name}", text(thrown)));
        };
        let field = |name: &str| thrown.raw_get::<Value>(name).unwrap_or(Value::Nil);
        let told = text(&field("err"));
        match (field("source"), field("line")) {
            (Value::Nil, _) => CommandError::new(format!("{told} script: {name}")),
            (source, line) => CommandError::new(format!(
                "{told} script: {name}, on {}:{}.",
                text(&source),
                text(&line)
            )),
        }
    }

    /// Whether it may run another script; else it is to be dropped.
    pub fn is_usable(&self) -> bool {
        if self.is_spoilt {
            return false;
        }
        if self.lua.used_memory() > MEMORY_BYTES_KEPT && self.lua.gc_collect().is_err() {
            return false;
        }
        self.lua.used_memory() <= MEMORY_BYTES_KEPT
    }

    /// Bytes that it takes.
    pub fn memory(&self) -> usize {
        self.lua.used_memory()
    }
}

/// Runs every few instructions. The error passes through every pcall of the sandbox.
fn interrupt(host: &Table) -> mlua::Result<VmState> {
    let Value::Function(enter) = host.raw_get::<Value>("enter")? else {
        return Ok(VmState::Continue);
    };
    if !enter.call::<bool>("interrupt")? {
        return Ok(VmState::Continue);
    }
    host.raw_set("killed", KILLED)?;
    Err(mlua::Error::runtime(KILLED))
}

/// What errors call a script, or a library of functions; `None` for what is neither.
pub fn chunk_name(source: &str) -> Option<&'static str> {
    let chunks = [CHUNK, LIBRARY].into_iter();
    let mut found = chunks.filter(|chunk| *chunk == source);
    found.next().map(|chunk| &chunk[1..])
}

/// The innermost place in the script.
fn place(lua: &Lua) -> (Option<String>, Option<usize>) {
    const LEVELS: usize = 64;
    for level in 1..LEVELS {
        let found = lua.inspect_stack(level, |frame| {
            let DebugSource { source, .. } = frame.source();
            let source = source.filter(|source| chunk_name(source).is_some());
            source.map(|source| (source.into_owned(), frame.current_line()))
        });
        match found {
            Some(Some((source, line))) => return (Some(source), line),
            Some(None) => {}
            None => break,
        }
    }
    (None, None)
}

fn list(lua: &Lua, texts: &[&[u8]]) -> mlua::Result<Table> {
    let table = lua.create_table_with_capacity(texts.len(), 0)?;
    for text in texts {
        table.raw_push(lua.create_string(text)?)?;
    }
    Ok(table)
}
