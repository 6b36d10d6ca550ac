//! Users: who may do what. The basics: a password, commands by name and family, keys by pattern.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use super::acl_log::Denied;
use super::table;
use crate::command::Command;
use crate::error::CommandError;
use crate::glob;
use crate::spec::{CommandSpec, Flags};

/// One rule about commands, in order: the last that fits decides.
#[derive(Debug, Clone)]
enum Rule {
    All(bool),
    Family(String, bool),
    /// A command, or a part of one: `client|list`.
    Name(&'static str, bool),
}

/// All that a list of patterns may have.
const EVERYTHING: &[u8] = b"*";

/// What one user may do.
#[derive(Debug, Clone, Default)]
pub(super) struct User {
    pub is_on: bool,
    pub needs_no_password: bool,
    /// SHA-256 of each, in hexadecimal digits.
    pub passwords: Vec<String>,
    rules: Vec<Rule>,
    /// Of keys.
    patterns: Vec<Vec<u8>>,
    /// Of channels.
    channels: Vec<Vec<u8>>,
}

/// All users.
#[derive(Debug)]
pub(super) struct Users {
    pub by_name: BTreeMap<String, User>,
}

/// A password as it is kept.
fn hashed(password: &[u8]) -> String {
    hex::encode(Sha256::digest(password))
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
    /// Whether it may run a command, whose full name is `name`.
    fn may_run(&self, spec: &CommandSpec, name: &str) -> bool {
        let mut allowed = false;
        for rule in &self.rules {
            match rule {
                Rule::All(is_allowed) => allowed = *is_allowed,
                Rule::Family(family, is_allowed) if families(spec).contains(&family.as_str()) => {
                    allowed = *is_allowed;
                }
                Rule::Name(rule, is_allowed) if *rule == spec.name || *rule == name => {
                    allowed = *is_allowed;
                }
                Rule::Family(..) | Rule::Name(..) => {}
            }
        }
        allowed
    }

    /// Applies a rule of ACL SETUSER.
    pub fn change(&mut self, rule: &str) -> Result<(), CommandError> {
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
            "allkeys" => self.patterns = vec![EVERYTHING.to_vec()],
            "resetkeys" => self.patterns.clear(),
            "allcommands" => self.rules = vec![Rule::All(true)],
            "nocommands" => self.rules = vec![Rule::All(false)],
            "allchannels" => self.channels = vec![EVERYTHING.to_vec()],
            "resetchannels" => self.channels.clear(),
            "sanitize-payload" | "skip-sanitize-payload" => {}
            "reset" => *self = Self::default(),
            _ => {
                let (first, rest) = rule.split_at_checked(1).ok_or_else(wrong)?;
                match (first, rest.strip_prefix('@')) {
                    (">", _) => self.add_password(hashed(rest.as_bytes())),
                    ("#", _) => self.add_password(checked_hash(rule, rest)?),
                    ("<", _) => self.drop_password(&hashed(rest.as_bytes()), rule)?,
                    ("!", _) => self.drop_password(&checked_hash(rule, rest)?, rule)?,
                    ("~", _) => add(&mut self.patterns, rest),
                    ("&", _) => add(&mut self.channels, rest),
                    ("+" | "-", Some("all")) => self.rules = vec![Rule::All(first == "+")],
                    ("+" | "-", Some(family)) if all_families().contains(&family) => {
                        self.allow_family(family, first == "+");
                    }
                    ("+" | "-", None) => {
                        let name = known_name(rest).ok_or_else(|| unknown_name(rule))?;
                        self.allow_name(name, first == "+");
                    }
                    ("+" | "-", Some(_)) => return Err(unknown_name(rule)),
                    _ => return Err(wrong()),
                }
            }
        }
        Ok(())
    }

    fn add_password(&mut self, hash: String) {
        self.needs_no_password = false;
        if !self.passwords.contains(&hash) {
            self.passwords.push(hash);
        }
    }

    fn drop_password(&mut self, hash: &str, rule: &str) -> Result<(), CommandError> {
        let before = self.passwords.len();
        self.passwords.retain(|password| password != hash);
        if self.passwords.len() == before {
            return Err(CommandError::new(format!(
                "ERR Error in ACL SETUSER modifier '{rule}': The password you are trying to remove \
                 from the user does not exist"
            )));
        }
        Ok(())
    }

    /// Rules before that a new one decides otherwise are no rules any more.
    fn allow_family(&mut self, family: &str, is_allowed: bool) {
        self.rules.retain(|rule| match rule {
            Rule::All(_) => true,
            Rule::Family(before, _) => before != family,
            Rule::Name(name, _) => {
                let command = name.split('|').next().unwrap_or(name);
                let spec = table::find(command.as_bytes());
                !spec.is_some_and(|spec| families(spec).contains(&family))
            }
        });
        self.rules.push(Rule::Family(family.to_owned(), is_allowed));
    }

    fn allow_name(&mut self, name: &'static str, is_allowed: bool) {
        let is_part = |of: &str| {
            of.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('|'))
        };
        self.rules.retain(|rule| match rule {
            Rule::Name(before, _) => *before != name && !is_part(before),
            Rule::All(_) | Rule::Family(..) => true,
        });
        self.rules.push(Rule::Name(name, is_allowed));
    }

    /// Its words for ACL GETUSER.
    pub fn flags(&self) -> Vec<&'static str> {
        let state = if self.is_on { "on" } else { "off" };
        let nopass = self.needs_no_password.then_some("nopass");
        std::iter::once(state).chain(nopass).collect()
    }

    /// Its rules about commands.
    pub fn commands(&self) -> String {
        let mut parts = Vec::new();
        if !matches!(self.rules.first(), Some(Rule::All(_))) {
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

    /// Its patterns of keys.
    pub fn keys(&self) -> String {
        listed('~', &self.patterns)
    }

    /// Its patterns of channels.
    pub fn channels(&self) -> String {
        listed('&', &self.channels)
    }

    /// Its line of ACL LIST.
    pub fn describe(&self, name: &str) -> String {
        let mut parts = vec![format!("user {name}")];
        parts.extend(self.flags().into_iter().map(str::to_owned));
        parts.extend(self.passwords.iter().map(|hash| format!("#{hash}")));
        let (keys, channels) = (self.keys(), self.channels());
        parts.extend((!keys.is_empty()).then_some(keys));
        if !self.channels.iter().any(|pattern| pattern == EVERYTHING) {
            parts.push("resetchannels".to_owned());
        }
        parts.extend((!channels.is_empty()).then_some(channels));
        parts.push(self.commands());
        parts.join(" ")
    }

    fn may_all(&self) -> bool {
        let is_all = |patterns: &[Vec<u8>]| patterns == [EVERYTHING];
        matches!(self.rules.as_slice(), [Rule::All(true)])
            && is_all(&self.patterns)
            && is_all(&self.channels)
    }

    /// The first channel of a command that it may not use. A pattern is allowed as it is written only.
    fn denied_channel<'a>(&self, spec: &CommandSpec, command: &'a Command) -> Option<&'a [u8]> {
        let last = match spec.name {
            "publish" => 2,
            "subscribe" | "psubscribe" => command.len(),
            _ => return None,
        };
        let is_pattern = spec.name == "psubscribe";
        let is_allowed = |channel: &[u8]| {
            self.channels.iter().any(|allowed| {
                allowed == EVERYTHING
                    || if is_pattern {
                        allowed == channel
                    } else {
                        glob::matches(allowed, channel)
                    }
            })
        };
        let mut channels = command.args_from(1).take(last - 1);
        channels.find(|channel| !is_allowed(channel))
    }
}

/// Adds a pattern, unless another one has everything.
fn add(patterns: &mut Vec<Vec<u8>>, pattern: &str) {
    let pattern = pattern.as_bytes().to_vec();
    if pattern == EVERYTHING {
        patterns.clear();
    }
    let is_new = !patterns.contains(&pattern) && !patterns.iter().any(|one| one == EVERYTHING);
    if is_new {
        patterns.push(pattern);
    }
}

fn listed(sign: char, patterns: &[Vec<u8>]) -> String {
    let parts = patterns.iter();
    let parts = parts.map(|pattern| format!("{sign}{}", String::from_utf8_lossy(pattern)));
    parts.collect::<Vec<String>>().join(" ")
}

fn checked_hash(rule: &str, hash: &str) -> Result<String, CommandError> {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if hash.len() == 64 && hash.as_bytes().iter().all(is_digit) {
        return Ok(hash.to_owned());
    }
    Err(CommandError::new(format!(
        "ERR Error in ACL SETUSER modifier '{rule}': The password hash must be exactly 64 characters \
         and contain only lowercase hexadecimal characters"
    )))
}

fn unknown_name(rule: &str) -> CommandError {
    CommandError::new(format!(
        "ERR Error in ACL SETUSER modifier '{rule}': Unknown command or category name in ACL"
    ))
}

/// A command, or a part of one, that a rule names.
fn known_name(name: &str) -> Option<&'static str> {
    let command = table::find(name.as_bytes()).map(|spec| spec.name);
    command.or_else(|| table::named(name.as_bytes()))
}

/// All families, as ACL CAT names them.
pub(super) fn all_families() -> Vec<&'static str> {
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
            passwords: password
                .map(|text| hashed(text.as_bytes()))
                .into_iter()
                .collect(),
            rules: vec![Rule::All(true)],
            patterns: vec![EVERYTHING.to_vec()],
            channels: vec![EVERYTHING.to_vec()],
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
        let hash = hashed(password);
        let same = user
            .passwords
            .iter()
            .filter(|own| is_same(own.as_bytes(), hash.as_bytes()));
        user.needs_no_password || same.count() > 0
    }

    /// What of `command` the user `name` may not.
    pub fn denial(&self, name: &str, spec: &CommandSpec, command: &Command) -> Option<Denied> {
        let user = self.by_name.get(name);
        if user.is_some_and(User::may_all) {
            return None;
        }
        let full_name = table::full_name(spec, command);
        let Some(user) = user.filter(|user| user.may_run(spec, full_name)) else {
            return Some(Denied::Command(full_name));
        };
        let is_allowed = |key: &[u8]| {
            let mut patterns = user.patterns.iter();
            patterns.any(|pattern| glob::matches(pattern, key))
        };
        let mut keys = spec.keys.places(command).into_iter();
        if let Some(place) = keys.find(|place| !is_allowed(command.arg(*place))) {
            return Some(Denied::Key(command.arg(place).to_vec()));
        }
        let channel = user.denied_channel(spec, command)?;
        Some(Denied::Channel(channel.to_vec()))
    }
}
