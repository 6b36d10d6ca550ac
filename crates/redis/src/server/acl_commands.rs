//! ACL: what operators ask of users and change.

use super::acl::{DEFAULT, User, Users, merged};
use super::acl_log;
use super::call::Call;
use super::client::ClientId;
use super::selector::{Selector, all_families, families};
use super::state::Server;
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
    "GENPASS [<bits>] | GETUSER <username> | LIST | LOAD | LOG [<count> | RESET] | SAVE",
    "SETUSER <username> <attribute> ... | USERS | WHOAMI",
];

const NO_FILE: &str = "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via \
     the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration \
     file set) in order to store users in the Redis configuration.";

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
            let rules = command.args_from(3);
            let rules: Vec<String> = rules
                .map(|rule| String::from_utf8_lossy(rule).into_owned())
                .collect();
            for rule in merged(&rules)? {
                user.change(&rule)?;
            }
            users.insert(name, user);
            Ok(Reply::OK)
        }
        (b"DELUSER", 3..) if command.args_from(2).any(|name| name == DEFAULT.as_bytes()) => Err(
            CommandError::text("ERR The 'default' user cannot be removed"),
        ),
        (b"DELUSER", 3..) => delete(call, command),
        (b"GETUSER", 3) => Ok(users.get(&name).map_or(Reply::Null, told)),
        (b"GENPASS", 2..=3) => generate(call, command),
        (b"DRYRUN", 4..) => dry_run(call, command),
        (b"LOG", 2..=3) => acl_log::log(call, command),
        (b"LOAD", 2) => load(call),
        (b"SAVE", 2) => {
            let text = call.server.users.to_file();
            match call.host.write_users(&text) {
                Some(written) => written.map(|()| Reply::OK).map_err(|why| {
                    CommandError::new(format!(
                        "ERR There was an error trying to save the ACLs: {why}"
                    ))
                }),
                None => Err(CommandError::text(NO_FILE)),
            }
        }
        (b"HELP", 2) => Ok(Reply::Array(HELP.iter().map(Reply::bulk).collect())),
        _ => Err(super::info::unknown(command)),
    }
}

/// ACL GETUSER.
fn told(user: &User) -> Reply {
    let passwords = user.passwords.iter().map(Reply::bulk);
    let mut told = vec![
        (
            Reply::bulk("flags"),
            Reply::Set(user.flags().into_iter().map(Reply::bulk).collect()),
        ),
        (Reply::bulk("passwords"), Reply::Array(passwords.collect())),
    ];
    told.extend(allowed(&user.root));
    let selectors = user.selectors.iter();
    let selectors = selectors.map(|selector| Reply::Map(allowed(selector).into()));
    told.push((Reply::bulk("selectors"), Reply::Array(selectors.collect())));
    Reply::Map(told)
}

fn allowed(selector: &Selector) -> [(Reply, Reply); 3] {
    [
        (Reply::bulk("commands"), Reply::bulk(selector.commands())),
        (Reply::bulk("keys"), Reply::bulk(selector.keys())),
        (Reply::bulk("channels"), Reply::bulk(selector.channels())),
    ]
}

impl Server {
    /// Takes the users of a file ([`Users::of_file`]) in place of those that are there, all or none. Connections
    /// of users that are others now, or gone, end, but those of `default`, as in Redis.
    ///
    /// # Errors
    /// The lines that are wrong, and why; nothing has changed then.
    pub fn load_users(&mut self, text: &str) -> Result<(), String> {
        let users = Users::of_file(text, self.settings.password.as_deref())?;
        let before = std::mem::replace(&mut self.users, users);
        let is_other = |name: &String| {
            name != DEFAULT && self.users.by_name.get(name) != before.by_name.get(name)
        };
        let clients = self.clients.iter();
        let ended = clients.filter(|(_, client)| client.user.as_ref().is_some_and(is_other));
        let ended: Vec<ClientId> = ended.map(|(id, _)| *id).collect();
        self.closing.extend(ended);
        assert!(
            self.users.by_name.contains_key(DEFAULT),
            "connections begin as the user default"
        );
        Ok(())
    }
}

/// ACL LOAD.
fn load(call: &mut Call<'_>) -> Answer {
    let refused = |why: String| {
        CommandError::new(format!(
            "ERR {why} WARNING: ACL errors detected, no change to the previously active ACL rules was \
             performed"
        ))
    };
    let text = match call.host.read_users() {
        Some(text) => text.map_err(refused)?,
        None => return Err(CommandError::text(NO_FILE)),
    };
    call.server.load_users(&text).map_err(refused)?;
    Ok(Reply::OK)
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
