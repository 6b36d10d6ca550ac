//! Which commands, keys and channels a user may use: the rules of ACL that have nothing to do with passwords.
//!
//! A user has one of these, and more in parentheses, each of which allows commands by itself.

use super::acl_log::Denied;
use super::key_access::{access, reads_and_writes};
use super::table;
use crate::command::Command;
use crate::glob;
use crate::spec::{CommandSpec, Flags};

/// One rule about commands, in order: the last that fits decides.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    All(bool),
    Family(String, bool),
    /// A command, or a part of one: `client|list`.
    Name(&'static str, bool),
}

/// All that a list of patterns may have.
const EVERYTHING: &[u8] = b"*";

/// Keys that may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KeyPattern {
    glob: Vec<u8>,
    /// Values may be read.
    reads: bool,
    /// Values may be changed.
    writes: bool,
}

/// Why a rule is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleError {
    Syntax,
    UnknownName,
    /// A pattern behind one that has everything.
    KeyBehindAll,
    ChannelBehindAll,
}

impl RuleError {
    /// In Redis's words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Syntax => "Syntax error",
            Self::UnknownName => "Unknown command or category name in ACL",
            Self::KeyBehindAll => {
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does \
                 not have any effect. Try 'resetkeys' to start with an empty list of patterns"
            }
            Self::ChannelBehindAll => {
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and \
                 does not have any effect. Try 'resetchannels' to start with an empty list of \
                 channels"
            }
        }
    }
}

/// What may be used. Nothing, when it is new.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Selector {
    rules: Vec<Rule>,
    keys: Vec<KeyPattern>,
    channels: Vec<Vec<u8>>,
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

/// All families, as ACL CAT names them.
pub(super) fn all_families() -> Vec<&'static str> {
    let mut all: Vec<_> = table::all().flat_map(families).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// A command, or a part of one, that a rule names.
fn known_name(name: &str) -> Option<&'static str> {
    let command = table::find(name.as_bytes()).map(|spec| spec.name);
    command.or_else(|| table::named(name.as_bytes()))
}

impl Selector {
    /// All commands, keys and channels.
    pub fn everything() -> Self {
        let mut all = Self::default();
        for rule in ["allcommands", "allkeys", "allchannels"] {
            let applied = all.change(rule);
            assert_eq!(applied, Ok(()), "{rule} is a rule");
        }
        assert!(all.may_all(), "nothing is left out of everything");
        all
    }

    /// Applies a rule of ACL SETUSER about commands, keys or channels.
    ///
    /// # Errors
    /// Why it is none.
    pub fn change(&mut self, rule: &str) -> Result<(), RuleError> {
        match rule {
            "allkeys" | "~*" => {
                self.keys = vec![KeyPattern {
                    glob: EVERYTHING.to_vec(),
                    reads: true,
                    writes: true,
                }];
            }
            "resetkeys" => self.keys.clear(),
            "allcommands" | "+@all" => self.rules = vec![Rule::All(true)],
            // As it is when it is new.
            "nocommands" | "-@all" => self.rules.clear(),
            "allchannels" | "&*" => self.channels = vec![EVERYTHING.to_vec()],
            "resetchannels" => self.channels.clear(),
            _ => {
                let (first, rest) = rule.split_at_checked(1).ok_or(RuleError::Syntax)?;
                match (first, rest.strip_prefix('@')) {
                    ("~", _) => self.add_key(rest, true, true)?,
                    ("%", _) => {
                        let (access, glob) = rest.split_once('~').ok_or(RuleError::Syntax)?;
                        match access.to_ascii_uppercase().as_str() {
                            "R" => self.add_key(glob, true, false)?,
                            "W" => self.add_key(glob, false, true)?,
                            "RW" | "WR" => self.add_key(glob, true, true)?,
                            _ => return Err(RuleError::Syntax),
                        }
                    }
                    ("&", _) => self.add_channel(rest)?,
                    ("+" | "-", Some(family)) if all_families().contains(&family) => {
                        self.allow_family(family, first == "+");
                    }
                    ("+" | "-", None) => {
                        let name = known_name(rest).ok_or(RuleError::UnknownName)?;
                        self.allow_name(name, first == "+");
                    }
                    ("+" | "-", Some(_)) => return Err(RuleError::UnknownName),
                    _ => return Err(RuleError::Syntax),
                }
            }
        }
        Ok(())
    }

    fn has_all_keys(&self) -> bool {
        let is_all =
            |pattern: &KeyPattern| pattern.glob == EVERYTHING && pattern.reads && pattern.writes;
        matches!(self.keys.as_slice(), [one] if is_all(one))
    }

    fn has_all_channels(&self) -> bool {
        self.channels == [EVERYTHING]
    }

    fn add_key(&mut self, glob: &str, reads: bool, writes: bool) -> Result<(), RuleError> {
        if self.has_all_keys() {
            return Err(RuleError::KeyBehindAll);
        }
        if glob.contains(char::is_whitespace) {
            return Err(RuleError::Syntax);
        }
        let glob = glob.as_bytes().to_vec();
        match self.keys.iter_mut().find(|pattern| pattern.glob == glob) {
            Some(pattern) => {
                pattern.reads |= reads;
                pattern.writes |= writes;
            }
            None => self.keys.push(KeyPattern {
                glob,
                reads,
                writes,
            }),
        }
        Ok(())
    }

    fn add_channel(&mut self, glob: &str) -> Result<(), RuleError> {
        if self.has_all_channels() {
            return Err(RuleError::ChannelBehindAll);
        }
        if glob.contains(char::is_whitespace) {
            return Err(RuleError::Syntax);
        }
        let glob = glob.as_bytes().to_vec();
        if !self.channels.contains(&glob) {
            self.channels.push(glob);
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
        let shown = self.keys.iter().map(|pattern| {
            let sign = match (pattern.reads, pattern.writes) {
                (true, false) => "%R~",
                (false, true) => "%W~",
                _ => "~",
            };
            format!("{sign}{}", String::from_utf8_lossy(&pattern.glob))
        });
        shown.collect::<Vec<String>>().join(" ")
    }

    /// Its patterns of channels.
    pub fn channels(&self) -> String {
        let shown = self.channels.iter();
        let shown = shown.map(|glob| format!("&{}", String::from_utf8_lossy(glob)));
        shown.collect::<Vec<String>>().join(" ")
    }

    /// Its part of a line of ACL LIST.
    pub fn describe(&self) -> String {
        let mut parts = Vec::new();
        let (keys, channels) = (self.keys(), self.channels());
        parts.extend((!keys.is_empty()).then_some(keys));
        if !self.has_all_channels() {
            parts.push("resetchannels".to_owned());
        }
        parts.extend((!channels.is_empty()).then_some(channels));
        parts.push(self.commands());
        parts.join(" ")
    }

    /// Whether it leaves nothing out.
    pub fn may_all(&self) -> bool {
        matches!(self.rules.as_slice(), [Rule::All(true)])
            && self.has_all_keys()
            && self.has_all_channels()
    }

    /// Whether it has a command, whose full name is `name`.
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

    /// What of `command` it does not have, and at which argument that stands; nothing when it has all.
    pub fn denial(&self, spec: &CommandSpec, command: &Command) -> Option<(Denied, usize)> {
        let name = table::full_name(spec, command);
        if !self.may_run(spec, name) {
            return Some((Denied::Command(name), 0));
        }
        let places = spec.keys.places(command);
        let mut numbered = places.into_iter().enumerate();
        let is_denied = |key: &(usize, usize)| {
            let (number, place) = *key;
            let (reads, writes) = reads_and_writes(access(spec, name, command, number));
            let mut patterns = self
                .keys
                .iter()
                .filter(|pattern| pattern.reads >= reads && pattern.writes >= writes);
            !patterns.any(|pattern| glob::matches(&pattern.glob, command.arg(place)))
        };
        if let Some((_, place)) = numbered.find(is_denied) {
            return Some((Denied::Key(command.arg(place).to_vec()), place));
        }
        let place = self.denied_channel(spec, command)?;
        Some((Denied::Channel(command.arg(place).to_vec()), place))
    }

    /// The place of the first channel of a command that it does not have. A pattern is allowed as it is
    /// written only.
    fn denied_channel(&self, spec: &CommandSpec, command: &Command) -> Option<usize> {
        let end = match spec.name {
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
        (1..end).find(|place| !is_allowed(command.arg(*place)))
    }
}
