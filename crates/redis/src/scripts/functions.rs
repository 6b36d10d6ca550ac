//! Libraries of functions.
//!
//! A library's code is what is kept, in a row of the store and in memory. It runs when it is loaded, to see
//! which functions it registers, and again in each call of one (sandbox.lua).

use std::collections::BTreeMap;
use std::sync::Arc;

use mlua::{Table, Value};

use super::cache::{Script, ScriptFlags, sha1_hex};
use super::interpreter::ScriptResult;
use crate::error::CommandError;

/// Functions of a library, and libraries: each is found in time that grows with their numbers.
const FUNCTIONS_MAX: usize = 10_000;

/// A function of a library.
#[derive(Debug, Clone)]
pub struct RegisteredFunction {
    /// What FCALL calls it.
    pub name: String,
    /// What it is for, as its library says.
    pub description: String,
    /// As its library named them.
    pub flag_names: Vec<String>,
    flags: ScriptFlags,
}

/// Functions that are loaded together.
#[derive(Debug, Clone)]
pub struct Library {
    /// What FUNCTION DELETE calls it.
    pub name: String,
    /// As it was loaded.
    pub code: Arc<[u8]>,
    /// By name.
    pub functions: Vec<RegisteredFunction>,
    script: Script,
}

/// All libraries.
#[derive(Debug, Default, Clone)]
pub struct Functions {
    libraries: BTreeMap<String, Library>,
}

/// A library whose code has not run yet.
#[derive(Debug)]
pub struct Unloaded {
    /// From its first line.
    pub name: String,
    /// What is to run.
    pub script: Script,
    code: Arc<[u8]>,
}

fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.bytes().all(is_part)
}

impl Unloaded {
    /// A library of a text.
    ///
    /// # Errors
    /// Its first line does not name it, in Redis's words.
    pub fn of(code: &[u8]) -> Result<Self, CommandError> {
        let missing = CommandError::text("ERR Missing library metadata");
        let rest = code.strip_prefix(b"#!").ok_or(missing)?;
        let end = rest.iter().position(|byte| *byte == b'\n');
        let end = end.ok_or(CommandError::text("ERR Invalid library metadata"))?;
        let line = String::from_utf8_lossy(&rest[..end]);
        let mut words = line.split_whitespace();
        let engine = words.next().unwrap_or_default();
        if !engine.eq_ignore_ascii_case("lua") {
            return Err(CommandError::new(format!(
                "ERR Engine '{engine}' not found"
            )));
        }
        let mut name = None;
        for word in words {
            let value = word.strip_prefix("name=").ok_or_else(|| {
                CommandError::new(format!("ERR Invalid metadata value given: {word}"))
            })?;
            if name.replace(value.to_owned()).is_some() {
                return Err(CommandError::text(
                    "ERR Invalid metadata value, name argument was given multiple times",
                ));
            }
        }
        let name = name.ok_or(CommandError::text("ERR Library name was not given"))?;
        if !is_name(&name) {
            return Err(CommandError::text(
                "ERR Library names can only contain letters, numbers, or underscores(_) and must be at \
                 least one character long",
            ));
        }
        let script = Script {
            // No script of EVAL is called so: one text may be both.
            name: format!("library {}", sha1_hex(code)).into(),
            title: name.as_str().into(),
            is_library: true,
            // Lines are counted from the first.
            source: rest[end..].into(),
            flags: ScriptFlags::default(),
        };
        Ok(Self {
            name,
            script,
            code: code.into(),
        })
    }

    /// The library, when its code has run.
    ///
    /// # Errors
    /// The code failed, or registered nothing.
    pub fn loaded(self, outcome: ScriptResult) -> Result<Library, CommandError> {
        let registering =
            |why: &str| CommandError::new(format!("ERR Error registering functions: {why}"));
        let table = match outcome {
            ScriptResult::Returned(Value::Table(table)) => table,
            ScriptResult::Returned(_) => {
                return Err(registering("ERR the sandbox returns no functions"));
            }
            ScriptResult::Failed(error) => {
                let text = error.to_string();
                if text.starts_with("ERR Error compiling") {
                    return Err(error);
                }
                // Where it was is in the text of Lua's own errors.
                let why = text.split(" script: ").next().unwrap_or_default();
                return Err(registering(why));
            }
        };
        let found = table.sequence_values::<Table>().map(|made| {
            let made = made.map_err(|error| registering(&error.to_string()))?;
            registered(&made).map_err(|why| registering(&why))
        });
        let mut functions = found.collect::<Result<Vec<_>, _>>()?;
        functions.sort_by(|one, other| one.name.cmp(&other.name));
        if functions.is_empty() {
            return Err(CommandError::text("ERR No functions registered"));
        }
        Ok(Library {
            name: self.name,
            code: self.code,
            functions,
            script: self.script,
        })
    }
}

fn registered(made: &Table) -> Result<RegisteredFunction, String> {
    let wrong = |error: mlua::Error| error.to_string();
    let text = |name: &str| -> Result<String, String> {
        let value: mlua::LuaString = made.raw_get(name).map_err(wrong)?;
        Ok(String::from_utf8_lossy(&value.as_bytes()).into_owned())
    };
    let mut flags = ScriptFlags::default();
    let named: Table = made.raw_get("flags").map_err(wrong)?;
    let mut flag_names = Vec::new();
    for flag in named.sequence_values::<String>() {
        let flag = flag.map_err(wrong)?;
        match flag.as_str() {
            "no-writes" => flags.no_writes = true,
            "allow-oom" => flags.allow_oom = true,
            "allow-stale" | "no-cluster" | "allow-cross-slot-keys" => {}
            _ => return Err("ERR unknown flag given".to_owned()),
        }
        flag_names.push(flag);
    }
    Ok(RegisteredFunction {
        name: text("name")?,
        description: text("description")?,
        flag_names,
        flags,
    })
}

impl Functions {
    /// All libraries, by name.
    pub fn libraries(&self) -> impl Iterator<Item = &Library> {
        self.libraries.values()
    }

    /// Number of libraries, and of functions.
    pub fn sizes(&self) -> (usize, usize) {
        let functions = self.libraries().map(|library| library.functions.len());
        (self.libraries.len(), functions.sum())
    }

    /// The script whose function `name` is called, in any case, and whether it may write.
    pub fn find(&self, name: &str) -> Option<Script> {
        self.libraries().find_map(|library| {
            let mut functions = library.functions.iter();
            let function = functions.find(|function| function.name.eq_ignore_ascii_case(name))?;
            Some(Script {
                title: function.name.as_str().into(),
                flags: function.flags,
                ..library.script.clone()
            })
        })
    }

    /// Takes a library in.
    ///
    /// # Errors
    /// There is one of its name, unless it `replaces` that, or one with a function of the same name.
    pub fn add(&mut self, library: Library, replaces: bool) -> Result<(), CommandError> {
        let name = &library.name;
        if !replaces && self.libraries.contains_key(name) {
            return Err(CommandError::new(format!(
                "ERR Library '{name}' already exists"
            )));
        }
        if let Some(taken) = self.taken_by_others(&library) {
            return Err(CommandError::new(format!(
                "ERR Function {taken} already exists"
            )));
        }
        if self.sizes().1 + library.functions.len() > FUNCTIONS_MAX {
            return Err(CommandError::new(format!(
                "ERR there are {FUNCTIONS_MAX} functions: delete libraries that are not used"
            )));
        }
        self.libraries.insert(library.name.clone(), library);
        Ok(())
    }

    /// A function of another library that has the name of one of `library`.
    fn taken_by_others(&self, library: &Library) -> Option<&str> {
        let others = self.libraries().filter(|other| other.name != library.name);
        let theirs = others.flat_map(|other| &other.functions);
        let mut names = theirs.map(|function| function.name.as_str());
        names.find(|name| {
            let mut own = library.functions.iter();
            own.any(|one| one.name.eq_ignore_ascii_case(name))
        })
    }

    /// Removes a library; whether it was there.
    pub fn remove(&mut self, name: &str) -> bool {
        self.libraries.remove(name).is_some()
    }
}
