//! Scripts in Lua 5.1: EVAL and SCRIPT, FUNCTION and FCALL, and a script that runs.
//!
//! A script is one command: what its commands write is one piece of [`crate::Effects`], its random numbers come
//! from the command's [`crate::Stamp`]. An endless one is ended by another connection, which the process around
//! the server gives a turn ([`ScriptHost`]); the same process reads keys that the script touches without having
//! named them. The interpreter is [`crate::scripts`].
//!
//! | file | what |
//! |---|---|
//! | `commands` | EVAL, EVALSHA, SCRIPT |
//! | `function_commands` | FUNCTION, FCALL |
//! | `running` | a script's commands, and whether it may go on |
//! | `alone` | scripts on a keyspace that is replicated |
//! | `kill` | SCRIPT KILL, and what scripts have logged |
//! | `host` | what is asked of the process |

mod alone;
mod commands;
mod function_commands;
mod host;
mod kill;
mod running;

pub(super) use alone::Traced;
pub use alone::{ScriptCommand, ScriptRun, ScriptRunner};
pub use commands::NO_SCRIPT;
pub(super) use function_commands::stats;
pub use host::{NoHost, ScriptFate, ScriptHost};
pub(super) use running::RunningScript;

use super::call::{ConnectionCommand, connection};
use crate::spec::{Flags, Group, Keys};

const RUN: Flags = Flags::NOSCRIPT.and(Flags::MOVABLE);
const READ: Flags = RUN.and(Flags::READONLY);
const KEYS: Keys = Keys::Counted(2, None);
const S: Group = Group::Scripting;

/// The family's commands.
pub static COMMANDS: &[ConnectionCommand] = &[
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
        Flags::NOSCRIPT.and(Flags::CONTAINER),
        Keys::None,
        S,
        ("2.6.0", "A container for Lua scripts management commands."),
        commands::script,
    ),
    connection(
        ("function", -2),
        Flags::NOSCRIPT.and(Flags::CONTAINER),
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
