//! Scripts in Lua 5.1: EVAL and SCRIPT, FUNCTION and FCALL.
//!
//! A script is one command: what its commands write is one piece of [`crate::Effects`], its random numbers come
//! from the command's [`crate::Stamp`]. It sees Redis's own libraries, of our own making, and nothing of the
//! system. An endless one is ended by another connection, which the process around the server gives a turn
//! ([`ScriptHost`]); the same process reads keys that the script touches without having named them.
//!
//! | file | what |
//! |---|---|
//! | `commands` | EVAL, EVALSHA, SCRIPT |
//! | `cache` | scripts by their SHA-1 |
//! | `functions`, `function_commands` | libraries of functions: FUNCTION, FCALL |
//! | `running` | a script's commands, and whether it may go on |
//! | `interpreter`, `sandbox.lua` | the Lua state: its limits, what scripts see of it |
//! | `values` | replies as values of Lua, and back |
//! | `library` | `redis`, `cjson`, `cmsgpack`, `struct`, `bit` |
//! | `thrown` | errors that Rust raises in scripts |
//! | `host` | what is asked of the process |

mod bits;
mod cache;
mod cjson;
mod cmsgpack;
mod commands;
mod function_commands;
mod functions;
mod host;
mod interpreter;
mod json;
mod library;
mod pack;
mod running;
mod state;
mod thrown;
mod values;

pub(crate) use function_commands::stats;
pub use host::{NoHost, ScriptFate, ScriptHost};
pub use interpreter::INSTRUCTIONS;
pub(crate) use running::RunningScript;
pub(crate) use state::Scripts;

use crate::table::{CommandSpec, Flags, Group, Keys, connection};

const RUN: Flags = Flags::NOSCRIPT.and(Flags::MOVABLE);
const READ: Flags = RUN.and(Flags::READONLY);
const KEYS: Keys = Keys::Counted(2, None);
const S: Group = Group::Scripting;

/// The family's commands.
pub static COMMANDS: &[CommandSpec] = &[
    connection(
        ("eval", -3),
        RUN,
        KEYS,
        S,
        ("2.6.0", "Executes a server-side Lua script."),
        commands::eval,
    ),
    connection(
        ("evalsha", -3),
        RUN,
        KEYS,
        S,
        ("2.6.0", "Executes a server-side Lua script by SHA1 digest."),
        commands::evalsha,
    ),
    connection(
        ("eval_ro", -3),
        READ,
        KEYS,
        S,
        ("7.0.0", "Executes a read-only server-side Lua script."),
        commands::eval_ro,
    ),
    connection(
        ("evalsha_ro", -3),
        READ,
        KEYS,
        S,
        (
            "7.0.0",
            "Executes a read-only server-side Lua script by SHA1 digest.",
        ),
        commands::evalsha_ro,
    ),
    connection(
        ("script", -2),
        Flags::NOSCRIPT,
        Keys::None,
        S,
        ("2.6.0", "A container for Lua scripts management commands."),
        commands::script,
    ),
    connection(
        ("function", -2),
        Flags::NOSCRIPT,
        Keys::None,
        S,
        ("7.0.0", "A container for function commands."),
        function_commands::function,
    ),
    connection(
        ("fcall", -3),
        RUN,
        KEYS,
        S,
        ("7.0.0", "Invokes a function."),
        function_commands::fcall,
    ),
    connection(
        ("fcall_ro", -3),
        READ,
        KEYS,
        S,
        ("7.0.0", "Invokes a read-only function."),
        function_commands::fcall_ro,
    ),
];
