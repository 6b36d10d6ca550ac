//! Scripts and the interpreter that a server has.

use super::cache::{Script, ScriptCache};
use super::functions::Functions;
use super::interpreter::Interpreter;
use crate::error::CommandError;

/// Lines of redis.log that wait to be taken.
const LINES_MAX: usize = 1000;

/// What a server has for scripts.
#[derive(Debug, Default)]
pub struct Scripts {
    pub(crate) cache: ScriptCache,
    pub(crate) functions: Functions,
    /// Made at the first script, and again when a script spoilt it.
    interpreter: Option<Interpreter>,
    pub(crate) lines: Vec<(i64, String)>,
    /// Scripts run, and those of them that SCRIPT KILL ended.
    pub(crate) runs: u64,
    pub(crate) kills: u64,
}

impl Scripts {
    pub(crate) fn take_interpreter(&mut self) -> Result<Interpreter, CommandError> {
        self.interpreter.take().map_or_else(Interpreter::new, Ok)
    }

    /// Whether there is a state that the next script runs in: the last one has not spoilt it.
    pub(crate) fn has_interpreter(&self) -> bool {
        self.interpreter.is_some()
    }

    pub(crate) fn give_back(&mut self, interpreter: Interpreter) {
        assert!(
            self.interpreter.is_none(),
            "a script ran within another script"
        );
        self.interpreter = Some(interpreter);
    }

    fn compile(&mut self, script: &Script) -> Result<(), CommandError> {
        let mut interpreter = self.take_interpreter()?;
        let compiled = interpreter.compile(script).map(|_| ());
        self.give_back(interpreter);
        compiled
    }

    /// Remembers a script of EVAL, if it is Lua.
    pub(crate) fn remember(&mut self, script: &Script) -> Result<(), CommandError> {
        self.compile(script)?;
        if let Some(forgotten) = self.cache.remember(script)
            && let Some(interpreter) = &mut self.interpreter
        {
            interpreter.forget(&forgotten);
        }
        Ok(())
    }

    /// Remembers a script of SCRIPT LOAD, if it is Lua.
    pub(crate) fn keep(&mut self, script: &Script) -> Result<(), CommandError> {
        self.compile(script)?;
        self.cache.keep(script);
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        self.cache.clear();
        self.interpreter = None;
    }

    pub(crate) fn log(&mut self, level: i64, text: String) {
        if self.lines.len() < LINES_MAX {
            self.lines.push((level, text));
        }
    }

    /// Scripts, bytes of their texts, and of the interpreter.
    pub(crate) fn sizes(&self) -> (usize, usize, usize) {
        let interpreter = self.interpreter.as_ref();
        (
            self.cache.len(),
            self.cache.bytes(),
            interpreter.map_or(0, Interpreter::memory),
        )
    }
}
