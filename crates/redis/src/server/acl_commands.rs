//! ACL: what operators ask of users and change.

use super::acl::{User, all_families, families};
use super::acl_log;
use super::call::Call;
use super::table;
use crate::command::Command;
use crate::error::CommandError;
use crate::number;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

/// Bits of a password that GENPASS makes when nobody says how many, and at most.
const PASSWORD_BITS: i64 = 256;
const PASSWORD_BITS_MAX: i64 = 4096;

const HELP: &[&str] = &[
    "ACL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CAT [<category>] | DELUSER <username> ... | DRYRUN <username> <command> [<arg> ...]",
    "GENPASS [<bits>] | GETUSER <username> | LIST | LOG [<count> | RESET]",
    "SETUSER <username> <attribute> ... | USERS | WHOAMI",
];

pub fn acl(call: &mut Call<'_>, command: &Command) -> Answer {
    let texts = |texts: Vec<String>| Reply::Array(texts.iter().map(Reply::bulk).collect());
    let word = command.arg(1).to_ascii_uppercase();
    let name = String::from_utf8_lossy(command.arg(2)).into_owned();
    let users = &mut call.server.users.by_name;
    match (word.as_slice(), command.len()) {
        (b"WHOAMI", 2) => Ok(Reply::bulk(
            call.client().user.as_deref().unwrap_or_default(),
        )),
        (b"USERS", 2) => Ok(texts(users.keys().cloned().collect())),
        (b"LIST", 2) => Ok(texts(
            users
                .iter()
                .map(|(name, user)| user.describe(name))
                .collect(),
        )),
        (b"CAT", 2) => Ok(Reply::Array(
            all_families().iter().map(Reply::bulk).collect(),
        )),
        (b"CAT", 3) => {
            let family = name.to_ascii_lowercase();
            let of = table::all().filter(|spec| families(spec).contains(&family.as_str()));
            Ok(Reply::Array(
                of.map(|spec| Reply::bulk(spec.name)).collect(),
            ))
        }
        (b"SETUSER", 3..) => {
            // All rules or none.
            let mut user = users.get(&name).cloned().unwrap_or_default();
            for rule in command.args_from(3) {
                user.change(&String::from_utf8_lossy(rule))?;
            }
            users.insert(name, user);
            Ok(Reply::OK)
        }
        (b"DELUSER", 3..) if command.args_from(2).any(|name| name == b"default") => Err(
            CommandError::text("ERR The 'default' user cannot be removed"),
        ),
        (b"DELUSER", 3..) => delete(call, command),
        (b"GETUSER", 3) => Ok(users.get(&name).map_or(Reply::Null, told)),
        (b"GENPASS", 2..=3) => generate(call, command),
        (b"DRYRUN", 4..) => dry_run(call, command),
        (b"LOG", 2..=3) => acl_log::log(call, command),
        (b"LOAD" | b"SAVE", 2) => Err(CommandError::text(
            "ERR This Redis instance is not configured to use an ACL file. You may want to specify \
             users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a \
             Redis configuration file set) in order to store users in the Redis configuration.",
        )),
        (b"HELP", 2) => Ok(Reply::Array(HELP.iter().map(Reply::bulk).collect())),
        _ => Err(super::info::unknown(command)),
    }
}

/// ACL GETUSER.
fn told(user: &User) -> Reply {
    let passwords = user.passwords.iter().map(Reply::bulk);
    Reply::Map(vec![
        (
            Reply::bulk("flags"),
            Reply::Set(user.flags().into_iter().map(Reply::bulk).collect()),
        ),
        (Reply::bulk("passwords"), Reply::Array(passwords.collect())),
        (Reply::bulk("commands"), Reply::bulk(user.commands())),
        (Reply::bulk("keys"), Reply::bulk(user.keys())),
        (Reply::bulk("channels"), Reply::bulk(user.channels())),
        (Reply::bulk("selectors"), Reply::Array(Vec::new())),
    ])
}

/// ACL DELUSER: connections of a user end with it.
fn delete(call: &mut Call<'_>, command: &Command) -> Answer {
    let mut deleted = 0;
    for name in command.args_from(2) {
        let name = String::from_utf8_lossy(name).into_owned();
        if call.server.users.by_name.remove(&name).is_none() {
            continue;
        }
        deleted += 1;
        let clients = call.server.clients.iter();
        let of_it = clients.filter(|(_, client)| client.user.as_ref() == Some(&name));
        let ids = of_it.map(|(id, _)| *id);
        call.server.closing.extend(ids);
    }
    Ok(Reply::count(deleted))
}

/// ACL GENPASS.
fn generate(call: &mut Call<'_>, command: &Command) -> Answer {
    let bits = match command.len() {
        2 => PASSWORD_BITS,
        _ => number::parse(command.arg(2))?,
    };
    if !(1..=PASSWORD_BITS_MAX).contains(&bits) {
        return Err(CommandError::text(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a \
             positive number up to 4096",
        ));
    }
    let digits = usize::try_from(bits).unwrap_or(0).div_ceil(4);
    let mut secret = vec![0; digits.div_ceil(2)];
    if !call.host.secret(&mut secret) {
        return Err(CommandError::text("ERR this server makes no passwords"));
    }
    let mut password = hex::encode(secret);
    password.truncate(digits);
    assert_eq!(password.len(), digits, "a password has the asked length");
    Ok(Reply::bulk(password))
}

/// ACL DRYRUN.
fn dry_run(call: &Call<'_>, command: &Command) -> Answer {
    let user = String::from_utf8_lossy(command.arg(2)).into_owned();
    if !call.server.users.by_name.contains_key(&user) {
        return Err(CommandError::new(format!("ERR User '{user}' not found")));
    }
    let words: Vec<&[u8]> = command.args_from(3).collect();
    let inner = Command::of(&words);
    if table::find(inner.name()).is_none() {
        let name = String::from_utf8_lossy(inner.name()).into_owned();
        return Err(CommandError::new(format!("ERR Command '{name}' not found")));
    }
    let spec = table::admit(&inner)?;
    let denied = call.server.users.denial(&user, spec, &inner);
    Ok(denied.map_or(Reply::OK, |denied| Reply::bulk(denied.verbose(&user))))
}
