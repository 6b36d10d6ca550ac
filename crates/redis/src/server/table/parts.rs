//! Commands that are containers of others: XGROUP CREATE and the like.

use crate::command::Command;
use crate::error::CommandError;
use crate::spec::{CommandSpec, Flags};

/// The parts of all containers, in small letters, each with its number of arguments (negative: at least).
const PARTS: &[(&str, i16)] = &[
    ("acl|cat", -2),
    ("acl|deluser", -3),
    ("acl|dryrun", -4),
    ("acl|genpass", -2),
    ("acl|getuser", 3),
    ("acl|help", 2),
    ("acl|list", 2),
    ("acl|load", 2),
    ("acl|log", -2),
    ("acl|save", 2),
    ("acl|setuser", -3),
    ("acl|users", 2),
    ("acl|whoami", 2),
    ("client|caching", 3),
    ("client|getname", 2),
    ("client|getredir", 2),
    ("client|help", 2),
    ("client|id", 2),
    ("client|info", 2),
    ("client|kill", -3),
    ("client|list", -2),
    ("client|no-evict", 3),
    ("client|no-touch", 3),
    ("client|pause", -3),
    ("client|reply", 3),
    ("client|setinfo", 4),
    ("client|setname", 3),
    ("client|tracking", -3),
    ("client|trackinginfo", 2),
    ("client|unblock", -3),
    ("client|unpause", 2),
    ("command|count", 2),
    ("command|docs", -2),
    ("command|getkeys", -3),
    ("command|getkeysandflags", -3),
    ("command|help", 2),
    ("command|info", -2),
    ("command|list", -2),
    ("config|get", -3),
    ("config|help", 2),
    ("config|resetstat", 2),
    ("config|rewrite", 2),
    ("config|set", -4),
    ("function|delete", 3),
    ("function|dump", 2),
    ("function|flush", -2),
    ("function|help", 2),
    ("function|kill", 2),
    ("function|list", -2),
    ("function|load", -3),
    ("function|restore", -3),
    ("function|stats", 2),
    ("latency|doctor", 2),
    ("latency|graph", 3),
    ("latency|help", 2),
    ("latency|histogram", -2),
    ("latency|history", 3),
    ("latency|latest", 2),
    ("latency|reset", -2),
    ("memory|doctor", 2),
    ("memory|help", 2),
    ("memory|malloc-stats", 2),
    ("memory|purge", 2),
    ("memory|stats", 2),
    ("memory|usage", -3),
    ("object|encoding", 3),
    ("object|freq", 3),
    ("object|help", 2),
    ("object|idletime", 3),
    ("object|refcount", 3),
    ("pubsub|channels", -2),
    ("pubsub|help", 2),
    ("pubsub|numpat", 2),
    ("pubsub|numsub", -2),
    ("pubsub|shardchannels", -2),
    ("pubsub|shardnumsub", -2),
    ("script|debug", 3),
    ("script|exists", -3),
    ("script|flush", -2),
    ("script|help", 2),
    ("script|kill", 2),
    ("script|load", 3),
    ("slowlog|get", -2),
    ("slowlog|help", 2),
    ("slowlog|len", 2),
    ("slowlog|reset", 2),
    ("slowlog|split", -2),
    ("xgroup|create", -5),
    ("xgroup|createconsumer", 5),
    ("xgroup|delconsumer", 5),
    ("xgroup|destroy", 4),
    ("xgroup|help", 2),
    ("xgroup|setid", -5),
    ("xinfo|consumers", 4),
    ("xinfo|groups", 3),
    ("xinfo|help", 2),
    ("xinfo|stream", -3),
];

/// Whether `part` names `known`, which is in small letters with its container in front.
fn is_part(known: &str, container: &str, part: &[u8]) -> bool {
    let own = known.strip_prefix(container);
    let own = own.and_then(|own| own.strip_prefix('|'));
    own.is_some_and(|own| own.as_bytes().eq_ignore_ascii_case(part))
}

fn find(container: &str, part: &[u8]) -> Option<&'static (&'static str, i16)> {
    let mut all = PARTS.iter();
    all.find(|(known, _)| is_part(known, container, part))
}

/// The name of a command with that of its part: `client|list`; that of the container where it has no such part.
pub fn full_name(spec: &CommandSpec, command: &Command) -> &'static str {
    if !spec.flags.has(Flags::CONTAINER) {
        return spec.name;
    }
    find(spec.name, command.arg(1)).map_or(spec.name, |(name, _)| name)
}

/// The name of a part that is asked for as `container|part`, in any case.
pub fn named(name: &[u8]) -> Option<&'static str> {
    let mut all = PARTS.iter();
    let found = all.find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name));
    found.map(|(known, _)| *known)
}

/// Whether the container `name` has the part that `command` names, with the right number of arguments.
///
/// # Errors
/// Redis's own texts.
pub fn check(name: &str, command: &Command) -> Result<(), CommandError> {
    if command.len() == 1 {
        return Ok(()); // COMMAND alone; others have two words at least
    }
    let Some((known, arity)) = find(name, command.arg(1)) else {
        let part = String::from_utf8_lossy(command.arg(1));
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
        return Err(CommandError::arity(known));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::table;

    #[test]
    fn parts_belong_to_containers_and_no_container_is_without() {
        for spec in table::all().filter(|spec| spec.flags.has(Flags::CONTAINER)) {
            assert!(find(spec.name, b"HeLp").is_some(), "{}", spec.name);
        }
        for (name, _) in PARTS {
            let (container, part) = name.split_once('|').unwrap();
            let spec = table::find(container.as_bytes()).unwrap();
            assert!(spec.flags.has(Flags::CONTAINER), "{name}");
            let command = Command::of(&[container.to_uppercase(), part.to_uppercase()]);
            assert_eq!(full_name(spec, &command), *name);
            assert_eq!(named(name.to_uppercase().as_bytes()), Some(*name));
        }
        let get = table::find(b"get").unwrap();
        assert_eq!(full_name(get, &Command::of(&["GET", "list"])), "get");
    }
}
