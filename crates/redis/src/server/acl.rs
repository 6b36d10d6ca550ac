//! Users: who is who, and what each may do ([`Selector`]).

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use super::acl_log::Denied;
use super::selector::{RuleError, Selector};
use crate::command::Command;
use crate::error::CommandError;
use crate::spec::CommandSpec;

/// The user that connections are which have not said who they are.
pub(super) const DEFAULT: &str = "default";

/// What one user may do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct User {
    pub is_on: bool,
    pub needs_no_password: bool,
    /// SHA-256 of each, in hexadecimal digits.
    pub passwords: Vec<String>,
    pub root: Selector,
    /// Those in parentheses.
    pub selectors: Vec<Selector>,
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

/// Rules with each selector in one piece, which may come in several.
///
/// # Errors
/// A selector has no end.
pub(super) fn merged(rules: &[String]) -> Result<Vec<String>, CommandError> {
    let mut merged: Vec<String> = Vec::new();
    let mut open: Option<String> = None;
    for rule in rules {
        let whole = match open.take() {
            Some(begun) => format!("{begun} {rule}"),
            None => rule.clone(),
        };
        if whole.starts_with('(') && !whole.ends_with(')') {
            open = Some(whole);
        } else {
            merged.push(whole);
        }
    }
    match open {
        None => Ok(merged),
        Some(begun) => {
            let begun = begun.split(' ').next().unwrap_or_default();
            Err(CommandError::new(format!(
                "ERR Unmatched parenthesis in acl selector starting at '{begun}'."
            )))
        }
    }
}

impl User {
    /// Applies a rule of ACL SETUSER.
    ///
    /// # Errors
    /// Why it is none, in Redis's words.
    pub fn change(&mut self, rule: &str) -> Result<(), CommandError> {
        let refused = |why: &str| {
            CommandError::new(format!("ERR Error in ACL SETUSER modifier '{rule}': {why}"))
        };
        self.apply(rule).map_err(refused)
    }

    fn apply(&mut self, rule: &str) -> Result<(), &'static str> {
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
            "sanitize-payload" | "skip-sanitize-payload" => {}
            "clearselectors" => self.selectors.clear(),
            "reset" => *self = Self::default(),
            _ => match rule.split_at_checked(1) {
                Some((">", password)) => self.add_password(hashed(password.as_bytes())),
                Some(("#", hash)) => self.add_password(checked_hash(hash)?),
                Some(("<", password)) => self.drop_password(&hashed(password.as_bytes()))?,
                Some(("!", hash)) => self.drop_password(&checked_hash(hash)?)?,
                Some(("(", rest)) => {
                    let rules = rest.strip_suffix(')').ok_or(RuleError::Syntax.text())?;
                    let mut selector = Selector::default();
                    for rule in rules.split_whitespace() {
                        selector.change(rule).map_err(RuleError::text)?;
                    }
                    self.selectors.push(selector);
                }
                _ => self.root.change(rule).map_err(RuleError::text)?,
            },
        }
        assert!(
            !self.needs_no_password || self.passwords.is_empty(),
            "a user that needs no password has none"
        );
        Ok(())
    }

    fn add_password(&mut self, hash: String) {
        self.needs_no_password = false;
        if !self.passwords.contains(&hash) {
            self.passwords.push(hash);
        }
    }

    fn drop_password(&mut self, hash: &str) -> Result<(), &'static str> {
        let before = self.passwords.len();
        self.passwords.retain(|password| password != hash);
        if self.passwords.len() == before {
            return Err("The password you are trying to remove from the user does not exist");
        }
        Ok(())
    }

    /// Its words for ACL GETUSER.
    pub fn flags(&self) -> Vec<&'static str> {
        let state = if self.is_on { "on" } else { "off" };
        let nopass = self.needs_no_password.then_some("nopass");
        std::iter::once(state).chain(nopass).collect()
    }

    /// Its line of ACL LIST, and of a file of users.
    pub fn describe(&self, name: &str) -> String {
        let mut parts = vec![format!("user {name}")];
        parts.extend(self.flags().into_iter().map(str::to_owned));
        parts.extend(self.passwords.iter().map(|hash| format!("#{hash}")));
        parts.push(self.root.describe());
        let selectors = self.selectors.iter();
        parts.extend(selectors.map(|selector| format!("({})", selector.describe())));
        parts.join(" ")
    }

    /// What of `command` it may not: nothing when one of its selectors has all of it. Otherwise what the
    /// selector misses that comes furthest: a command, then a key, then a channel.
    fn denial(&self, spec: &CommandSpec, command: &Command) -> Option<Denied> {
        let rank = |denied: &Denied| match denied {
            Denied::Command(_) => 0,
            Denied::Key(_) => 1,
            Denied::Password(_) => 2,
            Denied::Channel(_) => 3,
        };
        let mut furthest = self.root.denial(spec, command)?;
        for selector in &self.selectors {
            let (denied, place) = selector.denial(spec, command)?;
            if (rank(&denied), place) > (rank(&furthest.0), furthest.1) {
                furthest = (denied, place);
            }
        }
        Some(furthest.0)
    }
}

fn checked_hash(hash: &str) -> Result<String, &'static str> {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if hash.len() == 64 && hash.as_bytes().iter().all(is_digit) {
        return Ok(hash.to_owned());
    }
    Err(
        "The password hash must be exactly 64 characters and contain only lowercase hexadecimal \
         characters",
    )
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
            root: Selector::everything(),
            selectors: Vec::new(),
        };
        Self {
            by_name: BTreeMap::from([(DEFAULT.to_owned(), default)]),
        }
    }

    /// The users of a file: a line for each, as ACL LIST has it. One that does not name `default` leaves it as
    /// a server begins with it, with `password` or without.
    ///
    /// # Errors
    /// The lines that are wrong, and why.
    pub fn of_file(text: &str, password: Option<&str>) -> Result<Self, String> {
        let mut users = Self::new(password);
        let (mut named, mut wrong) = (Vec::new(), Vec::new());
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim().is_empty() {
                continue;
            }
            match Self::user_of(line) {
                Ok((name, _)) if named.contains(&name) => {
                    wrong.push(format!("line {number}: user '{name}' is there twice."));
                }
                Ok((name, user)) => {
                    named.push(name.clone());
                    users.by_name.insert(name, user);
                }
                Err(why) => wrong.push(format!("line {number}: {why}.")),
            }
        }
        if wrong.is_empty() {
            return Ok(users);
        }
        Err(wrong.join(" "))
    }

    fn user_of(line: &str) -> Result<(String, User), String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let (first, rest) = words.split_at_checked(2).unwrap_or((&[], &[]));
        let [keyword, name] = first else {
            return Err("a line is: user NAME RULE ...".to_owned());
        };
        if keyword != "user" {
            return Err("line should start with user keyword followed by the username".to_owned());
        }
        let mut user = User::default();
        for rule in merged(rest).map_err(|error| error.to_string())? {
            let applied = user.apply(&rule);
            applied.map_err(|why| format!("Error in applying operation '{rule}': {why}"))?;
        }
        Ok((name.clone(), user))
    }

    /// The file of all users, see [`Users::of_file`].
    pub fn to_file(&self) -> String {
        let lines = self.by_name.iter();
        let lines = lines.map(|(name, user)| user.describe(name) + "\n");
        lines.collect()
    }

    /// Whether connections need not say who they are.
    pub fn needs_no_password(&self) -> bool {
        let default = self.by_name.get(DEFAULT);
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

    /// Whether the user `name` may do everything.
    pub fn may_all(&self, name: &str) -> bool {
        self.by_name
            .get(name)
            .is_some_and(|user| user.root.may_all())
    }

    /// What of `command` the user `name` may not.
    pub fn denial(&self, name: &str, spec: &CommandSpec, command: &Command) -> Option<Denied> {
        let Some(user) = self.by_name.get(name) else {
            let name = super::table::full_name(spec, command);
            return Some(Denied::Command(name));
        };
        if user.root.may_all() {
            return None;
        }
        user.denial(spec, command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::table;

    fn user(rules: &str) -> User {
        let mut user = User::default();
        let words: Vec<String> = rules.split(' ').map(str::to_owned).collect();
        for rule in merged(&words).unwrap() {
            user.change(&rule).unwrap();
        }
        user
    }

    fn may(user: &User, words: &str) -> bool {
        let command = Command::of(&words.split(' ').collect::<Vec<_>>());
        let spec = table::admit(&command).unwrap();
        user.denial(spec, &command).is_none()
    }

    #[test]
    fn a_command_needs_one_selector_that_has_all_of_it() {
        let user = user("on nopass +get ~a* (+set ~b*) (+@hash %R~c* %W~d)");
        for (words, is_allowed) in [
            ("GET a", true),
            ("GET b", false),
            ("SET b 1", true),
            ("SET a 1", false),
            ("HGET c f", true),
            ("HSET c f v", false),
            ("HSET d f v", true),
            ("HGET d f", false),
            // It tells no value.
            ("HLEN d", true),
            ("HGETDEL d FIELDS 1 f", false),
        ] {
            assert_eq!(may(&user, words), is_allowed, "{words}");
        }
    }

    #[test]
    fn a_file_of_users_makes_the_users_that_wrote_it() {
        let mut users = Users::new(Some("secret"));
        users
            .by_name
            .insert("u".to_owned(), user("on >p ~a %R~b &c +get (+set ~b)"));
        let text = users.to_file();
        let again = Users::of_file(&text, None).unwrap();
        assert_eq!(again.by_name, users.by_name);
        assert!(!text.contains("secret") && !text.contains(">p"), "{text}");
        let without = Users::of_file("user x on\n\n", Some("secret")).unwrap();
        assert_eq!(without.by_name[DEFAULT], users.by_name[DEFAULT]);
        for (wrong, why) in [
            ("user", "line 1: a line is"),
            ("\nusr x on", "line 2: line should start"),
            ("user x on\nuser x off", "line 2: user 'x' is there twice"),
            (
                "user x +nope",
                "line 1: Error in applying operation '+nope'",
            ),
            ("user x (+get", "line 1: ERR Unmatched parenthesis"),
        ] {
            let error = Users::of_file(wrong, None).unwrap_err();
            assert!(error.starts_with(why), "{error}");
        }
    }
}
