//! Scripts and the interpreter of a server.

use super::cache::{Script, ScriptCache};
use super::functions::Functions;
use super::interpreter::Interpreter;
use crate::error::CommandError;
use crate::resp::Reply;
use crate::server::Server;

/// Lines of redis.log that wait to be taken.
const LINES_MAX: usize = 1000;

/// What a server has for scripts.
#[derive(Debug, Default)]
pub struct Scripts {
    pub(super) cache: ScriptCache,
    pub(crate) functions: Functions,
    /// Made at the first script, and again when a script spoilt it.
    interpreter: Option<Interpreter>,
    lines: Vec<(i64, String)>,
    /// Scripts run, and those of them that SCRIPT KILL ended.
    pub(crate) runs: u64,
    pub(crate) kills: u64,
}

impl Scripts {
    pub(super) fn take_interpreter(&mut self) -> Result<Interpreter, CommandError> {
        self.interpreter.take().map_or_else(Interpreter::new, Ok)
    }

    pub(super) fn give_back(&mut self, interpreter: Interpreter) {
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
    pub(super) fn remember(&mut self, script: &Script) -> Result<(), CommandError> {
        self.compile(script)?;
        if let Some(forgotten) = self.cache.remember(script)
            && let Some(interpreter) = &mut self.interpreter
        {
            interpreter.forget(&forgotten);
        }
        Ok(())
    }

    /// Remembers a script of SCRIPT LOAD, if it is Lua.
    pub(super) fn keep(&mut self, script: &Script) -> Result<(), CommandError> {
        self.compile(script)?;
        self.cache.keep(script);
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        self.cache.clear();
        self.interpreter = None;
    }

    pub(super) fn log(&mut self, level: i64, text: String) {
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

impl Server {
    /// What scripts wrote with redis.log since the last time: levels 0 (debug) to 3 (warning), and texts.
    pub fn take_script_log(&mut self) -> Vec<(i64, String)> {
        std::mem::take(&mut self.scripts.lines)
    }

    /// SCRIPT KILL.
    pub(crate) fn kill_script(&mut self) -> Result<Reply, CommandError> {
        match &mut self.running {
            None => Err(CommandError::text(
                "NOTBUSY No scripts in execution right now.",
            )),
            Some(running) if running.has_written => Err(CommandError::text(
                "UNKILLABLE Sorry the script already executed write commands against the dataset. \
                 You can either wait the script termination or kill the server in a hard way using \
                 the SHUTDOWN NOSAVE command.",
            )),
            Some(running) => {
                self.scripts.kills += u64::from(!running.is_killed);
                running.is_killed = true;
                Ok(Reply::OK)
            }
        }
    }
}
