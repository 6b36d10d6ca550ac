//! Commands that are containers of others: XGROUP CREATE and the like.

use crate::command::Command;
use crate::error::CommandError;

/// The second words of a container, in small letters, each with its number of arguments (negative: at least).
type Parts = &'static [(&'static str, i16)];

const CONTAINERS: &[(&str, Parts)] = &[
    (
        "xgroup",
        &[
            ("create", -5),
            ("setid", -5),
            ("destroy", 4),
            ("createconsumer", 5),
            ("delconsumer", 5),
            ("help", 2),
        ],
    ),
    (
        "xinfo",
        &[("stream", -3), ("groups", 3), ("consumers", 4), ("help", 2)],
    ),
    (
        "object",
        &[
            ("encoding", 3),
            ("freq", 3),
            ("idletime", 3),
            ("refcount", 3),
            ("help", 2),
        ],
    ),
];

/// Whether the container `name` has the part that `command` names, with the right number of arguments.
///
/// # Errors
/// Redis's own texts.
pub fn check(name: &str, command: &Command) -> Result<(), CommandError> {
    let Some((_, parts)) = CONTAINERS.iter().find(|(container, _)| *container == name) else {
        return Ok(());
    };
    let part = String::from_utf8_lossy(command.arg(1));
    let found = parts
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(&part));
    let Some((known, arity)) = found else {
        return Err(CommandError::new(format!(
            "ERR unknown subcommand '{}'. Try {} HELP.",
            part.chars().take(128).collect::<String>(),
            name.to_uppercase()
        )));
    };
    let (given, arity) = (
        i64::try_from(command.len()).unwrap_or(i64::MAX),
        i64::from(*arity),
    );
    if (arity > 0 && given != arity) || given < -arity {
        return Err(CommandError::arity(&format!("{name}|{known}")));
    }
    Ok(())
}
