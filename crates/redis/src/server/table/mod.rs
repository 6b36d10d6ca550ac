//! The command table: one entry says all that anybody wants to know of a command.
//!
//! Each family of commands on data declares its own ([`FAMILIES`]), and the server those of connections;
//! admission, key extraction, ACL categories and COMMAND all read this.

mod parts;
mod refused;

pub use parts::{full_name, named};

use std::collections::HashMap;
use std::sync::OnceLock;

use super::call::{ConnectionCommand, ConnectionRun};
use crate::command::Command;
use crate::error::CommandError;
use crate::spec::{CommandSpec, Flags};

/// The tables of all families of commands on data.
pub static FAMILIES: &[&[CommandSpec]] = &[
    crate::strings::COMMANDS,
    crate::keys::COMMANDS,
    crate::hashes::COMMANDS,
    crate::lists::COMMANDS,
    crate::sets::COMMANDS,
    crate::zsets::COMMANDS,
    crate::streams::COMMANDS,
    crate::bitmaps::COMMANDS,
    crate::hyperloglog::COMMANDS,
    crate::geo::COMMANDS,
    crate::dump::COMMANDS,
];

/// The tables of commands of connections.
static OF_CONNECTIONS: &[&[ConnectionCommand]] = &[super::scripting::COMMANDS, super::COMMANDS];

/// Longest name of a command.
const NAME_MAX: usize = 32;

type ByName<T> = HashMap<&'static [u8], T, foldhash::fast::RandomState>;

fn names() -> &'static ByName<&'static CommandSpec> {
    static NAMES: OnceLock<ByName<&'static CommandSpec>> = OnceLock::new();
    NAMES.get_or_init(|| all().map(|spec| (spec.name.as_bytes(), spec)).collect())
}

fn of_connections() -> impl Iterator<Item = &'static ConnectionCommand> {
    OF_CONNECTIONS.iter().flat_map(|family| family.iter())
}

/// Every command.
pub fn all() -> impl Iterator<Item = &'static CommandSpec> {
    let on_data = FAMILIES.iter().flat_map(|family| family.iter());
    on_data.chain(of_connections().map(|command| &command.spec))
}

/// What runs a command of a connection; nothing for a command on data.
pub(super) fn connection_run(spec: &CommandSpec) -> Option<ConnectionRun> {
    static RUNS: OnceLock<ByName<ConnectionRun>> = OnceLock::new();
    let runs = RUNS.get_or_init(|| {
        let runs = of_connections().map(|command| (command.spec.name.as_bytes(), command.run));
        runs.collect()
    });
    runs.get(spec.name.as_bytes()).copied()
}

/// The command of a name in any case.
#[must_use]
pub fn find(name: &[u8]) -> Option<&'static CommandSpec> {
    let mut lower = [0; NAME_MAX];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    names().get(&*lower).copied()
}

/// The command that `command` names, when it has the right number of arguments.
///
/// # Errors
/// Redis's own texts for unknown names and wrong numbers; names that are known and not served say so.
pub fn admit(command: &Command) -> Result<&'static CommandSpec, CommandError> {
    let Some(spec) = find(command.name()) else {
        return Err(unknown(command));
    };
    let given = i64::try_from(command.len()).unwrap_or(i64::MAX);
    let arity = i64::from(spec.arity);
    if (arity > 0 && given != arity) || given < -arity {
        return Err(CommandError::arity(spec.name));
    }
    if spec.flags.has(Flags::CONTAINER) {
        parts::check(spec.name, command)?;
    }
    Ok(spec)
}

fn unknown(command: &Command) -> CommandError {
    let name = String::from_utf8_lossy(command.name()).into_owned();
    if let Some(why) = refused::why(&name) {
        return CommandError::new(format!(
            "ERR {} is not supported: {why}",
            name.to_uppercase()
        ));
    }
    let mut begin = String::new();
    for argument in command.args_from(1) {
        if begin.len() >= 128 {
            break;
        }
        let argument = String::from_utf8_lossy(&argument[..argument.len().min(128)]);
        begin.push_str(&format!("'{argument}' "));
    }
    let name: String = name.chars().take(128).collect();
    CommandError::new(format!(
        "ERR unknown command '{name}', with args beginning with: {begin}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Run;

    #[test]
    fn every_command_is_declared_once_and_says_what_it_does() {
        let mut seen = std::collections::BTreeSet::new();
        for spec in all() {
            assert!(seen.insert(spec.name), "{} twice", spec.name);
            assert_eq!(spec.name, spec.name.to_ascii_lowercase());
            assert!(spec.name.len() <= NAME_MAX && spec.arity != 0);
            assert!(spec.summary.ends_with('.'), "{}", spec.name);
            let is_of_connection = matches!(spec.run, Run::Connection);
            assert_eq!(
                connection_run(spec).is_some(),
                is_of_connection,
                "{}",
                spec.name
            );
            assert!(refused::why(spec.name).is_none(), "{} is served", spec.name);
            let changes = spec.flags.has(Flags::WRITE);
            assert!(
                !(changes && spec.flags.has(Flags::READONLY)),
                "{}",
                spec.name
            );
        }
        assert!(seen.len() > 150, "{}", seen.len());
    }

    #[test]
    fn what_is_not_served_is_refused_in_redis_words() {
        let error = |words: &[&str]| admit(&Command::of(words)).unwrap_err().to_string();
        assert_eq!(
            error(&["NOPE", "a"]),
            "ERR unknown command 'NOPE', with args beginning with: 'a' "
        );
        assert_eq!(
            error(&["GET"]),
            "ERR wrong number of arguments for 'get' command"
        );
        assert!(error(&["CLUSTER", "INFO"]).starts_with("ERR CLUSTER is not supported"));
    }
}
