//! Users: who may do what. The basics: a password, commands by name and family, keys by pattern.

use std::collections::BTreeMap;

use super::call::Call;
use super::table;
use crate::command::Command;
use crate::error::CommandError;
use crate::glob;
use crate::resp::Reply;
use crate::spec::{CommandSpec, Flags};

/// One rule about commands, in order: the last that fits decides.
#[derive(Debug, Clone)]
enum Rule {
    All(bool),
    Family(String, bool),
    Name(String, bool),
}

#[derive(Debug, Clone, Default)]
struct User {
    is_on: bool,
    needs_no_password: bool,
    passwords: Vec<String>,
    rules: Vec<Rule>,
    patterns: Vec<Vec<u8>>,
}

/// All users.
#[derive(Debug)]
pub(super) struct Users {
    by_name: BTreeMap<String, User>,
}

/// Whether two texts are equal, in a time that depends on their lengths only.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let difference = one
        .iter()
        .zip(other)
        .fold(0, |found, (a, b)| found | (a ^ b));
    one.len() == other.len() && difference == 0
}

/// Families of a command, as ACL CAT names them.
pub(super) fn families(spec: &CommandSpec) -> Vec<&'static str> {
    let mut families = vec![spec.group.names().1];
    let mut add = |is_one: bool, name| {
        if is_one && !families.contains(&name) {
            families.push(name);
        }
    };
    add(spec.flags.has(Flags::WRITE), "write");
    add(spec.flags.has(Flags::READONLY), "read");
    add(spec.flags.has(Flags::ADMIN), "admin");
    add(
        spec.flags.has(Flags::ADMIN) || spec.flags.has(Flags::ALL_KEYS),
        "dangerous",
    );
    add(spec.flags.has(Flags::BLOCKING), "blocking");
    add(spec.flags.has(Flags::FAST), "fast");
    add(!spec.flags.has(Flags::FAST), "slow");
    families
}

impl User {
    fn may_run(&self, spec: &CommandSpec) -> bool {
        let mut allowed = false;
        for rule in &self.rules {
            match rule {
                Rule::All(is_allowed) => allowed = *is_allowed,
                Rule::Family(family, is_allowed) if families(spec).contains(&family.as_str()) => {
                    allowed = *is_allowed;
                }
                Rule::Name(name, is_allowed) if name == spec.name => allowed = *is_allowed,
                Rule::Family(..) | Rule::Name(..) => {}
            }
        }
        allowed
    }

    fn change(&mut self, rule: &str) -> Result<(), CommandError> {
        let wrong = || {
            CommandError::new(format!(
                "ERR Error in ACL SETUSER modifier '{rule}': Syntax error"
            ))
        };
        match rule {
            "on" => self.is_on = true,
            "off" => self.is_on = false,
            "nopass" => {
                self.needs_no_password = true;
                self.passwords.clear();
            }
            "resetpass" => {
                self.needs_no_password = false;
                self.passwords.clear();
            }
            "allkeys" => self.patterns = vec![b"*".to_vec()],
            "resetkeys" => self.patterns.clear(),
            "allcommands" => self.rules = vec![Rule::All(true)],
            "nocommands" => self.rules = vec![Rule::All(false)],
            "allchannels" | "resetchannels" | "sanitize-payload" | "skip-sanitize-payload" => {}
            "reset" => *self = Self::default(),
            _ => {
                let (first, rest) = rule.split_at_checked(1).ok_or_else(wrong)?;
                match (first, rest.strip_prefix('@')) {
                    (">", _) => {
                        self.needs_no_password = false;
                        self.passwords.push(rest.to_owned());
                    }
                    ("<", _) => self.passwords.retain(|password| password != rest),
                    ("~", _) => self.patterns.push(rest.as_bytes().to_vec()),
                    ("&", _) => {}
                    ("+" | "-", Some("all")) => self.rules = vec![Rule::All(first == "+")],
                    ("+" | "-", Some(family)) => {
                        if !all_families().contains(&family) {
                            return Err(CommandError::new(format!(
                                "ERR Error in ACL SETUSER modifier '{rule}': Unknown command or \
                                 category name in ACL"
                            )));
                        }
                        self.rules
                            .push(Rule::Family(family.to_owned(), first == "+"));
                    }
                    ("+" | "-", None) if table::find(rest.as_bytes()).is_some() => {
                        self.rules
                            .push(Rule::Name(rest.to_ascii_lowercase(), first == "+"));
                    }
                    _ => return Err(wrong()),
                }
            }
        }
        Ok(())
    }

    fn describe(&self, name: &str) -> String {
        let mut parts = vec![
            format!("user {name}"),
            if self.is_on { "on" } else { "off" }.to_owned(),
        ];
        if self.needs_no_password {
            parts.push("nopass".to_owned());
        }
        // Passwords are not told.
        parts.extend(self.passwords.iter().map(|_| "#***".to_owned()));
        for pattern in &self.patterns {
            parts.push(format!("~{}", String::from_utf8_lossy(pattern)));
        }
        parts.push("&*".to_owned());
        if self.rules.is_empty() {
            parts.push("-@all".to_owned());
        }
        for rule in &self.rules {
            let sign = |is_allowed: bool| if is_allowed { '+' } else { '-' };
            parts.push(match rule {
                Rule::All(is_allowed) => format!("{}@all", sign(*is_allowed)),
                Rule::Family(family, is_allowed) => format!("{}@{family}", sign(*is_allowed)),
                Rule::Name(name, is_allowed) => format!("{}{name}", sign(*is_allowed)),
            });
        }
        parts.join(" ")
    }
}

fn all_families() -> Vec<&'static str> {
    let mut all: Vec<_> = table::all().flat_map(families).collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl Users {
    /// The user `default`, who may do all, with or without a password.
    pub fn new(password: Option<&str>) -> Self {
        let default = User {
            is_on: true,
            needs_no_password: password.is_none(),
            passwords: password.map(str::to_owned).into_iter().collect(),
            rules: vec![Rule::All(true)],
            patterns: vec![b"*".to_vec()],
        };
        Self {
            by_name: BTreeMap::from([("default".to_owned(), default)]),
        }
    }

    /// Whether connections need not say who they are.
    pub fn needs_no_password(&self) -> bool {
        let default = self.by_name.get("default");
        default.is_some_and(|user| user.is_on && user.needs_no_password)
    }

    pub fn is_password(&self, name: &str, password: &[u8]) -> bool {
        let Some(user) = self.by_name.get(name).filter(|user| user.is_on) else {
            return false;
        };
        let same = user
            .passwords
            .iter()
            .filter(|own| is_same(own.as_bytes(), password));
        user.needs_no_password || same.count() > 0
    }

    /// Whether `name` may run `command`.
    pub fn check(
        &self,
        name: &str,
        spec: &CommandSpec,
        command: &Command,
    ) -> Result<(), CommandError> {
        let user = self.by_name.get(name);
        let may_all = |user: &User| {
            matches!(user.rules.as_slice(), [Rule::All(true)]) && user.patterns == [b"*"]
        };
        if user.is_some_and(may_all) {
            return Ok(());
        }
        let Some(user) = user.filter(|user| user.may_run(spec)) else {
            return Err(CommandError::new(format!(
                "NOPERM User {name} has no permissions to run the '{}' command",
                spec.name
            )));
        };
        let is_allowed = |key: &[u8]| {
            user.patterns
                .iter()
                .any(|pattern| glob::matches(pattern, key))
        };
        let mut places = spec.keys.places(command).into_iter();
        if places.all(|place| is_allowed(command.arg(place))) {
            return Ok(());
        }
        Err(CommandError::text("NOPERM No permissions to access a key"))
    }
}

pub fn acl(call: &mut Call<'_>, command: &Command) -> Result<Reply, CommandError> {
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
        (b"DELUSER", 3..) => {
            let named = command
                .args_from(2)
                .map(|name| String::from_utf8_lossy(name).into_owned());
            Ok(Reply::count(
                named.filter(|name| users.remove(name).is_some()).count(),
            ))
        }
        _ => Err(CommandError::new(format!(
            "ERR unknown subcommand or wrong number of arguments for '{}'. Try ACL HELP.",
            String::from_utf8_lossy(command.arg(1))
        ))),
    }
}
